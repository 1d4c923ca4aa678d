"""HDF5 datasets whose chunks at the edge went through no filters, which a library writes if it is asked to."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import h5py
import hyperslab as hs
import numpy as np
import pytest

#: What HDF5 calls H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS.
PLAIN_EDGES = 2


def library() -> ctypes.CDLL:
    """The HDF5 library that h5py has loaded; netCDF4 may have loaded another one."""
    maps = Path("/proc/self/maps").read_text()
    found = re.findall(r"\S*/h5py[^/]*/(?:\S*/)?libhdf5(?:-[0-9a-f]+)?\.so\S*", maps)
    if not found:
        pytest.skip("h5py's HDF5 library is no file of its own")
    return ctypes.CDLL(found[0])


def make(path: Path, shape: tuple[int, ...], chunks: tuple[int, ...], maxshape: tuple[int | None, ...]) -> None:
    with h5py.File(path, "w", libver="latest") as file:
        create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        create.set_chunk(chunks)
        create.set_shuffle()
        create.set_deflate(4)
        assert library().H5Pset_chunk_opts(ctypes.c_int64(create.id), ctypes.c_uint(PLAIN_EDGES)) >= 0
        limits = tuple(h5py.h5s.UNLIMITED if limit is None else limit for limit in maxshape)
        space = h5py.h5s.create_simple(shape, limits)
        made = h5py.h5d.create(file.id, b"a", h5py.h5t.NATIVE_INT32, space, create)
        h5py.Dataset(made)[...] = np.arange(np.prod(shape), dtype="i4").reshape(shape)


@pytest.mark.parametrize("ranks", [1, 3, 4])
@pytest.mark.parametrize("maxshape", [(23, 17), (None, 17), (None, None), (23, 30)], ids=str)
@pytest.mark.parametrize("chunks", [(5, 4), (23, 17), (6, 17), (20, 30)], ids=str)
def test_chunks_at_the_edge_are_read(
    ranks: int, maxshape: tuple[int | None, ...], chunks: tuple[int, int], tmp_path: Path
) -> None:
    path = tmp_path / "a.h5"
    if any(limit is not None and chunk > limit for limit, chunk in zip(maxshape, chunks, strict=True)):
        pytest.skip("HDF5 has no such chunks")
    make(path, (23, 17), chunks, maxshape)
    with h5py.File(path) as file:
        expected = file["a"][...]

    def program(comm: hs.Comm) -> None:
        dist = hs.Distribution(expected.shape, (comm.size, 1), ("block", "block"))
        with hs.open(path, comm=comm) as file:
            assert np.array_equal(file.read("a", dist), expected[dist.slices(comm.rank)])
            assert np.array_equal(file.read("a", section=(slice(18, 23), slice(15, 17))), expected[18:, 15:])
            assert file["a"][22, 16] == expected[22, 16]

    hs.threads(ranks, program)
    assert hs.verify(path).findings == ()


def test_they_are_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    make(path, (23, 17), (5, 4), (None, 17))
    with hs.open(path, "r+") as file:
        expected = file.read("a")
        for change in (
            lambda: file.write("a", np.zeros((5, 17), "i4"), section=slice(0, 5)),
            lambda: file.append("a", np.zeros((2, 17), "i4")),
            lambda: file.resize("a", (40, 17)),
        ):
            with pytest.raises(hs.UnsupportedError, match="edge"):
                change()
    with h5py.File(path) as file:
        assert np.array_equal(file["a"][...], expected)
