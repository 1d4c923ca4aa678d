"""HDF5 and netCDF-4 files: what others read of ours, what we read of theirs, and what is refused."""

from __future__ import annotations

import os
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.codecs.numcodecs import Fletcher32, Shuffle

import hdf5_cases
import hdf5_edits
from mpi_launch import run_ranks

SEED = int(os.environ.get("HYPERSLAB_SEED", "20261125"))
TIMES = int(os.environ.get("HYPERSLAB_TIMES", "1"))
CASES = {1: 24, 3: 24, 4: 24, 8: 12}
MPI_CASES = {3: 12, 8: 5}
#: Damaged files in the ordinary tests, of each kind.
DAMAGED = 150


@pytest.mark.parametrize("ranks", CASES)
def test_random_files_are_what_others_read(ranks: int, tmp_path: Path) -> None:
    cases = range(CASES[ranks] * TIMES)
    hs.threads(ranks, lambda comm: hdf5_cases.run(comm, tmp_path, SEED, cases))


@pytest.mark.parametrize("ranks", CASES)
def test_random_changes_of_what_a_file_holds(ranks: int, tmp_path: Path) -> None:
    def run(comm: Any) -> None:
        for number in range(CASES[ranks] * TIMES):
            random = np.random.default_rng([SEED, number, ranks])
            try:
                hdf5_edits.edits(comm, tmp_path / f"{number}.h5", random)
            except Exception as error:
                error.add_note(f"seed {SEED}, case {number}, {ranks} ranks")
                raise

    hs.threads(ranks, run)


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", MPI_CASES)
def test_random_files_of_processes(ranks: int, tmp_path: Path) -> None:
    cases = MPI_CASES[ranks] * TIMES
    assert f"{2 * cases} cases" in run_ranks(ranks, "hdf5", tmp_path, SEED + 1, cases)


def write(path: Any, comm: Any = None) -> None:
    """Arrays in two groups."""
    size = 1 if comm is None else comm.size
    with hs.open(path, "w", comm=comm, durable=False, format="hdf5", attributes={"title": "a trial"}) as file:
        for name, values in {"a": np.arange(6.0).reshape(2, 3), "in/b": np.arange(5, dtype="i2")}.items():
            file.write(name, values, hs.Distribution.replicated(values.shape, size), attributes={"units": "m"})


@pytest.mark.parametrize("place", ["directory", "memory", "striped"])
def test_any_place_of_files(place: str, tmp_path: Path) -> None:
    disks = [tmp_path / f"disk{number}" for number in range(3)]
    for disk in disks:
        disk.mkdir()
    where: dict[str, Any] = {
        "directory": tmp_path / "a.h5",
        "memory": hs.MemoryStore() / "a.h5",
        "striped": hs.Striped(disks, "a.h5", unit=512),
    }
    path = where[place]
    hs.threads(3, lambda comm: write(path, comm))
    with hs.open(path, "r+", format="hdf5", durable=False) as file:
        file.write("a", np.full((1, 3), 7.0), section=slice(1, 2))
        with file.step("0001") as step:
            # Encoded chunks of striped files are not read yet.
            compression = None if place == "striped" else "gzip"
            step.write("c", np.arange(700.0), compression=compression, chunks=(90,), maxshape=(None,))
        file.append("0001/c", np.arange(5.0))
        file.attrs["more"] = [1, 2]
        file.rename("in", "inside")
    with hs.open(path, format="hdf5") as file:
        assert {name: file.read(name).tolist() for name in file if name != "0001/c"} == {
            "a": [[0, 1, 2], [7, 7, 7]],
            "inside/b": [0, 1, 2, 3, 4],
        }
        assert file.read("0001/c").tolist() == [*range(700), *range(5)]
        assert file.attrs == {"title": "a trial", "more": np.array([1, 2])}
        assert dict(file["inside/b"].attrs) == {"units": "m"}


def write_and_fail(path: Path) -> None:
    """A program that ends by an error before its file is closed."""
    with hs.open(path, "w") as file:
        file.write("other", np.zeros(3))
        raise ZeroDivisionError


