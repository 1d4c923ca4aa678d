"""Any intracommunicator: split ones at the same time as the world, Cartesian ones, duplicates, and freed ones.

Usage: communicators DIRECTORY
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
from mpi4py import MPI

from error_cases import attempt

WORLD = MPI.COMM_WORLD


def ramp(shape: tuple[int, ...], start: float) -> np.ndarray:
    """A global array that can be told from others."""
    return start + np.arange(np.prod(shape, dtype=int), dtype=float).reshape(shape)


def there_and_back(comm: Any, path: Path | hs.MemoryStore, start: float) -> None:
    """Write and read an array on a communicator; its ranks need not be those of the world."""
    values = ramp((7, 9), start)
    dist = hs.Distribution.block(values.shape, comm.size)
    other = hs.Distribution(values.shape, (comm.size,), ("*", "cyclic"))
    with hs.open(path, "w", comm=comm, durable=False) as store:
        store.write("a", np.ascontiguousarray(values[dist.slices(comm)]), dist)
        found = store.read("a", other)
    assert np.array_equal(found, values[np.ix_(*other.indices(comm))]), f"rank {comm.rank} of {comm.size}"


def interleaved(directory: Path) -> None:
    """The halves of the world and the world itself have stores open at once; calls alternate."""
    half = WORLD.Split(WORLD.rank % 2, -WORLD.rank)
    values = {"world": ramp((12, 5), 0.0), "half": ramp((6, 4, 3), 1000.0 * (1 + WORLD.rank % 2))}
    of_world = hs.Distribution((12, 5), (WORLD.size,), ("cyclic", "*"))
    of_half = hs.Distribution((6, 4, 3), (half.size,), ("*", "block", "*"))
    outer = hs.open(directory / "world.zarr", "w", comm=WORLD, durable=False)
    inner = hs.open(directory / f"half{WORLD.rank % 2}.zarr", "w", comm=half, durable=False)
    for number in range(4):
        # One half is a call ahead of the other whenever the world meets.
        for _ in range(1 + WORLD.rank % 2):
            inner.write(f"a{number}", values["half"][of_half.slices(half)] + number, of_half, overwrite=True)
        outer.write(f"a{number}", values["world"][of_world.slices(WORLD)] + number, of_world)
    for number in reversed(range(4)):
        found = outer.read(f"a{number}", of_world)
        assert np.array_equal(found, values["world"][of_world.slices(WORLD)] + number)
        assert np.array_equal(inner.read(f"a{number}"), values["half"] + number)
    inner.close()
    outer.close()
    half.Free()


def in_memory() -> None:
    """A store in memory is refused by several processes, on all of them; one process may have it, also under MPI."""
    memory = hs.MemoryStore()
    calls = {
        "store": lambda: hs.open(memory, "w", comm=WORLD),
        "raw file": lambda: hs.open_raw(memory / "a.raw", "w", comm=WORLD),
        "npy file": lambda: hs.save_npy(memory / "a.npy", np.zeros(4), hs.Distribution.block((4,), 1), comm=WORLD),
        "npy file to read": lambda: hs.load_npy(memory / "a.npy", comm=WORLD),
        # A rank that gives a path hears of those that do not.
        "mixed": lambda: hs.open(memory if WORLD.rank == 1 else "nowhere.zarr", "w", comm=WORLD),
    }
    for name, call in calls.items():
        kind, text = attempt(call)
        assert kind == "UnsupportedError", f"{name}: {text}"
        for words in (f"{WORLD.size} processes", "lives in one process", "hint:", "/dev/shm"):
            assert words in text, f"{name}: {text}"
        assert len(set(WORLD.allgather(text))) == 1
    assert not list(memory)
    assert not Path("nowhere.zarr").exists()
    there_and_back(MPI.COMM_SELF, memory, float(WORLD.rank))
    assert "a/zarr.json" in memory


def many(directory: Path) -> None:
    """Communicators that come and go: the package's duplicates go with them, so that they never run out."""
    for number in range(40):
        comm = WORLD.Dup() if number % 2 else WORLD.Split(0, WORLD.size - WORLD.rank)
        if number < 4:
            there_and_back(comm, directory / f"many{number}.zarr", float(number))
        else:
            hs.open(directory / "many0.zarr", comm=comm).close()
        if number % 3 == 0:
            hs.release(comm)
        comm.Free()


def main() -> None:
    """Run all."""
    directory = Path(sys.argv[1])
    interleaved(directory)
    cart = WORLD.Create_cart([WORLD.size // 2, 2], periods=[True, False], reorder=True)
    there_and_back(cart, directory / "cart.zarr", 1.0)
    rows = cart.Sub([False, True])
    there_and_back(rows, directory / f"row{cart.rank // 2}.zarr", 2.0)
    if WORLD.rank == 1:
        there_and_back(MPI.COMM_SELF, directory / "self.zarr", 3.0)
    graph = WORLD.Create_group(WORLD.group.Excl([0])) if WORLD.rank else MPI.COMM_NULL
    if graph != MPI.COMM_NULL:
        there_and_back(graph, directory / "without0.zarr", 4.0)
    in_memory()
    many(directory)
    parts: Any = WORLD.Split(int(WORLD.rank == 0), 0)
    inter = parts.Create_intercomm(0, WORLD, 1 if WORLD.rank == 0 else 0)
    kind, text = attempt(lambda: hs.open(directory / "inter.zarr", "w", comm=inter))
    assert kind == "InvalidError", text
    assert "intercommunicator" in text
    WORLD.barrier()
    if WORLD.rank == 0:
        print("all communicators")


if __name__ == "__main__":
    main()
