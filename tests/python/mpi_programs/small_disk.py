"""A file system that is full, and then one that is read-only: all ranks hear of it, and what was there stays.

Usage: small_disk DIRECTORY, which is a file system of 8 MiB that this program may mount once more
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
from mpi4py import MPI

COMM = MPI.COMM_WORLD
#: Needs 32 MiB.
LARGE = hs.Distribution((2048, 2048), (COMM.size,), ("block", "*"))
SMALL = hs.Distribution((256, 256), (COMM.size,), ("cyclic", "*"))


def fails(call: Callable[[], Any], *words: str, comm: Any = COMM) -> None:
    """Check that all ranks get the same StorageError."""
    try:
        call()
    except hs.StorageError as error:
        texts = comm.allgather(str(error))
        assert len(set(texts)) == 1, texts
        assert [word for word in words if word not in texts[0]] == [], texts[0]
    else:
        raise AssertionError("it did not fail")


def small_part() -> Any:
    """This rank's part of the array 'old'."""
    return np.add.outer(*SMALL.indices(COMM)).astype(float)


def step(store: hs.Group) -> None:
    """Write a step that is too large."""
    with store.step("0001") as group:
        group.write("small", small_part(), SMALL)
        group.write("large", LARGE.zeros(COMM), LARGE)


def raw(path: Path) -> None:
    """Write a file that is too large."""
    with hs.open_raw(path, "w", comm=COMM) as file:
        file.write({"a": LARGE.zeros(COMM)}, LARGE)


def full(directory: Path) -> None:
    """What is written does not fit."""
    full_words = ("No space left on device", "hint:", "free space")
    with hs.open(directory / "a.zarr", "w", comm=COMM) as store:
        store.write("old", small_part(), SMALL)
        hs.save_npy(directory / "a.npy", small_part(), SMALL, comm=COMM)
        for strategy in (None, "server-directed", "root-gather"):
            fails(partial(store.write, "new", LARGE.zeros(COMM), LARGE, strategy=strategy), *full_words)
        fails(lambda: step(store), *full_words)
        fails(lambda: raw(directory / "a.raw"), *full_words)
        fails(lambda: hs.save_npy(directory / "a.npy", LARGE.zeros(COMM), LARGE, comm=COMM), *full_words)
        assert (store.arrays(), store.groups()) == (["old"], [])
        # The place is free again, so that smaller things fit.
        store.write("new", small_part(), SMALL)
        assert np.array_equal(store.read("new", SMALL), small_part())
    COMM.barrier()
    assert sorted(found.name for found in directory.iterdir()) == ["a.npy", "a.zarr"]


def served(directory: Path) -> None:
    """The disk of a dedicated server is full, which clients hear of when they publish, or with the next call."""
    large, small = (1024, 4096), (64, 64)
    with hs.dedicate(COMM, 1) as io:
        if io.is_server:
            io.serve()
            return
        dist = hs.Distribution(large, (io.size,), ("block", "*"))
        little = hs.Distribution(small, (io.size,), ("block", "*"))

        def publish(store: hs.Group) -> None:
            with store.step("0002") as group:
                group.write("small", little.zeros(io), little)
                report = group.write("large", dist.zeros(io), dist)
                assert report.strategy == "server-directed"

        words = ("No space left on device", "hint:", "on server 0 (rank 2 of the communicator)")
        with hs.open(directory / "a.zarr", "r+", comm=io) as store:
            fails(lambda: publish(store), "publishing step '0002'", *words, comm=io.comm)
            store.write("large", dist.zeros(io), dist)
            fails(store.flush, *words, comm=io.comm)
            assert (store.arrays(), store.groups()) == (["new", "old"], [])
            store.write("small", little.zeros(io), little)
        io.barrier()
    assert sorted(found.name for found in directory.iterdir()) == ["a.npy", "a.zarr"]


def read_only(directory: Path) -> None:
    """The same files through another mount, where nothing can be written at all; reading goes on."""
    mirror = directory.with_name("mirror")
    if COMM.rank == 0:
        mirror.mkdir()
        subprocess.run(["mount", "--bind", directory, mirror], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", mirror], check=True)
    COMM.barrier()
    directory = mirror
    words = ("Read-only file system",)
    fails(lambda: hs.open(directory / "b.zarr", "w", comm=COMM), *words)
    fails(lambda: raw(directory / "b.raw"), *words)
    with hs.open(directory / "a.zarr", "r+", comm=COMM) as store:
        fails(lambda: store.write("newer", small_part(), SMALL), *words)
        fails(lambda: store.step("0001"), *words)
        fails(lambda: store.write("old", small_part(), SMALL, section=(slice(0, 256),) * 2), *words)
    with hs.open(directory / "a.zarr", comm=COMM) as store:
        assert np.array_equal(store.read("old", SMALL), small_part())
    assert np.array_equal(hs.load_npy(directory / "a.npy", SMALL, comm=COMM), small_part())


if __name__ == "__main__":
    full(Path(sys.argv[1]))
    served(Path(sys.argv[1]))
    COMM.barrier()
    read_only(Path(sys.argv[1]))
    COMM.barrier()
    print("the disk was full, then read-only")
