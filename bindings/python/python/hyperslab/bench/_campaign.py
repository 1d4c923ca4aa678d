"""Cases of a sweep are drawn into the time that is left, and measured, until it is over.

Time is spent in batches: the first gets a tenth of it, the next half of the rest, and so on. Each begins with what the
ones before taught about how long cases take. A case that does not fit into its batch after all is not dropped but
comes first in the next one, so what is measured is the beginning of the sweep, of which each ten cases hold every
family once. Only at the end are cases passed over that would take longer than what is left.
"""

from __future__ import annotations

import itertools
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hyperslab as hs
from hyperslab._printing import say
from hyperslab._progress import is_watched, tell
from hyperslab._scratch import scratch
from hyperslab.bench._cases import Case
from hyperslab.bench._emptying import empty
from hyperslab.bench._estimates import Estimates
from hyperslab.bench._launch import launch
from hyperslab.bench._sweep import sweep

__all__ = ["Campaign", "Result"]

#: Share of the time that is planned; the rest is for launching, and for a last transfer that is slow.
PLANNED_SHARE = 0.93
#: The first batch takes this part of all time: nothing is known yet, and what it leaves undone is little.
PILOT_SHARE = 1 / 10
#: Below this time that is left [s], one batch takes all of it.
LAST_SECONDS = 75.0
#: A short case gets this part of all time for many rounds, since its times spread more, but not more seconds than that.
SHORT_SHARE, SHORT_SECONDS = 1 / 20, 12.0
#: Most of all time that goes to one case.
MOST_SHARE = 1 / 6
#: A batch may last longer than estimated by this factor, while other batches follow.
SLACK = 1.2
#: Cases that are passed over at the end for others that still fit.
PASSED_OVER = 3
#: Launches on one number of ranks, in one batch, that may die before the rest of their cases is given up.
MOST_DEATHS = 3
#: Ranks that are still there so long after the end, in seconds and as a share of all time, hang, and are ended.
GRACE_SECONDS, GRACE_SHARE = 30.0, 0.1

Result = dict[str, Any]


