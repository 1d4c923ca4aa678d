"""A recording put in order: ranks on one clock, and for each the state that it was in at any time."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperslab.errors import InvalidError, NotFoundError
from hyperslab.trace._awaits import HELD_UP, OUTSIDE, STATES, Segments, awaiting
from hyperslab.trace._check import check_same_run
from hyperslab.trace._form import NONE, Block, Kind, blocks

__all__ = ["HELD_UP", "OUTSIDE", "STATES", "Call", "Run", "Segments", "load", "pick"]

#: Stretches of all ranks that are kept, of 33 B each; what is beyond is found anew when it is needed.
SEGMENTS_KEPT = 1 << 24
#: Strategies in which no rank serves another.
ALONE = ("independent", "data-sieving")
#: What covers what, where several spans are there at once: from the bottom to the top.
PAINTED = (
    (Kind.AGREE,),
    (Kind.WAIT,),
    (Kind.READ, Kind.WRITE),
    (Kind.PLAN, Kind.PACK, Kind.CODE, Kind.COMMIT),
    (Kind.SYNC, Kind.METADATA),
)


@dataclass
class Call:
    """A collective call, or a stage of a simulation."""

    number: int
    what: str
    begin: float
    """When the first rank came [ns]."""
    end: float
    """When the last rank left [ns]."""
    about: dict[str, Any] = field(default_factory=dict)
    """What rank 0 tells: strategy, servers, arrays, bytes, perhaps what was predicted."""
    failed: str | None = None

    @property
    def seconds(self) -> float:
        """From when the first rank came to when the last left [s]."""
        return (self.end - self.begin) / 1e9


class Run:
    """What was recorded of one communicator, or in one simulation."""

    def __init__(self, name: str, found: list[Block]) -> None:
        first = found[0].header
        self.name = name
        self.simulated = bool(first["simulated"])
        self.size = int(first["size"])
        self.clients = int(first["clients"])
        self._blocks: dict[int, list[Block]] = {}
        for block in found:
            check_same_run(first, block.header)
            self._blocks.setdefault(block.rank, []).append(block)
        self.ranks = sorted(self._blocks)
        self.present = frozenset(self.ranks)
        self.cut_off = sorted({block.rank for block in found if not block.whole})
        self.dropped = sum(int(block.header["dropped"]) for block in found)
        self.count = sum(len(block.spans) for block in found)
        self.span_ns = float(np.median([block.header["span_ns"] for block in found]))
        self.encoding_ns = sum(int(block.header.get("encoding_ns", 0)) for block in found)
        self.origin = min(int(block.header["begin_ns"]) for block in found)
        self.offsets, self.uncertainty = self._clocks()
        self.begin = min(self._time(b.rank, b.header["begin_ns"]) for b in found)
        self.end = max(self._time(b.rank, b.header["end_ns"]) for b in found)
        self.calls = self._calls()
        self._segments: dict[int, Segments] = {}
        self._kept = 0

    # ---- clocks ------------------------------------------------------------------------------------------------

    def host(self, rank: int) -> str:
        """The host whose clock a rank reads."""
        return str(self._blocks[rank][0].header["host"])

    def _clocks(self) -> tuple[dict[str, float], dict[str, float]]:
        """By how much the clock of each host is ahead of that of rank 0, and how well that is known [ns].

        A rank comes to an agreement before rank 0 decides, and leaves it after that: each agreement bounds the
        difference of two clocks from both sides.
        """
        hosts = {self.host(rank) for rank in self.ranks}
        offsets, uncertainty = dict.fromkeys(hosts, 0.0), dict.fromkeys(hosts, 0.0)
        if 0 not in self._blocks or len(hosts) == 1:
            return offsets, uncertainty
        decided = {int(s["round"]): (int(s["begin"]), int(s["end"])) for s in self._decisions()}
        bounds = {host: [-np.inf, np.inf] for host in hosts if host != self.host(0)}
        for rank in self.ranks:
            of = bounds.get(self.host(rank))
            if of is None:
                continue
            for block in self._blocks[rank]:
                for span in block.spans[block.spans["kind"] == Kind.AGREE]:
                    if int(span["round"]) in decided:
                        begin, end = decided[int(span["round"])]
                        of[0] = max(of[0], int(span["begin"]) - begin)
                        of[1] = min(of[1], int(span["end"]) - end)
        for host, (low, high) in bounds.items():
            if np.isfinite(low) and np.isfinite(high):
                offsets[host], uncertainty[host] = (low + high) / 2, max(high - low, 0) / 2
        return offsets, uncertainty

    def _decisions(self) -> NDArray[Any]:
        """Spans in which rank 0 decided."""
        spans = np.concatenate([block.spans for block in self._blocks[0]])
        decides = ((spans["kind"] == Kind.PLAN) | (spans["kind"] == Kind.COMMIT)) & (spans["round"] > 0)
        return spans[decides & (spans["step"] == NONE)]

    def _time(self, rank: int, stamp: float) -> float:
        return stamp - self.origin - self.offsets[self.host(rank)]

    # ---- calls -------------------------------------------------------------------------------------------------

    def _calls(self) -> list[Call]:
        calls: dict[int, Call] = {}
        for rank in self.ranks:
            for block in self._blocks[rank]:
                head = block.header
                if block.call is None:
                    continue
                begin, end = self._time(rank, head["begin_ns"]), self._time(rank, head["end_ns"])
                if rank >= self.clients:
                    # A dedicated server is in every call from the end of the one before.
                    begin = np.inf
                call = calls.setdefault(block.call, Call(block.call, "", np.inf, end))
                call.begin, call.end = min(call.begin, begin), max(call.end, end)
                call.what = call.what or head["what"]
                call.failed = call.failed or head.get("failed")
                if "strategy" in head:
                    call.about = head
        return sorted(
            (call for call in calls.values() if np.isfinite(call.begin)), key=lambda call: (call.begin, call.number)
        )

    @property
    def servers(self) -> set[int]:
        """Ranks that were servers in some call, and of those that only serve the ones that left a trace."""
        of_calls = {
            int(rank)
            for call in self.calls
            if call.about.get("strategy") not in ALONE
            for rank in call.about.get("servers", ())
        }
        return of_calls | {rank for rank in self.ranks if rank >= self.clients}

    @property
    def seconds(self) -> float:
        """From the first beginning to the last end [s]."""
        return (self.end - self.begin) / 1e9

    def extents(self, rank: int) -> list[tuple[Call, float, float]]:
        """Calls of a rank, and when it came to each and left it [ns]."""
        named = {call.number: call for call in self.calls}
        found: dict[int, tuple[float, float]] = {}
        for block in self._blocks[rank]:
            if block.call in named:
                begin, end = self._time(rank, block.header["begin_ns"]), self._time(rank, block.header["end_ns"])
                before = found.get(block.call, (begin, end))
                found[block.call] = (min(begin, before[0]), max(end, before[1]))
        return [(named[number], begin, end) for number, (begin, end) in found.items()]

    # ---- ranks -------------------------------------------------------------------------------------------------

    @lru_cache(maxsize=64)  # noqa: B019 (a run lives as long as the command)
    def spans(self, rank: int) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """Spans of a rank, their beginnings and ends on the common clock [ns], and the number of the call of each."""
        mine = self._blocks[rank]
        spans = np.concatenate([block.spans for block in mine])
        lengths = [len(block.spans) for block in mine]
        numbers = np.repeat([-1 if block.call is None else block.call for block in mine], lengths)
        shift = np.int64(self.origin)
        offset = self.offsets[self.host(rank)]
        begin = (spans["begin"].astype(np.int64) - shift).astype(np.float64) - offset
        end = (spans["end"].astype(np.int64) - shift).astype(np.float64) - offset
        return spans, begin, end, numbers.astype(np.int64)

    @lru_cache(maxsize=64)  # noqa: B019
    def objects(self, rank: int) -> list[str]:
        """What each span of a rank is about: an object, or the name of what the application does."""
        names: list[str] = []
        for block in self._blocks[rank]:
            known = [*block.header["objects"], ""]
            index = np.minimum(block.spans["object"], len(known) - 1)
            names.extend(known[i] for i in index)
        return names

    @cached_property
    def arrivals(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
        """Of each agreement: its number, when the last rank came [ns], and which that was."""
        rounds, times, ranks = [], [], []
        for rank in self.ranks:
            for block in self._blocks[rank]:
                found = block.spans[block.spans["kind"] == Kind.AGREE]
                rounds.append(found["round"].astype(np.int64))
                begins = (found["begin"].astype(np.int64) - np.int64(self.origin)).astype(np.float64)
                times.append(begins - self.offsets[self.host(rank)])
                ranks.append(np.full(len(found), rank))
        if not rounds:
            return np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64)
        number, time, rank_of = np.concatenate(rounds), np.concatenate(times), np.concatenate(ranks)
        order = np.lexsort((time, number))
        last = np.flatnonzero(np.diff(number[order], append=np.int64(-1)) != 0)
        return number[order][last], time[order][last], rank_of[order][last]

    def decided(self, number: int) -> float | None:
        """When rank 0 had decided in an agreement [ns]."""
        return self._decided.get(number)

    @cached_property
    def _decided(self) -> dict[int, float]:
        if 0 not in self._blocks:
            return {}
        return {int(span["round"]): self._time(0, int(span["end"])) for span in self._decisions()}

    def segments(self, rank: int) -> Segments:
        """The states of a rank, from the beginning of the run to its end."""
        known = self._segments.get(rank)
        if known is not None:
            return known
        made = awaiting(self._unnamed(rank), dict.fromkeys(self._blocks, self._unnamed))
        if self._kept + len(made.begin) <= SEGMENTS_KEPT:
            self._segments[rank] = made
            self._kept += len(made.begin)
        return made

    @lru_cache(maxsize=64)  # noqa: B019
    def _unnamed(self, rank: int) -> Segments:
        """The states of a rank, where waits in agreements have no names yet."""
        spans, begin, end, _ = self.spans(rank)
        kind = spans["kind"]
        extents = [
            (self._time(rank, block.header["begin_ns"]), self._time(rank, block.header["end_ns"]))
            for block in self._blocks[rank]
            if block.call is not None
        ]
        inside = np.array(extents, np.float64).reshape(-1, 2)
        edges = np.unique(np.concatenate([begin, end, inside.ravel(), [self.begin, self.end]]))
        owner = np.full(len(edges) - 1, -1)
        state = np.full(len(edges) - 1, OUTSIDE, np.uint8)
        said = np.flatnonzero(kind == Kind.APPLICATION)
        _paint(owner, edges, begin[said], end[said], said)
        state[owner >= 0] = Kind.APPLICATION
        covered = np.zeros(len(edges) - 1, np.int64)
        _paint(covered, edges, inside[:, 0], inside[:, 1], np.ones(len(inside), np.int64))
        owner[covered > 0], state[covered > 0] = -1, Kind.PLAN
        for kinds in PAINTED:
            chosen = np.isin(kind, kinds)
            if kinds[0] in (Kind.READ, Kind.SYNC):
                # Steps are told of by waits; what is no step is a call that blocks, or what rank 0 does for all.
                chosen &= spans["step"] == NONE
            found = np.flatnonzero(chosen)
            _paint(owner, edges, begin[found], end[found], found)
        known = owner >= 0
        state[known] = spans["of"][owner[known]]
        peer = np.full(len(owner), -1)
        peer[known] = np.where(spans["peer"][owner[known]] == NONE, -1, spans["peer"][owner[known]].astype(np.int64))
        # Which steps were derived when says less than that the rank was at it.
        owner[state == Kind.PLAN] = -1
        changed = (np.diff(owner) != 0) | (np.diff(state) != 0)
        starts = np.concatenate([[0], np.flatnonzero(changed) + 1])
        stops = np.concatenate([starts[1:], [len(owner)]])
        made = Segments(edges[starts], edges[stops], state[starts], peer[starts], owner[starts])
        return self._split_agreements(rank, made, spans)

    def _split_agreements(self, rank: int, made: Segments, spans: NDArray[Any]) -> Segments:
        """Until the last rank has come, an agreement waits for that; then for rank 0 to decide."""
        agrees = np.flatnonzero(made.state == Kind.AGREE)
        number, time, last = self.arrivals
        if not len(agrees) or not len(number):
            return made
        at = np.searchsorted(number, spans["round"][made.span[agrees]])
        at = np.minimum(at, len(number) - 1)
        arrival, who = time[at], last[at]
        peer = made.peer.copy()
        before = arrival >= made.end[agrees]
        within = (arrival > made.begin[agrees]) & ~before
        peer[agrees[before | within]] = who[before | within]
        after = 0 if rank else -1
        peer[agrees[~before & ~within]] = after
        peer[peer == rank] = -1
        cut = agrees[within]
        halves = Segments(made.begin, made.end, made.state, peer, made.span).cut(cut, arrival[within])
        # The second half of each.
        halves.peer[cut + np.arange(len(cut)) + 1] = after
        return halves


def _paint(
    owner: NDArray[Any],
    edges: NDArray[np.float64],
    begin: NDArray[np.float64],
    end: NDArray[np.float64],
    number: NDArray[Any],
) -> None:
    """Give stretches between edges to spans that begin and end at some of them; later ones win."""
    low, high = np.searchsorted(edges, begin), np.searchsorted(edges, end)
    lengths = high - low
    total = int(lengths.sum())
    if total == 0:
        return
    firsts = np.cumsum(lengths) - lengths
    owner[np.repeat(low - firsts, lengths) + np.arange(total)] = np.repeat(number, lengths)


def load(directory: Path) -> list[Run]:
    """Runs of a directory, the one with most spans first."""
    found: dict[str, list[Block]] = {}
    for block in blocks(directory):
        found.setdefault(str(block.header["run"]), []).append(block)
    if not found:
        message = (
            f"'{directory}' holds no call that is over: all that its files have is the beginning of a block\n"
            "  hint: a rank writes a block down when a call ends"
        )
        raise NotFoundError(message)
    runs = [Run(name, blocks_of) for name, blocks_of in found.items()]
    return sorted(runs, key=lambda run: (-run.count, run.name))


def pick(runs: list[Run], name: str | None) -> Run:
    """The run of this name; the one with most spans without."""
    for run in runs:
        if name is None or run.name == name:
            return run
    message = f"the trace has no run '{name}'\n  hint: it has {', '.join(run.name for run in runs)}"
    raise InvalidError(message)
