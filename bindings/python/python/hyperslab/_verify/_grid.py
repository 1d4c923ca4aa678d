"""The chunk grid of an array: which chunk a file holds, and which elements those are."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from hyperslab._findings import Box

#: Place of a chunk in the grid.
Index: TypeAlias = "tuple[int, ...]"

_NUMBER = r"(?:0|[1-9][0-9]{0,19})"


@dataclass(frozen=True)
class Grid:
    """Shapes of array and chunks, and how chunks are named."""

    shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]
    #: Whether keys begin with ``c``.
    prefixed: bool
    #: Between the numbers of a key: ``/`` or ``.``.
    separator: str

    @staticmethod
    def of(metadata: dict[str, Any]) -> Grid | None:
        """The grid of the metadata; None if it is not regular, or not valid."""
        shape = _extents(metadata.get("shape"))
        name, grid = named(metadata.get("chunk_grid"))
        chunks = _extents(grid.get("chunk_shape"))
        style, encoding = named(metadata.get("chunk_key_encoding"))
        separator = encoding.get("separator", {"default": "/", "v2": "."}.get(style))
        if name != "regular" or style not in ("default", "v2") or separator not in ("/", "."):
            return None
        if shape is None or chunks is None or len(shape) != len(chunks):
            return None
        if any(chunk == 0 and extent for chunk, extent in zip(chunks, shape, strict=True)):
            return None
        return Grid(shape, tuple(max(chunk, 1) for chunk in chunks), style == "default", separator)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """Number of chunks along each dimension."""
        return tuple(-(-extent // chunk) for extent, chunk in zip(self.shape, self.chunk_shape, strict=True))

    @cached_property
    def count(self) -> int:
        """Number of chunks."""
        return math.prod(self.extents)

    @cached_property
    def _key(self) -> re.Pattern[str]:
        separator = re.escape(self.separator)
        if not self.ndim:
            return re.compile("c" if self.prefixed else "0")
        first = "c" if self.prefixed else _NUMBER
        return re.compile(f"{first}(?:{separator}{_NUMBER}){{{self.ndim - (not self.prefixed)}}}")

    @cached_property
    def _folder(self) -> re.Pattern[str] | None:
        deepest = self.ndim - 1 - (not self.prefixed)
        if self.separator != "/" or deepest < 0:
            return None
        return re.compile(f"{'c' if self.prefixed else _NUMBER}(?:/{_NUMBER}){{0,{deepest}}}")

    def plain_bytes(self, metadata: dict[str, Any], itemsize: int) -> int | None:
        """Length of the file of a chunk that is neither encoded nor has a checksum; None of others."""
        codecs = metadata.get("codecs")
        names = [named(codec)[0] for codec in codecs] if isinstance(codecs, list) else []
        plain = names[-1:] == ["bytes"] and all(name == "transpose" for name in names[:-1])
        return math.prod(self.chunk_shape) * itemsize if plain else None

    def key(self, index: Index) -> str:
        """Path of a chunk below the array."""
        numbers = [str(number) for number in index]
        if self.prefixed:
            return self.separator.join(["c", *numbers])
        return self.separator.join(numbers) or "0"

    def index(self, key: str) -> Index | None:
        """Place of the chunk with this key, perhaps outside of the grid; None if it is no key."""
        if not self._key.fullmatch(key):
            return None
        if not self.ndim:
            return ()
        numbers = key.split(self.separator)
        return tuple(int(number) for number in numbers[int(self.prefixed) :])

    def is_folder(self, key: str) -> bool:
        """Whether chunks may lie in a directory with this path below the array."""
        return self._folder is not None and self._folder.fullmatch(key) is not None

    def holds(self, index: Index) -> bool:
        """Whether a place is in the grid."""
        return all(at < extent for at, extent in zip(index, self.extents, strict=True))

    def box(self, first: Index, last: Index) -> Box:
        """The elements of the chunks from one place to another, both included."""
        every = zip(first, last, self.chunk_shape, self.shape, strict=True)
        return tuple((low * chunk, min((high + 1) * chunk, extent)) for low, high, chunk, extent in every)


class Blocks:
    """Chunks that lie side by side and are read at once, since reading many small chunks one by one takes long.

    Each block is a box of at most `CHUNKS` chunks and about `BYTES` bytes; blocks that are not full are read chunk by
    chunk. Of each block, 64 bits say which chunks there are, so memory is far below that of a list of chunks.
    """

    CHUNKS = 64
    BYTES = 4 << 20

    def __init__(self, grid: Grid, chunk_bytes: int) -> None:
        self._grid = grid
        self._shape = [1] * grid.ndim
        room = max(1, min(self.CHUNKS, self.BYTES // max(chunk_bytes, 1)))
        for dim in reversed(range(grid.ndim)):
            self._shape[dim] = min(room, max(grid.extents[dim], 1))
            room //= self._shape[dim]
        self._present: dict[Index, int] = {}

    @property
    def single(self) -> bool:
        """Whether a block is one chunk, which can be read at once."""
        return all(extent == 1 for extent in self._shape)

    def add(self, index: Index) -> None:
        """There is a chunk."""
        block = tuple(at // extent for at, extent in zip(index, self._shape, strict=True))
        self._present[block] = self._present.get(block, 0) | 1 << self._bit(index)

    def every(self) -> Iterator[tuple[Index, Index]]:
        """First and last chunk of every block of the grid, whether there are chunks or not."""
        every = [range(0, extent, step) for extent, step in zip(self._grid.extents, self._shape, strict=True)]
        for first in itertools.product(*every):
            ends = zip(first, self._shape, self._grid.extents, strict=True)
            yield first, tuple(min(low + step, extent) - 1 for low, step, extent in ends)

    def _bit(self, index: Index) -> int:
        bit = 0
        for at, extent in zip(index, self._shape, strict=True):
            bit = bit * extent + at % extent
        return bit

    def take(self) -> Iterator[tuple[Index, Index]]:
        """First and last chunk of each box to read, in the order of the grid."""
        for block in sorted(self._present):
            present = self._present[block]
            first = tuple(at * extent for at, extent in zip(block, self._shape, strict=True))
            every = zip(first, self._shape, self._grid.extents, strict=True)
            last = tuple(min(low + extent, end) - 1 for low, extent, end in every)
            members = list(within(first, last))
            if all(present >> self._bit(index) & 1 for index in members):
                yield first, last
                continue
            for index in members:
                if present >> self._bit(index) & 1:
                    yield index, index


def within(first: Index, last: Index) -> Iterator[Index]:
    """All places from one to another, both included."""
    if not first:
        yield ()
        return
    for at in range(first[0], last[0] + 1):
        for rest in within(first[1:], last[1:]):
            yield (at, *rest)


def elements(box: Box) -> int:
    """Number of elements of a box."""
    return math.prod(high - low for low, high in box)


def named(value: Any) -> tuple[str, dict[str, Any]]:
    """Name and configuration of an extension point of Zarr, which may be written as a name alone."""
    if isinstance(value, str):
        return value, {}
    if not isinstance(value, dict):
        return "", {}
    name, configuration = value.get("name"), value.get("configuration")
    return name if isinstance(name, str) else "", configuration if isinstance(configuration, dict) else {}


def _extents(value: Any) -> tuple[int, ...] | None:
    if not isinstance(value, list) or len(value) > 1000:
        return None
    if any(not isinstance(extent, int) or isinstance(extent, bool) or extent < 0 for extent in value):
        return None
    return tuple(value)
