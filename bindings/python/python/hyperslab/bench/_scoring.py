"""How much slower than the best the library's choice was, and how much of that is noise.

Rounds are counted from 0. The best way is the one with the lowest median in rounds 0, 2, 4, ...; it and the library's
choice are compared by their medians in rounds 1, 3, 5, ..., so that a way that was lucky when it was selected does not
bring its luck along. A regret of 0.1 means that the choice took 10 % longer.

The difference is a tie, so inside of noise, in two cases. One is that it could as well be none: when the rounds that
are compared are drawn from themselves with replacement, again and again, the interval that holds nine in ten of the
regrets holds 0. The other is that the choice was as far from itself, since it ran twice in each round under two names.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hyperslab.bench._grid import CHOSEN, TWIN

__all__ = ["AIM", "LIMIT", "Score", "score", "share", "summary"]

#: Regret that the choice should have at most in nine of ten cases, and in all.
AIM, LIMIT = 0.10, 0.25
DRAWS = 400


@dataclass(frozen=True)
class Score:
    """What a case tells about the library's choice."""

    #: Name of the best way, and of the best way of this library.
    best: str
    best_own: str | None
    #: Medians of the rounds that count [s].
    best_seconds: float
    chosen_seconds: float
    #: How much longer the choice took than the best way; less than 0 where it was faster.
    regret: float
    #: The same against the best way of this library only, so without MPI-IO.
    regret_own: float | None
    #: The interval that holds nine in ten regrets of rounds drawn from those that count.
    low: float
    high: float
    #: How much longer the choice took than itself.
    control: float
    #: What the library predicted that its call would take, and what it took [s]; medians.
    predicted: float | None
    measured: float

    @property
    def is_tie(self) -> bool:
        """Whether the difference is inside of noise."""
        return self.low <= 0 <= self.high or abs(self.regret) <= abs(self.control)

    @property
    def regret_beyond_noise(self) -> float:
        """The regret, with ties and advantages as 0."""
        return 0.0 if self.is_tie else max(0.0, self.regret)

    @property
    def prediction_error(self) -> float | None:
        """How far the prediction was off, relative to what was measured."""
        return None if self.predicted is None else abs(self.predicted - self.measured) / self.measured

    def to_json(self) -> dict[str, Any]:
        """As data."""
        more = {"tie": self.is_tie, "regret_beyond_noise": self.regret_beyond_noise}
        return asdict(self) | more | {"prediction_error": self.prediction_error}


def score(result: Mapping[str, Any]) -> Score:
    """Score what was measured of one case."""
    rounds: Mapping[str, Sequence[float]] = result["rounds"]
    ways = result.get("ways", {})
    selecting = {name: statistics.median(times[0::2]) for name, times in rounds.items()}
    counting = {name: statistics.median(times[1::2]) for name, times in rounds.items()}
    rivals = [name for name in rounds if name not in (CHOSEN, TWIN)]
    own = [name for name in rivals if ways.get(name, {}).get("hints") is None]
    best = min(rivals, key=selecting.__getitem__)
    best_own = min(own, key=selecting.__getitem__, default=None)
    control = counting[TWIN] / counting[CHOSEN] - 1
    low, high = _interval(rounds[CHOSEN][1::2], rounds[best][1::2])
    reports = result.get("reports", [])
    predicted = [report["predicted"] for report in reports if report["predicted"] is not None]
    return Score(
        best=best,
        best_own=best_own,
        best_seconds=counting[best],
        chosen_seconds=counting[CHOSEN],
        regret=counting[CHOSEN] / counting[best] - 1,
        regret_own=None if best_own is None else counting[CHOSEN] / counting[best_own] - 1,
        low=low,
        high=high,
        control=control,
        predicted=statistics.median(predicted) if predicted else None,
        measured=statistics.median([report["seconds"] for report in reports] or rounds[CHOSEN]),
    )


def _interval(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float]:
    """The interval that holds nine in ten regrets when rounds are drawn from the given ones, with replacement."""
    chance = random.Random(len(ours))
    regrets = []
    for _ in range(DRAWS):
        # Rounds are drawn as pairs: what disturbed a whole round disturbed both.
        drawn = [chance.randrange(len(ours)) for _ in ours]
        mine, other = ([times[number] for number in drawn] for times in (ours, theirs))
        regrets.append(statistics.median(mine) / statistics.median(other) - 1)
    regrets.sort()
    return regrets[int(0.05 * DRAWS)], regrets[int(0.95 * DRAWS)]


def share(values: Sequence[float], limit: float) -> float:
    """Share of values that are at most the limit."""
    return sum(value <= limit for value in values) / len(values)


def _percentile(values: Sequence[float], part: float) -> float:
    """The value that this part of all values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def summary(scores: Sequence[Score]) -> dict[str, Any]:
    """What the cases tell together."""
    raw = [one.regret for one in scores]
    beyond = [one.regret_beyond_noise for one in scores]
    control = [abs(one.control) for one in scores]
    errors = [one.prediction_error for one in scores if one.prediction_error is not None]
    return {
        "cases": len(scores),
        "ties": sum(one.is_tie for one in scores),
        "won": sum(not one.is_tie and one.regret < 0 for one in scores),
        "within_aim": share(raw, AIM),
        "within_limit": share(raw, LIMIT),
        "within_aim_beyond_noise": share(beyond, AIM),
        "within_limit_beyond_noise": share(beyond, LIMIT),
        "worst": max(raw),
        "worst_beyond_noise": max(beyond),
        "control_within_aim": share(control, AIM),
        "control_90": _percentile(control, 0.9),
        "predicted": len(errors),
        "prediction_error_median": statistics.median(errors) if errors else None,
        "prediction_error_90": _percentile(errors, 0.9) if errors else None,
    }
