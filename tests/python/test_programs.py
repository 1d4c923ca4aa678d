"""The benchmarks of two programs: they write what they say and read it back, and PnetCDF agrees where it is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest
from hyperslab.bench import _e3sm_case

HEADER = """\
netcdf some {
dimensions:
\ttime = UNLIMITED ; // (3 currently)
\tlev = 4 ;
\tncol = 10 ;
variables:
\tdouble lat(ncol) ;
\t\tlat:units = "degrees; north // of 0" ;
\t\tlat:_FillValue = 1.e+20 ;
\tint P0 ;
\tfloat T(time, lev, ncol) ;
\t\tT:missing_value = 1.e+20f, 2.f ;
\t\tT:levels = 1s, 2s ;
\tchar date_written(time, lev) ;

// global attributes:
\t\t:title = "a case" ;
}
"""


def bench(*args: Any) -> Any:
    """What a benchmark prints as JSON."""
    command = [sys.executable, "-m", "hyperslab", "bench", *map(str, args), "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout)


def a_peer() -> list[str]:
    """PnetCDF for the MPI of mpi4py, where a variable says that it is there."""
    library = os.environ.get("HYPERSLAB_PNETCDF")
    return ["--pnetcdf", library] if library else []


def test_a_header_is_understood() -> None:
    header = _e3sm_case.read_header(HEADER)
    assert (header.dims, header.unlimited) == ({"time": 0, "lev": 4, "ncol": 10}, "time")
    lat, p0, t, date = header.variables
    assert lat.attributes["units"] == "degrees; north // of 0"
    assert lat.attributes["_FillValue"].dtype == "f8"
    assert (p0.dims, header.shape(p0), header.is_record(p0)) == ((), (), False)
    assert (header.shape(t), header.is_record(t), t.dtype) == ((4, 10), True, np.dtype("f4"))
    assert t.attributes["missing_value"].tolist() == [np.float32(1e20), 2]
    assert t.attributes["levels"].dtype == "i2"
    assert date.dtype == "S1"
    with pytest.raises(hs.InvalidError, match="a line that is not understood: 'nonsense'"):
        _e3sm_case.read_header(HEADER.replace("int P0", "nonsense"))
    with pytest.raises(hs.InvalidError, match="its type or a dimension is not known"):
        _e3sm_case.read_header(HEADER.replace("lat(ncol)", "lat(nrow)"))


def test_maps_of_a_file_are_dealt_to_fewer_ranks(tmp_path: Path) -> None:
    with hs.open(tmp_path / "map.nc", "w", attributes={"D1.dims": np.array([4, 10], "i4")}) as file:
        each: dict[str, list[int]] = {"nreqs": [2, 0, 1], "offsets": [30, 0, 12], "lengths": [5, 10, 3]}
        for what, numbers in each.items():
            file.write(f"D1.{what}", np.array(numbers, "i4"))
    (one,) = _e3sm_case.read_maps(tmp_path / "map.nc")
    assert one.shape == (4, 10)
    assert [one.of(rank, 3).tolist() for rank in range(3)] == [[*range(10), *range(30, 35)], [], [12, 13, 14]]
    assert one.of(0, 1).tolist() == [*range(10), 12, 13, 14, *range(30, 35)]
    whole, deep = _e3sm_case.small()[1]
    for map_ in (whole, deep):
        assert np.array_equal(map_.of(0, 1), np.arange(np.prod(map_.shape)))


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 3])
def test_the_history_of_a_climate_model_is_written_and_read(ranks: int, tmp_path: Path) -> None:
    few = ("--ranks", ranks, "--records", 2, "--repetitions", 1, "--directory", tmp_path)
    (found,) = bench("e3sm", *few, *a_peer())["launches"]
    assert found["variables"] == 43
    assert {"netcdf", "netcdf4", "zarr"} <= found["seconds"].keys()
    assert all(len(times) == 2 for way in found["seconds"].values() for times in way.values())
    assert not list(tmp_path.iterdir())


@pytest.mark.mpi
def test_the_files_of_flash_are_written_and_read(tmp_path: Path) -> None:
    few = ("--ranks", 2, "--blocks", 3, "--launches", 1, "--repetitions", 1, "--directory", tmp_path)
    ((found,),) = bench("flash", *few, *a_peer())["launches"]
    assert found["blocks"] == 3 + 4
    assert {"raw", "netcdf", "hdf5", "zarr"} <= found["seconds"].keys()
    assert not list(tmp_path.iterdir())


@pytest.mark.mpi
@pytest.mark.skipif(not a_peer(), reason="HYPERSLAB_PNETCDF names no PnetCDF that was made for the MPI of mpi4py")
def test_pnetcdf_reads_and_writes_the_same(tmp_path: Path) -> None:
    """Values are compared by the ranks themselves: of its files by hyperslab, and the other way round."""
    few = ("--ranks", 2, "--repetitions", 1, "--directory", tmp_path)
    (history,) = bench("e3sm", *few, *a_peer())["launches"]
    assert "PnetCDF" in history["seconds"]
    ((flash,),) = bench("flash", *few, "--launches", 1, "--blocks", 3, *a_peer())["launches"]
    assert flash["seconds"]["PnetCDF"].keys() == {"checkpoint", "plotfile", "corners"}
