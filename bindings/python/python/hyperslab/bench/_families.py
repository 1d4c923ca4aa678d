"""The families of the sweep: each draws a case of its kind, of about as many bytes as it is told."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hyperslab.bench._cases import UNKNOWNS, Case, Direction, Spread

__all__ = ["FAMILIES", "LARGEST_BYTES", "MOST_RUNS", "SMALLEST_BYTES", "Draw"]

SMALLEST_BYTES = 64 << 10
LARGEST_BYTES = 1 << 30
#: Most contiguous runs that a case has: with more of them, all that is measured is loops over elements.
MOST_RUNS = 1 << 22
#: Most files that a case makes; making and removing them would take all the time.
MOST_FILES = 2048
#: Most blocks of FLASH. In memory a block with its halo is eight times as large as in a checkpoint.
MOST_BLOCKS = 1400
#: Arrays of one dimension are not larger: checking them needs numbers of 8 B for each element.
LARGEST_LINE_BYTES = 128 << 20

#: Bytes of a chunk, smallest and largest, where chunks are given.
CHUNK_BYTES = (128 << 10, 8 << 20)
DTYPES = ("f8", "f8", "f8", "f4", "f4", "i4", "i2", "c16", "u1")


@dataclass(frozen=True)
class Draw:
    """What is decided about a case before its family draws the rest."""

    chance: random.Random
    number: int
    family: str
    ranks: int
    direction: Direction
    durable: bool
    bytes: int

    def case(self, **fields: Any) -> Case:
        """The case with all other fields."""
        kind = fields.get("dtype", "f8")
        fixed = {"arrays": 1, "dtype": kind, "memory_dtype": kind, "target": "raw"}
        about = {name: getattr(self, name) for name in ("number", "family", "ranks", "direction", "durable")}
        return Case(**(about | fixed | fields))

    def dtype(self, ndim: int) -> str:
        """A type of elements. Those of one dimension are not short: there would be too many."""
        return self.chance.choice(DTYPES[:6] if ndim == 1 else DTYPES)

    def shape(self, ndim: int, elements: float) -> tuple[int, ...]:
        """A shape of about so many elements, most extents odd."""
        if ndim == 1:
            return (max(16, int(elements) | 1),)
        weights = [self.chance.uniform(0.6, 1.6) for _ in range(ndim)]
        extents = [max(3, round(elements ** (weight / sum(weights)))) for weight in weights]
        return tuple(extent | 1 if self.chance.random() < 0.7 else extent for extent in extents)

    def mesh(self, dims: int) -> tuple[int, ...]:
        """A mesh of this many dimensions, of which some may have one rank."""
        extents = [1] * dims
        for factor in _factors(self.ranks):
            extents[self.chance.randrange(dims)] *= factor
        return tuple(extents)

    def spread(self, kinds: Sequence[str | tuple[int, ...]]) -> Spread:
        """A spread of these kinds over all ranks."""
        return Spread(self.mesh(sum(kind != "*" for kind in kinds)), tuple(kinds))

    def blocks(self, ndim: int) -> Spread:
        """BLOCK in all or in some dimensions."""
        kinds = ["block"] * ndim
        if ndim > 1 and self.chance.random() < 0.5:
            for dim in self.chance.sample(range(ndim), self.chance.randint(1, ndim - 1)):
                kinds[dim] = "*"
        return self.spread(kinds)

    def cyclic(self, ndim: int) -> Spread:
        """CYCLIC in at least one dimension, short or long runs of elements, and other kinds in the rest."""
        kinds = [self.chance.choice(["block", "*", "cyclic", self._long()]) for _ in range(ndim)]
        kinds[self.chance.randrange(ndim)] = self.chance.choice(["cyclic", self._long()])
        return self.spread(kinds)

    def _long(self) -> str:
        return f"cyclic({round(2 ** self.chance.uniform(1, 10))})"

    def uneven(self, shape: Sequence[int]) -> Spread:
        """Blocks of sizes of their own along one dimension, with BLOCK or nothing along the others."""
        dim = max(range(len(shape)), key=lambda number: shape[number])
        kinds: list[str | tuple[int, ...]] = [self.chance.choice(["block", "*"]) for _ in shape]
        kinds[dim] = "block"
        mesh = self.spread(kinds).mesh
        parts = mesh[sum(kind != "*" for kind in kinds[:dim])]
        weights = [self.chance.uniform(0.2, 2) for _ in range(parts)]
        ends = [round(shape[dim] * sum(weights[:part]) / sum(weights)) for part in range(parts + 1)]
        kinds[dim] = tuple(ends[part + 1] - ends[part] for part in range(parts))
        return Spread(mesh, tuple(kinds))

    def chunks(self, shape: Sequence[int], dtype: str, arrays: int = 1) -> tuple[int, ...]:
        """Chunks whose bounds are not those of the ranks."""
        size, total = np.dtype(dtype).itemsize, arrays * math.prod(shape) * np.dtype(dtype).itemsize
        least = max(CHUNK_BYTES[0], total // MOST_FILES)
        wanted = 2 ** self.chance.uniform(math.log2(least), math.log2(max(CHUNK_BYTES[1], least)))
        chunk = list(shape)
        while math.prod(chunk) * size > wanted:
            # Any dimension, the long ones first.
            dim = self.chance.choices(range(len(chunk)), [extent - 1 for extent in chunk])[0]
            chunk[dim] = max(1, round(chunk[dim] / self.chance.uniform(1.5, 3)))
        return tuple(chunk)

    def store(self, shape: Sequence[int], dtype: str, arrays: int = 1) -> dict[str, Any]:
        """A raw file, Zarr with natural chunks, or Zarr with given chunks."""
        target = self.chance.choice(("raw", "natural", "given"))
        if target == "raw":
            return {"target": "raw"}
        natural = target == "natural" and arrays * (self.ranks + 1) <= 2 * MOST_FILES
        return {"target": "zarr", "chunks": None if natural else self.chunks(shape, dtype, arrays)}


def _factors(number: int) -> list[int]:
    factors, divisor = [], 2
    while number > 1:
        while number % divisor == 0:
            factors.append(divisor)
            number //= divisor
        divisor += 1
    return factors


def _array(draw: Draw, *, least_ndim: int = 1) -> tuple[tuple[int, ...], str]:
    """Shape and type of one array of all bytes."""
    ndim = draw.chance.randint(least_ndim, 4)
    dtype = draw.dtype(ndim)
    size = min(draw.bytes, LARGEST_LINE_BYTES) if ndim == 1 else draw.bytes
    return draw.shape(ndim, size / np.dtype(dtype).itemsize), dtype


def _whole_raw(draw: Draw) -> Case:
    shape, dtype = _array(draw)
    return draw.case(shape=shape, dtype=dtype, spread=draw.blocks(len(shape)))


def _whole_natural(draw: Draw) -> Case:
    shape, dtype = _array(draw)
    return draw.case(shape=shape, dtype=dtype, target="zarr", spread=draw.blocks(len(shape)))


def _nonaligned(draw: Draw) -> Case:
    shape, dtype = _array(draw)
    chunks = draw.chunks(shape, dtype)
    return draw.case(shape=shape, dtype=dtype, target="zarr", chunks=chunks, spread=draw.blocks(len(shape)))


def _cyclic(draw: Draw) -> Case:
    shape, dtype = _array(draw)
    # Natural chunks of CYCLIC would be as small as its runs.
    stored = {"target": "zarr", "chunks": draw.chunks(shape, dtype)} if draw.chance.random() < 0.4 else {}
    return draw.case(shape=shape, dtype=dtype, spread=draw.cyclic(len(shape)), **stored)


def _uneven(draw: Draw) -> Case:
    shape, dtype = _array(draw)
    return draw.case(shape=shape, dtype=dtype, spread=draw.uneven(shape), **draw.store(shape, dtype))


def _section(draw: Draw) -> Case:
    shape, dtype = _array(draw)
    section = []
    for extent in shape:
        start = draw.chance.randint(0, extent // 3)
        stop = draw.chance.randint(extent - extent // 3, extent)
        section.append((start, stop, draw.chance.choice((1, 1, 1, 2))))
    # The arrays are there before, written by BLOCK; only the section moves in a distribution of its own.
    written = draw.spread(["block"] * len(shape))
    return draw.case(
        shape=shape,
        dtype=dtype,
        spread=draw.blocks(len(shape)),
        written=written,
        section=tuple(section),
        **draw.store(shape, dtype),
    )


def _another_distribution(draw: Draw) -> Case:
    shape, dtype = _array(draw, least_ndim=2)
    written = draw.blocks(len(shape))
    spread = draw.chance.choice([draw.blocks(len(shape)), draw.cyclic(len(shape)), draw.uneven(shape)])
    store = draw.store(shape, dtype)
    return draw.case(shape=shape, dtype=dtype, spread=spread, written=written, **(store | {"direction": "read"}))


def _many_arrays(draw: Draw) -> Case:
    arrays = round(2 ** draw.chance.uniform(6, 10))
    ndim, dtype = draw.chance.randint(1, 3), draw.chance.choice(("f8", "f4", "i4"))
    total = min(draw.bytes, LARGEST_BYTES // 4)
    shape = draw.shape(ndim, max(16.0, total / arrays / np.dtype(dtype).itemsize))
    return draw.case(
        arrays=arrays, shape=shape, dtype=dtype, spread=draw.blocks(ndim), **draw.store(shape, dtype, arrays)
    )


def _flash(draw: Draw) -> Case:
    """A checkpoint, a plotfile, or the blocks of one level as boxes of arrays (see examples/flash)."""
    kind = draw.chance.choice(("checkpoint raw", "checkpoint zarr", "plotfile", "level"))
    arrays = 4 if kind in ("plotfile", "level") else UNKNOWNS
    dtype = "f4" if kind == "plotfile" else "f8"
    edge, size = 8, np.dtype(dtype).itemsize
    blocks = min(MOST_BLOCKS, max(draw.ranks, draw.bytes // (arrays * edge**3 * size)))
    common: dict[str, Any] = {"arrays": arrays, "dtype": dtype, "memory_dtype": "f8", "memory": "interleaved"}
    if kind == "level":
        side = max(2, round(blocks ** (1 / 3)))
        spread = Spread((draw.ranks,), (), box=edge)
        return draw.case(shape=(side * edge,) * 3, spread=spread, target="zarr", chunks=(4 * edge,) * 3, **common)
    each = [80 + rank % 3 for rank in range(draw.ranks)]
    ends = [blocks * sum(each[:rank]) // sum(each) for rank in range(draw.ranks + 1)]
    counts = tuple(ends[rank + 1] - ends[rank] for rank in range(draw.ranks))
    spread = Spread((draw.ranks,), (counts, "*", "*", "*"))
    zarr = {"target": "zarr", "chunks": (32, edge, edge, edge)} if kind == "checkpoint zarr" else {"header_bytes": 80}
    return draw.case(shape=(blocks, edge, edge, edge), spread=spread, **common, **zarr)


def _jeans(draw: Draw) -> Case:
    """Six reals in single precision, bytes to look at, or the exact state (see examples/jeans)."""
    kind = draw.chance.choice(("reals", "shades", "step"))
    arrays, dtype = {"reals": (6, "f4"), "shades": (1, "u1"), "step": (6, "f8")}[kind]
    side = max(8, round((min(draw.bytes, LARGEST_BYTES // 2) / arrays / np.dtype(dtype).itemsize) ** (1 / 3)))
    spread = draw.spread(["block"] * 3)
    shape = (side, side, side)
    if kind == "step":
        return draw.case(arrays=6, shape=shape, dtype="f8", spread=spread, target="zarr", memory="with_halo")
    fields: dict[str, Any] = {"order": "F", "header_bytes": 24, "arrays": arrays, "dtype": dtype}
    if kind == "reals":
        fields |= {"memory_dtype": "f8", "memory": "with_halo"}
    return draw.case(shape=shape, spread=spread, **fields)


#: Each family by its name.
FAMILIES: dict[str, Callable[[Draw], Case]] = {
    "whole, raw": _whole_raw,
    "whole, natural chunks": _whole_natural,
    "whole, nonaligned chunks": _nonaligned,
    "cyclic": _cyclic,
    "uneven": _uneven,
    "section": _section,
    "another distribution": _another_distribution,
    "many arrays": _many_arrays,
    "FLASH": _flash,
    "Jeans": _jeans,
}
