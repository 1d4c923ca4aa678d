"""Texts of all kinds in files of others, and what must be read of them, by ranks of any kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import numpy as np

WORDS = ["", "a", "twelve bytes", "größe", "the end"]


def read_all(comm: Any, path: Path, expected: dict[str, np.ndarray[Any, Any]]) -> None:
    """All arrays, whole, spread over ranks, in a section, and by this rank alone."""
    with hs.open(path, comm=comm) as file:
        for name, values in expected.items():
            assert file[name].dtype == values.dtype, name
            assert file[name].shape == values.shape, name
            same(file.read(name), values, name)
            same(file.read_local(name), values, name)
            if values.ndim == 0:
                continue
            same(file[name][...], values, name)
            same(file[name][1:], values[1:], name)
            dist = hs.Distribution(values.shape, (comm.size,), ("block",) + ("*",) * (values.ndim - 1))
            same(file.read(name, dist), values[dist.slices(comm.rank)], name)
            same(file.read(name, section=slice(1, None, 2)), values[1::2], name)
        together = file.read(list(expected))
        for name, values in expected.items():
            same(together[name], values, name)


def same(found: Any, expected: Any, name: str) -> None:
    assert np.shape(found) == np.shape(expected), name
    assert np.array_equal(found, expected), (name, found, expected)
    if np.asarray(expected).dtype.kind in "SV":
        assert np.asarray(found).tobytes() == np.asarray(expected).tobytes(), name


def texts_of_others(path: Path, libver: str) -> None:
    """A file of h5py whose texts lie in heaps: scalar, empty, never written, in chunks, compressed, long."""
    random = np.random.default_rng(7)
    many = np.array(["ä" * int(random.integers(0, 40)) for _ in range(3000)], object)
    with h5py.File(path, "w", libver=libver) as data:
        data["scalar"] = "a title"
        data["plain"] = WORDS
        data.create_dataset("ascii", data=[b"a", b"", b"bcd"], dtype=h5py.string_dtype("ascii"))
        data.create_dataset("many", data=many.reshape(60, 50), dtype=h5py.string_dtype(), chunks=(7, 50))
        data.create_dataset("zipped", data=many, dtype=h5py.string_dtype(), chunks=(100,), compression="gzip")
        data.create_dataset("never", (4,), dtype=h5py.string_dtype())
        data.create_dataset("partly", (8,), dtype=h5py.string_dtype(), chunks=(2,))[3:5] = ["x", "y"]
        data.create_dataset("none", (0,), dtype=h5py.string_dtype())
        data["long"] = ["x" * 100_000, "y" * 70_000]