def test_a_file_is_visible_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    write(path)
    before = path.read_bytes()
    with pytest.raises(ZeroDivisionError):
        write_and_fail(path)
    with hs.open(path, "w") as file:
        file.write("other", np.zeros(3))
        assert path.read_bytes() == before
        assert not h5py.is_hdf5(
            next(other for other in tmp_path.iterdir() if other != path and other.stat().st_size > 2000)
        )
    with h5py.File(path) as data:
        assert list(data) == ["other"]
    assert list(tmp_path.iterdir()) == [path]


def test_a_netcdf_file_is_known_by_what_it_is(tmp_path: Path) -> None:
    for form in ("NETCDF4", "NETCDF3_CLASSIC"):
        with netCDF4.Dataset(tmp_path / "a.nc", "w", format=form) as data:
            data.createDimension("x", 3)
            data.createVariable("v", "f4", ("x",))[...] = [1, 2, 3]
        with hs.open(tmp_path / "a.nc") as file:
            assert file.read("v").tolist() == [1, 2, 3]
            assert file["v"].dimension_names == ("x",)
            assert file["v"][1:].tolist() == [2, 3]


def test_many_arrays_and_large_offsets(tmp_path: Path) -> None:
    """2,048 datasets of one call; one that begins beyond 4 GiB, of which only the end is written."""
    many = {f"v{number:04}": np.full(3, number, "i4") for number in range(2048)}
    with hs.open(tmp_path / "many.h5", "w", durable=False) as file:
        file.write(many)
    with h5py.File(tmp_path / "many.h5") as data:
        assert all((data[name][...] == values).all() for name, values in many.items())
    with h5py.File(tmp_path / "large.h5", "w") as data:
        data.create_dataset("before", (5 << 30,), "u1")
        data["before"][-1] = 1
        data["behind"] = np.arange(4)
        data.create_dataset("chunked", (100_000,), "i4", chunks=(1,), maxshape=(None,))
        data["chunked"][99_990:] = 5
    with hs.open(tmp_path / "large.h5") as file:
        assert file["before"][(5 << 30) - 2 :].tolist() == [0, 1]
        assert file.read("behind").tolist() == [0, 1, 2, 3]
        assert file["chunked"][99_988:99_992].tolist() == [0, 0, 5, 5]


