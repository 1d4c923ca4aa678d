"""The habit of gathering everything on rank 0, and what replaces it; the files hold the same."""

import sys

import hyperslab as hs
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
folder = sys.argv[1]
dist = hs.Distribution((10, 6), (comm.size,), ("block", "*"))
mine = np.full(dist.local_shape(comm), comm.rank + 0.5)

# Before: all memory and all bandwidth of one rank.
parts = comm.gather(mine)
if parts is not None:
    np.save(f"{folder}/before.npy", np.concatenate(parts))

# After: one call.
hs.save_npy(f"{folder}/after.npy", mine, dist, comm=comm)

# Rank 0 may still look at the result by itself: `comm=None` is this process alone.
if comm.rank == 0:
    after = hs.load_npy(f"{folder}/after.npy", comm=None)
    assert np.array_equal(np.load(f"{folder}/before.npy"), after)
    print("same bytes:", after.nbytes)
comm.barrier()
