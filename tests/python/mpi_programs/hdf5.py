"""Random HDF5 files on ranks that are processes."""

from __future__ import annotations

import sys
from pathlib import Path

from mpi4py import MPI

from hdf5_cases import grown_by_others, run

FOLDER, SEED, CASES = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
grown_by_others(MPI.COMM_WORLD, FOLDER)
done = run(MPI.COMM_WORLD, FOLDER, SEED, range(CASES))
if MPI.COMM_WORLD.rank == 0:
    print(f"{done} cases")
