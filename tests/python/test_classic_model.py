"""netCDF-4 files that keep to the classic model, and those that say nothing of who made them, beside netCDF4."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import netCDF4
import numpy as np
import pytest

RANKS = (1, 3, 4)
TYPES = ("i1", "i2", "i4", "f4", "f8", "S1")


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", ["netcdf4_classic", "NETCDF4_CLASSIC"])
def test_the_classic_model_is_written(ranks: int, name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.nc"

    def program(comm: Any) -> None:
        with hs.open(path, "w", comm=comm, format=name, unlimited="t", attributes={"title": "a run", "n": 3}) as file:
            for kind in TYPES:
                dist = hs.Distribution((2, 6), (1, comm.size), ("block", "block"))
                part = np.arange(65, 77).reshape(2, 6).astype("u1").astype(kind if kind != "S1" else "u1")
                part = part.view("S1") if kind == "S1" else part
                attributes = {"units": "m", "flags": [1, 2], "valid_min": 1.5}
                names = ["t", "x"]
                own = np.ascontiguousarray(part[dist.slices(comm.rank)])
                file.write(f"v_{kind}", own, dist, dimension_names=names, attributes=attributes)

    hs.threads(ranks, program)
    with netCDF4.Dataset(path) as data:
        assert data.data_model == "NETCDF4_CLASSIC"
        assert (data.title, data.n.dtype, data.ncattrs()) == ("a run", np.dtype("i4"), ["title", "n"])
        assert data.dimensions["t"].isunlimited()
        for kind in TYPES:
            variable = data[f"v_{kind}"]
            assert variable.dtype == np.dtype(kind)
            assert (variable.units, variable.flags.dtype.name) == ("m", "int32")
            expected = np.arange(65, 77, dtype="u1")
            expected = expected.view("S1") if kind == "S1" else expected.astype(kind)
            assert np.ma.getdata(variable[...]).ravel().tolist() == expected.tolist()
    # Its own library, which refuses what the model does not have, goes on with it.
    with netCDF4.Dataset(path, "a") as data:
        data["v_f8"][2] = 7.0
    with hs.open(path, "r+") as file:
        assert "_nc3_strict" not in file.attrs
        file.attrs["more"] = 5
        file["v_f8"].attrs["seen"] = np.int16(3)
        with pytest.raises(hs.UnsupportedError, match="attribute 'wide' of type int64"):
            file.attrs["wide"] = np.int64(2)
        assert file.read("v_f8", section=slice(2, 3)).tolist() == [[7.0] * 6]
    with netCDF4.Dataset(path) as data:
        assert (data.data_model, data.more.dtype, data["v_f8"].seen.dtype) == (
            "NETCDF4_CLASSIC",
            np.dtype("i4"),
            np.dtype("i2"),
        )


def test_what_the_model_does_not_have_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with hs.open(path, "w", format="netcdf4_classic", unlimited="t") as file:
        file.write("a", np.zeros(3), dimension_names=["x"])
        for array, said in [
            (np.zeros(3, "i8"), "array 'b' of int64"),
            (np.zeros(3, "u1"), "array 'b' of uint8"),
        ]:
            with pytest.raises(hs.UnsupportedError, match=said):
                file.write("b", array, dimension_names=["x"])
        with pytest.raises(hs.UnsupportedError, match="group 'g'"):
            file.write("g/b", np.zeros(3), dimension_names=["x"])
        with pytest.raises(hs.UnsupportedError, match="group 'g'"):
            file.create_group("g")
        with pytest.raises(hs.UnsupportedError, match="another dimension than the first is unlimited"):
            file.write("b", np.zeros((3, 2)), dimension_names=["x", "t"])
        with pytest.raises(hs.UnsupportedError, match="attribute 'n' of type uint64"):
            file.write("b", np.zeros(3), dimension_names=["x"], attributes={"n": np.uint64(3)})
    with netCDF4.Dataset(path) as data:
        assert list(data.variables) == ["a"]
    with pytest.raises(hs.UnsupportedError, match="unlimited dimensions t, x"):
        hs.open(tmp_path / "b.nc", "w", format="netcdf4_classic", unlimited=["t", "x"])


def test_files_of_old_libraries_are_known_by_their_dimensions(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as data:
        data.createDimension("t", None)
        data.createDimension("x", 3)
        data.createVariable("a", "f8", ("t", "x"))[:2] = 1.0
        data.createVariable("b", "f8", ("t",))[:4] = 2.0
        data.createVariable("s", str, ("x",))[:] = np.array(["a", "bc", ""], object)
    with h5py.File(path, "r+") as file:
        del file.attrs["_NCProperties"]
    with netCDF4.Dataset(path) as data, hs.open(path) as file:
        assert sorted(file) == sorted(data.variables)
        assert file["a"].shape == data["a"].shape == (4, 3)
        assert np.array_equal(file.read("a"), np.ma.getdata(data["a"][...]))
        assert file.read("s").tolist() == data["s"][...].tolist()
