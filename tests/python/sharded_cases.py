"""Cells of a matrix of element types, orders, codecs and shards, each with distributions and sections from a seed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from global_arrays import Quads, Spread
from random_cases import KINDS, Random, some_section, some_spread

#: Chains of codecs of bytes, as metadata list them.
CHAINS: dict[str, list[dict[str, Any]]] = {
    "none": [],
    "crc32c": [{"name": "crc32c"}],
    "gzip": [{"name": "gzip", "configuration": {"level": 1}}],
    "zstd+crc32c": [{"name": "zstd", "configuration": {"level": 1, "checksum": False}}, {"name": "crc32c"}],
    "blosc-lz4": [{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle"}}],
    "blosc-zstd+crc32c": [
        {"name": "blosc", "configuration": {"cname": "zstd", "clevel": 3, "shuffle": "bitshuffle"}},
        {"name": "crc32c"},
    ],
    "blosc-lz+gzip": [
        {"name": "blosc", "configuration": {"cname": "blosclz", "clevel": 9, "shuffle": "noshuffle"}},
        {"name": "gzip", "configuration": {"level": 1}},
    ],
    "blosc-zlib": [{"name": "blosc", "configuration": {"cname": "zlib", "clevel": 1, "shuffle": "shuffle"}}],
}
#: Element type, order of dimensions and of bytes, chain, and what chunks lie in.
MATRIX = list(product(KINDS, ("C", "F"), ("little", "big"), CHAINS, ("chunks", "shards", "shards, index first")))


@dataclass(frozen=True)
class Cell:
    """An array: what it is, and who writes and reads which parts of it."""

    number: int
    kind: str
    order: str
    endian: str
    chain: str
    lies_in: str
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    #: How many chunks a shard has along each dimension.
    counts: tuple[int, ...]
    wrote: Spread
    reads: Spread
    section: Quads
    #: Whether it is one of Zarr v2, where another program writes it.
    is_v2: bool

    @property
    def name(self) -> str:
        """Its name; some lie in groups."""
        return f"g{self.number % 3}/h/a{self.number}" if self.number % 3 else f"a{self.number}"

    @property
    def shards(self) -> tuple[int, ...] | None:
        """Shape of a shard, if there are any."""
        if self.lies_in == "chunks":
            return None
        return tuple(chunk * count for chunk, count in zip(self.chunks, self.counts, strict=True))

    @property
    def permutation(self) -> list[int]:
        """Dimensions in the order in which they are stored."""
        dims = list(range(len(self.shape)))
        return dims if self.order == "C" else dims[::-1]

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes that tell the array from others."""
        return {"number": self.number, "words": ["ä", None], "deep": {"chain": self.chain}}

    def codecs(self) -> list[dict[str, Any]]:
        """All of its codecs, but for those of shards."""
        first: list[dict[str, Any]] = [{"name": "bytes", "configuration": {"endian": self.endian}}]
        if self.order == "F":
            first.insert(0, {"name": "transpose", "configuration": {"order": self.permutation}})
        return first + CHAINS[self.chain]

    def __str__(self) -> str:
        """One line that tells all."""
        return ", ".join(f"{name}={value!r}" for name, value in vars(self).items())


def cells(seed: int, ranks: int, part: int, parts: int) -> list[tuple[Cell, Random]]:
    """Each so-manieth cell of the matrix, in an order that the seed says, with the random numbers of its values."""
    numbers = np.random.default_rng(seed).permutation(len(MATRIX))[part::parts]
    return [some_cell(seed, int(number), ranks) for number in numbers]


def some_cell(seed: int, number: int, ranks: int) -> tuple[Cell, Random]:
    """A cell of the matrix."""
    random = np.random.default_rng([seed, number, ranks])
    ndim = int(random.integers(1, 4))
    shape = tuple(int(extent) for extent in random.integers(1, {1: 60, 2: 17, 3: 9}[ndim], ndim))
    chunks = tuple(int(random.integers(1, max(extent // 2, 1) + 2)) for extent in shape)
    counts = tuple(int(count) for count in random.integers(1, 4, ndim))
    spreads = some_spread(random, shape, ranks), some_spread(random, shape, ranks)
    section = some_section(random, shape)
    is_v2 = bool(random.random() < 0.25)
    return Cell(number, *MATRIX[number], shape, chunks, counts, *spreads, section, is_v2), random
