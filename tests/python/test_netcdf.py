"""NetCDF classic files: what others read of ours, what we read of theirs, and what is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import hyperslab as hs
import netCDF4
import numpy as np
import pytest

import netcdf_cases
from mpi_launch import run_ranks

SEED = int(os.environ.get("HYPERSLAB_SEED", "20261125"))
TIMES = int(os.environ.get("HYPERSLAB_TIMES", "1"))
CASES = {1: 24, 3: 24, 4: 24, 8: 16}
MPI_CASES = {3: 16, 8: 8}


@pytest.mark.parametrize("ranks", CASES)
def test_random_files_are_what_others_read(ranks: int, tmp_path: Path) -> None:
    cases = range(CASES[ranks] * TIMES)
    hs.threads(ranks, lambda comm: netcdf_cases.run(comm, tmp_path, SEED, cases))


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", MPI_CASES)
def test_random_files_of_processes(ranks: int, tmp_path: Path) -> None:
    cases = MPI_CASES[ranks] * TIMES
    assert f"{2 * cases} cases" in run_ranks(ranks, "netcdf", tmp_path, SEED + 1, cases)


@pytest.mark.skipif(shutil.which("ncdump") is None, reason="there is no ncdump")
def test_ncdump_reads_them(tmp_path: Path) -> None:
    write(tmp_path / "a.nc")
    printed = subprocess.run(["ncdump", tmp_path / "a.nc"], capture_output=True, text=True, check=True).stdout
    assert "t = UNLIMITED ; // (2 currently)" in printed
    assert 'x:units = "m" ;' in printed


def write(path: Any, comm: Any = None) -> None:
    """A fixed variable and two that grow, of two records."""
    with hs.open(path, "w", comm=comm, unlimited="t", durable=False, format="netcdf3") as file:
        size = 1 if comm is None else comm.size
        said: dict[str, Any] = {
            "x": ("x", np.arange(3.0), {"units": "m"}),
            "a": (("t", "x"), np.arange(6.0).reshape(2, 3)),
            "b": ("t", np.arange(2, dtype="i4")),
        }
        file.write(said, {name: hs.Distribution.replicated(value[1].shape, size) for name, value in said.items()})


def values(path: Any) -> dict[str, list[Any]]:
    """What we read, of all variables."""
    with hs.open(path, format="netcdf3") as file:
        return {name: file.read(name).tolist() for name in file}


@pytest.mark.parametrize("place", ["directory", "memory", "striped"])
def test_any_place_of_files(place: str, tmp_path: Path) -> None:
    disks = [tmp_path / f"disk{number}" for number in range(3)]
    for disk in disks:
        disk.mkdir()
    where: dict[str, Any] = {
        "directory": tmp_path / "a.nc",
        "memory": hs.MemoryStore() / "a.nc",
        # The header lies in several parts.
        "striped": hs.Striped(disks, "a.nc", unit=4096),
    }
    path = where[place]
    hs.threads(3, lambda comm: write(path, comm))
    with hs.open(path, "r+", format="netcdf3", durable=False) as file:
        file.append({"a": np.full((1, 3), 7.0)})
    expected = {"x": [0, 1, 2], "a": [[0, 1, 2], [3, 4, 5], [7, 7, 7]], "b": [0, 1, -(2**31) + 1]}
    assert values(path) == expected


def test_the_usual_fill_values_and_types_of_the_interface(tmp_path: Path) -> None:
    with hs.open(tmp_path / "a.nc", "w", unlimited="t") as file:
        for number, kind in enumerate(netcdf_cases.KINDS_OF_DATA):
            # A record variable after another has to be given before there are records.
            file.write(f"v{number}", np.zeros(0, kind), dimension_names=["t"])
        file.append({"v0": np.zeros(2, "i1")})
    with netCDF4.Dataset(tmp_path / "a.nc") as data:
        assert data.data_model == "NETCDF3_64BIT_DATA"
        for number, kind in enumerate(netcdf_cases.KINDS_OF_DATA[1:], 1):
            assert data[f"v{number}"].dtype.str[1:] == kind
            data[f"v{number}"].set_auto_mask(False)
            assert (data[f"v{number}"][...] == netCDF4.default_fillvals[kind]).all()
    with hs.open(tmp_path / "a.nc") as file:
        fills = {name: np.dtype(info.dtype).type(info.fill_value) for name, info in ((n, file[n]) for n in file)}
    assert fills["v3"] == np.float32(netCDF4.default_fillvals["f4"])
    assert fills["v9"] == netCDF4.default_fillvals["u8"]


def test_what_cannot_be_is_said_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    write(path)
    before = path.read_bytes()
    with hs.open(path, "r+") as file:
        refused: list[tuple[Any, type[hs.Error], str]] = [
            (lambda: file.append("x", np.zeros(1)), hs.UnsupportedError, "'x' does not grow"),
            (
                lambda: file.append("a", np.zeros((1, 4))),
                hs.InvalidError,
                "expected shape \\(1, 3\\), found \\(1, 4\\)",
            ),
            (lambda: file.append({"a": np.zeros((1, 3)), "b": np.zeros(2, "i4")}), hs.InvalidError, "does not fit"),
            (lambda: file.append("a", np.zeros((2, 1)), axis=1), hs.UnsupportedError, "along dimension 1"),
            (lambda: file.write("n", np.zeros(4), dimension_names=["x"]), hs.InvalidError, "'x' of 3 indices"),
            (lambda: file.write("x", np.zeros(3, "c16")), hs.InvalidError, "complex128 to float64"),
            (lambda: file.write("x", np.zeros(3), chunks=(1,)), hs.UnsupportedError, "chunks cannot be given"),
            (lambda: file.write("x", np.zeros(3), attributes={"a": 1}), hs.InvalidError, "attributes cannot be given"),
            (lambda: file.read("n"), hs.NotFoundError, "no array 'n'"),
            (lambda: file.write({"x": ("x", np.zeros(3), "no attributes")}), hs.InvalidError, "names of dimensions"),
            (lambda: file.write({"x": np.zeros(3)}, {"y": None}), hs.InvalidError, "dist has 'y'"),
        ]
        for call, kind, text in refused:
            with pytest.raises(kind, match=text):
                call()
    assert path.read_bytes() == before
    with (
        hs.open(tmp_path / "n.nc", "w", unlimited="t", format="NETCDF3_CLASSIC") as file,
        pytest.raises(hs.UnsupportedError, match="types that it has, found 'i' of type int64"),
    ):
        file.write("i", np.zeros(3, "i8"))
    with hs.open(tmp_path / "n.nc", "w", unlimited="t") as file:
        file.write("i", np.zeros((2, 3), "i4"), dimension_names=["t", "x"])
        for wrong in (np.zeros(3, "c8"), np.zeros(3, "?"), np.zeros(3, "f2")):
            with pytest.raises(hs.UnsupportedError, match="integers, float32, float64 or characters"):
                file.write("j", wrong)
    assert values(tmp_path / "n.nc") == {"i": [[0] * 3] * 2}
    (tmp_path / "cut.nc").write_bytes(before[:-1])
    with pytest.raises(hs.CorruptError, match="cut short"):
        hs.open(tmp_path / "cut.nc")
    with pytest.raises(hs.InvalidError, match="no format 'grib'"):
        hs.open(path, format="grib")
    with pytest.raises(hs.InvalidError, match="given for new files"):
        hs.open(path, unlimited="t")
    with pytest.raises(hs.InvalidError, match="cannot be given for a Zarr store"):
        hs.open(tmp_path / "a.zarr", "w", unlimited="t")
    with pytest.raises(hs.InvalidError, match="a text, a number, or a list of numbers"):
        hs.open(tmp_path / "n.nc", "w", attributes={"a": {"b": 1}})


def test_an_error_of_the_program_gives_a_new_file_up(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    write(path)
    before = path.read_bytes()

    def program(comm: Any) -> None:
        with hs.open(path, "w", comm=comm) as file:
            file.write("z", np.zeros(4), hs.Distribution.replicated((4,), comm.size))
            if comm.rank == 1:
                message = "of the program"
                raise ValueError(message)

    with pytest.raises((ValueError, hs.PeerError), match="of the program"):
        hs.threads(3, program)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["a.nc"]


def test_others_read_while_one_appends(tmp_path: Path) -> None:
    """A reader that was there before sees what it saw, and the rest when it looks again."""
    path = tmp_path / "a.nc"
    write(path)
    with hs.open(path) as reader:
        for number in range(3):
            with hs.open(path, "r+", durable=False) as writer:
                writer.append({"a": np.full((1, 3), 9.0), "b": np.full(1, number, "i4")})
            seen = 2 + number
            assert reader["b"].shape == (seen,)
            assert reader.read("a").shape == (seen, 3)
            reader.refresh()
            assert reader["b"].shape == (seen + 1,)
            assert reader.read("b").tolist()[-1] == number


def test_who_appends_sees_what_others_have_appended(tmp_path: Path) -> None:
    """Of two that have the file open, the second hears that it has changed, and nothing is lost."""
    path = tmp_path / "a.nc"
    write(path)
    with hs.open(path, "r+", durable=False) as one, hs.open(path, "r+", durable=False) as other:
        one.append("b", np.full(1, 5, "i4"))
        with pytest.raises(hs.BusyError, match="has another header than when it was opened"):
            other.append("b", np.full(1, 6, "i4"))
        other.refresh()
        other.append("b", np.full(1, 6, "i4"))
    assert values(path)["b"] == [0, 1, 5, 6]
    with netCDF4.Dataset(path) as data:
        assert data["b"][...].tolist() == [0, 1, 5, 6]


def test_requests_and_a_rank_alone(tmp_path: Path) -> None:
    def program(comm: Any) -> None:
        dist = hs.Distribution.block((8, 6), comm.size)
        part = np.full(dist.local_shape(comm), float(comm.rank))
        with hs.open(tmp_path / "a.nc", "w", comm=comm, durable=False) as file:
            requests = [file.iwrite(name, part, dist, staged=True) for name in "ab"]
            hs.wait_all(requests)
            assert list(file) == ["a", "b"]
        with hs.open(tmp_path / "a.nc", comm=comm) as file:
            assert (file.iread("b", dist).wait() == part).all()
            if comm.rank == 1:
                assert file.read_local("a").shape == (8, 6)

    hs.threads(4, program)


def test_verify_finds_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    write(path)
    whole = hs.verify(path)
    assert (whole.kind, whole.damaged, [each.name for each in whole.arrays]) == ("netcdf", False, ["x", "a", "b"])
    content = path.read_bytes()
    for kept, kind in ((len(content) - 1, "length"), (40, "metadata")):
        path.write_bytes(content[:kept])
        (finding,) = hs.verify(path).findings
        assert (finding.severity, finding.path) == ("damage", str(path)), kind
    path.write_bytes(b"CDF\x02" + b"\xff" * 100)
    assert hs.verify(path).damaged


def test_a_later_fixed_array_moves_no_records_out_of_reach(tmp_path: Path) -> None:
    """In CDF-1 nothing begins behind 2 GiB, neither what is added nor what that moves."""
    n = 2**31 - 10000
    with hs.open(tmp_path / "c.nc", "w", unlimited="t", format="NETCDF3_CLASSIC", durable=False) as file:
        file.write("g", np.zeros((0, 3)), dimension_names=["t", "y"])
        with pytest.raises(hs.UnsupportedError, match="at most"):
            file.write("big", [np.ones(16, "i1")], hs.Boxes((n,), [(slice(0, 16),)]))
        file.append("g", np.ones((1, 3)))
    assert values(tmp_path / "c.nc") == {"g": [[1, 1, 1]]}


def test_numbers_of_attributes_keep_their_types(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with hs.open(path, "w", attributes={"big": 2**40, "huge": 2**63 + 1}):
        pass
    with netCDF4.Dataset(path) as data:
        assert (data.data_model, int(data.big), int(data.huge)) == ("NETCDF3_64BIT_DATA", 2**40, 2**63 + 1)
    with hs.open(path, "w") as file:
        file.write("x", np.zeros(2), attributes={"_FillValue": np.nan, "valid_min": -np.inf})
        with pytest.raises(hs.InvalidError, match="one short as _FillValue"):
            file.write("y", np.zeros(2, "i2"), attributes={"_FillValue": "a"})
    with netCDF4.Dataset(path) as data:
        assert np.isnan(data["x"]._FillValue)
        assert data["x"].valid_min == -np.inf
    with hs.open(path) as file:
        given = file["x"].attrs.copy()
    with hs.open(path, "w") as file:
        file.write("x", np.zeros(2), attributes=given)
    with netCDF4.Dataset(path) as data:
        assert np.isnan(data["x"]._FillValue)


def test_headers_that_lie_are_refused_soon(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    write(path)
    content = bytearray(path.read_bytes())
    with netCDF4.Dataset(tmp_path / "one.nc", "w", format="NETCDF3_CLASSIC") as data:
        data.createDimension("x", 3)
        data.createVariable("v", "f8", ("x",))[:] = 1
    header = bytearray((tmp_path / "one.nc").read_bytes())
    begin = len(header) - 24
    assert header.count(begin.to_bytes(4, "big")) == 1
    inside = header.replace(begin.to_bytes(4, "big"), (8).to_bytes(4, "big"))
    (tmp_path / "inside.nc").write_bytes(inside)
    with pytest.raises(hs.CorruptError, match="'v' in the header"):
        hs.open(tmp_path / "inside.nc", "r+")
    # The number of records is open, and the file sparse and long.
    content[4:8] = b"\xff" * 4
    path.write_bytes(content)
    os.truncate(path, 1 << 40)
    with hs.open(path) as file:
        assert file["b"].shape[0] > 1 << 30


def test_a_rank_with_an_argument_that_makes_no_name_is_not_alone(tmp_path: Path) -> None:
    write(tmp_path / "a.nc")

    def program(comm: Any) -> str:
        with hs.open(tmp_path / "a.nc", "r+", comm=comm, arrival_seconds=10.0) as file:
            name: Any = ["b"] if comm.rank == 1 else "b"
            with pytest.raises(hs.Error) as caught:
                file.append(name, np.zeros(1, "i4"), hs.Distribution.replicated((1,), comm.size))
            return str(caught.value)

    told = hs.threads(2, program)
    assert told[0] == told[1]
    assert "name must be a name, or a mapping" in told[0]


def test_nothing_is_made_of_nothing(tmp_path: Path) -> None:
    with hs.open(tmp_path / "a.nc", "w") as file:
        with pytest.raises(hs.InvalidError, match="no array is given"):
            file.write({}, None)
        file.write("x", np.zeros(2))
    with hs.open(tmp_path / "a.nc") as reader:
        with netCDF4.Dataset(tmp_path / "a.nc", "a") as data:
            data.createVariable("y", "f4", ("dim_2",))
        reader.refresh()
        assert list(reader) == ["x", "y"]
