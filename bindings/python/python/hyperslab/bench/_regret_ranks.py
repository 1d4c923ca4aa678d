"""The ranks of ``hyperslab bench regret``; started by mpiexec with a list of cases."""

from __future__ import annotations

import gc
import json
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpi4py import MPI

import hyperslab as hs
from hyperslab._printing import say
from hyperslab.bench._allowance import USUAL_ROUNDS, Allowance
from hyperslab.bench._cases import Case
from hyperslab.bench._estimates import Estimates
from hyperslab.bench._grid import CHOSEN, TWIN, Way, grid, in_turns
from hyperslab.bench._launch import task_of_this_launch
from hyperslab.bench._mpiio import hint_sets
from hyperslab.bench._transfers import Transfer
from hyperslab.bench._watch import Stopwatch

#: In the first round, which warms up and checks, a way that takes so many times as long as the fastest drops out.
HOPELESS = 3.0
#: Most rounds of those that are left, after which the fastest few compete with what the library chooses.
QUALIFYING_ROUNDS = 2
FINALISTS = 5
#: Other memory that is walked over before each transfer [B]: more than a core has caches of its own.
FORGETS_BYTES = 4 << 20
#: Part of what a case is likely to need without which it is not begun.
WORTH_BEGINNING = 0.7

Times = dict[str, list[float]]


class Measurement:
    """One case: which ways compete, and how long each takes.

    Parameters
    ----------
    case : Case
        The case.
    directory : Path
        Where its files go.
    comm : mpi4py.MPI.Intracomm
        The ranks.
    times : Allowance
        How long it may take.
    """

    def __init__(self, case: Case, directory: Path, comm: MPI.Intracomm, times: Allowance) -> None:
        self.case, self.comm, self.times = case, comm, times
        self.watch = Stopwatch(comm, FORGETS_BYTES)
        self.transfer = Transfer(case, directory, comm, self.watch.meet)
        self.ways, self.left_out = grid(case, hint_sets(comm.size))
        self.checked: dict[str, float] = {}
        self.untried: list[str] = []
        self.reports: list[dict[str, Any]] = []

    def _now(self) -> float:
        """The time on all ranks, so that all decide alike."""
        return self.watch.of_rank_0(time.monotonic())

    def _seconds(self, way: Way) -> float:
        """Seconds from the common start to the end of the last rank."""
        if self.case.direction == "write" and not self.transfer.changes_in_place:
            self.transfer.put_aside()
        found: list[Any] = []
        seconds = self.watch.seconds(lambda: found.append(self.transfer.run(way)))
        if way.name == CHOSEN:
            self._note(found[0])
        return seconds

    def _note(self, report: Any) -> None:
        """What the library tells about its choice."""
        call = self.watch.most(report.seconds)
        predicted = getattr(report, "predicted", None)
        self.reports.append(
            {
                "strategy": report.strategy,
                "servers": len(report.servers),
                "subchunk_bytes": report.subchunk_bytes,
                "predicted": None if predicted is None else float(predicted),
                "seconds": call,
            }
        )

    def _check(self, way: Way) -> bool:
        """Do it once and compare what came out; False where it is infeasible."""
        self.transfer.renew()
        try:
            self.checked[way.name] = self._seconds(way)
        except hs.InvalidError as error:
            if way.name == CHOSEN:
                raise
            self.left_out[way.name] = str(error).partition("\n")[0]
            return False
        self.transfer.check()
        self.watch.meet()
        return True

    def _try_all(self) -> list[Way]:
        """Do each way once; returns those that can do it. Of each method one is tried before another's second."""
        able: list[Way] = []
        for way in in_turns([way for way in self.ways if way.name != TWIN]):
            # With the choice and one rival there is a result, however late it is.
            if len(able) > 1 and self._now() > self.times.stop_trying:
                self.untried.append(way.name)
                self.left_out[way.name] = "there was no time to try it"
                continue
            before = self._now()
            if self._check(way):
                able.append(way)
            if way.name == CHOSEN:
                now = self._now()
                self.times.extend(now, self._foreseen(now - before))
        return able

    def _foreseen(self, first: float) -> float:
        """How long the rest of the case is likely to take, after the choice took so long with its check [s]."""
        moving = self.checked[CHOSEN]
        trying = (len(self.ways) - 2) * (first + 0.5 * moving)
        return trying + 1.2 * moving * (QUALIFYING_ROUNDS * len(self.ways) / 2 + USUAL_ROUNDS * (FINALISTS + 2))

    def _rivals(self, able: Sequence[Way]) -> list[Way]:
        """Those that are not hopelessly slow, and the library's choice twice."""
        limit = HOPELESS * min(self.checked.values())
        twice = [way for way in self.ways if way.name in (CHOSEN, TWIN)]
        others = [way for way in able if way.name != CHOSEN]
        rivals = [way for way in others if self.checked[way.name] <= limit]
        # Of MPI-IO the best set of hints stays, however slow; and somebody has to.
        for some in ([way for way in others if way.hints is not None], others):
            if some and not any(way in rivals for way in some):
                rivals.append(min(some, key=lambda way: self.checked[way.name]))
        return twice + rivals

    def _rounds(self, ways: Sequence[Way], number: int, *, salt: str) -> Times:
        """Rounds in which all take their turn."""
        times: Times = {way.name: [] for way in ways}
        for turn in range(number):
            # In another order each round, the same on all ranks: what one leaves to be written back slows the next.
            for way in random.Random(f"{salt} {self.case.number} {turn}").sample(ways, len(ways)):
                times[way.name].append(self._seconds(way))
        return times

    def _round_seconds(self, ways: Sequence[Way]) -> float:
        """About how long a round takes, by what each way took when it was tried [s]."""
        return sum(self.checked.get(way.name, self.checked[CHOSEN]) for way in ways)

    def _qualify(self, rivals: Sequence[Way]) -> Times:
        """The rounds that decide who competes: fewer, or none, where time is short."""
        each = self._round_seconds(rivals)
        later = USUAL_ROUNDS * each * min(1.0, (FINALISTS + 2) / len(rivals))
        number = self.times.affordable(self._now() + later, each)
        return self._rounds(rivals, min(QUALIFYING_ROUNDS, number), salt="qualifying")

    def _finalists(self, qualifying: Times) -> list[Way]:
        """The library's choice, twice, the fastest ways, and the fastest of MPI-IO."""
        rivals = [way for way in self.ways if way.name in qualifying and way.name not in (CHOSEN, TWIN)]
        rivals.sort(key=lambda way: min(qualifying[way.name] or [self.checked[way.name]]))
        taken = rivals[:FINALISTS]
        taken += [way for way in rivals[FINALISTS:] if way.hints is not None and not any(one.hints for one in taken)][
            :1
        ]
        return [way for way in self.ways if way.name in (CHOSEN, TWIN)] + taken

    def run(self) -> dict[str, Any]:
        """Measure."""
        self.transfer.make_ready()
        began = self._now()
        able = self._try_all()
        tried = self._now()
        rivals = self._rivals(able)
        self.reports.clear()
        qualifying = self._qualify(rivals)
        finalists = self._finalists(qualifying)
        qualified = self._now()
        done = len(qualifying[CHOSEN])
        each = (qualified - tried) / (done * len(rivals)) * len(finalists) if done else self._round_seconds(finalists)
        number = self.times.rounds(qualified, each)
        self.reports.clear()
        rounds = self._rounds(finalists, number, salt="final")
        ended = self._now()
        # What it would have taken with all ways and the usual rounds.
        all_ways = (tried - began) * len(self.ways) / max(1, len(self.ways) - len(self.untried))
        usual = (QUALIFYING_ROUNDS * len(rivals) / len(finalists) + USUAL_ROUNDS) * (ended - qualified) / number
        return {
            "case": self.case.to_json(),
            "bytes": self.case.bytes,
            "ways": {way.name: {"options": way.options, "hints": way.hints} for way in self.ways},
            "left_out": self.left_out,
            "untried": self.untried,
            "checked": self.checked,
            "qualifying": qualifying,
            "rounds": rounds,
            "reports": self.reports,
            "took": ended - self.times.began,
            "least_seconds": began - self.times.began + all_ways + usual,
        }

    def close(self) -> None:
        """Put all files aside."""
        self.transfer.close()


