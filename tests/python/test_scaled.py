"""Filters of HDF5's own library that make values smaller: scale-offset."""

from __future__ import annotations

from pathlib import Path

import h5py
import hyperslab as hs
import numpy as np
import pytest

TYPES = ["i1", "u1", "<i2", ">i2", "<u2", "<i4", ">i4", "<u4", ">u4", "<i8", ">i8", "<u8", ">u8"]
REALS = ["<f4", ">f4", "<f8", ">f8"]


def values(kind: str, spread: int) -> np.ndarray:
    """Values of this type, some negative, that lie so far apart at most."""
    chance = np.random.default_rng(spread)
    dtype = np.dtype(kind)
    if dtype.kind == "f":
        return (chance.integers(-spread, spread, (23, 9), endpoint=True) / 7).astype(dtype)
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    low = max(least, -spread)
    return chance.integers(low, min(most, low + 2 * spread), (23, 9), endpoint=True, dtype=dtype.newbyteorder("="))


@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_scale_offset_is_read_as_h5py_does(ranks: int, tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as data:
        for kind in [*TYPES, *REALS]:
            digits = (0,) if np.dtype(kind).kind != "f" else (1, 4)
            for spread in (0, 1, 3, 100, 1 << 40):
                for scale in digits:
                    for fill in (None, 1):
                        name = f"{kind[-2:]}{kind[0] == '>'} {spread} {scale} {fill}"
                        made = values(kind, spread).astype(kind)
                        options = {"fillvalue": fill} if fill is not None else {}
                        new = data.create_dataset(
                            name, (40, 9), kind, chunks=(5, 4), scaleoffset=scale, maxshape=(None, 9), **options
                        )
                        new[:23] = made
                        new[30:32] = made[:2]
        plain = data.create_dataset("more", (20,), "i4", chunks=(8,), scaleoffset=5, compression="gzip")
        plain[:] = np.arange(20)
    # What was just written may be in h5py's cache as it was given.
    with h5py.File(path) as data:
        expected = {name: data[name][...] for name in data}

    def program(comm: hs.Comm) -> None:
        with hs.open(path, comm=comm) as file:
            assert sorted(file) == sorted(expected)
            for name, there in expected.items():
                dist = hs.Distribution(there.shape, (comm.size,) + (1,) * (there.ndim - 1), ("block",) * there.ndim)
                part = there[dist.slices(comm.rank)].astype(there.dtype.newbyteorder("="))
                found = file.read(name, dist)
                assert found.dtype == part.dtype, name
                assert found.tobytes() == part.tobytes(), name

    hs.threads(ranks, program)
    assert hs.verify(path).findings == ()


def test_chunks_of_scale_offset_are_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as data:
        data.create_dataset("a", data=np.arange(20), chunks=(5,), scaleoffset=0)
    with hs.open(path, "r+") as file:
        with pytest.raises(hs.UnsupportedError, match="scaleoffset"):
            file.write("a", np.zeros(5, "i8"), section=slice(0, 5))
        assert file.read("a").tolist() == list(range(20))


def test_a_damaged_chunk_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as data:
        new = data.create_dataset("a", data=np.arange(100), chunks=(100,), scaleoffset=0)
        at = new.id.get_chunk_info(0).byte_offset
    whole = bytearray(path.read_bytes())
    whole[at] = 60
    path.write_bytes(whole)
    with hs.open(path) as file, pytest.raises(hs.CorruptError, match="scale-offset"):
        file.read("a")
