"""What ``hyperslab bench peers`` found: medians and spread, whether a row meets what it should, and tables."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hyperslab._quantities import number, said_bytes
from hyperslab.bench._peers_libraries import missing
from hyperslab.bench._peers_rows import LARGE_BYTES, Row

__all__ = ["Measured", "Times", "notes", "row_tables", "summary_table"]

#: So much faster than the best peer meets what a row should, however far the limit is.
PEER_FACTOR = 1.3
#: A first call may take so much longer than later ones, of large arrays as a factor, of others on top [s].
FIRST_FACTOR, FIRST_SECONDS = 1.5, 0.005
#: Cores of other programs, or stolen by a host, above which a run was disturbed.
DISTURBED_CORES = 0.1


@dataclass(frozen=True)
class Times:
    """Median, fastest and slowest [s]."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Times:
        """Of some times."""
        return cls(statistics.median(seconds), min(seconds), max(seconds))


@dataclass
class Measured:
    """A row on a number of ranks: its later calls, and its first ones by the names of ways."""

    row: Row
    ranks: int
    later: dict[str, Any]
    firsts: dict[str, list[dict[str, Any]]]
    notes: list[str] = field(default_factory=list)

    def way(self, name: str) -> dict[str, Any]:
        """What was found of a way."""
        return next(one for one in self.later["ways"] if one["name"] == name)

    def names(self, role: str) -> list[str]:
        """Names of the ways with a role."""
        return [one["name"] for one in self.later["ways"] if one["role"] == role]

    def times(self, name: str) -> Times:
        """Time of a later call: of many calls the median of each repetition, of many shapes the geometric mean."""
        rounds = self.way(name)["seconds"]
        reduce = statistics.geometric_mean if self.row.calls == "shapes" else statistics.median
        return Times.of([reduce(one) for one in rounds])

    def first(self, name: str) -> Times | None:
        """Time of a first call."""
        found = [one["ways"][0]["seconds"][0][0] for one in self.firsts.get(name, [])]
        return Times.of(found) if found else None

    def beside_first(self, name: str) -> float:
        """What a later call takes that does the same as the first one."""
        rounds = self.way(name)["seconds"]
        if self.row.calls != "shapes":
            return self.times(name).median
        return statistics.median(one[len(one) // 2] for one in rounds)

    def memory(self, name: str) -> tuple[int, int]:
        """Most memory of a rank and of the node, in first and later calls [B]."""
        found = [self.way(name)["memory"], *(one["ways"][0]["memory"] for one in self.firsts.get(name, []))]
        return max(one["rank"] for one in found), max(one["node"] for one in found)

    @property
    def ours(self) -> str:
        """The name of this package's way."""
        return self.names("ours")[0]

    @property
    def best_peer(self) -> str | None:
        """The peer with the least median, if there is any."""
        return min(self.names("peer"), key=lambda name: self.times(name).median, default=None)

    @property
    def of_peer(self) -> float | None:
        """How many times faster than the best peer."""
        best = self.best_peer
        return None if best is None else self.times(best).median / self.times(self.ours).median

    @property
    def of_limit(self) -> float | None:
        """How many times longer than plain code."""
        limits = [self.times(name).median for name in self.names("limit")]
        return self.times(self.ours).median / min(limits) if limits else None

    @property
    def is_fast(self) -> bool:
        """Whether later calls are fast beside the best peer, or near the limit.

        Where a peer is faster than plain code, the limit is what that peer takes.
        """
        if (self.of_peer or 0.0) >= PEER_FACTOR:
            return True
        near = max(self.of_limit or math.inf, 1 / self.of_peer if self.of_peer else 0.0)
        return near <= self.row.limit

    @property
    def is_fast_at_once(self) -> bool:
        """Whether the first call is near later ones."""
        first = self.first(self.ours)
        if first is None:
            return True
        later = self.beside_first(self.ours)
        if self.later["bytes"] >= LARGE_BYTES:
            return first.median <= FIRST_FACTOR * later
        return first.median <= later + FIRST_SECONDS

    @property
    def shapes_met(self) -> tuple[int, int] | None:
        """Of many shapes: at how many later calls are fast, and how many there are."""
        if self.row.calls != "shapes":
            return None

        def medians(role: str) -> list[list[float]]:
            rounds = [self.way(name)["seconds"] for name in self.names(role)]
            return [[statistics.median(times) for times in zip(*one, strict=True)] for one in rounds]

        ours = medians("ours")[0]
        peers, limits = ([min(column) for column in zip(*medians(role), strict=True)] for role in ("peer", "limit"))
        met = sum(
            PEER_FACTOR * own <= peer < math.inf or own <= self.row.limit * min(limit, peer)
            for own, peer, limit in zip(ours, peers or [math.inf] * len(ours), limits, strict=True)
        )
        return met, len(ours)

    @property
    def load(self) -> dict[str, float]:
        """Cores of others, and stolen ones, in the mean of all launches."""
        launches = [self.later["load"], *(one["load"] for firsts in self.firsts.values() for one in firsts)]
        seconds = sum(one["seconds"] for one in launches)
        return {key: sum(one[key] * one["seconds"] for one in launches) / seconds for key in ("others", "stolen")}

    @property
    def disturbances(self) -> list[str]:
        """What else happened."""
        load = self.load
        found = [*self.notes]
        if load["others"] > DISTURBED_CORES:
            found.append(f"other programs took {number(load['others'], 2)} cores")
        if load["stolen"] > DISTURBED_CORES:
            found.append(f"the host took {number(load['stolen'], 2)} cores away")
        return found

    def to_json(self) -> dict[str, Any]:
        """All that was measured, and what is said of it."""
        said: dict[str, Any] = {"fast": self.is_fast, "fast_at_once": self.is_fast_at_once}
        said |= {"of_limit": self.of_limit, "of_peer": self.of_peer, "best_peer": self.best_peer}
        said |= {"shapes_met": self.shapes_met, "disturbances": self.disturbances}
        told = {"row": self.row.name, "ranks": self.ranks, "later": self.later, "firsts": self.firsts}
        return told | said


def notes(found: Iterable[Measured]) -> list[str]:
    """Who could not take part, and what disturbed the run."""
    lines = [f"{name}: {reason}" for name, reason in missing().items()]
    for one in found:
        lines += [f"disturbed: {one.row.name}, {one.ranks} ranks: {what}" for what in one.disturbances]
    return lines


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else number(1e3 * seconds)


def _ratio(value: float | None) -> str:
    return "-" if value is None else number(value, 2)


def _met(*, met: bool) -> str:
    return "yes" if met else "NO"


def summary_table(found: Sequence[Measured]) -> str:
    """A line for each row and number of ranks; all times in ms."""
    head = f"{'row':34}{'ranks':>5}{'first':>9}{'later':>9}  {'best peer':24}{'first':>9}{'later':>9}{'limit':>9}"
    head += f"{'of limit':>9}{'of peer':>9}{'rank':>10}{'node':>10}{'fast':>6}{'first':>7}"
    lines = [head]
    for one in found:
        best, limit = one.best_peer, next(iter(one.names("limit")), None)
        ours, first = one.times(one.ours), one.first(one.ours)
        peer_first = one.first(best) if best else None
        rank, node = one.memory(one.ours)
        line = f"{one.row.name:34}{one.ranks:5}{_ms(first.median if first else None):>9}{_ms(ours.median):>9}  "
        line += f"{best or '-':24}{_ms(peer_first.median if peer_first else None):>9}"
        line += (
            f"{_ms(one.times(best).median if best else None):>9}{_ms(one.times(limit).median if limit else None):>9}"
        )
        line += f"{_ratio(one.of_limit):>9}{_ratio(one.of_peer):>9}{said_bytes(rank):>10}{said_bytes(node):>10}"
        line += f"{_met(met=one.is_fast):>6}{_met(met=one.is_fast_at_once):>7}"
        lines.append(line + ("  disturbed" if one.disturbances else ""))
    lines.append(
        "times in ms, medians; of limit: how many times longer; of peer: how many times faster than the best one"
    )
    lines.append("rank, node: memory over the arrays of the user, of one rank and of all ranks together")
    lines.append(
        f"fast: {PEER_FACTOR} times faster than the best peer, or within 1.3 of the limit (Zarr: 1.5); "
        f"first: within {FIRST_FACTOR} of later calls from 64 MB on, else at most {1e3 * FIRST_SECONDS:.0f} ms longer"
    )
    return "\n".join(lines)


def _said(spread: Times | None) -> str:
    if spread is None:
        return f"{'-':>9} {'':20}"
    return f"{_ms(spread.median):>9} {f'[{_ms(spread.low)}, {_ms(spread.high)}]':20}"


def row_tables(found: Sequence[Measured]) -> str:
    """A table for each row: each way with the spread of its times and its memory."""
    lines = []
    for one in found:
        shapes = one.shapes_met
        met = f", {shapes[0]} of {shapes[1]} shapes fast" if shapes else ""
        title = f"{one.row.name}, {one.ranks} ranks, {said_bytes(one.later['bytes'])} a call{met}"
        lines.append(f"{title:70}{'rank':>10}{'node':>10}")
        lines.append(f"  {'':24}{'first [ms]':>9} {'':20}{'later [ms]':>9}")
        for way in one.later["ways"]:
            rank, node = one.memory(way["name"])
            line = f"  {way['name']:24}{_said(one.first(way['name']))}{_said(one.times(way['name']))}"
            lines.append(f"{line}{said_bytes(rank):>10}{said_bytes(node):>10}")
        hints = [
            " ".join(f"{key}={value}" for key, value in way["hints"].items())
            for way in one.later["ways"]
            if way["hints"]
        ]
        lines += [f"  best hints: {text}" for text in hints]
        lines.append("")
    return "\n".join(lines).rstrip()
