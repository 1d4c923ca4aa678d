"""Zarr v3 stores: groups of arrays that all ranks read and write together."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np

from hyperslab import _core
from hyperslab._calls import (
    Casting,
    Holding,
    SectionLike,
    attending,
    calling,
    describe_all,
    fill_json,
    held,
    holding,
    json_of,
    local_extents,
    run,
    section_of,
    sectioned,
    told,
    type_code,
    type_of,
)
from hyperslab._frozen import frozen
from hyperslab.arrays import ArrayInfo, info_of
from hyperslab.chunking import Chunks, Shards, chunking_of_asks, codecs_of, shards_of
from hyperslab.distribution import Distribution
from hyperslab.errors import OutdatedError
from hyperslab.pieces import Boxes, Runs
from hyperslab.requests import Request, failed

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import DTypeLike, NDArray

Report = _core.Report

T = TypeVar("T")

__all__ = ["ArrayInfo", "Report", "Store"]

#: How often arrays may change between looking at them and reading them.
LOOKS_MAX = 100


class Store:
    """An open Zarr group. Made by `open`, `Store.group` and `Store.step`.

    Each method says whether it is collective (all ranks of the communicator make the call) or local (any rank makes it
    by itself, and it waits for nobody); properties are local. Lists of the group are the same on all ranks at
    the same place of the program: they change only by collective calls, and by waiting for a request.
    """

    #: What it means that an update did not end.
    unfinished_means = "each chunk is old or new"

    def __init__(self, core: _core.Target, comm: _core.Comm) -> None:
        self._store = core
        self._comm = comm

    def _consolidated_above(self) -> list[str]:
        """Groups above with consolidated metadata."""
        return self._store.consolidated_above() if self._comm.rank == 0 else []

    @property
    def path(self) -> str:
        """Absolute path of the group, or its name in memory."""
        return self._store.path()

    @property
    def removed(self) -> tuple[str, ...]:
        """Names of steps and arrays that an earlier run left unpublished and that opening removed."""
        return tuple(self._store.removed())

    @property
    def unfinished(self) -> tuple[str, ...]:
        """Names of arrays in the root of which an update in place began and did not end: each chunk is old or new."""
        return tuple(self._store.unfinished())

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Attributes of the group. A change of them is a `TypeError`; ``attributes.copy()`` is an ordinary dict."""
        attributes: Mapping[str, Any] = frozen(json.loads(self._store.attributes()))
        return attributes

    def arrays(self) -> list[str]:
        """Names of the arrays, sorted. Local.

        Those that were there when the group was opened or last refreshed, and those that this program has made since:
        of requests, those that were waited for, by `Request.wait` or by a call that blocks. With dedicated servers,
        what a write makes is listed from the next call on, since it may still fail when it has returned. The same on
        all ranks at the same place of the program.
        """
        return self._store.arrays()

    def groups(self) -> list[str]:
        """Names of the groups and of the published steps, sorted. Local, as `arrays`."""
        return self._store.groups()

    def refresh(self) -> None:
        """Take note of what other programs have made or removed in the group since it was opened. Collective."""
        with calling(self._comm, f"refresh '{self.path}'"):
            self._store.refresh()

    def __contains__(self, name: str) -> bool:
        """Whether `arrays` has this name. Local."""
        return name in self.arrays()

    def __iter__(self) -> Iterator[str]:
        """Names of the arrays. Local, as `arrays`."""
        return iter(self.arrays())

    def __getitem__(self, name: str) -> ArrayInfo:
        """What an array is, as this rank finds it in storage. Local.

        Of an array that requests under way make, what it will be, but for its chunks. A rank that holds no piece of it
        and was not told its type waits for the request.
        """
        return info_of(self._store.info(name))

    def _look_at(self, names: Sequence[str], doing: str, *, fresh: bool) -> dict[str, ArrayInfo]:
        """What arrays are, as rank 0 finds them. Collective: no rank waits for storage by itself, without a limit.

        Unless it shall be fresh, what all ranks saw before may do: a read finds out whether that still holds.
        """
        return dict(zip(names, map(info_of, self._store.describe(list(names), doing, fresh)), strict=True))

    def group(self, name: str) -> Store:
        """Open a group or a published step of this group. Collective."""
        with calling(self._comm, f"open group {name!r} of '{self.path}'"):
            return Store(self._store.group(name), self._comm)

    @overload
    def write(self, name: str, array: Any, dist: Holding | None = None, /, **options: Any) -> Report: ...
    @overload
    def write(self, name: Mapping[str, Any], array: Holding | None = None, /, **options: Any) -> Report: ...
    def write(self, name: Any, array: Any = None, dist: Any = None, /, **options: Any) -> Report:
        """Write one array, or several in one call. Collective.

        ``write(name, array, dist)`` writes one array, ``write({name: array, ...}, dist)`` several that are distributed
        alike. `array` is this rank's part, in any memory order; with `Boxes`, a list of arrays. Without a section, the
        arrays are new, and become visible when all of the call is done (in a step: when the step is).

        Parameters
        ----------
        section : optional
            Write this part of an existing array instead: a slice, an integer or (start, stride, count, block) for each
            dimension. `dist` then spreads the shape of the section.
        chunks : sequence of int, Distribution or TypicalRequest, optional
            Shape of the chunks; or a disk schema, which is a distribution over as many servers as its mesh has; or the
            shape of a typical request, from which a layout is chosen. By default a chunk is what one rank holds, cut to
            moderate size; or some of these together, or a part of one, where the model expects writing to be clearly
            cheaper: small arrays are one chunk. Give chunks if rows are to be appended one by one later: the chunk
            that they fall into is written anew each time.
        shards : sequence of int, "auto", False or None
            Shape of the shards, of which each is one file that holds several chunks; chunks must divide it, and are cut
            to 1 MiB if no shape is given. With ``"auto"``, chunks lie in shards where that saves many files;
            with ``False`` or ``None``, each chunk is a file. A section of a shard is read without the rest of it; to
            change one, its owner reads and writes all of it.
        dtype : optional
            Type of the stored elements; that of the memory by default. ``"bfloat16"`` is known by this name, also
            without ml_dtypes.
        casting : {"same_kind", "unsafe"}
            Which changes from the type in memory to the stored type are allowed, in NumPy's words. ``same_kind`` is for
            changes that lose size and precision only, as from float64 to float32 or from integers to floats; ``unsafe``
            also for those that lose fractions, imaginary parts or signs. Values out of range become the nearest one
            that an integer can hold where they were floats, infinite where they become floats, and wrap where they
            were integers, as with ``astype``. A NaN that would become an integer is an error with either.
        fill_value : number, optional
            What elements are that are never written; 0 by default. Where arrays have several types, each must be able
            to hold it: 1 may be a float, a complex number or True.
        dimension_names : sequence of str, optional
            Names of the dimensions, as xarray wants them.
        attributes : mapping, optional
            Attributes of the arrays.
        checksum : bool
            Whether chunks carry a CRC-32C; they do by default.
        zstd : int, optional
            Compress chunks with Zstandard at this level.
        codecs : sequence of mappings or of zarr-python's codecs, optional
            How chunks become bytes, in place of `checksum` and `zstd`, as the metadata of Zarr list it: ``transpose``,
            then ``bytes``, which may be left out, then any of ``blosc``, ``gzip``, ``zstd`` and ``crc32c``. In shards,
            those of the chunks inside.
        overwrite : bool
            Whether arrays of the same names may be replaced; groups and steps never are.
        halo : int
            Halo cells on every side of the local arrays, which are left out.
        strategy : str, optional
            Force a strategy.

        Returns
        -------
        Report
            What was chosen and what it cost.
        """
        what = told("write of", name, f"to '{self.path}'")
        with calling(self._comm, what):
            asks, given = self._prepare_write(name, array, dist, **options)
        return run(lambda: self._store.write(asks, given), self._comm, what)

    @overload
    def iwrite(self, name: str, array: Any, dist: Holding | None = None, /, **options: Any) -> Request[Report]: ...
    @overload
    def iwrite(self, name: Mapping[str, Any], array: Holding | None = None, /, **options: Any) -> Request[Report]: ...
    def iwrite(
        self, name: Any, array: Any = None, dist: Any = None, /, *, staged: bool = False, **options: Any
    ) -> Request[Report]:
        """Write as `write` does, but return at once. Collective.

        Parameters
        ----------
        staged : bool
            Whether the arrays are copied, so that they may be changed at once. Otherwise they must not be changed
            before the request is over. Copies count against ``buffer_bytes``: they share half of it, a larger one is
            made alone and waits for requests before it, and what remains is for other buffers.
        **options : optional
            As for `write`.

        Returns
        -------
        Request
            Its `wait` returns the report, or raises the error, the same on all ranks.

        Examples
        --------
        >>> import numpy as np, hyperslab as hs, tempfile
        >>> with hs.open(tempfile.mkdtemp() + "/run.zarr", "w") as store:
        ...     rho = np.ones((3, 4))
        ...     request = store.iwrite("rho", rho, staged=True)
        ...     rho += 1  # the request has a copy
        ...     report = request.wait()
        ...     float(store.read("rho").sum())
        12.0
        """
        what = told("write of", name, f"to '{self.path}'")
        try:
            asks, given = self._prepare_write(name, array, dist, **options)
            core = self._store.write_later(asks, given, bool(staged))
        except Exception as error:  # noqa: BLE001 (the request raises it, on all ranks)
            return failed(self._store, self._comm, what, error)
        return Request(core, self._comm, lambda report: report)

    def _prepare_write(
        self,
        name: Any,
        array: Any,
        dist: Any,
        *,
        section: SectionLike | None = None,
        chunks: Chunks | None = None,
        shards: Shards = "auto",
        dtype: DTypeLike | None = None,
        fill_value: Any = None,
        dimension_names: Sequence[str | None] | None = None,
        attributes: Mapping[str, Any] | None = None,
        checksum: bool = True,
        zstd: int | None = None,
        codecs: Sequence[Any] | None = None,
        overwrite: bool = False,
        halo: int = 0,
        strategy: str | None = None,
        casting: Casting = "same_kind",
    ) -> tuple[list[_core._Ask], _core._WriteKeywords]:
        several = isinstance(name, Mapping)
        arrays: dict[str, Any] = dict(name) if several else {name: array}
        if several:
            dist = array if dist is None else dist
        infos = {} if section is None else self._look_at([*map(str, arrays)], "write", fresh=True)
        asks = [(each, describe_all(local, dist, halo), held(dist)) for each, local in arrays.items()]
        cut, typical = chunking_of_asks(chunks, asks, dtype)
        given: _core._WriteKeywords = {
            "sections": None if section is None else [sectioned(section, infos[str(each)].shape) for each in arrays],
            "chunks": cut,
            "typical": typical,
            "shards": shards_of(shards),
            "unsharded": shards is None or shards is False,
            "dtype": None if dtype is None else type_code(dtype),
            "zstd": zstd,
            "codecs": codecs_of(codecs),
            "fill_value": fill_json(fill_value),
            "dimension_names": None if dimension_names is None else list(dimension_names),
            "attributes": None if attributes is None else json_of(attributes),
            "overwrite": bool(overwrite),
            "casting": str(casting),
            "strategy": strategy,
        }
        if not checksum:
            given["checksum"] = False
        return asks, given

    def append(
        self,
        name: str,
        array: Any,
        dist: Holding | None = None,
        *,
        axis: int = 0,
        halo: int = 0,
        casting: Casting = "same_kind",
    ) -> Report:
        """Make an array longer along one dimension, by what is written. Collective.

        Readers see the new shape once all is written.

        Parameters
        ----------
        name : str
            The array.
        array : array
            This rank's part of what is added.
        dist : Distribution or Pieces, optional
            Who holds what of that.
        axis : int
            The dimension.
        halo : int
            Halo cells on every side of the local arrays, which are left out.
        casting : {"same_kind", "unsafe"}
            Which changes to the stored type are allowed; see `write`.
        """
        what = f"append to '{name}' in '{self.path}'"
        with attending(self._comm, what):
            raws = describe_all(array, dist, halo)
            ndim = len(local_extents(raws)) if dist is None else holding(dist).ndim
            along = axis + ndim if axis < 0 else axis
            added = (name, raws, held(dist))
        return run(lambda: self._store.append([added], along, {"casting": str(casting)}), self._comm, what)

    @overload
    def read(
        self, name: str, dist: Distribution | None = None, *, out: NDArray[Any] | None = None, **options: Any
    ) -> NDArray[Any]: ...
    @overload
    def read(self, name: str, dist: Boxes, *, out: Any = None, **options: Any) -> list[NDArray[Any]]: ...
    @overload
    def read(self, name: str, dist: Runs, *, out: NDArray[Any] | None = None, **options: Any) -> NDArray[Any]: ...
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
        """Read this rank's part of one array, or of several in one call. Collective.

        Parameters
        ----------
        name : str or sequence of str
            One array, or several that are distributed alike.
        dist : Distribution or Pieces, optional
            Who gets what; need not be the one it was written with. Without it every rank gets everything.
        section : optional
            Only this part of the array; `dist` spreads the shape of the section.
        out : array, or mapping of names to arrays, optional
            Read into this, in any memory order and with conversion to its type.
        dtype : optional
            Type of fresh arrays; that of the stored elements by default.
        casting : {"same_kind", "unsafe"}
            Which changes from the stored type to that of `out` or `dtype` are allowed; see `write`.
        order : {"C", "F"}
            Memory order of fresh arrays.
        halo : int
            Halo cells on every side of the local arrays, which are left alone.
        strategy : str, optional
            Force a strategy.

        Returns
        -------
        ndarray, or dict of ndarray
            `out` where it was given.
        """
        what = told("read of", name, f"from '{self.path}'")

        def read() -> Any:
            with calling(self._comm, what):
                targets, given = self._prepare_read(name, dist, out=out, blocks=True, **options)
            run(lambda: self._store.read(_names(name), given), self._comm, what)
            return targets[name] if isinstance(name, str) else targets

        return _until_up_to_date(read)

    @overload
    def iread(
        self, name: str, dist: Distribution | None = None, *, out: NDArray[Any] | None = None, **options: Any
    ) -> Request[NDArray[Any]]: ...
    @overload
    def iread(self, name: str, dist: Boxes, *, out: Any = None, **options: Any) -> Request[list[NDArray[Any]]]: ...
    @overload
    def iread(
        self, name: str, dist: Runs, *, out: NDArray[Any] | None = None, **options: Any
    ) -> Request[NDArray[Any]]: ...
    @overload
    def iread(
        self,
        name: Sequence[str],
        dist: Holding | None = None,
        *,
        out: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Request[dict[str, Any]]: ...
    def iread(self, name: Any, dist: Holding | None = None, *, out: Any = None, **options: Any) -> Request[Any]:
        """Read as `read` does, but return at once. Collective.

        `out`, where it is given, must not be used before the request is over. It reads what requests before it have
        written.

        Returns
        -------
        Request
            Its `wait` returns what `read` returns, or raises the error, the same on all ranks.

        Examples
        --------
        >>> import numpy as np, hyperslab as hs, tempfile
        >>> with hs.open(tempfile.mkdtemp() + "/run.zarr", "w") as store:
        ...     report = store.write("rho", np.arange(4.0))
        ...     request = store.iread("rho", section=slice(1, 3))
        ...     request.wait()
        array([1., 2.])
        """
        what = told("read of", name, f"from '{self.path}'")
        try:
            targets, given = self._prepare_read(name, dist, out=out, **options)
            core = self._store.read_later(_names(name), given)
        except Exception as error:  # noqa: BLE001 (the request raises it, on all ranks)
            return failed(self._store, self._comm, what, error)
        result = targets[name] if isinstance(name, str) else targets
        return Request(core, self._comm, lambda _report: result)

    def _prepare_read(
        self,
        name: Any,
        dist: Holding | None,
        *,
        out: Any,
        blocks: bool = False,
        section: SectionLike | None = None,
        dtype: DTypeLike | None = None,
        order: Literal["C", "F"] = "C",
        halo: int = 0,
        strategy: str | None = None,
        casting: Casting = "same_kind",
    ) -> tuple[dict[str, Any], _core._ReadKeywords]:
        names = _names(name)
        targets: dict[str, Any] = {} if out is None else ({name: out} if isinstance(name, str) else dict(out))
        # Of an array that has changed since, neither a section nor `out` may be checked against what it was.
        fresh = section is not None or (out is not None and dist is None)
        # What does not block cannot ask the others; what requests under way make is known here.
        infos = self._look_at(names, "read", fresh=fresh) if blocks else {each: self[each] for each in names}
        parts = {} if section is None else {each: sectioned(section, info.shape) for each, info in infos.items()}
        spreads = {each: _spread(info, parts.get(each), dist, self._comm.size) for each, info in infos.items()}
        rank = self._comm.rank
        for each in names:
            if each not in targets:
                kind = _native(infos[each].dtype) if dtype is None else type_of(type_code(dtype))
                targets[each] = spreads[each].empty(rank, kind, order=order, halo=halo)
        raws = [raw for each in names for raw in describe_all(targets[each], spreads[each], halo, writable=True)]
        given: _core._ReadKeywords = {
            "dist": held(dist),
            "sections": [parts[each] for each in names] if parts else None,
            "out": raws,
            "casting": str(casting),
            "strategy": strategy,
        }
        return {each: targets[each] for each in names}, given

    def read_local(
        self,
        name: str,
        *,
        section: SectionLike | None = None,
        out: NDArray[Any] | None = None,
        dtype: DTypeLike | None = None,
        casting: Casting = "same_kind",
    ) -> NDArray[Any]:
        """Read all of an array, or of a section of it, by this rank alone. Local.

        No other rank need do the same, and it waits for no other rank and no request. An array that a request of this
        program is writing is refused; what other programs or ranks are writing may be read half.

        Parameters
        ----------
        name : str
            The array.
        section : optional
            Only this part of the array.
        out : array, optional
            Read into this, in any memory order and with conversion to its type.
        dtype : optional
            Type of a fresh array; that of the stored elements by default.
        casting : {"same_kind", "unsafe"}
            Which changes from the stored type to that of `out` or `dtype` are allowed; see `write`.

        Returns
        -------
        ndarray
            `out` where it was given.

        Raises
        ------
        Error
            This rank's own; the others do not hear of it.

        Examples
        --------
        >>> import numpy as np, hyperslab as hs, tempfile
        >>> with hs.open(tempfile.mkdtemp() + "/run.zarr", "w") as store:
        ...     report = store.write("rho", np.arange(6.0))
        ...     store.read_local("rho", section=slice(2, 4))
        array([2., 3.])
        """
        info = info_of(self._store.look_local(name))
        part = section_of(section, info.shape)
        spread = _spread(info, part, None, 1)
        if out is None:
            out = spread.empty(0, _native(info.dtype) if dtype is None else type_of(type_code(dtype)))
        raws = describe_all(out, spread, 0, writable=True)
        sections = None if part is None else [part]
        self._store.read_local(name, {"sections": sections, "out": raws, "casting": str(casting)})
        return out

    def flush(self) -> None:
        """Wait for all requests. Collective.

        Raises
        ------
        Error
            What went wrong in a request of this store that nobody waited for, the same on all ranks.
        """
        self._store.flush()

    def consolidate(self) -> None:
        """Write consolidated metadata of all nodes below this group, where zarr and xarray look first. Collective.

        Later changes through this package remove them, so that nobody sees an old state.
        """
        with calling(self._comm, f"consolidate '{self.path}'"):
            self._store.consolidate()

    def step(
        self,
        name: str,
        *,
        attributes: Mapping[str, Any] | None = None,
        before_publish: Callable[[], None] | None = None,
    ) -> Step:
        """Start a step: a group that becomes visible whole, at the end of its context, or not at all. Collective.

        Parameters
        ----------
        name : str
            Name of the step; it must be new.
        attributes : mapping, optional
            Attributes of the step's group.
        before_publish : callable, optional
            Called on every rank when all is written and durable, before the step becomes visible. If it raises, the
            step is given up on all ranks. Given on all ranks or on none.

        Examples
        --------
        >>> import numpy as np, hyperslab as hs, tempfile
        >>> with hs.open(tempfile.mkdtemp() + "/run.zarr", "w") as store:
        ...     with store.step("0001", attributes={"time": 0.5}) as step:
        ...         report = step.write({"rho": np.ones(4), "u": np.zeros(4)})
        ...     store.groups()
        ['0001']
        """
        what = f"step '{name}' of '{self.path}'"
        with calling(self._comm, what):
            core = self._store.step(name, json_of(attributes), before_publish is not None)
            return Step(core, self._comm, before_publish)

    def close(self) -> None:
        """End the use of the store on all ranks, when all requests are over. Collective."""
        self._store.close(None)

    def __enter__(self) -> Self:
        """Use it as a context."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it; after an exception, without waiting for ranks that may not come."""
        if kind is None:
            self.close()

    def __repr__(self) -> str:
        """Kind and path."""
        return f"<{type(self).__name__} '{self.path}'>"


class Step(Store):
    """A step that is being written; made by `Store.step`."""

    def __init__(self, core: _core.Target, comm: _core.Comm, before_publish: Callable[[], None] | None) -> None:
        super().__init__(core, comm)
        self._before_publish = before_publish

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Replace the attributes of the step. Local: all ranks must do the same, which publishing compares."""
        self._store.set_attributes(json_of(attributes))

    def close(self) -> None:
        """Make the step durable and visible, when all its requests are over. Collective."""
        if self._before_publish is not None:
            try:
                self._store.sync()
                self._before_publish()
            except BaseException as error:
                self._give_up(error)
                raise
        self._store.close(None)

    def _give_up(self, error: BaseException) -> None:
        if getattr(error, "_collective", False):
            self._store.discard()
            return
        try:
            self._store.close(f"{type(error).__name__}: {error}")
        except Exception:  # noqa: BLE001 (the program's own error is the one to show)
            return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Publish the step, or give it up on all ranks after an exception on this one, also Ctrl-C or an exit."""
        if error is None:
            self.close()
        else:
            self._give_up(error)


def _until_up_to_date(call: Callable[[], T]) -> T:
    """Carry out a read that may rely on what arrays were before; when they are others by now, once more."""
    for _ in range(LOOKS_MAX - 1):
        with suppress(OutdatedError):
            return call()
    return call()


def _native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The same type in the byte order of this machine."""
    return dtype if dtype.isnative else dtype.newbyteorder("=")


def _names(name: str | Sequence[str]) -> list[str]:
    """The arrays that are named, in their order."""
    return [name] if isinstance(name, str) else list(name)


def _spread(info: ArrayInfo, part: list[tuple[int, int, int, int]] | None, dist: Holding | None, size: int) -> Holding:
    if dist is not None:
        return holding(dist)
    shape = info.shape if part is None else [count * block for _, _, count, block in part]
    return Distribution.replicated(shape, size)
