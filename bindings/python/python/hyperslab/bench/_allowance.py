"""How long one case may take, and what follows for its rounds."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["USUAL_ROUNDS", "Allowance"]

#: Rounds of the competition: even numbers, so that both halves are alike. Where time does not suffice for the usual
#: ones, there are fewer, so that each case that was begun has a result.
FEWEST_ROUNDS, USUAL_ROUNDS, MOST_ROUNDS = 2, 6, 100
#: Part of a case's time after which no further way is tried.
TRYING_SHARE = 0.5
#: A first look at a case tells how long it takes; it is given so much more.
CAUTION = 1.15


@dataclass
class Allowance:
    """How long a case may take.

    Parameters
    ----------
    began : float
        When it began, on the machine's monotonic clock [s]; the same on all ranks, as all here.
    share : float
        What it was given [s].
    short : float
        Up to here it is filled with rounds [s].
    most : float
        What it may be given in all, if it turns out to need it [s].
    """

    began: float
    share: float
    short: float
    most: float

    @property
    def end(self) -> float:
        """When it should be over."""
        return self.began + self.share

    @property
    def stop_trying(self) -> float:
        """When no further way should be tried."""
        return self.began + TRYING_SHARE * self.share

    def extend(self, now: float, foreseen: float) -> None:
        """Give more to a case whose rest is likely to take so long [s]."""
        self.share = max(self.share, min(self.most, now - self.began + CAUTION * foreseen))

    def affordable(self, now: float, each: float) -> int:
        """How many rounds fit from a moment on."""
        return max(0, int((self.end - now) / max(each, 1e-6)))

    def rounds(self, now: float, each: float) -> int:
        """How many rounds are made: the usual ones, more where they are short, fewer where there is no time."""
        filling = int((self.began + self.short - now) / max(each, 1e-6))
        number = min(MOST_ROUNDS, max(USUAL_ROUNDS, filling), self.affordable(now, each))
        return max(FEWEST_ROUNDS, 2 * (number // 2))