def _tell(comm: MPI.Intracomm, task: dict[str, Any], line: dict[str, Any]) -> None:
    """One line about each case, at once, so that it survives what happens later."""
    if comm.rank == 0:
        with Path(task["answer"]).open("a") as answer:
            answer.write(json.dumps(line) + "\n")


def measure(comm: MPI.Intracomm, task: dict[str, Any]) -> None:
    """All cases in their order for which there is time; each is a line of the file of answers."""
    directory, estimates = Path(task["directory"]), Estimates(task["estimates"])
    cases = [Case.of_json(data) for data in task["cases"]]
    watch = Stopwatch(comm)
    for place, case in enumerate(cases):
        now = watch.of_rank_0(time.monotonic())
        left = task["deadline"] - now
        # What all ranks do follows from what rank 0 has learned.
        wanted = [min(task["most"], max(task["short"], estimates.least(case))) for case in cases[place:]]
        share = watch.of_rank_0(min(left, left * wanted[0] / sum(wanted)))
        if place > 0 and watch.of_rank_0(float(left < WORTH_BEGINNING * wanted[0])):
            _tell(comm, task, {"deferred": case.number})
            continue
        times = Allowance(now, share, task["short"], max(share, min(left, task["most"])))
        measurement = Measurement(case, directory, comm, times)
        found = measurement.run()
        measurement.close()
        del measurement
        gc.collect()
        _tell(comm, task, found)
        estimates.learn(case, found["least_seconds"])
        if comm.rank == 0 and task.get("tells"):
            told = f"  {case.number}: {case.family}, {case.mode}, {found['took']:.1f} s of {share:.1f} s"
            say(told, error=True)


def main() -> None:
    """Measure what the task says, and leave the results where it says."""
    comm = MPI.COMM_WORLD
    try:
        measure(comm, task_of_this_launch())
    except Exception as error:  # noqa: BLE001 (the other ranks wait in MPI, which only an abort ends)
        say(f"rank {comm.rank}: {type(error).__name__}: {error}", error=True)
        comm.Abort(1)


if __name__ == "__main__":
    main()
