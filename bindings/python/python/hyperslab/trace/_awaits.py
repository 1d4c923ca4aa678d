"""What ranks wait for in agreements: what another does meanwhile, which it does for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hyperslab.trace._form import KINDS, Kind

__all__ = ["AWAITED", "AWAITS", "HELD_UP", "OUTSIDE", "STATES", "Segments", "awaiting"]

#: What one rank does while others wait in an agreement, which has a name of its own.
AWAITED = (Kind.PLAN, Kind.SYNC, Kind.COMMIT, Kind.METADATA)
#: What a rank can be in: the kinds of spans (a wait is in the state that it waits for), waiting in an agreement for
#: what another one does, or outside of all calls.
STATES = (*KINDS, *(f"await {KINDS[kind]}" for kind in AWAITED), "outside")
#: The state of who waits for each of them.
AWAITS = {kind: len(KINDS) + number for number, kind in enumerate(AWAITED)}
OUTSIDE = STATES.index("outside")
#: States in which a rank is held up by another.
HELD_UP = (Kind.SEND, Kind.RECEIVE, Kind.AGREE, *AWAITS.values())


@dataclass(frozen=True)
class Segments:
    """Stretches of time of one rank, one after another without gaps; times in ns from the beginning of the run."""

    begin: NDArray[np.float64]
    end: NDArray[np.float64]
    state: NDArray[np.uint8]
    peer: NDArray[np.int64]
    """The rank that holds this one up, or -1."""
    span: NDArray[np.int64]
    """Index into the rank's spans, or -1."""

    def cut(self, places: NDArray[np.int64], times: NDArray[np.float64]) -> Segments:
        """The same, where some are cut at times within them, which are in order."""
        return Segments(
            np.insert(self.begin, places + 1, times),
            np.insert(self.end, places, times),
            np.insert(self.state, places + 1, self.state[places]),
            np.insert(self.peer, places + 1, self.peer[places]),
            np.insert(self.span, places + 1, self.span[places]),
        )


def awaiting(made: Segments, segments_of: Mapping[int, Callable[[int], Segments]]) -> Segments:
    """Name what a rank waits for in agreements by what the other one, whose segments are asked for, is at meanwhile."""
    agrees = made.state == Kind.AGREE
    # Of a rank that left no trace nothing is known.
    peers = [int(peer) for peer in np.unique(made.peer[agrees]) if peer in segments_of]
    for peer in peers:
        theirs = segments_of[peer](peer)
        # Who comes late is in code of the library, which is no plan for all.
        named = [kind for kind in AWAITED if kind != Kind.PLAN or peer == 0]
        does = np.isin(theirs.state, named)
        edges = np.unique(np.concatenate([theirs.begin[does], theirs.end[does]]))
        waits = np.flatnonzero((made.state == Kind.AGREE) & (made.peer == peer))
        low, high = np.searchsorted(edges, made.begin[waits], "right"), np.searchsorted(edges, made.end[waits], "left")
        counts = np.maximum(high - low, 0)
        firsts = np.cumsum(counts) - counts
        which = np.repeat(low - firsts, counts) + np.arange(int(counts.sum()))
        made = made.cut(np.repeat(waits, counts), edges[which])
        waits = np.flatnonzero((made.state == Kind.AGREE) & (made.peer == peer))
        at = np.searchsorted(theirs.begin, (made.begin[waits] + made.end[waits]) / 2, "right") - 1
        at = np.clip(at, 0, max(len(theirs.begin) - 1, 0))
        for kind in named:
            made.state[waits[theirs.state[at] == kind]] = AWAITS[kind]
    return made
