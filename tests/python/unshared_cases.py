"""Calls at a path where not all ranks see the same files; run by `mpi_programs.unshared`.

A case is a function of a communicator, a fresh directory that some ranks do not share, and options. It yields a call
that all ranks make together, and returns what was found: by rank 0 at the path, or by this rank in what it has read.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hyperslab as hs
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Rows that are whole chunks on every rank, whether there are 4 or 5, also of half of the array.
SHAPE = (80, 512)
CHUNKS = (2, 512)
OLD = np.arange(np.prod(SHAPE), dtype=float).reshape(SHAPE)
NEW = -1.0 - OLD
#: So that a rank that waits for one which has given up does not wait for long.
LIMITS: Any = {"arrival_seconds": 10.0, "progress_seconds": 5.0, "durable": False}


Run = Callable[[Any, Path, dict[str, Any]], Any]


@dataclass(frozen=True)
class Case:
    """A call and whether some rank surely handles files that rank 0 does not see, so that it has to fail."""

    run: Run
    options: dict[str, Any]
    must_fail: bool


CASES: dict[str, Case] = {}
#: A directory that all ranks see.
SHARED: list[Path] = []
#: Stands for the number of ranks.
ALL = -1
#: Ways in which all ranks handle storage.
FORCED: dict[str, dict[str, Any]] = {
    "independent": {"strategy": "independent"},
    "by_all_servers": {"strategy": "server-directed", "servers": ALL, "subchunk_bytes": 8192},
}


def case(*forced: str, must_fail: bool = False) -> Callable[[Run], Run]:
    """Add a function to the cases, as it is and with each of the forced ways."""

    def add(run: Run) -> Run:
        CASES[run.__name__] = Case(run, {}, must_fail)
        for name in forced:
            CASES[f"{run.__name__}_{name}"] = Case(run, FORCED[name], must_fail=True)
        return run

    return add


class Views:
    """Which ranks see the same files at a path."""

    def __init__(self, comm: Any, directory: Path) -> None:
        devices = comm.allgather((os.uname().nodename, directory.stat().st_dev))
        #: The lowest rank of those that see what this one sees.
        self.leader = devices.index(devices[comm.rank])
        self.differ = len(set(devices)) > 1


def prepared(comm: Any, path: Path, make: Callable[[Path, bool], Any]) -> None:
    """Let ``make(path, is that of rank 0)`` make what is there at first, once for all that see the same."""
    leader = Views(comm, path).leader
    if comm.rank == leader:
        make(path, leader == 0)
    comm.barrier()


def spread(comm: Any, shape: tuple[int, ...] = SHAPE) -> hs.Distribution:
    """Rows in blocks."""
    return hs.Distribution(shape, (comm.size,), ("block", "*"))


def part(comm: Any, values: NDArray[Any]) -> NDArray[Any]:
    """This rank's rows."""
    return values[spread(comm, values.shape).slices(comm)]


