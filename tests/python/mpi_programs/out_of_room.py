"""Fills a small file system so that an operation runs out of room, at each place, and judges what the error says.

Usage: out_of_room DIRECTORY TASK, where TASK is JSON:
    {"seed": number, "cases": how many, or null for all, "step": bytes, "of": "blocks", "inodes" or "limit",
     "rooms": what is left in bytes, where that is not all in steps}

What runs out is blocks of the file system, its inodes (one is left for each step of bytes), or what one file of this
process may have (RLIMIT_FSIZE).

What was there is old, what is written is new. An operation that fails leaves all of an array old, or the error and
``unfinished`` name it, in the opening in which it happened and in the next one. Where nothing changed, no marker is
left. Once there is room, the same call ends what was unfinished.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import netCDF4
import numpy as np
import zarr
from mpi4py import MPI
from numpy.typing import NDArray

WORLD = MPI.COMM_WORLD
#: Elements of 8 B: eight chunks.
ELEMENTS = 32768
CHUNK = 4096
#: In the middle of chunks at both ends.
SECTION = slice(1000, 30000)
OLD, NEW = 1.0, 2.0
#: Bytes for which one inode is left where those run out.
STEP = 4096
SAYS_TORN = "may now hold a mix of old and new elements"


def spread(count: int) -> hs.Distribution:
    """Who holds what of so many elements."""
    return hs.Distribution((count,), (WORLD.size,), ("block",))


def part(count: int, value: float) -> NDArray[np.float64]:
    """This rank's part of so many equal elements."""
    return np.full(spread(count).local_shape(WORLD.rank), value)


@dataclass
class Place:
    """One kind of place with an array ``a`` in it."""

    name: str
    suffix: str
    #: The elements, as a library that knows nothing of hyperslab reads them.
    read: Callable[[Path], NDArray[np.float64]]
    #: How the array is stored, as options of a write.
    options: dict[str, Any]

    def path(self, directory: Path) -> Path:
        """Where it lies."""
        return directory / f"s{self.suffix}"

    def make(self, path: Path) -> None:
        """Make it anew with old elements."""
        if self.suffix == ".raw":
            if WORLD.rank == 0:
                # With holes, which need room when they are written.
                with path.open("wb") as file:
                    file.truncate(8 * ELEMENTS)
            WORLD.barrier()
            return
        with hs.open(path, "w", comm=WORLD) as opened:
            opened.write("a", part(ELEMENTS, OLD), spread(ELEMENTS), **self.options)

    def open(self, path: Path, mode: str, *, durable: bool) -> Any:
        """Open it on all ranks."""
        if self.suffix == ".raw":
            return hs.open_raw(path, mode, comm=WORLD, arrays={"a": ((ELEMENTS,), "<f8")}, durable=durable)
        return hs.open(path, mode, comm=WORLD, durable=durable)

    @property
    def old(self) -> float:
        """What elements are before."""
        return 0.0 if self.suffix == ".raw" else OLD


def read_zarr(path: Path) -> NDArray[np.float64]:
    return np.asarray(zarr.open_group(path, mode="r")["a"][:])


def read_hdf5(path: Path) -> NDArray[np.float64]:
    # The writer has it locked.
    with h5py.File(path, "r", locking=False) as file:
        return np.asarray(file["a"][:])


def read_netcdf(path: Path) -> NDArray[np.float64]:
    with netCDF4.Dataset(path) as file:
        return np.ma.getdata(file["a"][:])


def read_raw(path: Path) -> NDArray[np.float64]:
    return np.fromfile(path, "<f8")


PLACES = (
    Place("zarr", ".zarr", read_zarr, {"chunks": (CHUNK,)}),
    Place("zarr-encoded", ".zarr", read_zarr, {"chunks": (CHUNK,), "zstd": 1}),
    Place("hdf5", ".h5", read_hdf5, {}),
    Place("hdf5-chunks", ".h5", read_hdf5, {"chunks": (CHUNK,)}),
    Place("hdf5-encoded", ".h5", read_hdf5, {"chunks": (CHUNK,), "compression": "gzip"}),
    Place("netcdf", ".nc", read_netcdf, {}),
    Place("raw", ".raw", read_raw, {}),
)


