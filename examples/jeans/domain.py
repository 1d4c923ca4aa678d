"""Which cells a rank holds, and the exchange of halo with its neighbours.

The global array is cut by HPF ``BLOCK`` in every dimension: the block length is ``ceil(cells / ranks)``, so the last
ranks of a dimension may hold less than the others, or nothing at all::

    10 cells over 4 ranks, block length 3:   0 0 0 | 1 1 1 | 2 2 2 | 3
     6 cells over 4 ranks, block length 2:   0 0 | 1 1 | 2 2 |          (the last rank holds nothing)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from mpi4py import MPI

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Box: TypeAlias = tuple[slice, ...]
"""One half-open range of global indices per dimension."""

HALO = 2
"""Halo cells on each side of each dimension [cells]: what a second-order sweep looks at."""


def block(cells: int, ranks: int, coordinate: int) -> slice:
    """Return the global indices that one rank of a dimension holds under HPF ``BLOCK``."""
    length = -(-cells // ranks)
    start = min(coordinate * length, cells)
    return slice(start, min(start + length, cells))


def boxes(shape: Sequence[int], mesh: Sequence[int]) -> list[Box]:
    """Return the box of every rank of a mesh, in row-major order of mesh coordinates."""
    return [
        tuple(block(n, p, c) for n, p, c in zip(shape, mesh, coordinates, strict=True))
        for coordinates in np.ndindex(*mesh)
    ]


def box_shape(box: Box) -> tuple[int, ...]:
    """Return the number of indices of a box in each dimension."""
    return tuple(s.stop - s.start for s in box)


@dataclass(frozen=True)
class _Route:
    """What one rank of a mesh line gives to, or takes from, one other rank: positions along the line's axis."""

    peer: int
    positions: NDArray[np.intp]


