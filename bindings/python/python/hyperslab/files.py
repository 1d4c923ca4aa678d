"""Raw files with a header of the user's own, and npy files."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

from hyperslab import _core
from hyperslab._calls import (
    Casting,
    Ownership,
    SectionLike,
    attending,
    calling,
    describe_all,
    end,
    give_up,
    held,
    run,
    type_code,
)
from hyperslab._launch import LEFT_OUT, joined, warn_lone_reader
from hyperslab._log import noted
from hyperslab._printing import warn
from hyperslab._values import unfit, whole_number, whole_numbers
from hyperslab.array import ArrayInfo
from hyperslab.comm import connect
from hyperslab.errors import InvalidError
from hyperslab.group import Group, Report
from hyperslab.memory import Place, place_of, place_text

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["RawFile", "load_npy", "open_raw", "save_npy"]

#: Name that the one array of an npy file has inside the library.
NPY_NAME = "array"


def open_raw(
    path: Place,
    mode: Literal["r", "r+", "w", "x"] = "r",
    *,
    comm: Any = LEFT_OUT,
    order: Literal["C", "F"] = "F",
    header: bytes | int = b"",
    arrays: Mapping[str, tuple[Sequence[SupportsIndex], DTypeLike]] | None = None,
    durable: bool = True,
    arrival_seconds: float = 1800.0,
    progress_seconds: float = 60.0,
    storage_seconds: float = 600.0,
    buffer_bytes: int | None = None,
    subchunk_bytes: int | None = None,
    servers: int | None = None,
    strategy: str | None = None,
    exchange: str | None = None,
) -> RawFile:
    """Open a file that holds a header of the user's own and then arrays, one after another. Collective.

    Parameters
    ----------
    path : path, MemoryPath or Striped
        The file, in a directory that exists; a name in a store in memory, ``memory / "dump.raw"``; or a file that is
        spread over several directories.
    mode : {"r", "r+", "w", "x"}
        A new file (``w``, ``x``) is written beside its place and takes its name when it is closed, or with the first
        `Group.flush`, so that an older file stays whole until then. ``r+`` changes a file in place; a marker file
        beside it tells of a write that has not ended. Nobody else may write to the file meanwhile: where the runs of a
        section are short, what lies between them is written back as it was read.
    comm : communicator or None, optional
        As for `open`.
    order : {"F", "C"}
        Order of the elements in the file: column-major, as Fortran has it, or row-major.
    header : bytes or int
        For a new file what it begins with; otherwise how many bytes come before the first array.
    arrays : mapping of names to (shape, dtype), optional
        For an existing file, its arrays in their order.

    Examples
    --------
    >>> import numpy as np, hyperslab as hs, tempfile
    >>> path = tempfile.mkdtemp() + "/dump.raw"
    >>> with hs.open_raw(path, "w", header=b"time=1;;") as file:
    ...     report = file.write({"rho": np.arange(6.0).reshape(2, 3)}, dtype="<f4")
    >>> np.fromfile(path, "<f4", offset=8)
    array([0., 3., 1., 4., 2., 5.], dtype=float32)
    >>> with hs.open_raw(path, header=8, arrays={"rho": ((2, 3), "<f4")}) as file:
    ...     file.read("rho")
    array([[0., 1., 2.],
           [3., 4., 5.]], dtype=float32)
    """
    # Of what is given as usual nothing has to be asked.
    more = (
        arrival_seconds,
        progress_seconds,
        storage_seconds,
        buffer_bytes,
        subchunk_bytes,
        servers,
        strategy,
        exchange,
    )
    reads_alone = comm is LEFT_OUT and mode == "r"
    is_plain = more == _USUAL and (reads_alone or comm is not LEFT_OUT)
    what = "" if is_plain else _opening(path)
    member = (
        connect(None if reads_alone else comm, arrival_seconds)
        if is_plain
        else joined(comm, what, mode, arrival_seconds)
    )
    core = _core.Target()
    try:
        if is_plain and core.open_plain(member, path, mode, order, header, arrays, durable):
            return _opened(core, member, path, mode)
        with calling(member, what or _opening(path)):
            given: _core._OpenKeywords = {
                "durable": bool(durable),
                "arrival_seconds": arrival_seconds,
                "progress_seconds": progress_seconds,
                "storage_seconds": storage_seconds,
                "buffer_bytes": buffer_bytes,
                "subchunk_bytes": subchunk_bytes,
                "servers": servers,
                "strategy": strategy,
                "exchange": exchange,
            }
            place = place_of(path)
            content, before, known = _contents(mode, header, arrays or {})
            core.open_file(member, place, mode, given, order, content, before, known)
        return _opened(core, member, path, mode)
    except BaseException as error:
        give_up(core, member, what or _opening(path), error)
        raise


def _contents(
    mode: str, header: bytes | int, arrays: Mapping[str, tuple[Sequence[SupportsIndex], DTypeLike]]
) -> tuple[bytes, int, list[tuple[str, tuple[int, ...], str]]]:
    """What a new file begins with, how many bytes come before the first array, and the arrays of one that exists."""
    new = mode in ("w", "x")
    if new and (isinstance(header, int) or arrays):
        message = "a new file needs its header as bytes, and gets its arrays from write()"
        raise InvalidError(message)
    content = bytes(header) if not isinstance(header, int) else b""
    before = header if isinstance(header, int) else len(content)
    whole_number(before, "header")
    return content if new else b"", before, _named(arrays)


#: What options of an opening are where nobody gives them, which the library has by itself: limits of time, then what is
#: chosen otherwise.
_USUAL = tuple((open_raw.__kwdefaults__ or {}).values())[-8:]


def _opening(path: Place) -> str:
    """What is asked, for messages."""
    return f"open raw file '{place_text(path)}'"


def _opened(core: _core.Target, member: _core.Comm, path: Place, mode: str) -> RawFile:
    """The file, after rank 0 has told what there is to know of it."""
    warn_lone_reader(mode)
    file = RawFile(core, member)
    if "logging" in sys.modules:
        noted(member, "%s (mode %s) on %d ranks: %s", _opening(path), mode, member.size, member.description)
    if not core.left() or member.rank > 0:
        return file
    if core.removed():
        warn(f"removed what an earlier run left unfinished: {', '.join(core.removed())}", stacklevel=3)
    if core.unfinished():
        names = ", ".join(core.unfinished())
        warn(f"an update in place began and did not end, its bytes may be old or new: {names}", stacklevel=3)
    if core.passed_over():
        warn(f"passed over: {'; '.join(core.passed_over())}", stacklevel=3)
    return file


def _named(
    arrays: Mapping[str, tuple[Sequence[SupportsIndex], DTypeLike]],
) -> list[tuple[str, tuple[int, ...], str]]:
    """Name, shape and type of each array, as the compiled module has them."""
    found: list[tuple[str, tuple[int, ...], str]] = []
    last: object = object()
    given: Any
    shape: tuple[int, ...] = ()
    code = ""
    if not isinstance(arrays, Mapping):
        raise unfit("arrays", "a mapping of names to (shape, dtype)", arrays)
    for name, given in arrays.items():
        # Of hundreds of arrays nearly all are alike, and often said to be with one object.
        if given is not last:
            if not isinstance(given, Sequence) or len(given) != 2 or not isinstance(given[0], Sequence):
                raise unfit(f"array {name!r}", "given as (shape, dtype)", given)
            extents, dtype = given
            shape, code, last = tuple(whole_numbers(extents, f"shape of {name!r}")), type_code(dtype), given
        found.append((name, shape, code))
    return found


class RawFile(Group):
    """An open file of arrays, one after another; made by `open_raw`.

    Its methods are those of `Group`, but for groups and steps, which such files do not have. Arrays have a type and a
    shape, and nothing else. A new file becomes visible when it is closed, or with its first `flush`; one that exists
    is changed in place (``r+``).

    Examples
    --------
    >>> import numpy as np, hyperslab as hs, tempfile
    >>> path = tempfile.mkdtemp() + "/dump.raw"
    >>> with hs.open_raw(path, "w") as file:
    ...     requests = [file.iwrite({name: np.full(2, value)}) for name, value in (("a", 1.0), ("b", 2.0))]
    ...     reports = hs.wait_all(requests)
    >>> with hs.open_raw(path, arrays={"a": ((2,), "f8"), "b": ((2,), "f8")}) as file:
    ...     list(file), file["b"].shape, file.read(["a", "b"])
    (['a', 'b'], (2,), {'a': array([1., 1.]), 'b': array([2., 2.])})
    """

    _unfinished_means = "its bytes may be old or new"
    _looks_alone = _knows_types = True

    def __init__(self, core: _core.Target, comm: _core.Comm) -> None:
        super().__init__(core, comm)
        self._known: dict[str, ArrayInfo] = {}

    def _consolidated_above(self) -> list[str]:
        return []

    @property
    def header(self) -> bytes:
        """The bytes before the first array."""
        return bytes(self._core.header())

    # What such a file holds does not change but by writing more arrays to a new one, which is not read.

    def _info(self, name: str) -> ArrayInfo:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = super()._info(name)
        return known

    def _look_at(self, names: Sequence[str], doing: str, *, fresh: bool) -> dict[str, ArrayInfo]:
        missing = [name for name in names if name not in self._known]
        if missing:
            self._known |= super()._look_at(missing, doing, fresh=fresh)
        return {name: self._known[name] for name in names}

    def close(self) -> None:
        """Finish the file, when all its requests are over; a new one becomes durable and visible. Collective."""
        self._known.clear()
        self._core.close(None)

    def _exit(self, error: BaseException | None) -> None:
        """Close the file; after an exception on this rank, give up on all ranks what was not published."""
        self._known.clear()
        end(self._core, self._comm, error)


def save_npy(
    path: Place,
    array: Any,
    dist: Ownership | None = None,
    *,
    comm: Any = LEFT_OUT,
    order: Literal["C", "F"] = "C",
    dtype: DTypeLike | None = None,
    halo: int = 0,
    casting: Casting = "same_kind",
    durable: bool = True,
    arrival_seconds: float = 1800.0,
    progress_seconds: float = 60.0,
    storage_seconds: float = 600.0,
) -> Report:
    """Write a distributed array as an npy file, which replaces an older one when it is complete. Collective.

    With a `dtype`, `casting` says which changes of the element type are allowed; see `Group.write`.
    """
    what = f"save '{place_text(path)}'"
    member = joined(comm, what, "w", arrival_seconds)
    opening: _core._OpenKeywords = {
        "durable": bool(durable),
        "arrival_seconds": arrival_seconds,
        "progress_seconds": progress_seconds,
        "storage_seconds": storage_seconds,
    }
    with attending(member, what):
        place = place_of(path)
        added = (NPY_NAME, describe_all(array, dist, halo), held(dist))
        writing: _core._WriteKeywords = {"casting": str(casting), "dtype": None if dtype is None else type_code(dtype)}
    return run(lambda: _core.save_npy(member, place, added, order, opening, writing), member, what)


def load_npy(
    path: Place,
    dist: Ownership | None = None,
    *,
    comm: Any = LEFT_OUT,
    section: SectionLike | None = None,
    out: Any = None,
    dtype: DTypeLike | None = None,
    order: Literal["C", "F"] = "C",
    halo: int = 0,
    casting: Casting = "same_kind",
    arrival_seconds: float = 1800.0,
    progress_seconds: float = 60.0,
    storage_seconds: float = 600.0,
) -> Any:
    """Read this rank's part of an npy file. Collective.

    With a `dtype` or `out`, `casting` says which changes of the element type are allowed; see `Group.write`.
    """
    what = f"open '{place_text(path)}'"
    member = joined(comm, what, "r", arrival_seconds)
    given: _core._OpenKeywords = {
        "durable": False,
        "arrival_seconds": arrival_seconds,
        "progress_seconds": progress_seconds,
        "storage_seconds": storage_seconds,
    }
    core = _core.Target()
    try:
        with calling(member, what):
            core.open_npy(member, place_of(path), given)
        with RawFile(core, member) as file:
            read: Any = file.read
            return read(NPY_NAME, dist, section=section, out=out, dtype=dtype, order=order, halo=halo, casting=casting)
    except BaseException as error:
        give_up(core, member, what, error)
        raise