def section(opened: Any, place: Place) -> None:
    """Change a part of the array in place."""
    count = SECTION.stop - SECTION.start
    opened.write("a", noise(count), spread(count), section=SECTION)


def whole(opened: Any, place: Place) -> None:
    """Change all of the array in place."""
    opened.write("a", noise(ELEMENTS), spread(ELEMENTS), section=slice(0, ELEMENTS))


def another(opened: Any, place: Place) -> None:
    """Write one more array, or a step with one."""
    opened.write("b", part(ELEMENTS, NEW), spread(ELEMENTS), **place.options)


def step(opened: Any, place: Place) -> None:
    """Publish a step."""
    with opened.step("t1") as made:
        made.write("b", part(ELEMENTS, NEW), spread(ELEMENTS), **place.options)


def attribute(opened: Any, place: Place) -> None:
    """Set an attribute that is longer than a block."""
    opened.attrs["long"] = "x" * 20000


#: Which places can do it, and whether it changes what is there.
OPERATIONS: dict[str, tuple[Callable[[Any, Place], None], Callable[[Place], bool], bool]] = {
    "section": (section, lambda _: True, True),
    "whole": (whole, lambda _: True, True),
    "another": (another, lambda place: place.suffix in (".zarr", ".h5"), False),
    "step": (step, lambda place: place.suffix in (".zarr", ".h5"), False),
    "attribute": (attribute, lambda place: place.suffix in (".zarr", ".h5"), False),
}


def noise(count: int) -> NDArray[np.float64]:
    """New elements that no codec makes much shorter."""
    mine = part(count, NEW)
    return mine + np.random.default_rng(WORLD.rank).random(len(mine))


