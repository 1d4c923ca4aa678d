"""From times to the numbers of a profile."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Point", "Times", "fit", "jump", "spread", "typical"]

#: A jump in the time of a message is one when it is at least this part of the time before it.
JUMP = 0.3


@dataclass(frozen=True)
class Point:
    """The typical time of one case [s], its circumstances, and half the distance of its quartiles over the median."""

    at: Mapping[str, float]
    seconds: float
    noise: float


def typical(seconds: Sequence[float]) -> float:
    """The lower quartile.

    What disturbs a machine only makes things take longer, and does so in many rounds where its cores are shared.
    """
    if len(seconds) < 2:
        return seconds[0]
    return statistics.quantiles(seconds, n=4, method="inclusive")[0]


def spread(seconds: Sequence[float]) -> float:
    """Half the distance between the quartiles, over the median."""
    if len(seconds) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return (high - low) / 2 / middle if middle > 0 else 0.0


class Times:
    """All that was measured, to be asked for by kernel, way of messages and circumstances."""

    def __init__(self, series: Iterable[Mapping[str, Any]]) -> None:
        self._series = list(series)

    def points(
        self, kernel: str, way: str | None = None, where: Callable[[Mapping[str, float]], bool] = lambda _: True
    ) -> list[Point]:
        """All cases of one kernel."""
        return [
            Point(series["at"], typical(series["seconds"]), spread(series["seconds"]))
            for series in self._series
            if series["kernel"] == kernel
            and (way is None or series.get("way") == way)
            and series["seconds"]
            and where(series["at"])
        ]

    def seconds(self, kernel: str, way: str | None = None, **at: float) -> float | None:
        """The time of the one case with these circumstances; None if it was not measured."""
        same = self.points(kernel, way, lambda found: all(found.get(key) == value for key, value in at.items()))
        return same[0].seconds if same else None

    def ratio(self, kernel: str, other: str) -> float | None:
        """How long one kernel takes over another in the same round: the lower quartile of all rounds."""
        both = [[one["seconds"] for one in self._series if one["kernel"] == name] for name in (kernel, other)]
        if not all(both):
            return None
        return typical([one / two for one, two in zip(both[0][0], both[1][0], strict=True)])

    def noise(self, *kernels: str) -> float | None:
        """How far times of these kernels spread: the median over their cases."""
        found = [point.noise for kernel in kernels for point in self.points(kernel)]
        return statistics.median(found) if found else None

    def rounds(self, *kernels: str) -> int:
        """Fewest rounds of these kernels."""
        found = [len(series["seconds"]) for series in self._series if series["kernel"] in kernels]
        return min(found, default=0)


def fit(points: Sequence[Point], *terms: Callable[[Mapping[str, float]], float]) -> list[float]:
    """Coefficients, none negative, of a sum of terms of the circumstances that comes nearest to the times.

    Relative errors count: a wrong microsecond matters for short times only.
    """
    matrix = np.array([[term(point.at) for term in terms] for point in points], dtype=float)
    times = np.array([point.seconds for point in points])
    matrix, times = matrix / times[:, None], np.ones(len(points))
    kept = list(range(len(terms)))
    found = [0.0] * len(terms)
    while kept:
        solution = np.linalg.lstsq(matrix[:, kept], times, rcond=None)[0]
        worst = int(np.argmin(solution))
        if solution[worst] >= 0:
            for term, value in zip(kept, solution, strict=True):
                found[term] = float(value)
            break
        del kept[worst]
    return found


def jump(points: Sequence[Point]) -> float | None:
    """The size after which a message takes a step longer [B], if there is such a step.

    Two lines with one slope, one above the other, come nearer to the times than one line, and the second begins
    clearly higher: messages that are longer first ask.
    """
    points = sorted(points, key=lambda point: point.at["bytes"])
    best: tuple[float, float | None] = (float("inf"), None)

    def misfit(terms: Sequence[Callable[[Mapping[str, float]], float]]) -> tuple[float, list[float]]:
        found = fit(points, *terms)
        sums = [sum(value * term(point.at) for value, term in zip(found, terms, strict=True)) for point in points]
        return sum((told / point.seconds - 1) ** 2 for told, point in zip(sums, points, strict=True)), found

    def one(_at: Mapping[str, float]) -> float:
        return 1.0

    def size(at: Mapping[str, float]) -> float:
        return at["bytes"]

    plain = misfit((one, size))[0]
    # A step needs two sizes on either side to be told from noise.
    for before in points[1:-2]:
        limit = before.at["bytes"]

        def beyond(at: Mapping[str, float], limit: float = limit) -> float:
            return float(at["bytes"] > limit)

        error, (start, _, step) = misfit((one, size, beyond))
        if error < best[0] and error < plain / 2 and step > JUMP * max(start, before.seconds):
            best = (error, limit)
    return best[1]
