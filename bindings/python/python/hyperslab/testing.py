"""Strategies for Hypothesis: shapes, distributions, pieces and sections, for tests of programs that use this package.

Hypothesis is needed for it alone: ``pip install hyperslab[testing]``.

>>> from hypothesis import given, settings, strategies
>>> import numpy as np, hyperslab as hs
>>> from hyperslab import testing
>>> @settings(max_examples=5, database=None)
... @given(testing.arrays(), strategies.data())
... def test_a_section_is_read_as_numpy_has_it(array, data):
...     with hs.open(hs.MemoryStore(), "w") as store:
...         store.write("a", array)
...         section = data.draw(testing.sections(array.shape))
...         assert np.array_equal(store.read("a", section=section), array[section])
>>> test_a_section_is_read_as_numpy_has_it()
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from hyperslab.distribution import Distribution
from hyperslab.pieces import Boxes, ElementMap, Pieces, Runs

try:
    from hypothesis import strategies as st
    from hypothesis.extra import numpy as npst
except ImportError as error:
    message = "hyperslab.testing needs the package hypothesis: pip install hyperslab[testing]"
    raise ImportError(message) from error

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy
    from numpy.typing import DTypeLike, NDArray

__all__ = ["arrays", "distributions", "dtypes", "pieces", "sections", "shapes"]

#: A section as slices.
Slices: TypeAlias = "tuple[slice, ...]"


def shapes(*, ndim_min: int = 0, ndim_max: int = 4, extent_min: int = 0, extent_max: int = 12) -> SearchStrategy[Any]:
    """Shapes of arrays, tuples of int.

    Parameters
    ----------
    ndim_min, ndim_max : int
        Fewest and most dimensions.
    extent_min, extent_max : int
        Smallest and largest extent of a dimension.

    Returns
    -------
    SearchStrategy of tuple of int

    Examples
    --------
    >>> from hypothesis import find
    >>> from hyperslab import testing
    >>> find(testing.shapes(), lambda shape: len(shape) == 2 and 0 not in shape)
    (1, 1)
    """
    extents = st.integers(extent_min, extent_max)
    return st.lists(extents, min_size=ndim_min, max_size=ndim_max).map(tuple)


def dtypes() -> SearchStrategy[np.dtype[Any]]:
    """Types of elements that every format has but NetCDF classic: bool, integers, floats and complex numbers.

    Returns
    -------
    SearchStrategy of numpy.dtype
    """
    codes = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
    return st.sampled_from(codes).map(np.dtype)


def arrays(
    shape: Sequence[int] | SearchStrategy[Any] | None = None,
    dtype: DTypeLike | SearchStrategy[np.dtype[Any]] | None = None,
) -> SearchStrategy[NDArray[Any]]:
    """Arrays of any shape and type, in row-major or column-major memory; no element is a NaN, so that they compare.

    Parameters
    ----------
    shape : sequence of int or strategy, optional
        Shape; any of `shapes` by default.
    dtype : dtype or strategy, optional
        Type of the elements; any of `dtypes` by default.

    Returns
    -------
    SearchStrategy of ndarray
    """
    shape = shapes() if shape is None else shape if isinstance(shape, st.SearchStrategy) else tuple(shape)
    kinds = dtypes() if dtype is None else dtype if isinstance(dtype, st.SearchStrategy) else np.dtype(dtype)
    made = npst.arrays(kinds, shape, elements={"allow_nan": False})
    return st.builds(lambda array, order: np.asarray(array, order=order), made, st.sampled_from("CF"))


@st.composite
def _dims(draw: Any, extent: int, ranks: int) -> str | list[int]:
    """How a dimension is spread over so many ranks."""
    kind = draw(st.sampled_from(["block", "cyclic", "block(n)", "cyclic(k)", "gen_block"]))
    if kind == "block(n)":
        return f"block({draw(st.integers(max(-(-extent // ranks), 1), extent + 1))})"
    if kind == "cyclic(k)":
        return f"cyclic({draw(st.integers(1, extent + 1))})"
    if kind == "gen_block":
        cuts = sorted(draw(st.lists(st.integers(0, extent), min_size=ranks - 1, max_size=ranks - 1)))
        return [high - low for low, high in zip([0, *cuts], [*cuts, extent], strict=True)]
    return str(kind)


@st.composite
def _distributions(draw: Any, shape: Any, size: int | None) -> Distribution:
    extents = tuple(draw(shape if isinstance(shape, st.SearchStrategy) else st.just(tuple(shape))))
    spread = [dim for dim in range(len(extents)) if draw(st.booleans())]
    left = draw(st.integers(1, 8)) if size is None else size
    # Dimensions of the mesh, of which those that are left over replicate; their product is the number of ranks.
    mesh: list[int] = []
    for _ in spread:
        mesh.append(draw(st.sampled_from([ranks for ranks in range(1, left + 1) if left % ranks == 0])))
        left //= mesh[-1]
    if left > 1 or not mesh:
        mesh.append(left)
    axes = draw(st.permutations(range(len(mesh))))[: len(spread)]
    dims: list[str | list[int]] = ["*"] * len(extents)
    for dim, axis in zip(spread, axes, strict=True):
        dims[dim] = draw(_dims(extents[dim], mesh[axis]))
    return Distribution(extents, mesh, dims, over=axes)


def distributions(
    shape: Sequence[int] | SearchStrategy[Any] | None = None, *, size: int | None = None, ndim_max: int = 4
) -> SearchStrategy[Distribution]:
    """Distributions of all kinds: blocks, cyclic, uneven blocks, replicated, over any dimensions of a mesh.

    Parameters
    ----------
    shape : sequence of int or strategy, optional
        Global shape; any of `shapes` by default.
    size : int, optional
        Number of ranks; 1 to 8 by default.
    ndim_max : int
        Most dimensions, where no shape is given.

    Returns
    -------
    SearchStrategy of Distribution

    Examples
    --------
    Each rank writes its part, and what is read back is the array:

    >>> from hypothesis import given, settings
    >>> import numpy as np, hyperslab as hs
    >>> from hyperslab import testing
    >>> @settings(max_examples=5, database=None)
    ... @given(testing.distributions(size=3))
    ... def test_what_is_written_is_read(dist):
    ...     memory = hs.MemoryStore()
    ...     array = np.arange(np.prod(dist.shape, dtype=int)).reshape(dist.shape)
    ...     def program(comm):
    ...         with hs.open(memory, "w", comm=comm) as store:
    ...             store.write("a", array[np.ix_(*dist.indices(comm))], dist)
    ...             assert np.array_equal(store.read("a"), array)
    ...     hs.threads(dist.size, program)
    >>> test_what_is_written_is_read()
    """
    return _distributions(shapes(ndim_max=ndim_max) if shape is None else shape, size)


@st.composite
def _pieces(draw: Any, shape: Any, size: int) -> list[Pieces]:
    extents = tuple(draw(shape if isinstance(shape, st.SearchStrategy) else st.just(tuple(shape))))
    count = math.prod(extents)
    kind = draw(st.sampled_from(["boxes", "runs", "map"]))
    if kind == "boxes":
        owned: list[list[Any]] = [[] for _ in range(size)]
        for box in draw(_boxes(extents)):
            owned[draw(st.integers(0, size)) % size].append(box)
        return [Boxes(extents, boxes) for boxes in owned]
    # Each element has an owner, or none.
    owners = np.array(draw(st.lists(st.integers(0, size), min_size=count, max_size=count)), np.int64)
    mine = [np.flatnonzero(owners == rank) for rank in range(size)]
    if kind == "map":
        shuffled = [draw(st.permutations(list(map(int, numbers)))) for numbers in mine]
        return [ElementMap(extents, np.array(numbers, np.int64)) for numbers in shuffled]
    return [Runs(extents, numbers, np.ones(numbers.size, np.int64)) for numbers in mine]


@st.composite
def _boxes(draw: Any, extents: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """Boxes that do not overlap: the array is cut in two, some times, and some parts are left out."""
    parts = [([0] * len(extents), list(extents))]
    for _ in range(draw(st.integers(0, 4)) if extents else 0):
        low, high = parts.pop(draw(st.integers(0, len(parts) - 1)))
        dim = draw(st.integers(0, len(extents) - 1))
        cut = draw(st.integers(low[dim], high[dim]))
        parts.append((low, [*high[:dim], cut, *high[dim + 1 :]]))
        parts.append(([*low[:dim], cut, *low[dim + 1 :]], high))
    return [part for part in parts if draw(st.booleans())]


def pieces(shape: Sequence[int] | SearchStrategy[Any] | None = None, *, size: int = 1) -> SearchStrategy[list[Pieces]]:
    """Pieces that no two ranks share: boxes, runs or maps of elements, which may leave elements out.

    Parameters
    ----------
    shape : sequence of int or strategy, optional
        Global shape; any of `shapes` by default.
    size : int
        Number of ranks.

    Returns
    -------
    SearchStrategy of list of Pieces
        Those of each rank.

    Examples
    --------
    >>> from hypothesis import find
    >>> import hyperslab as hs
    >>> from hyperslab import testing
    >>> found = find(testing.pieces((2, 3)), lambda each: isinstance(each[0], hs.Boxes) and len(each[0]) == 1)
    >>> found[0].slices(0)
    (slice(0, 2, None), slice(0, 3, None))
    """
    return _pieces(shapes(ndim_max=3, extent_max=6) if shape is None else shape, size)


@st.composite
def _section(draw: Any, shape: Sequence[int]) -> Slices:
    slices = []
    for extent in shape:
        start = draw(st.integers(0, extent))
        slices.append(slice(start, draw(st.integers(start, extent)), draw(st.integers(1, max(extent, 1)))))
    return tuple(slices)


def sections(shape: Sequence[int]) -> SearchStrategy[Slices]:
    """Sections of an array, as slices with a start, a stop and a positive step for each dimension.

    Parameters
    ----------
    shape : sequence of int
        Shape of the array.

    Returns
    -------
    SearchStrategy of tuple of slice

    Examples
    --------
    >>> from hypothesis import find
    >>> from hyperslab import testing
    >>> find(testing.sections((4, 6)), lambda section: section[0].step == 2)
    (slice(0, 0, 2), slice(0, 0, 1))
    """
    return _section(tuple(shape))
