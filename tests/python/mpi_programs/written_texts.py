"""Texts of variable length of many processes, in each format that has them. Prints the formats."""

from __future__ import annotations

import sys
from pathlib import Path

import hyperslab as hs
import numpy as np
from mpi4py import MPI

comm, folder = MPI.COMM_WORLD, Path(sys.argv[1])
words = np.array([f"wört {number} " * (number % 5) for number in range(20)], object)
dist = hs.Distribution(words.shape, (comm.size,), ("block",))
part = words[dist.slices(comm.rank)]
for fmt in ("hdf5", "netcdf4", "zarr"):
    path = folder / f"a.{fmt}"
    with hs.open(path, "w", comm=comm, format=fmt) as file:
        file.write("w", part, dist, dimension_names=["x"])
        file.flush()
        file.write("g/w", part, dist, dimension_names=["x"])
    with hs.open(path, "r+", comm=comm) as file:
        file.write("more", part, dist, dimension_names=["x"], chunks=(3,))
        for name in ("w", "g/w", "more"):
            found = [text.decode() if fmt == "hdf5" else text for text in file.read(name)]
            assert found == words.tolist(), (fmt, name)
    if comm.rank == 0:
        print(fmt)
