"""Files whose arrays come, and grow, one after another, as people write a history; as netCDF4 reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import netCDF4
import numpy as np
import pytest

from mpi_launch import run_ranks

FORMATS = {"netcdf3": "nc", "netcdf4": "nc4"}
EVERY = {**FORMATS, "hdf5": "h5", "zarr": "zarr"}
FIELDS = {"time": ((), "f8"), "rho": ((3, 4), "f4"), "flag": ((5,), "i1"), "u": ((2,), "f8")}


def field(name: str, record: int) -> np.ndarray:
    shape, kind = FIELDS[name]
    first = record * 7 + len(name)
    return (first + np.arange(int(np.prod(shape, dtype=int)))).astype(kind).reshape((1, *shape))


def names_of(name: str) -> list[str]:
    return ["t", *(f"{name}_{axis}" for axis in range(len(FIELDS[name][0])))]


def values(path: Path) -> dict[str, Any]:
    with netCDF4.Dataset(path) as data:
        data.set_auto_maskandscale(False)
        return {name: variable[...] for name, variable in data.variables.items()}


def history(comm: Any, folder: Path, form: str) -> Path:
    """Arrays are made one after another, and appended one after another, each spread over the ranks."""
    path = folder / f"run.{FORMATS[form]}"

    def part(name: str, record: int) -> tuple[Any, hs.Distribution]:
        whole = field(name, record)
        mesh = (1,) * (whole.ndim - 1) + (comm.size,)
        dist = hs.Distribution(whole.shape, mesh, ["block"] * whole.ndim)
        held = dist.empty(comm.rank, whole.dtype)
        held[...] = whole[np.ix_(*dist.indices(comm.rank))]
        return held, dist

    with hs.open(path, "w", comm=comm, format=form, unlimited="t", durable=False) as file:
        for name in FIELDS:
            file.write(name, *part(name, 0), dimension_names=names_of(name))
        file.write("grid", np.arange(6.0), hs.Distribution.replicated((6,), comm.size), dimension_names=["x"])
        for record in (1, 2):
            for name in FIELDS:
                file.append(name, *part(name, record))
    with hs.open(path, "r+", comm=comm, format=form, durable=False) as file:
        for name in FIELDS:
            file.append(name, *part(name, 3))
        with file.batch() as batch:
            for name in FIELDS:
                batch.append(name, *part(name, 4))
    return path


def check_history(path: Path) -> None:
    found = values(path)
    for name in FIELDS:
        expected = np.concatenate([field(name, record) for record in range(5)])
        assert found[name].dtype == expected.dtype
        assert np.array_equal(found[name], expected), name
    assert np.array_equal(found["grid"], np.arange(6.0))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_arrays_appended_in_turn_share_their_records(ranks: int, form: str, tmp_path: Path) -> None:
    check_history(hs.threads(ranks, lambda comm: history(comm, tmp_path, form))[0])


@pytest.mark.mpi
def test_arrays_appended_in_turn_by_processes_share_their_records(tmp_path: Path) -> None:
    run_ranks(3, "records_in_turn", tmp_path)
    for form in FORMATS:
        check_history(tmp_path / f"run.{FORMATS[form]}")


@pytest.mark.parametrize("form", FORMATS)
def test_what_is_written_behind_the_last_record_makes_the_dimension_longer(form: str, tmp_path: Path) -> None:
    """As netCDF's put_vara does; what is not yet written reads as fill values."""
    ours, theirs = tmp_path / f"ours.{FORMATS[form]}", tmp_path / f"theirs.{FORMATS[form]}"
    with hs.open(ours, "w", format=form, unlimited="t", durable=False) as file:
        file.write({name: (names_of(name), field(name, 0)) for name in FIELDS})
        file.write("rho", field("rho", 2), section=2)
    with hs.open(ours, "r+", format=form, durable=False) as file:
        file.write("u", field("u", 5)[:, 1:], section=np.s_[5:6, 1:2])
        file.append("flag", field("flag", 9))
        file.append("flag", field("flag", 10))
    layout = "NETCDF3_64BIT_OFFSET" if form == "netcdf3" else "NETCDF4"
    with netCDF4.Dataset(theirs, "w", format=layout) as data:
        data.createDimension("t", None)
        for name, (shape, kind) in FIELDS.items():
            for axis, extent in enumerate(shape):
                data.createDimension(f"{name}_{axis}", extent)
            data.createVariable(name, kind, names_of(name))[0] = field(name, 0)[0]
        data["rho"][2] = field("rho", 2)[0]
        data["u"][5, 1] = field("u", 5)[0, 1]
        data["flag"][3:5] = np.concatenate([field("flag", 9), field("flag", 10)])
    found, expected = values(ours), values(theirs)
    for name in FIELDS:
        assert np.array_equal(found[name], expected[name]), (name, found[name], expected[name])


