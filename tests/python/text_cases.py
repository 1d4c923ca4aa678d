"""Texts of all kinds in files of others, and what must be read of them, by ranks of any kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import numpy as np
import zarr
from numcodecs import GZip
from zarr.codecs import GzipCodec, TransposeCodec

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


def texts_of_zarr(path: Path, version: Any) -> dict[str, np.ndarray[Any, Any]]:
    """A store of zarr-python with texts: scalar, empty, never written, compressed, long, in shards, transposed."""
    random = np.random.default_rng(7)
    many = np.array(["ä" * int(random.integers(0, 40)) for _ in range(3000)], object)
    group = zarr.open_group(path, mode="w", zarr_format=version)

    def made(name: str, values: Any, **options: Any) -> None:
        values = np.asarray(values, object)
        options.setdefault("chunks", values.shape)
        group.create_array(name, shape=values.shape, dtype=str, **options)[...] = values

    made("scalar", "a title")
    made("plain", WORDS)
    made("many", many.reshape(60, 50), chunks=(7, 50))
    made("zipped", many, chunks=(100,), compressors=GZip() if version == 2 else GzipCodec())
    made("bare", many[:90].reshape(9, 10), chunks=(4, 3), compressors=None)
    made("long", ["x" * 100_000, "y" * 70_000])
    group.create_array("never", shape=(4,), chunks=(2,), dtype=str, fill_value="größe")
    group.create_array("partly", shape=(8,), chunks=(2,), dtype=str)[3:5] = ["x", "y"]
    group.create_array("none", shape=(0,), chunks=(1,), dtype=str)
    if version == 2:
        made("fortran", many[:12].reshape(3, 4), chunks=(2, 3), order="F")
    else:
        made("shards", many.reshape(60, 50), chunks=(5, 10), shards=(20, 50))
        made("turned", many[:12].reshape(3, 4), chunks=(2, 3), filters=[TransposeCodec(order=(1, 0))])
    return {name: np.asarray(group[name][...]).astype(object) for name in sorted(group)}
