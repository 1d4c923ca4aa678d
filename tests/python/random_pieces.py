"""Random pieces, from a seed, alike on all ranks: boxes, runs and element maps, and the elements that they hold."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import hyperslab as hs
import numpy as np
from numpy.typing import NDArray

Random = np.random.Generator
Box = tuple[slice, ...]
#: First elements and lengths.
Runs = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class Boxed:
    """Boxes of each rank."""

    shape: tuple[int, ...]
    boxes: tuple[tuple[Box, ...], ...]
    #: Whether to say it by bounds instead of slices.
    bounds: bool

    def pieces(self, rank: int) -> hs.Boxes:
        """The same in the words of the package."""
        mine = self.boxes[rank]
        if self.bounds and self.shape:
            return hs.Boxes(self.shape, [([s.start for s in box], [s.stop for s in box]) for box in mine])
        return hs.Boxes(self.shape, mine)

    def take(self, values: NDArray[Any], rank: int) -> list[NDArray[Any]]:
        """Copies of what a rank holds of a global array, one for each local array."""
        return [values[(*box, ...)].copy() for box in self.boxes[rank]]

    def covered(self) -> NDArray[np.bool_]:
        """The elements that some rank holds."""
        mask = np.zeros(self.shape, bool)
        for box in itertools.chain(*self.boxes):
            mask[box] = True
        return mask


@dataclass(frozen=True)
class Listed:
    """Elements of each rank, by their numbers in row-major order."""

    shape: tuple[int, ...]
    runs: tuple[Runs, ...]
    #: Whether to say it element by element.
    mapped: bool

    def elements(self, rank: int) -> NDArray[np.int64]:
        """Number of each local element."""
        parts = [np.arange(first, first + length) for first, length in zip(*self.runs[rank], strict=True)]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def pieces(self, rank: int) -> hs.Runs:
        """The same in the words of the package."""
        if self.mapped:
            return hs.ElementMap(self.shape, self.elements(rank))
        return hs.Runs(self.shape, *self.runs[rank])

    def take(self, values: NDArray[Any], rank: int) -> list[NDArray[Any]]:
        """A copy of what a rank holds of a global array."""
        return [values.reshape(-1)[self.elements(rank)]]

    def covered(self) -> NDArray[np.bool_]:
        """The elements that some rank holds."""
        mask = np.zeros(int(np.prod(self.shape, dtype=int)), bool)
        for rank in range(len(self.runs)):
            mask[self.elements(rank)] = True
        return mask.reshape(self.shape)


Held = Boxed | Listed


def some_writers(random: Random, shape: tuple[int, ...], ranks: int) -> Held:
    """Pieces that do not overlap; they cover all, or leave something out, and some ranks may hold nothing."""
    idle = set(random.permutation(ranks)[: int(random.integers(0, ranks))].tolist()) if random.random() < 0.3 else set()
    busy = [rank for rank in range(ranks) if rank not in idle]
    keep = 1.0 if random.random() < 0.6 else 0.7
    kind = random.integers(4)
    if kind == 0:
        return _boxes(random, shape, ranks, busy, keep)
    if kind == 1:
        return _permutation(random, shape, ranks, busy, keep)
    return _strided(random, shape, ranks, busy) if kind == 2 else _runs(random, shape, ranks, busy, keep)


def some_readers(random: Random, shape: tuple[int, ...], ranks: int) -> Held:
    """Pieces that may overlap, on one rank and between ranks, and name an element several times."""
    if random.random() < 0.3:
        return some_writers(random, shape, ranks)
    count = int(np.prod(shape, dtype=int))
    if random.random() < 0.5:
        boxes = [[_some_box(random, shape) for _ in range(random.integers(0, 4))] for _ in range(ranks)]
        return Boxed(shape, tuple(map(tuple, boxes)), bool(random.random() < 0.5))
    runs = []
    for _ in range(ranks):
        starts = random.integers(0, count + 1, int(random.integers(0, 12)))
        runs.append((starts, np.minimum(random.integers(0, 9, starts.size), count - starts)))
    return Listed(shape, tuple(runs), bool(random.random() < 0.5))


def _some_box(random: Random, shape: tuple[int, ...]) -> Box:
    bounds = [sorted(random.integers(0, extent + 1, 2).tolist()) for extent in shape]
    return tuple(slice(low, high) for low, high in bounds)


def _boxes(random: Random, shape: tuple[int, ...], ranks: int, busy: list[int], keep: float) -> Boxed:
    """A partition by random cuts, box after box, dealt to ranks."""
    boxes: list[Box] = [tuple(slice(0, extent) for extent in shape)]
    for _ in range(int(random.integers(0, 14)) if shape else 0):
        box = boxes.pop(int(random.integers(len(boxes))))
        dim = int(random.integers(len(shape)))
        cut = int(random.integers(box[dim].start, box[dim].stop + 1))  # a box may be empty
        boxes.append((*box[:dim], slice(box[dim].start, cut), *box[dim + 1 :]))
        boxes.append((*box[:dim], slice(cut, box[dim].stop), *box[dim + 1 :]))
    dealt: list[list[Box]] = [[] for _ in range(ranks)]
    for box in boxes:
        if random.random() < keep:
            dealt[busy[int(random.integers(len(busy)))]].append(box)
    return Boxed(shape, tuple(map(tuple, dealt)), bool(random.random() < 0.5))


def _permutation(random: Random, shape: tuple[int, ...], ranks: int, busy: list[int], keep: float) -> Listed:
    """All elements in any order, cut into parts."""
    elements = random.permutation(int(np.prod(shape, dtype=int)))
    elements = elements[: int(len(elements) * keep)]
    cuts = np.sort(random.integers(0, len(elements) + 1, len(busy) - 1))
    dealt = [np.empty(0, np.int64)] * ranks
    for rank, part in zip(busy, np.split(elements, cuts), strict=True):
        dealt[rank] = part
    return Listed(shape, tuple((part, np.ones_like(part)) for part in dealt), mapped=True)


def _runs(random: Random, shape: tuple[int, ...], ranks: int, busy: list[int], keep: float) -> Listed:
    """The row-major order cut into runs, which come in any order."""
    count = int(np.prod(shape, dtype=int))
    ends = np.unique(np.concatenate((random.integers(0, count + 1, int(random.integers(1, 20))), [0, count])))
    starts, lengths = ends[:-1], np.diff(ends)
    order = random.permutation(len(starts))
    order = order[: int(np.ceil(len(order) * keep))]
    owners = np.array(busy)[random.integers(0, len(busy), len(order))]
    runs = tuple((starts[order[owners == rank]], lengths[order[owners == rank]]) for rank in range(ranks))
    return Listed(shape, runs, bool(random.random() < 0.3))


def _strided(random: Random, shape: tuple[int, ...], ranks: int, busy: list[int]) -> Listed:
    """Nested strided runs: each busy rank the same pattern, one run further on."""
    count = int(np.prod(shape, dtype=int))
    length = int(random.integers(1, 4))
    inner = length * len(busy)
    across = int(random.integers(1, 5))
    outer = inner * across + int(random.integers(0, 3))
    down = (count - inner * across) // outer + 1 if count >= inner * across else 0
    dealt: list[Runs] = [(np.empty(0, np.int64), np.empty(0, np.int64))] * ranks
    for place, rank in enumerate(busy):
        levels = [(inner, across), (outer, down)]
        starts = np.array(
            [length * place + i * inner + j * outer for j in range(down) for i in range(across)], dtype=np.int64
        )
        found = hs.Runs.strided(shape, length * place, length, levels).indices()
        assert np.array_equal(found, (starts[:, None] + np.arange(length)).ravel())
        dealt[rank] = (starts, np.full(starts.size, length))
    return Listed(shape, tuple(dealt), mapped=False)
