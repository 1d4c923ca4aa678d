"""Makes each sync take longer, and looks whether traces and reports say so.

Usage: slow_syncs DIRECTORY MILLISECONDS RANKS [OPERATION...]: by MPI, if RANKS is 0; otherwise that many threads.
Prints how long syncs took in all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
from hyperslab.trace._awaits import AWAITS
from hyperslab.trace._causes import chain, phrase, shares, slowest
from hyperslab.trace._form import Kind
from hyperslab.trace._path import critical_path, states_of
from hyperslab.trace._run import Run, load, pick
from hyperslab.trace._summary import summarize

from fault_library import Fault, Faults
from fault_operations import (
    OPERATIONS,
    SHAPE,
    Attempt,
    Operation,
    carry_out,
    look_at_store,
    prepare_hdf5,
    prepare_store,
)

#: What of the delays must be told.
TOLD = 0.9
ALL = 1 << 40


def prepare_steps(directory: Path) -> None:
    """A store and a file with steps."""
    with hs.open(directory / "a.zarr", "w", comm=None) as store, hs.open(directory / "a.h5", "w", comm=None) as file:
        for number in range(4):
            for group in (store, file):
                with group.step(f"{number:04}") as step:
                    step.write("a", np.full(SHAPE, float(number)))
        store.consolidate()


def step_deleted(attempt: Attempt) -> None:
    """Out of a store with consolidated metadata."""
    with attempt.store() as store:
        store.delete("0000")


def steps_kept(attempt: Attempt) -> None:
    """All but the last."""
    with attempt.store() as store:
        store.steps.keep(1)


def consolidated(attempt: Attempt) -> None:
    """Metadata of all nodes."""
    with attempt.store() as store:
        store.consolidate()


def hdf5_deleted(attempt: Attempt) -> None:
    """A step out of a file."""
    with attempt.hdf5("r+") as file:
        file.delete("0001")


def hdf5_renamed(attempt: Attempt) -> None:
    """A step of a file."""
    with attempt.hdf5("r+") as file:
        file.rename("0001", "renamed")


def hdf5_resized(attempt: Attempt) -> None:
    """An array that is new, and longer then."""
    with attempt.hdf5("r+") as file:
        file.create_array("long", (4, 6), "f8", chunks=(2, 6), maxshape=(None, 6))
        file.resize("long", (9, 6))


def groups_made(attempt: Attempt) -> None:
    """A group in a store and in a file, with attributes."""
    with attempt.store() as store, attempt.hdf5("r+") as file:
        for where in (store, file):
            where.create_group("made", attributes={"n": 1})
            where.group("made").attrs["n"] = 2


def store_resized(attempt: Attempt) -> None:
    """An array of a store that is new, and longer then."""
    with attempt.store() as store:
        store.create_array("long", (4, 6), "f8", chunks=(2, 6))
        store.resize("long", (9, 6))
        store.rename("long", "longer")


def reported(attempt: Attempt) -> None:
    """A new array, and one that is changed in place: reports say the same as traces."""
    faults = FAULTS.get(attempt.directory)
    with attempt.store() as store, attempt.hdf5("r+") as file:
        for write in (
            lambda: store.write("reported", *attempt.given()),
            lambda: store.write("reported", *attempt.given(), section=(slice(0, SHAPE[0]), slice(0, SHAPE[1]))),
            lambda: file.write("a", *attempt.given(), section=(slice(0, SHAPE[0]), slice(0, SHAPE[1]))),
        ):
            before = faults.hits() if faults else 0
            report = write()
            mine = (faults.hits() - before if faults else 0) * DELAY[0]
            # Threads share what is counted.
            delayed = attempt.comm.bcast(mine) if hasattr(attempt.comm, "bcast") and not DELAY[1] else 0.0
            said = {name: measured for name, _, measured in report.phases}
            assert said["sync"] >= TOLD * max(delayed, DELAY[0]), (report.what, delayed, report.phases)
            assert sum(said.values()) - said["sync"] < max(0.5 * said["sync"], 0.02), report.phases


#: Steered by one rank of each process, and how long each sync takes more [s], and whether ranks are threads.
FAULTS: dict[Path, Faults] = {}
DELAY: list[Any] = [0.0, False]


def _all_operations() -> dict[str, Operation]:
    both: Callable[[Path], None] = lambda where: (prepare_store(where), prepare_hdf5(where))  # noqa: E731
    more = [Operation(run, prepare_steps, look_at_store, lambda s, _: s) for run in (step_deleted, steps_kept)]
    more += [Operation(run, prepare_steps, look_at_store, lambda s, _: s) for run in (consolidated, hdf5_deleted)]
    more += [Operation(run, prepare_steps, look_at_store, lambda s, _: s) for run in (hdf5_renamed, hdf5_resized)]
    more += [Operation(run, prepare_steps, look_at_store, lambda s, _: s) for run in (groups_made, store_resized)]
    more += [Operation(reported, both, look_at_store, lambda s, _: s)]
    return OPERATIONS | {made.name: made for made in more}


@dataclass
class Case:
    """One operation with slow syncs."""

    made: Operation
    directory: Path
    delay: float

    def one(self, comm: Any) -> list[str]:
        """Carry it out on one rank; gives its errors."""
        attempt = Attempt(comm, self.directory / "data", 1)
        with hs.trace.recording(self.directory / "trace", comm=comm):
            carry_out(self.made, attempt)
        return [f"{type(error).__name__}: {error}" for error in attempt.errors]

    def judge(self, hits: list[int]) -> None:
        """What a trace says, where each rank had so many slow syncs; of threads, all together."""
        run = pick(load(self.directory / "trace"), None)
        table = shares(run)
        waits = table[:, AWAITS[Kind.SYNC]]
        syncs = table[:, Kind.SYNC]
        what = f"{self.made.name} on {run.size} ranks, {hits} slow syncs: syncs {syncs}, waits for them {waits}"
        assert syncs.sum() >= TOLD * sum(hits) * self.delay, what
        of_0 = hits[0] * self.delay if len(hits) == run.size else syncs[0]
        assert syncs[0] >= TOLD * of_0, what
        for rank in range(1, run.size):
            assert syncs[rank] + waits[rank] >= TOLD * of_0, what
        on_path = states_of(critical_path(run))
        assert on_path.get(Kind.SYNC, 0.0) + on_path.get(AWAITS[Kind.SYNC], 0.0) >= TOLD * of_0, (what, on_path)
        if hits[0]:
            self._judge_words(run, of_0)

    def _judge_words(self, run: Run, of_0: float) -> None:
        told = summarize(run)
        inside = {row["phase"]: row["measured"] for row in told["predicted"]}
        if "sync" in inside:
            assert inside["sync"] >= TOLD * of_0, inside
        longest = max(run.calls, key=lambda call: call.seconds)
        if longest.seconds >= self.delay:
            cause = phrase(run, chain(run, slowest(run, longest), (longest.begin, longest.end)))
            assert "sync (fsync)" in cause, (self.made.name, cause)


def by_mpi(made: Operation, directory: Path, delay: float) -> float:
    """Carry it out by the ranks of MPI."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    case, faults = Case(made, directory, delay), Faults()
    if world.rank == 0:
        (directory / "data").mkdir(parents=True)
        made.prepare(directory / "data")
    world.Barrier()
    FAULTS[directory / "data"] = faults
    faults.watch(directory / "data")
    faults.arm(Fault("sync", 1, "delay", round(1e3 * delay), ALL))
    errors = case.one(world)
    hits = world.allgather(faults.hits())
    faults.rest()
    assert errors == [], errors
    if world.rank == 0:
        case.judge(hits)
    world.Barrier()
    return delay * sum(hits)


def by_threads(made: Operation, directory: Path, delay: float, ranks: int) -> float:
    """Carry it out by threads of this process."""
    case, faults = Case(made, directory, delay), Faults()
    (directory / "data").mkdir(parents=True)
    made.prepare(directory / "data")
    faults.watch(directory / "data")
    faults.arm(Fault("sync", 1, "delay", round(1e3 * delay), ALL))
    errors = hs.threads(ranks, case.one)
    hits = faults.hits()
    faults.rest()
    assert not any(errors), errors
    case.judge([hits])
    return delay * hits


def main() -> None:
    """Each operation, one after another."""
    directory, delay, ranks = Path(sys.argv[1]), float(sys.argv[2]) / 1e3, int(sys.argv[3])
    every = _all_operations()
    DELAY[:] = [delay, ranks > 0]
    total = 0.0
    for number, name in enumerate(sys.argv[4:] or every):
        where = directory / f"{number}-{ranks}"
        total += by_threads(every[name], where, delay, ranks) if ranks else by_mpi(every[name], where, delay)
    print(f"{total:.1f} s of syncs are told")


if __name__ == "__main__":
    main()
