"""Raw files with a header of the user's own, and npy files."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, overload

import numpy as np

from hyperslab import _core
from hyperslab._calls import (
    Casting,
    Holding,
    SectionLike,
    attending,
    calling,
    describe_all,
    describe_each,
    end,
    held,
    holding,
    run,
    section_of,
    sectioned,
    told,
    type_code,
    type_of,
)
from hyperslab.comm import connect
from hyperslab.distribution import Distribution
from hyperslab.errors import InvalidError
from hyperslab.memory import Place, place_of, place_text
from hyperslab.pieces import Boxes, Runs
from hyperslab.requests import Request, failed
from hyperslab.store import Report

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import DTypeLike, NDArray

__all__ = ["RawFile", "load_npy", "open_raw", "save_npy"]

#: Name that the one array of an npy file has inside the library.
NPY_NAME = "array"


def open_raw(
    path: Place,
    mode: Literal["r", "r+", "w", "x"] = "r",
    *,
    comm: Any = None,
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
        A new file (``w``, ``x``) is written beside its place and takes its name when it is closed, so that an older
        file stays whole until then. ``r+`` changes a file in place; a marker file beside it tells of a write that
        has not ended. Nobody else may write to the file meanwhile: where the runs of a section are short, what lies
        between them is written back as it was read.
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
    member = connect(comm, arrival_seconds)
    what = f"open raw file '{place_text(path)}'"
    with calling(member, what):
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
        new = mode in ("w", "x")
        if new and (isinstance(header, int) or arrays):
            message = "a new file needs its header as bytes, and gets its arrays from write()"
            raise InvalidError(message)
        content = bytes(header) if not isinstance(header, int) else b""
        before = header if isinstance(header, int) else len(content)
        if before < 0:
            message = f"a header of {before} B makes no sense"
            raise InvalidError(message)
        known = _named(arrays or {})
        core = _core.Target.open_file(member, place, mode, given, order, content if new else b"", before, known)
    # The core has looked at them, and need not be asked again.
    kinds = {kind: type_of(kind) for _, _, kind in known}
    file = RawFile(core, member, {name: (shape, kinds[kind]) for name, shape, kind in known})
    if member.rank == 0 and core.removed():
        warnings.warn(f"removed what an earlier run left unfinished: {', '.join(core.removed())}", stacklevel=2)
    if member.rank == 0 and core.unfinished():
        names = ", ".join(core.unfinished())
        warnings.warn(f"an update in place began and did not end, its bytes may be old or new: {names}", stacklevel=2)
    return file


def _named(
    arrays: Mapping[str, tuple[Sequence[SupportsIndex], DTypeLike]],
) -> list[tuple[str, tuple[int, ...], str]]:
    """Name, shape and type of each array, as the compiled module has them."""
    found: list[tuple[str, tuple[int, ...], str]] = []
    last: object = object()
    shape: tuple[int, ...] = ()
    code = ""
    for name, given in arrays.items():
        # Of hundreds of arrays nearly all are alike, and often said to be with one object.
        if given is not last:
            extents, dtype = given
            shape, code, last = tuple(extent.__index__() for extent in extents), type_code(dtype), given
        found.append((name, shape, code))
    return found


class RawFile:
    """An open file of arrays; made by `open_raw`.

    Each method says whether it is collective; properties are local: they wait for nobody, and tell the same on all
    ranks at the same place of the program.
    """

    def __init__(
        self,
        core: _core.Target,
        comm: _core.Comm,
        known: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] | None = None,
    ) -> None:
        self._file = core
        self._comm = comm
        self._known = known or {}

    @property
    def path(self) -> str:
        """Absolute path of the file, its name in memory, or the directories that it is striped over and its name."""
        return self._file.path()

    @property
    def removed(self) -> tuple[str, ...]:
        """The name of the file, if one that was left unpublished was removed when it was opened."""
        return tuple(self._file.removed())

    @property
    def unfinished(self) -> tuple[str, ...]:
        """The name of the file, if an update in place began and did not end: its bytes may be old or new."""
        return tuple(self._file.unfinished())

    @property
    def header(self) -> bytes:
        """The bytes before the first array."""
        return bytes(self._file.header())

    @property
    def arrays(self) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
        """Shape and type of each array, in the order of the file; of requests, those that were waited for."""
        return {name: (tuple(shape), type_of(kind)) for name, shape, kind in self._file.file_arrays()}

    def write(
        self,
        arrays: Mapping[str, Any],
        dist: Holding | None = None,
        *,
        dtype: DTypeLike | None = None,
        section: SectionLike | None = None,
        halo: int = 0,
        casting: Casting = "same_kind",
    ) -> Report:
        """Write arrays: behind those of a new file, over those of the same names in one open with ``r+``. Collective.

        Parameters
        ----------
        arrays : mapping of names to arrays
            This rank's parts.
        dist : Distribution or Pieces, optional
            Who holds what.
        dtype : optional
            Type of the stored elements, with byte order; that of the memory by default.
        section : optional
            With ``r+``: only this part.
        halo : int
            Halo cells on every side of the local arrays, which are left out.
        casting : {"same_kind", "unsafe"}
            Which changes from the type in memory to the stored type are allowed; see `Store.write`.
        """
        what = self._write_of(arrays)
        with attending(self._comm, what):
            asks, given = self._prepare_write(arrays, dist, dtype, section, halo, casting)
        return run(lambda: self._file.write(asks, given), self._comm, what)

    def iwrite(
        self,
        arrays: Mapping[str, Any],
        dist: Holding | None = None,
        *,
        staged: bool = False,
        dtype: DTypeLike | None = None,
        section: SectionLike | None = None,
        halo: int = 0,
        casting: Casting = "same_kind",
    ) -> Request[Report]:
        """Write as `write` does, but return at once; see `Store.iwrite`. Collective.

        Examples
        --------
        >>> import numpy as np, hyperslab as hs, tempfile
        >>> path = tempfile.mkdtemp() + "/dump.raw"
        >>> with hs.open_raw(path, "w") as file:
        ...     requests = [file.iwrite({name: np.full(2, value)}) for name, value in (("a", 1.0), ("b", 2.0))]
        ...     reports = hs.wait_all(requests)
        >>> np.fromfile(path)
        array([1., 1., 2., 2.])
        """
        what = self._write_of(arrays)
        try:
            asks, given = self._prepare_write(arrays, dist, dtype, section, halo, casting)
            core = self._file.write_later(asks, given, bool(staged))
        except Exception as error:  # noqa: BLE001 (the request raises it, on all ranks)
            return failed(self._file, self._comm, what, error)
        return Request(core, self._comm, lambda report: report)

    def _write_of(self, arrays: Any) -> str:
        return told("write of", arrays, f"to '{self.path}'")

    def _prepare_write(
        self,
        arrays: Mapping[str, Any],
        dist: Holding | None,
        dtype: DTypeLike | None,
        section: SectionLike | None,
        halo: int,
        casting: Casting,
    ) -> tuple[list[_core._Ask], _core._WriteKeywords]:
        if not arrays:
            message = "no array is given"
            raise InvalidError(message)
        spread = held(dist)
        described = describe_each(list(arrays.values()), dist, halo)
        asks = [(name, raws, spread) for name, raws in zip(arrays, described, strict=True)]
        given: _core._WriteKeywords = {"casting": str(casting)}
        if dtype is not None:
            given["dtype"] = type_code(dtype)
        if section is not None:
            known = self.arrays
            given["sections"] = [sectioned(section, known[each][0] if each in known else None) for each in arrays]
        return asks, given

    @overload
    def read(
        self, name: str, dist: Distribution | Runs | None = None, *, out: NDArray[Any] | None = None, **options: Any
    ) -> NDArray[Any]: ...
    @overload
    def read(self, name: str, dist: Boxes, *, out: Any = None, **options: Any) -> list[NDArray[Any]]: ...
    @overload
    def read(
        self,
        name: Sequence[str],
        dist: Holding | None = None,
        *,
        out: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> dict[str, Any]: ...
    def read(self, name: Any, dist: Holding | None = None, *, out: Any = None, **options: Any) -> Any:
        """Read this rank's part of one array, or of several of one shape in one call. Collective.

        Parameters
        ----------
        name : str or sequence of str
            One array, or several that are distributed alike.
        dist : Distribution or Pieces, optional
            Who gets what. Without it every rank gets everything.
        section : optional
            Only this part of the array; `dist` spreads the shape of the section.
        out : array, or mapping of names to arrays, optional
            Read into this, in any memory order and with conversion to its type.
        dtype : optional
            Type of fresh arrays; that of the stored elements, in the byte order of this machine, by default.
        casting : {"same_kind", "unsafe"}
            Which changes from the stored type to that of `out` or `dtype` are allowed; see `Store.write`.
        order : {"C", "F"}
            Memory order of fresh arrays.
        halo : int
            Halo cells on every side of the local arrays, which are left alone.

        Returns
        -------
        ndarray, list of ndarray with `Boxes`, or dict of such for several names
            `out` where it was given.
        """
        return self._read(name, dist, out=out, **options)

    def _read(
        self,
        name: Any,
        dist: Holding | None,
        *,
        out: Any,
        section: SectionLike | None = None,
        dtype: DTypeLike | None = None,
        order: Literal["C", "F"] = "C",
        halo: int = 0,
        casting: Casting = "same_kind",
    ) -> Any:
        single = isinstance(name, str)
        what = told("read of", name, f"from '{self.path}'")
        with attending(self._comm, what):
            names = [name] if single else list(name)
            targets: dict[str, Any] = {} if out is None else ({name: out} if single else dict(out))
            targets, given = self._prepare_read(names, targets, dist, section, dtype, order, halo)
            given["casting"] = str(casting)
        run(lambda: self._file.read(names, given), self._comm, what)
        return targets[name] if single else {each: targets[each] for each in names}

    def iread(
        self,
        name: Any,
        dist: Holding | None = None,
        *,
        section: SectionLike | None = None,
        out: Any = None,
        dtype: DTypeLike | None = None,
        order: Literal["C", "F"] = "C",
        halo: int = 0,
        casting: Casting = "same_kind",
    ) -> Request[Any]:
        """Read as `read` does, but return at once; see `Store.iread`. Collective."""
        single = isinstance(name, str)
        what = told("read of", name, f"from '{self.path}'")
        try:
            names = [name] if single else list(name)
            targets: dict[str, Any] = {} if out is None else ({name: out} if single else dict(out))
            targets, given = self._prepare_read(names, targets, dist, section, dtype, order, halo)
            given["casting"] = str(casting)
            core = self._file.read_later(names, given)
        except Exception as error:  # noqa: BLE001 (the request raises it, on all ranks)
            return failed(self._file, self._comm, what, error)
        result = targets[name] if single else {each: targets[each] for each in names}
        return Request(core, self._comm, lambda _report: result)

    def read_local(
        self,
        name: str,
        *,
        section: SectionLike | None = None,
        out: NDArray[Any] | None = None,
        dtype: DTypeLike | None = None,
        order: Literal["C", "F"] = "C",
        casting: Casting = "same_kind",
    ) -> NDArray[Any]:
        """Read all of an array, or of a section of it, by this rank alone. Local.

        No other rank need do the same, and it waits for no other rank and no request; see `Store.read_local`. A file
        that a request of this program is writing is refused, and a new file until it was closed.

        Raises
        ------
        Error
            This rank's own; the others do not hear of it.

        Examples
        --------
        >>> import numpy as np, hyperslab as hs, tempfile
        >>> path = tempfile.mkdtemp() + "/dump.raw"
        >>> np.arange(6.0).tofile(path)
        >>> with hs.open_raw(path, header=0, arrays={"rho": ((6,), "f8")}) as file:
        ...     file.read_local("rho", section=slice(2, 4))
        array([2., 3.])
        """
        known = self.arrays
        if name not in known:
            message = f"the file has no array '{name}'\n  hint: it has {', '.join(known)}"
            raise InvalidError(message)
        shape, stored = known[name]
        part = section_of(section, shape)
        extents = shape if part is None else [count * block for _, _, count, block in part]
        spread = Distribution.replicated(extents, 1)
        if out is None:
            native = stored.newbyteorder("=") if dtype is None else type_of(type_code(dtype))
            out = spread.empty(0, native, order=order)
        raws = describe_all(out, spread, 0, writable=True)
        sections = None if part is None else [part]
        self._file.read_local(name, {"sections": sections, "out": raws, "casting": str(casting)})
        return out

    def _prepare_read(
        self,
        names: list[str],
        targets: dict[str, Any],
        dist: Holding | None,
        section: SectionLike | None,
        dtype: DTypeLike | None,
        order: Literal["C", "F"],
        halo: int,
    ) -> tuple[dict[str, Any], _core._ReadKeywords]:
        # What a file holds that can be read does not change; of one that is new, what was written since is asked for.
        if any(each not in self._known for each in names):
            self._known = self.arrays
        known = self._known
        for each in names:
            if each not in known:
                message = f"the file has no array '{each}'\n  hint: it has {', '.join(known)}"
                raise InvalidError(message)
        if not names:
            message = "no array is named"
            raise InvalidError(message)
        shape = known[names[0]][0]
        parts = None if section is None else [sectioned(section, known[each][0]) for each in names]
        extents = shape if parts is None else [count * block for _, _, count, block in parts[0]]
        spread = Distribution.replicated(extents, self._comm.size) if dist is None else holding(dist)
        for each in names:
            if each not in targets:
                native = known[each][1].newbyteorder("=") if dtype is None else type_of(type_code(dtype))
                targets[each] = spread.empty(self._comm.rank, native, order=order, halo=halo)
        described = describe_each([targets[each] for each in names], spread, halo, writable=True)
        raws = [raw for parts in described for raw in parts]
        return targets, {"dist": spread._core, "sections": parts, "out": raws}

    def close(self) -> None:
        """Finish the file, when all its requests are over; a new one becomes durable and visible. Collective."""
        self._file.close(None)

    def __enter__(self) -> Self:
        """Use it as a context."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file, or give it up on all ranks after an exception on this one."""
        end(self._file, error)

    def __repr__(self) -> str:
        """Kind and path."""
        return f"<RawFile '{self.path}'>"


def save_npy(
    path: Place,
    array: Any,
    dist: Holding | None = None,
    *,
    comm: Any = None,
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

    With a `dtype`, `casting` says which changes of the element type are allowed; see `Store.write`.
    """
    member = connect(comm, arrival_seconds)
    what = f"save '{place_text(path)}'"
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
    dist: Holding | None = None,
    *,
    comm: Any = None,
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

    With a `dtype` or `out`, `casting` says which changes of the element type are allowed; see `Store.write`.
    """
    member = connect(comm, arrival_seconds)
    given: _core._OpenKeywords = {
        "durable": False,
        "arrival_seconds": arrival_seconds,
        "progress_seconds": progress_seconds,
        "storage_seconds": storage_seconds,
    }
    with calling(member, f"open '{place_text(path)}'"):
        file = RawFile(_core.Target.open_npy(member, place_of(path), given), member)
    with file:
        return file.read(NPY_NAME, dist, section=section, out=out, dtype=dtype, order=order, halo=halo, casting=casting)
