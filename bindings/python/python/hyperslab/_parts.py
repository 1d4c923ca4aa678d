"""Arrays as callers give them: one or several, perhaps with names of dimensions, and who holds what of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from hyperslab import _core
from hyperslab._calls import (
    Ownership,
    RawSection,
    SectionLike,
    describe_each,
    held,
    holding,
    interrupt,
    local_extents,
    sectioned,
)
from hyperslab._indexing import expanded
from hyperslab._signals import travels
from hyperslab._types import native
from hyperslab._values import unfit
from hyperslab.array import ArrayInfo
from hyperslab.distribution import Distribution
from hyperslab.errors import InvalidError
from hyperslab.pieces import Runs

__all__ = [
    "asks_of",
    "axis_of",
    "dists_of",
    "named",
    "parts_of",
    "read_plainly",
    "runs_in",
    "section_in",
    "sections_in",
    "spread_of",
    "write_plainly",
]


def named(name: Any, array: Any, dist: Any) -> tuple[dict[str, Any], Any]:
    """Arrays by their names, and who holds what of them."""
    if not isinstance(name, Mapping):
        if isinstance(name, (list, tuple)):
            raise unfit(
                "name", "a name, or a mapping of names to arrays", name, "write({'a': a, 'b': b}) writes several"
            )
        return {name: array}, dist
    if not name:
        message = "no array is given"
        raise InvalidError(message)
    if array is not None and dist is not None:
        message = "a mapping of arrays is given, and another array besides"
        raise InvalidError(message)
    return dict(name), array if dist is None else dist


#: An array, names of its dimensions, and its attributes.
Part = tuple[Any, "list[str | None] | None", "Mapping[str, Any] | None"]


def parts_of(name: Any, array: Any, dist: Any) -> tuple[dict[str, Part], Any]:
    """Arrays by their names, with what is said of each, and who holds what of them."""
    arrays, dist = named(name, array, dist)
    return {each: part(each, local) for each, local in arrays.items()}, dist


def part(name: str, value: Any) -> Part:
    """An array, names of its dimensions and its attributes, of what xarray takes for one."""
    if not isinstance(value, tuple):
        return value, None, None
    if len(value) not in (2, 3) or (len(value) == 3 and not isinstance(value[2], Mapping)):
        message = f"'{name}' must be an array, or (names of dimensions, array), or (names, array, attributes)"
        raise InvalidError(message)
    names = [value[0]] if isinstance(value[0], str) else list(value[0])
    return value[1], names, value[2] if len(value) == 3 else None


def dists_of(dist: Any, names: Sequence[str]) -> Mapping[str, Any]:
    """Who holds what of each array."""
    if not isinstance(dist, Mapping):
        return dict.fromkeys(names, dist)
    known = {*names}
    unknown = [name for name in dist if name not in known]
    if unknown:
        message = f"dist has '{unknown[0]}', which is no array of the call"
        raise InvalidError(message)
    return {name: dist.get(name) for name in names}


def asks_of(arrays: Mapping[str, Any], dist: Any, halo: int) -> list[_core._Ask]:
    """Arrays that are all held alike, or each as a mapping says."""
    if not isinstance(dist, Mapping):
        spread, described = held(dist), describe_each(list(arrays.values()), dist, halo)
        return [(name, raws, spread) for name, raws in zip(arrays, described, strict=True)]
    each = dists_of(dist, list(arrays))
    return [ask for name, local in arrays.items() for ask in asks_of({name: local}, each[name], halo)]


def read_plainly(
    core: _core.Target,
    asked: tuple[Any, Any, Any, Any],
    info: Callable[[str], ArrayInfo] | None,
    comm: _core.Comm,
) -> Any:
    """Read, given names, a distribution, `out` and a section, if all is plain; else `None`, and nothing has happened.

    Without `out`, fresh arrays are read into, if this rank has the info of arrays by itself.
    """
    name, dist, out, section = asked
    begun = comm.begun
    try:
        into = _fresh(name, dist, info, comm.rank) if out is None and info is not None else out
        return into if into is not None and core.read_plain(name, dist, into, section) else None
    except BaseException as error:
        interrupt(error, comm, begun, "read")
        raise


def write_plainly(comm: _core.Comm, core: _core.Target, asked: tuple[Any, Any, Any, Any]) -> _core.Report | None:
    """Write, given names, arrays, a distribution and a section, if all is plain; else `None`."""
    begun = comm.begun
    try:
        return core.write_plain(*asked)
    except BaseException as error:
        interrupt(error, comm, begun, "write")
        raise


def _fresh(name: Any, dist: Any, info: Callable[[str], ArrayInfo], rank: int) -> Any:
    """What to read into, if that is plain; the long way finds out more, or raises what is wrong on all ranks."""
    if not isinstance(dist, Distribution):
        return None
    names = name if isinstance(name, (list, tuple)) else [name]
    try:
        types = {one: info(one).dtype for one in names}
        if len(types) < len(names) or any(kind.kind not in "biufc" for kind in types.values()):
            return None
        each = {one: dist.empty(rank, native(kind)) for one, kind in types.items()}
    except Exception as error:
        if travels(error):
            raise
        return None
    return each if names is name else each[name]


def axis_of(axis: int, asks: Sequence[_core._Ask]) -> int:
    """The dimension along which these grow, counted from the first."""
    found = axis
    if axis < 0 and asks:
        _, raws, spread = asks[0]
        found += len(local_extents(raws)) if spread is None else len(spread.shape)
    if found < 0:
        message = f"there is no dimension {axis} to append along"
        raise InvalidError(message)
    return found


def spread_of(
    info: ArrayInfo, part: list[tuple[int, int, int, int]] | None, dist: Ownership | None, size: int
) -> Ownership:
    """Who gets what of an array or a section of it; every rank all, where that is not said."""
    if dist is not None:
        return holding(dist)
    return _everywhere(info.shape if part is None else tuple(count * block for _, _, count, block in part), size)


def runs_in(dist: Any, section: Any) -> Runs:
    """What one rank reads alone of an array instead of a section."""
    if not isinstance(dist, Runs):
        raise unfit("dist", "Runs or an ElementMap", dist)
    if section is not None:
        message = "both dist and section are given\n  hint: give one: runs are of the whole array"
        raise InvalidError(message)
    return dist


@lru_cache(maxsize=64)
def _everywhere(shape: tuple[int, ...], size: int) -> Distribution:
    """All of an array on each rank; many have one shape."""
    return Distribution.replicated(shape, size)


def section_in(section: SectionLike, info: ArrayInfo) -> RawSection:
    """A section of an array, as start, stride, count and block."""
    return sectioned(expanded(section, info.shape), info.shape)


def sections_in(section: SectionLike, infos: Iterable[ArrayInfo]) -> Iterator[RawSection]:
    """The same section of several arrays, of which many have one shape."""
    known: dict[tuple[int, ...], RawSection] = {}
    for info in infos:
        if info.shape not in known:
            known[info.shape] = section_in(section, info)
        yield known[info.shape]
