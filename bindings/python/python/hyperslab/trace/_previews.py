"""Previews of a run: what groups of ranks mostly did in stretches of time, from coarse to fine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hyperslab.trace._awaits import OUTSIDE, STATES, Segments
from hyperslab.trace._run import Run

__all__ = ["Level", "Previews", "previews"]

#: Most cells of the finest level.
CELLS_MAX = 1 << 23
BINS_MIN, BINS_MAX = 512, 4096
#: Ranks of one level that become one group of the next.
GROUP = 4
#: Stretches of time of the histogram.
HISTOGRAM = 2048
#: Low bits of a cell that are the state; the others are its share.
STATE_BITS = 5
#: The fullest share that a cell tells.
SHARE_MAX = 7


@dataclass(frozen=True)
class Level:
    """What groups of ranks (rows) mostly did in stretches of equal length (columns)."""

    group: int
    """Ranks of a row."""
    cells: NDArray[np.uint8]
    """The state in the low five bits, its share of the time in the high three."""


@dataclass(frozen=True)
class Previews:
    """Levels, the finest first, and the histogram of all ranks."""

    levels: tuple[Level, ...]
    histogram: NDArray[np.uint16]
    """How many of 65,535 parts of the ranks were in which state (column) in each stretch (row)."""


def _spread(segments: Segments, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """How long a rank was in each state (row) between edges [ns]."""
    table = np.zeros((len(STATES), len(edges) - 1))
    lengths = segments.end - segments.begin
    corners = np.append(segments.begin, segments.end[-1:])
    for state in np.unique(segments.state):
        until = np.concatenate([[0.0], np.cumsum(np.where(segments.state == state, lengths, 0.0))])
        table[state] = np.diff(np.interp(edges, corners, until))
    return table


def _cells(table: NDArray[np.float64], whole: float) -> NDArray[np.uint8]:
    """The state that took most in each stretch, and its share; being outside counts half, so that calls are seen."""
    seen = table.copy()
    seen[OUTSIDE] *= 0.5
    state = np.argmax(seen, axis=0)
    share = np.take_along_axis(table, state[None], axis=0)[0] / whole
    tone = np.clip(np.rint(share * SHARE_MAX), 0, SHARE_MAX).astype(np.uint8)
    return (state.astype(np.uint8) | (tone << STATE_BITS)).astype(np.uint8)


def bins_of(ranks: int) -> int:
    """Stretches of time of the finest level: a power of two."""
    bins = BINS_MAX
    while bins > BINS_MIN and bins * ranks > CELLS_MAX:
        bins //= 2
    return bins


def previews(run: Run, bins: int | None = None) -> Previews:
    """Previews of a run, rank by rank, so that only one table of each level is held at a time."""
    bins = bins_of(len(run.ranks)) if bins is None else bins
    edges = np.linspace(run.begin, run.end, bins + 1)
    width = max((run.end - run.begin) / bins, 1e-9)
    groups = [1]
    while groups[-1] < len(run.ranks):
        groups.append(groups[-1] * GROUP)
    rows: list[list[NDArray[np.uint8]]] = [[] for _ in groups]
    sums = [np.zeros((len(STATES), bins)) for _ in groups]
    coarse = min(HISTOGRAM, bins)
    histogram = np.zeros((len(STATES), coarse))
    for number, rank in enumerate(run.ranks):
        table = _spread(run.segments(rank), edges)
        histogram += table.reshape(len(STATES), coarse, -1).sum(axis=2)
        last = number + 1 == len(run.ranks)
        for level, group in enumerate(groups):
            if level:
                sums[level] += table
            members = (number % group) + 1
            if members == group or last:
                rows[level].append(_cells(sums[level] if level else table, width * members))
                sums[level][:] = 0
    share = histogram.T / (width * bins / coarse * len(run.ranks))
    levels = tuple(Level(group, np.stack(cells)) for group, cells in zip(groups, rows, strict=True))
    return Previews(levels, np.clip(np.rint(share * 65535), 0, 65535).astype(np.uint16))
