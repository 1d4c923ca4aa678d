"""Attributes and names of NetCDF classic files that exist, changed by us, as netCDF4 reads them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import hyperslab as hs
import netCDF4
import numpy as np
import pytest

RANKS = (1, 3, 4)


def made(path: Path, comm: Any = None, **options: Any) -> None:
    size = 1 if comm is None else comm.size
    with hs.open(path, "w", comm=comm, unlimited="t", attributes={"title": "a run"}, **options) as file:
        said = {
            "a": (["t", "x"], np.ones((2, 3)), {"units": "m"}),
            "b": (["x"], np.arange(3.0), {"missing_value": -1.0}),
        }
        dists = {"a": hs.Distribution.replicated((2, 3), size), "b": hs.Distribution.replicated((3,), size)}
        file.write(said, dists)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("version", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"])
def test_attributes_and_names_change(ranks: int, version: str, tmp_path: Path) -> None:
    path = tmp_path / "a.nc"

    def program(comm: Any) -> None:
        made(path, comm, format=version)
        with hs.open(path, "r+", comm=comm) as file:
            file.attrs["title"] = "another run"
            file["a"].attrs.update(units="km", factor=np.float32(0.5), list=np.arange(3, dtype="i2"))
            del file["b"].attrs["missing_value"]
            file.rename("b", "depth of water")
            # More than there is room for before the data, which move.
            file.attrs["history"] = "x" * 100_000
            file.append("a", np.full((1, 3), 3.0), hs.Distribution.replicated((1, 3), comm.size))
            assert file["a"].attrs["units"] == "km"
            assert sorted(file) == ["a", "depth of water"]

    hs.threads(ranks, program)
    with netCDF4.Dataset(path) as data:
        assert data.data_model == version
        assert (data.title, len(data.history)) == ("another run", 100_000)
        assert data["a"].__dict__.keys() == {"units", "factor", "list"}
        assert (data["a"].units, data["a"].factor.dtype, data["a"].list.dtype) == ("km", np.dtype("f4"), np.dtype("i2"))
        assert data["a"][...].tolist() == [[1.0] * 3] * 2 + [[3.0] * 3]
        assert data["depth of water"].ncattrs() == []
        assert data["depth of water"][...].tolist() == [0, 1, 2]
    assert [each.name for each in tmp_path.iterdir()] == ["a.nc"]


def test_attributes_change_before_a_new_file_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with hs.open(path, "w", unlimited="t", durable=False) as file:
        file.write("a", np.ones((2, 3)), dimension_names=["t", "x"])
        file["a"].attrs["units"] = "m"
        file.attrs["long"] = "y" * 200_000
        assert not path.exists()
        file.append("a", np.zeros((1, 3)))
        file.flush()
        file.attrs["late"] = 1
        with netCDF4.Dataset(path) as data:
            assert (data.late, data["a"].units, len(data.long)) == (1, "m", 200_000)
        file.write("b", np.arange(3.0), dimension_names=["x"])
    with netCDF4.Dataset(path) as data:
        assert data["a"][...].tolist() == [[1.0] * 3] * 2 + [[0.0] * 3]
        assert data["b"][...].tolist() == [0, 1, 2]
        assert data.late == 1


def test_what_classic_files_cannot_say_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    made(path)
    before = path.read_bytes()
    with hs.open(path, "r+") as file:
        refused: list[tuple[Any, Any, str]] = [
            (lambda: file.attrs.update(a={"b": 1}), hs.InvalidError, "a text, a number, or a list of numbers"),
            (lambda: file.attrs.update(a=np.int64(1)), hs.UnsupportedError, "NETCDF3_64BIT_OFFSET"),
            (lambda: file["a"].attrs.update(_FillValue=2.0), hs.UnsupportedError, "the fill value"),
            (lambda: file["nothing"].attrs.update(a=1), hs.NotFoundError, "nothing"),
            (lambda: file.rename("a", "b"), hs.InvalidError, "a name that no variable has"),
            (lambda: file.rename("a", "x/y"), hs.InvalidError, "no '/'"),
            (lambda: file.delete("a"), hs.UnsupportedError, "deleting an array would move"),
        ]
        for call, kind, text in refused:
            with pytest.raises(kind, match=text):
                call()
        assert path.read_bytes() == before
        assert file["a"].attrs["units"] == "m"


def test_another_program_that_changes_the_file_meanwhile_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    made(path)
    with hs.open(path, "r+") as file, hs.open(path, "r+") as other:
        other.attrs["x"] = 1
        with pytest.raises(hs.Error, match="renamed, replaced or removed"):
            file.attrs["y"] = 2
    with netCDF4.Dataset(path) as data:
        assert data.ncattrs() == ["title", "x"]


@pytest.mark.parametrize("other", ["sets", "adds"])
def test_of_two_programs_that_change_a_file_neither_loses_what_it_was_told_is_done(other: str, tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with hs.open(path, "w", unlimited="t") as file:
        file.write("v", np.full((1, 4), -1.0), dimension_names=["t", "x"])
    command = [sys.executable, Path(__file__).with_name("changed_by_two.py")]
    started = [
        subprocess.Popen([*command, act, path, "2"], stdout=subprocess.PIPE, text=True) for act in ("appends", other)
    ]
    appended, changed = (json.loads(each.communicate()[0]) for each in started)
    with netCDF4.Dataset(path) as data:
        assert data["v"][:, 0].tolist() == [-1.0, *range(appended["done"])]
        if other == "sets":
            assert data.__dict__ == {f"a{number}": number for number in range(changed["done"])}
        else:
            assert set(data.variables) == {"v", *(f"n{number}" for number in range(changed["done"]))}
    assert appended["done"] > 0
    # Nothing of the other program, which lives, is called unfinished, and nothing of it is removed.
    said = [*appended["said"], *changed["said"]]
    assert [each for each in said if "is not the one that was opened any more" not in each] == []


def test_a_copy_does_not_hide_that_an_update_did_not_end(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    made(path)
    # What a program leaves that dies while it changes a section.
    (tmp_path / ".a.nc.hyperslab-update").write_text('{"readers":"torn"}\n')
    with pytest.warns(UserWarning, match="an update in place began and did not end"):
        file = hs.open(path, "r+")
    with file:
        with pytest.raises(hs.InvalidError, match=r"an update of 'a\.nc' did not end, which a copy would not tell"):
            file.attrs["title"] = "another"
        with pytest.raises(hs.InvalidError, match="did not end, which a copy would not tell"):
            file.write("c", np.arange(3.0))
        assert file.unfinished == ("a.nc",)
        file.write({"a": np.full((2, 3), 7.0), "b": np.arange(3.0) + 7})
        assert file.unfinished == ()
        file.attrs["title"] = "another"
    with netCDF4.Dataset(path) as data:
        assert (data.title, data["a"][...].tolist()) == ("another", [[7.0] * 3] * 2)
