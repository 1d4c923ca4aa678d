"""All cases of `new_file_cases` under MPI; then each rank ends.

Usage: new_files DIRECTORY ENDING
"""

from __future__ import annotations

import sys
from pathlib import Path

from mpi4py import MPI

from new_file_cases import leave, program

if __name__ == "__main__":
    program(MPI.COMM_WORLD, Path(sys.argv[1]))
    MPI.COMM_WORLD.barrier()
    if MPI.COMM_WORLD.rank == 0:
        print("all cases of new files", flush=True)
    MPI.COMM_WORLD.barrier()
    leave(sys.argv[2])
