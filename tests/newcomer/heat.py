"""A heat equation with a time axis: it appends a record each step, and a second run goes on where the first ended."""

import sys

import hyperslab as hs
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
path, until = sys.argv[1], int(sys.argv[2])
rows = hs.Distribution((24, 16), (comm.size,), ("block", "*"))
above, below = comm.rank - 1, comm.rank + 1


def neighbour(rank: int) -> int:
    held = 0 <= rank < comm.size and rows.local_shape(rank)[0] > 0
    return rank if held else MPI.PROC_NULL


def step(u: np.ndarray) -> None:
    """One explicit step; the rows above and below come from the neighbours."""
    comm.Sendrecv(u[1], neighbour(above), recvbuf=u[-1], source=neighbour(below))
    comm.Sendrecv(u[-2], neighbour(below), recvbuf=u[0], source=neighbour(above))
    inner = u[1:-1, 1:-1]
    inner += 0.1 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * inner)


u = rows.zeros(comm, halo=1)
record = hs.Distribution((1, *rows.shape), (1, comm.size), ("block", "block", "*"))
with hs.open(path, "a", comm=comm) as store:
    if "u" in store:
        done = store["u"].shape[0]
        last = hs.Distribution((1, *rows.shape), (1, comm.size), ("block", "block", "*"))
        u[1:-1, 1:-1] = store["u"].read(last, section=(-1, ...))[0]
    else:
        done = 0
        names = ("time", "y", "x")
        store.create_array("u", (0, *rows.shape), chunks=(16, *rows.shape), dimension_names=names)
        store.create_array("time", (0,), chunks=(256,), dimension_names=("time",))
        if comm.rank == 0:
            u[1, 1:-1] = 100.0
    for number in range(done, until):
        step(u)
        time = np.array([0.1 * number]) if comm.rank == 0 else np.empty(0)
        store.append({"u": u[None, 1:-1, 1:-1], "time": time}, {"u": record, "time": hs.Distribution((1,), (1,))})
    if comm.rank == 0:
        print(store["u"].shape, len(store["time"]), f"{store['u'][-1].sum():.6f}")
