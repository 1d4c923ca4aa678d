"""``hyperslab inspect`` and ``verify`` of HDF5 and netCDF-4 files that h5py, netCDF4-python and this package made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import netCDF4
import numpy as np
import pytest
from hyperslab.__main__ import main


def make(path: Path, **options: Any) -> Path:
    """A file of h5py with what can be read and what cannot."""
    with h5py.File(path, "w", **options) as data:
        data.attrs["title"] = "a trial"
        given: dict[str, Any] = {"shuffle": True, "compression": "gzip"}
        rho = data.create_dataset("fields/rho", data=np.arange(240.0).reshape(12, 20), chunks=(5, 8), **given)
        rho.attrs["units"] = "kg m-3"
        data.create_dataset("sums", data=np.arange(100), chunks=(10,), fletcher32=True)
        data["plain"] = np.arange(7, dtype=">i2")
        data["text"] = ["a", "b"]
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Status, output and errors of the command."""
    status = main([*map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


# ---- inspect --------------------------------------------------------------------------------------------------------


def test_inspect_shows_hdf5_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # The name does not matter, nor what lies before the signature.
    for path, options in ((tmp_path / "a.h5", {}), (tmp_path / "restart", {"userblock_size": 1024})):
        make(path, **options)
        expected = f"""\
{path}  HDF5
  title = "a trial"
  plain  >i2 (7), 14 B
  sums  int64 (100), 800 B, chunks (10,), fletcher32
  fields/rho  float64 (12, 20), 1.88 KiB, chunks (5, 8), shuffle+deflate
      units = "kg m-3"
  text  cannot be read: expected elements of fixed size, found text of variable length
"""
        assert run(capsys, "inspect", path) == (1, expected, "")
    told = json.loads(run(capsys, "inspect", path, "--json")[1])
    assert (told["kind"], told["attributes"], list(told["groups"])) == ("hdf5", {"title": "a trial"}, [])
    rho = told["arrays"]["fields/rho"]
    assert (rho["shape"], rho["chunks"], rho["codecs"]) == ([12, 20], [5, 8], ["shuffle", "deflate"])
    assert "variable length" in told["arrays"]["text"]["error"]


def test_inspect_shows_netcdf4_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as data:
        data.title = "a trial"
        data.createDimension("x", 6)
        variable = data.createVariable("v", "f4", ("x",), zlib=True, shuffle=True, chunksizes=(3,), fill_value=-1)
        variable[:] = np.ones(6)
        variable.units = "m"
        data.createGroup("g").createVariable("w", "i4", ("x",), fill_value=False)[:] = 1
    expected = f"""\
{path}  netCDF-4
  title = "a trial"
  v  float32 (x: 6), 24 B, chunks (3,), shuffle+deflate, fill -1.0
      _FillValue = -1.0
      units = "m"
  g/w  int32 (x: 6), 24 B
"""
    assert run(capsys, "inspect", path) == (0, expected, "")
    assert json.loads(run(capsys, "inspect", path, "--json")[1])["kind"] == "netcdf4"
    renamed = path.rename(tmp_path / "renamed")
    assert "renamed  netCDF-4\n" in run(capsys, "inspect", renamed)[1]
    with h5py.File(tmp_path / "by_h5py.nc", "w") as plain:
        plain["v"] = np.zeros(3)
    assert "by_h5py.nc  netCDF-4\n" in run(capsys, "inspect", tmp_path / "by_h5py.nc")[1]


def test_inspect_shows_files_of_our_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, kind in (("a.h5", "HDF5"), ("a.nc4", "netCDF-4")):
        with hs.open(tmp_path / name, "w", attributes={"title": "t"}) as file:
            file.write({"in/rho": (("x",), np.zeros(3), {"units": "kg"})})
        names = "x: 3" if kind == "netCDF-4" else "3"
        expected = f'{tmp_path / name}  {kind}\n  title = "t"\n  in/rho  float64 ({names}), 24 B\n      units = "kg"\n'
        assert run(capsys, "inspect", tmp_path / name) == (0, expected, "")


def test_inspect_says_why_a_file_cannot_be_opened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = make(tmp_path / "a.h5")
    content = path.read_bytes()
    path.write_bytes(content[:-8])
    status, shown, errors = run(capsys, "inspect", path)
    assert (status, shown, "cut short" in errors) == (2, "", True)
    path.write_bytes(bytes(len(content)))
    assert "without the signature of one" in run(capsys, "inspect", path)[2]
