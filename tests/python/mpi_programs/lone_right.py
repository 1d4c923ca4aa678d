"""Ranks that MPI knows of write together, and each by itself where it says so; also one that is spawned.

Usage: lone_right DIRECTORY
"""

from __future__ import annotations

import sys
from pathlib import Path

import hyperslab as hs
import numpy as np
from mpi4py import MPI

from mpi_programs.plain import outcome


def main() -> None:
    """See above."""
    comm, directory = MPI.COMM_WORLD, Path(sys.argv[1])
    errors = [outcome(lambda: hs.open(directory / "all.zarr", "w", comm=comm).close())]
    for alone in (MPI.COMM_SELF, comm.Split(comm.rank), None):
        own = directory / f"{comm.rank}.zarr"
        errors.append(outcome(lambda alone=alone, own=own: hs.open(own, "w", comm=alone).close()))
    with hs.open(directory / "all.h5", "a", comm=comm) as file:
        file.write("a", np.ones(4), hs.Distribution.replicated((4,), comm.size))
    if comm.rank == 0:
        child = MPI.COMM_SELF.Spawn(sys.executable, ["-m", "mpi_programs.lone", "spawned", str(directory)], 1)
        size, error = child.recv(source=0)
        child.Disconnect()
        assert size == 1
        errors.append(error)
    assert set(errors) == {"no error"}, errors
    if comm.rank == 0:
        print("all could write")


if __name__ == "__main__":
    main()
