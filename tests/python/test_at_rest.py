"""Parts of arrays at rest, read by one rank in a few requests: the same values as in any other way."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import netCDF4
import numpy as np
import pytest
import zarr
from hyperslab._selecting import read_selected
from hyperslab.bench._launch import file_system

SHAPE = (13, 17, 11)
SEED = 20261130
#: After so long a file rests [s].
REST = 0.08

#: File systems of which it is known that they lie on this host; on others, all goes the long way.
OF_THIS_HOST = {"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "tmpfs", "ramfs"}

Made = tuple[Any, np.ndarray[Any, Any]]


def values(dtype: str = "f8") -> np.ndarray[Any, Any]:
    return np.random.default_rng(SEED).integers(0, 200, SHAPE).astype(dtype)


def ours(path: Path, dtype: str = "f8", **options: Any) -> Made:
    with hs.open(path, "w", comm=None) as file:
        file.write("a", values(dtype), **options)
    return hs.open(path, comm=None)["a"], values(dtype)


def by_zarr(path: Path, **options: Any) -> Made:
    array = zarr.open_group(path, mode="w").create_array("a", shape=SHAPE, dtype="f8", **options)
    array[2:, :15] = values()[2:, :15]
    return hs.open(path, comm=None)["a"], array[...]


def by_h5py(path: Path, **options: Any) -> Made:
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=values(), **options)
    return hs.open(path, comm=None)["a"], values()


def h5py_with_holes(path: Path) -> Made:
    with h5py.File(path, "w") as file:
        made = file.create_dataset("a", shape=SHAPE, dtype=">i4", chunks=(4, 5, 6), fillvalue=7)
        made[3:9, :, 2] = values("i4")[3:9, :, 2]
        expected = made[...]
    return hs.open(path, comm=None)["a"], expected


def classic(path: Path) -> Made:
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
        for name, extent in zip("xyz", (None, *SHAPE[1:]), strict=True):
            file.createDimension(name, extent)
        for name in "ab":
            file.createVariable(name, "f8", tuple("xyz"))[:] = values()
    return hs.open(path, comm=None)["a"], values()


def netcdf4(path: Path) -> Made:
    with netCDF4.Dataset(path, "w") as file:
        for name, extent in zip("xyz", (None, *SHAPE[1:]), strict=True):
            file.createDimension(name, extent)
        file.createVariable("a", "i2", tuple("xyz"), zlib=True, chunksizes=(4, 5, 6), endian="big")[:] = values("i2")
    return hs.open(path, comm=None)["a"], values("i2")


def fortran(path: Path) -> Made:
    np.save(path, np.asfortranarray(values("f4")))
    opened = hs.open_raw(path, "r", header=128, order="F", arrays={"a": (SHAPE, "f4")}, comm=None)
    return opened["a"], values("f4")


FILES: dict[str, tuple[str, Callable[[Path], Made]]] = {
    "zarr": ("a.zarr", lambda path: ours(path, chunks=(4, 5, 6))),
    "zarr, plain": ("a.zarr", lambda path: ours(path, chunks=(4, 5, 6), checksum=False)),
    "zarr, zstd": ("a.zarr", lambda path: ours(path, chunks=(4, 5, 6), compression="zstd")),
    "zarr, shards": ("a.zarr", lambda path: ours(path, chunks=(2, 5, 3), shards=(4, 10, 12))),
    "zarr, with holes": ("a.zarr", lambda path: by_zarr(path, chunks=(2, 3, 11), fill_value=3.5)),
    "zarr v2": ("a.zarr", lambda path: by_zarr_v2(path)),
    "hdf5": ("a.h5", ours),
    "hdf5, chunks": ("a.h5", lambda path: ours(path, "i2", chunks=(4, 5, 6))),
    "hdf5, gzip": ("a.h5", lambda path: by_h5py(path, chunks=(4, 5, 6), compression="gzip", shuffle=True)),
    "hdf5, with holes": ("a.h5", h5py_with_holes),
    "netcdf": ("a.nc", classic),
    "netcdf-4": ("a.nc", lambda path: netcdf4(path)),
    "raw": ("a.npy", fortran),
}


def by_zarr_v2(path: Path) -> Made:
    group = zarr.open_group(path, mode="w", zarr_format=2)
    array = group.create_array("a", shape=SHAPE, dtype=">i4", chunks=(4, 5, 6), order="F", fill_value=9)
    array[1:] = values("i4")[1:]
    return hs.open(path, comm=None)["a"], array[...]


def rests_here(path: Path) -> bool:
    """Whether files there can be known to rest."""
    return file_system(path) in OF_THIS_HOST


def at_rest(array: Any, key: Any) -> Any:
    """What is read in a few requests; `None` where it is not."""
    return array._group._core.read_at_rest((array.name, array.shape, array.dtype.newbyteorder("=")), key, listed=False)


def key_of(random: np.random.Generator) -> Any:
    """A key as people write them."""
    parts: list[Any] = []
    first, last = sorted(random.integers(0, 4, 2).tolist())
    for dim, extent in enumerate(SHAPE):
        if first <= dim < last:
            if ... not in parts:
                parts.append(...)
            continue
        low, high = sorted(random.integers(-extent, extent + 3, 2).tolist())
        kinds = [int(random.integers(-extent, extent)), slice(low, high), slice(None), slice(low, None, 3), np.int64(2)]
        parts.append(kinds[random.integers(len(kinds))])
    if parts[-1] is ... and random.random() < 0.7:
        parts.pop()
    return parts[0] if len(parts) == 1 else tuple(parts)


def agree(found: Any, expected: Any) -> bool:
    """The same values, and the same kind of thing."""
    return np.array_equal(found, expected) and np.shape(found) == np.shape(expected) and found.dtype.isnative


@pytest.mark.parametrize("kind", FILES)
def test_what_is_read_at_rest_is_what_is_read_in_any_other_way(kind: str, tmp_path: Path) -> None:
    name, make = FILES[kind]
    array, expected = make(tmp_path / name)
    random = np.random.default_rng(SEED)
    time.sleep(REST)
    taken = 0
    for _ in range(300):
        key = key_of(random)
        found, other = array[key], read_selected(array, key)
        assert agree(found, expected[key]), key
        assert agree(other, expected[key]), key
        assert type(found) is type(other), key
        taken += at_rest(array, key) is not None
    # The others select nothing.
    assert taken > 200 if rests_here(tmp_path) else taken == 0


@pytest.mark.parametrize("kind", FILES)
def test_elements_of_lists_are_read_in_a_few_requests(kind: str, tmp_path: Path) -> None:
    """In any order, named several times, of one dimension and of all, and where a mask is true."""
    name, make = FILES[kind]
    array, expected = make(tmp_path / name)
    random = np.random.default_rng(SEED)
    time.sleep(REST)
    taken = 0
    for count in (1, 2, 7, 40, 400, 4000):
        lists = tuple(random.integers(-extent, extent, count) for extent in SHAPE)
        mask = random.random(SHAPE) < count / 5000
        for key in (lists, mask, (lists[0], 3, lists[2]), (mask[:, :, 0], lists[2][:1])):
            assert agree(array[key], expected[key]), (count, key)
        numbers = random.integers(0, expected.size, (count, 3)).reshape(-1)
        about = (array.name, array.shape, array.dtype.newbyteorder("="))
        found = array._group._core.read_at_rest(about, numbers, listed=True)
        if found is not None:
            taken += 1
            assert agree(found, expected.reshape(-1)[numbers])
        assert array._group._core.read_at_rest(about, numbers + expected.size, listed=True) is None
    # Records of classic files, and other orders than NumPy's in one stretch, go another way.
    assert taken == (6 if rests_here(tmp_path) and kind not in ("netcdf", "raw") else 0)


def test_an_interrupt_ends_the_reading_of_a_long_list(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", (1 << 24,), "f8", chunks=(1 << 16,), compression="gzip")[:] = 1.5
    program = """
