"""Writes an array on all ranks, and again through a dedicated server; the environment says where to record."""

from __future__ import annotations

import sys
from pathlib import Path

import hyperslab as hs
import numpy as np
from mpi4py import MPI

SHAPE = (24, 16)


def write(path: Path, comm: MPI.Comm | hs.ServedComm) -> None:
    dist = hs.Distribution(SHAPE, (comm.size, 1), ("block", "*"))
    with hs.open(path, "w", comm=comm) as store, hs.trace.span("nothing much", comm=comm):
        store.write("rho", np.ones(dist.local_shape(comm.rank)), dist, chunks=(8, 16))


if __name__ == "__main__":
    write(Path(sys.argv[1]), MPI.COMM_WORLD)
    with hs.dedicate(MPI.COMM_WORLD, 1) as io:
        if io.is_server:
            io.serve()
        else:
            write(Path(sys.argv[1]), io)
