"""The oracle: which rank holds which elements, from the formulas of High Performance Fortran, and plain NumPy.

Nothing here asks hyperslab; `Spread.distribution` only says the same thing in its words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

import hyperslab as hs
import numpy as np
from numpy.typing import NDArray

#: Start, stride, count and block of each dimension.
Quads = tuple[tuple[int, int, int, int], ...]


def uneven(kind: str) -> list[int]:
    """Sizes of the blocks of ``uneven(3, 0, 5)``."""
    return [int(size) for size in kind.removeprefix("uneven(").removesuffix(")").split(",")]


def along(kind: str, extent: int, parts: int, part: int) -> NDArray[np.int64]:
    """Indices of one dimension that belong to coordinate `part` of `parts` in the mesh."""
    every = np.arange(extent)
    if kind == "*":
        return every
    if kind.startswith("uneven"):
        sizes = uneven(kind)
        first = sum(sizes[:part])
        return every[first : first + sizes[part]]
    found = re.fullmatch(r"(block|cyclic)(?:\((\d+)\))?", kind)
    assert found is not None, kind
    if found[1] == "block":
        size = int(found[2]) if found[2] else max(-(-extent // parts), 1)
        return every[every // size == part]
    return every[every // int(found[2] or 1) % parts == part]


@dataclass(frozen=True)
class Spread:
    """An index space spread over a mesh of ranks."""

    shape: tuple[int, ...]
    mesh: tuple[int, ...]
    dims: tuple[str, ...]
    #: Mesh dimension of each dimension that is not ``*``.
    over: tuple[int, ...]

    def distribution(self) -> hs.Distribution:
        """The same in the words of the package."""
        dims = [uneven(dim) if dim.startswith("uneven") else dim for dim in self.dims]
        return hs.Distribution(self.shape, self.mesh, dims, over=self.over)

    def holds(self, rank: int) -> bool:
        """Whether a rank is in the mesh. An array without dimensions looks alike on ranks that are not."""
        return rank < int(np.prod(self.mesh, dtype=int))

    def indices(self, rank: int) -> tuple[NDArray[np.int64], ...]:
        """Global indices along each dimension that a rank holds."""
        if not self.holds(rank):
            return tuple(np.empty(0, np.int64) for _ in self.shape)
        place = np.unravel_index(rank, self.mesh)
        axes = iter(self.over)
        result = []
        for extent, kind in zip(self.shape, self.dims, strict=True):
            axis = None if kind == "*" else next(axes)
            result.append(along(kind, extent, *((1, 0) if axis is None else (self.mesh[axis], int(place[axis])))))
        return tuple(result)

    def part(self, values: NDArray[Any], rank: int) -> NDArray[Any]:
        """A copy of what a rank holds of a global array."""
        return values[np.ix_(*self.indices(rank))].copy() if values.ndim else values.copy()


def section_indices(quads: Quads) -> tuple[NDArray[np.int64], ...]:
    """Global indices along each dimension that a section selects."""
    return tuple(
        (start + stride * np.arange(count)[:, None] + np.arange(block)).ravel() for start, stride, count, block in quads
    )


def select(values: NDArray[Any], quads: Quads) -> NDArray[Any]:
    """A copy of a section of a global array."""
    return values[np.ix_(*section_indices(quads))].copy() if values.ndim else values.copy()


def replace(values: NDArray[Any], quads: Quads, new: NDArray[Any]) -> None:
    """Assign to a section of a global array."""
    values[np.ix_(*section_indices(quads)) if values.ndim else ...] = new


@dataclass(frozen=True)
class Memory:
    """How a local part lies in memory."""

    order: Literal["C", "F"] = "C"
    #: Cells around the part on every side.
    halo: int = 0
    #: Distance between neighbours along every dimension, in elements of a larger array; negative runs backwards.
    step: int = 1
    read_only: bool = False

    def hold(self, values: NDArray[Any]) -> NDArray[Any]:
        """An array with these values, and other ones in between and around."""
        outer = [extent + 2 * self.halo for extent in values.shape]
        base = np.empty([extent * abs(self.step) for extent in outer], values.dtype, self.order)
        base[...] = 1
        array: NDArray[Any] = base[(slice(None, None, self.step),) * values.ndim] if values.ndim else base
        assert list(array.shape) == outer
        self.inner(array)[...] = values
        array.flags.writeable = not self.read_only
        return array

    def gaps_are_whole(self, array: NDArray[Any]) -> bool:
        """Whether halo, and what lies between the elements, still have the values that `hold` gave them."""
        base = array if array.base is None else array.base
        copy = base.copy(order="K")
        stand_in = copy[(slice(None, None, self.step),) * copy.ndim] if copy.ndim else copy
        self.inner(stand_in)[...] = 1
        return bool((copy == 1).all())

    def inner(self, array: NDArray[Any]) -> NDArray[Any]:
        """A view without the halo."""
        inside: tuple[Any, ...] = (*[slice(self.halo, -self.halo)] * array.ndim, ...)
        return array[inside] if self.halo else array


def same(found: NDArray[Any], expected: NDArray[Any], what: str) -> None:
    """Fail unless both hold the same bytes, so that signs of zeros and kinds of NaN count, too."""
    assert found.dtype == expected.dtype, f"{what}: type {found.dtype}, expected {expected.dtype}"
    assert found.shape == expected.shape, f"{what}: shape {found.shape}, expected {expected.shape}"
    if found.tobytes() == expected.tobytes():
        return
    raw = (np.ascontiguousarray(each).reshape(-1).view(f"V{each.itemsize}") for each in (found, expected))
    differ = [i for i, (a, b) in enumerate(zip(*raw, strict=True)) if a != b]
    first = np.unravel_index(differ[0], expected.shape)
    at = tuple(int(i) for i in first)
    values = f"{found[at]!r} is not {expected[at]!r}"
    raise AssertionError(f"{what}: {len(differ)} of {expected.size} elements differ, the first at {at}: {values}")
