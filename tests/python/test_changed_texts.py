"""Texts of variable length in HDF5 and netCDF-4 files, also of h5py and netCDF4, changed by ranks together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr

RANKS = (1, 3, 4)
WORDS = np.array(["", "a", "größe", "日本語", "x" * 70, "line\nline", "\U0001f30d"] * 2, object)


def spread(comm: Any, array: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], hs.Distribution]:
    """This rank's part of an array, and the distribution."""
    dist = hs.Distribution(array.shape, (comm.size,) + (1,) * (array.ndim - 1), ("block",) * array.ndim)
    return array[dist.slices(comm.rank)], dist


def everywhere(comm: Any, value: Any) -> tuple[np.ndarray[Any, Any], hs.Distribution]:
    """An array that all ranks have."""
    array = np.array(value, object)
    return array, hs.Distribution.replicated(array.shape, comm.size)


def in_h5py(path: Path, name: str) -> Any:
    with h5py.File(path) as file:
        found = file[name].asstr()[()]
        return found.tolist() if isinstance(found, np.ndarray) else found


@pytest.mark.parametrize("fmt", ["hdf5", "netcdf4"])
@pytest.mark.parametrize("ranks", RANKS)
def test_texts_without_dimensions(ranks: int, fmt: str, tmp_path: Path) -> None:
    path = tmp_path / "a.file"

    def program(comm: Any) -> None:
        with hs.open(path, "w", comm=comm, format=fmt) as file:
            file.write("entry/title", *everywhere(comm, "A title"), attributes={"lang": "en"})
            file.write("bytes", *everywhere(comm, b"2026-11-30"))
            file.create_array("empty", (), dtype=str)
            file.write("text", np.array("U"), hs.Distribution.replicated((), comm.size), dtype=str)
        with hs.open(path, "r+", comm=comm) as file:
            file.write("entry/late", *everywhere(comm, "später"))
            file.write("bytes", *everywhere(comm, "changed"), section=())
            with file.step("s") as step:
                step.write("in", *everywhere(comm, "a step"))
            found = file.read("entry/late")[()]
            assert (found.decode() if fmt == "hdf5" else found) == "später"

    hs.threads(ranks, program)
    expected = {
        "entry/title": "A title",
        "bytes": "changed",
        "empty": "",
        "text": "U",
        "entry/late": "später",
        "s/in": "a step",
    }
    assert {name: in_h5py(path, name) for name in expected} == expected
    with h5py.File(path, "a") as file:
        assert file["entry/title"].shape == ()
        file["entry/title"][()] = "by h5py"
    if fmt == "netcdf4":
        with netCDF4.Dataset(path) as data:
            assert {name: data[name][()] for name in expected} == {**expected, "entry/title": "by h5py"}
            assert data["entry/title"].dtype is str
    with hs.open(path) as file:
        assert file.read("entry/title")[()] in ("by h5py", b"by h5py")
    assert hs.verify(path).findings == ()


def made_by_h5py(path: Path) -> None:
    with h5py.File(path, "w") as file:
        utf8, ascii_ = h5py.string_dtype(), h5py.string_dtype("ascii")
        file.create_dataset("plain", data=WORDS, dtype=utf8)
        file.create_dataset("chunks", data=WORDS, dtype=utf8, chunks=(4,), maxshape=(None,))
        file.create_dataset("zipped", data=WORDS, dtype=utf8, chunks=(4,), compression="gzip", shuffle=True)
        file.create_dataset("ascii", data=["one", "two", "three"], dtype=ascii_)
        file.create_dataset("scalar", data="title", dtype=utf8)
        file.create_dataset("number", data=np.arange(4))


