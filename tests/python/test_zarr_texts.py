"""Texts of variable length in Zarr, v2 and v3: what zarr-python and xarray write is read, by value and type."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest
import xarray as xr
import zarr
from numcodecs import Zstd

from text_cases import WORDS, read_all, same, texts_of_zarr

RANKS = (1, 3, 4)
VERSIONS: tuple[Any, ...] = (2, 3)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("ranks", RANKS)
def test_texts_of_zarr_python(ranks: int, version: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    expected = texts_of_zarr(path, version)
    assert expected["never"].tolist() == ["größe"] * 4
    hs.threads(ranks, lambda comm: read_all(comm, path, expected))
    with hs.open(path, comm=None) as store:
        assert store["zipped"][[5, 3, 5]].tolist() == expected["zipped"][[5, 3, 5]].tolist()
        assert store["bare"].oindex[[8, 0], [9, 0]].tolist() == expected["bare"][np.ix_([8, 0], [9, 0])].tolist()
        assert store["many"][-1, ::7].tolist() == expected["many"][-1, ::7].tolist()
        assert store["plain"][-1] == "the end"
        assert store["never"].fill_value == "größe"
        into = np.full(5, "kept", object)
        store.read("plain", hs.Boxes((5,), [(slice(1, 3),)]), out=[into[2:4]])
        assert into.tolist() == ["kept", "kept", "a", "twelve bytes", "kept"]
        assert store.iread("plain").wait().tolist() == WORDS
        with pytest.raises(hs.InvalidError, match="cannot change from text of variable length to float64"):
            store.read("plain", dtype="f8")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("ranks", [1, 3])
def test_a_store_of_xarray_with_text_coordinates(ranks: int, version: Any, tmp_path: Path) -> None:
    """Objects and fixed texts, of several dimensions and none: all of the store is read."""
    names = np.array(["a", "bb", "größe"], object)
    grid = np.array([["a", "b"], ["c", ""], ["e", "f" * 300]], object)
    data = xr.Dataset(
        {"v": (("x", "t"), np.arange(6.0).reshape(3, 2)), "flags": ("x", np.array(["y", "n", "y"]))},
        coords={"x": names, "t": np.array(["p", "qq"]), "s": "scalar", "o": (("x", "t"), grid)},
    )
    data.to_zarr(tmp_path / "a.zarr", zarr_format=version)

    def one(comm: hs.ThreadComm) -> None:
        with hs.open(tmp_path / "a.zarr", comm=comm) as store:
            assert sorted(store) == sorted(map(str, data.variables))
            for name, variable in data.variables.items():
                found = store.read(str(name))
                same(found.astype(object), variable.values.astype(object), str(name))
                assert (store[str(name)].dimension_names or ()) == variable.dims
            assert store["x"].dtype == store["o"].dtype == object
            assert store["t"].dtype == "<U2"

    hs.threads(ranks, one)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("fill", ["", "abc", 7, 0, 1.5, None])
def test_fill_values_of_texts(version: int, fill: object, tmp_path: Path) -> None:
    """As zarr-python takes them; what it refuses, as v3's null, is damage."""
    common = {"zarr_format": version, "shape": [3], "fill_value": fill}
    if version == 2:
        told = {"chunks": [2], "dtype": "|O", "filters": [{"id": "vlen-utf8"}], "compressor": None, "order": "C"}
    else:
        grid = {"name": "regular", "configuration": {"chunk_shape": [2]}}
        codecs = [{"name": "vlen-utf8"}]
        told = {"node_type": "array", "data_type": "string", "chunk_grid": grid, "codecs": codecs}
        told["chunk_key_encoding"] = {"name": "default", "configuration": {"separator": "/"}}
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / (".zarray" if version == 2 else "zarr.json")).write_text(json.dumps(common | told))
    with hs.open(tmp_path / "a", comm=None) as store:
        if version == 3 and fill is None:
            with pytest.raises(hs.CorruptError, match="a fill value of text of variable length"):
                store.read("/")
            return
        expected = zarr.open_array(tmp_path / "a", mode="r")[...]
        assert store.read("/").tolist() == np.asarray(expected).tolist()


