"""Datasets of HDF5 whose elements are arrays have their dimensions behind those of the dataset, as h5py reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import numpy as np
import pytest

RANKS = (1, 3, 4)
RECORD = np.dtype([("a", "i4"), ("b", "f8")])
#: Type of an element, shape of the dataset, and how it is stored.
DATASETS: dict[str, tuple[Any, tuple[int, ...], dict[str, Any]]] = {
    "plain": (("<i4", (3,)), (4, 5), {}),
    "scalar": (("<f8", (2, 3)), (), {}),
    "chunks": (("<f4", (3,)), (10, 7), {"chunks": (4, 3)}),
    "grows": (("<f4", (3,)), (10, 7), {"chunks": (4, 3), "maxshape": (None, 7)}),
    "filtered": ((">i2", (2, 2)), (10, 7), {"chunks": (4, 3), "compression": "gzip", "shuffle": True}),
    "records": ((RECORD, (2,)), (6,), {}),
    "texts": (("S5", (2,)), (6,), {}),
}


def values(base: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    rng = np.random.default_rng(3)
    if base.names is not None:
        made = np.zeros(shape, base)
        made["a"], made["b"] = rng.integers(0, 99, shape), rng.random(shape)
        return made
    return rng.integers(0, 99, shape).astype(base)


def make(path: Path, libver: str) -> dict[str, Any]:
    """A file of h5py, and what h5py reads of it."""
    with h5py.File(path, "w", libver=libver) as file:
        for name, (element, shape, how) in DATASETS.items():
            dtype = np.dtype(element)
            assert dtype.subdtype is not None
            base, inner = dtype.subdtype
            dataset = file.create_dataset(name, shape, dtype=dtype, **how)
            dataset[...] = values(base, shape + inner)
        return {name: file[name][()] for name in DATASETS}


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_arrays_as_elements_are_read(ranks: int, libver: str, tmp_path: Path) -> None:
    expected = make(tmp_path / "a.h5", libver)

    def program(comm: Any) -> None:
        with hs.open(tmp_path / "a.h5", comm=comm) as file:
            for name, array in expected.items():
                found = file[name]
                assert (found.shape, found.dtype) == (array.shape, array.dtype)
                dist = hs.Distribution(array.shape, (comm.size,) + (1,) * (array.ndim - 1), ("block",) * array.ndim)
                assert np.array_equal(file.read(name, dist), array[dist.slices(comm.rank)])
                last = (..., slice(1, 2))
                assert np.array_equal(file.read(name, section=last), array[last])

    hs.threads(ranks, program)
    assert hs.verify(tmp_path / "a.h5").findings == ()


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_arrays_as_elements_are_changed_as_h5py_sees_them(libver: str, tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    expected = make(path, libver)
    with hs.open(path, "r+") as file:
        for name, number in [("chunks", 7.0), ("filtered", 8), ("plain", 9)]:
            section = np.full_like(expected[name][1:3], number)
            file.write(name, section, section=slice(1, 3))
            expected[name][1:3] = number
        file.append("grows", np.full((3, 7, 3), 5, "f4"))
        expected["grows"] = np.concatenate([expected["grows"], np.full((3, 7, 3), 5, "f4")])
        with pytest.raises(hs.InvalidError, match="cannot have the shape"):
            file.resize("grows", (13, 7, 4))
    with h5py.File(path) as file:
        for name, array in expected.items():
            assert np.array_equal(file[name][()], array), name
            assert file[name].dtype == np.dtype(DATASETS[name][0])