class Domain:
    """The part of a periodic box that this rank holds.

    Parameters
    ----------
    comm
        Communicator with as many ranks as the mesh.
    shape
        Global number of cells, ``(nx, ny, nz)``.
    mesh
        Logical grid of ranks, ``(px, py, pz)``, in row-major rank order.
    """

    def __init__(self, comm: MPI.Intracomm, shape: Sequence[int], mesh: Sequence[int]) -> None:
        if math.prod(mesh) != comm.size:
            raise ValueError(f"mesh {tuple(mesh)} holds {math.prod(mesh)} ranks, but the program runs on {comm.size}")
        self.shape = tuple(shape)
        self.mesh = tuple(mesh)
        # No reordering: rank r must hold the box that the I/O library's distribution gives to rank r.
        self.comm = comm.Create_cart(self.mesh, periods=[True] * len(self.mesh), reorder=False)
        self.box: Box = boxes(self.shape, self.mesh)[comm.rank]
        self.local_shape = box_shape(self.box)
        self._lines = [self.comm.Sub([a == axis for a in range(len(self.mesh))]) for axis in range(len(self.mesh))]
        self._routes = [self._plan(axis) for axis in range(len(self.mesh))]

    @property
    def interior(self) -> tuple[slice, ...]:
        """Slices that cut the halo off a local array."""
        return tuple(slice(HALO, HALO + n) for n in self.local_shape)

    def zeros(self, *leading: int) -> NDArray[np.float64]:
        """Return a local array with halo, of shape ``(*leading, nx + 2 HALO, ny + 2 HALO, nz + 2 HALO)``."""
        return np.zeros((*leading, *(n + 2 * HALO for n in self.local_shape)))

    def exchange(self, fields: NDArray[np.float64], axis: int) -> None:
        """Fill the halo of one axis from the ranks that hold those cells.

        Parameters
        ----------
        fields
            Local arrays with halo, stacked: ``(count, nx + 2 HALO, ny + 2 HALO, nz + 2 HALO)``. Halo cells
            of the other two axes are neither sent nor filled: sweeps along an axis do not look at them.
        axis
            0, 1 or 2.
        """
        line = self._lines[axis]
        gives, takes = self._routes[axis]
        # The axis first, and only the interior of the two others: what is given and taken is then a row selection.
        inside = tuple(slice(None) if a == axis else s for a, s in enumerate(self.interior))
        rows = np.moveaxis(fields[:, *inside], 1 + axis, 0)
        incoming = [np.empty((route.positions.size, *rows.shape[1:])) for route in takes]
        # A rank that is its own neighbour (one rank along the axis) uses the same path: MPI delivers to itself.
        requests = [line.Irecv(part, source=route.peer) for route, part in zip(takes, incoming, strict=True)]
        outgoing = [np.ascontiguousarray(rows[route.positions]) for route in gives]
        requests += [line.Isend(part, dest=route.peer) for route, part in zip(gives, outgoing, strict=True)]
        MPI.Request.Waitall(requests)
        for route, part in zip(takes, incoming, strict=True):
            rows[route.positions] = part

    def _plan(self, axis: int) -> tuple[list[_Route], list[_Route]]:
        """Work out which rows along an axis travel; owners are looked up cell by cell.

        So blocks may be thinner than the halo, and ranks between two neighbours may be empty.
        """
        cells, ranks, me = self.shape[axis], self.mesh[axis], self._lines[axis].rank

        def guards(rank: int) -> NDArray[np.intp]:
            own = block(cells, ranks, rank)
            if own.start == own.stop:
                return np.empty(0, np.intp)
            return np.r_[own.start - HALO : own.start, own.stop : own.stop + HALO]

        def owned_by(rank: int, wanted: NDArray[np.intp]) -> NDArray[np.bool_]:
            own = block(cells, ranks, rank)
            return (wanted % cells >= own.start) & (wanted % cells < own.stop)

        start = block(cells, ranks, me).start
        gives = [(p, guards(p)[owned_by(me, guards(p))] % cells - start + HALO) for p in range(ranks)]
        takes = [(p, guards(me)[owned_by(p, guards(me))] - start + HALO) for p in range(ranks)]
        return (
            [_Route(p, rows) for p, rows in gives if rows.size],
            [_Route(p, rows) for p, rows in takes if rows.size],
        )


class Redistribution:
    """Move a global array from one set of boxes to another: every rank sends every other rank their intersection.

    Parameters
    ----------
    comm
        Communicator; rank r holds ``source[r]`` before and ``target[r]`` after.
    source, target
        One box per rank; the boxes of each list cover the global array exactly once.
    """

    def __init__(self, comm: MPI.Intracomm, source: Sequence[Box], target: Sequence[Box]) -> None:
        self._comm = comm
        self._shape = box_shape(target[comm.rank])
        self._gives = [_common(source[comm.rank], box) for box in target]
        self._takes = [_common(target[comm.rank], box) for box in source]

    def __call__(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return this rank's part under the target boxes, given its part (without halo) under the source's."""
        parts = [array[piece] for piece in self._gives]
        outgoing = np.concatenate([part.ravel() for part in parts])
        result = np.empty(self._shape, array.dtype)
        counts = [result[piece].size for piece in self._takes]
        incoming = np.empty(sum(counts), array.dtype)
        self._comm.Alltoallv((outgoing, [part.size for part in parts]), (incoming, counts))
        ends = np.cumsum(counts)
        for piece, count, end in zip(self._takes, counts, ends, strict=True):
            result[piece] = incoming[end - count : end].reshape(result[piece].shape)
        return result


def _common(mine: Box, other: Box) -> Box:
    """Return the intersection of two boxes, as slices of the array that holds the first one."""
    starts = [max(a.start, b.start) for a, b in zip(mine, other, strict=True)]
    stops = [min(a.stop, b.stop) for a, b in zip(mine, other, strict=True)]
    return tuple(slice(lo - a.start, max(lo, hi) - a.start) for lo, hi, a in zip(starts, stops, mine, strict=True))
