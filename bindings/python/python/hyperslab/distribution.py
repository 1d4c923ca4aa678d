"""Distributions: which rank holds which elements of a global array."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

import numpy as np

from hyperslab import _core
from hyperslab._values import whole_number, whole_numbers
from hyperslab.comm import rank_of

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from hyperslab.comm import RankLike

__all__ = ["Distribution"]


def _integers(values: Iterable[SupportsIndex]) -> list[int]:
    return [value.__index__() for value in values]


def _dim(dim: str | Sequence[SupportsIndex]) -> str:
    """How a dimension is spread, as the core takes it."""
    return dim if isinstance(dim, str) else f"gen_block({', '.join(map(str, whole_numbers(dim, 'blocks')))})"


class Distribution:
    """A global index space spread over a mesh of ranks, in the words of High Performance Fortran.

    Parameters
    ----------
    shape : sequence of int
        Global shape of the array, or of the section of it that moves.
    mesh : sequence of int
        Logical grid of ranks. Rank numbers are row-major mesh coordinates; ranks beyond the mesh hold nothing.
    dims : sequence of str or of sequences of int, optional
        One of ``"block"``, ``"block(n)"``, ``"cyclic"``, ``"cyclic(k)"`` and ``"*"`` for each dimension, or the sizes
        of uneven blocks, one for each rank along the mesh dimension (GEN_BLOCK). The default is ``"block"`` for all.
    over : sequence of int, optional
        Mesh dimension of each dimension that is not ``"*"``; by default they are taken in order. Mesh dimensions that
        are left over replicate.

    Examples
    --------
    >>> import hyperslab as hs
    >>> dist = hs.Distribution((10, 6), mesh=(4,), dims=("block", "*"))
    >>> [dist.local_shape(rank) for rank in range(4)]
    [(3, 6), (3, 6), (3, 6), (1, 6)]
    >>> dist.to_global(3, (0, 5))
    (9, 5)
    >>> hs.Distribution((8,), mesh=(2,), dims=("cyclic(2)",)).indices(1)[0]
    array([2, 3, 6, 7])
    >>> uneven = hs.Distribution((10, 4), mesh=(3,), dims=([5, 0, 5], "*"))
    >>> uneven.local_shape(1), uneven.slices(2)
    ((0, 4), (slice(5, 10, None), slice(0, 4, None)))
    """

    #: The rank whose part was asked for last, and its shape: many arrays may be spread alike.
    _local: tuple[int, tuple[int, ...]] | None = None

    def __init__(
        self,
        shape: Sequence[SupportsIndex],
        mesh: Sequence[SupportsIndex],
        dims: Sequence[str | Sequence[SupportsIndex]] | None = None,
        *,
        over: Sequence[SupportsIndex] | None = None,
    ) -> None:
        from hyperslab.errors import InvalidError

        extents, ranks = whole_numbers(shape, "shape"), whole_numbers(mesh, "mesh", 1)
        axes = None if over is None else whole_numbers(over, "over")
        kinds = ["block"] * len(extents) if dims is None else [_dim(dim) for dim in dims]
        try:
            self._core = _core.Distribution(extents, ranks, kinds, axes)
        except (ValueError, OverflowError) as error:
            message = f"distribution of shape {tuple(extents)} over mesh {tuple(ranks)}: {error}"
            raise InvalidError(message) from None

    @classmethod
    def block(cls, shape: Sequence[SupportsIndex], size: SupportsIndex) -> Distribution:
        """BLOCK in all dimensions over a mesh of `size` ranks that is as even as its factors allow.

        Examples
        --------
        >>> import hyperslab as hs
        >>> hs.Distribution.block((128, 128, 64), 8).mesh
        (2, 2, 2)
        """
        extents, ranks = whole_numbers(shape, "shape"), whole_number(size, "size", 1)
        if not extents:
            return cls((), (ranks,), ())
        return cls(extents, _core.balanced_mesh(ranks, len(extents)))

    @classmethod
    def replicated(cls, shape: Sequence[SupportsIndex], size: SupportsIndex) -> Distribution:
        """All of the array on each of `size` ranks."""
        return cls(shape, (size,), ["*"] * len(whole_numbers(shape, "shape")))

    @property
    def shape(self) -> tuple[int, ...]:
        """Global shape."""
        return tuple(self._core.shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._core.shape)

    @property
    def mesh(self) -> tuple[int, ...]:
        """Logical grid of ranks."""
        return tuple(self._core.mesh)

    @property
    def dims(self) -> tuple[str, ...]:
        """How each dimension is spread."""
        return tuple(self._core.dims)

    @property
    def size(self) -> int:
        """Number of ranks of the mesh."""
        return int(np.prod(self._core.mesh, dtype=np.int64))

    @property
    def replication(self) -> int:
        """How many ranks hold each element."""
        return self._core.replication

    def local_shape(self, rank: RankLike) -> tuple[int, ...]:
        """Shape of the part that a rank holds, given as a number or as a communicator."""
        number = rank_of(rank)
        known = self._local
        if known is None or known[0] != number:
            runs = self._core.runs(number)
            # Threads that are ranks may have one distribution: each returns what it found itself.
            known = self._local = number, tuple(sum(length * count for _, length, _, count in dim) for dim in runs)
        return known[1]

    def indices(self, rank: RankLike) -> tuple[NDArray[np.int64], ...]:
        """Global indices of a rank's part along each dimension, in rising order; ``np.ix_(*...)`` selects the part."""

        def expand(runs: list[tuple[int, int, int, int]]) -> NDArray[np.int64]:
            parts = [
                (start + step * np.arange(count)[:, None] + np.arange(length)).ravel()
                for start, length, step, count in runs
            ]
            return np.sort(np.concatenate(parts)) if parts else np.empty(0, np.int64)

        return tuple(expand(runs) for runs in self._core.runs(rank_of(rank)))

    def slices(self, rank: RankLike) -> tuple[slice, ...]:
        """The part that a rank holds as slices of the global array.

        Raises
        ------
        InvalidError
            When the indices of a dimension are not one regular progression.
        """
        from hyperslab.errors import InvalidError

        def one(runs: list[tuple[int, int, int, int]], dim: int) -> slice:
            if not runs:
                return slice(0, 0)
            if len(runs) == 1 and runs[0][3] == 1:
                start, length, _, _ = runs[0]
                return slice(start, start + length)
            if len(runs) == 1 and runs[0][1] == 1:
                start, _, step, count = runs[0]
                return slice(start, start + (count - 1) * step + 1, step)
            message = f"rank {rank_of(rank)} holds no slice of dimension {dim} ({self!r})\n  hint: use indices()"
            raise InvalidError(message)

        return tuple(one(runs, dim) for dim, runs in enumerate(self._core.runs(rank_of(rank))))

    def to_global(self, rank: RankLike, index: Sequence[SupportsIndex]) -> tuple[int, ...]:
        """Global index of an element of a rank's part.

        Raises
        ------
        IndexError
            When the part has no such element.
        """
        found = self._core.to_global(rank_of(rank), _integers(index))
        if found is None:
            message = f"rank {rank_of(rank)} holds a part of shape {self.local_shape(rank)}: {tuple(index)} is outside"
            raise IndexError(message)
        return tuple(found)

    def owners(self, index: Sequence[SupportsIndex]) -> tuple[int, ...]:
        """Ranks that hold an element, given by its global index; several when it is replicated.

        Raises
        ------
        IndexError
            When the array has no such element.
        """
        numbers = _integers(index)
        if len(numbers) != self.ndim or any(not 0 <= i < n for i, n in zip(numbers, self.shape, strict=True)):
            message = f"the array has shape {self.shape}: {tuple(index)} is outside"
            raise IndexError(message)
        return tuple(self._core.owners(numbers))

    def empty(
        self, rank: RankLike, dtype: DTypeLike = float, *, order: Literal["C", "F"] = "C", halo: int = 0
    ) -> NDArray[Any]:
        """An uninitialised array for a rank's part, with `halo` cells around it on every side."""
        return np.empty([extent + 2 * halo for extent in self.local_shape(rank)], dtype, order)

    def zeros(
        self, rank: RankLike, dtype: DTypeLike = float, *, order: Literal["C", "F"] = "C", halo: int = 0
    ) -> NDArray[Any]:
        """As `empty`, filled with zeros."""
        return np.zeros([extent + 2 * halo for extent in self.local_shape(rank)], dtype, order)

    def __eq__(self, other: object) -> bool:
        """Whether both spread the same shape in the same way."""
        return isinstance(other, Distribution) and self._core == other._core

    def __hash__(self) -> int:
        """Hash of shape, mesh and dimensions."""
        return hash((self.shape, self.mesh, self.dims))

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copy: what it was made from, which takes a few bytes whatever the number of ranks."""
        axes = [axis for axis in self._core.over if axis is not None]
        return _made_of, (self.shape, self.mesh, self.dims, axes)

    def _repr_html_(self) -> str:
        """For notebooks: a picture of who holds what."""
        from hyperslab._drawing import draw_distribution

        return draw_distribution(self)

    def __repr__(self) -> str:
        """Shape, distribution of each dimension, and mesh."""
        return f"<Distribution {self._core!r}>"


def _made_of(shape: tuple[int, ...], mesh: tuple[int, ...], dims: tuple[str, ...], axes: list[int]) -> Distribution:
    """What `Distribution.__reduce__` took apart."""
    return Distribution(shape, mesh, dims, over=axes)