import os, signal, sys, threading, time, numpy as np, hyperslab as hs
array = hs.open(sys.argv[1], comm=None)["a"]
time.sleep(0.1)
numbers = np.arange(0, 1 << 24, 4)
threading.Timer(0.15, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    while True:
        array[numbers]
except KeyboardInterrupt:
    print("ended", array[5])
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "a.h5")], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "ended 1.5\n"), done.stderr


@pytest.mark.parametrize("key", [13, -14, (0, 0, 0, 0), (..., ...), "x", 1.5, None, slice(None, None, -1), True])
@pytest.mark.parametrize("ndim", [2, 3])
def test_what_cannot_be_read_is_said_as_ever(key: Any, ndim: int, tmp_path: Path) -> None:
    with hs.open(tmp_path / "a.h5", "w", comm=None) as file:
        file.write("a", values()[:, :, 0] if ndim == 2 else values())
    array = hs.open(tmp_path / "a.h5", comm=None)["a"]
    time.sleep(REST)
    assert at_rest(array, key) is None
    with pytest.raises((hs.InvalidError, TypeError, IndexError)) as of_key:
        array[key]
    with pytest.raises((hs.InvalidError, TypeError, IndexError)) as of_other:
        read_selected(array, key)
    assert str(of_key.value) == str(of_other.value)


