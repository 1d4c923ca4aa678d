"""Random attributes in all formats, on ranks that are processes."""

from __future__ import annotations

import sys
from pathlib import Path

from mpi4py import MPI

from attribute_cases import run

FOLDER, SEED, CASES = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
run(MPI.COMM_WORLD, FOLDER, SEED, range(CASES))
if MPI.COMM_WORLD.rank == 0:
    print(f"{CASES} cases")
