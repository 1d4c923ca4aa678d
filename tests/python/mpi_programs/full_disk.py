"""Makes room in a file system that has none, in which not even a record can be written.

Usage: full_disk DIRECTORY WAY [CASE...]. All bytes of the file system are used up, or all its inodes, or this process
may write no files (WAY is `bytes`, `inodes` or `limit`). Rank 0 looks with zarr-python and h5py at what is left, and
prints how many cases there were.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import numpy as np
import zarr
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
#: Steps are longer than what a file system wants for a new file.
SHAPE = (64, 512)
STEPS = ("0001", "0002", "0003")
#: Sizes of files that use up what is left [B].
FILLERS = (1 << 20, 1 << 16, 1 << 12, 1 << 9, 1)
INODES_MAX = 1 << 16
#: Calls of a class that making room takes, at most.
CALLS_MAX = 40

Change = Callable[[hs.Group], object]


def values(number: int) -> Any:
    """What an array holds."""
    return np.arange(np.prod(SHAPE, dtype=int), dtype=float).reshape(SHAPE) + 1e6 * number


def prepare(store: hs.Group) -> None:
    """Steps, and a group with an array."""
    for number, name in enumerate(STEPS):
        with store.step(name) as step:
            step.write("a", values(number), chunks=(16, 512))
            step.write("b", values(10 + number), chunks=(16, 512))
    store.write("in/c", values(7), chunks=(16, 512), attributes={"unit": "m"})


def seen(path: Path) -> dict[str, Any]:
    """All arrays as another library reads them, by the numbers that they were made of."""
    found: dict[str, Any] = {}

    def note(name: str, array: Any) -> None:
        content = np.asarray(array[...])
        found[name] = (
            int(content[0, 0] // 1e6) if np.array_equal(content, values(int(content[0, 0] // 1e6))) else "mixed"
        )

    if path.suffix == ".h5":
        with h5py.File(path) as file:
            file.visititems(lambda name, item: note(name, item) if isinstance(item, h5py.Dataset) else None)
        return found
    # Consolidated metadata, if any, tell of the same, or of what is just being removed.
    for use in (None, False):
        root = zarr.open_group(path, mode="r", use_consolidated=use)
        for name, item in root.members(max_depth=None):
            if isinstance(item, zarr.Array):
                note(name, item)
    return found


@contextmanager
def without_room(directory: Path, way: str) -> Iterator[None]:
    """Use up all that there is."""
    if way == "limit":
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
        WORLD.Barrier()
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        return
    filler = directory / "filler"
    if WORLD.rank == 0:
        filler.mkdir()
        if way == "bytes":
            with (filler / "all").open("wb", buffering=0) as file:
                for size in FILLERS:
                    with suppress(OSError):
                        while file.write(bytes(size)):
                            pass
                os.fsync(file.fileno())
            with suppress(OSError):
                for number in range(INODES_MAX):
                    (filler / f"small-{number}").write_bytes(b"x")
            (filler / "small-0").unlink(missing_ok=True)
            with suppress(OSError), (filler / "last").open("wb", buffering=0) as file:
                while file.write(b"x" * 512):
                    pass
        else:
            with suppress(OSError):
                for number in range(INODES_MAX):
                    (filler / f"small-{number}").touch()
    WORLD.Barrier()
    try:
        yield
    finally:
        WORLD.Barrier()
        if WORLD.rank == 0:
            shutil.rmtree(filler)
        WORLD.Barrier()


def removed(path: Path, change: Change, **options: Any) -> None:
    """Open it as a new program does, and change it."""
    with hs.open(path, "r+", comm=WORLD, **options) as store:
        change(store)


def left_over(directory: Path) -> list[str]:
    """What is hidden."""
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if "hyperslab" in path.name)


def error_of(run: Callable[[], object]) -> str:
    """The error of something that must fail, the same on all ranks."""
    try:
        run()
    except hs.Error as error:
        told = WORLD.allgather(str(error))
        assert len(set(told)) == 1, told
        return told[0]
    message = "there was no error"
    raise AssertionError(message)


def gone(name: str) -> Change:
    """Deletes it."""
    return lambda store: store.delete(name)


def kept(store: hs.Group) -> None:
    """Keeps the last step."""
    assert store.steps.keep(1) == list(STEPS[:2])


#: Changes, and of what is there what goes.
REMOVALS: dict[str, tuple[Change, tuple[str, ...]]] = {
    "step": (gone("0001"), ("0001/",)),
    "keep": (kept, ("0001/", "0002/")),
    "array": (gone("0002/b"), ("0002/b",)),
    "group": (gone("in"), ("in/",)),
    "nested": (gone("in/c"), ("in/c",)),
}


def removal(directory: Path, way: str, name: str, *, consolidates: bool, durable: bool) -> None:
    """Something goes out of a Zarr store, all else is there, and there is room again."""
    change, goes = REMOVALS[name]
    path = directory / "run.zarr"
    if WORLD.rank == 0:
        with hs.open(path, "w", comm=None) as store:
            prepare(store)
            if consolidates:
                store.consolidate()
    before = WORLD.bcast(seen(path) if WORLD.rank == 0 else None)
    what = f"{name} with {way} used up, consolidated {consolidates}, durable {durable}"
    with without_room(directory, way):
        # This process may write nothing at all, so that the metadata of the store stay.
        fails = way == "limit" and consolidates
        if fails:
            assert "ulimit" in error_of(lambda: removed(path, change, durable=durable)), what
        else:
            removed(path, change, durable=durable)
        if WORLD.rank == 0:
            after = seen(path)
            expected = {key: value for key, value in before.items() if fails or not key.startswith(goes)}
            assert after == expected, (what, after)
            assert left_over(directory) == [], (what, left_over(directory))
        if way != "limit" and name in ("step", "keep"):
            # As much as a step has.
            dist = hs.Distribution(SHAPE, (WORLD.size, 1), ("block", "*"))
            mine = np.ascontiguousarray(values(9)[dist.indices(WORLD.rank)[0]])
            removed(path, lambda store: store.write("new", mine, dist, chunks=(16, 512)), durable=durable)
    if WORLD.rank == 0:
        shutil.rmtree(path)
    WORLD.Barrier()


def replacing(directory: Path, way: str) -> None:
    """Mode w fails, and says how to make room; what was there is whole."""
    path = directory / "run.zarr"
    if WORLD.rank == 0:
        with hs.open(path, "w", comm=None) as store:
            prepare(store)
    before = WORLD.bcast(seen(path) if WORLD.rank == 0 else None)

    def replace() -> None:
        with hs.open(path, "w", comm=WORLD) as store:
            store.write("a", values(5))

    with without_room(directory, way):
        told = error_of(replace)
        assert "delete()" in told or way == "limit", told
        assert "steps.keep()" in told or way == "limit", told
        if WORLD.rank == 0:
            assert seen(path) == before
    if WORLD.rank == 0:
        shutil.rmtree(path)
    WORLD.Barrier()


def hdf5(directory: Path, way: str) -> None:
    """Deleting makes no room in a file: it is done or not, and the error says what helps."""
    path = directory / "run.h5"
    if WORLD.rank == 0:
        with hs.open(path, "w", comm=None) as file:
            file.write("a", values(1))
            file.write("b", values(2))
    WORLD.Barrier()
    with without_room(directory, way):
        told = error_of(lambda: removed(path, gone("b")))
        assert ("ulimit" if way == "limit" else "h5repack") in told, told
        if WORLD.rank == 0:
            assert seen(path) == {"a": 1, "b": 2}
    if WORLD.rank == 0:
        path.unlink()
    WORLD.Barrier()


def cleaned(directory: Path, way: str) -> None:
    """What a program left that was killed goes by the command."""
    path = directory / "run.zarr"
    if WORLD.rank == 0:
        with hs.open(path, "w", comm=None) as store:
            prepare(store)
        program = (
            "import os, signal, sys, hyperslab as hs, numpy as np\n"
            "with hs.open(sys.argv[1], 'r+') as store, store.step('0009') as step:\n"
            "    step.write('a', np.ones((64, 96)))\n"
            "    os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        subprocess.run([sys.executable, "-c", program, str(path)], check=False, timeout=60, env=alone())
        assert left_over(directory) != []
    before = WORLD.bcast(seen(path) if WORLD.rank == 0 else None)
    with without_room(directory, way):
        if WORLD.rank == 0:
            command = [sys.executable, "-m", "hyperslab", "clean", str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=alone())
            assert done.returncode == 0, done.stderr
            assert left_over(directory) == []
            assert seen(path) == before
            shutil.rmtree(path)
    WORLD.Barrier()


#: Deletes a step, and is killed at a call.
DYING = """
import sys
from pathlib import Path
import hyperslab as hs
from fault_library import Fault, Faults

