"""What a key in brackets selects, by NumPy's rules or along each dimension by itself, as runs of elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from hyperslab._calls import asking
from hyperslab._indexing import is_list, outside
from hyperslab._types import native
from hyperslab._values import unfit
from hyperslab.errors import InvalidError
from hyperslab.pieces import ElementMap, Runs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hyperslab.array import Array

__all__ = ["read_selected"]

#: An index, or a slice that lies within its dimension.
Plain: TypeAlias = "int | slice"


@dataclass(frozen=True)
class Listed:
    """Indices of one dimension, or of several that a mask selects from, counted as if they were one."""

    indices: NDArray[np.int64]
    #: Extents of these dimensions.
    extents: tuple[int, ...]

    @property
    def ndim(self) -> int:
        """How many dimensions of the array it takes."""
        return len(self.extents)

    def offsets(self, extents: tuple[int, ...], stride: int) -> NDArray[np.int64]:
        """What each adds to the number of an element, in an array that may have become larger."""
        numbers: Any = self.indices
        if extents[1:] != self.extents[1:]:
            numbers = np.ravel_multi_index(np.unravel_index(numbers, self.extents), extents)
        return np.asarray(numbers * stride, np.int64)


def read_selected(array: Array, key: Any, *, outer: bool = False) -> Any:
    """Read what a key selects, by this rank alone; `outer` says that each list selects along its own dimension."""
    with asking(f"read of '{array.name}' from '{array._group.path}'"):
        shape = array.shape
        selectors = _selectors(key if isinstance(key, tuple) else (key,), shape)
        plain = [selector for selector in selectors if not isinstance(selector, Listed)]
        if len(plain) < len(selectors):
            return _read_listed(array, selectors, _shape_now(array), outer=outer)
        found = array.read_local(section=plain)
        # A dimension of which one index is read goes, as NumPy has it.
        return found[tuple(0 if isinstance(selector, int) else slice(None) for selector in selectors)]


def _selectors(key: tuple[Any, ...], shape: Sequence[int]) -> list[Plain | Listed]:
    """What selects along each dimension: those that are left out, at the end or for ``...``, are all of it."""
    given = [np.asarray(one) if is_list(one) else one for one in key]
    takes = [0 if one is Ellipsis else one.ndim if _is_mask(one) else 1 for one in given]
    dots = [number for number, one in enumerate(given) if one is Ellipsis]
    if len(dots) > 1:
        message = f"the section has '...' {len(dots)} times\n  hint: give it once, for all dimensions that are left out"
        raise InvalidError(message)
    if sum(takes) > len(shape):
        message = (
            f"the section has {sum(takes)} dimensions, but the array has {len(shape)} (shape {tuple(shape)})\n"
            "  hint: give at most one index or slice for each dimension"
        )
        raise InvalidError(message)
    at = dots[0] if dots else len(given)
    left_out: list[Any] = [slice(None)] * (len(shape) - sum(takes))
    found: list[Plain | Listed] = []
    dim = 0
    for one in [*given[:at], *left_out, *given[at + len(dots) :]]:
        selector = _selector(one, dim, shape)
        found.append(selector)
        dim += selector.ndim if isinstance(selector, Listed) else 1
    return found


def _is_mask(selector: Any) -> bool:
    return isinstance(selector, np.ndarray) and selector.dtype == bool


def _selector(given: Any, dim: int, shape: Sequence[int]) -> Plain | Listed:
    """One that lies within the array: slices are cut as NumPy does, an index outside is an error."""
    if isinstance(given, np.ndarray):
        return (
            _masked(given, dim, shape) if _is_mask(given) else Listed(_indices(given, dim, shape[dim]), (shape[dim],))
        )
    extent = shape[dim]
    if isinstance(given, slice):
        if given.step is not None and given.step < 1:
            bounds = [given.start, given.stop, given.step]
            text = ":".join("" if bound is None else f"{bound}" for bound in bounds)
            hint = "read with a positive step, then reverse what was read with [::-1]"
            message = f"the slice {text} of dimension {dim} goes backwards\n  hint: {hint}"
            raise InvalidError(message)
        start, stop, step = given.indices(extent)
        # Steps of Python have no limit; one beyond the extent selects the first index alone, like others.
        return slice(start, stop, min(step, max(extent, 1)))
    if given is not None and not isinstance(given, (bool, np.bool_)):
        try:
            index: int = given.__index__()
        except (AttributeError, TypeError):
            pass
        else:
            if not -extent <= index < extent:
                raise outside(index, dim, extent)
            return index + extent if index < 0 else index
    raise unfit(f"the selection of dimension {dim}", "an integer, a slice, '...', a list of indices or a mask", given)


def _indices(given: NDArray[Any], dim: int, extent: int) -> NDArray[np.int64]:
    """Indices, counted from the start."""
    if given.size == 0:
        return np.empty(given.shape, np.int64)
    if given.dtype.kind not in "iu":
        raise unfit(f"the list of indices for dimension {dim}", "of whole numbers", given)
    low, high = int(given.min()), int(given.max())
    if low < -extent or high >= extent:
        raise outside(low if low < -extent else high, dim, extent)
    found = given.astype(np.int64)
    return found if low >= 0 else np.where(found < 0, found + extent, found)


def _masked(mask: NDArray[np.bool_], dim: int, shape: Sequence[int]) -> Listed:
    """Where a mask of some dimensions is true."""
    extents = tuple(shape[dim : dim + mask.ndim])
    if mask.shape != extents:
        which = f"dimension {dim}" if mask.ndim == 1 else f"dimensions {dim} to {dim + mask.ndim - 1}"
        hint = "give a mask of the shape of the array, or of its first or other dimensions"
        message = f"the mask for {which} has shape {mask.shape}, but the array has {extents} there\n  hint: {hint}"
        raise InvalidError(message)
    return Listed(np.flatnonzero(mask), extents)


# ---- as runs -------------------------------------------------------------------------------------------------------


def _shape_now(array: Array) -> tuple[int, ...]:
    """The shape by which elements are numbered: another program may have made the array larger since it was looked at.

    One that has become smaller is refused when it is read, since its shape is not the one that is given.
    """
    known, now = array.shape, array._look_now().shape
    grown = len(now) == len(known) and all(old <= new for old, new in zip(known, now, strict=True))
    return now if grown else known


def _read_listed(array: Array, selectors: list[Plain | Listed], shape: tuple[int, ...], *, outer: bool) -> NDArray[Any]:
    """Read where something is a list: all of it in one transfer, in the order of the result."""
    axes = _axes(selectors, shape, outer=outer)
    extents = [extent for axis in axes for extent in (axis.shape if isinstance(axis, np.ndarray) else (len(axis),))]
    if 0 in extents:
        return np.empty(extents, native(array.dtype))
    # What the last slices select without a gap is one run.
    first, length = 0, 1
    while isinstance(last := axes[-1], range) and (last.step == length or len(last) == 1):
        first, length = first + last.start, length * len(last)
        axes.pop()
    starts = np.array(first, np.int64)
    for axis in axes:
        starts = np.add.outer(starts, axis)
    starts = np.ascontiguousarray(starts).ravel()
    if length == 1:
        about = (array.name, shape, native(array.dtype))
        gathered: Any = array._group._core.read_at_rest(about, starts, listed=True)
        if gathered is not None:
            return np.asarray(gathered.reshape(extents))
    # What is named several times is read once.
    order: Any = slice(None)
    if not (np.diff(starts) > 0).all():
        starts, order = np.unique(starts, return_inverse=True)
    runs = ElementMap(shape, starts) if length == 1 else Runs(shape, starts, np.full(starts.size, length))
    found = array._group.read_local(array.name, runs)
    return found.reshape(starts.size, length)[order].reshape(extents)


def _axes(selectors: list[Plain | Listed], shape: tuple[int, ...], *, outer: bool) -> list[range | NDArray[np.int64]]:
    """What the axes of the result add to the number of an element: slices as ranges, and lists.

    By NumPy's rules lists and indices select together, element by element, and what they give comes where they stand;
    where slices are between them, it comes first. There is always a list.
    """
    axes: list[range | NDArray[np.int64]] = []
    together: list[NDArray[np.int64]] = []
    places: list[tuple[int, int]] = []
    dim = 0
    for number, selector in enumerate(selectors):
        dim += selector.ndim if isinstance(selector, Listed) else 1
        stride = math.prod(shape[dim:])
        if isinstance(selector, slice):
            axes.append(range(selector.start * stride, selector.stop * stride, selector.step * stride))
        else:
            if isinstance(selector, Listed):
                offsets = selector.offsets(shape[dim - selector.ndim : dim], stride)
            else:
                offsets = np.asarray(selector * stride, np.int64)
            if outer:
                axes.append(_one_axis(offsets))
            else:
                together.append(offsets)
                places.append((number, len(axes)))
    if together:
        (first, at), (last, _) = places[0], places[-1]
        axes.insert(at if last - first == len(places) - 1 else 0, _sum_of(together))
    return axes


def _one_axis(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    if offsets.ndim > 1:
        message = f"a list of indices has shape {offsets.shape}\n  hint: give one row of indices for each dimension"
        raise InvalidError(message)
    return offsets


def _sum_of(together: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    try:
        return sum(together[1:], start=together[0])
    except ValueError:
        shapes = " and ".join(str(one.shape) for one in together)
        message = (
            f"lists of shapes {shapes} cannot select element by element\n"
            "  hint: oindex selects along each dimension by itself, as in array.oindex[[0, 2], [1, 3, 4]]"
        )
        raise InvalidError(message) from None
