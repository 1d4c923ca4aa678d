"""All cases of `server_cases`.

Usage: servers LEVEL DIRECTORY
"""

from __future__ import annotations

import sys
from pathlib import Path

import mpi4py

from server_cases import CASES, a_write_returns_early


def main() -> None:
    """Run under MPI."""
    level, directory = sys.argv[1], Path(sys.argv[2])
    mpi4py.rc.thread_level = level
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    for name, case in CASES.items():
        if level != "multiple" and case is a_write_returns_early:
            continue
        path = directory / name
        path.mkdir(exist_ok=True)
        comm.barrier()
        case(comm, path)
        comm.barrier()
    if comm.rank == 0:
        print(f"all of servers on {comm.size} ranks")


if __name__ == "__main__":
    main()
