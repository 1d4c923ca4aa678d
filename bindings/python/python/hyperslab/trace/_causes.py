"""Why it took so long: what each rank spent its time in, and who or what held it up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hyperslab.trace._awaits import AWAITS, HELD_UP, OUTSIDE, STATES, Segments
from hyperslab.trace._form import Kind
from hyperslab.trace._run import Call, Run

__all__ = ["Cause", "Link", "chain", "phrase", "rank_name", "shares", "slowest", "state_name"]

#: Ranks that a chain of causes names, at most.
LINKS_MAX = 5
#: A share of time below which nothing is said of it.
TOLD = 0.02


@dataclass(frozen=True)
class Link:
    """What a rank did for most of a time: its own rank, the state, its share, and who held it up (-1: nobody)."""

    rank: int
    state: int
    share: float
    peer: int
    what: str = ""
    """The object, or what the application did."""


@dataclass(frozen=True)
class Cause:
    """Why a rank needed its time: each link says what the one before waited for."""

    seconds: float
    links: tuple[Link, ...]


def shares(run: Run, window: tuple[float, float] | None = None) -> NDArray[np.float64]:
    """Seconds that each rank (row) spent in each state (column), in a time of the run."""
    low, high = window or (run.begin, run.end)
    table = np.zeros((len(run.ranks), len(STATES)))
    for row, rank in enumerate(run.ranks):
        segments = run.segments(rank)
        lengths = np.minimum(segments.end, high) - np.maximum(segments.begin, low)
        table[row] = np.bincount(segments.state, np.maximum(lengths, 0), len(STATES)) / 1e9
    return table


def _overlap(segments: Segments, begin: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much of each segment lies in windows that are in order and apart [ns]."""
    covered = np.concatenate([[0.0], np.cumsum(end - begin)])

    def before(time: NDArray[np.float64]) -> NDArray[np.float64]:
        at = np.searchsorted(begin, time, "right") - 1
        inside = np.clip(time - begin[np.maximum(at, 0)], 0, (end - begin)[np.maximum(at, 0)])
        return np.where(at < 0, 0.0, covered[np.maximum(at, 0)] + inside)

    return before(segments.end) - before(segments.begin)


def chain(run: Run, rank: int, window: tuple[float, float]) -> Cause:
    """What held a rank up in a time, what held up whoever did, and so on."""
    begin, end = np.array([window[0]]), np.array([window[1]])
    links: list[Link] = []
    seen = {rank}
    while len(links) < LINKS_MAX:
        segments = run.segments(rank)
        inside = _overlap(segments, begin, end)
        whole = float(inside.sum())
        if whole <= 0:
            break
        # All waits of one agreement are one; what the other does then, its own states tell.
        states = np.where(np.isin(segments.state, list(AWAITS.values())), Kind.AGREE, segments.state)
        keys = states.astype(np.int64) * (run.size + 1) + segments.peer + 1
        kinds, which = np.unique(keys, return_inverse=True)
        spent = np.bincount(which, inside)
        best = int(np.argmax(spent))
        state, peer = divmod(int(kinds[best]), run.size + 1)
        peer -= 1
        chosen = (which == best) & (inside > 0)
        links.append(Link(rank, state, float(spent[best]) / whole, peer, _named(run, rank, segments, chosen, inside)))
        if state not in HELD_UP or peer < 0 or peer in seen or peer not in run.present:
            break
        low, high = np.maximum(segments.begin[chosen], begin[0]), np.minimum(segments.end[chosen], end[-1])
        begin, end = low[high > low], high[high > low]
        if not len(begin):
            break
        seen.add(peer)
        rank = peer
    return Cause((window[1] - window[0]) / 1e9, tuple(links))


def _named(run: Run, rank: int, segments: Segments, chosen: NDArray[np.bool_], inside: NDArray[np.float64]) -> str:
    """What most of the chosen segments are about."""
    names: dict[str, float] = {}
    objects = run.objects(rank)
    for i in np.flatnonzero(chosen & (segments.span >= 0)):
        name = objects[int(segments.span[i])]
        names[name] = names.get(name, 0.0) + float(inside[i])
    return max(names, key=lambda name: (names[name], name), default="")


def slowest(run: Run, call: Call) -> int:
    """The rank that a call kept waiting for others longest; without any, the one that was busy longest."""
    table = shares(run, (call.begin, call.end))
    held = table[:, list(HELD_UP)].sum(axis=1)
    clients = [row for row, rank in enumerate(run.ranks) if rank < run.clients]
    busy = table[:, : Kind.WAIT].sum(axis=1)
    least = 0.1 * call.seconds
    by: Callable[[int], float] = (lambda row: held[row]) if held[clients].max() > least else (lambda row: busy[row])
    return run.ranks[max(clients, key=lambda row: (by(row), -row))]


def rank_name(run: Run, rank: int) -> str:
    """A rank, and whether it serves."""
    serves = rank >= run.clients or rank in run.servers
    return f"{'server' if serves else 'rank'} {rank}"


def state_name(state: int, what: str = "") -> str:
    """A state in words."""
    if state == Kind.APPLICATION:
        return f"the application ({what})" if what else "the application"
    if state == OUTSIDE:
        return "the program outside of hyperslab"
    return {
        Kind.PLAN: "planning",
        Kind.PACK: "copying (pack)",
        Kind.CODE: "encoding or decoding",
        Kind.SEND: "sending",
        Kind.RECEIVE: "receiving",
        Kind.READ: "reading from storage",
        Kind.WRITE: "writing to storage",
        Kind.SYNC: "sync (fsync)",
        Kind.WAIT: "waiting for its turn",
        Kind.AGREE: "agreeing",
        Kind.COMMIT: "publishing (commit)",
        Kind.METADATA: "small files and names (metadata)",
        AWAITS[Kind.PLAN]: "waiting for planning",
        AWAITS[Kind.SYNC]: "waiting for a sync (fsync)",
        AWAITS[Kind.COMMIT]: "waiting for publishing (commit)",
        AWAITS[Kind.METADATA]: "waiting for small files and names (metadata)",
    }[state]


def phrase(run: Run, cause: Cause) -> str:
    """A cause as a sentence: ``rank 3 waited 61 % for server 1, which spent 80 % of that in sync (fsync)``."""
    words: list[str] = []
    for number, link in enumerate(cause.links):
        who = rank_name(run, link.rank) if number == 0 else "which"
        share = f"{100 * link.share:.0f} %{'' if number == 0 else ' of that'}"
        if link.state in HELD_UP and link.peer >= 0:
            words.append(f"{who} waited {share} for {rank_name(run, link.peer)}")
        else:
            words.append(f"{who} spent {share} in {state_name(link.state, link.what)}")
    if len(cause.links) == 1 and cause.links[0].share < TOLD:
        return ""
    return ", ".join(words)
