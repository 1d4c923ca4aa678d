"""NetCDF classic files: CDF-1, CDF-2 and CDF-5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from hyperslab import _core
from hyperslab._calls import (
    Casting,
    SectionLike,
    attending,
    describe_each,
    end,
    fill_json,
    held,
    json_of,
    local_extents,
    run,
    sectioned,
    told,
    type_code,
)
from hyperslab.errors import InvalidError
from hyperslab.store import Report, Store

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["NetcdfFile"]

#: How names of such files end.
ENDS = (".nc", ".nc3", ".cdf")
#: Attributes that have the type of their variable, and so may be no numbers where that is of floats.
TYPED = ("_FillValue", "missing_value", "valid_min", "valid_max")


class NetcdfFile(Store):
    """An open NetCDF classic file; made by `open`.

    Its arrays are what NetCDF calls variables. Methods are those of `Store`, but for groups and steps, which such files
    do not have. A new file becomes visible whole when it is closed; one that exists is changed in place (``r+``), and
    arrays along its unlimited dimension may be appended to.
    """

    #: What it means that an update did not end.
    unfinished_means = "its bytes may be old or new"

    def _consolidated_above(self) -> list[str]:
        return []

    def _prepare_write(
        self,
        name: Any,
        array: Any,
        dist: Any,
        *,
        section: SectionLike | None = None,
        dtype: DTypeLike | None = None,
        fill_value: Any = None,
        dimension_names: Sequence[str | None] | None = None,
        attributes: Mapping[str, Any] | None = None,
        halo: int = 0,
        strategy: str | None = None,
        casting: Casting = "same_kind",
        **others: Any,
    ) -> tuple[list[_core._Ask], _core._WriteKeywords]:
        if others:
            message = (
                f"{', '.join(f'{other}=' for other in others)} cannot be given for arrays of a NetCDF classic file"
            )
            raise InvalidError(message)
        arrays, dist = _named(name, array, dist)
        parts = {each: _said(each, local) for each, local in arrays.items()}
        infos = {} if section is None else self._look_at([*map(str, arrays)], "write", fresh=True)
        given: _core._WriteKeywords = {
            "sections": None if section is None else [sectioned(section, infos[str(each)].shape) for each in arrays],
            "dtype": None if dtype is None else type_code(dtype),
            "fill_value": fill_json(fill_value),
            "dimension_names": None if dimension_names is None else list(dimension_names),
            "attributes": None if attributes is None else _json_of(attributes),
            "casting": str(casting),
            "strategy": strategy,
        }
        if any(names is not None or attrs is not None for _, names, attrs in parts.values()):
            given["each"] = [(names, None if attrs is None else _json_of(attrs)) for _, names, attrs in parts.values()]
        return _asks({each: local for each, (local, _, _) in parts.items()}, dist, halo), given

    def append(
        self,
        name: str | Mapping[str, Any],
        array: Any = None,
        dist: Any = None,
        *,
        axis: int = 0,
        halo: int = 0,
        casting: Casting = "same_kind",
    ) -> Report:
        """Append records: arrays that grow get longer along the unlimited dimension, all alike. Collective.

        Readers see the new length once all is written. Arrays that grow and are not named get fill values there.

        Parameters
        ----------
        name : str or mapping of names to arrays
            The array, or several with this rank's parts of what is added.
        array : array
            This rank's part of what is added.
        dist : Distribution or Pieces, or mapping of names to such, optional
            Who holds what of that.
        axis : int
            The dimension, which must be the first.
        halo : int
            Halo cells on every side of the local arrays, which are left out.
        casting : {"same_kind", "unsafe"}
            Which changes to the stored type are allowed; see `Store.write`.

        Examples
        --------
        >>> import numpy as np, hyperslab as hs, tempfile
        >>> path = tempfile.mkdtemp() + "/run.nc"
        >>> with hs.open(path, "w", unlimited="time") as file:
        ...     report = file.write({"time": (["time"], np.zeros(0)), "rho": (["time", "x"], np.zeros((0, 3)))})
        >>> with hs.open(path, "r+") as file:
        ...     for time in (0.5, 1.0):
        ...         report = file.append({"time": np.array([time]), "rho": np.full((1, 3), time)})
        ...     file["rho"].shape
        (2, 3)
        """
        what = told("append to", name, f"in '{self.path}'")
        with attending(self._comm, what):
            arrays, dist = _named(name, array, dist)
            asks = _asks(arrays, dist, halo)
            ndim = len(local_extents(asks[0][1])) if dist is None and asks else 1
            along = axis + ndim if axis < 0 else axis
        return run(lambda: self._store.append(asks, along, {"casting": str(casting)}), self._comm, what)

    def close(self) -> None:
        """Finish the file, when all its requests are over; a new one becomes durable and visible. Collective."""
        self._store.close(None)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file, or give it up on all ranks after an exception on this one."""
        end(self._store, error)


def _named(name: Any, array: Any, dist: Any) -> tuple[dict[str, Any], Any]:
    """Arrays by their names, and who holds what of them."""
    if not isinstance(name, Mapping):
        return {name: array}, dist
    if not name:
        message = "no array is given"
        raise InvalidError(message)
    if array is not None and dist is not None:
        message = "a mapping of arrays is given, and another array besides"
        raise InvalidError(message)
    return dict(name), array if dist is None else dist


def _json_of(attributes: Mapping[str, Any]) -> str:
    """Attributes as JSON, in which floats that are no numbers are words; the variable's type tells them from texts."""
    worded = {
        name: _word(value) if isinstance(value, (float, np.floating)) and name in TYPED else value
        for name, value in attributes.items()
    }
    return json_of(worded)


def _word(value: Any) -> Any:
    return value if np.isfinite(value) else ("NaN" if np.isnan(value) else f"{'-' * bool(value < 0)}Infinity")


def _said(name: str, value: Any) -> tuple[Any, list[str | None] | None, Mapping[str, Any] | None]:
    """An array, names of its dimensions and its attributes, of what xarray takes for one."""
    if not isinstance(value, tuple):
        return value, None, None
    if len(value) not in (2, 3) or (len(value) == 3 and not isinstance(value[2], Mapping)):
        message = f"'{name}' should be an array, or (names of dimensions, array), or (names, array, attributes)"
        raise InvalidError(message)
    names = [value[0]] if isinstance(value[0], str) else list(value[0])
    return value[1], names, value[2] if len(value) == 3 else None


def _asks(arrays: Mapping[str, Any], dist: Any, halo: int) -> list[_core._Ask]:
    """Arrays that are all held alike, or each as a mapping says."""
    if not isinstance(dist, Mapping):
        spread, described = held(dist), describe_each(list(arrays.values()), dist, halo)
        return [(name, raws, spread) for name, raws in zip(arrays, described, strict=True)]
    unknown = [name for name in dist if name not in arrays]
    if unknown:
        message = f"dist has '{unknown[0]}', which is no array of the call"
        raise InvalidError(message)
    return [ask for name, local in arrays.items() for ask in _asks({name: local}, dist.get(name), halo)]