@pytest.mark.parametrize("count", [40, 700])
def test_a_new_classic_file_takes_arrays_one_after_another(count: int, tmp_path: Path) -> None:
    """Also with records between fixed ones, and when what it begins with has no more room."""
    path = tmp_path / "many.nc"
    expected = {}
    with hs.open(path, "w", unlimited="t", durable=False) as file:
        for number in range(count):
            grows = number % 3 == 1
            kind = ("i2", "f8", "i1")[number % 3]
            array = (np.arange(6) + number % 100).astype(kind).reshape(2, 3)
            name = f"a_variable_with_a_long_name_{number}"
            dims = ["t" if grows else "y", "x"]
            file.write(name, array, dimension_names=dims, attributes={"units": "m", "number": np.int16(number)})
            expected[name] = array
    found = values(path)
    assert sorted(found) == sorted(expected)
    assert all(found[name].dtype == each.dtype and np.array_equal(found[name], each) for name, each in expected.items())
    with netCDF4.Dataset(path) as data:
        assert data["a_variable_with_a_long_name_5"].number == 5
    with hs.open(path, "r+", durable=False) as file:
        file.write("more", np.arange(4.0), dimension_names=["z"])
        file.append("a_variable_with_a_long_name_1", np.full((1, 3), 9.0))
    with netCDF4.Dataset(path, "a") as data:
        assert data["a_variable_with_a_long_name_1"][2].tolist() == [9.0] * 3
        assert data["a_variable_with_a_long_name_4"][2].mask.all()
        assert data["more"][...].tolist() == [0, 1, 2, 3]
        data.createVariable("theirs", "f8", ["z"])[...] = 1.5
    assert hs.open(path)["theirs"][...].tolist() == [1.5] * 4