# ---- others change what was read ------------------------------------------------------------------------------------


def pause(random: np.random.Generator) -> None:
    """Some changes come while a file does not rest yet, some later."""
    if random.random() < 0.5:
        time.sleep(REST)


@pytest.mark.parametrize("options", [{}, {"compressors": None}, {"shards": (4, 10, 12), "chunks": (2, 5, 3)}])
def test_nothing_old_is_given_of_what_zarr_changes(options: dict[str, Any], tmp_path: Path) -> None:
    """One handle of ours, and zarr-python, which writes chunks, removes them, and makes the array again."""
    path, random = tmp_path / "a.zarr", np.random.default_rng(SEED)
    options = {"chunks": (4, 5, 6)} | options
    group = zarr.open_group(path, mode="w")

    def make() -> Any:
        return group.create_array("a", shape=SHAPE, dtype="f8", fill_value=-1, overwrite=True, **options)

    theirs = make()
    array = hs.open(path, comm=None)["a"]
    for number in range(60):
        key = key_of(random)
        if (change := random.random()) < 0.5:
            theirs[key] = float(number)
        elif change < 0.6:
            theirs = make()
        elif change < 0.7:
            for chunk in sorted((path / "a").rglob("c/*/*/*"))[:3]:
                chunk.unlink()
        pause(random)
        now = theirs[...]
        for _ in range(4):
            key = key_of(random)
            assert np.array_equal(array[key], now[key]), (number, key)


REPLACE = """
import sys, time, numpy as np, hyperslab as hs
with hs.open(sys.argv[1], "r+", comm=None, durable=False) as store:
    for number in range(1, 30):
        time.sleep(0.09)
        store.write("a", np.full((8, 8, 8), number), chunks=(2, 2, 2), overwrite=True)
"""


def test_an_array_is_not_another_one_in_the_middle(tmp_path: Path) -> None:
    """Another program replaces it again and again, while it is read all the time."""
    path = tmp_path / "a.zarr"
    with hs.open(path, "w", comm=None) as store:
        store.write("a", np.full((8, 8, 8), 0), chunks=(2, 2, 2))
    array, seen = hs.open(path, comm=None)["a"], set()
    with subprocess.Popen([sys.executable, "-c", REPLACE, str(path)]) as program:
        while program.poll() is None:
            try:
                found = array[...]
            except (hs.OutdatedError, hs.NotFoundError):
                continue
            assert found.min() == found.max()
            seen.add(int(found.max()))
    assert program.returncode == 0
    assert len(seen) > 15


CHANGE = """
import os, sys, h5py, numpy as np
os.environ["HDF5_USE_FILE_LOCKING"] = "FALSE"
path, seed, keep = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "keep"
before = os.stat(path)
with h5py.File(path, "r+") as file:
    random = np.random.default_rng(seed)
    for _ in range(3):
        low = random.integers(0, 9, 3)
        file["a"][low[0]:low[0] + 3, low[1]:low[1] + 4, low[2]:low[2] + 2] = random.random()
if keep:
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
"""


