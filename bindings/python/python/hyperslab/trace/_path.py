"""The critical path: what, from the end backwards, nothing else could have shortened."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hyperslab.trace._awaits import AWAITS, OUTSIDE, Segments
from hyperslab.trace._form import NONE, Kind
from hyperslab.trace._run import Run

__all__ = ["Stretch", "critical_path", "ranks_of", "states_of"]

#: States in which a rank, and nobody else, gets on with it.
BUSY = (Kind.PLAN, Kind.PACK, Kind.CODE, Kind.READ, Kind.WRITE, Kind.SYNC, Kind.COMMIT, Kind.METADATA)
#: Stretches after which a path is given up, so that a trace that contradicts itself comes to an end.
STRETCHES_MAX = 200_000


@dataclass(frozen=True)
class Stretch:
    """A part of the critical path; times in ns from the beginning of the run."""

    rank: int
    begin: float
    end: float
    state: int
    span: int
    """Index into the rank's spans, or -1."""


class _Messages:
    """Finds the other end of a message: the k-th from a to b is the k-th that b receives from a, in each call."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @lru_cache(maxsize=4096)  # noqa: B019 (lives as long as one path)
    def of(self, rank: int, kind: int, peer: int, call: int) -> NDArray[np.int64]:
        """Messages of a rank with a peer, in the order in which they were handed over."""
        spans, _, _, calls = self._run.spans(rank)
        found = np.flatnonzero((spans["kind"] == kind) & (spans["peer"] == peer) & (calls == call))
        return found[np.lexsort((spans["step"][found], spans["lane"][found]))]

    def other(self, rank: int, index: int) -> tuple[int, int] | None:
        """Rank and index of the other end."""
        spans, _, _, calls = self._run.spans(rank)
        kind, peer, call = int(spans["kind"][index]), int(spans["peer"][index]), int(calls[index])
        if peer not in self._run.present:
            return None
        mine = self.of(rank, kind, peer, call)
        theirs = self.of(peer, Kind.RECEIVE if kind == Kind.SEND else Kind.SEND, rank, call)
        place = int(np.flatnonzero(mine == index)[0])
        return (peer, int(theirs[place])) if place < len(theirs) else None


def _step_of(run: Run, rank: int, wait: int) -> int | None:
    """The step that a wait was for."""
    spans, _, _, calls = run.spans(rank)
    waits = spans[wait]
    if int(waits["kind"]) != Kind.WAIT:
        return wait
    if int(waits["step"]) == NONE:
        return None
    same = (spans["step"] == waits["step"]) & (spans["lane"] == waits["lane"]) & (calls == calls[wait])
    found = np.flatnonzero(same & (spans["kind"] == waits["of"]))
    return int(found[0]) if len(found) else None


def critical_path(run: Run) -> list[Stretch]:
    """From the end of the last rank back to the beginning.

    On a rank, the path follows what it was busy with; where it waited for a step of its own, that step from its
    beginning; where a message kept it, the other end where that was busy last, or when that came later; in an
    agreement, the rank that came last, and then rank 0.
    """
    messages = _Messages(run)
    ends = {rank: _last_call(run, rank) for rank in run.ranks if rank < run.clients}
    rank = max(ends, key=lambda number: (ends[number], -number), default=run.ranks[0])
    at = ends.get(rank, run.end)
    path: list[Stretch] = []
    while at > run.begin and len(path) < STRETCHES_MAX:
        segments = run.segments(rank)
        i = int(np.searchsorted(segments.begin, at, "left")) - 1
        if i < 0:
            break
        rank, at, stretch = _back(run, messages, segments, (rank, i, at))
        if stretch is not None and stretch.end > stretch.begin:
            path.append(stretch)
    path.reverse()
    return path


def _last_call(run: Run, rank: int) -> float:
    segments = run.segments(rank)
    busy = np.flatnonzero(segments.state != OUTSIDE)
    return float(segments.end[busy[-1]]) if len(busy) else run.begin


def _back(
    run: Run, messages: _Messages, segments: Segments, where: tuple[int, int, float]
) -> tuple[int, float, Stretch | None]:
    """One stretch back: the rank and time to go on from, and the stretch."""
    rank, i, at = where
    begin, state = float(segments.begin[i]), int(segments.state[i])
    peer, span = int(segments.peer[i]), int(segments.span[i])
    if state == Kind.AGREE or state in AWAITS.values():
        return _back_agreement(run, segments, where)
    if state in (Kind.SEND, Kind.RECEIVE) and peer in run.present:
        until = _busy_until(run.segments(peer), begin, at)
        if until is not None:
            return peer, until, Stretch(rank, until, at, state, span)
    step = _step_of(run, rank, span) if span >= 0 else None
    if step is None or state == Kind.APPLICATION:
        return rank, begin, Stretch(rank, begin, at, state, span)
    handed = float(run.spans(rank)[1][step])
    if state in (Kind.SEND, Kind.RECEIVE) and peer >= 0:
        other = messages.other(rank, step)
        if other is not None:
            theirs = float(run.spans(other[0])[1][other[1]])
            if begin < theirs < at:
                return other[0], theirs, Stretch(rank, theirs, at, state, step)
        return rank, begin, Stretch(rank, begin, at, state, step)
    # A step that ran while the rank did other things is followed to its own beginning; what is no step, the rank did.
    is_step = int(run.spans(rank)[0]["step"][step]) != NONE
    back = max(handed, _synced_until(segments, i, handed, state)) if is_step and handed < at else begin
    return rank, back, Stretch(rank, back, at, state, step)


def _synced_until(segments: Segments, i: int, low: float, state: int) -> float:
    """When the last sync ended that a read or write stood behind, which was handed over at `low`."""
    while state in (Kind.READ, Kind.WRITE) and i > 0 and segments.end[i - 1] > low:
        i -= 1
        if int(segments.state[i]) == Kind.SYNC:
            return float(segments.end[i])
    return low


def _busy_until(segments: Segments, low: float, high: float) -> float | None:
    """When a rank was at work last between two times: it did what the other end of its messages waited for."""
    i = int(np.searchsorted(segments.begin, high, "left")) - 1
    while i >= 0 and segments.end[i] > low:
        if int(segments.state[i]) in BUSY:
            return min(float(segments.end[i]), high)
        i -= 1
    return None


def _back_agreement(run: Run, segments: Segments, where: tuple[int, int, float]) -> tuple[int, float, Stretch | None]:
    rank, i, at = where
    begin, peer, span = float(segments.begin[i]), int(segments.peer[i]), int(segments.span[i])
    number = int(run.spans(rank)[0]["round"][span])
    decided = run.decided(number)
    if peer == 0 and rank != 0 and decided is not None and begin < decided < at and 0 in run.present:
        return 0, decided, Stretch(rank, decided, at, Kind.AGREE, span)
    if peer > 0 or (peer == 0 and decided is not None and decided >= at):
        # The last to come holds up all others; what it did before is on the path.
        came = min(float(segments.end[i]), at)
        if peer in run.present and came > begin:
            theirs = run.segments(peer)
            j = int(np.searchsorted(theirs.begin, came, "left")) - 1
            if j >= 0 and not (theirs.state[j] == Kind.AGREE and int(theirs.peer[j]) == rank):
                return peer, came, None if came == at else Stretch(rank, came, at, Kind.AGREE, span)
    return rank, begin, Stretch(rank, begin, at, Kind.AGREE, span)


def states_of(path: list[Stretch]) -> dict[int, float]:
    """Seconds of a path by state, most first."""
    spent: dict[int, float] = {}
    for stretch in path:
        spent[stretch.state] = spent.get(stretch.state, 0.0) + (stretch.end - stretch.begin) / 1e9
    return dict(sorted(spent.items(), key=lambda item: -item[1]))


def ranks_of(path: list[Stretch], state: int) -> list[tuple[int, float]]:
    """Ranks on which a path is in a state, and how long [s], most first."""
    spent: dict[int, float] = {}
    for stretch in path:
        if stretch.state == state:
            spent[stretch.rank] = spent.get(stretch.rank, 0.0) + (stretch.end - stretch.begin) / 1e9
    return sorted(spent.items(), key=lambda item: (-item[1], item[0]))
