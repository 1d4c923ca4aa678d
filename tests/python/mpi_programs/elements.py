"""Elements that are no numbers, on ranks that are processes."""

from __future__ import annotations

import sys
from pathlib import Path

from mpi4py import MPI

from type_cases import run

done = run(MPI.COMM_WORLD, Path(sys.argv[1]))
if MPI.COMM_WORLD.rank == 0:
    print(f"{done} cases")
