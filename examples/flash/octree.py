"""The adaptive mesh: an octree of blocks that is fine where a front passes, in the order of Morton's curve.

Rules as in PARAMESH, the mesh of FLASH: a block is refined into 8 children, neighbouring leaves (by face, edge or
corner) differ by at most one level, and parents stay in the list of blocks, before their children. Every rank grows
the same tree by itself: nothing depends on chance or on the number of ranks.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Cell: TypeAlias = tuple[int, int, int, int]
"""Level, counted from 1, and place along x, y and z among the blocks of that level."""

LEAF, PARENT, ANCESTOR = 1, 2, 3
"""Node types: without children; with at least one child that is a leaf; with grandchildren only."""
NO_BLOCK, OUTSIDE = -1, -20
"""In the place of a neighbour's number: nothing of the same level is there; the domain ends there."""
WORK = {LEAF: 2, PARENT: 1, ANCESTOR: 0}
"""What a block of each type costs in a time step, relative to others."""

CENTRE, RADIUS = (0.53, 0.47, 0.51), 0.41
"""The front is a sphere, in units of a block of level 1."""
FACES = ((-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1))
AROUND = [step for step in itertools.product((-1, 0, 1), repeat=3) if any(step)]


@dataclass(frozen=True)
class Tree:
    """All blocks in their order, as the arrays that FLASH stores; block number b has row b - 1."""

    roots: int
    """Blocks of level 1, in a row along x."""
    refine_level: NDArray[np.int32]
    node_type: NDArray[np.int32]
    gid: NDArray[np.int32]
    """Numbers of 6 neighbours of the same level (-x, +x, -y, +y, -z, +z), the parent and 8 children, shape (n, 15)."""
    place: NDArray[np.int64]
    """Place among the blocks of the same level, along x, y and z, shape (n, 3)."""

    def __len__(self) -> int:
        """Return the number of blocks."""
        return len(self.refine_level)

    @property
    def block_size(self) -> NDArray[np.float64]:
        """Edges of the blocks along x, y and z, shape (n, 3); a power of one half, so all of this is exact."""
        return np.repeat(0.5 ** (self.refine_level[:, None] - 1.0), 3, axis=1)

    @property
    def bounding_box(self) -> NDArray[np.float64]:
        """Lower and upper bounds along x, y and z, shape (n, 3, 2)."""
        return np.stack([self.place * self.block_size, (self.place + 1) * self.block_size], axis=2)

    @property
    def coordinates(self) -> NDArray[np.float64]:
        """Centres of the blocks, shape (n, 3)."""
        return (self.place + 0.5) * self.block_size

    @property
    def work(self) -> NDArray[np.int64]:
        """What each block costs."""
        return work(self.node_type)