@dataclass
class Campaign:
    """A run of the benchmark.

    Parameters
    ----------
    seed : int
        Which sweep.
    ranks : sequence of int
        Numbers of ranks.
    largest_bytes : int
        Most bytes that a case stores.
    minutes : float
        How long it may take.
    directory : Path
        Where scratch files go.
    most_cases : int, optional
        Most cases that are drawn.
    clock : callable
        The time [s]; that of the machine, which ranks look at, too.
    """

    seed: int
    ranks: Sequence[int]
    largest_bytes: int
    minutes: float
    directory: Path
    most_cases: int | None = None
    clock: Callable[[], float] = time.monotonic

    #: What was measured, in the order of the cases, and the cases at which ranks died.
    results: list[Result] = field(default_factory=list)
    died: list[Case] = field(default_factory=list)
    #: Why a case that was drawn was not measured, by its number.
    missing: dict[int, str] = field(default_factory=dict)
    passed_over: list[Case] = field(default_factory=list)
    drawn: int = 0
    estimates: Estimates = field(default_factory=Estimates)

    def run(self) -> None:
        """Measure until the time or the cases are over."""
        began = self.clock()
        seconds = 60 * self.minutes
        self._end, self._planned_end = began + seconds, began + PLANNED_SHARE * seconds
        self._short, self._most = min(SHORT_SECONDS, SHORT_SHARE * seconds), MOST_SHARE * seconds
        self._grace = max(GRACE_SECONDS, GRACE_SHARE * seconds)
        self._waiting: list[Case] = []
        self._sweep = itertools.islice(sweep(self.seed, self.ranks, self.largest_bytes), self.most_cases)
        batch = self._fitting(PILOT_SHARE * seconds, 0) or self._draw()
        # What is removed slows down who makes files after it, so all goes at the end.
        with scratch("hyperslab-bench-", self.directory) as self._place:
            while batch:
                self._measure(batch)
                batch = self._draw()
            self._tell_of_the_rest(max(0.0, self._planned_end - self.clock()))
        self.results.sort(key=lambda result: int(result["case"]["number"]))

    def wanted(self, case: Case) -> float:
        """How long a case should be given [s]."""
        return min(self._most, max(self._short, self.estimates.least(case)))

    def _tell_of_the_rest(self, left: float) -> None:
        """Why cases were not measured: all that were asked for, or those before the last that was measured."""
        numbers = [int(result["case"]["number"]) for result in self.results] + [case.number for case in self.died]
        self.drawn = 1 + max(numbers, default=-1)
        if self.most_cases is not None:
            self._waiting += self._sweep
            self.drawn = self.most_cases
        for case in self._waiting:
            if case.number < self.drawn:
                about = f"takes about {self.estimates.least(case):.0f} s, of which {left:.0f} s were left"
                self.missing[case.number] = about
                self.passed_over.append(case)

    # ---- drawing -------------------------------------------------------------------------------------------------

    def _draw(self) -> list[Case]:
        """The cases of the next batch; none when the time or the sweep is over."""
        left = self._planned_end - self.clock()
        batch = self._fitting(left / 2, 0) if left / 2 >= LAST_SECONDS else []
        return batch or self._fitting(left, PASSED_OVER)

    def _fitting(self, room: float, passed_over: int) -> list[Case]:
        """The next cases that fit into a time [s], for which some may be passed over; those go on waiting."""
        batch: list[Case] = []
        passed: list[Case] = []
        while len(passed) <= passed_over:
            case = self._waiting.pop(0) if self._waiting else next(self._sweep, None)
            if case is None:
                break
            if self.wanted(case) <= room:
                batch.append(case)
                room -= self.wanted(case)
            else:
                passed.append(case)
        self._waiting = passed + self._waiting
        return batch

    # ---- measuring -----------------------------------------------------------------------------------------------

    def _measure(self, batch: Sequence[Case]) -> None:
        """Launch once for each number of ranks."""
        groups = [[case for case in batch if case.ranks == ranks] for ranks in self.ranks]
        planned = SLACK * sum(map(self.wanted, batch))
        batch_end = min(self._planned_end, self.clock() + planned)
        groups = [group for group in groups if group]
        for place, group in enumerate(groups):
            own, rest = sum(map(self.wanted, group)), sum(self.wanted(case) for one in groups[place:] for case in one)
            now = self.clock()
            tell(f"measuring {len(group)} cases on {group[0].ranks} ranks ...")
            self._measure_group(group, now + (batch_end - now) * own / rest)

    def _measure_group(self, cases: list[Case], deadline: float) -> None:
        """Measure cases of one number of ranks; those for which there is no time wait for the next batch."""
        deaths = 0
        while cases and deaths <= MOST_DEATHS:
            lines, ended = self._launch(cases, deadline)
            for case, line in zip(cases, lines, strict=False):
                if line.get("deferred"):
                    self._waiting.append(case)
                else:
                    self.results.append(line)
                    self.estimates.learn(case, line["least_seconds"])
            if ended or len(lines) == len(cases):
                return
            deaths += 1
            self.died.append(cases[len(lines)])
            self.missing[self.died[-1].number] = "ranks died"
            say(f"  ranks died at case {self.died[-1].number}: {self.died[-1]}", error=True)
            cases = cases[len(lines) + 1 :]
        for case in cases:
            self.missing[case.number] = f"ranks had died {deaths} times"
            self.passed_over.append(case)

    def _launch(self, cases: Sequence[Case], deadline: float) -> tuple[list[Result], bool]:
        """A line about each case, in order, and whether the ranks ended well."""
        limit = self._end + self._grace - self.clock()
        place = Path(tempfile.mkdtemp(dir=self._place))
        task, answer = place / "task.json", place / "results.jsonl"
        told = {"directory": str(place), "answer": str(answer), "deadline": deadline, "tells": is_watched()}
        told |= {"short": self._short, "most": self._most, "estimates": self.estimates.to_json()}
        task.write_text(json.dumps(told | {"cases": [case.to_json() for case in cases]}))
        ended = True
        try:
            launch(cases[0].ranks, "_regret_ranks", task, limit_seconds=max(GRACE_SECONDS, limit))
        except hs.PeerError as error:
            say(str(error), error=True)
            ended = False
        lines = [json.loads(line) for line in answer.read_text().splitlines()] if answer.exists() else []
        if not ended:
            # Ranks that died put nothing aside.
            empty(place)
        return lines, ended