def without_blocks(directory: Path, left: int) -> None:
    """Take all of the file system but so many bytes."""
    with (directory.parent / "filler").open("wb", buffering=0) as file, suppress(OSError):
        # Most of it at once, and then what is still free: a file system needs some for itself, or gives some back.
        os.posix_fallocate(file.fileno(), 0, max(4096, (shutil.disk_usage(directory).free - left) // 4096 * 4096))
        file.seek(0, os.SEEK_END)
        while shutil.disk_usage(directory).free - left >= 4096:
            file.write(bytes(4096))
            os.fsync(file.fileno())


def without_inodes(directory: Path, left: int) -> None:
    """Take all inodes but so many."""
    above = directory.parent / "fillers"
    above.mkdir(exist_ok=True)
    for number in range(os.statvfs(directory).f_favail - left):
        (above / str(number)).touch()


@contextmanager
def filled(directory: Path, left: int, of: str) -> Iterator[None]:
    """Leave so many bytes of what runs out."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    if of == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (left, before[1]))
    elif WORLD.rank == 0:
        without_blocks(directory, left) if of == "blocks" else without_inodes(directory, left // STEP)
    WORLD.barrier()
    try:
        yield
    finally:
        WORLD.barrier()
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        if WORLD.rank == 0:
            (directory.parent / "filler").unlink(missing_ok=True)
            shutil.rmtree(directory.parent / "fillers", ignore_errors=True)
        WORLD.barrier()


def hidden(directory: Path) -> list[str]:
    """What is there beside the data."""
    return sorted(str(found.relative_to(directory)) for found in directory.rglob("*") if "hyperslab" in found.name)


def judge(place: Place, path: Path, error: str | None, unfinished: tuple[str, ...], *, changes: bool) -> list[str]:
    """What is wrong with what an operation left, as seen before there is room again."""
    wrong = []
    found = place.read(path)
    kept = bool((found == place.old).all())
    outside = np.ones(ELEMENTS, bool)
    outside[SECTION] = False
    if ((found != place.old) & (found < NEW)).any():
        wrong.append(f"elements are neither old nor new: {np.unique(found)[:5]}")
    if not changes and not kept:
        wrong.append("what was there before has changed")
    torn = error is not None and SAYS_TORN in error
    markers = [name for name in hidden(path.parent) if name.endswith("hyperslab-update")]
    if error is not None and "nothing" in error and not kept:
        wrong.append(f"the error says that nothing changed: {error}")
    if error is not None and not kept and not (torn and unfinished):
        wrong.append(f"elements have changed; the error says so: {torn}; unfinished: {unfinished}: {error}")
    if torn and kept:
        wrong.append(f"nothing has changed, and the error says otherwise: {error}")
    if error is not None and torn != bool(unfinished):
        wrong.append(f"the error and unfinished differ: {error}; {unfinished}")
    # One that rests between two changes says so, and goes with the opening.
    told = [name for name in markers if b'"rests"' not in (path.parent / name).read_bytes()]
    if error is not None and not torn and told:
        wrong.append(f"nothing has changed, and a marker is left: {told}")
    return wrong


def carry_out(
    directory: Path, place: Place, operation: str, left: int, of: str, *, durable: bool
) -> tuple[str, list[str]]:
    """One case; what it ended with, and what is wrong with that on rank 0."""
    run, _, changes = OPERATIONS[operation]
    path = place.path(directory)
    place.make(path)
    opened = place.open(path, "r+", durable=durable)
    error, wrong = None, []
    with filled(directory, left, of):
        try:
            run(opened, place)
        except hs.Error as failure:
            error = str(failure)
        errors = WORLD.gather(error)
        unfinished = tuple(opened.unfinished)
        every = WORLD.gather(unfinished)
        if errors is not None and every is not None:
            if len(set(errors)) > 1 or len(set(every)) > 1:
                wrong.append(f"ranks differ: {errors} {every}")
            wrong += judge(place, path, error, unfinished, changes=changes)
    ended = "none" if error is None else "torn" if SAYS_TORN in error else "error"
    if error is not None:
        # While it is open for writing, HDF5 files are read by nobody else; half of the others are opened anew, too.
        if again := place.suffix == ".h5" or left % 8192 == 0:
            opened.close()
        with place.open(path, "r", durable=durable) as reader:
            if bool(reader.unfinished) != bool(unfinished):
                wrong.append(f"a reader is told {reader.unfinished}, the writer {unfinished}")
        if again:
            opened = place.open(path, "r+", durable=durable)
        try:
            run(opened, place)
        except hs.Error as failure:
            wrong.append(f"with room, it fails: {failure}")
        if opened.unfinished:
            wrong.append(f"written again, and still unfinished: {opened.unfinished}")
    opened.close()
    if WORLD.rank == 0:
        if changes:
            cut = slice(None) if operation == "whole" else SECTION
            if not (place.read(path)[cut] >= NEW).all():
                wrong.append("not all is new in the end")
        if left_behind := hidden(directory):
            wrong.append(f"left behind: {left_behind}")
    return ended, wrong


def main() -> None:
    warnings.simplefilter("ignore")
    directory, task = Path(sys.argv[1]) / "work", json.loads(Path(sys.argv[2]).read_text())
    # What an array takes, and metadata.
    rooms = task.get("rooms", range(0, 8 * ELEMENTS * 9 // 8, task["step"]))
    every = [case for case in product(PLACES, OPERATIONS, (False, True), rooms) if OPERATIONS[case[1]][1](case[0])]
    random = np.random.default_rng(task["seed"])
    chosen = (
        every if task["cases"] is None else [every[i] for i in random.choice(len(every), task["cases"], replace=False)]
    )
    ended: Counter[str] = Counter()
    failures = 0
    for place, operation, durable, left in chosen:
        if WORLD.rank == 0:
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir()
        WORLD.barrier()
        how, wrong = carry_out(directory, place, operation, left, task.get("of", "blocks"), durable=durable)
        ended[how] += 1
        for told in wrong:
            failures += 1
            print(f"rank {WORLD.rank}: {place.name} {operation} durable={durable} {left} B left: {told}", flush=True)
    if WORLD.rank == 0:
        shutil.rmtree(directory)
        print(f"{len(chosen)} cases on {WORLD.size} ranks, ended with {dict(sorted(ended.items()))}")
    failures = WORLD.allreduce(failures)
    assert failures == 0, f"{failures} went wrong, seed {task['seed']}"


if __name__ == "__main__":
    main()
