"""The ranks of ``hyperslab bench regret``; started by mpiexec with a list of cases."""

from __future__ import annotations

import gc
import json
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpi4py import MPI

import hyperslab as hs
from hyperslab.bench._cases import Case
from hyperslab.bench._grid import CHOSEN, TWIN, Way, grid
from hyperslab.bench._launch import task_of_this_launch
from hyperslab.bench._mpiio import hint_sets
from hyperslab.bench._transfers import Transfer
from hyperslab.bench._watch import Stopwatch

#: In the first round, which warms up and checks, a way that takes so many times as long as the fastest drops out.
HOPELESS = 3.0
#: Rounds of those that are left, after which the fastest few compete with what the library chooses.
QUALIFYING_ROUNDS = 2
FINALISTS = 5
#: Rounds of the competition: even numbers, so that both halves are alike.
FEWEST_ROUNDS, MOST_ROUNDS = 6, 100

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
    end : float
        When it should be over, on the machine's monotonic clock [s]; the same on all ranks.
    """

    def __init__(self, case: Case, directory: Path, comm: MPI.Intracomm, end: float) -> None:
        self.case, self.comm, self.end = case, comm, end
        self.watch = Stopwatch(comm)
        self.transfer = Transfer(case, directory, comm, self.watch.meet)
        self.ways, self.left_out = grid(case, hint_sets(comm.size))
        self.checked: dict[str, float] = {}
        self.reports: list[dict[str, Any]] = []

    def _seconds(self, way: Way) -> float:
        """Seconds from the common start to the end of the last rank."""
        if self.case.direction == "write" and not self.transfer.changes_in_place:
            self.transfer.remove()
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

    def _rounds(self, ways: Sequence[Way], number: int, *, salt: str) -> Times:
        """Rounds in which all take their turn."""
        times: Times = {way.name: [] for way in ways}
        for turn in range(number):
            # In another order each round, the same on all ranks: what one leaves to be written back slows the next.
            for way in random.Random(f"{salt} {self.case.number} {turn}").sample(ways, len(ways)):
                times[way.name].append(self._seconds(way))
        return times

    def _finalists(self, qualifying: Times) -> list[Way]:
        """The library's choice, twice, the fastest ways, and the fastest of MPI-IO."""
        rivals = [way for way in self.ways if way.name in qualifying and way.name not in (CHOSEN, TWIN)]
        rivals.sort(key=lambda way: min(qualifying[way.name]))
        taken = rivals[:FINALISTS]
        taken += [way for way in rivals[FINALISTS:] if way.hints is not None and not any(one.hints for one in taken)][
            :1
        ]
        return [way for way in self.ways if way.name in (CHOSEN, TWIN)] + taken

    def run(self) -> dict[str, Any]:
        """Measure."""
        began = time.monotonic()
        self.transfer.make_ready()
        ways = [way for way in self.ways if way.name == TWIN or self._check(way)]
        limit = HOPELESS * min(self.checked.values())
        rivals = [way for way in ways if way.name in (CHOSEN, TWIN) or self.checked[way.name] <= limit]
        # Of MPI-IO the best set of hints stays, however slow.
        mpiio = [way for way in ways if way.hints is not None]
        if mpiio and not any(way.hints is not None for way in rivals):
            rivals.append(min(mpiio, key=lambda way: self.checked[way.name]))
        self.reports.clear()
        qualified = time.monotonic()
        qualifying = self._rounds(rivals, QUALIFYING_ROUNDS, salt="qualifying")
        each = (time.monotonic() - qualified) / (QUALIFYING_ROUNDS * len(rivals))
        finalists = self._finalists(qualifying)
        left = (self.end - time.monotonic()) / (each * len(finalists))
        number = int(self.watch.of_rank_0(2 * (min(MOST_ROUNDS, max(FEWEST_ROUNDS, left)) // 2)))
        self.reports.clear()
        rounds = self._rounds(finalists, number, salt="final")
        return {
            "case": self.case.to_json(),
            "bytes": self.case.bytes,
            "ways": {way.name: {"options": way.options, "hints": way.hints} for way in self.ways},
            "left_out": self.left_out,
            "checked": self.checked,
            "qualifying": qualifying,
            "rounds": rounds,
            "reports": self.reports,
            "took": time.monotonic() - began,
        }

    def close(self) -> None:
        """Remove all files."""
        self.transfer.close()


def _tell(comm: MPI.Intracomm, task: dict[str, Any], line: dict[str, Any]) -> None:
    """One line about each case, at once, so that it survives what happens later."""
    if comm.rank == 0:
        with Path(task["answer"]).open("a") as answer:
            answer.write(json.dumps(line) + "\n")


def measure(comm: MPI.Intracomm, task: dict[str, Any]) -> None:
    """All cases in their order for which there is time; each is a line of the file of answers."""
    directory, estimates = Path(task["directory"]), task["estimates"]
    cases = [Case.of_json(data) for data in task["cases"]]
    watch = Stopwatch(comm)
    for place, case in enumerate(cases):
        now = watch.of_rank_0(time.monotonic())
        if now + estimates[place] / 2 > task["deadline"]:
            _tell(comm, task, {"skipped": case.number})
            continue
        share = (task["deadline"] - now) * estimates[place] / sum(estimates[place:])
        measurement = Measurement(case, directory, comm, now + share)
        found = measurement.run()
        measurement.close()
        del measurement
        gc.collect()
        _tell(comm, task, found)
        if comm.rank == 0:
            print(f"  {case.number}: {case.family}, {case.mode}, {found['took']:.1f} s", file=sys.stderr, flush=True)


def main() -> None:
    """Measure what the task says, and leave the results where it says."""
    comm = MPI.COMM_WORLD
    try:
        measure(comm, task_of_this_launch())
    except Exception as error:  # noqa: BLE001 (the other ranks wait in MPI, which only an abort ends)
        print(f"rank {comm.rank}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        comm.Abort(1)


if __name__ == "__main__":
    main()