def options(comm: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Options of an opening."""
    servers = {"servers": comm.size} if given.get("servers") == ALL else {}
    return {"comm": comm, **LIMITS, **given, **servers}


def whole(values: NDArray[Any], expected: NDArray[Any] = NEW) -> str:
    """What rank 0 found."""
    return "whole" if np.array_equal(values, expected) else "damaged"


def changed(values: NDArray[Any], marker: Path, unit: int = 1) -> str:
    """The same of values that are changed in place, by chunks of `unit` rows: all new, old, or marked as neither."""
    rows = range(0, len(values), unit)
    new = [np.array_equal(values[row : row + unit], NEW[row : row + unit]) for row in rows]
    old = [np.array_equal(values[row : row + unit], OLD[row : row + unit]) for row in rows]
    if all(new):
        return "whole"
    if all(old):
        return "as before"
    each = all(a or b for a, b in zip(new, old, strict=True))
    return "partly changed and marked" if each and marker.exists() else "damaged"


def alone(path: Path, values: NDArray[Any], **more: Any) -> None:
    """A store with an array that one rank writes."""
    with hs.open(path, "w", comm=None, durable=False) as store:
        store.write("a", values, chunks=CHUNKS, casting="unsafe", **more)


def stored(path: Path, name: str) -> NDArray[Any] | None:
    """An array as this rank sees it, if it is there."""
    with hs.open(path) as store:
        group, _, array = name.rpartition("/")
        if group and group not in store.groups():
            return None
        within = store.group(group) if group else store
        return within.read(array) if array in within else None


# ---- new things ------------------------------------------------------------------------------------------------


@case("independent", "by_all_servers")
def a_step(comm: Any, path: Path, given: dict[str, Any]) -> Any:
    prepared(comm, path, lambda path, _: alone(path / "a.zarr", OLD))

    def call() -> None:
        with hs.open(path / "a.zarr", "r+", **options(comm, given)) as store, store.step("s") as step:
            step.write("b", part(comm, NEW), spread(comm), chunks=CHUNKS)

    yield call
    found = stored(path / "a.zarr", "s/b")
    if found is None:
        return "damaged" if (path / "a.zarr" / "s").exists() else "absent"
    return whole(found)


@case("independent")
def a_step_of_a_new_store(comm: Any, path: Path, given: dict[str, Any]) -> Any:
    def call() -> None:
        with hs.open(path / "a.zarr", "w", **options(comm, given)) as store, store.step("s") as step:
            step.write("b", part(comm, NEW), spread(comm), chunks=CHUNKS)

    yield call
    if not (path / "a.zarr" / "zarr.json").exists():
        return "absent"
    found = stored(path / "a.zarr", "s/b")
    return "absent" if found is None else whole(found)


@case("independent", "by_all_servers")
def a_new_array(comm: Any, path: Path, given: dict[str, Any]) -> Any:
    prepared(comm, path, lambda path, _: alone(path / "a.zarr", OLD))

    def call() -> None:
        with hs.open(path / "a.zarr", "r+", **options(comm, given)) as store:
            store.write("b", part(comm, NEW), spread(comm), chunks=CHUNKS)

    yield call
    found = stored(path / "a.zarr", "b")
    return "absent" if found is None else whole(found)


@case("independent")
def several_arrays_that_replace_others(comm: Any, path: Path, given: dict[str, Any]) -> Any:
    prepared(comm, path, lambda path, _: alone(path / "a.zarr", OLD))

    def call() -> None:
        with hs.open(path / "a.zarr", "r+", **options(comm, given)) as store:
            arrays = {"a": part(comm, NEW), "b": part(comm, NEW)}
            store.write(arrays, spread(comm), chunks=CHUNKS, overwrite=True)

    yield call
    first, second = stored(path / "a.zarr", "a"), stored(path / "a.zarr", "b")
    assert first is not None
    if second is None:
        return "absent" if np.array_equal(first, OLD) else "damaged"
    return whole(np.stack([first, second]), np.stack([NEW, NEW]))


@case("independent", "by_all_servers")
def a_new_raw_file(comm: Any, path: Path, given: dict[str, Any]) -> Any:
    def call() -> None:
        with hs.open_raw(path / "a.raw", "w", order="C", **options(comm, given)) as file:
            file.write({"a": part(comm, NEW)}, spread(comm))

    yield call
    return whole(np.fromfile(path / "a.raw").reshape(SHAPE)) if (path / "a.raw").exists() else "absent"


@case("independent")
def a_raw_file_that_replaces_another(comm: Any, path: Path, given: dict[str, Any]) -> Any:
    prepared(comm, path, lambda path, _: OLD.tofile(path / "a.raw"))

    def call() -> None:
        with hs.open_raw(path / "a.raw", "w", order="C", **options(comm, given)) as file:
            file.write({"a": part(comm, NEW)}, spread(comm))

    yield call
    found = np.fromfile(path / "a.raw").reshape(SHAPE)
    return "as before" if np.array_equal(found, OLD) else whole(found)


@case("independent")
def a_striped_file(comm: Any, path: Path, given: dict[str, Any]) -> Any:
    """One of two directories is seen by all."""
    shared = SHARED[0] / path.name
    directories = [shared, path]
    if comm.rank == 0:
        shared.mkdir()
    comm.barrier()
    striped = hs.Striped(directories, "a.raw", unit=4096)

    def call() -> None:
        with hs.open_raw(striped, "w", order="C", **options(comm, given)) as file:
            file.write({"a": part(comm, NEW)}, spread(comm))

    yield call
    parts = [directory / "a.raw" for directory in directories]
    if not any(each.exists() for each in parts):
        return "absent"
    if not all(each.exists() for each in parts):
        return "damaged"
    units = [np.fromfile(each).reshape(-1, 512) for each in parts]
    return whole(np.stack(units, axis=1).reshape(SHAPE)) if len(units[0]) == len(units[1]) else "damaged"


@case()
def an_npy_file(comm: Any, path: Path, given: dict[str, Any]) -> Any:
    del given

    def call() -> None:
        hs.save_npy(path / "a.npy", part(comm, NEW), spread(comm), comm=comm, **LIMITS)

    yield call
    return whole(np.load(path / "a.npy")) if (path / "a.npy").exists() else "absent"


@case(must_fail=True)
def a_step_by_a_server_that_sees_other_files(comm: Any, path: Path, given: dict[str, Any]) -> Any:
    del given
    prepared(comm, path, lambda path, _: alone(path / "a.zarr", OLD))

    def call() -> None:
        with hs.dedicate(comm, [comm.size - 1]) as io:
            if io.is_server:
                io.serve()
                return
            with hs.open(path / "a.zarr", "r+", comm=io, **LIMITS) as store, store.step("s") as step:
                step.write("b", part(io, NEW), spread(io), chunks=CHUNKS)

    yield call
    found = stored(path / "a.zarr", "s/b")
    return "absent" if found is None else whole(found)


# ---- what is there and looks alike, changed in place -----------------------------------------------------------


@case("independent", "by_all_servers")
def a_section_of_an_array(comm: Any, path: Path, given: dict[str, Any]) -> Any:
    prepared(comm, path, lambda path, _: alone(path / "a.zarr", OLD))

    def call() -> None:
        with hs.open(path / "a.zarr", "r+", **options(comm, given)) as store:
            store.write("a", part(comm, NEW), spread(comm), section=(slice(None), slice(None)))

    yield call
    found = stored(path / "a.zarr", "a")
    assert found is not None
    return changed(found, path / "a.zarr" / "a" / ".hyperslab-update", CHUNKS[0])


@case("independent")
def what_is_appended(comm: Any, path: Path, given: dict[str, Any]) -> Any:
    """Half of the array is there."""
    half = SHAPE[0] // 2
    prepared(comm, path, lambda path, _: alone(path / "a.zarr", NEW[:half]))

    def call() -> None:
        with hs.open(path / "a.zarr", "r+", **options(comm, given)) as store:
            store.append("a", part(comm, NEW[half:]), spread(comm, NEW[half:].shape))

    yield call
    found = stored(path / "a.zarr", "a")
    assert found is not None
    return "as before" if np.array_equal(found, NEW[:half]) else whole(found)


@case("independent", "by_all_servers")
def a_raw_file_in_place(comm: Any, path: Path, given: dict[str, Any]) -> Any:
    prepared(comm, path, lambda path, _: OLD.tofile(path / "a.raw"))

    def call() -> None:
        known: Any = {"a": (SHAPE, "f8")}
        with hs.open_raw(path / "a.raw", "r+", order="C", arrays=known, **options(comm, given)) as file:
            file.write({"a": part(comm, NEW)}, spread(comm))

    yield call
    return changed(np.fromfile(path / "a.raw").reshape(SHAPE), path / ".a.raw.hyperslab-update")


# ---- reading what differs --------------------------------------------------------------------------------------


def reading(comm: Any, read: Callable[[], NDArray[Any]]) -> Any:
    """Read what is `OLD` where rank 0 looks."""
    values: list[NDArray[Any]] = []
    yield lambda: values.append(read())
    return whole(values[0], part(comm, OLD)) if values else "nothing"


def reading_store(comm: Any, path: Path, given: dict[str, Any]) -> Any:
    """Read array 'a' of a store."""

    def read() -> NDArray[Any]:
        with hs.open(path / "a.zarr", **options(comm, given)) as store:
            return store.read("a", spread(comm))

    return reading(comm, read)


def reading_raw(comm: Any, path: Path, given: dict[str, Any]) -> Any:
    """Read a raw file."""

    def read() -> NDArray[Any]:
        known: Any = {"a": (SHAPE, "f8")}
        with hs.open_raw(path / "a.raw", order="C", arrays=known, **options(comm, given)) as file:
            return file.read("a", spread(comm))

    return reading(comm, read)


def reading_npy(comm: Any, path: Path) -> Any:
    """Read an npy file."""
    return reading(comm, lambda: hs.load_npy(path / "a.npy", spread(comm), comm=comm))


@case("independent", "by_all_servers")
def reading_an_array_with_another_shape(comm: Any, path: Path, given: dict[str, Any]) -> Any:
    prepared(comm, path, lambda path, ours: alone(path / "a.zarr", OLD if ours else NEW[:40]))
    return reading_store(comm, path, given)


@case("independent")
def reading_an_array_with_another_fill_value(comm: Any, path: Path, given: dict[str, Any]) -> Any:
    prepared(comm, path, lambda path, ours: alone(path / "a.zarr", OLD if ours else NEW, fill_value=0 if ours else 5))
    return reading_store(comm, path, given)


@case("independent")
def reading_an_array_of_another_type(comm: Any, path: Path, given: dict[str, Any]) -> Any:

    def make(path: Path, ours: bool) -> None:  # noqa: FBT001
        alone(path / "a.zarr", OLD, dtype="<f8" if ours else "<i8", checksum=False)

    prepared(comm, path, make)
    return reading_store(comm, path, given)


@case("independent", "by_all_servers")
def reading_a_store_that_is_missing_elsewhere(comm: Any, path: Path, given: dict[str, Any]) -> Any:
    prepared(comm, path, lambda path, ours: alone(path / "a.zarr", OLD) if ours else None)
    return reading_store(comm, path, given)


@case("independent")
def reading_an_array_that_is_missing_elsewhere(comm: Any, path: Path, given: dict[str, Any]) -> Any:
    def make(path: Path, ours: bool) -> None:  # noqa: FBT001
        with hs.open(path / "a.zarr", "w", comm=None, durable=False) as store:
            store.write("a" if ours else "b", OLD, chunks=CHUNKS)

    prepared(comm, path, make)
    return reading_store(comm, path, given)


@case("independent", "by_all_servers")
def reading_a_raw_file_of_another_length(comm: Any, path: Path, given: dict[str, Any]) -> Any:
    """Longer elsewhere, so that all that is asked for can be read."""
    prepared(comm, path, lambda path, ours: (OLD if ours else np.concatenate([NEW, NEW])).tofile(path / "a.raw"))
    return reading_raw(comm, path, given)


@case("independent")
def reading_a_raw_file_that_is_missing_elsewhere(comm: Any, path: Path, given: dict[str, Any]) -> Any:
    prepared(comm, path, lambda path, ours: OLD.tofile(path / "a.raw") if ours else None)
    return reading_raw(comm, path, given)


@case()
def reading_an_npy_file_of_another_length(comm: Any, path: Path, given: dict[str, Any]) -> Any:
    del given
    prepared(comm, path, lambda path, ours: np.save(path / "a.npy", OLD if ours else np.concatenate([NEW, NEW])))
    return reading_npy(comm, path)


@case()
def reading_an_npy_file_in_another_order(comm: Any, path: Path, given: dict[str, Any]) -> Any:
    """With as many bytes."""
    del given
    prepared(comm, path, lambda path, ours: np.save(path / "a.npy", OLD if ours else np.asfortranarray(OLD)))
    return reading_npy(comm, path)


@case()
def reading_an_npy_file_that_is_missing_elsewhere(comm: Any, path: Path, given: dict[str, Any]) -> Any:
    del given
    prepared(comm, path, lambda path, ours: np.save(path / "a.npy", OLD) if ours else None)
    return reading_npy(comm, path)
