"""Opening what holds arrays, of whatever format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, Literal, NamedTuple

from hyperslab import _core
from hyperslab._anew import origin_of
from hyperslab._calls import calling, give_up
from hyperslab._launch import LEFT_OUT, joined
from hyperslab._log import noted
from hyperslab._paths import local_path, refuse_other_formats
from hyperslab._printing import warn
from hyperslab._typed import raw_of
from hyperslab._values import unfit
from hyperslab.errors import InvalidError, UnsupportedError
from hyperslab.group import Group
from hyperslab.hdf5 import ENDS as HDF5_ENDS
from hyperslab.hdf5 import ENDS_OF_NETCDF4, Hdf5File
from hyperslab.memory import Place, place_of, place_text
from hyperslab.netcdf import ENDS, NetcdfFile
from hyperslab.striped import Striped

__all__ = ["open"]


@dataclass(frozen=True)
class New:
    """What is said of something new."""

    #: The format, perhaps a version of it.
    format: str | None
    #: The dimension that may grow, or several.
    unlimited: str | Sequence[str] | None
    #: Attributes.
    attributes: Mapping[str, Any] | None


class Opening(NamedTuple):
    """An opening of a place."""

    #: What is given up if the caller never gets it; open once it was opened.
    core: _core.Target
    comm: _core.Comm
    place: Any
    mode: str
    given: _core._OpenKeywords
    new: New


def _open_zarr(this: Opening) -> Group:
    new = this.new
    for name, value in (("unlimited", new.unlimited), ("attributes", new.attributes)):
        if value is not None:
            message = f"{name}= cannot be given for a Zarr store\n  hint: leave it out, or give a path that ends in .nc"
            raise InvalidError(message)
    this.core.open_group(this.comm, this.place, this.mode, this.given)
    return Group(this.core, this.comm)


def _open_netcdf(this: Opening) -> Group:
    new = this.new
    if new.unlimited is not None and not isinstance(new.unlimited, str):
        raise unfit("unlimited", "the name of a dimension", new.unlimited)
    version = None if new.format in (None, "netcdf3") else new.format
    said = (version, new.unlimited, raw_of(new.attributes))
    this.core.open_netcdf(this.comm, this.place, this.mode, this.given, said)
    return NetcdfFile(this.core, this.comm)


def _open_hdf5(this: Opening) -> Group:
    return _hdf5(this, "hdf5")


def _open_netcdf4(this: Opening) -> Group:
    return _hdf5(this, "netcdf4")


def _open_netcdf4_classic(this: Opening) -> Group:
    return _hdf5(this, "netcdf4_classic")


def _hdf5(this: Opening, model: str) -> Group:
    new = this.new
    names: Any = [new.unlimited] if isinstance(new.unlimited, str) else new.unlimited or ()
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise unfit("unlimited", "the name of a dimension, or several", new.unlimited)
    unlimited = [*names]
    said = (raw_of(new.attributes), model, unlimited)
    this.core.open_hdf5(this.comm, this.place, this.mode, this.given, said)
    return Hdf5File(this.core, this.comm)


#: How something of a format is opened, and how names end that are of it.
_FORMATS: dict[str, tuple[Callable[..., Group], tuple[str, ...]]] = {
    "zarr": (_open_zarr, ()),
    "netcdf3": (_open_netcdf, ENDS),
    "hdf5": (_open_hdf5, HDF5_ENDS),
    "netcdf4": (_open_netcdf4, ENDS_OF_NETCDF4),
    "netcdf4_classic": (_open_netcdf4_classic, ()),
    "NETCDF4": (_open_netcdf4, ()),
    "NETCDF4_CLASSIC": (_open_netcdf4_classic, ()),
    "NETCDF3_CLASSIC": (_open_netcdf, ()),
    "NETCDF3_64BIT_OFFSET": (_open_netcdf, ()),
    "NETCDF3_64BIT": (_open_netcdf, ()),
    "NETCDF3_64BIT_DATA": (_open_netcdf, ()),
}


def _format_of(this: Opening, path: Place, name: str | None) -> Callable[..., Group]:
    """How a path is opened: by the format that is named, its end, or what is there; all else is a Zarr store."""
    if name is not None:
        if name not in _FORMATS:
            message = f"there is no format {name!r}\n  hint: choose among {', '.join(map(repr, _FORMATS))}"
            raise InvalidError(message)
        return _FORMATS[name][0]
    text = (path.name if isinstance(path, Striped) else place_text(path)).lower()
    opens = next((opened for opened, ends in _FORMATS.values() if ends and text.endswith(ends)), None)
    if opens is not None:
        return opens
    if not isinstance(path, (str, PathLike)):
        return _open_zarr
    refuse_other_formats(local_path(path))
    if this.mode in ("w", "x") or text.rstrip("/").endswith(".zarr"):
        return _open_zarr
    # A file that is called otherwise is known by its first bytes, as rank 0 sees them.
    found = _core.format_there(this.comm, this.place, this.mode, this.given)
    if found not in _FORMATS:
        message = (
            f"'{text}' is a file of format {found!r}\n  hint: open npy files with load_npy, and raw files with open_raw"
        )
        raise UnsupportedError(message)
    return _FORMATS[found][0]


def _warn_of_consolidated(store: Group, path: str) -> None:
    """Say which groups above have metadata that will not show what changes."""
    above = store._consolidated_above()
    if above:
        names = ", ".join(f"'{name}'" for name in above)
        warn(
            f"'{path}' lies in groups with consolidated metadata, which will not show its changes: {names}",
            stacklevel=4,
        )


def open(  # noqa: A001 (as zarr has it)
    path: Place,
    mode: Literal["r", "r+", "a", "w", "x"] = "r",
    *,
    format: str | None = None,  # noqa: A002 (as netCDF4 and xarray have it)
    unlimited: str | Sequence[str] | None = None,
    attributes: Mapping[str, Any] | None = None,
    comm: Any = LEFT_OUT,
    durable: bool = True,
    arrival_seconds: float = 1800.0,
    progress_seconds: float = 60.0,
    storage_seconds: float = 600.0,
    buffer_bytes: int | None = None,
    subchunk_bytes: int | None = None,
    servers: int | None = None,
    strategy: str | None = None,
    exchange: str | None = None,
    locking: bool | Literal["best-effort"] | None = None,
    trace: str | PathLike[str] | None = None,
) -> Group:
    """Open a Zarr store, or a NetCDF or HDF5 file, on all ranks of a communicator. Collective.

    Parameters
    ----------
    path : path or MemoryStore
        A directory, or the name of a file that ends in ``.nc`` or ``.h5``; also ``~/run.zarr`` and
        ``file:///data/run.zarr``. All ranks must see the same file system. Or a `MemoryStore`, or a name in one; a file
        may be `Striped`. Object stores behind a URL (``s3://``) are not there yet.
    mode : {"r", "r+", "a", "w", "x"}
        ``r`` reads, ``r+`` changes what exists, ``a`` changes it or makes it where it is missing, ``w`` replaces it,
        ``x`` makes something new only. A new file becomes visible with its first step or `Group.flush`, or when it is
        closed.
    format : str, optional
        ``"zarr"``, ``"hdf5"``, ``"netcdf4"``, ``"netcdf4_classic"`` (netCDF-4 with the types and dimensions of netCDF-3
        only), or ``"netcdf3"`` for a NetCDF classic file of whatever version; by the name when not given, or by the
        first bytes of a file that exists and whose name says nothing. Of a new classic file the version can be said, as
        netCDF4-python and xarray call it: ``NETCDF3_CLASSIC`` (CDF-1), ``NETCDF3_64BIT_OFFSET`` (CDF-2),
        ``NETCDF3_64BIT_DATA`` (CDF-5). Otherwise it is the second, which all tools
        read, or the third where only that has the types or the room.
    unlimited : str or sequence of str, optional
        Of a new NetCDF or HDF5 file: the name of the dimension that may grow; in HDF5 and netCDF-4 there may be
        several. Zarr arrays may grow along all.
    attributes : mapping, optional
        Attributes of a new NetCDF or HDF5 file.
    comm : communicator or None, optional
        Any intracommunicator of mpi4py, or one of `threads` or `dedicate`; ``None`` for this rank alone. Without it,
        each rank opens by itself, and in a program of several ranks (of MPI, or by what its launcher says) may only
        read. The same holds for an ``MPI.COMM_WORLD`` of one rank where the launcher says that there are several.
    durable : bool
        Whether what a call or a step publishes is on disk first (fsync), so that it survives a loss of power.
    arrival_seconds : float
        How long a call waits for ranks that have not reached it [s].
    progress_seconds : float
        How long a call waits while no rank makes any progress [s].
    storage_seconds : float
        How long a call waits for storage that does not answer [s]. A rank that waits for storage tells the others,
        which then wait for it longer than `progress_seconds`.
    buffer_bytes : int, optional
        Most bytes of buffers on one rank. By default those ranks of a node that handle storage share a 128th of its
        memory (or of what its control group may have). One has at least 8 MiB and room for four chunks, and at most
        256 MiB. Calls that do
        not block have half of it, or of 256 MiB, for copies of arrays and half for other buffers.
    subchunk_bytes, servers : int, optional
        Force what is otherwise chosen: most bytes that a server moves in one round, and how many ranks serve.
    strategy : str, optional
        Force one: ``root-gather``, ``independent``, ``data-sieving``, ``two-phase``, ``server-directed`` or
        ``disk-directed``; docs/planning.md says what they are.
    exchange : {"all", "sharers"}, optional
        For strategy ``two-phase``: data cross between any ranks, or only between those that share extents of the file.
    locking : bool or "best-effort", optional
        Whether the lock of HDF5's library is honoured and taken, of an HDF5 or netCDF-4 file; with ``"best-effort"``
        where the file system has locks. By default as the variable ``HDF5_USE_FILE_LOCKING`` says, of rank 0.
    trace : path, optional
        A directory into which all further calls of this communicator are recorded; see `hyperslab.trace`.

    Returns
    -------
    Group
        A context manager, too; of a NetCDF file, a `NetcdfFile`, of an HDF5 file, an `Hdf5File`.

    Notes
    -----
    When the program of a rank ends, by an exception that nobody caught or otherwise, the others get a `PeerError` in
    the call that they are in or come to next. In two cases they wait for `arrival_seconds`, unless the program is
    started by ``python -m mpi4py``: before the first call on a communicator, when a rank ends without an exception, or
    when the communicator is not ``MPI.COMM_WORLD``. An exception in a thread of the program is no end of it.

    Examples
    --------
    >>> import numpy as np, hyperslab as hs, tempfile
    >>> path = tempfile.mkdtemp() + "/run.zarr"
    >>> with hs.open(path, "w") as store:
    ...     report = store.write("rho", np.arange(12.0).reshape(3, 4), dimension_names=("x", "y"))
    >>> with hs.open(path) as store:
    ...     store.read("rho", section=(slice(1, 3), slice(0, 4, 2)))
    array([[ 4.,  6.],
           [ 8., 10.]])
    """
    what = f"open '{place_text(path)}'"
    member = joined(comm, what, mode, arrival_seconds)
    core = _core.Target()
    try:
        with calling(member, what):
            if trace is not None:
                member.record(fspath(trace))
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
                "locking": _locking(locking),
            }
            if not isinstance(mode, str):
                raise unfit("mode", "'r', 'r+', 'a', 'w' or 'x'", mode)
            this = Opening(core, member, place_of(path), mode, given, New(format, unlimited, attributes))
            store = _format_of(this, path, format)(this)
        noted(member, "%s (mode %s) on %d ranks: %s", what, mode, member.size, member.description)
        _warn_of_left(store, member, place_text(path))
        if mode == "r":
            store._comes_from(origin_of(path, format, locking, storage_seconds), alone=member.size == 1)
        return store
    except BaseException as error:
        give_up(core, member, what, error)
        raise


def _locking(locking: Any) -> str | None:
    """The rule for HDF5's lock by its name."""
    if locking is None or isinstance(locking, str):
        return locking
    return "always" if locking else "never"


def _warn_of_left(store: Group, member: _core.Comm, path: str) -> None:
    """Say on rank 0 what earlier runs, or other users, left."""
    if store.removed and member.rank == 0:
        names = ", ".join(store.removed)
        warn(f"'{path}': removed what an earlier run left unfinished: {names}", stacklevel=3)
    if store.unfinished and member.rank == 0:
        names = ", ".join(store.unfinished)
        warn(
            f"'{path}': an update in place began and did not end, {store._unfinished_means}: {names}",
            stacklevel=3,
        )
    if store.passed_over and member.rank == 0:
        warn(f"'{path}': passed over: {'; '.join(store.passed_over)}", stacklevel=3)
    _warn_of_consolidated(store, path)
