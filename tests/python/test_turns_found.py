"""What files that others and we change in turns have shown to be wrong, each as a small case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import netCDF4
import numpy as np
import pytest

RANKS = (1, 3, 4)


def on_ranks(ranks: int, path: Path, change: Any, mode: Any = "r+") -> None:
    """Change a file by so many ranks."""

    def one(comm: hs.ThreadComm) -> None:
        with hs.open(path, mode, comm=comm) as file:
            change(file, comm)

    hs.threads(ranks, one)


def replicated(values: Any, comm: hs.ThreadComm) -> tuple[Any, hs.Distribution]:
    """Values that all ranks have."""
    return values, hs.Distribution.replicated(np.shape(values), comm.size)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("first", [1, 2, 4])
def test_rows_behind_the_end_of_a_dataset_are_seen_by_others(first: int, ranks: int, tmp_path: Path) -> None:
    """A variable of netCDF-4 may be shorter than its dimension; rows in a chunk that it has were lost to all but us."""
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as data:
        data.createDimension("t", None)
        data.createVariable("short", "i8", ("t",))[:2] = [1, 2]
        data.createVariable("long", "i8", ("t",))[:6] = np.arange(6)

    def change(file: Any, comm: hs.ThreadComm) -> None:
        file.write("short", *replicated(np.array([8, 9]), comm), section=slice(first, first + 2))

    on_ranks(ranks, path, change)
    expected = np.full(6, netCDF4.default_fillvals["i8"])
    expected[:2] = [1, 2]
    expected[first : first + 2] = [8, 9]
    with netCDF4.Dataset(path) as data:
        data.set_auto_mask(False)
        assert data["short"][:].tolist() == expected.tolist()
        assert data["long"][:].tolist() == [*range(6)]
    with h5py.File(path) as file:
        assert file["short"][...].tolist()[: first + 2] == expected.tolist()[: first + 2]
    with hs.open(path) as file:
        assert file.read("short").tolist() == expected.tolist()
