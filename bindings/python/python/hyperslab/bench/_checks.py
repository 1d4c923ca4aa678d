"""Whether storage holds what should be there, found without the code that wrote it."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

__all__ = ["Expected", "check_chunks", "check_file"]

#: The elements at some places: of global indices along each dimension, which broadcast with each other.
Expected: TypeAlias = "Callable[[Sequence[NDArray[np.int64]]], NDArray[Any]]"

#: Elements that are compared at a time, and of large arrays in each place that is looked at.
WINDOW = 1 << 16


def _chosen(count: int, most: int | None) -> Sequence[int]:
    """All of some parts, or the first, the last and others between them, the same ones each time."""
    if most is None or count <= most:
        return range(count)
    return sorted({0, count - 1, *random.Random(count).sample(range(count), max(0, most - 2))})


def _windows(shape: Sequence[int], most: int | None) -> Iterator[tuple[int, int]]:
    elements = math.prod(shape)
    for number in _chosen(-(-elements // WINDOW), most):
        yield number * WINDOW, min(elements, (number + 1) * WINDOW)


def check_file(
    path: Path,
    shape: Sequence[int],
    dtype: DTypeLike,
    expected: Expected,
    *,
    order: str = "C",
    offset: int = 0,
    windows: int | None = None,
) -> None:
    """Whether an array in a file holds what is expected.

    Parameters
    ----------
    path : Path
        The file.
    shape, dtype : optional
        Global shape and type of the elements in it.
    expected : callable
        Elements at some global indices.
    order : {"C", "F"}
        Order of the elements.
    offset : int
        Where the array begins [B].
    windows : int, optional
        In how many places to look; everywhere by default.
    """
    kind = np.dtype(dtype)
    with path.open("rb") as file:
        for start, stop in _windows(shape, windows):
            file.seek(offset + start * kind.itemsize)
            found = np.fromfile(file, kind, stop - start)
            places = np.unravel_index(np.arange(start, stop), tuple(shape), order="F" if order == "F" else "C")
            wanted = expected(places)
            assert np.array_equal(found, wanted), f"{path}: elements {start} to {stop} are not what was written"


def _stored_chunk(path: Path, metadata: Mapping[str, Any], chunk: Sequence[int]) -> NDArray[Any]:
    """What an uncompressed chunk holds, or a shard of such chunks, as the sharding codec of Zarr v3 has it."""
    kind, codec = np.dtype(metadata["data_type"]), metadata["codecs"][0]
    if codec["name"] != "sharding_indexed":
        return np.fromfile(path, kind, math.prod(chunk)).reshape(chunk)
    inner = codec["configuration"]["chunk_shape"]
    grid = [extent // size for extent, size in zip(chunk, inner, strict=True)]
    bytes_of_shard, found = path.read_bytes(), np.zeros(chunk, kind)
    # An address and a length for each chunk, and a checksum behind them.
    index = np.frombuffer(bytes_of_shard, "<u8", 2 * math.prod(grid), len(bytes_of_shard) - 4 - 16 * math.prod(grid))
    for number, (address, length) in enumerate(index.reshape(-1, 2).tolist()):
        if (address, length) == (2**64 - 1, 2**64 - 1):
            continue
        places = np.unravel_index(number, grid)
        part = tuple(slice(int(at) * size, (int(at) + 1) * size) for at, size in zip(places, inner, strict=True))
        found[part] = np.frombuffer(bytes_of_shard, kind, math.prod(inner), address).reshape(inner)
    return found


def check_chunks(path: Path, shape: Sequence[int], expected: Expected, *, chunks: int | None = None) -> None:
    """Whether the chunks of an uncompressed Zarr array, which may lie in shards, hold what is expected.

    Parameters
    ----------
    path : Path
        The array's directory.
    shape : sequence of int
        Global shape.
    expected : callable
        Elements at some global indices.
    chunks : int, optional
        How many of the chunks to look at; all by default.
    """
    metadata = json.loads((path / "zarr.json").read_text())
    chunk = metadata["chunk_grid"]["configuration"]["chunk_shape"]
    separator = metadata["chunk_key_encoding"]["configuration"]["separator"]
    assert metadata["shape"] == list(shape), f"{path} has shape {metadata['shape']}"
    grid = [-(-extent // size) for extent, size in zip(shape, chunk, strict=True)]
    for number in _chosen(math.prod(grid), chunks):
        at = [int(place) for place in np.unravel_index(number, grid)]
        key = path / separator.join(["c", *map(str, at)])
        found = _stored_chunk(key, metadata, chunk)
        starts = [place * size for place, size in zip(at, chunk, strict=True)]
        inside = [min(size, extent - start) for start, size, extent in zip(starts, chunk, shape, strict=True)]
        axes = np.ix_(*(np.arange(start, start + size) for start, size in zip(starts, inside, strict=True)))
        wanted = expected(axes)
        assert np.array_equal(found[tuple(slice(size) for size in inside)], wanted), f"{key} is not what was written"