@pytest.mark.parametrize("ranks", RANKS)
def test_sections_and_appends_in_files_of_h5py(ranks: int, tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    made_by_h5py(path)
    new = np.array(["new " * 30, "", "é"], object)

    def program(comm: Any) -> None:
        with hs.open(path, "r+", comm=comm) as file:
            for name in ("plain", "chunks", "zipped"):
                # A part of a chunk, and parts of two.
                file.write(name, *spread(comm, new), section=slice(2, 5))
                file.write(name, *spread(comm, new[:2]), section=slice(8, 12, 2))
            file.append("chunks", *spread(comm, WORDS))
            file.write("ascii", *spread(comm, np.array([b"1", b"\xb5m"], object)), section=slice(1, 3))
            file.write("scalar", *everywhere(comm, "another"), section=())
            assert file.read("zipped")[4].decode() == "é"

    hs.threads(ranks, program)
    whole = WORDS.copy()
    whole[2:5], whole[8:12:2] = new, new[:2]
    for name in ("plain", "zipped"):
        assert in_h5py(path, name) == whole.tolist(), name
    assert in_h5py(path, "chunks") == [*whole, *WORDS]
    assert in_h5py(path, "scalar") == "another"
    with h5py.File(path, "a") as file:
        assert file["ascii"][...].tolist() == [b"one", b"1", b"\xb5m"]
        assert h5py.check_string_dtype(file["ascii"].dtype).encoding == "ascii"
        assert file["zipped"].compression == "gzip"
        assert file["number"][...].tolist() == [0, 1, 2, 3]
        # Its owner frees what was there, and reads the rest.
        for name in ("plain", "chunks", "zipped"):
            file[name][2:6] = ["by h5py"] * 4
            assert file[name].asstr()[6:14].tolist() == whole[6:].tolist()
    with hs.open(path) as file:
        assert file.read("zipped")[2:6].tolist() == [b"by h5py"] * 4
    assert hs.verify(path).findings == ()


@pytest.mark.parametrize("ranks", RANKS)
def test_records_of_texts_in_files_of_netcdf4(ranks: int, tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as data:
        data.createDimension("t", None)
        data.createDimension("x", 3)
        data.createVariable("log", str, ("t",))[0:2] = np.array(["first", "second"], object)
        data.createVariable("grid", str, ("t", "x"), chunksizes=(2, 2))[0] = np.array(["a", "b", "c"], object)
        data.createVariable("fixed", str, ("x",))[:] = np.array(["p", "q", "r"], object)

    def program(comm: Any) -> None:
        with hs.open(path, "r+", comm=comm) as file:
            file.append("log", *spread(comm, np.array(["third", ""], object)))
            file.write("grid", *spread(comm, np.array([["d", "e"]], object)), section=(slice(3, 4), slice(1, 3)))
            file.write("fixed", *spread(comm, np.array(["Q"], object)), section=slice(1, 2))
            file.write(
                "more", *spread(comm, np.array(["m", "n", "o"], object)), dimension_names=["x"], compression="gzip"
            )

    hs.threads(ranks, program)
    with netCDF4.Dataset(path, "a") as data:
        assert data["log"][:].tolist() == ["first", "second", "third", ""]
        assert data["grid"][:].tolist() == [["a", "b", "c"], ["", "", ""], ["", "", ""], ["", "d", "e"]]
        assert data["fixed"][:].tolist() == ["p", "Q", "r"]
        assert data["more"][:].tolist() == ["m", "n", "o"]
        data["log"][4] = "by netCDF4"
    with xr.open_dataset(path) as data:
        assert data["log"].values.tolist() == ["first", "second", "third", "", "by netCDF4"]
    assert hs.verify(path).findings == ()


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_filters_apply_to_elements(compression: str, tmp_path: Path) -> None:
    path = tmp_path / "a.h5"

    def program(comm: Any) -> None:
        with hs.open(path, "w", comm=comm) as file:
            with pytest.raises(hs.UnsupportedError, match="which are not written with a checksum"):
                file.write("words", *spread(comm, WORDS), codecs=[{"name": "numcodecs.fletcher32"}])
            shuffled = [{"name": "numcodecs.shuffle"}, "gzip"] if compression == "gzip" else None
            options = {"compression": compression} if shuffled is None else {"codecs": shuffled}
            file.write("words", *spread(comm, WORDS), chunks=(4,), **options)
        with hs.open(path, "r+", comm=comm) as file:
            file.write("late", *spread(comm, WORDS), chunks=(4,), compression=compression)
            file.write("words", *spread(comm, WORDS[:3]), section=slice(7, 10))

    hs.threads(3, program)
    with hs.open(path) as file:
        assert [text.decode() for text in file.read("words")[7:10]] == WORDS[:3].tolist()
    if compression == "gzip":
        assert in_h5py(path, "late") == WORDS.tolist()
        with h5py.File(path) as file:
            assert file["words"].compression == "gzip"


@pytest.mark.parametrize("ranks", RANKS)
def test_unlike_ranks(ranks: int, tmp_path: Path) -> None:
    """One rank has all texts, some none; ranks have the same; texts that ought to be the same are not."""
    path = tmp_path / "a.h5"

    def program(comm: Any) -> None:
        own = [[((0,), (14,))] if comm.rank == comm.size - 1 else []][0]
        pieces = hs.Boxes((14,), own)
        with hs.open(path, "w", comm=comm) as file:
            file.write("last", [WORDS] if own else [], pieces, dtype=str)
            file.write("all", *everywhere(comm, WORDS))
            file.write(
                {"numbers": np.arange(2), "empty": np.array(["", ""], object)},
                hs.Distribution.replicated((2,), comm.size),
            )
            if comm.size > 1:
                with pytest.raises(hs.DisagreementError, match="texts of arrays that all ranks have"):
                    file.write("unlike", *everywhere(comm, f"of rank {comm.rank}"))
        with hs.open(path, "r+", comm=comm) as file:
            file.write(
                "last",
                [np.array(["again"], object)] if own else [],
                hs.Boxes((1,), [((0,), (1,))] if own else []),
                section=slice(1, 2),
            )

    hs.threads(ranks, program)
    assert in_h5py(path, "all") == WORDS.tolist()
    assert in_h5py(path, "last") == [WORDS[0], "again", *WORDS[2:]]
    assert in_h5py(path, "empty") == ["", ""]
    # What all ranks have is in the file once.
    assert path.read_bytes().count(b"x" * 70) == 4


@pytest.mark.parametrize("fmt", ["zarr", "hdf5", "netcdf4"])
@pytest.mark.parametrize("source", ["h5", "nc", "zarr"])
def test_convert_copies_texts(source: str, fmt: str, tmp_path: Path) -> None:
    origin, target = tmp_path / f"a.{source}", tmp_path / "copy"
    table = np.array([["a", "bb"], ["", "größe"], ["x" * 90, "z"]], object)
    if source == "zarr":
        group = zarr.open_group(origin, mode="w")
        group.create_array("w", shape=table.shape, chunks=(2, 1), dtype=str)[...] = table.astype(str)
        group.create_array("title", shape=(), dtype=str)[...] = "one"
    elif source == "h5":
        with h5py.File(origin, "w") as file:
            file.create_dataset("w", data=table, dtype=h5py.string_dtype(), chunks=(2, 1))
            file["title"] = "one"
    else:
        with netCDF4.Dataset(origin, "w") as data:
            data.createDimension("y", 3)
            data.createDimension("x", 2)
            data.createVariable("w", str, ("y", "x"))[:] = table
            data.createVariable("title", str, ())[...] = np.array("one", object)

    def program(comm: Any) -> None:
        hs.convert(origin, target, format=fmt, comm=comm)

    hs.threads(2, program)
    with hs.open(target) as file:
        plain = lambda text: text.decode() if isinstance(text, bytes) else text  # noqa: E731
        assert np.vectorize(plain, otypes=[object])(file.read("w")).tolist() == table.tolist()
        assert plain(file.read("title")[()]) == "one"


def test_bytes_that_are_no_text_of_zarr(tmp_path: Path) -> None:
    def program(comm: Any) -> None:
        latin = np.array([b"m", b"\xb5m", b""], object)
        with hs.open(tmp_path / "a.zarr", "w", comm=comm) as store:
            with pytest.raises(hs.InvalidError, match="a text of 'units' is not UTF-8"):
                store.write("units", *spread(comm, latin))
            store.write("units", *spread(comm, latin[::2]))

    hs.threads(2, program)
    assert zarr.open_group(tmp_path / "a.zarr", mode="r")["units"][...].tolist() == ["m", ""]


def test_dedicated_servers_write_texts(tmp_path: Path) -> None:
    def program(comm: Any) -> None:
        with hs.dedicate(comm, 1) as io:
            if io.is_server:
                io.serve()
                return
            with hs.open(tmp_path / "a.h5", "w", comm=io) as file:
                file.write("words", *spread(io, WORDS), chunks=(3,), compression="gzip")
                requests = [file.iwrite(f"r{number}", *spread(io, WORDS), staged=True) for number in range(4)]
                assert all(request.wait() for request in requests)
            with hs.open(tmp_path / "a.h5", "r+", comm=io) as file:
                file.write("words", *spread(io, WORDS[:5]), section=slice(4, 9))

    hs.threads(4, program)
    assert in_h5py(tmp_path / "a.h5", "words") == [*WORDS[:4], *WORDS[:5], *WORDS[9:]]
    assert all(in_h5py(tmp_path / "a.h5", f"r{number}") == WORDS.tolist() for number in range(4))