def test_records_may_come_when_the_header_has_no_more_room(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with hs.open(path, "w", unlimited="t", durable=False) as file:
        for number in range(600):
            file.write(f"a_variable_with_a_long_name_{number}", np.arange(2.0) + number, dimension_names=["x"])
        for number in range(3):
            file.write(f"grows_{number}", np.arange(4.0 + number) + number, dimension_names=["t"])
    found = values(path)
    assert all(found[f"a_variable_with_a_long_name_{number}"][1] == number + 1 for number in range(600))
    assert found["grows_2"].tolist() == [2, 3, 4, 5, 6, 7]
    assert found["grows_0"][:4].tolist() == [0, 1, 2, 3]


def test_records_of_any_size_are_brought_into_order(tmp_path: Path) -> None:
    """Slabs of one byte and of more than is copied at once."""
    path = tmp_path / "large.nc"
    large = np.arange(2 * 700_001, dtype="f8").reshape(2, 700_001)
    small = np.arange(2, dtype="i1")
    many = np.arange(300_000, dtype="i4")
    with hs.open(path, "w", unlimited="t", durable=False) as file:
        file.write("small", small, dimension_names=["t"])
        file.write("large", large, dimension_names=["t", "x"])
        file.write("again", large[:, :5], dimension_names=["t", "y"])
    found = values(path)
    assert np.array_equal(found["small"], small)
    assert np.array_equal(found["large"], large)
    assert np.array_equal(found["again"], large[:, :5])
    with hs.open(path, "w", unlimited="t", durable=False) as file:
        for name in "abc":
            file.write(name, many, dimension_names=["t"])
    assert all(np.array_equal(each, many) for each in values(path).values())


def test_new_arrays_of_a_file_that_exists_are_there_at_once(tmp_path: Path) -> None:
    """Others see the file with them or without."""
    path = tmp_path / "a.nc"
    with hs.open(path, "w", unlimited="t", format="NETCDF3_CLASSIC", durable=False) as file:
        file.write({"a": (["t", "x"], np.ones((2, 3))), "b": (["x"], np.arange(3.0))})
    with hs.open(path, "r+", durable=False) as file:
        file.write("c", np.arange(2, dtype="i4"), dimension_names=["t"])
        assert sorted(values(path)) == ["a", "b", "c"]
        file.write("d", np.full((2, 3), 2.0), dimension_names=["t", "x"])
        file.append("a", np.full((1, 3), 3.0))
        assert file["a"].shape == (3, 3)
        with pytest.raises(hs.InvalidError, match="'x' of 3 indices"):
            file.write("e", np.zeros(4), dimension_names=["x"])
        assert sorted(file) == ["a", "b", "c", "d"]
    with netCDF4.Dataset(path) as data:
        assert data.data_model == "NETCDF3_CLASSIC"
        assert data["d"][:2].tolist() == [[2.0] * 3] * 2
        assert data["d"][2].mask.all()
    assert [each.name for each in tmp_path.iterdir()] == ["a.nc"]


def create_and_fill(comm: Any, folder: Path, form: str) -> Path:
    """An array is made, and written section by section, in a file that nobody sees yet."""
    path = folder / f"made-{comm.size}.{EVERY[form]}"
    kinds = {} if form in ("hdf5", "zarr") else {"format": form}
    with hs.open(path, "w", comm=comm, durable=False, **kinds) as file:
        file.create_array("plain", shape=(6, 4), dtype="f8", fill_value=-1.0)
        file.create_array("zero", shape=(6, 4), dtype="i4")
        if form != "netcdf3":
            file.create_array("packed", shape=(6, 4), dtype="f8", chunks=(4, 3), compression="gzip", fill_value=-1.0)
        for name in file:
            for first, count in ((0, 2), (1, 3), (5, 1)):
                part = np.arange(count * 4).reshape(count, 4) + 10 * first
                dist = hs.Distribution((count, 4), (1, comm.size), ("*", "block"))
                held = np.ascontiguousarray(
                    part[np.ix_(*dist.indices(comm.rank))], dtype="f8" if name != "zero" else "i4"
                )
                file.write(name, held, dist, section=np.s_[first : first + count])
    return path


@pytest.mark.parametrize("form", EVERY)
@pytest.mark.parametrize("ranks", [1, 3])
def test_an_array_that_was_made_is_written_in_sections(ranks: int, form: str, tmp_path: Path) -> None:
    path = hs.threads(ranks, lambda comm: create_and_fill(comm, tmp_path, form))[0]
    rows = [*range(4), *range(10, 22), None, 50, 51, 52, 53]
    expected = np.full((6, 4), -1.0)
    expected[0] = rows[:4]
    expected[1:4] = np.reshape(rows[4:16], (3, 4))
    expected[5] = rows[-4:]
    with hs.open(path) as file:
        assert np.array_equal(file["plain"][...], expected)
        zero = netCDF4.default_fillvals["i4"] if form in FORMATS else 0
        assert np.array_equal(file["zero"][...], np.where(expected == -1, zero, expected))
        assert all(np.array_equal(file[name][...], expected) for name in file if name == "packed")
    if form == "hdf5":
        with h5py.File(path) as file:
            assert np.array_equal(file["packed"][...], expected)
            assert np.array_equal(file["plain"][...], expected)
    if form in FORMATS:
        assert np.array_equal(values(path)["plain"], expected)


def test_what_is_seen_of_a_file_that_gathers_is_not_changed(tmp_path: Path) -> None:
    """A netCDF-4 file that was flushed is seen, and what is added lies behind what readers see."""
    path = tmp_path / "a.nc4"
    with hs.open(path, "w", format="netcdf4", durable=False) as file:
        file.write("a", np.zeros(4))
        file.flush()
        file.write("b", np.zeros(4))
        file.write("b", np.ones(2), section=np.s_[1:3])
        with pytest.raises(hs.UnsupportedError, match="'a' is seen by others already"):
            file.write("a", np.ones(2), section=np.s_[1:3])
    assert {name: each.tolist() for name, each in values(path).items()} == {"a": [0] * 4, "b": [0, 1, 1, 0]}


def test_readers_see_records_when_all_is_written(tmp_path: Path) -> None:
    """Where arrays in pieces get fill values first, and what is to be written then cannot be."""
    path = tmp_path / "a.nc"
    with hs.open(path, "w", unlimited="t") as file:
        file.write("a", np.ones((1, 4)), dimension_names=["t", "x"])
    piece = hs.Boxes((2, 4), [(slice(0, 1), slice(0, 4))])
    with hs.open(path, "r+") as file:
        with pytest.raises(hs.InvalidError, match="complex128 to float64"):
            file.append("a", [np.ones((1, 4), complex)], piece)
        assert file["a"].shape == (1, 4)
        assert values(path)["a"].shape == (1, 4)
        file.append("a", [np.full((1, 4), 2.0)], piece)
        assert file["a"].shape == (3, 4)
    found = values(path)["a"]
    assert found[:2].tolist() == [[1.0] * 4, [2.0] * 4]
    assert np.all(found[2] == netCDF4.default_fillvals["f8"])


@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_a_shorter_array_comes_to_records_that_lie_in_order(ranks: int, tmp_path: Path) -> None:
    path = tmp_path / "a.nc"

    def program(comm: Any) -> None:
        def whole(shape: tuple[int, ...]) -> hs.Distribution:
            return hs.Distribution.replicated(shape, comm.size)

        with hs.open(path, "w", comm=comm, unlimited="t") as file:
            file.write("a", np.arange(9.0).reshape(3, 3), whole((3, 3)), dimension_names=["t", "x"])
            file.flush()
            file.write("b", np.array([1, 2, 3], "i2"), whole((3,)), dimension_names=["t"])
            file.write("c", np.array([4, 5, 6], "i4"), whole((3,)), dimension_names=["t"])

    hs.threads(ranks, program)
    with netCDF4.Dataset(path) as data:
        assert data["a"][...].tolist() == np.arange(9.0).reshape(3, 3).tolist()
        assert data["b"][...].tolist() == [1, 2, 3]
        assert data["c"][...].tolist() == [4, 5, 6]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("ranks", [1, 3])
def test_a_record_that_was_begun_is_named(ranks: int, form: str, tmp_path: Path) -> None:
    path = tmp_path / f"run.{FORMATS[form]}"

    def program(comm: Any) -> None:
        def grow(file: Any, *names: str) -> None:
            for name in names:
                rows = field(name, 0)
                file.append(name, rows, hs.Distribution.replicated(rows.shape, comm.size))

        with hs.open(path, "w", comm=comm, format=form, unlimited="t", durable=False) as file:
            for name in FIELDS:
                rows = field(name, 0)
                dist = hs.Distribution.replicated(rows.shape, comm.size)
                file.write(name, rows, dist, dimension_names=names_of(name))
            assert file.unfinished == ()
            grow(file, "rho", "time")
            assert sorted(file.unfinished) == ["flag", "u"]
            grow(file, "u", "flag")
            assert file.unfinished == ()
        with hs.open(path, "r+", comm=comm, format=form, durable=False) as file:
            assert file.unfinished == ()
            rows = field("u", 0)
            file.write("u", rows, hs.Distribution.replicated(rows.shape, comm.size), section=slice(2, 3))
            assert sorted(file.unfinished) == ["flag", "rho", "time"]
            with pytest.raises(hs.InvalidError):
                file.append("rho", np.zeros((1, 2)), hs.Distribution.replicated((1, 2), comm.size))
            grow(file, "rho", "flag")
            assert file.unfinished == ("time",)
        with hs.open(path, comm=comm) as file:
            assert file.unfinished == ()
            assert file["time"].shape == (3,)

    hs.threads(ranks, program)
    assert values(path)["u"].shape == (3, 2)
