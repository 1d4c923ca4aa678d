"""Random selections, on ranks that are processes."""

from __future__ import annotations

import sys
from pathlib import Path

from mpi4py import MPI

from select_cases import run_case

comm = MPI.COMM_WORLD
first, last = map(int, sys.argv[2:4])
found = sum(run_case(comm, Path(sys.argv[1]), 64, number) for number in range(first, last))
if comm.rank == 0:
    print(f"{last - first} cases on {comm.size} ranks, {found} elements")
