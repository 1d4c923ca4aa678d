"""The ways in which each case is done: a grid that is fixed here, whatever the library itself would consider.

Of strategies x servers {1, 2, half of the ranks, all} x subchunks {256 KiB, 1 MiB, 2 MiB, 4 MiB, 16 MiB}, those that
can matter are kept. A subchunk is a part of a raw file; chunks of Zarr move whole, so there only strategies and servers
differ. Of the sizes, each strategy gets those at which its kind of method is usually run. That makes 19 ways for raw
files and 10 for Zarr, fewer where some are the same on few ranks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hyperslab._quantities import said_bytes
from hyperslab.bench._cases import Case

__all__ = ["CHOSEN", "TWIN", "Way", "grid", "in_turns", "why_not_mpiio"]

#: The library with its own choice, and the very same once more, which tells how large noise is.
CHOSEN, TWIN = "chosen", "chosen again"

KIB, MIB = 1 << 10, 1 << 20
#: Most runs of a file where each rank moves its own: beyond, this cannot be the best, and would take minutes.
MOST_CALLS = {"write": 1 << 18, "read": 1 << 22}
#: Most runs that MPI-IO is told of; it makes lists of them, of 16 B and more for each.
MOST_MPIIO_RUNS = 1 << 21


@dataclass(frozen=True)
class Way:
    """One way to do a case: by this library with options for opening, or by MPI-IO with hints."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)
    hints: dict[str, str] | None = None


def _forced(strategy: str, servers: int | None = None, subchunk: int | None = None, exchange: str | None = None) -> Way:
    options = {"strategy": strategy, "servers": servers, "subchunk_bytes": subchunk, "exchange": exchange}
    words = [strategy] if exchange != "sharers" else [f"{strategy} among sharers"]
    if servers is not None:
        words.append(f"{servers} server{'s' * (servers > 1)}")
    if subchunk is not None:
        words.append(said_bytes(subchunk))
    return Way(", ".join(words), {name: value for name, value in options.items() if value is not None})


def _raw(ranks: int) -> Iterator[Way]:
    """Ways for raw files."""
    for size in (MIB, 4 * MIB):
        yield _forced("root-gather", None, size)
    for size in (MIB, 4 * MIB, 16 * MIB):
        yield _forced("independent", None, size)
    yield _forced("data-sieving", None, 4 * MIB)
    for servers, size in ((2, 4 * MIB), (ranks, MIB), (ranks, 4 * MIB), (ranks, 16 * MIB)):
        yield _forced("two-phase", servers, size, "all")
    yield _forced("two-phase", None, None, "sharers")
    yield _forced("server-directed", 1, 2 * MIB)
    for size in (256 * KIB, MIB, 4 * MIB, 16 * MIB):
        yield _forced("server-directed", 2, size)
    yield _forced("server-directed", ranks // 2, 2 * MIB)
    yield _forced("server-directed", ranks, 2 * MIB)
    yield _forced("disk-directed", 2, 4 * MIB)


def _zarr(ranks: int) -> Iterator[Way]:
    """Ways for Zarr."""
    for strategy in ("root-gather", "independent", "data-sieving"):
        yield _forced(strategy)
    yield _forced("two-phase", ranks, None, "all")
    yield _forced("two-phase", None, None, "sharers")
    for servers in (1, 2, ranks // 2, ranks):
        yield _forced("server-directed", servers)
    yield _forced("disk-directed", 2)


def why_not_mpiio(case: Case) -> str | None:
    """Why MPI-IO cannot do the same; None where it can."""
    if case.target != "raw":
        return "MPI-IO knows files of one array after another, not chunks"
    if case.spread.box:
        return "boxes are left out for MPI-IO"
    if case.dtype != case.memory_dtype:
        return "MPI-IO does not convert elements"
    if case.runs > MOST_MPIIO_RUNS:
        return f"{case.runs} runs are more than MPI-IO should list"
    return None


def grid(case: Case, hint_sets: list[dict[str, str]]) -> tuple[list[Way], dict[str, str]]:
    """The ways in which a case is done, and those that are left out, with the reason.

    Parameters
    ----------
    case : Case
        The case.
    hint_sets : list of dict
        Sets of hints for MPI-IO, besides none.
    """
    ways, left_out = [Way(CHOSEN), Way(TWIN)], {}
    for way in _raw(case.ranks) if case.target == "raw" else _zarr(case.ranks):
        alone = way.options["strategy"] in ("independent", "data-sieving") and case.target == "raw"
        if alone and case.runs > MOST_CALLS[case.direction]:
            left_out[way.name] = f"{case.runs} runs are too many for each rank to move its own"
        elif way.name not in [other.name for other in ways]:
            ways.append(way)
    reason = why_not_mpiio(case)
    if reason is not None:
        return ways, left_out | {"MPI-IO": reason}
    ways.append(Way("MPI-IO, default hints", hints={}))
    ways += [Way(f"MPI-IO, hints {number}", hints=hints) for number, hints in enumerate(hint_sets, 1)]
    return ways, left_out


def in_turns(ways: Sequence[Way]) -> list[Way]:
    """The first way of each method, then the second of each, and so on; a method is a strategy, or MPI-IO."""
    turns: Counter[object] = Counter()
    order: list[tuple[int, Way]] = []
    for way in ways:
        method = "MPI-IO" if way.hints is not None else way.options.get("strategy")
        order.append((turns[method], way))
        turns[method] += 1
    return [way for _, way in sorted(order, key=lambda one: one[0])]
