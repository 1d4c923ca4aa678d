"""Arrays in shards, in chains of codecs, in groups of groups, of Zarr v2, and as roots of stores."""

from __future__ import annotations

import os
from pathlib import Path

import google_crc32c
import hyperslab as hs
import numpy as np
import pytest
import zarr

from mpi_launch import run_ranks
from sharded_cases import MATRIX

SEED = 20261125
#: Of so many parts of the matrix, one is run on each number of ranks; `HYPERSLAB_TIMES` runs more of it.
PARTS = 60
VALUES = np.arange(40.0 * 30).reshape(40, 30)


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 3, 4, 8])
def test_a_matrix_of_arrays_is_the_same_for_all_tools(ranks: int, tmp_path: Path) -> None:
    """Element types x orders x codecs x shards, generated, with distributions, sections and appends from a seed."""
    parts = max(PARTS // int(os.environ.get("HYPERSLAB_TIMES", "1")), 4)
    printed = run_ranks(ranks, "sharded", tmp_path, SEED, [1, 3, 4, 8].index(ranks), parts, timeout=600)
    cells = int(printed.split(" cells")[0].split()[-1])
    assert len(MATRIX) // parts <= cells <= len(MATRIX) // parts + 1


def files(path: Path) -> int:
    """How many files there are below a directory."""
    return sum(1 for one in path.rglob("*") if one.is_file())


def test_shards_are_chosen_where_they_save_many_files(tmp_path: Path) -> None:
    with hs.open(tmp_path / "run.zarr", "w") as store:
        store.write("many", np.arange(6000.0), chunks=(2,))
        store.write("few", np.arange(6000.0), chunks=(10,))
        store.write("chunks", np.arange(3000.0), chunks=(2,), shards=False)
        assert (store["many"].chunks, store["many"].shards) == ((2,), (6000,))
        assert [store[name].shards for name in ("few", "chunks")] == [None, None]
        assert (store.read("many", section=slice(5, 5000, 7)) == np.arange(5.0, 5000, 7)).all()
    assert files(tmp_path / "run.zarr/many") == 2
    assert files(tmp_path / "run.zarr/chunks") == 1501
    explained = hs.explain(hs.Distribution.block((6000,), 2), chunks=(2,)).text
    assert "lie in shards (3000,), since 3000 files become 2" in explained


def test_shards_larger_than_the_buffers_are_refused_or_not_chosen(tmp_path: Path) -> None:
    with hs.open(tmp_path / "run.zarr", "w", buffer_bytes=1 << 16) as store:
        with pytest.raises(hs.InvalidError, match=r"the buffers of a rank may have 65536 B"):
            store.write("a", np.zeros(1 << 16), chunks=(8,), shards=(1 << 16,))
        store.write("a", np.arange(1 << 16), chunks=(8,))
        shards = store["a"].shards
        assert shards is not None
        assert shards[0] * 8 <= 1 << 13
        assert (store.read("a", section=slice(77, 99)) == np.arange(77, 99)).all()


def test_what_cannot_be_shards_is_refused(tmp_path: Path) -> None:
    with hs.open(tmp_path / "run.zarr", "w") as store:
        for shards, chunks, said in [
            ((20, 13), (5, 6), "divide"),
            ((20,), (5, 6), "2 dimensions"),
            (True, None, "neither a shape"),
            ("yes", None, "neither a shape"),
        ]:
            with pytest.raises(hs.InvalidError, match=said):
                store.write("a", VALUES, shards=shards, chunks=chunks)
        assert store.arrays() == []


@pytest.mark.parametrize("where", ["start", "end"])
def test_damaged_shards_are_named(tmp_path: Path, where: str) -> None:
    """A hostile index is an error that says where, and a read elsewhere goes on."""
    group = zarr.open_group(tmp_path / "run.zarr", mode="w")
    given = {"shape": (20, 12), "index_location": where}
    array = group.create_array("a", shape=(40, 30), chunks=(5, 6), shards=given, dtype="f8", compressors=None)
    array[...] = VALUES
    shard = tmp_path / "run.zarr/a/c/0/0"
    good = bytearray(shard.read_bytes())
    index = 0 if where == "start" else len(good) - (8 * 16 + 4)

    def read_with(change: bytes, at: int, *, checked: bool) -> str:
        bad = good.copy()
        bad[index + at : index + at + len(change)] = change
        if checked:
            table = bytes(bad[index : index + 128])
            bad[index + 128 : index + 132] = int(google_crc32c.value(table)).to_bytes(4, "little")
        shard.write_bytes(bad)
        with hs.open(tmp_path / "run.zarr") as store:
            assert (store.read("a", section=(slice(20, 40), slice(0, 12))) == VALUES[20:, :12]).all()
            with pytest.raises(hs.CorruptError) as caught:
                store.read("a", section=(slice(0, 5), slice(0, 6)))
        return str(caught.value)

    said = read_with(b"\1", 3, checked=False)
    assert "CRC-32C" in said
    assert "c/0/0" in said
    outside = bytes(8) if where == "start" else (1 << 40).to_bytes(8, "little")
    second = bytes(good[index + 16 : index + 24])
    assert "overlap" in read_with(second, 0, checked=True)
    assert "between its bytes" in read_with(outside, 0, checked=True)
    assert "in the index of a shard" in read_with((1 << 40).to_bytes(8, "little"), 8, checked=True)


def test_groups_in_groups(tmp_path: Path) -> None:
    path = tmp_path / "run.zarr"
    with hs.open(path, "w") as store:
        store.write("a/b/c", VALUES, chunks=(8, 8))
        store.write({"a/b/d": VALUES, "a/b/e": VALUES})
        store.write("a/b/c", -VALUES[2:5], section=slice(2, 5))
        store.append("a/b/c", VALUES[:3])
        assert (store.groups(), store.arrays()) == (["a"], [])
        assert (store.group("a").groups(), store.group("a/b").arrays()) == (["b"], ["c", "d", "e"])
        with store.step("s") as step:
            step.write("x/y", VALUES)
        assert (store.read("s/x/y") == VALUES).all()
        assert (store.read_local("a/b/d") == VALUES).all()
        for call, said in [
            (lambda: store.write({"a/f": VALUES, "z": VALUES}), "several groups"),
            (lambda: store.write("a/b/c/d", VALUES), "is an array"),
            (lambda: store.write("a/../d", VALUES), "cannot be the name"),
            (lambda: store.write("/", VALUES), "cannot be the name"),
            (lambda: store.read("a//b"), "cannot be the name"),
            (lambda: store["nope/x"], "no array 'nope/x'"),
            (lambda: store.iwrite("p/q", VALUES).wait(), "is a path"),
        ]:
            with pytest.raises(hs.Error, match=said):
                call()
    expected = VALUES.copy()
    expected[2:5] *= -1
    group = zarr.open_group(path, mode="r")
    assert (group["a/b/c"][...] == np.concatenate([expected, VALUES[:3]])).all()
    assert sorted(name for name, _ in group.groups()) == ["a", "s"]


def test_arrays_as_roots(tmp_path: Path) -> None:
    array = zarr.create_array(tmp_path / "root.zarr", shape=(40, 30), dtype="f8", chunks=(4, 4), shards=(8, 8))
    array[...] = VALUES
    with hs.open(tmp_path / "root.zarr") as store:
        assert (store.arrays(), store["/"].shards) == (["/"], (8, 8))
        assert (store.read("/") == VALUES).all()
        assert (store.read("/", section=(slice(3, 4), slice(5, 9))) == VALUES[3:4, 5:9]).all()
    with pytest.raises(hs.Error, match="is an array"):
        hs.open(tmp_path / "root.zarr", "r+")


def test_zarr_v2_is_only_read(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "v2.zarr", mode="w", zarr_format=2, attributes={"time": 0.5})
    array = group.create_group("g").create_array("a", shape=(40, 30), chunks=(7, 8), dtype=">f4", order="F")
    array[...] = VALUES
    array.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
    zarr.consolidate_metadata(tmp_path / "v2.zarr")
    with hs.open(tmp_path / "v2.zarr") as store:
        assert (store.groups(), store.attrs) == (["g"], {"time": 0.5})
        assert store["g/a"].dimension_names == ("y", "x")
        assert (store.read("g/a") == VALUES).all()
    with pytest.raises(hs.Error, match="can only be read"):
        hs.open(tmp_path / "v2.zarr", "r+")
    with hs.open(tmp_path / "v2.zarr/g/a") as store:
        assert (store.read("/") == VALUES).all()
    # Beside arrays of v3, one of v2 is not changed either.
    zarr.open_group(tmp_path / "v3.zarr", mode="w")
    (tmp_path / "v2.zarr/g/a").rename(tmp_path / "v3.zarr/a")
    with hs.open(tmp_path / "v3.zarr", "r+") as store:
        assert (store.read("a") == VALUES).all()
        for call in (lambda: store.append("a", VALUES), lambda: store.write("a", VALUES[:1], section=slice(0, 1))):
            with pytest.raises(hs.Error, match="which can only be read"):
                call()
