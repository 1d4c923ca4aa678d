"""The module for Fortran: compiled with a program by gfortran, and run under ``mpiexec``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import zarr

from c_door import ROOT, compiler, library, mpi_flags
from mpi_launch import launched

MODULE = ROOT / "bindings/fortran/hyperslab.F90"
PROGRAM = Path(__file__).parent / "fortran_programs/trip.F90"
#: The integer that stands for MPI_COMM_WORLD, by what mpi.h defines; the program has no module of MPI to ask.
WORLDS = {"OPEN_MPI": 0, "MPICH_VERSION": 0x44000000}


@pytest.fixture(scope="module")
def world() -> int:
    """The integer of MPI_COMM_WORLD in the MPI of this Python."""
    mpi_flags()
    header = (Path(sys.prefix) / "include/mpi.h").read_text(encoding="utf-8")
    found = [world for name, world in WORLDS.items() if f"#define {name}" in header]
    if not found:
        pytest.skip("the integer of MPI_COMM_WORLD is known for MPICH and Open MPI only")
    return found[0]


@pytest.fixture(scope="module")
def trip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fortran")
    flags, shared = mpi_flags(), folder / "libhyperslab.so.0"
    shared.symlink_to(library())
    strict = ["-std=f2018", "-Wall", "-Wextra", "-Werror", "-Wno-compare-reals", "-fcheck=all", "-g"]
    sources = [str(MODULE), str(PROGRAM), str(shared), f"-Wl,-rpath,{folder}"]
    command = [compiler("gfortran"), *strict, "-J", str(folder), *sources, *flags, "-o", str(folder / "trip")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "trip"


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_sections_of_arrays_go_there_and_back(trip: Path, world: int, ranks: int, tmp_path: Path) -> None:
    done = launched(ranks, trip, tmp_path, world)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "all is well\n"
    k, j, i = np.meshgrid(np.arange(1, 4), np.arange(1, 15), np.arange(1, 10), indexing="ij")
    with h5py.File(tmp_path / "trip.h5") as file:
        groups: list[Any] = [file, zarr.open_group(tmp_path / "trip.zarr", mode="r")]
        for group in groups:
            np.testing.assert_array_equal(group["u"][...], i + 100.0 * j + 10000.0 * k)
            np.testing.assert_array_equal(group["w"][...], i[0] + 100 * j[0])
            np.testing.assert_array_equal(group["c"][...], [1 - 1j, 2 - 2j, 3 - 3j, 4 - 4j])
            np.testing.assert_array_equal(group["line"][...], [8, 6, 4, 2])
            np.testing.assert_array_equal(group["i8"][...], np.arange(1, 5) * 10**10)
            np.testing.assert_array_equal(group["s1/line"][...], [1, 2, 3, 4])
            found = [group[name].dtype for name in ("u", "w", "c", "line", "i2", "i8")]
            assert found == ["f8", "i4", "c8", "f4", "i2", "i8"]
            assert "i1" not in group
            assert list(group.attrs["time"]) == [0.5, 1.5, -2.0]
            assert (group["u"].attrs["number"], group["u"].attrs["units"]) == (42, "kg m-3")


@pytest.mark.mpi
def test_a_failure_ends_all_ranks_unless_its_status_is_taken(trip: Path, world: int, tmp_path: Path) -> None:
    done = launched(3, trip, tmp_path / "missing", world)
    assert done.returncode != 0
    assert "hyperslab: rank 0 of 3: open" in done.stderr
    assert "missing/trip.h5" in done.stderr
    assert "all is well" not in done.stdout
