"""How long cases take: a model, and what the cases that were measured teach about it.

A model alone is off by a factor of ten for some kinds on some machines, so each case that was measured tells how far it
was off. What is learned is one factor for each family and direction, drawn to the factor of all cases as long as few of
its kind were measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from hyperslab.bench._cases import Case

__all__ = ["Estimates"]

#: Runs of all transfers of a case in the fewest rounds: checks, qualifying, and rounds that count.
TRANSFERS = 90
#: What a transfer costs on this many ranks [s], for each file [s], and by what it moves [B/s].
BASE_SECONDS = {2: 0.015, 4: 0.03, 8: 0.06}
FILE_SECONDS = 0.0002
RATES = {"write": 1.0e9, "write, fsync": 0.5e9, "read": 1.5e9}
#: What is not timed: making arrays and files, and checking [B/s].
SETUP_RATE = 0.1e9
#: How much longer it takes where memory holds the elements in another order than the file.
TRANSPOSED = 3.0
#: As many cases of a kind as the cases of other kinds weigh.
OTHERS = 1.0
#: What was measured varies; a case may well take this much longer than what is likely.
CAUTION = 1.25


class Estimates:
    """Estimates that learn.

    Parameters
    ----------
    measured : mapping, optional
        For each kind, logarithms of measured over modelled times, as `to_json` gave them.
    """

    def __init__(self, measured: Mapping[str, list[float]] | None = None) -> None:
        self._measured = {kind: list(factors) for kind, factors in (measured or {}).items()}

    def least(self, case: Case) -> float:
        """About how long a case takes with the fewest rounds [s]."""
        return CAUTION * math.exp(self._factor(_kind(case))) * _modelled(case)

    def learn(self, case: Case, seconds: float) -> None:
        """Learn from a case that took so long with the fewest rounds [s], or would have taken."""
        self._measured.setdefault(_kind(case), []).append(math.log(max(seconds, 1e-3) / _modelled(case)))

    def to_json(self) -> dict[str, list[float]]:
        """What was learned, as data."""
        return self._measured

    def _factor(self, kind: str) -> float:
        """Logarithm of the factor that is likely for a kind."""
        every = [factor for factors in self._measured.values() for factor in factors]
        if not every:
            return 0.0
        own = self._measured.get(kind, [])
        return (sum(own) + OTHERS * sum(every) / len(every)) / (len(own) + OTHERS)


def _kind(case: Case) -> str:
    return f"{case.family}, {case.direction}"


def _modelled(case: Case) -> float:
    base = BASE_SECONDS.get(case.ranks, 0.008 * case.ranks) + FILE_SECONDS * case.files
    slower = 1 + 64 / max(1, case.run_bytes)  # loops over short runs, of the file or of memory
    slower *= TRANSPOSED if case.memory == "interleaved" or case.order == "F" else 1.0
    return TRANSFERS * (base + slower * case.bytes / RATES[case.mode]) + case.stored_bytes / SETUP_RATE
