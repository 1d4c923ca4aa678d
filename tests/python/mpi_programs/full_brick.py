"""Fills a volume whose server accepts what does not fit: whatever was reported written is there for another client.

Usage: full_brick ONE TWO all|some, two directories by which the same volume is mounted. The writers use the first;
rank 0 reads by the second.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from itertools import count, product
from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import netCDF4
import numpy as np
import zarr
from mpi4py import MPI
from numpy.typing import NDArray

WORLD = MPI.COMM_WORLD
#: Of 8 B; four of them do not fit, the last but one in part.
ELEMENTS = 1 << 18
SPREAD = hs.Distribution((ELEMENTS,), (WORLD.size,), ("block",))
#: Files at most, of which some do not fit.
FILES_MAX = 20
#: Clients keep names and contents for so long [s].
CACHED_SECONDS = 1.2


def values(number: int) -> NDArray[np.float64]:
    """All elements of a file."""
    return np.arange(ELEMENTS, dtype=float) + number


def read_zarr(path: Path) -> Any:
    return zarr.open_group(path, mode="r")["a"][:]


def read_hdf5(path: Path) -> Any:
    with h5py.File(path, "r", locking=False) as file:
        return file["a"][:]


def read_netcdf(path: Path) -> Any:
    with netCDF4.Dataset(path) as file:
        return np.ma.getdata(file["a"][:])


READERS: dict[str, Callable[[Path], Any]] = {
    ".zarr": read_zarr,
    ".h5": read_hdf5,
    ".nc": read_netcdf,
    ".npy": np.load,
    ".raw": lambda path: np.fromfile(path, "<f8"),
}


def write(path: Path, number: int, options: dict[str, Any], *, durable: bool) -> None:
    """Make a file with one array."""
    mine = values(number)[SPREAD.slices(WORLD.rank)]
    if path.suffix == ".npy":
        hs.save_npy(path, mine, SPREAD, comm=WORLD, durable=durable)
    elif path.suffix == ".raw":
        with hs.open_raw(path, "w", comm=WORLD, durable=durable) as file:
            file.write("a", mine, SPREAD)
    else:
        with hs.open(path, "w", comm=WORLD, durable=durable) as opened:
            opened.write("a", mine, SPREAD, **options)


def fill(one: Path, two: Path, suffix: str, options: dict[str, Any], *, durable: bool) -> tuple[int, list[str]]:
    """Make files until there is no room; how many were reported, and which of these are not what was written."""
    reported = 0
    for number in count():
        assert number < FILES_MAX, "all of it fits"
        try:
            write(one / f"{number}{suffix}", number, options, durable=durable)
        except hs.StorageError:
            break
        reported += 1
    wrong = []
    if WORLD.rank == 0:
        time.sleep(CACHED_SECONDS)
        for number in range(reported):
            path = two / f"{number}{suffix}"
            try:
                same = np.array_equal(READERS[suffix](path), values(number))
            except (OSError, ValueError, KeyError) as error:
                wrong.append(f"{path.name}: {error}")
            else:
                wrong += [] if same else [f"{path.name}: other elements"]
        for left in one.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        time.sleep(CACHED_SECONDS)
    WORLD.barrier()
    return reported, wrong


def main() -> None:
    one, two = map(Path, sys.argv[1:3])
    chunks = {"chunks": (ELEMENTS // 4,)}
    kinds: list[tuple[str, dict[str, Any]]] = [
        (".zarr", chunks),
        (".zarr", {"chunks": (ELEMENTS // 64,)}),
        (".h5", {}),
        (".h5", chunks),
        (".nc", {}),
        (".npy", {}),
        (".raw", {}),
    ]
    every = list(product(kinds, (True, False)))
    failures = []
    for (suffix, options), durable in every if sys.argv[3] == "all" else every[::3]:
        reported, wrong = fill(one, two, suffix, options, durable=durable)
        if WORLD.rank == 0:
            print(
                f"{suffix} {options} durable={durable}: {reported} reported written, {len(wrong)} of them lost",
                flush=True,
            )
            failures += [f"{suffix} {options} durable={durable}: {told}" for told in wrong]
    assert not failures, failures
    if WORLD.rank == 0:
        print("the volume was full each time, and nothing reported is lost")


if __name__ == "__main__":
    main()
