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


@pytest.mark.parametrize("ranks", RANKS)
def test_attributes_of_a_variable_that_is_called_like_a_dimension(ranks: int, tmp_path: Path) -> None:
    """In the file it has a name with a prefix; the attribute went to the dimension, where no reader shows it."""
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as data:
        data.createDimension("t", 3)
        data.createDimension("z", 2)
        data.createGroup("g")
        for group in (data, data["g"]):
            group.createVariable("t", "i8", ("z",))[:] = [1, 2]

    def change(file: Any, comm: hs.ThreadComm) -> None:
        for name in ("t", "g/t"):
            file[name].attrs.update(units="s", scale=np.float32(0.5))
            file.write(name, *replicated(np.array([7]), comm), section=slice(1, 2))

    on_ranks(ranks, path, change)
    with netCDF4.Dataset(path) as data, hs.open(path) as file:
        for name in ("t", "g/t"):
            assert data[name].__dict__ == {"units": "s", "scale": np.float32(0.5)} == dict(file[name].attrs)
            assert data[name][:].tolist() == [1, 7] == file.read(name).tolist()


@pytest.mark.parametrize("kind", ["h5", "nc4"])
@pytest.mark.parametrize("ranks", RANKS)
def test_one_element_that_nobody_wrote_is_the_fill_value(ranks: int, kind: str, tmp_path: Path) -> None:
    """An array without dimensions has no chunks that could be left out; it was 0."""
    path = tmp_path / f"a.{kind}"

    def change(file: Any, comm: hs.ThreadComm) -> None:
        file.create_array("given", (), "f8", fill_value=3.5)
        file.create_array("usual", (), "i4")
        mine = comm.rank == comm.size - 1
        file.write("written", [np.array(2.5)] * mine, hs.Boxes((), [()] * mine), fill_value=3.5, dtype="f8")

    on_ranks(ranks, path, change, "w")
    if kind == "h5":
        on_ranks(ranks, path, lambda file, comm: file.create_array("later", (), "f4", fill_value=1.5))
    usual = 0 if kind == "h5" else netCDF4.default_fillvals["i4"]
    expected = {"given": 3.5, "usual": usual, "written": 2.5} | ({"later": 1.5} if kind == "h5" else {})
    with h5py.File(path) as data, hs.open(path) as file:
        assert {name: data[name][()] for name in data} == expected
        assert {name: file.read(name).item() for name in file} == expected


@pytest.mark.parametrize("ranks", RANKS)
def test_objects_are_read_and_changed_through_soft_links(ranks: int, tmp_path: Path) -> None:
    """Elements in headers were not found, and attributes and new members were refused."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as data:
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_layout(h5py.h5d.COMPACT)
        data.create_dataset("small", data=np.arange(3), dcpl=properties)
        data["far/there"] = h5py.SoftLink("/small")
        data["far/group"] = h5py.SoftLink("../far")  # HDF5 knows no way up: it leads nowhere
        data["beside"], data["twice"] = h5py.SoftLink("far"), h5py.SoftLink("beside/there")
        data["round"], data["about"] = h5py.SoftLink("about"), h5py.SoftLink("round")

    def change(file: Any, comm: hs.ThreadComm) -> None:
        for name in ("small", "far/there", "twice"):
            assert file.read(name).tolist() == [0, 1, 2]
        file["twice"].attrs["units"] = "m"
        file.group("beside").attrs["near"] = True
        file.write("beside/new", *replicated(np.arange(4), comm))
        with pytest.raises(hs.UnsupportedError, match=r"expected a hard link 'twice', found a soft link(.|\n)*hint:"):
            file.rename("twice", "thrice")
        file.delete("far/there")
        with pytest.raises(hs.UnsupportedError, match="found a soft link to '/about', where nothing is"):
            file["round"].attrs["units"] = "m"

    on_ranks(ranks, path, change)
    with h5py.File(path) as data:
        assert data["small"].attrs["units"] == "m"
        assert data["far"].attrs["near"]
        assert data["far/new"][...].tolist() == [0, 1, 2, 3]
        assert sorted(data["far"]) == ["group", "new"]
        assert data.get("twice", getlink=True).path == "beside/there"


@pytest.mark.parametrize("version", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"])
def test_attributes_change_where_there_are_no_records_yet(version: Any, tmp_path: Path) -> None:
    """The room for a longer header was taken for a stretch of negative length."""
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w", format=version) as data:
        data.createDimension("t", None)
        data.createVariable("v", "i1", ("t",))
    with hs.open(path, "r+") as file:
        file["v"].attrs["units"] = "m"
        file.append("v", np.arange(3, dtype="i1"))
    with netCDF4.Dataset(path) as data:
        assert data["v"].units == "m"
        assert data["v"][:].tolist() == [0, 1, 2]


def test_the_mark_of_the_classic_model_is_no_attribute(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF4_CLASSIC") as data:
        data.title = "a run"
    with hs.open(path, "r+") as file:
        assert dict(file.attrs) == {"title": "a run"}
        file.attrs.replace({"title": "another"})
    with netCDF4.Dataset(path) as data:
        assert data.data_model == "NETCDF4_CLASSIC"
        assert data.__dict__ == {"title": "another"}


@pytest.mark.parametrize("ranks", RANKS)
def test_chunks_of_a_new_array_keep_their_places_when_it_gets_wider(ranks: int, tmp_path: Path) -> None:
    """They are counted along the last dimensions first; with more there, each was taken for another."""
    values = np.arange(3.0 * 5 * 4).reshape(3, 5, 4)

    def change(file: Any, comm: hs.ThreadComm) -> None:
        options: Any = {"chunks": (1, 2, 3), "maxshape": (None, None, 9)}
        file.write("plain", *replicated(values, comm), **options)
        file.write("zipped", *replicated(values, comm), compression="gzip", **options)
        for name in ("plain", "zipped"):
            file.resize(name, (3, 7, 8))
            file.resize(name, (4, 7, 8))
            file.write(name, *replicated(np.full((1, 1, 1), 9.0), comm), section=np.s_[3:4, 6:7, 7:8])

    on_ranks(ranks, tmp_path / "a.h5", change, "w")
    expected = np.zeros((4, 7, 8))
    expected[:3, :5, :4] = values
    expected[3, 6, 7] = 9
    with h5py.File(tmp_path / "a.h5") as data, hs.open(tmp_path / "a.h5") as file:
        for name in data:
            assert data[name][...].tolist() == expected.tolist() == file.read(name).tolist()
