"""Pieces: what ranks hold that no distribution describes, as boxes or element by element."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeAlias

import numpy as np

from hyperslab import _core
from hyperslab._values import unfit, whole_numbers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from hyperslab.comm import RankLike

__all__ = ["Boxes", "ElementMap", "Pieces", "Runs", "shape_of"]

#: A box: a slice for each dimension, or its lowest indices and those one past its highest.
BoxLike: TypeAlias = "Sequence[slice] | tuple[Sequence[SupportsIndex], Sequence[SupportsIndex]]"


def shape_of(shape: Sequence[SupportsIndex]) -> tuple[int, ...]:
    """A global shape, checked."""
    extents = tuple(whole_numbers(shape, "shape"))
    if any(extent >= 1 << 63 for extent in extents):
        raise unfit("shape", "of extents below 2**63", extents)
    return extents


def _row(what: str, given: ArrayLike) -> NDArray[np.int64]:
    """Whole numbers of 0 or more, in one row."""
    values = np.asarray(given)
    if values.shape == (0,):
        return np.empty(0, np.int64)
    if values.ndim != 1 or values.dtype.kind not in "iu" or values.min() < 0 or int(values.max()) >= 1 << 63:
        hint = "make one row of them with np.ravel()" if values.ndim > 1 else ""
        raise unfit(what, "one row of whole numbers of 0 or more", given, hint)
    return values.astype(np.int64)


class Pieces(ABC):
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

    @abstractmethod
    def empty(
        self, rank: RankLike = 0, dtype: DTypeLike = float, *, order: Literal["C", "F"] = "C", halo: int = 0
    ) -> Any:
        """Uninitialised local arrays for the pieces: one, or for boxes a list."""

    @abstractmethod
    def _key(self) -> tuple[Any, ...]:
        """What tells these pieces from others."""

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same elements of the same shape, in local arrays alike."""
        return isinstance(other, Pieces) and self._key() == other._key()

    def __hash__(self) -> int:
        """Hash of the shape and of what is held."""
        return hash(self._key())


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

        self._shape = shape_of(shape)
        if not isinstance(boxes, Sequence):
            raise unfit("boxes", "a sequence of boxes", boxes)
        self._boxes = [self._bounds(box, number) for number, box in enumerate(boxes)]
        self._core = _core.Pieces.boxes(list(self._shape), self._boxes)

    def _bounds(self, box: BoxLike, number: int) -> list[tuple[int, int]]:
        from hyperslab.errors import InvalidError

        try:
            bounds = self._slices(box) if all(isinstance(part, slice) for part in box) else self._corners(box)
            if len(bounds) == len(self._shape) and all(0 <= low <= high < 1 << 63 for low, high in bounds):
                return bounds
        except (TypeError, ValueError, AttributeError):
            pass  # the same as invalid bounds
        message = (
            f"box {number}, {box!r}, cannot be one of an array of shape {self._shape}\n  hint: give a slice without a "
            "step for each dimension, or a pair of the lowest indices and those one past the highest"
        )
        raise InvalidError(message)

    def _slices(self, box: Any) -> list[tuple[int, int]]:
        if any(part.step not in (None, 1) for part in box):
            message = "a box has no step"
            raise ValueError(message)
        # Bounds are taken as they are: a slice that reaches beyond the array is an error, not cut.
        return [
            (
                0 if part.start is None else part.start.__index__(),
                extent if part.stop is None else part.stop.__index__(),
            )
            for part, extent in zip(box, self._shape, strict=True)
        ]

    def _corners(self, box: Any) -> list[tuple[int, int]]:
        lowest, highest = box
        return [(low.__index__(), high.__index__()) for low, high in zip(lowest, highest, strict=True)]

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
        halo: int = 0,
    ) -> list[NDArray[Any]]:
        """Uninitialised local arrays, one for each box, with `halo` cells around each on every side."""
        return [np.empty([extent + 2 * halo for extent in shape], dtype, order) for shape in self.local_shapes]

    def __len__(self) -> int:
        """Number of boxes."""
        return len(self._boxes)

    def _key(self) -> tuple[Any, ...]:
        return ("boxes", self._shape, tuple(map(tuple, self._boxes)))

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copy: what they were made from."""
        return type(self), (self._shape, [tuple(zip(*box, strict=True)) or ((), ()) for box in self._boxes])

    def __repr__(self) -> str:
        """Global shape, and what is held of it."""
        elements = sum(math.prod(shape) for shape in self.local_shapes)
        return f"<Boxes of {self._shape}: {len(self)} boxes, {elements} elements>"

    def _repr_html_(self) -> str:
        """For notebooks: a picture of where they lie."""
        from hyperslab._drawing import draw_boxes

        return draw_boxes(self)


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

        self._shape = shape_of(shape)
        self._offsets, self._lengths = _row("offsets", offsets), _row("lengths", lengths)
        if self._offsets.size != self._lengths.size:
            message = f"{self._offsets.size} offsets need as many lengths, got {self._lengths.size}"
            raise InvalidError(message)
        self._core = _core.Pieces.runs(list(self._shape), self._offsets, self._lengths)

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
        halo: int = 0,
    ) -> NDArray[Any]:
        """An uninitialised local array."""
        return np.empty(self.local_shape[0] + 2 * halo, dtype, order)

    def _key(self) -> tuple[Any, ...]:
        # Neighbours in both are one run, however they were given.
        offsets, lengths = self._offsets[self._lengths > 0], self._lengths[self._lengths > 0]
        first = np.append(True, offsets[1:] != offsets[:-1] + lengths[:-1])[: offsets.size]
        whole = np.add.reduceat(lengths, np.flatnonzero(first)) if offsets.size else lengths
        return ("runs", self._shape, offsets[first].tobytes(), whole.tobytes())

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copy: the runs, also those of a map."""
        return _made_of, (type(self), self._shape, self._offsets, self._lengths)

    def __repr__(self) -> str:
        """Global shape, and what is held of it."""
        name = type(self).__name__
        return f"<{name} of {self._shape}: {self._offsets.size} runs, {self.local_shape[0]} elements>"


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
        numbers = _row("indices", indices)
        # Neighbours in both are one run.
        starts = np.flatnonzero(np.diff(numbers, prepend=-2) != 1)
        super().__init__(shape, numbers[starts], np.diff(starts, append=numbers.size))


def _made_of(kind: type[Runs], shape: tuple[int, ...], offsets: NDArray[np.int64], lengths: NDArray[np.int64]) -> Runs:
    """What `Runs.__reduce__` took apart."""
    runs = kind.__new__(kind)
    Runs.__init__(runs, shape, offsets, lengths)
    return runs
