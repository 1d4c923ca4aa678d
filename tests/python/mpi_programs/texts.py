"""Texts of fixed and of variable length, on ranks that are processes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import numpy as np
import zarr
from mpi4py import MPI

from text_cases import WORDS, read_all, texts_of_others, texts_of_zarr

FOLDER, COMM = Path(sys.argv[1]), MPI.COMM_WORLD
FIXED = np.array([word.encode() for word in WORDS * 4], "S12")
WIDE = np.array(WORDS * 4)

if COMM.rank == 0:
    texts_of_others(FOLDER / "a.h5", "latest")
    texts_of_zarr(FOLDER / "a.zarr", 3)
COMM.Barrier()
with h5py.File(FOLDER / "a.h5") as data:
    expected: dict[str, Any] = {name: data[name][...] for name in data}
read_all(COMM, FOLDER / "a.h5", expected)
group = zarr.open_group(FOLDER / "a.zarr", mode="r")
read_all(COMM, FOLDER / "a.zarr", {name: np.asarray(group[name][...]).astype(object) for name in sorted(group)})

dist = hs.Distribution(FIXED.shape, (COMM.size,), ("block",))
mine = dist.slices(COMM.rank)
with hs.open(FOLDER / "b.h5", "w", comm=COMM) as file:
    file.write("fixed", FIXED[mine], dist, chunks=(3,), compression="gzip")
with hs.open(FOLDER / "b.zarr", "w", comm=COMM) as store:
    store.write({"fixed": FIXED[mine], "wide": WIDE[mine]}, dist, chunks=(3,))
read_all(COMM, FOLDER / "b.h5", {"fixed": FIXED})
read_all(COMM, FOLDER / "b.zarr", {"fixed": FIXED, "wide": WIDE})
if COMM.rank == 0:
    with h5py.File(FOLDER / "b.h5") as data:
        assert np.array_equal(data["fixed"][...], FIXED)
    group = zarr.open_group(FOLDER / "b.zarr", mode="r")
    assert np.array_equal(group["fixed"][...], FIXED)
    assert np.array_equal(group["wide"][...], WIDE)
    print("texts are right")
