"""Checkpoints of a model: keep the last three, resume on another number of ranks with another sharding."""

import sys

import hyperslab as hs
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
path, until = sys.argv[1], int(sys.argv[2])
shapes = {"embedding": (32, 8), "layer/weights": (8, 8), "layer/bias": (8,)}
# Each parameter is cut along its longest dimension.
spread = {
    name: hs.Distribution(
        shape, (comm.size,), ["block" if d == int(np.argmax(shape)) else "*" for d in range(len(shape))]
    )
    for name, shape in shapes.items()
}

with hs.open(path, "a", comm=comm) as store:
    last = store.steps.latest()
    if last is None:
        first = 0
        model = {name: np.zeros(dist.local_shape(comm), "f4") for name, dist in spread.items()}
    else:
        step = store.group(last)
        first, model = step.attrs["epoch"], step.read(list(shapes), spread)
    for epoch in range(first + 1, until + 1):
        for weights in model.values():
            weights += 1
        with store.step(f"epoch_{epoch}", attributes={"epoch": epoch, "loss": 1 / epoch}) as step:
            for name, dist in spread.items():
                step.write(name, model[name], dist)
        store.steps.keep(3)
    assert all(np.all(weights == until) for weights in model.values())
    if comm.rank == 0:
        print(list(store.steps))