path, name, first = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
faults = Faults()
with hs.open(path, "r+", comm=None) as store:
    faults.watch(path.parent)
    faults.arm(Fault(name, first, "kill"))
    store.delete("0001")
    faults.rest()
"""


def killed(directory: Path, way: str) -> None:
    """A program that is killed at any call while it makes room leaves the step or not, and all else."""
    path = directory / "run.zarr"
    for consolidates in (False, True):
        for name in ("rename", "unlink", "write", "truncate", "sync"):
            for first in range(1, CALLS_MAX):
                if WORLD.rank == 0:
                    with hs.open(path, "w", comm=None) as store:
                        prepare(store)
                        if consolidates:
                            store.consolidate()
                before = WORLD.bcast(seen(path) if WORLD.rank == 0 else None)
                status = 0
                with without_room(directory, way):
                    if WORLD.rank == 0:
                        command = [sys.executable, "-c", DYING, str(path), name, str(first)]
                        status = subprocess.run(command, check=False, timeout=60, env=alone()).returncode
                        what = f"killed at {name} {first}, {way} used up, consolidated {consolidates}: {status}"
                        left = {key: value for key, value in before.items() if not key.startswith("0001/")}
                        assert seen(path) in ((left, before) if status else (left,)), (what, seen(path))
                status = WORLD.bcast(status)
                if WORLD.rank == 0:
                    subprocess.run([sys.executable, "-m", "hyperslab", "clean", path], check=True, env=alone())
                    assert [one for one in left_over(directory) if ".zarr.json." not in one] == [], left_over(directory)
                    assert seen(path) in (left, before)
                    shutil.rmtree(path)
                WORLD.Barrier()
                if status == 0:
                    break


def alone() -> dict[str, str]:
    """The environment without that of a launcher."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "OMPI", "HYDRA", "MPI"))}


def main() -> None:
    """All cases, or those that are named."""
    directory, way, *chosen = Path(sys.argv[1]), *sys.argv[2:]
    count = 0
    for name in REMOVALS:
        for consolidates, durable in ((False, True), (True, False), (True, True)):
            if not chosen or f"{name}-{int(consolidates)}-{int(durable)}" in chosen:
                removal(directory, way, name, consolidates=consolidates, durable=durable)
                count += 1
    for other in (replacing, hdf5, cleaned):
        if not chosen or other.__name__ in chosen:
            other(directory, way)
            count += 1
    if "killed" in chosen:
        killed(directory, way)
        count += 1
    if WORLD.rank == 0:
        print(f"{count} cases")


if __name__ == "__main__":
    main()
