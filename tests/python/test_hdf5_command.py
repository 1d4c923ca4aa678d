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
        data.create_dataset("lists", (2,), h5py.vlen_dtype("i4"))
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
  lists  cannot be read: expected elements of fixed size, found lists of variable length
  fields/
    rho  float64 (12, 20), 1.88 KiB, chunks (5, 8), shuffle+deflate
        units = "kg m-3"
"""
        assert run(capsys, "inspect", path) == (1, expected, "")
    told = json.loads(run(capsys, "inspect", path, "--json")[1])
    assert (told["kind"], told["attributes"], list(told["groups"])) == ("hdf5", {"title": "a trial"}, ["fields"])
    rho = told["groups"]["fields"]["arrays"]["rho"]
    assert (rho["shape"], rho["chunks"], rho["codecs"]) == ([12, 20], [5, 8], ["shuffle", "deflate"])
    assert "variable length" in told["arrays"]["lists"]["error"]


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
  g/
    w  int32 (x: 6), 24 B
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
        fill = f", fill {netCDF4.default_fillvals['f8']}" if kind == "netCDF-4" else ""
        shown = f'  in/\n    rho  float64 (x: 3), 24 B{fill}\n        units = "kg"\n'
        expected = f'{tmp_path / name}  {kind}\n  title = "t"\n{shown}'
        assert run(capsys, "inspect", tmp_path / name) == (0, expected, "")


def test_inspect_says_why_a_file_cannot_be_opened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = make(tmp_path / "a.h5")
    content = path.read_bytes()
    path.write_bytes(content[:-8])
    status, shown, errors = run(capsys, "inspect", path)
    assert (status, shown, "cut short" in errors) == (2, "", True)
    path.write_bytes(bytes(len(content)))
    assert "without the signature of one" in run(capsys, "inspect", path)[2]


# ---- verify ---------------------------------------------------------------------------------------------------------


def chunk_at(path: Path, name: str, number: int) -> int:
    """Where a chunk lies in a file."""
    with h5py.File(path) as data:
        offset = data[name].id.get_chunk_info(number).byte_offset
        assert isinstance(offset, int)
        return offset


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 0x10
    path.write_bytes(content)


def damage(path: Path) -> list[tuple[str, str | None, Any]]:
    """Kind, array and section of what is damaged."""
    return [(each.kind, each.array, each.section) for each in hs.verify(path).of("damage")]


def test_verify_reads_every_chunk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = make(tmp_path / "a.h5")
    expected = f"""\
{path}: HDF5 file, 4 arrays
chunks: 20 checked; 2.7 KiB of elements read
not checked:
  a.h5: lists: expected elements of fixed size, found lists of variable length
result: no damage found in what was checked
"""
    assert run(capsys, "verify", path) == (0, expected, "")
    told = json.loads(run(capsys, "verify", path, "--json")[1])
    assert (told["kind"], told["damaged"], told["nbytes"]) == ("hdf5", False, 240 * 8 + 100 * 8 + 14)
    counts = {each["name"]: (each["chunks"], each["checked"], each["unchecked"]) for each in told["arrays"]}
    assert counts == {"fields/rho": (9, 9, 0), "lists": (0, 0, 0), "plain": (1, 1, 0), "sums": (10, 10, 0)}


def test_verify_names_chunks_that_are_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = make(tmp_path / "a.h5")
    flip(path, chunk_at(path, "sums", 5) + 3)
    flip(path, chunk_at(path, "fields/rho", 4))
    assert damage(path) == [("chunk", "fields/rho", ((5, 10), (8, 16))), ("chunk", "sums", ((50, 60),))]
    status, shown, _ = run(capsys, "verify", path)
    assert status == 1
    assert "chunks: 18 checked, 2 damaged" in shown
    assert "  sums [50:60] in a.h5: expected fletcher32 checksum 0x" in shown


def test_verify_checks_netcdf4_files(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as data:
        data.createDimension("t", None)
        variable = data.createVariable("v", "f4", ("t",), chunksizes=(4,), fletcher32=True)
        variable[:] = np.arange(10)
        data.createVariable("g/w", "i4", ())[...] = 1
    found = hs.verify(path)
    assert (found.kind, found.damaged, [array.name for array in found.arrays]) == ("hdf5", False, ["g/w", "v"])
    flip(path, chunk_at(path, "v", 2))
    assert damage(path) == [("chunk", "v", ((8, 10),))]


def test_verify_finds_files_that_are_not_whole(tmp_path: Path) -> None:
    path = make(tmp_path / "a.h5")
    content = path.read_bytes()
    path.write_bytes(content[:-8])
    assert damage(path) == [("length", None, None)]
    path.write_bytes(bytes(8) + content[8:])
    (finding,) = hs.verify(path).findings
    assert (finding.kind, "was never closed" in finding.text) == ("metadata", True)
    path.write_bytes(b"")
    assert damage(path) == [("metadata", None, None)]


def test_verify_finds_updates_and_new_files_that_did_not_end(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with hs.open(path, "w") as file:
        file.write("rho", np.arange(6.0))
        with pytest.raises(hs.NotFoundError, match="beside it lies what was not published"):
            hs.verify(path)
    assert not hs.verify(path).findings
    marker = path.with_name(".a.h5.hyperslab-update")
    marker.write_text("a note")
    (finding,) = hs.verify(path).findings
    assert (finding.severity, finding.kind, finding.path) == ("warning", "update", str(marker))


def test_verify_reads_large_datasets_in_parts(tmp_path: Path) -> None:
    path, values = tmp_path / "a.h5", np.zeros((3, 1 << 19))
    with h5py.File(path, "w") as data:
        data["large"] = values
        data.create_dataset("empty", (0, 3), "f4")
        data.create_dataset("many", data=np.zeros(5000, "i1"), chunks=(1,))
    found = hs.verify(path, jobs=3)
    assert (found.damaged, found.nbytes) == (False, values.nbytes + 5000)
    assert {each.name: each.checked for each in found.arrays} == {"empty": 1, "large": 1, "many": 5000}
    # What a chunk needs is more than there may be.
    (finding,) = hs.verify(make(tmp_path / "b.h5"), buffer_bytes=700).of("unchecked")[:1]
    assert finding.kind == "buffer"


def test_verify_finds_headers_and_indexes_that_are_damaged(tmp_path: Path) -> None:
    """Any one byte of the metadata of a file is damage or harmless, and nothing else fails."""
    content = make(tmp_path / "a.h5", libver="latest").read_bytes()
    path, kinds = tmp_path / "b.h5", set()
    for at in range(48, len(content), 97):
        path.write_bytes(content)
        flip(path, at)
        kinds |= {each.kind for each in hs.verify(path).of("damage")}
    assert {"chunk", "metadata"} <= kinds
