"""Sections of a store that another program made, read by any number of ranks."""

import sys

import hyperslab as hs
import numpy as np
import zarr
from mpi4py import MPI

comm = MPI.COMM_WORLD
path = sys.argv[1]
whole = np.arange(60 * 40, dtype="i4").reshape(60, 40)
if comm.rank == 0:
    theirs = zarr.create_array(path, name="deep/topography", shape=whole.shape, chunks=(13, 17), dtype="i4")
    theirs[...] = whole
comm.barrier()

with hs.open(path, comm=comm) as store:
    array = store["deep/topography"]
    section = (slice(5, 50, 3), slice(2, 30))
    wanted = whole[section]
    dist = hs.Distribution.block(wanted.shape, comm.size)
    mine = array.read(dist, section=section)
    assert np.array_equal(mine, wanted[dist.slices(comm)])

    cyclic = hs.Distribution(array.shape, (comm.size,), ("cyclic(4)", "*"))
    assert np.array_equal(array.read(cyclic), whole[cyclic.indices(comm)[0]])

    own = array[comm.rank * 2, -3:]  # each rank what it likes
    assert np.array_equal(own, whole[comm.rank * 2, -3:])
    picked = array.read(section=([40, 3, 3], ...))
    assert np.array_equal(picked, whole[[40, 3, 3]])
total = comm.allreduce(mine.size)
if comm.rank == 0:
    print(total, "elements of the section")
