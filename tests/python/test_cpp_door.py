"""The header for C++: a program that uses all of it, alone and under ``mpiexec``."""

from __future__ import annotations

import subprocess
from pathlib import Path

import h5py
import hyperslab as hs
import numpy as np
import pytest
import zarr

from c_door import HEADERS, ROOT, STRICT, compiler, library, mpi_flags
from mpi_launch import launched

PROGRAM = Path(__file__).parent / "cpp_programs/trip.cpp"
#: Where Debian has the headers of Eigen; without them, its part is left out.
EIGEN = "/usr/include/eigen3"


@pytest.fixture(scope="module", params=["g++", "clang++-16"])
def trip(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, made = tmp_path_factory.mktemp("cpp"), compiler(request.param)
    (folder / "libhyperslab.so.0").symlink_to(library())
    flags = ["-std=c++20", *STRICT, "-g", "-I", str(HEADERS), "-isystem", EIGEN, str(PROGRAM)]
    linked = [str(folder / "libhyperslab.so.0"), f"-Wl,-rpath,{folder}", *mpi_flags(), "-o", str(folder / "trip")]
    done = subprocess.run([made, *flags, *linked], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "trip"


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_all_of_it_on_ranks_of_mpi(trip: Path, ranks: int, tmp_path: Path) -> None:
    done = launched(ranks, trip, tmp_path, "mpi")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "all is well\n"
    expected = 100.0 * np.arange(12)[:, None] + np.arange(5)
    expected[np.ix_([0, 5], [3, 4])] = [[-1, -2], [-3, -4]]
    with h5py.File(tmp_path / "u.h5") as file:
        assert np.array_equal(file["u"][...], expected)
        assert (file["u"].attrs["units"], file["u"].attrs["pair"].dtype) == ("kg m-3", np.dtype("f4"))
        assert file.attrs["time"] == 0.5
    group = zarr.open_group(tmp_path / "u.zarr", mode="r")
    assert np.array_equal(group["u"][...], expected)
    with hs.open(tmp_path / "boxes.zarr") as store:
        rho = store.group("0001").read("rho")
        owners = np.repeat(np.arange(ranks), 4)
        assert np.array_equal(rho[:, 0], np.where(np.arange(4 * ranks) % 4 < 2, owners, -owners))
        assert store["map"].shape == (4 * ranks,)
    if (tmp_path / "eigen.h5").exists():
        with h5py.File(tmp_path / "eigen.h5") as file:
            for name in ("matrix", "rows", "block"):
                assert file[name][...].tolist() == [[1, 2], [3, 4], [5, 6]]


def test_all_of_it_alone(trip: Path, tmp_path: Path) -> None:
    done = subprocess.run([trip, tmp_path, "alone"], capture_output=True, text=True, check=False, timeout=100)
    assert (done.returncode, done.stdout) == (0, "all is well\n"), done.stderr


def test_what_is_wrong_does_not_compile(tmp_path: Path) -> None:
    """With words that say what an array is."""
    (tmp_path / "wrong.cpp").write_text(
        '#include <hyperslab.hpp>\nvoid f(hyperslab::group &g, const hyperslab::dist &d) { g.write("a", 3, d); }\n'
    )
    command = [compiler("c++"), "-std=c++20", "-fsyntax-only", "-I", str(HEADERS), str(tmp_path / "wrong.cpp")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode != 0
    assert "arrays have data_handle(), rank(), extent(d) and stride(d), or are ranges" in done.stderr
