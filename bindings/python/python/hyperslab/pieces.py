"""Pieces: what ranks hold that no distribution describes, as boxes or element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeAlias

import numpy as np

from hyperslab import _core

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from hyperslab.comm import RankLike

__all__ = ["Boxes", "ElementMap", "Pieces", "Runs"]

#: A box: a slice for each dimension, or its lowest indices and those one past its highest.
BoxLike: TypeAlias = "Sequence[slice] | tuple[Sequence[SupportsIndex], Sequence[SupportsIndex]]"


class Pieces:
    """What this rank holds of a global array, told by this rank alone; the other ranks tell theirs.

    Made as `Boxes`, `Runs` or `ElementMap`, and given wherever a `Distribution` may be. Only the global shape must be
    the same on all ranks. Pieces that are written must not overlap, on one rank or between ranks; pieces that are read
    may. They need not cover the array: what nobody writes stays as it is, or gets the fill value.
    """

    _core: _core.Pieces
    _shape: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Global shape."""
        return self._shape

    @property
    def ndim(self) -> int:
        """Number of dimensions of the global array."""
        return len(self._shape)

    def empty(
        self, rank: RankLike = 0, dtype: DTypeLike = float, *, order: Literal["C", "F"] = "C", guard: int = 0
    ) -> Any:
        """Uninitialised local arrays for the pieces: one, or for boxes a list."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """Kind and global shape."""
        return f"<{type(self).__name__} of {self._shape}>"


class Boxes(Pieces):
    """Boxes of the global array, each in a local array of its own: blocks of an adaptive mesh.

    Parameters
    ----------
    shape : sequence of int
        Global shape.
    boxes : sequence of boxes
        This rank's boxes, perhaps none: each a slice for each dimension, or a pair of the lowest indices and those one
        past the highest.

    Examples
    --------
    Local arrays are given as a list, in the order of the boxes:

    >>> import numpy as np, hyperslab as hs, tempfile
    >>> mine = hs.Boxes((4, 6), [(slice(0, 2), slice(0, 3)), ((2, 3), (4, 6))])
    >>> mine.local_shapes
    ((2, 3), (2, 3))
    >>> path = tempfile.mkdtemp() + "/amr.zarr"
    >>> with hs.open(path, "w") as store:
    ...     report = store.write("rho", [np.full((2, 3), 1), np.full((2, 3), 2)], mine, fill_value=0)
    ...     store.read("rho")
    array([[1, 1, 1, 0, 0, 0],
           [1, 1, 1, 0, 0, 0],
           [0, 0, 0, 2, 2, 2],
           [0, 0, 0, 2, 2, 2]])
    """

    def __init__(self, shape: Sequence[SupportsIndex], boxes: Sequence[BoxLike]) -> None:
        self._shape = tuple(extent.__index__() for extent in shape)
        self._boxes = [self._bounds(box, number) for number, box in enumerate(boxes)]
        self._core = _core.Pieces.boxes(list(self._shape), self._boxes)

    def _bounds(self, box: BoxLike, number: int) -> list[tuple[int, int]]:
        from hyperslab.errors import InvalidError

        if all(isinstance(part, slice) for part in box):
            parts: list[Any] = list(box)
            if any(part.step not in (None, 1) for part in parts) or len(parts) != len(self._shape):
                message = (
                    f"box {number} needs one slice without a step for each of {len(self._shape)} dimensions: {box}"
                )
                raise InvalidError(message)
            # Bounds are taken as they are: a slice that reaches beyond the array is an error, not cut.
            bounds = [
                (0 if part.start is None else part.start, extent if part.stop is None else part.stop)
                for part, extent in zip(parts, self._shape, strict=True)
            ]
        else:
            low, high = box
            bounds = list(zip(low, high, strict=True))  # type: ignore[arg-type]
        pairs = [(low.__index__(), high.__index__()) for low, high in bounds]
        if any(low < 0 or high < low for low, high in pairs) or len(pairs) != len(self._shape):
            message = f"box {number} makes no sense in an array of shape {self._shape}: {pairs}"
            raise InvalidError(message)
        return pairs

    @property
    def local_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the boxes."""
        return tuple(tuple(high - low for low, high in box) for box in self._boxes)

    def slices(self, number: int) -> tuple[slice, ...]:
        """A box as slices of the global array."""
        return tuple(slice(low, high) for low, high in self._boxes[number])

    def empty(
        self,
        rank: RankLike = 0,
        dtype: DTypeLike = float,
        *,
        order: Literal["C", "F"] = "C",
        guard: int = 0,
    ) -> list[NDArray[Any]]:
        """Uninitialised local arrays, one for each box, with `guard` cells around each on every side."""
        return [np.empty([extent + 2 * guard for extent in shape], dtype, order) for shape in self.local_shapes]

    def __len__(self) -> int:
        """Number of boxes."""
        return len(self._boxes)


