"""The same dump again and again, on a machine that is far slower than its profile says.

Usage: trials DIRECTORY; prints the ways that were used, in their order
"""

from __future__ import annotations

import sys
from pathlib import Path

import hyperslab as hs
import numpy as np
from mpi4py import MPI

SHAPE = (1024, 2048)
TIMES = 12


def main() -> None:
    comm, path = MPI.COMM_WORLD, Path(sys.argv[1]) / "dump.raw"
    dist = hs.Distribution(SHAPE, (comm.size,), ("cyclic", "*"))
    whole = np.arange(np.prod(SHAPE), dtype="f8").reshape(SHAPE)
    used = []
    for turn in range(TIMES):
        with hs.open_raw(path, "w", comm=comm, order="C", durable=False) as file:
            report = file.write({"a": whole[dist.slices(comm)] + turn}, dist)
        used.append((report.strategy, *report.servers, report.subchunk_bytes))
        assert comm.allgather(used[-1]) == [used[-1]] * comm.size
        if comm.rank == 0:
            assert np.array_equal(np.fromfile(path), whole.ravel() + turn)
        comm.barrier()
    if comm.rank == 0:
        print(*used, sep="\n")


main()
