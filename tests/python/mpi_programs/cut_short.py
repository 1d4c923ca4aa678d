"""Ranks that read a file which another program makes anew and cuts short all the time.

Usage: cut_short DIRECTORY SECONDS

Each read gives what is in the file, or fails on all ranks alike; nobody dies of it. Prints how often either happened.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
from numpy.typing import NDArray

SHAPE = (400, 300, 16)

#: Makes the file anew, lets it be for a while, and cuts it to somewhere in its middle.
NEIGHBOUR = """
import os, sys, time
path = sys.argv[1]
content = open(path, "rb").read()
number = 0
while True:
    number += 1
    with open(path + ".new", "wb") as file:
        file.write(content)
    os.rename(path + ".new", path)
    time.sleep(number % 4 * 0.005)
    os.truncate(path, number * 7919 % len(content))
    time.sleep(number % 3 * 0.002)
"""


def numbers() -> NDArray[np.float64]:
    """What is in the file, without a zero."""
    return np.arange(1.0, 1.0 + np.prod(SHAPE)).reshape(SHAPE)


def read_all_the_time(comm: Any, path: Path, seconds: float) -> tuple[int, int]:
    """How many reads were right, and how many failed."""
    expected = numbers()
    distributions = [
        hs.Distribution.block(SHAPE, comm.size),
        hs.Distribution(SHAPE, (comm.size,), ("*", "*", "cyclic")),
    ]
    right = failed = 0
    until = time.monotonic() + seconds
    while comm.bcast(time.monotonic() < until):
        dist = distributions[(right + failed) % 2]
        part = expected[np.ix_(*dist.indices(comm.rank))]
        out = np.full(part.shape, -1.0)
        error = ""
        try:
            with hs.open_raw(path, order="C", arrays={"a": (SHAPE, "f8")}, comm=comm) as file:
                file.read("a", dist, out=out)
        except hs.Error as caught:
            error = type(caught).__name__
        ends = comm.allgather(error)
        assert len(set(ends)) == 1, f"ranks ended as {ends}"
        if error:
            failed += 1
            continue
        assert np.array_equal(out, part), "a read gave what never was in the file"
        right += 1
    return right, failed


def main() -> None:
    """Run under MPI."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    path = Path(sys.argv[1]) / "cut.raw"
    neighbour = None
    if comm.rank == 0:
        numbers().tofile(path)
        neighbour = subprocess.Popen([sys.executable, "-c", NEIGHBOUR, str(path)])
    comm.barrier()
    try:
        right, failed = read_all_the_time(comm, path, float(sys.argv[2]))
    finally:
        if neighbour is not None:
            neighbour.kill()
            neighbour.wait()
    if comm.rank == 0:
        print(f"{right} right, {failed} failed")


if __name__ == "__main__":
    main()
