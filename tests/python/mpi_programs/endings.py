"""One rank ends its program, in several ways, while the others make a collective call; they write down what they got.

Usage: endings SCENARIO DIRECTORY
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np

from mpi_programs.limits import noted
from telling import tell

#: The rank that ends.
ODD = 1
#: How long the others would wait for it [s].
ARRIVAL_SECONDS = 60.0
#: How long they wait for the first call on a communicator that one of them never makes [s].
FIRST_SECONDS = 2.0


def write(store: hs.Group, comm: Any, name: str) -> None:
    """Write an array of the rank numbers."""
    dist = hs.Distribution((64, 64), (comm.size,), ("block", "*"))
    store.write(name, np.full(dist.local_shape(comm), float(comm.rank)), dist)


def main() -> None:
    """Run under MPI."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    scenario, directory = sys.argv[1], Path(sys.argv[2])

    def done(result: dict[str, Any]) -> None:
        tell(directory / f"rank{comm.rank}.json", result)
        # Nobody can finalize MPI without the rank that has ended.
        os._exit(0)

    if scenario == "first":
        if comm.rank == ODD:
            time.sleep(30)
            os._exit(0)
        done(noted(lambda: hs.open(directory / "a.zarr", "w", comm=comm, arrival_seconds=FIRST_SECONDS)))
    store = hs.open(directory / "a.zarr", "w", comm=comm, arrival_seconds=ARRIVAL_SECONDS)
    write(store, comm, "before")
    if scenario == "finalized":
        comm.Barrier()
        MPI.Finalize()
        rank = int(os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0")))
        result = noted(lambda: store.write("a", np.zeros((8, 8)), hs.Distribution.replicated((8, 8), store._comm.size)))
        tell(directory / f"rank{rank}.json", result)
        os._exit(0)
    if scenario == "caught" and comm.rank == ODD:
        try:
            raise ZeroDivisionError
        except ZeroDivisionError:
            time.sleep(0.5)
    elif comm.rank == ODD:
        time.sleep(0.5)
        if scenario == "raises":
            message = "the physics went wrong"
            raise ZeroDivisionError(message)
        sys.exit(0)
    done(noted(lambda: write(store, comm, "a")))


if __name__ == "__main__":
    main()
