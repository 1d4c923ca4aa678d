"""Targets in Fortran order, strided targets, and other element types."""

import sys

import hyperslab as hs
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
dist = hs.Distribution.block((12, 10), comm.size)
whole = np.linspace(0, 1, 120).reshape(12, 10)
mine = whole[dist.slices(comm)]

with hs.open(sys.argv[1], "w", comm=comm) as store:
    store.write("c", np.ascontiguousarray(mine), dist)
    store.write("f", np.asfortranarray(mine), dist)
    store.write("view", mine, dist)  # rows are not beside each other
    store.write("half", mine, dist, dtype="f2")

    fortran = np.empty(dist.local_shape(comm), order="F")
    strided = np.zeros([2 * extent for extent in dist.local_shape(comm)])[::2, ::2]
    for name in ("c", "f", "view"):
        store[name].read(dist, out=fortran)
        store[name].read(dist, out=strided)
        assert np.array_equal(fortran, mine)
        assert np.array_equal(strided, mine)
    half = store["half"].read(dist)
    single = store["half"].read(dist, dtype="f4", order="F")
    assert half.dtype == np.float16
    assert np.array_equal(single, mine.astype("f2").astype("f4"))
    assert single.flags.f_contiguous or single.size <= 1
if comm.rank == 0:
    print("all layouts agree")