def test_elements_of_texts_change_by_chunks_and_all_else_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    expected = texts_of_zarr(path, 3)
    calls: list[tuple[Callable[[Any], Any], str]] = [
        (
            lambda store: store.write("plain", np.array(["a"], "U1"), section=slice(0, 1)),
            "begins or ends within a chunk of texts",
        ),
        (lambda store: store.append("many", np.full((1, 50), "a", object)), "begins or ends within a chunk of texts"),
        (lambda store: store.resize("plain", (9,)), r"'plain' has texts of variable length\n.*write a new array"),
    ]
    with hs.open(path, "r+") as store:
        for call, said in calls:
            with pytest.raises(hs.UnsupportedError, match=said):
                call(store)
        with pytest.raises(hs.InvalidError, match="what is written are no such texts"):
            store.append("plain", np.array(["a"], "U1"))
        store["plain"].attrs["unit"] = "m"
        store.resize("plain", (4,))
        store.rename("long", "longer")
        store.write("new", np.arange(3))
    group = zarr.open_group(path, mode="r")
    assert group["plain"][...].tolist() == WORDS[:4]
    assert dict(group["plain"].attrs) == {"unit": "m"}
    assert group["longer"][...].tolist() == expected["long"].tolist()
    with hs.open(path, comm=None) as store:
        assert store["plain"][:].tolist() == WORDS[:4]


@pytest.mark.parametrize(
    ("version", "what", "said"),
    [
        (2, "vlen-bytes", "vlen-bytes"),
        (2, "pickle", "pickle"),
        (2, "json2", "json2"),
        (3, "variable_length_bytes", "bytes"),
    ],
)
def test_other_objects_are_refused_by_name(version: int, what: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    texts_of_zarr(path, version)
    name = path / "plain" / (".zarray" if version == 2 else "zarr.json")
    told = json.loads(name.read_text())
    if version == 2:
        told["filters"] = [{"id": what}]
    else:
        told["data_type"], told["codecs"] = what, [{"name": "vlen-bytes"}]
    name.write_text(json.dumps(told))
    with hs.open(path, comm=None) as store:
        with pytest.raises(hs.UnsupportedError, match=f"(?s){said}.*hint"):
            store.read("plain")
        assert store.read("partly").tolist() == ["", "", "", "x", "y", "", "", ""]


def test_damage_is_an_error_on_all_ranks(tmp_path: Path) -> None:
    """A chunk cut off, with another number of texts, or that is no UTF-8; other chunks are read."""
    path = tmp_path / "a.zarr"
    texts_of_zarr(path, 3)
    chunk = path / "bare" / "c" / "0" / "0"
    good = chunk.read_bytes()
    for bad, why in (
        (good[:-1], "text 11 of 12"),
        (b"\x05" + good[1:], "expected 12 texts, found 5"),
        (good.replace("ä".encode(), b"\xc3\xc3", 1), "texts in UTF-8"),
        (b"", "the number of texts"),
    ):
        chunk.write_bytes(bad)

        def one(comm: hs.ThreadComm, why: str = why) -> str:
            with hs.open(path, comm=comm) as store:
                dist = hs.Distribution((9, 10), (3, 1), ("block", "*"))
                with pytest.raises(hs.CorruptError, match=why) as caught:
                    store.read("bare", dist)
                if comm.rank:
                    assert store["bare"][5:].shape == (4, 10)
                return str(caught.value)

        (said,) = {*hs.threads(3, one)}
        assert "bare/c/0/0" in said
        assert hs.verify(path).damaged
    chunk.write_bytes(good)
    assert not hs.verify(path).damaged


def test_a_chunk_that_expands_beyond_all_bounds_is_refused(tmp_path: Path) -> None:
    """Nothing says how long texts are; what a chunk decodes to has a limit all the same."""
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    group.create_array("a", shape=(1,), dtype=str, compressors=[zarr.codecs.ZstdCodec()])[...] = "x"
    (tmp_path / "a.zarr" / "a" / "c" / "0").write_bytes(Zstd(level=1).encode(bytes(1 << 28)) * 5)
    with hs.open(tmp_path / "a.zarr", comm=None) as store, pytest.raises(hs.CorruptError, match="1073741824 B"):
        store.read("a")
