"""Compute while the last dump is written; look at it before it is published."""

import sys

import hyperslab as hs
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
dist = hs.Distribution.block((64, 64), comm.size)
u = np.zeros(dist.local_shape(comm))

with hs.open(sys.argv[1], "w", comm=comm) as store:
    for number in range(3):
        with store.step(f"step_{number}") as step:
            requests = [step.iwrite("u", u, dist, staged=True), step.iwrite("twice", 2 * u, dist, staged=True)]
            u += 1  # the next time step, while the copies are written
            reports = hs.wait_all(requests)
            assert all(report.bytes == 64 * 64 * 8 for report in reports)
    reading = store.group("step_2").iread("u", dist)
    work = float(np.sqrt(u).sum())  # something else meanwhile
    before = reading.wait()
    assert np.array_equal(before, u - 1)
    total = comm.allreduce(work)
    if comm.rank == 0:
        print(list(store.steps), total)
