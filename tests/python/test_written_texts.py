"""Texts of variable length, written by ranks together, as zarr-python, xarray, h5py and netCDF4 read them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr

from mpi_launch import run_ranks

RANKS = (1, 3, 4)
ALPHABET = ["", "a", "größe", "日本語", "end\0", "\0", "x" * 70, "line\nline", "\U0001f30d"]


def texts(*shape: int) -> np.ndarray[Any, Any]:
    """Texts of all lengths, empty ones and such with zeros among them."""
    made = np.empty(math.prod(shape), object)
    made[:] = [ALPHABET[number % len(ALPHABET)] + str(number) * (number % 3) for number in range(made.size)]
    return made.reshape(shape)


def spread(comm: Any, array: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], hs.Distribution]:
    """This rank's part of an array, in an order of its own, and the distribution."""
    dist = hs.Distribution(array.shape, (comm.size,) + (1,) * (array.ndim - 1), ("block",) * array.ndim)
    return array[dist.slices(comm.rank)], dist


KINDS: dict[str, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]] = {
    "objects": lambda array: array,
    "strings": lambda array: array.astype(np.dtypes.StringDType()),
    "Fortran order": np.asfortranarray,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranks", RANKS)
def test_zarr_python_reads_what_ranks_write(ranks: int, kind: str, tmp_path: Path) -> None:
    path, whole = tmp_path / "a.zarr", texts(13, 5)

    def program(comm: Any) -> None:
        part, dist = spread(comm, whole)
        part = KINDS[kind](part)
        with hs.open(path, "w", comm=comm) as store:
            store.write("g/usual", part, dist, dimension_names=["y", "x"], attributes={"units": "none"})
            store.write("cut", part, dist, chunks=(4, 2), compression="zstd", fill_value="nothing at all")
            store.write("sharded", part, dist, chunks=(2, 3), shards=(6, 6))
            store.write({"one": part, "number": np.zeros(part.shape)}, dist)
            request = store.iwrite("later", part, dist, staged=True)
            request.wait()
            with store.step("s0") as step:
                step.write("in", part, dist)
            for name in ("g/usual", "cut", "sharded", "one", "later", "s0/in"):
                assert store.read(name).tolist() == whole.tolist()

    hs.threads(ranks, program)
    group = zarr.open_group(path, mode="r")
    for name in ("g/usual", "cut", "sharded", "one", "later", "s0/in"):
        assert group[name][...].astype(object).tolist() == whole.tolist(), name
        assert group[name].metadata.to_dict()["data_type"] == "string"
    assert group["g/usual"].attrs["units"] == "none"
    assert group["cut"].fill_value == "nothing at all"
    with xr.open_zarr(path / "g", consolidated=False) as data:
        assert data["usual"].dims == ("y", "x")
        assert data["usual"].values.astype(object).tolist() == whole.tolist()
    assert hs.verify(path).findings == ()


def test_texts_of_a_fixed_length_become_variable(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    with hs.open(path, "w") as store:
        for number, dtype in enumerate([str, "str", "string", "T", object, np.dtypes.StringDType()]):
            store.write(f"a{number}", np.array(["one", "", "drei"]), dtype=dtype)
        store.write("b", ["one", "", "drei"], dtype=str)
        store.write("fixed", np.array(["one", "", "drei"]))
        store.write("none", np.array([], object))
        store.write("scalar", np.array("word"), dtype=str)
    group = zarr.open_group(path, mode="r")
    for name in [*(f"a{number}" for number in range(6)), "b"]:
        assert group[name].metadata.to_dict()["data_type"] == "string"
        assert group[name][...].tolist() == ["one", "", "drei"]
    assert group["fixed"].dtype == np.dtype("U4")
    assert group["none"].shape == (0,)
    assert group["scalar"][()] == "word"


@pytest.mark.parametrize("ranks", RANKS)
def test_sections_of_whole_chunks_and_appends(ranks: int, tmp_path: Path) -> None:
    """Of arrays that zarr-python made: longer texts than before, in some chunks; others stay."""
    path, whole = tmp_path / "a.zarr", texts(10, 4)
    group = zarr.open_group(path, mode="w")
    group.create_array("a", shape=whole.shape, chunks=(2, 4), dtype=str, fill_value="-")
    group["a"][:6] = whole[:6].astype(str)
    new = np.array([["long " * 20, "", "é", "z"]] * 2, object)
    more = np.array([[f"{row} {column}" for column in range(4)] for row in range(3)], object)

    def program(comm: Any) -> None:
        with hs.open(path, "r+", comm=comm) as store:
            store.write("a", *spread(comm, new), section=(slice(4, 6), ...))
            store.append("a", *spread(comm, more))
            with pytest.raises(hs.UnsupportedError, match="begins or ends within a chunk of texts"):
                store.write("a", *spread(comm, new[:1]), section=(slice(4, 5), ...))
            with pytest.raises(hs.UnsupportedError, match="begins or ends within a chunk of texts"):
                store.append("a", *spread(comm, more))
            with pytest.raises(hs.InvalidError, match="what is written are no such texts"):
                store.write("a", *spread(comm, np.zeros((2, 4))), section=(slice(4, 6), ...))

    hs.threads(ranks, program)
    found = zarr.open_group(path, mode="r")["a"][...].astype(object).tolist()
    assert found[:4] == [[text.rstrip("\0") for text in row] for row in whole[:4].tolist()]
    assert found[4:6] == new.tolist()
    assert found[6:10] == [["-"] * 4] * 4
    assert found[10:] == more.tolist()


@pytest.mark.parametrize("bad", [None, b"\xff bytes", 7, float("nan"), "\ud800"])
def test_what_is_no_text_is_an_error_on_all_ranks(bad: object, tmp_path: Path) -> None:
    whole = texts(8)
    path = tmp_path / "a.zarr"
    said: dict[int, str] = {}

    def program(comm: Any) -> None:
        part, dist = spread(comm, whole)
        part = part.copy()
        if comm.rank == 1:
            part[1] = bad
        with hs.open(path, "w", comm=comm) as store:
            with pytest.raises(hs.InvalidError) as failure:
                store.write("words", part, dist)
            said[comm.rank] = str(failure.value)
            assert "words" not in store
            store.write("words", *spread(comm, whole))

    hs.threads(3, program)
    assert all("'words'" in text and ("(1,)" in text or "UTF-8" in text) for text in said.values()), said
    assert zarr.open_group(path, mode="r")["words"][...].astype(object).tolist() == whole.tolist()


def test_boxes_of_texts(tmp_path: Path) -> None:
    path, whole = tmp_path / "a.zarr", texts(9, 4)

    def program(comm: Any) -> None:
        boxes = [[((0, 0), (2, 4)), ((7, 1), (9, 4))], [((2, 0), (7, 4))], []][comm.rank]
        parts = [whole[low[0] : high[0], low[1] : high[1]] for low, high in boxes]
        pieces = hs.Boxes(whole.shape, boxes)
        with hs.open(path, "w", comm=comm) as store:
            store.write("a", parts, pieces, dtype=str, fill_value="no rank")
            assert store.read("a")[8].tolist() == ["no rank", *whole[8, 1:].tolist()]

    hs.threads(3, program)
    found = zarr.open_group(path, mode="r")["a"][...].astype(object)
    assert found[:7].tolist() == whole[:7].tolist()
    assert found[7:, 1:].tolist() == whole[7:, 1:].tolist()
    assert found[7:, 0].tolist() == ["no rank"] * 2


@pytest.mark.parametrize(("name", "fmt"), [("a.nc", "netcdf3"), ("b.nc", "netcdf4_classic")])
def test_other_formats_are_refused(name: str, fmt: str, tmp_path: Path) -> None:
    def program(comm: Any) -> None:
        part, dist = spread(comm, texts(6))
        with hs.open(tmp_path / name, "w", comm=comm, format=fmt) as file:
            with pytest.raises(hs.UnsupportedError, match="'words' has texts of variable length"):
                file.write("words", part, dist)
            file.write("fixed", np.zeros(2), hs.Distribution((4,), (2,), ("block",)))

    hs.threads(2, program)
    with hs.open(tmp_path / name) as file:
        assert list(file) == ["fixed"]


def plain_texts(*shape: int) -> np.ndarray[Any, Any]:
    """The same without zeros, which end texts in HDF5."""
    whole = texts(*shape)
    return np.vectorize(lambda text: text.replace("\0", "\u2400"), otypes=[object])(whole)


def as_h5py_reads(path: Path, name: str) -> list[Any]:
    with h5py.File(path) as file:
        data = file[name]
        assert tuple(h5py.check_string_dtype(data.dtype)) == ("utf-8", None)
        found: list[Any] = data.asstr()[...].tolist()
        return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fmt", ["hdf5", "netcdf4"])
@pytest.mark.parametrize("ranks", RANKS)
def test_h5py_and_netcdf4_read_what_ranks_write(ranks: int, fmt: str, kind: str, tmp_path: Path) -> None:
    path, whole = tmp_path / "a.file", plain_texts(13, 5)
    long = np.array(["é" * (number % 900) for number in range(4000)], object)
    names = ["usual", "cut", "g/one", "later", "s0/in"]

    def program(comm: Any) -> None:
        part, dist = spread(comm, whole)
        part = KINDS[kind](part)
        numbers = np.full(part.shape, float(comm.rank))
        with hs.open(path, "w", comm=comm, format=fmt) as file:
            file.write("usual", part, dist, dimension_names=["y", "x"], attributes={"units": "none"})
            file.write({"g/one": part, "g/number": numbers}, dist, dimension_names=["y", "x"])
            request = file.iwrite("later", part, dist, staged=True, dimension_names=["y", "x"])
            request.wait()
        with hs.open(path, "r+", comm=comm) as file:
            file.write("cut", part, dist, chunks=(4, 2), dimension_names=["y", "x"])
            file.write("long", *spread(comm, long), chunks=(700,), dimension_names=["n"])
            with file.step("s0") as step:
                step.write("in", part, dist, dimension_names=["y", "x"])
            for name in names:
                found = file.read(name)
                if fmt == "hdf5":
                    found = np.vectorize(bytes.decode, otypes=[object])(found)
                assert found.tolist() == whole.tolist()

    hs.threads(ranks, program)
    for name in names:
        assert as_h5py_reads(path, name) == whole.tolist(), name
    assert as_h5py_reads(path, "long") == long.tolist()
    with h5py.File(path) as file:
        assert file["usual"].attrs["units"] in ("none", b"none")
        assert file["cut"].chunks == (4, 2)
        if ranks > 1:
            assert file["g/number"][...].max() == ranks - 1
    assert hs.verify(path).findings == ()
    if fmt == "netcdf4":
        with netCDF4.Dataset(path) as data:
            for name in names:
                assert data[name].dtype is str
                assert data[name].dimensions == ("y", "x")
                assert data[name][...].tolist() == whole.tolist()
            assert data["long"][...].tolist() == long.tolist()
        with xr.open_dataset(path) as data:
            assert data["usual"].values.tolist() == whole.tolist()
        # Its owner continues with the same file.
        with netCDF4.Dataset(path, "a") as data:
            data["usual"][0, 0] = "changed"
            data.createVariable("more", str, ("x",))[:] = whole[0]
        with hs.open(path) as file:
            assert file.read("usual")[0, :2].tolist() == ["changed", whole[0, 1]]
            assert file.read("more").tolist() == whole[0].tolist()


@pytest.mark.parametrize("fmt", ["hdf5", "netcdf4"])
def test_elements_of_hdf5_that_no_rank_writes_are_empty(fmt: str, tmp_path: Path) -> None:
    path, whole = tmp_path / "a.file", plain_texts(9, 4)

    def program(comm: Any) -> None:
        boxes = [[((0, 0), (2, 4))], [((4, 1), (7, 4))], []][comm.rank]
        parts = [whole[low[0] : high[0], low[1] : high[1]] for low, high in boxes]
        with hs.open(path, "w", comm=comm, format=fmt, unlimited="t" if fmt == "netcdf4" else ()) as file:
            file.write("a", parts, hs.Boxes(whole.shape, boxes), dtype=str, dimension_names=["t", "x"], chunks=(2, 2))
            file.create_array("none", (3,), dtype=str, dimension_names=["n"])
            empty = np.empty((0, 4), object)
            unheld = hs.Distribution((0, 4), (comm.size, 1), ("block", "block"))
            file.write("zero", empty, unheld, dimension_names=["e", "x"])

    hs.threads(3, program)
    expected = np.full(whole.shape, "", object)
    expected[:2], expected[4:7, 1:] = whole[:2], whole[4:7, 1:]
    assert as_h5py_reads(path, "a") == expected.tolist()
    assert as_h5py_reads(path, "none") == [""] * 3
    with h5py.File(path) as file:
        assert file["zero"].shape == (0, 4)
    if fmt == "netcdf4":
        with netCDF4.Dataset(path) as data:
            assert data["a"][...].tolist() == expected.tolist()
            assert data.dimensions["t"].isunlimited()


@pytest.mark.parametrize("fmt", ["hdf5", "netcdf4"])
def test_what_hdf5_has_no_place_for_is_an_error_on_all_ranks(fmt: str, tmp_path: Path) -> None:
    path, whole = tmp_path / "a.file", plain_texts(6)

    def program(comm: Any) -> None:
        part, dist = spread(comm, whole)
        with_zero = part.copy()
        if comm.rank == 1:
            with_zero[1] = "a\0b"
        with hs.open(path, "w", comm=comm, format=fmt) as file:
            with pytest.raises(
                hs.InvalidError, match=r"a text of 'words' has a character of zero.*\n  hint: take it out"
            ):
                file.write("words", with_zero, dist)
            with pytest.raises(hs.UnsupportedError, match=r"'words'.*which are not written with a fill value"):
                file.write("words", part, dist, fill_value="x")
            file.write("words", part, dist)

    hs.threads(3, program)
    assert as_h5py_reads(path, "words") == whole.tolist()


@pytest.mark.parametrize("ranks", RANKS)
def test_processes_write_texts_to_all_formats(ranks: int, tmp_path: Path) -> None:
    assert run_ranks(ranks, "written_texts", tmp_path) == "hdf5\nnetcdf4\nzarr\n"


def test_arrays_of_texts_are_made_first(tmp_path: Path) -> None:
    with hs.open(tmp_path / "a.zarr", "w") as store:
        store.create_array("c", (6,), dtype=str, chunks=(3,), fill_value="none")
        store["c"].write(np.array(["x", "yy", "zzz"], object), section=slice(3, 6))
        store.write("x", xr.DataArray(np.array(["a", "bc"], object), dims=["x"]))
        assert store["c"][:].tolist() == ["none"] * 3 + ["x", "yy", "zzz"]
    group = zarr.open_group(tmp_path / "a.zarr", mode="r")
    assert group["c"][...].tolist() == ["none"] * 3 + ["x", "yy", "zzz"]
    assert group["x"][...].tolist() == ["a", "bc"]


def test_long_texts_are_refused(tmp_path: Path) -> None:
    with (
        hs.open(tmp_path / "a.zarr", "w") as store,
        pytest.raises(hs.UnsupportedError, match="texts of at most 1048576 B"),
    ):
        store.write("words", np.array(["x" * ((1 << 20) + 1)], object))
