"""Dimensions of netCDF-4: a variable is as long as its dimensions, whatever of it was written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import netCDF4
import numpy as np
import pytest

RANKS = (1, 3, 4)


def uneven(path: Path) -> None:
    """Variables of different lengths along unlimited dimensions: in second place, used twice, in groups."""
    with netCDF4.Dataset(path, "w") as data:
        data.createDimension("t", None)
        data.createDimension("s", None)
        data.createDimension("x", 2)
        data.createVariable("t", "f8", ("t",))[:3] = np.arange(3.0)
        data.createVariable("long", "i4", ("t", "x"))[:3] = np.arange(6).reshape(3, 2)
        data.createVariable("short", "f4", ("t", "x"), chunksizes=(2, 2))[:1] = 1.5
        data.createVariable("none", "i2", ("t",))
        data.createVariable("filled", "i8", ("t",), fill_value=-7)[:2] = 4
        data.createVariable("second", "f8", ("x", "s"))[:, :4] = np.arange(8.0).reshape(2, 4)
        data.createVariable("both", "u1", ("t", "s"))[:2, :1] = 9
        data.createVariable("square", "i4", ("s", "s"))[:1, :2] = 3
        inner = data.createGroup("g").createGroup("h")
        inner.createVariable("deep", "f8", ("t",))[:5] = 1.0
        inner.createDimension("t2", None)
        inner.createVariable("own", "f8", ("t2",))[:2] = 2.0
        data.createVariable("zipped", "f8", ("t", "x"), zlib=True, chunksizes=(3, 1))[:1] = 8.0
        data.createVariable("words", str, ("t",))[:1] = np.array(["a"], object)


def by_netcdf(path: Path) -> dict[str, Any]:
    found = {}
    with netCDF4.Dataset(path) as data:
        data.set_auto_mask(False)

        def walk(group: Any, within: str) -> None:
            for name, variable in group.variables.items():
                found[f"{within}{name}"] = (variable.dimensions, variable[...])
            for name, inner in group.groups.items():
                walk(inner, f"{within}{name}/")

        walk(data, "")
    # Where two dimensions go on behind what was written, the library gives bytes of other memory.
    for name, written in {"both": ((2, 1), 9), "square": ((1, 2), 3)}.items():
        dimensions, values = found[name]
        values = np.full_like(values, netCDF4.default_fillvals[values.dtype.str[1:]])
        values[tuple(map(slice, written[0]))] = written[1]
        found[name] = dimensions, values
    return found


@pytest.mark.parametrize("ranks", RANKS)
def test_variables_are_as_long_as_their_dimensions(ranks: int, tmp_path: Path) -> None:
    uneven(tmp_path / "a.nc")
    expected = by_netcdf(tmp_path / "a.nc")
    assert expected["short"][1].shape == (5, 2)

    def one(comm: hs.ThreadComm) -> None:
        with hs.open(tmp_path / "a.nc", comm=comm) as file:
            assert sorted(file) == sorted(expected)
            for name, (dimensions, values) in expected.items():
                assert file[name].dimension_names == dimensions, name
                assert file[name].shape == values.shape, name
                assert np.array_equal(file.read(name), values), (name, file.read(name), values)
                dist = hs.Distribution(values.shape, (comm.size,), ("block",) + ("*",) * (values.ndim - 1))
                assert np.array_equal(file.read(name, dist), values[dist.slices(comm.rank)]), name
                assert np.array_equal(file[name][1:], values[1:]), name

    hs.threads(ranks, one)


@pytest.mark.parametrize("ranks", RANKS)
def test_records_land_behind_all_that_are_there(ranks: int, tmp_path: Path) -> None:
    uneven(tmp_path / "a.nc")
    before = by_netcdf(tmp_path / "a.nc")

    def one(comm: hs.ThreadComm) -> None:
        with hs.open(tmp_path / "a.nc", "r+", comm=comm) as file:
            whole = hs.Distribution.replicated((1, 2), comm.size)
            file.append("short", np.full((1, 2), 6, "f4"), whole)
            file.write("zipped", np.full((1, 2), 5.0), whole, section=slice(2, 3))

    hs.threads(ranks, one)
    found = by_netcdf(tmp_path / "a.nc")
    assert found["short"][1].shape == (6, 2)
    assert np.array_equal(found["short"][1][:5], before["short"][1])
    assert found["short"][1][5].tolist() == [6, 6]
    zipped = before["zipped"][1].copy()
    zipped[2] = 5
    assert np.array_equal(found["zipped"][1][:5], zipped)
    for name, (_, values) in before.items():
        if name not in ("short", "zipped"):
            assert np.array_equal(found[name][1][tuple(map(slice, values.shape))], values), name
    with hs.open(tmp_path / "a.nc") as file:
        assert all(np.array_equal(file.read(name), values) for name, (_, values) in found.items())


@pytest.mark.parametrize("ranks", RANKS)
def test_names_of_dimensions_of_hdf5_are_labels(ranks: int, tmp_path: Path) -> None:
    """As h5py has them, also in a file that exists, and when attributes change."""
    path = tmp_path / "a.h5"

    def write(comm: hs.ThreadComm, mode: Any, name: str) -> None:
        with hs.open(path, mode, comm=comm) as file:
            dist = hs.Distribution.replicated((2, 3), comm.size)
            file.write(name, np.zeros((2, 3)), dist, dimension_names=["y", None], attributes={"units": "m"})
            assert file[name].dimension_names == ("y", None)
            with pytest.raises(hs.InvalidError, match="expected 2 names of dimensions, found 1"):
                file.write("wrong", np.zeros((2, 3)), dist, dimension_names=["y"])
            file[name].attrs.replace({"units": "km"})

    hs.threads(ranks, lambda comm: write(comm, "w", "first"))
    hs.threads(ranks, lambda comm: write(comm, "r+", "group/later"))
    with h5py.File(path, "r+") as file:
        for name in ("first", "group/later"):
            assert [each.label for each in file[name].dims] == ["y", ""]
            assert file[name].attrs["units"] == "km"
        theirs = file.create_dataset("theirs", data=np.zeros((2, 2)))
        theirs.dims[1].label = "wide"
        file.create_dataset("x", data=np.arange(3.0)).make_scale("x")
        file["first"].dims[1].attach_scale(file["x"])
    with hs.open(path) as file:
        found = {name: file[name].dimension_names for name in file}
        assert found["theirs"] == (None, "wide")
        assert found["group/later"] == ("y", None)
        assert sorted(found) == ["first", "group/later", "theirs", "x"]


@pytest.mark.parametrize("ranks", RANKS)
def test_arrays_of_a_new_file_agree_with_all_before_them(ranks: int, tmp_path: Path) -> None:
    """They come one by one, and are held against the first one that has a dimension of that name in their group."""

    def write(comm: hs.ThreadComm) -> None:
        with hs.open(tmp_path / "a.nc", "w", format="netcdf4", unlimited=["t"], comm=comm) as file:

            def put(name: str, shape: tuple[int, ...], *names: str) -> None:
                values = np.full(shape, 1.0)
                file.write(name, values, hs.Distribution.replicated(shape, comm.size), dimension_names=names)

            for number in range(20):
                put(f"v{number}", (2, 3), "t", "x")
                put(f"g/v{number}", (number % 3 + 1, 5), "t", "x")
            for name, shape in {"w": (2, 4), "g/w": (1, 3), "w2": (2, 2)}.items():
                with pytest.raises(hs.InvalidError, match="dimension 'x' of length"):
                    put(name, shape, "t", "x")
            with pytest.raises(hs.InvalidError, match="a name that is free"):
                put("w", (2,), "g")
            with pytest.raises(hs.InvalidError, match=r"dimension|name"):
                put("x/w", (2,), "y")
            file.delete("v0")
            put("y", (3,), "x")
            with pytest.raises(hs.InvalidError, match="dimension 'x' of length 3"):
                put("w", (4,), "x")
            put("deep/er/v", (2, 7), "t", "x")

    hs.threads(ranks, write)
    with netCDF4.Dataset(tmp_path / "a.nc") as file:
        assert (file.dimensions["x"].size, file["g"].dimensions["x"].size) == (3, 5)
        assert file["deep/er"].dimensions["x"].size == 7
        assert len(file.variables) == 20
        assert len(file["g"].variables) == 20
        assert np.all(file["deep/er/v"][:2] == 1)
