"""Sections with lists of indices, each along its own dimension, as runs of elements that a rank gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from hyperslab import _core, _options
from hyperslab._local import host_array
from hyperslab._values import unfit
from hyperslab.distribution import Distribution
from hyperslab.errors import InvalidError
from hyperslab.pieces import Runs

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["expanded", "has_list", "is_list", "outside", "read_listed"]

#: What is selected along each dimension: an index, a slice, (start, stride, count, block), or indices in any order.
Selector: TypeAlias = Any


def is_list(selector: Any) -> bool:
    """Whether it is a list of indices, not the four numbers of a hyperslab."""
    return isinstance(selector, (list, range)) or (isinstance(selector, np.ndarray) and selector.ndim > 0)


def has_list(section: Any) -> bool:
    """Whether a section has a list of indices for one of its dimensions."""
    # Short calls feel what it takes to ask for an abstract class.
    if section is None or type(section) is slice or (type(section) is tuple and all(map(_is_plain, section))):
        return False
    return isinstance(section, np.ndarray) or (isinstance(section, Sequence) and any(map(is_list, section)))


def _is_plain(selector: Any) -> bool:
    return type(selector) is slice or type(selector) is int


def expanded(section: Any, shape: Sequence[int]) -> list[Selector]:
    """A selector for each dimension: those that are left out, at the end or for ``...``, are all of it."""
    given = [*section] if type(section) is tuple or isinstance(section, Sequence) else [section]
    dots = [number for number, selector in enumerate(given) if selector is Ellipsis]
    if len(dots) > 1:
        message = f"the section has '...' {len(dots)} times\n  hint: give it once, for all dimensions that are left out"
        raise InvalidError(message)
    ndim = len(shape)
    if len(given) - len(dots) > ndim:
        message = (
            f"the section has {len(given) - len(dots)} dimensions, but the array has {ndim} (shape {tuple(shape)})\n"
            "  hint: give at most one index or slice for each dimension"
        )
        raise InvalidError(message)
    at = dots[0] if dots else len(given)
    left_out = [slice(None)] * (ndim - len(given) + len(dots))
    return [*given[:at], *left_out, *given[at + len(dots) :]]


def _indices(selector: Any, dim: int, extent: int) -> NDArray[np.int64]:
    """Indices that a list selects along a dimension, counted from the start."""
    values = np.asarray(selector)
    if values.size == 0:
        return np.empty(0, np.int64)
    if values.dtype == bool:
        if values.shape != (extent,):
            hint = "a section takes masks of one dimension; array[mask] reads by one of several, by this rank alone"
            message = (
                f"the mask for dimension {dim} has shape {values.shape}, but the array has {(extent,)} "
                f"there\n  hint: {hint}"
            )
            raise InvalidError(message)
        return np.flatnonzero(values)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise unfit(f"the list of indices for dimension {dim}", "one row of whole numbers", selector)
    found: NDArray[np.int64] = np.where(values < 0, values + extent, values).astype(np.int64)
    if found.min() < 0 or found.max() >= extent:
        raise outside(values[(found < 0) | (found >= extent)][0], dim, extent)
    return found


def outside(index: Any, dim: int, extent: int) -> InvalidError:
    hint = f"give an index from {-extent} to {extent - 1}" if extent else "choose another array: this one is empty"
    return InvalidError(f"index {index} is out of range for dimension {dim} of extent {extent}\n  hint: {hint}")


def _runs_of(section: Any, shape: Sequence[int], dist: Any, rank: int, size: int) -> tuple[Runs, tuple[int, ...]]:
    """The elements that a rank gets of a section with lists of indices, as runs, and the shape of its part.

    Each list selects along its own dimension; the distribution spreads the shape of the section.
    """
    selectors = expanded(section, shape)
    each = [
        _indices(selector, dim, extent) if is_list(selector) else _selected(selector, dim, extent)
        for dim, (selector, extent) in enumerate(zip(selectors, shape, strict=True))
    ]
    extents = [indices.size for indices in each]
    spread = Distribution.replicated(extents, size) if dist is None else dist
    if not isinstance(spread, Distribution) or spread.shape != tuple(extents):
        message = (
            f"a section with a list of indices needs a Distribution of its shape, {tuple(extents)}, but has {dist!r}"
        )
        raise InvalidError(message)
    mine = [indices[held] for indices, held in zip(each, spread.indices(rank), strict=True)]
    part = tuple(indices.size for indices in mine)
    if 0 in part:
        return Runs(shape, [], []), part
    strides = np.cumprod([1, *shape[:0:-1]], dtype=np.int64)[::-1]
    starts = np.zeros(1, np.int64)
    for indices, stride in zip(mine[:-1], strides[:-1], strict=True):
        starts = (starts[:, None] + indices * stride).ravel()
    # Neighbours along the last dimension are one run.
    breaks = np.flatnonzero(np.diff(mine[-1], prepend=-2) != 1)
    lengths = np.diff(breaks, append=mine[-1].size)
    offsets = (starts[:, None] + mine[-1][breaks]).ravel()
    return Runs(shape, offsets, np.tile(lengths, starts.size)), part


def _selected(selector: Any, dim: int, extent: int) -> NDArray[np.int64]:
    """Indices that anything but a list selects along a dimension."""
    ((start, stride, count, block),) = _core.section_of([selector], [extent])
    found = (start + np.arange(count)[:, None] * stride + np.arange(block)).ravel()
    if found.size and found[-1] >= extent:
        message = (
            f"the section ends at {found[-1] + 1} in dimension {dim}, but the array has extent {extent} there\n"
            f"  hint: end it at {extent} or before: sections are not cut to the array, as slices of NumPy are"
        )
        raise InvalidError(message)
    return found


def read_listed(group: Any, name: Any, dist: Any, out: Any, options: _options.ReadOptions) -> Any:
    """Read a section with lists of indices: this rank's part is runs of the array."""
    if not isinstance(name, str) or options.get("halo"):
        message = "a section with a list of indices is read of one array at a time, without a halo"
        raise InvalidError(message)
    info = group._look_at([name], "read", fresh=True)[name]
    runs, extents = _runs_of(options.get("section"), info.shape, dist, group._comm.rank, group._comm.size)
    if out is not None and tuple(out.shape) != extents:
        message = f"this rank's part of the section has shape {extents}, but out= has {tuple(out.shape)}"
        raise InvalidError(message)
    plain: _options.ReadOptions = {**options, "section": None}
    if out is not None:
        plain["dtype"] = out.dtype
    found = group.read(name, runs, **plain).reshape(extents)
    if out is None:
        return np.asarray(found, order=options.get("order", "C"))
    host_array(out, writable=True)[...] = found
    return out
