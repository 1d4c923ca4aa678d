"""Dedicated servers: some ranks only store, the others go on computing."""

import sys

import hyperslab as hs
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
with hs.dedicate(comm, servers=1) as io:
    if io.is_server:
        io.serve()
    else:
        dist = hs.Distribution.block((40, 30), io.size)
        with hs.open(sys.argv[1], "w", comm=io) as store:
            for number in range(3):
                mine = np.full(dist.local_shape(io), number + io.rank)
                with store.step(f"step_{number}") as step:
                    step.write("u", mine, dist)
            back = store.group("step_2").read("u", dist)
            assert np.array_equal(back, np.full(dist.local_shape(io), 2 + io.rank))
        if io.rank == 0:
            print("clients:", io.size)
