"""What a rank holds of a case: its arrays, and the values that tell where each element belongs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import hyperslab as hs
from hyperslab.bench._cases import UNKNOWNS, Case, Spread, holding

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["HALO", "Held", "values"]

#: Halo cells on every side.
HALO = {"plain": 0, "with_halo": 2, "interleaved": 4}
#: Odd numbers, one for each dimension, whose multiples have middle bits that look random.
MULTIPLIERS = (2654435761, 2246822519, 3266489917, 668265263)


def values(places: Sequence[NDArray[np.int64]], number: int) -> NDArray[np.uint8]:
    """Elements of an array, given by its number, at global indices, which broadcast; whole numbers up to 255.

    Rows, planes and arrays differ from their neighbours, and every type of elements holds these numbers exactly.
    """
    total = np.full((1,) * max(1, np.ndim(places[0])), 37 * number % 256, np.uint8)
    for place, multiplier in zip(places, MULTIPLIERS, strict=False):
        total = total + ((place.astype(np.uint64) * np.uint64(multiplier)) >> np.uint64(11)).astype(np.uint8)
    return total


class Held:
    """The part of a rank, in arrays as the case says that they lie in memory.

    Parameters
    ----------
    case : Case
        The case.
    spread : Spread
        How ranks hold what moves.
    rank : int
        This rank.
    section : bool
        Whether only the section is held, not the arrays.
    """

    def __init__(self, case: Case, spread: Spread, rank: int, *, section: bool = True) -> None:
        self.halo = 0 if case.memory == "interleaved" else HALO[case.memory]
        self._case, self._section = case, case.section if section else None
        self.held = holding(spread, case.part if section else case.shape, rank)
        #: For each array, the views of what is moved: one, or one for each box.
        self.inside: dict[str, list[NDArray[Any]]] = {}
        #: For each array, what the package is given.
        self.given: dict[str, Any] = {}
        self._places = self._all_places(rank)
        self._first: list[NDArray[np.uint8]] = []
        self._allocate()

    @property
    def about(self) -> dict[str, Any]:
        """What the package is told besides; what is as usual a program does not say."""
        return {"halo": self.halo} if self.halo else {}

    def _all_places(self, rank: int) -> list[tuple[NDArray[np.int64], ...]]:
        """Global indices of each part along each dimension, in the arrays of storage."""
        if isinstance(self.held, hs.Boxes):
            boxes = [self.held.slices(number) for number in range(len(self.held))]
            parts = [tuple(np.arange(one.start, one.stop) for one in box) for box in boxes]
        else:
            parts = [self.held.indices(rank)]
        triplets = self._section or [(0, 0, 1)] * len(self._case.shape)
        return [
            tuple(start + step * places for places, (start, _, step) in zip(part, triplets, strict=True))
            for part in parts
        ]

    def _allocate(self) -> None:
        shapes = [tuple(places.size for places in part) for part in self._places]
        kind = np.dtype(self._case.memory_dtype)
        if self._case.memory == "interleaved":
            self._interleave(shapes, kind)
            return
        inner = (slice(self.halo, -self.halo or None),) * len(self._case.shape)
        for name in self._case.names:
            whole = [np.zeros([extent + 2 * self.halo for extent in shape], kind) for shape in shapes]
            self.inside[name] = [array[inner] for array in whole]
            self.given[name] = whole if isinstance(self.held, hs.Boxes) else whole[0]

    def _interleave(self, shapes: Sequence[tuple[int, ...]], kind: np.dtype[Any]) -> None:
        """As FLASH has it: the unknown varies fastest, then x, y and z with halo, then the block."""
        boxes = isinstance(self.held, hs.Boxes)
        blocks, edges = (len(shapes), shapes[0] if shapes else ()) if boxes else (shapes[0][0], shapes[0][1:])
        halo = HALO["interleaved"]
        state = np.zeros((blocks, *(edge + 2 * halo for edge in edges), UNKNOWNS), kind)
        inner = [slice(halo, -halo) for _ in edges]
        for number, name in enumerate(self._case.names):
            variable = state[..., number][(slice(None), *inner)]
            self.inside[name] = list(variable) if boxes else [variable]
            self.given[name] = list(variable) if boxes else variable

    def fill(self, turn: int = 0) -> None:
        """Give each element its value, or that of an array some numbers further on."""
        for views, bases in self._with_values(turn):
            for view, base in zip(views, bases, strict=True):
                view[...] = base

    def fill_with(self, number: int) -> None:
        """Give the elements of all arrays the values of one array."""
        for views in self.inside.values():
            for view, part in zip(views, self._places, strict=True):
                view[...] = values(np.ix_(*part), number)

    def clear(self) -> None:
        """Forget what was read."""
        for views in self.inside.values():
            for view in views:
                view[...] = 0

    def is_right(self) -> bool:
        """Whether each element has its value."""
        return all(
            np.array_equal(view, base)
            for views, bases in self._with_values()
            for view, base in zip(views, bases, strict=True)
        )

    def _with_values(self, turn: int = 0) -> Any:
        # Checked again and again; arrays differ only by a number that is added.
        self._first = self._first or [values(np.ix_(*part), 0) for part in self._places]
        for number, views in enumerate(self.inside.values()):
            more = np.full((1,), 37 * (number + turn) % 256, np.uint8)
            yield views, [base + more for base in self._first]