def test_what_cannot_be_read_hinders_nobody(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as data:
        data["fine"] = np.arange(3)
        data["texts"] = ["a", "bb"]
        data["refs"] = np.array([data["fine"].ref], h5py.ref_dtype)
        data.create_dataset("scaled", data=np.arange(50), chunks=(10,), scaleoffset=0)
        data.create_virtual_dataset("virtual", h5py.VirtualLayout((3,), "i4"))
        data["loop"] = data
        data["soft"] = h5py.SoftLink("/fine")
        data["away"] = h5py.ExternalLink("other.h5", "/x")
    with hs.open(path) as file:
        assert sorted(file) == ["fine", "scaled", "soft", "texts"]
        assert file.read("scaled").tolist() == list(range(50))
        assert file.read("soft").tolist() == [0, 1, 2]
        assert file.read("texts").tolist() == [b"a", b"bb"]
        assert file.read("fine").tolist() == [0, 1, 2]
        for name, why in {
            "away": "an external link to '/x' in 'other.h5'",
            "refs": "references to objects",
            "virtual": "",
        }.items():
            with pytest.raises(hs.UnsupportedError, match=f"'{name}' is in .*, but is no array.*{why}.*\n.*h5py"):
                file.read(name)
        with pytest.raises(hs.NotFoundError, match="no array 'none', only "):
            file.read("none")


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    with hs.open(tmp_path / "a.h5", "w") as file:
        file.write("a/b", np.zeros(3))
        for name, options, kind, why in (
            ("a", {}, hs.InvalidError, "'a' and 'a/b' would be a group and an array of one name"),
            ("a/b/c", {}, hs.InvalidError, "a group and an array of one name"),
            ("x//y", {}, hs.InvalidError, "cannot be the path of an HDF5 dataset"),
            ("c", {"shards": (2,)}, hs.UnsupportedError, "shards cannot be given"),
            ("c", {"chunks": (2, 2)}, hs.InvalidError, r"chunks \(2, 2\) do not fit array 'c'"),
            ("c", {"codecs": ["blosc"]}, hs.UnsupportedError, "expected codecs gzip, zstd, numcodecs.shuffle"),
            ("c", {"compression": "szip"}, hs.InvalidError, "no compression 'szip'"),
            ("c", {"compression": "gzip", "zstd": 3}, hs.InvalidError, "cannot be given with codecs= or zstd="),
            ("c", {"maxshape": (2,)}, hs.InvalidError, "maxshape of 'c' does not fit"),
            ("d", {"attributes": {"a": {"b": 1}}}, hs.InvalidError, "no mappings"),
            ("e", {"attributes": {"CLASS": "x"}}, hs.InvalidError, "keep for dimensions"),
        ):
            with pytest.raises(kind, match=why):
                file.write(name, np.zeros(3), **options)
        with pytest.raises(hs.UnsupportedError, match=r"do not grow|does not grow"):
            file.append("a/b", np.zeros(3))
    with h5py.File(tmp_path / "a.h5") as data:
        assert data["a/b"][...].tolist() == [0, 0, 0]
    (tmp_path / "none.h5").write_bytes(b"no HDF5 file")
    with pytest.raises(hs.CorruptError, match=r"none\.h5"):
        hs.open(tmp_path / "none.h5")


@pytest.mark.parametrize("kind", ["earliest", "latest", "netcdf4", "ours"])
def test_damaged_files_are_errors(kind: str, tmp_path: Path) -> None:
    """Any damage is found or harmless, in this process, on all ranks alike."""
    path = tmp_path / "a.h5"
    if kind == "ours":
        write(path)
    elif kind == "netcdf4":
        with netCDF4.Dataset(path, "w") as data:
            data.createDimension("x", 30)
            data.createVariable("v", "f4", ("x",), zlib=True, chunksizes=(7,))[...] = np.arange(30)
    else:
        with h5py.File(path, "w", libver=kind) as data:
            data.create_dataset(
                "a", data=np.arange(64.0).reshape(8, 8), chunks=(3, 3), compression="gzip", shuffle=True
            )
            data.create_dataset("b", data=np.arange(64), chunks=(5,), maxshape=(None,), fletcher32=True)
            data["g/c"] = np.arange(5)
            data["g"].attrs["text"] = ["a", "b"]
    whole = path.read_bytes()
    random = np.random.default_rng([SEED, len(kind)])
    outcomes = {"error": 0, "read": 0}
    for _ in range(DAMAGED * TIMES):
        damaged = bytearray(whole)
        for _ in range(int(random.integers(1, 6))):
            at = int(random.integers(len(damaged)))
            damaged[at] = int(random.choice([0, 255, random.integers(256)]))
        path.write_bytes(damaged[: int(random.integers(len(damaged)))] if random.random() < 0.1 else damaged)
        try:
            with hs.open(path, format="hdf5") as file:
                for name in file:
                    if file[name].nbytes < 1 << 20:
                        file.read(name)
            outcomes["read"] += 1
        except hs.Error:
            outcomes["error"] += 1
    assert min(outcomes.values()) > 0, outcomes


@pytest.mark.parametrize("libver", ["earliest", "v108", "latest"])
def test_changes_of_damaged_files_are_errors_or_done(libver: str, tmp_path: Path) -> None:
    """On all ranks alike, whatever is wrong with the indexes and headers that change."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=(libver, "latest" if libver == "earliest" else libver)) as data:
        zipped = {"chunks": (3, 3), "maxshape": (None, 8), "compression": "gzip"}
        data.create_dataset("a", data=np.arange(64.0).reshape(8, 8), **zipped)
        data.create_dataset("b", data=np.arange(64), chunks=(5,), maxshape=(None,))
        for number in range(12):
            data[f"g/{number}"] = number
            data["g"].attrs[f"n{number}"] = number
    whole = path.read_bytes()
    random = np.random.default_rng([SEED, len(libver)])

    def change(comm: Any) -> str:
        dist, mine = blocks(comm, (2, 8))
        try:
            with hs.open(path, "r+", comm=comm, durable=False) as file:
                file.append("a", np.ones((2, 8))[mine], dist)
                file.append("b", np.arange(3), hs.Distribution.replicated((3,), comm.size))
                file.write("a", np.ones((2, 8))[mine], dist, section=slice(1, 3))
                file["a"].attrs["k"] = "text"
                file.group("g").attrs["n3"] = 1.5
                file.rename("g/4", "four")
                file.delete("g/5")
                with file.step("0001") as step:
                    step.write("a", np.ones((2, 8))[mine], dist, compression="gzip")
        except hs.Error as error:
            return type(error).__name__
        return "done"

    outcomes: set[str] = set()
    for _ in range(DAMAGED * TIMES):
        damaged = bytearray(whole)
        for _ in range(int(random.integers(1, 6))):
            damaged[int(random.integers(len(damaged)))] = int(random.choice([0, 255, random.integers(256)]))
        path.write_bytes(damaged)
        with warnings.catch_warnings(action="ignore"):
            told = set(hs.threads(3, change))
        assert len(told) == 1, told
        outcomes |= told
        for left in tmp_path.iterdir():
            left.unlink()
    assert {"done", "CorruptError"} <= outcomes


def test_steps_of_a_new_netcdf4_file(tmp_path: Path) -> None:
    path = tmp_path / "a.nc4"
    with hs.open(path, "w", unlimited="time") as file:
        file.create_group("input", attributes={"code": "a model"})
        for number in range(2):
            with file.step(f"{number:04}", attributes={"t": number}) as step:
                step.write("rho", np.full((2, 3), number), dimension_names=("y", "x"))
        with suppress(KeyError), file.step("0002") as step:
            step.write("rho", np.zeros(3), dimension_names=("x",))
            raise KeyError
    with netCDF4.Dataset(path) as data:
        assert list(data.groups) == ["input", "0000", "0001"]
        assert data["0001/rho"][...].tolist() == [[1, 1, 1]] * 2
        assert data["0001/rho"].dimensions == ("y", "x")
        assert (data.groups["0001"].t, data.groups["input"].code) == (1, "a model")
    with hs.open(path) as file:
        assert (list(file.steps), file.steps.latest()) == (["0000", "0001"], "0001")
        assert file.group("0001")["rho"].dimension_names == ("y", "x")


def test_what_is_in_a_step_changes_before_it_is_published(tmp_path: Path) -> None:
    """Also in a file that exists, which does not have it yet."""
    for mode in ("w", "r+"):
        path = tmp_path / "a.h5"
        if mode == "r+":
            with hs.open(path, "w") as file:
                file.write("outside", np.zeros(3))
        with hs.open(path, mode) as file:  # type: ignore[call-overload]
            with file.step("0001") as step:
                for name in ("kept", "gone", "old"):
                    step.write(name, np.arange(3))
                step["kept"].attrs["units"] = "m"
                step.delete("gone")
                step.rename("old", "new")
                with pytest.raises(hs.UnsupportedError, match="out of one"):
                    file.rename("0001/kept", "kept")
            assert sorted(file.group("0001")) == ["kept", "new"]
        with h5py.File(path) as data:
            assert sorted(data["0001"]) == ["kept", "new"]
            assert (data["0001/new"][...].tolist(), dict(data["0001/kept"].attrs)) == ([0, 1, 2], {"units": "m"})


def test_what_others_add_is_seen_after_a_refresh(tmp_path: Path) -> None:
    hs.threads(3, lambda comm: hdf5_cases.grown_by_others(comm, tmp_path))


def test_what_is_too_long_for_a_header_is_refused(tmp_path: Path) -> None:
    """Lengths in headers have 16 bits: a file that was cut there would be damaged."""
    with hs.open(tmp_path / "a.h5", "w") as file:
        file.write("fine", np.zeros(2))
        with pytest.raises(hs.InvalidError, match="at most"):
            file.write("x" * 70_000, np.zeros(2))
        with pytest.raises(hs.InvalidError, match="at most"):
            file.write("many", np.zeros(2), attributes={f"a{number}": number for number in range(70_000)})
    with h5py.File(tmp_path / "a.h5") as data:
        assert list(data) == ["fine"]


def blocks(comm: Any, shape: tuple[int, ...]) -> tuple[hs.Distribution, tuple[slice, ...]]:
    """Rows spread over ranks, and which this one has."""
    dist = hs.Distribution(shape, (comm.size,), ("block", *("*",) * (len(shape) - 1)))
    rows = dist.indices(comm.rank)[0]
    first = int(rows[0]) if len(rows) else 0
    return dist, (slice(first, first + len(rows)),)


@pytest.mark.parametrize("libver", ["earliest", "v108"])
def test_others_and_we_change_a_file_in_turns(libver: str, tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    expected = np.arange(70.0).reshape(10, 7)
    with h5py.File(path, "w", libver=(libver, "latest" if libver == "earliest" else libver)) as data:
        data.create_dataset("a", data=expected, chunks=(3, 4), maxshape=(None, 7), compression="gzip", shuffle=True)
        data.create_dataset("plain", data=expected, chunks=(3, 4), maxshape=(None, 7))
    for turn in range(4):
        more = np.full((5, 7), 100.0 + turn)

        def run(comm: Any, more: Any = more) -> None:
            dist, mine = blocks(comm, more.shape)
            with hs.open(path, "r+", comm=comm) as file:
                for name in ("a", "plain"):
                    file.append(name, more[mine], dist)
                    section = (slice(2, 7), slice(None))
                    file.write(name, more[mine], dist, section=section)

        hs.threads(3, run)
        with h5py.File(path, "r+") as data:
            expected = np.concatenate([expected, more])
            expected[2:7] = more
            for name in ("a", "plain"):
                assert np.array_equal(data[name][...], expected)
                data[name].resize((len(expected) + 1, 7))
                data[name][-1] = turn
            expected = np.concatenate([expected, np.full((1, 7), float(turn))])
    with hs.open(path) as file:
        assert np.array_equal(file.read("a"), expected)
        assert np.array_equal(file.read("plain"), expected)
    assert list(tmp_path.iterdir()) == [path]


def test_the_lock_of_hdf5_is_honoured(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as data:
        data["a"] = np.arange(3)
        for mode in ("r", "r+"):
            with pytest.raises(hs.BusyError, match=r"open for .*in this program or another"):
                hs.open(path, mode)  # type: ignore[arg-type]
    with h5py.File(path), pytest.raises(hs.BusyError, match="open for reading or writing"):
        hs.open(path, "r+")
    with h5py.File(path), hs.open(path) as file:
        assert file.read("a").tolist() == [0, 1, 2]
    with hs.open(path, "r+") as file:
        for mode in ("r", "r+"):
            with pytest.raises(OSError, match="unable to lock"):
                h5py.File(path, mode)
        file.write("a", np.array([5]), section=slice(1, 2))
    with h5py.File(path, "r+") as data:
        assert data["a"][...].tolist() == [0, 5, 2]


def test_a_dimension_that_grows_is_shared(tmp_path: Path) -> None:
    """Time, its variable and two fields, as models write them; one of them is a record behind."""
    path = tmp_path / "run.nc"

    def run(comm: Any) -> None:
        dist = hs.Distribution((1, 4), (1, comm.size))
        one = hs.Distribution.replicated((1,), comm.size)
        mine = dist.indices(comm.rank)[1] if comm.rank < 4 else np.array([], int)
        given: dict[str, Any] = {"comm": comm, "format": "netcdf4", "durable": False}
        with hs.open(path, "w", unlimited="time", attributes={"Conventions": "CF-1.8"}, **given) as file:
            file.write(
                "time", np.array([0.0]), one, dimension_names=["time"], attributes={"units": "days since 2000-01-01"}
            )
            for name in ("rho", "v"):
                field = np.arange(4.0)[None, mine]
                file.write(name, field, dist, dimension_names=["time", "x"], compression="gzip", fill_value=-9.0)
            for step in (1, 2):
                file.append("time", np.array([float(step)]), one)
                file.append({"rho": 10.0 * step + np.arange(4.0)[None, mine]}, dist)
        with hs.open(path, "r+", **given) as file:
            file.append("time", np.array([3.0]), one)
            file.append({"rho": 30.0 + np.arange(4.0)[None, mine]}, dist)
            assert file["rho"].shape == (4, 4)

    hs.threads(3, run)
    rho = 10.0 * np.arange(4.0)[:, None] + np.arange(4.0)
    with netCDF4.Dataset(path) as data:
        assert data.dimensions["time"].isunlimited()
        assert len(data.dimensions["time"]) == 4
        assert not data.dimensions["x"].isunlimited()
        assert np.array_equal(data["rho"][...], rho)
        found = data["v"][...]
        assert found[0].tolist() == [0, 1, 2, 3]
        assert bool(np.ma.getmaskarray(found[1:]).all())
    for engine in ("netcdf4", "h5netcdf"):
        with xr.open_dataset(path, engine=engine) as data:  # type: ignore[arg-type]
            assert np.array_equal(data["rho"].values, rho)
            assert [str(day)[:10] for day in data["time"].values] == [f"2000-01-0{n}" for n in (1, 2, 3, 4)]


def test_chunks_that_cannot_be_changed_are_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "old.h5", "w") as data:
        data.create_dataset("lzf", data=np.arange(9), chunks=(2,), compression="lzf")
    before = (tmp_path / "old.h5").read_bytes()
    with hs.open(tmp_path / "old.h5", "r+") as file, pytest.raises(hs.UnsupportedError, match="found lzf"):
        file.write("lzf", np.array([7, 8]), section=slice(3, 5))
    assert (tmp_path / "old.h5").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.h5"]


def test_files_with_nodes_of_another_size_are_not_changed(tmp_path: Path) -> None:
    """The superblock says how large nodes are, and libraries read as much as that; h5py cannot set it."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="earliest") as data:
        data.create_dataset("a", data=np.arange(40), chunks=(1,), maxshape=(None,))
    whole = bytearray(path.read_bytes())
    # Half of the symbols of a leaf (section II.A of the specification).
    assert whole[16:20] == b"\4\0\x10\0"
    whole[16] = 8
    path.write_bytes(whole)
    with hs.open(path, "r+") as file:
        for call in (lambda: file.append("a", np.arange(2)), lambda: file.write("c", np.arange(2))):
            with pytest.raises(hs.UnsupportedError, match="nodes have the usual size"):
                call()
    assert path.read_bytes().startswith(whole)


def test_elements_in_headers_are_read(tmp_path: Path) -> None:
    """Compact datasets, also after their header has moved."""
    for libver in ("earliest", "latest"):
        path = tmp_path / f"{libver}.h5"
        with h5py.File(path, "w", libver=libver) as data:
            properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            properties.set_layout(h5py.h5d.COMPACT)
            space, kind = h5py.h5s.create_simple((3, 4)), h5py.h5t.IEEE_F32BE
            h5py.Dataset(h5py.h5d.create(data.id, b"compact", kind, space, properties))[...] = np.arange(12).reshape(
                3, 4
            )

        def run(comm: Any, path: Path = path) -> None:
            whole = np.arange(12.0).reshape(3, 4)
            dist, mine = blocks(comm, whole.shape)
            with hs.open(path, "r+", comm=comm) as file:
                assert np.array_equal(file.read("compact", dist), whole[mine])
                with pytest.raises(hs.UnsupportedError, match="lies in the header"):
                    file.write("compact", whole[mine], dist)
                file["compact"].attrs["units"] = "m"
                assert np.array_equal(file["compact"][1:, 2], whole[1:, 2])
                assert np.array_equal(file.read("compact", dist), whole[mine])

        hs.threads(2, run)
        with h5py.File(path) as data:
            assert data["compact"][...].tolist() == np.arange(12).reshape(3, 4).tolist()
            assert data["compact"].attrs["units"] == "m"


def test_headers_lie_in_one_sector(tmp_path: Path) -> None:
    """So that one write of a disk replaces them; also those of groups and steps that were added."""
    path = tmp_path / "a.h5"
    random = np.random.default_rng(SEED)

    def some(count: int) -> dict[str, Any]:
        return {f"a{number}": "x" * int(random.integers(1, 90)) for number in range(count)}

    with hs.open(path, "w", attributes=some(30)) as file:
        for number in range(40):
            file.write(f"g{number % 3}/v{number}", np.zeros(3), attributes=some(int(random.integers(0, 12))))
    with hs.open(path, "r+") as file:
        for number in range(20):
            with file.step(f"{number:04}", attributes=some(number)) as step:
                step.write("v", np.zeros(3), attributes=some(int(random.integers(0, 12))))
    content, places = path.read_bytes(), []
    with h5py.File(path) as data:
        data.visititems(lambda _, one: places.append(h5py.h5o.get_info(one.id).addr))
        places.append(h5py.h5o.get_info(data.id).addr)
    assert len(places) == 40 + 3 + 2 * 20 + 1
    for place in places:
        # Section IV.A.1.b of the specification: the first block ends behind its messages with a checksum.
        assert content[place : place + 6] == b"OHDR\2\x0e"
        last = place + 10 + int.from_bytes(content[place + 6 : place + 10], "little") + 3
        assert place // 512 == last // 512, (place, last)


def test_structured_types_are_those_of_h5py(tmp_path: Path) -> None:
    inner = np.dtype([("x", "<f4"), ("y", ">i2", (2, 3))])
    kinds = [
        np.dtype([("a", "<i4"), ("b", "<f8")]),
        np.dtype([("a", "i1"), ("in", inner), ("name", "S5"), ("yes", "?"), ("z", "<c8")]),
        np.dtype({"names": ["a", "b"], "formats": ["<i2", "<f8"], "offsets": [2, 8], "itemsize": 24}),
    ]
    bits = np.random.default_rng(SEED)
    arrays = {f"v{number}": np.zeros(7, kind) for number, kind in enumerate(kinds)}
    for values in arrays.values():
        for name in values.dtype.names or ():
            if values.dtype[name].kind in "if":
                values[name] = bits.integers(0, 100, 7)
    with hs.open(tmp_path / "a.h5", "w") as file:
        file.write(arrays)
        file.write("zipped", arrays["v0"], chunks=(3,), compression="gzip")
        text = np.zeros(2, [("text", "U3")])
        with pytest.raises(hs.UnsupportedError, match="text of NumPy's type U in field 'text'"):
            file.write("text", text)
    with h5py.File(tmp_path / "a.h5") as data:
        for name, values in arrays.items():
            assert data[name].dtype == values.dtype
            assert np.array_equal(data[name][...], values)
        assert np.array_equal(data["zipped"][...], arrays["v0"])
    with hs.open(tmp_path / "a.h5") as file:
        assert all(np.array_equal(file[name][...], values) for name, values in arrays.items())


def test_filters_that_zarr_has_too(tmp_path: Path) -> None:
    values = np.arange(1000, dtype="i4").reshape(50, 20)
    given: dict[str, Any] = {"chunks": (16, 20), "compression": "gzip", "shuffle": True, "fletcher32": True}
    with hs.open(tmp_path / "a.zarr", "w") as store:
        store.write("a", values, **given)
    with hs.open(tmp_path / "a.h5", "w") as file:
        file.write("a", values, **given)
    with warnings.catch_warnings(action="ignore"):
        found = zarr.open_array(tmp_path / "a.zarr" / "a", mode="r")
        assert np.array_equal(found[...], values)
        again = zarr.create_array(
            tmp_path / "a.zarr",
            name="b",
            data=values,
            chunks=(16, 20),
            compressors=[Shuffle(elementsize=4), zarr.codecs.GzipCodec(), Fletcher32()],
        )
    assert again.shape == values.shape
    with hs.open(tmp_path / "a.zarr") as store:
        assert np.array_equal(store.read("b"), values)
    with h5py.File(tmp_path / "a.h5") as data:
        one = data["a"]
        assert (one.chunks, one.compression, one.shuffle, one.fletcher32) == ((16, 20), "gzip", True, True)
        assert np.array_equal(one[...], values)


def test_hundred_thousand_chunks(tmp_path: Path) -> None:
    """Each rank's chunks get room, and rank 0 makes one index of all."""
    count = 100_000
    values = np.arange(2 * count, dtype="u2")

    def run(comm: Any) -> None:
        dist, mine = blocks(comm, values.shape)
        with hs.open(tmp_path / "a.h5", "w", comm=comm, durable=False) as file:
            file.write("a", values[mine], dist, chunks=(2,), shuffle=True)
        with hs.open(tmp_path / "a.h5", comm=comm) as file:
            section = (slice(2 * count - 50, 2 * count),)
            assert np.array_equal(file.read("a", section=section), values[section])

    hs.threads(2, run)
    with h5py.File(tmp_path / "a.h5") as data:
        assert data["a"].id.get_num_chunks() == count
        assert np.array_equal(data["a"][...], values)


def test_what_lies_behind_the_end_is_left_alone(tmp_path: Path) -> None:
    """A rank of a dead program may still write there."""
    path = tmp_path / "a.h5"
    with hs.open(path, "w") as file:
        file.write("a", np.arange(9))
    behind = b"late" * 1000
    with path.open("ab") as late:
        late.write(behind)
    with hs.open(path, "r+") as file:
        file.write("b", np.arange(5.0))
        file.write("c", np.arange(50.0), chunks=(7,), compression="gzip")
        file.attrs["x"] = 1
        with file.step("0001") as step:
            step.write("d", np.arange(5.0))
    assert behind in path.read_bytes()
    with h5py.File(path) as data:
        assert (data["c"][...] == np.arange(50)).all()
        assert (data["0001/d"][...] == np.arange(5)).all()


def test_what_a_dead_program_may_still_write_to_is_left_alone(tmp_path: Path) -> None:
    """A file is made as long as its new chunks may reach, and the next program begins behind that."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as data:
        data.create_dataset("a", data=np.arange(100), chunks=(10,), maxshape=(None,), compression="gzip")
    ends, reach = path.stat().st_size, path.stat().st_size + 5000
    # As after a crash in the middle of an update.
    os.truncate(path, reach)
    with hs.open(path, "r+") as file:
        file.append("a", np.arange(20))
        file.write("a", np.zeros(5, "i8"), section=slice(0, 5))
    with h5py.File(path) as data:
        found = [data["a"].id.get_chunk_info(number) for number in range(12)]
        places = {one.chunk_offset[0]: one.byte_offset for one in found}
        assert all(places[first] >= reach for first in (0, 100, 110))
        assert all(places[first] < ends for first in range(10, 100, 10))
        assert data["a"][:6].tolist() == [0, 0, 0, 0, 0, 5]
        assert data["a"][100:].tolist() == list(range(20))


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("libver", ["earliest", "v108", "latest"])
def test_others_change_groups_of_many_members(libver: str, backwards: bool, tmp_path: Path) -> None:  # noqa: FBT001
    path = tmp_path / "many.h5"
    with h5py.File(path, "w", libver=libver) as other:
        for number in range(70):
            other.create_group(f"old/o{number}")
        other["old/soft"] = h5py.SoftLink("/old/o1")
    with hs.open(path, "r+", durable=False) as file:
        for number in range(150):
            file.create_group(f"new/n{number}")
        for number in range(20):
            with file.group("old").step(f"s{number}") as step:
                step.write("rho", np.arange(3.0) + number)
    with h5py.File(path, "r+") as other:
        assert set(other["old"]) == {f"o{number}" for number in range(70)} | {f"s{number}" for number in range(20)} | {
            "soft"
        }
        assert other["old"].get("soft", getlink=True).path == "/old/o1"
        assert list(other["old/s7/rho"]) == [7, 8, 9]
        names = list(other["new"])
        assert sorted(names) == sorted(f"n{number}" for number in range(150))
        for name in names[: 20 : -1 if backwards else 1]:
            del other["new"][name]
        other.create_group("new/other")
        for number in range(20):
            del other[f"old/s{number}"]
    with hs.open(path, "r+", durable=False) as file:
        for number in range(100):
            file.create_group(f"new/again{number}")
    with h5py.File(path, "r+") as other:
        assert len(other["old"]) == 71
        assert len(other["new"]) == len(set(names[: 20 : -1 if backwards else 1]) ^ set(names)) + 101
        for name in list(other["new"])[:: -1 if backwards else 1]:
            del other["new"][name]
        assert list(other["new"]) == []
        other.create_group("new/last")
