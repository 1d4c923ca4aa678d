"""What one rank holds: FLASH's array of all variables of its blocks, and values that tell where they belong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

ZONES = 8
"""Zones of a block along each axis."""
HALO = 4
"""Halo cells on every side."""
FLUID = ("dens", "velx", "vely", "velz", "pres", "ener", "temp", "gamc", "game", "enuc", "gpot")
VARIABLES = (*FLUID, *(f"f{i}" for i in range(1, 14)))
"""Eleven of the fluid, and the abundances of 13 kinds of atoms."""
PLOTTED = ("dens", "temp", "pres", "f1")
"""What plotfiles show."""


class State:
    """The blocks of one rank.

    Parameters
    ----------
    boxes
        Bounding boxes of the blocks, shape (blocks, 3, 2).
    """

    def __init__(self, boxes: NDArray[np.float64]) -> None:
        self.boxes = boxes
        # Room for more blocks than there are, since refinement makes new ones. The variable varies fastest.
        room = len(boxes) + len(boxes) // 4 + 1
        edge = ZONES + 2 * HALO
        self.unk = np.full((len(VARIABLES), edge, edge, edge, room), np.nan, order="F")

    def __len__(self) -> int:
        """Return the number of blocks."""
        return len(self.boxes)

    def interior(self, name: str) -> NDArray[np.float64]:
        """Return one variable without halo as [block][z][y][x]: a view, of single elements far apart."""
        inside = slice(HALO, HALO + ZONES)
        return self.unk[VARIABLES.index(name), inside, inside, inside, : len(self)].T

    def block(self, name: str, number: int) -> NDArray[np.float64]:
        """Return one variable of one block without halo as [z][y][x], a view."""
        return self.interior(name)[number]

    def corners(self, name: str) -> NDArray[np.float64]:
        """Return one variable at the corners of zones, as [block][z][y][x]: the mean of the 8 zones that meet there."""
        around = slice(HALO - 1, HALO + ZONES + 1)
        zones = self.unk[VARIABLES.index(name), around, around, around, : len(self)]
        zones = zones[:-1] + zones[1:]
        zones = zones[:, :-1] + zones[:, 1:]
        zones = zones[:, :, :-1] + zones[:, :, 1:]
        return (zones * 0.125).T

    def fill(self) -> None:
        """Give each zone, halo too, values that depend on where it lies and on the variable."""
        x, y, z = self._centres()
        for number in range(len(VARIABLES)):
            self.unk[number, ..., : len(self)] = value(number, x, y, z)

    def fill_constant(self) -> None:
        """Give each variable its number, from 1, as the original benchmark does."""
        for number in range(len(VARIABLES)):
            self.unk[number, ..., : len(self)] = number + 1

    def _centres(self) -> list[NDArray[np.float64]]:
        """Return the coordinates of zone centres along x, y and z, shaped to be combined with [x][y][z][block]."""
        low, high = self.boxes[..., 0], self.boxes[..., 1]
        places = np.arange(-HALO, ZONES + HALO) + 0.5
        centres = low[:, :, None] + places * ((high - low) / ZONES)[:, :, None]
        return [np.expand_dims(centres[:, axis].T, tuple({0, 1, 2} - {axis})) for axis in range(3)]


def value(number: int, x: NDArray[np.float64], y: NDArray[np.float64], z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a variable, given by its place among all, at points.

    Only sums and products, so that the bits are the same everywhere.
    """
    return (number + 1.0) * (1.0 + x) + 0.31830988618379067 * (y * y) + 0.5772156649015329 * z * (2.0 - x)
