"""How new arrays are cut into chunks where it is left open, and that others read what comes of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import hyperslab as hs
import numpy as np
import pytest
import zarr

BLOCKS = hs.Distribution((32, 16, 16), (2, 2, 2), ["block"] * 3)


def explained(dist: hs.Distribution, *, arrays: int = 1, chunks: hs.chunking.Chunks | None = None) -> hs.Explanation:
    return hs.explain(dist, "f8", name=[f"v{i}" for i in range(arrays)], chunks=chunks, cores=2)


def shape_in(told: hs.Explanation) -> tuple[int, ...]:
    return tuple(told.to_dict()["arrays"][0]["chunks"]["shape"])


def written(path: Path, dist: hs.Distribution, names: Sequence[str], chunks: hs.chunking.Chunks | None = None) -> None:
    """Write arrays of numbers from threads, as many as the distribution has ranks."""
    values = np.arange(math.prod(dist.shape), dtype="f8").reshape(dist.shape)

    def rank(comm: hs.ThreadComm) -> None:
        part = np.ascontiguousarray(values[dist.slices(comm)])
        with hs.open(path, "w", comm=comm, durable=False) as store:
            store.write({name: part + i for i, name in enumerate(names)}, dist, chunks=chunks)

    hs.threads(dist.size, rank)
    group = zarr.open_group(path, mode="r")
    for i, name in enumerate(names):
        assert np.array_equal(group[name][...], values + i)


def test_many_small_arrays_are_few_files(tmp_path: Path) -> None:
    told = explained(BLOCKS, arrays=40)
    assert "chunks of 'v0' are " in told.text
    assert math.prod(shape_in(told)) >= 4 * 16 * 8 * 8
    written(tmp_path / "a.zarr", BLOCKS, [f"v{i}" for i in range(40)])
    files = [each for each in (tmp_path / "a.zarr").rglob("c*") if each.is_file()]
    assert len(files) <= 2 * 40
    # They are as was explained, though that was for a store that is made durable.
    with hs.open(tmp_path / "a.zarr") as store:
        assert store["v0"].chunks == shape_in(told)


def test_large_arrays_have_the_chunks_of_ranks() -> None:
    told = explained(hs.Distribution((512, 512, 128), (2, 2, 2), ["block"] * 3))
    assert "chunks of '" not in told.text
    assert shape_in(told) == (256, 256, 64)


@pytest.mark.parametrize("shape", [(None, 1, 90), (10, 45, None), (64, 64, 64)])
def test_typical_requests_choose_chunks(shape: tuple[int | None, ...], tmp_path: Path) -> None:
    dist = hs.Distribution((40, 45, 90), (2, 2, 1), ["block"] * 3)
    request = hs.TypicalRequest(shape)
    tried = {hs.TypicalRequest(shape, size).chunks(dist.shape, "f8") for size in (32 << 20, 8 << 20, 2 << 20, 1 << 19)}
    assert shape_in(explained(dist, chunks=request)) in tried
    written(tmp_path / "a.zarr", dist, ["x"], request)
    with hs.open(tmp_path / "a.zarr") as store:
        assert store["x"].chunks in tried


def test_what_is_said_of_chunks_is_done() -> None:
    dist = hs.Distribution((40, 45, 90), (2, 2, 1), ["block"] * 3)
    limited = hs.TypicalRequest((None, 1, 90), 4096)
    assert shape_in(explained(dist, chunks=limited)) == limited.chunks(dist.shape, "f8")
    assert shape_in(explained(dist, chunks=(7, 8, 9))) == (7, 8, 9)
    schema = hs.Distribution((40, 45, 90), (3,), ["block", "*", "*"])
    assert shape_in(explained(dist, chunks=schema)) == (14, 45, 90)
    with pytest.raises(hs.InvalidError, match="given as chunks has shape"):
        explained(BLOCKS, chunks=schema)


def test_many_chunks_lie_in_directories() -> None:
    for chunk, key in ((2, "x/c.999"), (1, "x/c/1999")):
        memory = hs.MemoryStore()
        with hs.open(memory, "w") as store:
            store.write("x", np.arange(2000.0), chunks=(chunk,), shards=False)
        assert key in memory.files()


def test_a_request_as_large_as_the_array_is_written_in_parts() -> None:
    whole = hs.TypicalRequest((64, 256, 256))
    dist = hs.Distribution((64, 256, 256), (2, 2, 2), ["block"] * 3)
    assert whole.chunks(dist.shape, "f8") == (64, 256, 256)
    told = explained(dist, chunks=whole)
    assert "chunks of 'v0' are " in told.text
    assert math.prod(shape_in(told)) <= 64 * 256 * 256 / 4


def test_arrays_of_one_call_are_shaped_by_their_kinds(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    line = hs.Distribution.block((64,), 4)

    def rank(comm: hs.ThreadComm) -> None:
        part = line.slices(comm)[0]
        with hs.open(path, "w", comm=comm, durable=False) as store:
            arrays = {f"{kind}{i}": np.arange(64, dtype=kind)[part] for i in range(20) for kind in ("f8", "i2")}
            store.write(arrays, line)
            store.append("f80", np.arange(64.0, 128.0)[part], line)

    hs.threads(4, rank)
    group = zarr.open_group(path, mode="r")
    assert np.array_equal(group["f80"][...], np.arange(128.0))
    for i in range(1, 20):
        assert np.array_equal(group[f"f8{i}"][...], np.arange(64.0))
    assert len({group[f"i2{i}"].chunks for i in range(20)}) == 1
    assert np.array_equal(group["i219"][...], np.arange(64))
