"""The ranks of ``hyperslab bench peers``; started by mpiexec with a task in JSON.

A launch measures either the later calls of all ways of a row, which take turns, or the first call of one way.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mpi4py import MPI

from hyperslab.bench._emptying import empty
from hyperslab.bench._launch import measure_task
from hyperslab.bench._peers_calls import calls
from hyperslab.bench._peers_flash import flash
from hyperslab.bench._peers_noise import Load, Peak
from hyperslab.bench._peers_raw import BEST, raw, raw_section, raw_shapes
from hyperslab.bench._peers_ways import NOTHING, PLACES, Setting, Way
from hyperslab.bench._peers_zarr import many, new, section, zarr, zarr_shapes
from hyperslab.bench._watch import Stopwatch

#: What builds the ways of each kind of row, and tells the bytes of a call.
KINDS: Mapping[str, Callable[[Setting], tuple[list[Way], int]]] = {
    "raw": raw,
    "raw shapes": raw_shapes,
    "raw section": raw_section,
    "calls": calls,
    "zarr": zarr,
    "zarr shapes": zarr_shapes,
    "many": many,
    "new": new,
    "section": section,
    "flash": flash,
}
#: Rounds in which sets of hints are compared.
TUNING_ROUNDS = 2
#: Of many calls, about so many are enough for that.
TUNING_CALLS = 20
WITHOUT_DISK = "hyperslab, on tmpfs"


class Bench:
    """One launch."""

    def __init__(self, comm: MPI.Intracomm, task: Mapping[str, Any]) -> None:
        self._task, self._load = task, Load(comm)
        self._setting = Setting(comm, task)
        self._comm = comm
        self._ways, self._nbytes = KINDS[task["kind"]](self._setting)
        self._watch = Stopwatch(comm)
        if task["memory"] is not None:
            self._ways.append(self._without_disk(dict(task) | {"place": task["memory"]}))
        self._ways.append(Way("nothing: an empty call", NOTHING, lambda _: None))
        size = self._setting.size
        #: Calls of a repetition.
        self._calls = {"one": 1, "calls": size.calls, "shapes": size.shapes}[task["calls"]]
        #: Ways whose hints were not the best.
        self._lost: list[Way] = []
        self._memory: dict[str, dict[str, int]] = {}

    def _without_disk(self, task: Mapping[str, Any]) -> Way:
        """What this package does in a file system in memory, where storage does next to nothing."""
        way = KINDS[task["kind"]](Setting(self._comm, task))[0][0]
        way.name, way.role = WITHOUT_DISK, NOTHING
        return way

    def _call(self, way: Way, number: int, places: int | None) -> float:
        """One timed call, compared and emptied."""
        way.before(number)
        if self._setting.durable:
            # What others left to be written back is not for this one to wait for.
            self._watch.meet()
            if self._comm.rank == 0:
                os.sync()
        self._watch.meet()
        peak = Peak(self._comm)
        seconds = self._watch.seconds(lambda: way.call(number))
        memory = peak.found()
        self._memory[way.name] = {
            key: max(value, self._memory.get(way.name, {}).get(key, 0)) for key, value in memory.items()
        }
        way.check(number, places)
        self._watch.meet()
        made = way.made(number)
        if made is not None and self._comm.rank == 0:
            empty(made)
        return seconds

    def _repetition(self, ways: Sequence[Way], repetition: int, places: int | None) -> dict[str, list[float]]:
        """All calls of one repetition, in which ways take turns, each time beginning with another."""
        times: dict[str, list[float]] = {way.name: [] for way in ways}
        for call in range(self._calls):
            number = repetition * self._calls + call
            turn = number % len(ways)
            is_for_all = call % max(1, self._calls // TUNING_CALLS) == 0
            for way in [*ways[turn:], *ways[:turn]]:
                if way.is_candidate and not is_for_all:
                    continue
                times[way.name].append(self._call(way, number, places))
        return times

    def _tune(self, warm: Mapping[str, Sequence[float]]) -> tuple[list[Way], int]:
        """Ways of which only the best set of hints is left, and how many repetitions that took."""
        candidates = [way for way in self._ways if way.is_candidate]
        if not candidates:
            return self._ways, 1
        found = {way.name: [list(warm[way.name])] for way in candidates}
        for repetition in range(1, 1 + TUNING_ROUNDS):
            for name, times in self._repetition(candidates, repetition, PLACES).items():
                found[name].append(times)
        sums = {name: sum(map(statistics.median, zip(*rounds[1:], strict=True))) for name, rounds in found.items()}
        best = min(candidates, key=lambda way: sums[way.name])
        rest = [way for way in self._ways if not way.is_candidate or way is best]
        self._lost = [way for way in candidates if way is not best]
        self._memory[BEST] = self._memory[best.name]
        best.name, best.is_candidate = BEST, False
        return rest, 1 + TUNING_ROUNDS

    def later(self) -> dict[str, Any]:
        """Times of all ways, when each has been called before."""
        for way in self._ways:
            way.prepare()
        # The first calls here are compared everywhere; they are first calls of no fresh process, and do not count.
        warm = self._repetition(self._ways, 0, None)
        ways, done = self._tune(warm)
        repetitions = self._task["repetitions"]
        rounds = [self._repetition(ways, done + number, PLACES) for number in range(repetitions)]
        for way in [*self._lost, *ways]:
            way.finish()
        self._watch.meet()
        return self._told(ways, {way.name: [one[way.name] for one in rounds] for way in ways})

    def first(self, name: str, number: int) -> dict[str, Any]:
        """Time of the first call of one way."""
        (way,) = [way for way in self._ways if way.name == name]
        way.prepare()
        self._load = Load(self._comm)
        seconds = self._call(way, number, PLACES)
        way.finish()
        return self._told([way], {name: [[seconds]]})

    def _told(self, ways: Sequence[Way], seconds: Mapping[str, list[list[float]]]) -> dict[str, Any]:
        return {
            "bytes": self._nbytes,
            "ways": [
                {
                    "name": way.name,
                    "role": way.role,
                    "hints": way.hints,
                    "seconds": seconds[way.name],
                    "memory": self._memory[way.name],
                }
                for way in ways
            ],
            "load": self._load.found(),
            "mpi": " ".join(MPI.Get_library_version().splitlines()[0].split()),
        }

    def run(self) -> dict[str, Any]:
        """What the task says."""
        name = self._task["way"]
        return self.later() if name is None else self.first(name, self._task["number"])


def main() -> None:
    """Measure what the task says, and leave the results where it says."""
    comm = MPI.COMM_WORLD
    measure_task(comm, lambda task: Bench(comm, task).run())


if __name__ == "__main__":
    main()
