"""One rank has left a communicator, or frees it while the others are in a call; no rank waits for another.

Usage: freed SCENARIO DIRECTORY
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import hyperslab as hs
import numpy as np
import pytest
from hyperslab.comm import existing
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
ODD = 1
#: How long ranks would wait for each other in a call [s].
ARRIVAL_SECONDS = 60.0
#: That no rank waits: freeing waits for 10 s at most, and a busy machine takes its time [s].
SOON_SECONDS = 5.0


def main() -> None:
    """Run under MPI."""
    scenario, directory = sys.argv[1], Path(sys.argv[2])
    comm = WORLD.Dup()
    file = hs.open(directory / "a.h5", "w", comm=comm, arrival_seconds=ARRIVAL_SECONDS, durable=False)
    WORLD.Barrier()
    began = time.monotonic()
    if scenario == "left" and comm.rank == ODD:
        member = existing(comm)
        assert member is not None
        member.leave("the physics went wrong")
    if scenario == "elsewhere" and comm.rank != ODD:
        with pytest.raises(hs.DisagreementError, match="freeing the communicator on rank 1"):
            file.write("a", np.zeros(4), hs.Distribution.replicated((4,), comm.size))
    comm.Free()
    took = time.monotonic() - began
    assert took < SOON_SECONDS, f"rank {comm.rank}: {took:.1f} s"
    WORLD.Barrier()
    if WORLD.rank == 0:
        print("no rank waited", flush=True)
    hs.finalize()


if __name__ == "__main__":
    main()
