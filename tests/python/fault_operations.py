"""Operations into which faults are put, and what readers that know nothing of hyperslab see of them afterwards.

Every element tells its place and the attempt that wrote it, so that a mix of attempts, a missing part and a part in the
wrong place are found. Attempt 0 has prepared what is there before.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import h5py
import hyperslab as hs
import netCDF4
import numpy as np
import zarr
from numpy.typing import NDArray

from mpi_programs.stripes import together
from test_torn import kill_writer

ROWS, COLUMNS = 32, 64
SHAPE = (ROWS, COLUMNS)
CHUNK_ROWS = 4
CHUNKS = (CHUNK_ROWS, COLUMNS)
#: What is written in place: neither begins nor ends with a chunk.
SECTION = slice(6, 26)
#: Where rows of the array begin that lie in one chunk, and all inside or all outside of the section.
CUTS = sorted({*range(0, ROWS + 1, CHUNK_ROWS), SECTION.start, SECTION.stop})
#: Rows that the array to be appended to has at first, and gets with each append; neither is whole chunks.
FIRST_ROWS, MORE_ROWS = 6, 4
#: What the elements of two attempts differ by, in the same place.
SCALE = 1e6
HEADER_BYTES = 16
UNIT = 1000
#: Limits on waiting [s].
ARRIVAL_SECONDS = 10.0
PROGRESS_SECONDS = 5.0
#: In these, ranks share no chunks and no rows, since they write them by themselves.
OWN = ("independent", "data-sieving")
#: Those in which ranks may share chunks.
SHARING: tuple[str | None, ...] = ("root-gather", "two-phase", "server-directed", "disk-directed")
STRATEGIES = ("root-gather", "independent", "data-sieving", "two-phase", "server-directed", "disk-directed")

#: What is seen: of each part, which attempt wrote it, or what else it is.
State = dict[str, int | str]


def pattern(shape: tuple[int, ...], attempt: int) -> NDArray[np.float64]:
    """All elements of an array."""
    return np.arange(np.prod(shape, dtype=int)).reshape(shape) + SCALE * attempt


def limits(arrival: float, progress: float) -> dict[str, Any]:
    """Limits on waiting as options; storage that does not answer is waited for as long as for progress [s]."""
    given = {"arrival_seconds": arrival, "progress_seconds": progress}
    known = inspect.signature(hs.open).parameters
    return given | {name: progress for name in ("storage_seconds",) if name in known}


@dataclass
class Attempt:
    """One rank's side of an operation."""

    comm: Any
    directory: Path
    number: int
    strategy: str | None = None
    #: New things have another name in each turn, since earlier ones may have been published.
    turn: int = 1
    limits: dict[str, Any] = field(default_factory=lambda: limits(ARRIVAL_SECONDS, PROGRESS_SECONDS))
    #: Called on every rank when a step is written and not yet published.
    before_publish: Callable[[], None] | None = None
    #: Whether the call that publishes returned.
    published: bool = False
    #: Errors that the operation ended with, in turn.
    errors: list[Exception] = field(default_factory=list)

    def spread(self, shape: tuple[int, ...]) -> hs.Distribution:
        """Rows over ranks."""
        size = 1 if self.comm is None else self.comm.size
        return hs.Distribution(shape, (size,), ("block" if self.strategy in OWN else "cyclic", "*"))

    def part(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """What this rank holds of an array."""
        rank = 0 if self.comm is None else self.comm.rank
        rows, _ = self.spread(values.shape).indices(rank)
        return np.ascontiguousarray(values[rows])

    def given(self, shape: tuple[int, ...] = SHAPE) -> tuple[NDArray[np.float64], hs.Distribution]:
        """An array of this attempt and who holds what."""
        return self.part(pattern(shape, self.number)), self.spread(shape)

    @contextmanager
    def store(self, mode: Literal["r", "r+", "w", "x"] = "r+") -> Iterator[hs.Group]:
        """A store that is closed also after an error, as by a program that goes on after it."""
        with hs.open(self.directory / "a.zarr", mode, comm=self.comm, strategy=self.strategy, **self.limits) as store:
            try:
                yield store
            except hs.Error as error:
                if is_poisoned(error):
                    raise
                self.errors.append(error)

    def raw(self, target: Path | hs.Striped, mode: Literal["r", "r+", "w", "x"], **options: Any) -> hs.RawFile:
        """Open a raw file."""
        return hs.open_raw(target, mode, comm=self.comm, order="C", strategy=self.strategy, **self.limits, **options)

    def netcdf(self, mode: Literal["r", "r+", "w", "x"], **new: Any) -> hs.Group:
        """Open a NetCDF file."""
        path = self.directory / "a.nc"
        return hs.open(path, mode, comm=self.comm, strategy=self.strategy, **self.limits, **new)

    def hdf5(self, mode: Literal["r", "r+", "w", "x"], **new: Any) -> hs.Group:
        """Open an HDF5 file."""
        path = self.directory / "a.h5"
        return hs.open(path, mode, comm=self.comm, strategy=self.strategy, **self.limits, **new)


def is_poisoned(error: Exception) -> bool:
    """Whether the communicator is of no further use."""
    return isinstance(error, (hs.TimeoutError, hs.PoisonedError, hs.PeerError, hs.InterruptedError))


# ---- what is seen ------------------------------------------------------------------------------------------------


def attempt_of(values: NDArray[Any], shape: tuple[int, ...], rows: slice) -> int | str:
    """Which attempt wrote some rows of an array; a text if not one of them wrote all."""
    found = np.asarray(values, np.float64) - pattern(shape, 0)[rows]
    distinct = np.unique(found)
    attempts = distinct / SCALE
    if np.isin(attempts, np.arange(4)).all():
        return int(attempts[0]) if len(attempts) == 1 else "+".join(str(int(each)) for each in attempts)
    zeros = int((np.asarray(values) == 0).sum())
    return f"torn: {zeros} of {found.size} elements are 0, differences are {distinct[:4].tolist()}..."


def parts_of(name: str, values: NDArray[Any], cuts: Sequence[int]) -> State:
    """Which attempts wrote the parts of an array."""
    return {
        f"{name}[{first}:{last}]": attempt_of(values[first:last], values.shape, slice(first, last))
        for first, last in pairwise(cuts)
    }


def appended(values: NDArray[Any]) -> State:
    """Which attempts appended what to an array; each numbers its elements from the first that it appended."""
    cuts = [0, *range(FIRST_ROWS, len(values), MORE_ROWS), len(values)]
    state: State = {}
    for first, last in pairwise(cuts):
        state[f"s[{first}:{last}]"] = attempt_of(values[first:last], (last - first, COLUMNS), slice(0, last - first))
    return state


def filled(name: str, attempt: int, cuts: Sequence[int] = CUTS) -> State:
    """The same where one attempt wrote all."""
    return {f"{name}[{first}:{last}]": attempt for first, last in pairwise(cuts)}


def look_at_store(directory: Path) -> State:
    """All that zarr-python sees of a store."""
    path = directory / "a.zarr"
    try:
        root = zarr.open_group(path, mode="r")
    except FileNotFoundError:
        return {"store": "absent"}
    state: State = {}
    for name, node in root.members(max_depth=None):
        if isinstance(node, zarr.Group):
            state[f"{name}/"] = node.attrs.get("attempt", "no attribute")
            continue
        rows = node.shape[0]
        cuts = CUTS if node.shape == SHAPE else range(0, rows + 1, node.chunks[0])
        try:
            state |= appended(node[...]) if name == "s" else parts_of(name, node[...], cuts)
        except Exception as error:  # noqa: BLE001 (whatever zarr-python says of damaged chunks)
            state[name] = f"torn: {type(error).__name__}: {error}"
    return state


def header_of(attempt: int) -> bytes:
    """What raw files begin with."""
    return f"attempt {attempt}".ljust(HEADER_BYTES).encode()


def parts_of_bytes(content: bytes) -> State:
    """What is seen of a raw file with arrays a and b."""
    expected = HEADER_BYTES + 2 * 8 * ROWS * COLUMNS
    if len(content) != expected:
        return {"file": f"torn: {len(content)} B, not {expected} B"}
    headers = [attempt for attempt in range(4) if content.startswith(header_of(attempt))]
    state: State = {"header": headers[0] if headers else f"torn: {content[:HEADER_BYTES]!r}"}
    both = np.frombuffer(content, "<f8", offset=HEADER_BYTES).reshape(2, *SHAPE)
    for name, values in zip("ab", both, strict=True):
        state |= parts_of(name, values, CUTS)
    return state


def look_at_raw(directory: Path) -> State:
    """All that NumPy sees of a raw file."""
    path = directory / "a.raw"
    return parts_of_bytes(path.read_bytes()) if path.exists() else {"file": "absent"}


def disks(directory: Path) -> list[Path]:
    """Directories that a file is striped over."""
    return [directory / f"disk{number}" for number in range(3)]


def striped(directory: Path) -> hs.Striped:
    """A file in them."""
    return hs.Striped(disks(directory), "a.raw", unit=UNIT)


def look_at_striped(directory: Path) -> State:
    """All that is seen of a striped file, once an opening has completed what was interrupted."""
    known = dict.fromkeys("ab", (SHAPE, "<f8"))
    try:
        hs.open_raw(striped(directory), header=HEADER_BYTES, arrays=known, order="C").close()
    except hs.TimeoutError as error:
        # Somebody who has stopped is publishing it.
        return {"file": f"busy: {error}"}
    return parts_of_bytes(together(disks(directory), "a.raw", UNIT))


def look_at_npy(directory: Path) -> State:
    """All that NumPy sees of an npy file."""
    path = directory / "a.npy"
    if not path.exists():
        return {"file": "absent"}
    try:
        return parts_of("a", np.load(path), CUTS)
    except ValueError as error:
        return {"file": f"torn: {error}"}


def look_at_netcdf(directory: Path) -> State:
    """All that netCDF4-python sees of a NetCDF file: a fixed array, and two that grow together."""
    path = directory / "a.nc"
    if not path.exists():
        return {"file": "absent"}
    try:
        with netCDF4.Dataset(path) as data:
            data.set_auto_mask(False)
            state = {"attribute": int(data.attempt)} | parts_of("a", data["a"][...], CUTS) | appended(data["s"][...])
            other = appended(data["k"][...])
            agree = {name.replace("s", "k"): found for name, found in state.items() if name.startswith("s[")}
            return state if {name.replace("s", "k"): n for name, n in other.items()} == agree else {"k": str(other)}
    except OSError as error:
        return {"file": f"torn: {error}"}


def look_at_hdf5(directory: Path) -> State:
    """All that h5py sees of an HDF5 file."""
    path = directory / "a.h5"
    if not path.exists():
        return {"file": "absent"}
    try:
        # A rank that was stopped keeps its lock.
        with h5py.File(path, locking=False) as data:
            state: State = {"attribute": int(data.attrs["attempt"])} | appended(data["s"][...])
            for name, path_inside in (("a", "a"), ("b", "in/b"), ("z", "z")):
                state |= parts_of(name, data[path_inside][...], CUTS)
            for step in (name for name in data if name.isdigit()):
                state[f"{step}/"] = int(data[step].attrs["attempt"])
                for name in data[step]:
                    state |= parts_of(f"{step}/{name}", data[step][name][...], CUTS)
            return state
    except (OSError, KeyError, RuntimeError) as error:
        return {"file": f"torn: {error}"}


# ---- operations --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Operation:
    """Something that a program does with all its ranks."""

    run: Callable[[Attempt], None]
    prepare: Callable[[Path], None]
    look: Callable[[Path], State]
    #: What is seen after an attempt, of what was seen before.
    after: Callable[[State, Attempt], State]
    #: Whether it changes what readers see, part by part.
    in_place: bool = False
    #: What readers may see, too, where nothing can be put in the place of the old thing at once.
    between: State | None = None
    #: What is seen after each publication of an attempt but the last, where it publishes several times.
    stages: Callable[[State, Attempt], list[State]] = lambda _, __: []
    #: In which turn an attempt finds its names free.
    turn: Callable[[State], int] = lambda _: 1
    #: Whether the last attempt that publishes wins, since it replaces whatever is there.
    replaces: bool = False
    #: Whether what a rank writes that comes back late cannot reach what a later attempt writes.
    fenced: bool = True
    #: Whether new things take their names one after another, so that the next opening may have to end that.
    ends_later: bool = False
    #: Whether it survives only the death of processes, not a loss of power.
    cached: bool = False
    #: Whether each rank first looks for something by itself, as `store[name]` does, whose error is its own.
    looks_alone: bool = False
    strategies: tuple[str | None, ...] = STRATEGIES

    @property
    def name(self) -> str:
        """How it is called."""
        return self.run.__name__.replace("_", " ")

    @property
    def marker(self) -> str:
        """The file that tells of an update in place which has not ended."""
        known = {
            look_at_store: "a.zarr/a/.hyperslab-update",
            look_at_netcdf: ".a.nc.hyperslab-update",
            look_at_hdf5: ".a.h5.hyperslab-update",
        }
        return known.get(self.look, ".a.raw.hyperslab-update")


OPERATIONS: dict[str, Operation] = {}
Run = Callable[[Attempt], None]


def operation(
    prepare: Callable[[Path], None],
    look: Callable[[Path], State],
    after: Callable[[State, Attempt], State],
    **more: Any,
) -> Callable[[Run], Run]:
    """Add a function to the operations."""

    def add(run: Run) -> Run:
        made = Operation(run, prepare, look, after, **more)
        OPERATIONS[made.name] = made
        return run

    return add


def prepare_store(directory: Path) -> None:
    """A store with three arrays, one of them short."""
    attempt = Attempt(None, directory, 0)
    with attempt.store("w") as store:
        for name in ("a", "keep"):
            store.write(name, pattern(SHAPE, 0), chunks=CHUNKS)
        store.write("s", pattern((FIRST_ROWS, COLUMNS), 0), chunks=CHUNKS)


def prepare_raw(directory: Path) -> None:
    """A raw file with two arrays."""
    write_raw(Attempt(None, directory, 0), directory / "a.raw")


def prepare_striped(directory: Path) -> None:
    """The same, striped."""
    for disk in disks(directory):
        disk.mkdir()
    write_raw(Attempt(None, directory, 0), striped(directory))


def prepare_npy(directory: Path) -> None:
    """An npy file."""
    hs.save_npy(directory / "a.npy", pattern(SHAPE, 0), comm=None)


def prepare_netcdf(directory: Path) -> None:
    """A NetCDF file."""
    write_netcdf(Attempt(None, directory, 0))


def write_netcdf(attempt: Attempt) -> None:
    """Write a NetCDF file in the place of another one."""
    values, dist = attempt.given()
    short, short_dist = attempt.given((FIRST_ROWS, COLUMNS))
    said = {"attributes": {"attempt": attempt.number}, "unlimited": "t"}
    with attempt.netcdf("w", **said) as file:
        file.write("a", values, dist)
        growing = dict.fromkeys("sk", (("t", "x"), short))
        file.write(growing, dict.fromkeys("sk", short_dist))
    attempt.published = True


def write_raw(attempt: Attempt, target: Path | hs.Striped) -> None:
    """Write a raw file in the place of another one."""
    with attempt.raw(target, "w", header=header_of(attempt.number)) as file:
        for name in "ab":
            values, dist = attempt.given()
            file.write({name: values}, dist)
    attempt.published = True


def changed(state: State, attempt: Attempt) -> State:
    """What a section that is written in place becomes."""
    inside = {f"a[{a}:{b}]" for a, b in pairwise(CUTS) if SECTION.start <= a and b <= SECTION.stop}
    return {part: attempt.number if part in inside else before for part, before in state.items()}


def in_section(attempt: Attempt) -> tuple[NDArray[np.float64], hs.Distribution]:
    """What is written there."""
    values = pattern(SHAPE, attempt.number)[SECTION]
    return attempt.part(values), attempt.spread(values.shape)


#: Those of a store that an attempt in it makes.
MANY = ("m1", "m2", "m3", "m4", "m5")


def turns(first: str) -> Callable[[State], int]:
    """The first turn whose first part is not there; ``{}`` in its name is the turn."""
    return lambda state: next(turn for turn in range(1, 9) if first.format(turn) not in state)


def several(attempt: Attempt) -> list[str]:
    """Names of several new arrays."""
    return [f"{name}-{attempt.turn}" for name in MANY]


@operation(
    prepare_store,
    look_at_store,
    lambda s, a: s | filled(f"n-{a.turn}", a.number),
    turn=turns(f"n-{{}}[0:{CHUNK_ROWS}]"),
)
def new_array(attempt: Attempt) -> None:
    with attempt.store() as store:
        store.write(f"n-{attempt.turn}", *attempt.given(), chunks=CHUNKS)
        attempt.published = True


@operation(
    prepare_store,
    look_at_store,
    lambda s, a: s | {part: a.number for name in several(a) for part in filled(name, a.number)},
    turn=turns(f"{MANY[0]}-{{}}[0:{CHUNK_ROWS}]"),
    ends_later=True,
)
def several_new_arrays(attempt: Attempt) -> None:
    """So many chunks that they are synced by one call."""
    with attempt.store() as store:
        values, dist = attempt.given()
        store.write(dict.fromkeys(several(attempt), values), dist, chunks=CHUNKS)
        attempt.published = True


@operation(
    prepare_store,
    look_at_store,
    lambda s, a: s | {part: a.number for name in several(a)[:3] for part in filled(name, a.number)},
    turn=turns(f"{MANY[0]}-{{}}[0:{CHUNK_ROWS}]"),
    ends_later=True,
)
def batch_of_new_arrays(attempt: Attempt) -> None:
    """Written in one call, each in its own way: few files, which are synced one by one, and shards."""
    with attempt.store() as store:
        with store.batch() as batch:
            for name, options in zip(several(attempt)[:3], ({}, {"zstd": 3}, {"shards": SHAPE}), strict=True):
                batch.write(name, *attempt.given(), chunks=CHUNKS, **options)
        attempt.published = True


@operation(prepare_store, look_at_store, lambda s, a: s | filled("a", a.number), replaces=True)
def array_overwritten(attempt: Attempt) -> None:
    with attempt.store() as store:
        store.write("a", *attempt.given(), chunks=CHUNKS, overwrite=True)
        attempt.published = True


@operation(
    prepare_store,
    look_at_store,
    lambda s, a: s | {part: a.number for name in ("a", "keep", "n") for part in filled(name, a.number)},
    replaces=True,
)
def several_overwritten(attempt: Attempt) -> None:
    """Two arrays that are there and one that is not."""
    with attempt.store() as store:
        values, dist = attempt.given()
        store.write(dict.fromkeys(("a", "keep", "n"), values), dist, chunks=CHUNKS, overwrite=True)
        attempt.published = True


@operation(
    prepare_store,
    look_at_store,
    lambda s, a: s | {f"{a.turn:04}/": a.number} | {f"{a.turn:04}/{p}": n for p, n in two_arrays(a).items()},
    turn=turns("{:04}/"),
)
def step(attempt: Attempt) -> None:
    with attempt.store() as store:
        attributes = {"attempt": attempt.number}
        with store.step(f"{attempt.turn:04}", attributes=attributes, before_publish=attempt.before_publish) as group:
            group.write("a", *attempt.given(), chunks=CHUNKS)
            values, dist = attempt.given()
            group.iwrite("b", values, dist, chunks=CHUNKS)
        attempt.published = True


def two_arrays(attempt: Attempt) -> State:
    """What a step holds."""
    return filled("a", attempt.number) | filled("b", attempt.number)


@operation(prepare_store, look_at_store, lambda _, a: filled("a", a.number), between={}, replaces=True)
def store_made_anew(attempt: Attempt) -> None:
    with attempt.store("w") as store:
        store.write("a", *attempt.given(), chunks=CHUNKS)
        attempt.published = True


def longer(state: State, attempt: Attempt) -> State:
    """What an array becomes by an append."""
    first = FIRST_ROWS + MORE_ROWS * sum(part.startswith("s[") for part in state) - MORE_ROWS
    return state | {f"s[{first}:{first + MORE_ROWS}]": attempt.number}


@operation(
    prepare_store,
    look_at_store,
    longer,
    strategies=SHARING,
)
def append(attempt: Attempt) -> None:
    with attempt.store() as store:
        store.append("s", *attempt.given((MORE_ROWS, COLUMNS)))
        attempt.published = True


def prepare_pair(directory: Path) -> None:
    """A store with two arrays that are appended to together."""
    with Attempt(None, directory, 0).store("w") as store:
        store.write(dict.fromkeys("sk", pattern((FIRST_ROWS, COLUMNS), 0)), chunks=CHUNKS)


def look_at_pair(directory: Path) -> State:
    """What zarr-python sees of them: both have the same."""
    root = zarr.open_group(directory / "a.zarr", mode="r")
    one, other = (appended(root[name][...]) for name in "sk")
    return one if one == other else {"s and k differ": f"{one} {other}"}


@operation(prepare_pair, look_at_pair, longer, strategies=SHARING)
def pair_append(attempt: Attempt) -> None:
    """Both are longer, or none; a writer that died between is completed by the next one."""
    with attempt.store() as store:
        values, dist = attempt.given((MORE_ROWS, COLUMNS))
        store.append(dict.fromkeys("sk", values), dist)
        attempt.published = True


def prepare_several(directory: Path) -> None:
    """A store with some arrays that go, one in each turn."""
    with Attempt(None, directory, 0).store("w") as store:
        store.write({f"d-{turn}": pattern(SHAPE, 0) for turn in range(1, 9)}, chunks=CHUNKS)


def next_to_go(state: State) -> int:
    """The first of them that is there."""
    return next(turn for turn in range(1, 9) if f"d-{turn}[0:{CHUNK_ROWS}]" in state)


def without(state: State, name: str) -> State:
    """What is seen when an array is gone."""
    return {part: attempt for part, attempt in state.items() if not part.startswith(f"{name}[")}


@operation(
    prepare_several,
    look_at_store,
    lambda s, a: without(s, f"d-{a.turn}"),
    turn=next_to_go,
    strategies=(None,),
)
def array_deleted(attempt: Attempt) -> None:
    with attempt.store() as store:
        store.delete(f"d-{attempt.turn}")
        attempt.published = True


@operation(
    prepare_several,
    look_at_store,
    lambda s, a: without(s, f"d-{a.turn}") | filled(f"e-{a.turn}", 0),
    turn=next_to_go,
    strategies=(None,),
)
def array_renamed(attempt: Attempt) -> None:
    with attempt.store() as store:
        store.rename(f"d-{attempt.turn}", f"e-{attempt.turn}")
        attempt.published = True


def prepare_attribute(directory: Path) -> None:
    """A store with an array that has an attribute, and a group that has one, too."""
    with Attempt(None, directory, 0).store("w") as store:
        store.write("a", pattern(SHAPE, 0), chunks=CHUNKS, attributes={"attempt": 0})


def look_at_attribute(directory: Path) -> State:
    """What zarr-python sees of it."""
    return {"attribute": int(zarr.open_group(directory / "a.zarr", mode="r")["a"].attrs["attempt"])} | look_at_store(
        directory
    )


@operation(
    prepare_attribute,
    look_at_attribute,
    lambda s, a: s | {"attribute": a.number},
    replaces=True,
    looks_alone=True,
    strategies=(None,),
)
def attribute_changed(attempt: Attempt) -> None:
    with attempt.store() as store:
        store["a"].attrs.update(attempt=attempt.number, more=["x"] * 100)
        attempt.published = True


def rows_left(turn: int) -> int:
    """How many rows are left when an array was cut so often."""
    return ROWS - turn * CHUNK_ROWS


def rows_of(state: State, name: str) -> int:
    """How many rows an array is seen to have."""
    ends = [part.removesuffix("]").rpartition(":")[2] for part in state if part.startswith(f"{name}[")]
    return max(int(end) for end in ends)


@operation(
    prepare_store,
    look_at_store,
    lambda s, a: without(s, "a") | filled("a", 0, range(0, rows_left(a.turn) + 1, CHUNK_ROWS)),
    turn=lambda state: 1 + (ROWS - rows_of(state, "a")) // CHUNK_ROWS,
    strategies=(None,),
)
def array_cut(attempt: Attempt) -> None:
    with attempt.store() as store:
        store.resize("a", (rows_left(attempt.turn), COLUMNS))
        attempt.published = True


@operation(prepare_store, look_at_store, changed, in_place=True, strategies=SHARING)
def section(attempt: Attempt) -> None:
    with attempt.store() as store:
        store.write("a", *in_section(attempt), section=(SECTION, slice(0, COLUMNS)))
        attempt.published = True


@operation(prepare_store, look_at_store, lambda s, _: s)
def read(attempt: Attempt) -> None:
    with attempt.store("r") as store:
        for name in ("a", "keep"):
            found = store.read(name, attempt.spread(SHAPE))
            assert (found == attempt.part(pattern(SHAPE, 0))).all(), f"'{name}' was read wrong"
        attempt.published = True


def prepare_left_over(directory: Path) -> None:
    """A store whose last writer was killed when a step of it was complete and not yet published."""
    prepare_store(directory)
    kill_writer("step", directory)
    assert hidden(directory)


@operation(prepare_left_over, look_at_store, lambda s, _: s)
def clearing_up(attempt: Attempt) -> None:
    """Opening removes what an earlier writer left."""
    with attempt.store():
        attempt.published = True


@operation(prepare_raw, look_at_raw, lambda s, a: dict.fromkeys(s, a.number), replaces=True)
def raw_file(attempt: Attempt) -> None:
    write_raw(attempt, attempt.directory / "a.raw")


@operation(prepare_raw, look_at_raw, changed, in_place=True)
def raw_section(attempt: Attempt) -> None:
    known = dict.fromkeys("ab", (SHAPE, "<f8"))
    with attempt.raw(attempt.directory / "a.raw", "r+", header=HEADER_BYTES, arrays=known) as file:
        values, dist = in_section(attempt)
        file.write({"a": values}, dist, section=(SECTION, slice(0, COLUMNS)))
        attempt.published = True


@operation(prepare_raw, look_at_raw, changed, in_place=True, cached=True)
def cached_sections(attempt: Attempt) -> None:
    """Several short changes, between which the marker rests."""
    known = dict.fromkeys("ab", (SHAPE, "<f8"))
    path = attempt.directory / "a.raw"
    with attempt.raw(path, "r+", header=HEADER_BYTES, arrays=known, durable=False) as file:
        values, dist = in_section(attempt)
        for _ in range(3):
            file.write({"a": values}, dist, section=(SECTION, slice(0, COLUMNS)))
        attempt.published = True


@operation(prepare_raw, look_at_raw, lambda s, _: s)
def raw_read(attempt: Attempt) -> None:
    known = dict.fromkeys("ab", (SHAPE, "<f8"))
    with attempt.raw(attempt.directory / "a.raw", "r", header=HEADER_BYTES, arrays=known) as file:
        found = file.read("b", attempt.spread(SHAPE))
        assert (found == attempt.part(pattern(SHAPE, 0))).all(), "'b' was read wrong"
        attempt.published = True


@operation(prepare_striped, look_at_striped, lambda s, a: dict.fromkeys(s, a.number), replaces=True)
def striped_file(attempt: Attempt) -> None:
    write_raw(attempt, striped(attempt.directory))


@operation(prepare_npy, look_at_npy, lambda s, a: dict.fromkeys(s, a.number), strategies=(None,), replaces=True)
def npy_file(attempt: Attempt) -> None:
    values, dist = attempt.given()
    hs.save_npy(attempt.directory / "a.npy", values, dist, comm=attempt.comm, **attempt.limits)
    attempt.published = True


@operation(
    prepare_netcdf,
    look_at_netcdf,
    lambda _, a: {"attribute": a.number} | filled("a", a.number) | {f"s[0:{FIRST_ROWS}]": a.number},
    replaces=True,
)
def netcdf_file(attempt: Attempt) -> None:
    write_netcdf(attempt)


@operation(prepare_netcdf, look_at_netcdf, changed, in_place=True)
def netcdf_section(attempt: Attempt) -> None:
    with attempt.netcdf("r+") as file:
        file.write("a", *in_section(attempt), section=(SECTION, slice(0, COLUMNS)))
        attempt.published = True


@operation(prepare_netcdf, look_at_netcdf, longer, fenced=False)
def netcdf_append(attempt: Attempt) -> None:
    with attempt.netcdf("r+") as file:
        values, dist = attempt.given((MORE_ROWS, COLUMNS))
        file.append(dict.fromkeys("sk", values), dict.fromkeys("sk", dist))
        attempt.published = True


def prepare_hdf5(directory: Path) -> None:
    """A file with arrays in one stretch, and in compressed chunks, of which one grows."""
    write_hdf5(Attempt(None, directory, 0))


def write_hdf5(attempt: Attempt) -> None:
    """All of it anew."""
    with attempt.hdf5("w", attributes={"attempt": attempt.number}) as file:
        fill_hdf5(attempt, file)
    attempt.published = True


def fill_hdf5(attempt: Attempt, file: hs.Group) -> None:
    """Write what it holds besides steps."""
    for name in ("a", "in/b"):
        file.write(name, *attempt.given())
    file.write("z", *attempt.given(), chunks=CHUNKS, compression="gzip")
    values, dist = attempt.given((FIRST_ROWS, COLUMNS))
    strategy = None if attempt.strategy in OWN else attempt.strategy
    given: dict[str, Any] = {"chunks": CHUNKS, "compression": "gzip", "maxshape": (None, COLUMNS)}
    file.write("s", values, dist, strategy=strategy or "server-directed", **given)


def new_hdf5(_: State, attempt: Attempt) -> State:
    """What is seen of it."""
    state: State = {"attribute": attempt.number, f"s[0:{FIRST_ROWS}]": attempt.number}
    return state | {part: number for name in "abz" for part, number in filled(name, attempt.number).items()}


@operation(prepare_hdf5, look_at_hdf5, new_hdf5, replaces=True)
def hdf5_file(attempt: Attempt) -> None:
    write_hdf5(attempt)


@operation(prepare_hdf5, look_at_hdf5, changed, in_place=True)
def hdf5_section(attempt: Attempt) -> None:
    with attempt.hdf5("r+") as file:
        file.write("a", *in_section(attempt), section=(SECTION, slice(0, COLUMNS)))
        attempt.published = True


def changed_chunks(state: State, attempt: Attempt) -> State:
    """What a section of the compressed array becomes."""
    inside = {f"z[{a}:{b}]" for a, b in pairwise(CUTS) if SECTION.start <= a and b <= SECTION.stop}
    return {part: attempt.number if part in inside else before for part, before in state.items()}


@operation(prepare_hdf5, look_at_hdf5, changed_chunks, in_place=True, strategies=SHARING)
def hdf5_chunks(attempt: Attempt) -> None:
    with attempt.hdf5("r+") as file:
        file.write("z", *in_section(attempt), section=(SECTION, slice(0, COLUMNS)))
        attempt.published = True


@operation(prepare_hdf5, look_at_hdf5, longer, strategies=SHARING)
def hdf5_append(attempt: Attempt) -> None:
    with attempt.hdf5("r+") as file:
        file.append("s", *attempt.given((MORE_ROWS, COLUMNS)))
        attempt.published = True


@operation(
    prepare_hdf5,
    look_at_hdf5,
    lambda s, a: (
        s
        | {f"{a.turn:04}/": a.number}
        | {part: n for name in "az" for part, n in filled(f"{a.turn:04}/{name}", a.number).items()}
    ),
    turn=turns("{:04}/"),
)
def hdf5_step(attempt: Attempt) -> None:
    with attempt.hdf5("r+") as file:
        attributes = {"attempt": attempt.number}
        with file.step(f"{attempt.turn:04}", attributes=attributes, before_publish=attempt.before_publish) as step:
            step.write("a", *attempt.given())
            values, dist = attempt.given()
            strategy = None if attempt.strategy in OWN else attempt.strategy
            step.write("z", values, dist, chunks=CHUNKS, compression="gzip", strategy=strategy or "server-directed")
        attempt.published = True


@operation(prepare_hdf5, look_at_hdf5, lambda s, a: s | {"attribute": a.number}, replaces=True)
def hdf5_attributes(attempt: Attempt) -> None:
    with attempt.hdf5("r+") as file:
        file.attrs.update(attempt=attempt.number, note=f"attempt {attempt.number}")
        attempt.published = True


# ---- files that are seen from their first step or flush on -----------------------------------------------------

STEPS = ("0001", "0002")


def stages_of_hdf5(state: State, attempt: Attempt) -> list[State]:
    """What is seen after the first step, after the second, and after the append."""
    stages = []
    seen = new_hdf5(state, attempt)
    for step in STEPS:
        parts = (part for name in "az" for part in filled(f"{step}/{name}", attempt.number))
        seen = seen | {f"{step}/": attempt.number} | dict.fromkeys(parts, attempt.number)
        stages.append(seen)
    return [*stages, longer(seen, attempt)]


@operation(
    prepare_hdf5,
    look_at_hdf5,
    lambda s, a: stages_of_hdf5(s, a)[-1],
    stages=lambda s, a: stages_of_hdf5(s, a)[:-1],
    replaces=True,
    strategies=SHARING,
)
def hdf5_file_by_steps(attempt: Attempt) -> None:
    with attempt.hdf5("w", attributes={"attempt": attempt.number}) as file:
        fill_hdf5(attempt, file)
        for name in STEPS:
            with file.step(name, attributes={"attempt": attempt.number}) as step:
                step.write("a", *attempt.given())
                step.write("z", *attempt.given(), chunks=CHUNKS, compression="gzip")
        file.append("s", *attempt.given((MORE_ROWS, COLUMNS)))
        attempt.published = True


def stages_of_netcdf(_: State, attempt: Attempt) -> list[State]:
    """What is seen when it was made, and after each of two appends."""
    first: State = {"attribute": attempt.number} | filled("a", attempt.number) | {f"s[0:{FIRST_ROWS}]": attempt.number}
    second = longer(first, attempt)
    return [first, second, longer(second, attempt)]


def write_by_flushes(attempt: Attempt, **given: Any) -> None:
    """A file that grows, in the place of another one."""
    with attempt.netcdf("w", attributes={"attempt": attempt.number}, unlimited="t", **given) as file:
        file.write("a", *attempt.given())
        values, dist = attempt.given((FIRST_ROWS, COLUMNS))
        file.write(dict.fromkeys("sk", (("t", "x"), values)), dict.fromkeys("sk", dist))
        for _ in range(2):
            file.flush()
            values, dist = attempt.given((MORE_ROWS, COLUMNS))
            file.append(dict.fromkeys("sk", values), dict.fromkeys("sk", dist))
    attempt.published = True


by_flushes = operation(
    prepare_netcdf,
    look_at_netcdf,
    lambda s, a: stages_of_netcdf(s, a)[-1],
    stages=lambda s, a: stages_of_netcdf(s, a)[:-1],
    replaces=True,
    strategies=SHARING,
)


@by_flushes
def netcdf_file_by_flushes(attempt: Attempt) -> None:
    """Once it is seen, each append is when it returns."""
    write_by_flushes(attempt)


@by_flushes
def netcdf4_file_by_flushes(attempt: Attempt) -> None:
    """What is added is seen with the next flush."""
    write_by_flushes(attempt, format="netcdf4")


#: Those that publish several times.
BY_STAGES = ("hdf5 file by steps", "netcdf file by flushes", "netcdf4 file by flushes")


def carry_out(made: Operation, attempt: Attempt) -> list[str]:
    """Carry out an operation on one rank, whatever it ends with; returns the warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            made.run(attempt)
        except Exception as error:  # noqa: BLE001 (any error is the result)
            attempt.errors.append(error)
    return [str(each.message) for each in told]


def reopen(made: Operation, directory: Path, mode: Literal["r", "r+"]) -> list[str]:
    """Open what is there by one process and close it; returns what is named: removed, unfinished, warnings."""
    named: list[str] = []
    known = dict.fromkeys("ab", (SHAPE, "<f8"))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        opened: Any = None
        if made.look in (look_at_store, look_at_pair, look_at_attribute):
            if look_at_store(directory) == {"store": "absent"}:
                return []
            opened = hs.open(directory / "a.zarr", mode, comm=None)
        elif made.look is look_at_netcdf:
            opened = hs.open(directory / "a.nc", mode, comm=None)
        elif made.look is look_at_hdf5:
            opened = hs.open(directory / "a.h5", mode, comm=None)
        elif made.look is look_at_raw:
            opened = hs.open_raw(directory / "a.raw", mode, comm=None, header=HEADER_BYTES, arrays=known, order="C")
        if opened is not None:
            with opened:
                for each in ("removed", "unfinished"):
                    named += [f"{each}: {name}" for name in getattr(opened, each, ())]
    return named + [str(each.message) for each in told]


def hidden(directory: Path) -> list[str]:
    """All that is there and does not belong to the data."""
    found = (str(path.relative_to(directory)) for path in directory.rglob("*"))
    return sorted(
        name for name in found if any(part.startswith(".") or "hyperslab" in part for part in Path(name).parts)
    )


def beside_data(made: Operation, directory: Path) -> list[str]:
    """What is hidden and should not be there.

    The marker of an update that did not end stays, and what says beside the store or file who made it, as long as each
    opening tells of it.
    """
    left = hidden(directory)
    if made.marker not in left:
        return left
    if not any(names_unfinished(each) for each in reopen(made, directory, "r")):
        return left
    # Temporary files lie elsewhere: beside chunks, or in directories.
    records = {path.name for path in directory.iterdir() if path.is_file()}
    return [name for name in left if name != made.marker and name not in records]


def names_unfinished(text: str) -> bool:
    """Whether an opening tells of something half done."""
    return "unfinished" in text or "did not end" in text


def names_any(left: list[str], told: list[str]) -> bool:
    """Whether somebody was told of something that is hidden: by its name, or as removed or unfinished."""
    names = {part for path in left for part in Path(path).parts if part.startswith(".")}
    by_property = any(text.startswith(("removed: ", "unfinished: ")) for text in told)
    return by_property or any(name in text for name in names for text in told)


def files(directory: Path) -> list[str]:
    """All that is there."""
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))