@pytest.mark.parametrize("options", [{}, {"chunks": (4, 5, 6)}, {"chunks": (4, 5, 6), "compression": "gzip"}])
def test_nothing_old_is_given_of_what_h5py_changes(options: dict[str, Any], tmp_path: Path) -> None:
    """Also if it sets the file's time to that of before."""
    path, random = tmp_path / "a.h5", np.random.default_rng(SEED)
    array, _ = by_h5py(path, **options)
    for number in range(8):
        array[random.integers(13)]
        time.sleep(REST)
        assert (at_rest(array, 0) is not None) == rests_here(tmp_path)
        array[...]
        environment = os.environ | {"HDF5_USE_FILE_LOCKING": "FALSE"}
        command = [sys.executable, "-c", CHANGE, str(path), str(number), ("keep", "no")[number % 2]]
        subprocess.run(command, check=True, env=environment)
        pause(random)
        with h5py.File(path, locking=False) as file:
            now = file["a"][...]
        for _ in range(6):
            key = key_of(random)
            assert np.array_equal(array[key], now[key]), (number, key)


def test_a_file_that_was_replaced_is_named(tmp_path: Path) -> None:
    array, _ = ours(tmp_path / "a.h5")
    time.sleep(REST)
    assert (at_rest(array, 0) is not None) == rests_here(tmp_path)
    ours(tmp_path / "b.h5")
    (tmp_path / "b.h5").rename(tmp_path / "a.h5")
    time.sleep(REST)
    assert at_rest(array, 0) is None
    with pytest.raises(hs.StorageError, match="not the one that was opened"):
        array[0]


def test_damage_is_found(tmp_path: Path) -> None:
    """By the checksum, by the first read and by all further ones."""
    array, _ = ours(tmp_path / "a.zarr", chunks=(4, 5, 6))
    chunk = next((tmp_path / "a.zarr/a").rglob("*0?0?0"))
    content = bytearray(chunk.read_bytes())
    content[17] ^= 1
    chunk.write_bytes(content)
    time.sleep(REST)
    for _ in range(3):
        with pytest.raises(hs.CorruptError, match="CRC-32C"):
            array[0, 0, 0]
        assert array[12, 16, 10] == values()[12, 16, 10]


def test_a_file_that_was_cut_is_no_zeros(tmp_path: Path) -> None:
    array, _ = ours(tmp_path / "a.h5")
    os.truncate(tmp_path / "a.h5", (tmp_path / "a.h5").stat().st_size - 400)
    time.sleep(REST)
    with pytest.raises((hs.CorruptError, hs.StorageError)):
        array[-1, -1, -1]


def test_threads_read_at_the_same_time(tmp_path: Path) -> None:
    array, expected = ours(tmp_path / "a.zarr", chunks=(4, 5, 6), compression="zstd")
    time.sleep(REST)

    def some(seed: int) -> bool:
        random = np.random.default_rng(seed)
        keys = [key_of(random) for _ in range(200)]
        return all(np.array_equal(array[key], expected[key]) for key in keys)

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(some, range(12)))


def test_what_a_request_writes_is_not_read_behind_its_back(tmp_path: Path) -> None:
    """The same error as ever, and the new values after it."""
    with hs.open(tmp_path / "a.zarr", "w", comm=None) as store:
        store.write("a", values(), chunks=(4, 5, 6))
        time.sleep(REST)
        assert (at_rest(store["a"], 0) is not None) == rests_here(tmp_path)
        request = store.iwrite("a", np.zeros(SHAPE), section=...)
        assert at_rest(store["a"], 0) is None or request.test()
        request.wait()
        assert (store["a"][...] == 0).all()
        time.sleep(REST)
        assert store["a"][1, 2, 3] == 0


def test_a_child_of_a_fork_reads_what_it_opens_anew(tmp_path: Path) -> None:
    ours(tmp_path / "a.h5")
    program = """
import os, sys, time, hyperslab as hs
array = hs.open(sys.argv[1], comm=None)["a"]
time.sleep(0.1)
array[0, 0, 0]
if os.fork() == 0:
    with open(sys.argv[1], "r+b") as file:
        file.truncate(16)
    try:
        array[0, 0, 0]
    except hs.CorruptError:
        print(True, flush=True)
    os._exit(0)
os.wait()
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "a.h5")], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr
