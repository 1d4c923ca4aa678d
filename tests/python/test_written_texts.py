"""Texts of variable length, written by ranks together, as zarr-python and xarray read them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest
import xarray as xr
import zarr

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


@pytest.mark.parametrize("bad", [None, b"bytes", 7, float("nan"), "\ud800"])
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
            store.write("a", parts, pieces, dtype=str, fill_value="nobody")
            assert store.read("a")[8].tolist() == ["nobody", *whole[8, 1:].tolist()]

    hs.threads(3, program)
    found = zarr.open_group(path, mode="r")["a"][...].astype(object)
    assert found[:7].tolist() == whole[:7].tolist()
    assert found[7:, 1:].tolist() == whole[7:, 1:].tolist()
    assert found[7:, 0].tolist() == ["nobody"] * 2


@pytest.mark.parametrize(("name", "fmt"), [("a.nc", "netcdf3"), ("a.h5", "hdf5"), ("b.nc", "netcdf4")])
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
