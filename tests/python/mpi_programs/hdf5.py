"""Random HDF5 files on ranks that are processes."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

from hdf5_cases import grown_by_others, run
from hdf5_edits import edits

FOLDER, SEED, CASES = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
grown_by_others(MPI.COMM_WORLD, FOLDER)
done = run(MPI.COMM_WORLD, FOLDER, SEED, range(CASES))
for number in range(CASES):
    edits(MPI.COMM_WORLD, FOLDER / f"edits{number}.h5", np.random.default_rng([SEED, number]))
if MPI.COMM_WORLD.rank == 0:
    print(f"{done} cases")
