"""Moving elements between the memories of ranks and what is open: writing, appending, reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from hyperslab import _core, _options
from hyperslab._calls import (
    Casting,
    Changes,
    Ownership,
    SectionLike,
    asking,
    calling,
    fill_json,
    held,
    plain,
    run,
    told,
    type_code,
    until_up_to_date,
)
from hyperslab._indexing import has_list, read_listed
from hyperslab._local import describe_all, describe_each
from hyperslab._parts import (
    asks_of,
    axis_of,
    dists_of,
    named,
    parts_of,
    read_plainly,
    runs_in,
    section_in,
    sections_in,
    spread_of,
    write_plainly,
)
from hyperslab._texts import SLOTS, all_in_slots, filled, places_of
from hyperslab._typed import raw_of
from hyperslab._types import is_texts, type_to_read
from hyperslab._values import names_of
from hyperslab.array import ArrayInfo, info_of
from hyperslab.chunking import chunking_of_asks, codecs_of, maxshape_of, shards_of
from hyperslab.distribution import Distribution
from hyperslab.errors import InvalidError, OutdatedError
from hyperslab.pieces import Boxes, Runs
from hyperslab.requests import Request, failed

if TYPE_CHECKING:
    from typing import Unpack

    from numpy.typing import DTypeLike, NDArray

Report = _core.Report


__all__ = ["Moving", "Report"]


class Moving(_core.Context):
    """What is open and holds arrays, as far as their elements move; a part of `Group`."""

    _looks_alone = _knows_types = False  # whether each rank looks at arrays by itself; knows types without storage

    def __init__(self, core: _core.Target, comm: _core.Comm, changes: Changes | None = None) -> None:
        self._core = core
        self._comm = comm
        self._changes = changes or Changes()

    @property
    def path(self) -> str:
        """Absolute path, or name in memory."""
        return self._core.path()

    def _info(self, name: str) -> ArrayInfo:
        """What an array is, as this rank finds it in storage. Local."""
        return info_of(self._core.info(name))

    def _look_at(self, names: Sequence[str], doing: str, *, fresh: bool) -> dict[str, ArrayInfo]:
        """What arrays are, as rank 0 finds them. Collective: no rank waits for storage by itself, without a limit.

        Unless it shall be fresh, what all ranks saw before may do: a read finds out whether that still holds.
        """
        return dict(zip(names, map(info_of, self._core.describe(list(names), doing, fresh)), strict=True))

    @_options.keywords(_options.WriteOptions)
    def write(
        self,
        name: str | Mapping[str, Any],
        array: Any = None,
        dist: Ownership | Mapping[str, Ownership] | None = None,
        **options: Unpack[_options.WriteOptions],
    ) -> Report:
        """Write one array, or several in one call. Collective.

        ``write(name, array, dist)`` writes one array, ``write({name: array, ...}, dist)`` several. Without a section,
        the arrays are new, and become visible when all of the call is done (in a step, when the step is; in a new file,
        when that is closed).

        Parameters
        ----------
        name : str or mapping of names to arrays
            The array; or several, with this rank's parts. In a mapping, ``(names of dimensions, array)`` or ``(names of
            dimensions, array, attributes)`` may stand for an array, as xarray has it.
        array : array
            This rank's part, in any memory order; with `Boxes`, a list of arrays.
        dist : Distribution or Pieces, or mapping of names to such, optional
            Who holds what. May be left out where there is one rank.
        section : optional
            Write this part of existing arrays instead: a slice, an integer or (start, stride, count, block) for each
            dimension; ``...`` stands for those that are left out. `dist` then spreads the shape of the section.
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
            Type of the stored elements; that of the memory by default. ``"bfloat16"`` is known without ml_dtypes, too.
            ``str`` makes texts of variable length, as arrays of ``str`` objects and of StringDType are by default.
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
            Whether chunks carry a CRC-32C, or in HDF5 the Fletcher checksum; by default all of Zarr do, and compressed
            ones of HDF5.
        zstd : int, optional
            Compress chunks with Zstandard at this level.
        compression, compression_opts : {"gzip", "zstd"} or int, and int, optional
            Compress chunks, as h5py has it: by gzip (deflate in HDF5) or Zstandard, at this level; 4 or 3 by default.
        shuffle, fletcher32 : bool
            Whether bytes of equal rank lie together before they are compressed; whether chunks carry HDF5's checksum.
        maxshape : sequence of int or None, optional
            How far each dimension may grow, ``None`` without limit; in HDF5 files only.
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
        if plain(self._comm, options):
            report = write_plainly(self._comm, self._core, (name, array, dist, options.get("section")))
            if report is not None:
                self._changes.count += 1
                return report
        with calling(self._comm, what := told("write of", name, f"to '{self.path}'")):
            _options.check("write", options, _options.WriteOptions)
            asks, given = self._prepare_write(name, array, dist, options)
        return self._done(run(lambda: self._core.write(asks, given), self._comm, what))

    @_options.keywords(_options.WriteOptions)
    def iwrite(
        self,
        name: str | Mapping[str, Any],
        array: Any = None,
        dist: Ownership | Mapping[str, Ownership] | None = None,
        *,
        staged: bool = False,
        **options: Unpack[_options.WriteOptions],
    ) -> Request[Report]:
        """Write as `write` does, but return at once. Collective.

        Parameters
        ----------
        name, array, dist
            As for `write`.
        staged : bool
            Whether the arrays are copied, so that they may be changed at once, and not only when the request is over.
            Copies share half of ``buffer_bytes``; a larger one is made alone, and waits for requests before it.
        **options : optional
            As for `write`.

        Returns
        -------
        Request
            Its `wait` returns the report, or raises the error, the same on all ranks. Small writes that wait one
            behind another are one call, in whose time each has its own report.

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
        what, begun = told("write of", name, f"to '{self.path}'"), self._comm.begun
        try:
            _options.check("iwrite", options, _options.WriteOptions)
            asks, given = self._prepare_write(name, array, dist, options)
            core = self._core.write_later(asks, given, bool(staged))
        except BaseException as error:  # noqa: BLE001 (the request raises it, on all ranks)
            return failed(self, what, begun, error)
        self._changes.count += 1
        return Request(core, self._done)

    def _done(self, report: Report) -> Report:
        """Note that a request is over, which may have changed what is open."""
        self._changes.count += 1
        return report

    def _prepare_write(
        self, name: Any, array: Any, dist: Any, options: _options.WriteOptions
    ) -> tuple[list[_core._Ask], _core._WriteKeywords]:
        parts, dist = parts_of(name, array, dist)
        section, dtype = options.get("section"), options.get("dtype")
        if section is not None and has_list(section):
            message = "lists of indices select what is read; what is written needs a section, or an ElementMap"
            raise InvalidError(message)
        infos = {} if section is None else self._look_at([*map(str, parts)], "write", fresh=True)
        arrays = all_in_slots({each: local for each, (local, _, _) in parts.items()}, dtype, infos)
        asks = asks_of(arrays, dist, options.get("halo", 0))
        given: _core._WriteKeywords = {"casting": str(options.get("casting", "same_kind"))}
        if options.keys() - {"section", "casting", "halo"}:
            self._say_new(given, options, asks)
        if section is not None:
            given["sections"] = [*sections_in(section, (infos[str(each)] for each in arrays))]
        if dtype is not None:
            given["dtype"] = SLOTS if is_texts(dtype) else type_code(dtype)
        if any(names is not None or attrs is not None for _, names, attrs in parts.values()):
            given["each"] = [(names, None if attrs is None else raw_of(attrs)) for _, names, attrs in parts.values()]
        return asks, given

    def _say_new(self, given: _core._WriteKeywords, options: _options.WriteOptions, asks: Sequence[_core._Ask]) -> None:
        """Say what new arrays shall be, as far as that is given."""
        shards, names, attributes = options.get("shards"), options.get("dimension_names"), options.get("attributes")
        cut, typical = chunking_of_asks(options.get("chunks"), asks, options.get("dtype"))
        given |= {
            "chunks": cut,
            "typical": typical,
            "shards": shards_of(options.get("shards", "auto")),
            "unsharded": "shards" in options and (shards is None or shards is False),
            "zstd": options.get("zstd"),
            "codecs": codecs_of(options),
            "maxshape": maxshape_of(options.get("maxshape")),
            "fill_value": fill_json(options.get("fill_value")),
            "dimension_names": None if names is None else list(names),
            "attributes": None if attributes is None else raw_of(attributes),
            "overwrite": bool(options.get("overwrite")),
            "strategy": options.get("strategy"),
        }
        if not options.get("checksum", True):
            given["checksum"] = False

    @_options.keywords(_options.AppendOptions)
    def append(
        self,
        name: str | Mapping[str, Any],
        array: Any = None,
        dist: Ownership | Mapping[str, Ownership] | None = None,
        **options: Unpack[_options.AppendOptions],
    ) -> Report:
        """Make an array longer along one dimension, by what is written; or several, all or none. Collective.

        Readers see the new shape once all is written. In a NetCDF file, the new rows of an array lie behind those that
        this opening has seen or written of it, so that arrays that are appended one after another have their rows in
        the same records; until then these hold fill values. Several arrays of one call, or of a `batch`, are written
        together, which is much faster.

        Parameters
        ----------
        name : str or mapping of names to arrays
            The array; or several, with this rank's parts of what is added.
        array : array
            This rank's part of what is added.
        dist : Distribution or Pieces, or mapping of names to such, optional
            Who holds what of that.
        axis : int
            The dimension; in a NetCDF file it must be the first.
        halo : int
            Halo cells on every side of the local arrays, which are left out.
        casting : {"same_kind", "unsafe"}
            Which changes to the stored type are allowed; see `write`.
        strategy : str, optional
            Force a strategy.

        Examples
        --------
        >>> import numpy as np, hyperslab as hs, tempfile
        >>> with hs.open(tempfile.mkdtemp() + "/run.zarr", "w") as store:
        ...     report = store.write({"time": np.zeros(1), "rho": np.zeros((1, 3))}, chunks=None)
        ...     for time in (0.5, 1.0):
        ...         report = store.append({"time": np.array([time]), "rho": np.full((1, 3), time)})
        ...     store["time"][:], store["rho"].shape
        (array([0. , 0.5, 1. ]), (3, 3))
        """
        what = told("append to", name, f"in '{self.path}'")
        with calling(self._comm, what):
            asks, axis, given = self._prepare_append(name, array, dist, options)
        report = run(lambda: self._core.append(asks, axis, given), self._comm, what)
        self._changes.count += 1
        return report

    def _prepare_append(
        self, name: Any, array: Any, dist: Any, options: _options.AppendOptions
    ) -> tuple[list[_core._Ask], int, _core._WriteKeywords]:
        _options.check("append", options, _options.AppendOptions)
        arrays, dist = named(name, array, dist)
        asks = asks_of(all_in_slots(arrays, None, {}), dist, options.get("halo", 0))
        casting, strategy = str(options.get("casting", "same_kind")), options.get("strategy")
        return asks, axis_of(options.get("axis", 0), asks), {"casting": casting, "strategy": strategy}

    @overload
    def read(
        self,
        name: str,
        dist: Distribution | Runs | None = None,
        *,
        out: NDArray[Any] | None = None,
        **options: Unpack[_options.ReadOptions],
    ) -> NDArray[Any]: ...
    @overload
    def read(
        self, name: str, dist: Boxes, *, out: Any = None, **options: Unpack[_options.ReadOptions]
    ) -> list[NDArray[Any]]: ...
    @overload
    def read(
        self,
        name: list[str] | tuple[str, ...],
        dist: Ownership | Mapping[str, Ownership] | None = None,
        *,
        out: Mapping[str, Any] | None = None,
        **options: Unpack[_options.ReadOptions],
    ) -> dict[str, Any]: ...
    @_options.keywords(_options.ReadOptions)
    def read(self, name: Any, dist: Any = None, *, out: Any = None, **options: Unpack[_options.ReadOptions]) -> Any:
        """Read this rank's part of one array, or of several in one call. Collective.

        Parameters
        ----------
        name : str or sequence of str
            One array, or several.
        dist : Distribution or Pieces, or mapping of names to such, optional
            Who gets what; it may differ from the one it was written with. Without it every rank gets everything.
        section : optional
            Only this part of the array, as for `write`; of one array, also a list of indices for a dimension, in any
            order. `dist` spreads the shape of the section.
        out : array, or mapping of names to arrays, optional
            Read into this, in any memory order and with conversion to its type.
        dtype : optional
            Type of fresh arrays; that of the stored elements, in the byte order of this machine, by default.
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
        ndarray, list of ndarray with `Boxes`, or dict of such for several names
            `out` where it was given.
        """
        try:
            if plain(self._comm, options):
                here = self._info if self._knows_types else None, self._comm
                found = read_plainly(self._core, (name, dist, out, options.get("section")), *here)
                if found is not None:
                    return found
        except OutdatedError:  # it is read once more, the long way
            pass
        return until_up_to_date(lambda: self._read(name, dist, out, options))

    def _read(self, name: Any, dist: Any, out: Any, options: _options.ReadOptions) -> Any:
        with calling(self._comm, what := told("read of", name, f"from '{self.path}'")):
            _options.check("read", options, _options.ReadOptions)
            if has_list(options.get("section")):
                return read_listed(self, name, dist, out, options)
            targets, given, places = self._prepare_read(name, dist, out, options, blocks=True)
        run(lambda: self._core.read(list(targets), given), self._comm, what)
        return filled(self._core, (targets, places), name, together=True)

    @overload
    def iread(
        self,
        name: str,
        dist: Distribution | Runs | None = None,
        *,
        out: NDArray[Any] | None = None,
        **options: Unpack[_options.ReadOptions],
    ) -> Request[NDArray[Any]]: ...
    @overload
    def iread(
        self, name: str, dist: Boxes, *, out: Any = None, **options: Unpack[_options.ReadOptions]
    ) -> Request[list[NDArray[Any]]]: ...
    @overload
    def iread(
        self,
        name: list[str] | tuple[str, ...],
        dist: Ownership | Mapping[str, Ownership] | None = None,
        *,
        out: Mapping[str, Any] | None = None,
        **options: Unpack[_options.ReadOptions],
    ) -> Request[dict[str, Any]]: ...
    @_options.keywords(_options.ReadOptions)
    def iread(
        self, name: Any, dist: Any = None, *, out: Any = None, **options: Unpack[_options.ReadOptions]
    ) -> Request[Any]:
        """Read as `read` does, but return at once. Collective.

        `out`, where it is given, must not be used before the request is over. It reads what requests before it have
        written. Sections have no lists of indices here.

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
        what, begun = told("read of", name, f"from '{self.path}'"), self._comm.begun
        try:
            _options.check("iread", options, _options.ReadOptions)
            if has_list(options.get("section")):
                message = "a section with a list of indices is read by read(), which waits"
                raise InvalidError(message)
            targets, given, places = self._prepare_read(name, dist, out, options)
            core = self._core.read_later(list(targets), given)
        except BaseException as error:  # noqa: BLE001 (the request raises it, on all ranks)
            return failed(self, what, begun, error)
        return Request(core, lambda _report: filled(self._core, (targets, places), name))

    def _prepare_read(
        self, name: Any, dist: Any, out: Any, options: _options.ReadOptions, *, blocks: bool = False
    ) -> tuple[dict[str, Any], _core._ReadKeywords, dict[str, Any]]:
        names = names_of(name)
        targets: dict[str, Any] = {} if out is None else ({name: out} if isinstance(name, str) else dict(out))
        section, dtype, halo = options.get("section"), options.get("dtype"), options.get("halo", 0)
        # Of an array that has changed since, neither a section nor `out` may be checked against what it was.
        fresh = section is not None or (out is not None and dist is None)
        # What does not block cannot ask the others; what requests under way make is known here.
        known = targets if self._looks_alone and section is None and dist is not None else {}
        asked = [each for each in names if each not in known]
        infos = self._look_at(asked, "read", fresh=fresh) if blocks else {each: self._info(each) for each in asked}
        parts = {} if section is None else dict(zip(infos, sections_in(section, infos.values()), strict=True))
        each_dist = dists_of(dist, names)
        for each in names:
            if each not in targets:
                spread = spread_of(infos[each], parts.get(each), each_dist[each], self._comm.size)
                kind = type_to_read(infos[each].dtype, dtype)
                targets[each] = spread.empty(self._comm.rank, kind, order=options.get("order", "C"), halo=halo)
        given: _core._ReadKeywords = {
            "sections": [parts[each] for each in names] if parts else None,
            "casting": str(options.get("casting", "same_kind")),
            "strategy": options.get("strategy"),
        }
        moved = targets | (places := places_of(targets))
        if isinstance(dist, Mapping):
            described = [describe_all(moved[each], each_dist[each], halo, writable=True) for each in names]
            given["dists"] = [held(each_dist[each]) for each in names]
        else:
            given["dist"] = held(dist)  # hundreds may be held so, and are described together
            described = describe_each([moved[each] for each in names], dist, halo, writable=True)
        given["out"] = [raw for parts_of_one in described for raw in parts_of_one]
        return {each: targets[each] for each in names}, given, places

    def read_local(
        self,
        name: str,
        dist: Runs | None = None,
        *,
        section: SectionLike | None = None,
        out: NDArray[Any] | None = None,
        dtype: DTypeLike | None = None,
        casting: Casting = "same_kind",
    ) -> NDArray[Any]:
        """Read all of an array, or of a section of it, or runs of its elements, by this rank alone. Local.

        No other rank need do the same, and it waits for no other rank and no request. An array that a request of this
        program is writing is refused, and so is a new file until it was closed; what other programs or ranks are
        writing may be read half.

        Parameters
        ----------
        name : str
            The array.
        dist : Runs or ElementMap, optional
            Only these elements; instead of a section.
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
        info = info_of(self._core.look_local(name))
        with asking(f"read of {name!r} from '{self.path}'"):
            part = None if section is None else section_in(section, info)
            spread = runs_in(dist, part) if dist is not None else spread_of(info, part, None, 1)
        if out is None:
            out = spread.empty(0, type_to_read(info.dtype, dtype))
        raws = describe_all((places := places_of({name: out})).get(name, out), spread, 0, writable=True)
        how: _core._ReadKeywords = {"out": raws, "casting": str(casting), "dist": held(dist)}
        how["sections"] = None if part is None else [part]
        self._core.read_local(name, how)
        found: NDArray[Any] = filled(self._core, ({name: out}, places), name)
        return found
