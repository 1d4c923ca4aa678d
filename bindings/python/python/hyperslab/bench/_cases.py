"""A case of the sweep: what is moved, between which memory and which storage. Plain data, which travels as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

import hyperslab as hs

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["UNKNOWNS", "Case", "Direction", "Holding", "Memory", "Spread", "Target", "holding"]

Holding: TypeAlias = "hs.Distribution | hs.Boxes"
Target: TypeAlias = Literal["raw", "zarr"]
Direction: TypeAlias = Literal["write", "read"]
#: How the elements of a rank lie in its memory: one after another; with halo around them; or, as in FLASH, as
#: one of the unknowns of each zone, which lie beside each other, of blocks with halo.
Memory: TypeAlias = Literal["plain", "with_halo", "interleaved"]

#: Unknowns of a zone in FLASH.
UNKNOWNS = 24


@dataclass(frozen=True)
class Spread:
    """How ranks hold the elements."""

    #: Logical grid of ranks.
    mesh: tuple[int, ...]
    #: How each dimension is spread, as `hyperslab.Distribution` takes it.
    dims: tuple[str | tuple[int, ...], ...]
    #: Edge of cubic boxes that ranks hold along Morton's curve, in place of a distribution; 0 for none.
    box: int = 0

    def __str__(self) -> str:
        if self.box:
            return f"boxes of {self.box}"
        dims = ["uneven" if isinstance(dim, tuple) else dim.upper() for dim in self.dims]
        return f"({','.join(dims)}) on {'x'.join(map(str, self.mesh))}"


@dataclass(frozen=True)
class Case:
    """One transfer that is measured.

    A number of arrays of one shape move in one collective call, whole or a section of each.
    """

    number: int
    #: Which part of the sweep it stands for.
    family: str
    ranks: int
    target: Target
    direction: Direction
    #: Whether writes are on disk when they are over (fsync).
    durable: bool
    #: Number of arrays.
    arrays: int
    #: Shape of each in storage.
    shape: tuple[int, ...]
    #: Type of the elements in storage and in memory.
    dtype: str
    memory_dtype: str
    #: How ranks hold what moves: the arrays, or their section.
    spread: Spread
    #: For reads: how the ranks held the arrays that wrote them, where that was different.
    written: Spread | None = None
    #: For Zarr: shape of the chunks, or None for natural ones.
    chunks: tuple[int, ...] | None = None
    #: Start, stop and step along each dimension of the part that moves; None for all.
    section: tuple[tuple[int, int, int], ...] | None = None
    memory: Memory = "plain"
    #: For raw files: order of the elements, and bytes before the first array [B].
    order: Literal["C", "F"] = "C"
    header_bytes: int = 0

    @property
    def part(self) -> tuple[int, ...]:
        """Shape of what moves of each array."""
        if self.section is None:
            return self.shape
        return tuple(-(-(stop - start) // step) for start, stop, step in self.section)

    @property
    def bytes(self) -> int:
        """What moves [B of storage]."""
        return self.arrays * math.prod(self.part) * np.dtype(self.dtype).itemsize

    @property
    def stored_bytes(self) -> int:
        """What lies in storage [B]."""
        return self.arrays * math.prod(self.shape) * np.dtype(self.dtype).itemsize

    @property
    def names(self) -> list[str]:
        """Names of the arrays."""
        return [f"a{number:04d}" for number in range(self.arrays)]

    @property
    def mode(self) -> str:
        """Direction and durability, for people."""
        return "read" if self.direction == "read" else "write, fsync" if self.durable else "write"

    @property
    def run_bytes(self) -> int:
        """Length of the contiguous runs of a raw file that a rank holds [B]."""
        run = np.dtype(self.dtype).itemsize
        held = holding(self.spread, self.part, 0)
        for dim in range(len(self.shape)) if self.order == "F" else reversed(range(len(self.shape))):
            length, extent = _longest(held, dim), self.shape[dim]
            if self.section is not None and self.section[dim][2] > 1:
                return run
            run *= length
            if length < extent:
                break
        return run

    @property
    def runs(self) -> int:
        """About how many such runs there are in all."""
        return self.bytes // max(1, self.run_bytes)

    @property
    def files(self) -> int:
        """About how many files are made."""
        if self.target == "raw":
            return 1
        chunks = self.ranks if self.chunks is None else 1
        if self.chunks is not None:
            chunks = math.prod(-(-extent // size) for extent, size in zip(self.shape, self.chunks, strict=True))
        return self.arrays * (chunks + 1)

    def __str__(self) -> str:
        """Everything that matters, in one line."""
        kind = self.dtype if self.dtype == self.memory_dtype else f"{self.memory_dtype}->{self.dtype}"
        parts = [f"{self.arrays} x " * (self.arrays > 1) + f"{kind} {'x'.join(map(str, self.shape))}", str(self.spread)]
        if self.section is not None:
            parts.append(f"[{', '.join(':'.join(map(str, part)) for part in self.section)}]")
        if self.written is not None:
            parts.append(f"written {self.written}")
        chunks = "natural chunks" if self.chunks is None else f"chunks {'x'.join(map(str, self.chunks))}"
        parts.append(f"raw {self.order}" if self.target == "raw" else f"Zarr, {chunks}")
        return ", ".join([*parts, self.memory] if self.memory != "plain" else parts)

    def to_json(self) -> dict[str, Any]:
        """As data."""
        return asdict(self)

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Case:
        """From data."""
        fields = {name: _tuples(value) for name, value in data.items()}
        for name in ("spread", "written"):
            if data[name] is not None:
                fields[name] = Spread(**{key: _tuples(value) for key, value in data[name].items()})
        return cls(**fields)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(part) for part in value) if isinstance(value, (list, tuple)) else value


def _longest(held: Holding, dim: int) -> int:
    """Elements beside each other along a dimension that rank 0 holds."""
    if isinstance(held, hs.Boxes):
        return max((shape[dim] for shape in held.local_shapes), default=0)
    runs = [length * (count if length == step else 1) for _, length, step, count in held._core.runs(0)[dim]]
    return max(runs, default=1)


def holding(spread: Spread, shape: Sequence[int], rank: int) -> Holding:
    """What the package is told about who holds what; of boxes, each rank tells its own."""
    if not spread.box:
        return hs.Distribution(shape, spread.mesh, spread.dims)
    places = _morton(tuple(extent // spread.box for extent in shape))
    ends = np.cumsum([0, *(80 + number % 3 for number in range(spread.mesh[0]))])
    first, last = (int(len(places) * int(ends[number]) // int(ends[-1])) for number in (rank, rank + 1))
    mine: NDArray[np.int64] = places[first:last] * spread.box
    return hs.Boxes(shape, [(tuple(low), tuple(low + spread.box)) for low in mine])


@cache
def _morton(grid: tuple[int, ...]) -> NDArray[np.int64]:
    """Places of the blocks of a grid in the order of Morton's curve, shape (blocks, ndim)."""
    places = np.stack(np.unravel_index(np.arange(math.prod(grid)), grid), axis=1).astype(np.int64)
    keys = np.zeros(len(places), np.int64)
    for bit in range(max(grid).bit_length()):
        for dim in range(len(grid)):
            keys |= ((places[:, dim] >> bit) & 1) << (bit * len(grid) + len(grid) - 1 - dim)
    return places[np.argsort(keys, kind="stable")]