class Runs(Pieces):
    """Runs of elements of the global array, one after another in one local array of one dimension.

    Parameters
    ----------
    shape : sequence of int
        Global shape.
    offsets, lengths : array_like of int
        First element and length of each run, counted in the row-major order of the global array. They may come in any
        order.

    Examples
    --------
    >>> import numpy as np, hyperslab as hs
    >>> hs.Runs((4, 6), offsets=[12, 3], lengths=[2, 1]).indices()
    array([12, 13,  3])
    >>> hs.Runs.strided((4, 6), 1, 2, [(6, 4)]).indices()
    array([ 1,  2,  7,  8, 13, 14, 19, 20])
    """

    def __init__(self, shape: Sequence[SupportsIndex], offsets: ArrayLike, lengths: ArrayLike) -> None:
        from hyperslab.errors import InvalidError

        self._shape = tuple(extent.__index__() for extent in shape)
        starts, counts = np.asarray(offsets), np.asarray(lengths)
        for what, given in (("offsets", starts), ("lengths", counts)):
            if given.ndim != 1 or (given.size and (given.dtype.kind not in "iu" or int(given.min()) < 0)):
                message = f"{what} should be one row of whole numbers of 0 or more, but are {given!r}"
                raise InvalidError(message)
        if starts.size != counts.size:
            message = f"{starts.size} offsets have {counts.size} lengths"
            raise InvalidError(message)
        self._offsets, self._lengths = starts.astype(np.int64), counts.astype(np.int64)
        self._core = _core.Pieces.runs(list(self._shape), self._offsets.tolist(), self._lengths.tolist())

    @classmethod
    def strided(
        cls,
        shape: Sequence[SupportsIndex],
        offset: SupportsIndex,
        length: SupportsIndex,
        levels: Sequence[tuple[SupportsIndex, SupportsIndex]] = (),
    ) -> Runs:
        """Nested strided runs, as in Galley: `levels` are pairs of stride and count, the innermost first."""
        starts = np.array([offset.__index__()], np.int64)
        for stride, count in levels:
            starts = (np.arange(count.__index__())[:, None] * stride.__index__() + starts).ravel()
        return cls(shape, starts, np.full(starts.size, length.__index__()))

    @property
    def local_shape(self) -> tuple[int]:
        """Shape of the local array."""
        return (int(self._lengths.sum()),)

    def indices(self) -> NDArray[np.int64]:
        """Number of each local element in the row-major order of the global array."""
        before = np.cumsum(self._lengths) - self._lengths
        return np.repeat(self._offsets - before, self._lengths) + np.arange(self.local_shape[0])

    def empty(
        self,
        rank: RankLike = 0,
        dtype: DTypeLike = float,
        *,
        order: Literal["C", "F"] = "C",
        guard: int = 0,
    ) -> NDArray[Any]:
        """An uninitialised local array."""
        return np.empty(self.local_shape[0] + 2 * guard, dtype, order)


class ElementMap(Runs):
    """A map of local to global elements, as PIO has it (a list of degrees of freedom).

    Parameters
    ----------
    shape : sequence of int
        Global shape.
    indices : array_like of int
        For each element of the local array, which has one dimension, its number in the row-major order of the global
        array (``np.ravel_multi_index``). To write, no element may be named twice.

    Examples
    --------
    >>> import numpy as np, hyperslab as hs, tempfile
    >>> path = tempfile.mkdtemp() + "/map.zarr"
    >>> with hs.open(path, "w") as store:
    ...     report = store.write("a", np.arange(6), hs.ElementMap((2, 3), [5, 3, 1, 0, 2, 4]))
    ...     store.read("a")
    array([[3, 2, 4],
           [1, 5, 0]])
    """

    def __init__(self, shape: Sequence[SupportsIndex], indices: ArrayLike) -> None:
        numbers = np.asarray(indices)
        if numbers.ndim == 1 and numbers.size and numbers.dtype.kind in "iu":
            # Neighbours in both are one run.
            breaks = np.flatnonzero(np.diff(numbers.astype(np.int64)) != 1) + 1
            first = np.concatenate(([0], breaks))
            super().__init__(shape, numbers[first], np.diff(np.concatenate((first, [numbers.size]))))
        else:
            super().__init__(shape, numbers if numbers.size else np.empty(0, np.int64), np.ones(numbers.size, np.int64))
