"""Variables, dimensions and groups added to netCDF-4 files that exist, as netCDF4 and h5py read them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal

import h5py
import hyperslab as hs
import netCDF4
import numpy as np
import pytest
import xarray as xr

RANKS = (1, 3, 4)
#: So many variables that lists of dimensions are not made again for each.
COUNT = 40


def by_its_owner(path: Path) -> None:
    with netCDF4.Dataset(path, "w") as data:
        for name, length in [("t", None), ("x", 4), ("y", 3)]:
            data.createDimension(name, length)
        data.createVariable("x", "f8", ("x",))[:] = np.arange(4.0)
        data.createVariable("a", "f4", ("t", "x"))[:2] = 1
        group = data.createGroup("g")
        group.createDimension("z", 2)
        group.createVariable("b", "i4", ("y", "z"))[:] = 5


def by_an_old_owner(path: Path) -> None:
    by_its_owner(path)
    with h5py.File(path, "r+") as file:
        del file.attrs["_NCProperties"]


def by_ours(path: Path) -> None:
    with hs.open(path, "w", format="netcdf4", unlimited="t") as file:
        file.write({"x": (["x"], np.arange(4.0)), "a": (["t", "x"], np.ones((2, 4), "f4"))})
        file.write("g/b", np.full((3, 2), 5, "i4"), dimension_names=("y", "z"))


MAKERS = {"its owner": by_its_owner, "an old owner": by_an_old_owner, "ours": by_ours}


def write(file: Any, comm: Any, name: str, array: Any, names: tuple[str, ...], *, append: bool = False) -> None:
    dist = hs.Distribution(array.shape, (comm.size,) + (1,) * (array.ndim - 1), ("block",) * array.ndim)
    part = np.ascontiguousarray(array[dist.slices(comm.rank)])
    if append:
        file.append(name, part, dist)
    else:
        file.write(name, part, dist, dimension_names=names, attributes={"units": "m"})


def added(comm: Any, path: Path) -> None:
    with hs.open(path, "r+", comm=comm) as file:
        # Of a dimension that is there and one that is not.
        write(file, comm, "new", np.arange(24.0).reshape(4, 6), ("x", "w"))
        write(file, comm, "more", np.full((2, 4), 3.0), ("t", "x"))
        write(file, comm, "more", np.full((1, 4), 4.0), (), append=True)
        write(file, comm, "g/c", np.full((2, 4), 6, "i2"), ("z", "x"))
        write(file, comm, "g/h/d", np.full((6, 2), 7.0), ("w", "z"))
        write(file, comm, "q", np.arange(5.0), ("q",))
        file.create_group("empty", attributes={"note": "nothing"})
        with file.step("s0") as step:
            write(step, comm, "e", np.full(4, 9.0), ("x",))


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("maker", MAKERS)
def test_variables_are_added_to_dimensions_that_are_there(maker: str, ranks: int, tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    MAKERS[maker](path)
    hs.threads(ranks, lambda comm: added(comm, path))
    with netCDF4.Dataset(path) as data:
        assert {name: len(one) for name, one in data.dimensions.items() if name != "y"} == {
            "t": 3,
            "x": 4,
            "w": 6,
            "q": 5,
        }
        assert data["new"].dimensions == ("x", "w")
        assert data["new"].units == "m"
        assert data["new"][...].tolist() == np.arange(24.0).reshape(4, 6).tolist()
        assert data["more"][...].tolist() == [[3.0] * 4] * 2 + [[4.0] * 4]
        assert np.ma.getmaskarray(data["a"][2]).all()
        assert (data["g/c"].dimensions, data["g/c"].dtype) == (("z", "x"), np.dtype("i2"))
        # The dimension of the group above, and not another of that name.
        assert list(data["g"].dimensions) == ["z"] if maker != "ours" else True
        assert list(data["g/h"].dimensions) == []
        assert data["q"][...].tolist() == [0, 1, 2, 3, 4]
        assert data["empty"].note == "nothing"
        assert data["s0/e"][...].tolist() == [9.0] * 4
    with h5py.File(path) as file:
        users = [(file[one].name, int(number)) for one, number in file["x"].attrs["REFERENCE_LIST"]]
        assert users == [("/a", 1), ("/new", 0), ("/more", 1), ("/g/c", 1), ("/s0/e", 0)]
        assert [scale.name for scale in file["new"].dims[0].values()] == ["/x"]
        names = [name for name in ("t", "x", "y", "w", "q", "g/y", "g/z") if name in file]
        # Without a gap: netCDF finds dimensions by their numbers.
        assert sorted(int(file[name].attrs["_Netcdf4Dimid"]) for name in names) == list(range(len(names)))
    assert hs.verify(path).findings == ()
    with xr.open_dataset(path) as data:
        assert data["new"].dims == ("x", "w")
        assert data["new"].coords["x"].values.tolist() == [0, 1, 2, 3]


def test_its_owner_goes_on_with_what_was_added(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    by_its_owner(path)
    hs.threads(1, lambda comm: added(comm, path))
    with netCDF4.Dataset(path, "a") as data:
        data.createVariable("owner", "f8", ("w", "q"))[:] = 1
        data["more"][5] = 8
        data.renameVariable("new", "renamed")
        data.renameDimension("w", "v")
    with hs.open(path) as file:
        assert file["owner"].dimension_names == ("v", "q")
        assert file["renamed"].dimension_names == ("x", "v")
        assert file["more"].shape == file["a"].shape == (6, 4)


def test_what_does_not_fit_dimensions_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    by_its_owner(path)
    before = path.read_bytes()
    with hs.open(path, "r+") as file:
        with pytest.raises(hs.InvalidError, match="dimension 'x' of array 'bad' has another length in the file"):
            file.write("bad", np.zeros(5), dimension_names=["x"])
        with pytest.raises(hs.UnsupportedError, match="one dimension for a variable that is called like a dimension"):
            file.write("y", np.zeros((3, 4)), dimension_names=["y", "x"])
        # As netCDF has it, a dimension lies in its group beside variables and groups.
        for taken in ("a", "g"):
            with pytest.raises(hs.InvalidError, match=f"a name for the dimension '{taken}' that is free"):
                file.write("bad", np.zeros(5), dimension_names=[taken])
        with pytest.raises(hs.UnsupportedError, match="deleting from a netCDF-4 file"):
            file.delete("a")
    assert path.read_bytes() == before


def test_a_new_dimension_is_not_called_like_a_group(tmp_path: Path) -> None:
    with hs.open(tmp_path / "a.nc", "w", format="netcdf4") as file:
        file.write("g/a", np.zeros(4), dimension_names=["x"])
        with pytest.raises(hs.InvalidError, match="make the dimension 'g': expected a name that is free"):
            file.write("b", np.zeros(5), dimension_names=["g"])
    with netCDF4.Dataset(tmp_path / "a.nc") as data:
        assert (list(data.dimensions), list(data.groups), list(data["g"].dimensions)) == ([], ["g"], ["x"])


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("maker", MAKERS)
def test_a_dimension_gets_its_variable(maker: str, ranks: int, tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    MAKERS[maker](path)

    def program(comm: Any) -> None:
        with hs.open(path, "r+", comm=comm) as file:
            write(file, comm, "t", np.arange(2.0), ("t",))
            if maker != "ours":
                write(file, comm, "y", np.arange(3, dtype="i2"), ("y",))
            write(file, comm, "g/z", np.arange(2, dtype="i8"), ("z",))
            write(file, comm, "t", np.full(1, 7.0), (), append=True)

    hs.threads(ranks, program)
    with netCDF4.Dataset(path) as data:
        assert data["t"][...].tolist() == [0, 1, 7]
        assert (data["t"].dimensions, data["t"].units, data["a"].dimensions) == (("t",), "m", ("t", "x"))
        assert data.dimensions["t"].isunlimited()
        assert np.ma.getmaskarray(data["a"][2]).all()
        assert data["g/z"][...].tolist() == [0, 1]
        assert data["g/b"][...].tolist() == [[5, 5]] * 3
        if maker != "ours":
            assert (data["y"].dtype, data["y"][...].tolist()) == (np.dtype("i2"), [0, 1, 2])
    with h5py.File(path) as file:
        assert [scale.name for scale in file["a"].dims[0].values()] == ["/t"]
        assert [file[one].name for one, _ in file["t"].attrs["REFERENCE_LIST"]] == ["/a"]
    assert hs.verify(path).findings == ()
    with netCDF4.Dataset(path, "a") as data:
        data["t"][3] = 9
        data.renameDimension("t", "time")
        data.createVariable("after", "f8", ("time",))[:] = 1
    with hs.open(path) as file:
        assert file.read("t").tolist() == [0, 1, 7, 9]
        assert file["a"].shape == (4, 4)


def test_a_variable_is_called_like_a_dimension_and_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    by_its_owner(path)
    with hs.open(path, "r+") as file:
        file.write("y", np.full(4, 3.0), dimension_names=["x"])
        file["y"].attrs["units"] = "K"
    with hs.open(path, "r+") as file:
        file.write("g/z", np.float64(3.0))
    with netCDF4.Dataset(path) as data:
        assert (data["y"].dimensions, data["y"].units, data["g/b"].dimensions) == (("x",), "K", ("y", "z"))
        assert data["y"][...].tolist() == [3.0] * 4
        assert (data["g/z"].dimensions, float(data["g/z"][...])) == ((), 3.0)
    with hs.open(path) as file:
        assert file.read("y").tolist() == [3.0] * 4


def test_a_file_of_the_classic_model_keeps_to_it(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF4_CLASSIC") as data:
        data.createDimension("t", None)
        data.createVariable("a", "f8", ("t",))[:2] = 1
    with hs.open(path, "r+") as file:
        file.write("b", np.arange(2, dtype="i2"), dimension_names=["t"])
        for name, array in [("c", np.zeros(2, "i8")), ("g/c", np.zeros(2))]:
            with pytest.raises(hs.UnsupportedError, match="the classic model of netCDF does not have that"):
                file.write(name, array, dimension_names=["t"])
    with netCDF4.Dataset(path) as data:
        assert (data.data_model, list(data.variables)) == ("NETCDF4_CLASSIC", ["a", "b"])
        assert data["b"][...].tolist() == [0, 1]


def in_and_out() -> dict[str, int]:
    """What this process has asked of files so far: how many reads, and bytes read and written."""
    lines = Path("/proc/self/io").read_text().splitlines()
    numbers = {name: int(value) for name, value in (line.split(": ") for line in lines)}
    return {name: numbers[name] for name in ("syscr", "rchar", "wchar")}


@pytest.mark.parametrize("brings", [0, 1])
def test_variables_one_after_another_cost_what_one_costs(brings: int, tmp_path: Path) -> None:
    """Held by counting: four times as many take about four times as much, also where each brings a dimension.

    Trees of links become deeper, so that a little more is read of them.
    """
    costs = []
    for count in (200, 800):
        path = tmp_path / f"{count}.nc"
        by_its_owner(path)
        with hs.open(path, "r+", durable=False) as file:
            before = in_and_out()
            for number in range(count):
                names = ["y", f"x{number}" if brings else "x"]
                file.write(f"v{number}", np.full((3, 4), number), dimension_names=names)
            costs.append({name: after - before[name] for name, after in in_and_out().items()})
        with netCDF4.Dataset(path) as data:
            assert len(data.dimensions) == 3 + brings * count
            for number in (0, 1, count // 2, count - 1):
                assert data[f"v{number}"].dimensions == ("y", f"x{number}" if brings else "x")
                assert data[f"v{number}"][2, 3] == number
        with h5py.File(path) as file:
            users = [file[one].name for one, _ in file["y"].attrs["REFERENCE_LIST"]]
            assert users == ["/g/b", *(f"/v{number}" for number in range(count))]
    few, many = costs
    exponents = {name: math.log(many[name] / few[name], 4) for name in few}
    assert exponents["syscr"] <= 1.2, (few, many)
    assert exponents["wchar"] <= 1.2, (few, many)
    assert exponents["rchar"] <= 1.3, (few, many)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("locking", [None, False])
def test_each_addition_agrees_with_those_before(locking: Literal[False] | None, ranks: int, tmp_path: Path) -> None:
    """What rank 0 keeps between calls holds: beside appends, attributes, failures, a refresh, other openings."""
    path = tmp_path / "a.nc"
    by_its_owner(path)

    def program(comm: Any) -> None:
        with hs.open(path, "r+", comm=comm, locking=locking) as file:
            for number in range(COUNT):
                write(file, comm, f"v{number}", np.full((4, 3), float(number)), ("x", "y"))
                write(file, comm, f"g/n{number}", np.full((2, 5), float(number)), ("z", f"w{number % 3}"))
                if number in (3, 30):
                    with pytest.raises(hs.InvalidError, match="has another length in the file"):
                        write(file, comm, "bad", np.zeros((5, 3)), ("x", "y"))
                    with pytest.raises(hs.ExistsError):
                        file.create_group("v1")
                if number == 5:
                    write(file, comm, "a", np.zeros((1, 4), "f4"), (), append=True)
                    file["x"].attrs["units"] = "km"
                if number in (7, 34):
                    file.refresh()
                if number == 8:
                    write(file, comm, "y", np.arange(3, dtype="i2"), ("y",))
                if number == 10:
                    with file.step("s") as step:
                        write(step, comm, "e", np.full((3, 6), 9.0), ("y", "new"))
        with hs.open(path, "r+", comm=comm, locking=locking) as file:
            write(file, comm, "last", np.full((5, 6), 1.0), ("w0", "u"))

    hs.threads(ranks, program)
    with netCDF4.Dataset(path) as data:
        sizes = {name: len(one) for name, one in data.dimensions.items()}
        assert sizes == {"t": 3, "x": 4, "y": 3, "w0": 5, "u": 6}
        assert {name: len(one) for name, one in data["g"].dimensions.items()} == {"z": 2, "w0": 5, "w1": 5, "w2": 5}
        assert {name: len(one) for name, one in data["s"].dimensions.items()} == {"new": 6}
        assert (data["x"].units, data["y"].dimensions, data["y"][...].tolist()) == ("km", ("y",), [0, 1, 2])
        for number in range(COUNT):
            assert data[f"v{number}"].dimensions == ("x", "y")
            assert data[f"g/n{number}"].dimensions == ("z", f"w{number % 3}")
            assert data[f"v{number}"][...].tolist() == [[number] * 3] * 4
            assert data[f"g/n{number}"][...].tolist() == [[number] * 5] * 2
        assert data["s/e"].dimensions == ("y", "new")
        assert data["last"].dimensions == ("w0", "u")
    with h5py.File(path) as file:
        found = [one for one in ("t", "x", "y", "w0", "s/new", "g/z", "g/w0", "g/w1", "g/w2") if one in file]
        ids = [int(file[one].attrs["_Netcdf4Dimid"]) for one in found]
        assert len(set(ids)) == len(ids)
        users = {(file[one].name, int(d)) for one, d in file["y"].attrs["REFERENCE_LIST"]}
        assert users == {("/g/b", 0), ("/s/e", 0), *((f"/v{number}", 1) for number in range(COUNT))}
        users = {(file[one].name, int(d)) for one, d in file["g/w1"].attrs["REFERENCE_LIST"]}
        assert users == {(f"/g/n{number}", 1) for number in range(COUNT) if number % 3 == 1}
    assert hs.verify(path).findings == ()
    with netCDF4.Dataset(path, "a") as data:
        data.renameDimension("x", "lon")
        data.createVariable("owner", "f8", ("lon", "w0"))[:] = 1
    with hs.open(path) as file:
        assert file["v39"].dimension_names == ("lon", "y")