def work(node_type: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return what blocks of these types cost."""
    return np.array([0, WORK[LEAF], WORK[PARENT], WORK[ANCESTOR]])[node_type]


def equal_work(costs: NDArray[np.int64], ranks: int) -> list[int]:
    """Cut the list of blocks into one piece for each rank, of equal work as far as blocks allow; return their lengths.

    A block goes to the rank in whose share the middle of its work lies.
    """
    twice = 2 * np.cumsum(costs) - costs
    owners = np.minimum(twice * ranks // max(2 * int(costs.sum()), 1), ranks - 1)
    return [int(count) for count in np.bincount(owners, minlength=ranks)]


def grow(total: int) -> Tree:
    """Return a tree of exactly this many blocks.

    A refinement adds 8 blocks, so the number of blocks of level 1, from 1 to 8, makes up for the rest. Leaves on the
    front are refined, the coarse ones first; what would break the rule about neighbours is refined before.
    """
    if total < 1:
        message = f"a tree has at least one block, not {total}"
        raise ValueError(message)
    roots = (total - 1) % 8 + 1
    cells: dict[Cell, bool] = {(1, x, 0, 0): True for x in range(roots)}
    fronts, calm = list(cells), list(cells)

    while len(cells) < total:
        # The lowest leaf has no coarser neighbour, so it alone can always be refined.
        chosen = _needed(cells, roots, _lowest(cells, fronts))
        if len(cells) + 8 * len(chosen) > total:
            chosen = [_lowest(cells, calm)]
        for cell in chosen:
            cells[cell] = False
            for child in _children(cell):
                cells[child] = True
                heapq.heappush(calm, child)
                if _on_front(child, roots):
                    heapq.heappush(fronts, child)
    return _arrays(cells, roots)


def _lowest(cells: dict[Cell, bool], heap: list[Cell]) -> Cell:
    """Return the first of a heap that is still a leaf."""
    while not cells[heap[0]]:
        heapq.heappop(heap)
    return heap[0]


def _children(cell: Cell) -> list[Cell]:
    level, x, y, z = cell
    return [(level + 1, 2 * x + i, 2 * y + j, 2 * z + k) for k in (0, 1) for j in (0, 1) for i in (0, 1)]


def _parent(cell: Cell) -> Cell:
    level, x, y, z = cell
    return (level - 1, x // 2, y // 2, z // 2)


def _beside(cell: Cell, step: Sequence[int], roots: int) -> Cell | None:
    """Return the neighbour of the same level, whether or not it is a block, or None outside of the domain."""
    level, *place = cell
    x, y, z = (at + by for at, by in zip(place, step, strict=True))
    edge = 1 << (level - 1)
    return (level, x, y, z) if 0 <= x < roots * edge and 0 <= y < edge and 0 <= z < edge else None


def _needed(cells: dict[Cell, bool], roots: int, cell: Cell) -> list[Cell]:
    """Return what must be refined together with a leaf, in an order in which the rule is never broken."""
    order: list[Cell] = []
    waiting = [cell]
    while waiting:
        one = waiting[-1]
        around = (_beside(one, step, roots) for step in AROUND)
        coarse = {_parent(other) for other in around if other is not None and other not in cells}
        missing = sorted(coarse.difference(order))
        if missing:
            waiting += missing
            continue
        waiting.pop()
        if one not in order:
            order.append(one)
    return order


def _on_front(cell: Cell, roots: int) -> bool:
    """Tell whether the front passes through a block: some of it is nearer to the centre than it, and some farther."""
    level, *place = cell
    size = 0.5 ** (level - 1)
    near = far = 0.0
    for axis, at in enumerate(place):
        middle = CENTRE[axis] + (roots // 2 if axis == 0 else 0)
        low, high = at * size - middle, (at + 1) * size - middle
        near += max(low, -high, 0.0) ** 2
        far += max(-low, high) ** 2
    return near <= RADIUS * RADIUS <= far


def _curve(cell: Cell, deepest: int) -> tuple[int, int, int]:
    """Return what orders blocks along Morton's curve, a parent before its children."""
    level, x, y, z = cell
    bits = deepest - 1
    x, y, z = (at << (deepest - level) for at in (x, y, z))
    root, x = x >> bits, x & ((1 << bits) - 1)
    code = 0
    for bit in reversed(range(bits)):
        code = code << 3 | (z >> bit & 1) << 2 | (y >> bit & 1) << 1 | (x >> bit & 1)
    return (root, code, level)


def _arrays(cells: dict[Cell, bool], roots: int) -> Tree:
    """Number the blocks and write down how they hang together."""
    deepest = max(cell[0] for cell in cells)
    order = sorted(cells, key=lambda cell: _curve(cell, deepest))
    number = {cell: i + 1 for i, cell in enumerate(order)}
    gid = np.full((len(order), 15), NO_BLOCK, np.int32)
    kinds = np.full(len(order), LEAF, np.int32)
    for row, cell in enumerate(order):
        for face, step in enumerate(FACES):
            beside = _beside(cell, step, roots)
            gid[row, face] = OUTSIDE if beside is None else number.get(beside, NO_BLOCK)
        gid[row, 6] = number.get(_parent(cell), NO_BLOCK)
        if not cells[cell]:
            children = _children(cell)
            gid[row, 7:] = [number[child] for child in children]
            kinds[row] = PARENT if any(cells[child] for child in children) else ANCESTOR
    levels = np.array([cell[0] for cell in order], np.int32)
    return Tree(roots, levels, kinds, gid, np.array([cell[1:] for cell in order], np.int64))
