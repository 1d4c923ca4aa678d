"""Carries out cases of `kill_cases`, in several lanes at a time.

Usage: kills DIRECTORY TASK, where TASK is a file with JSON: for each lane, a list of cases

A lane has four ranks or more: the first four that are left are those of the first attempt, the rest stand for another
job. Ranks of a lane tell each other by files what they ended with, since MPI may not work any more after a death. The
results of a case are written into the file ``NUMBER.result`` in the directory of the lane.
"""

from __future__ import annotations

import faulthandler
import json
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import hyperslab as hs
from mpi4py import MPI

from fault_library import Fault, Faults
from fault_operations import OWN, Attempt, carry_out, limits
from kill_cases import (
    ARRIVAL_SECONDS,
    PATIENT_SECONDS,
    PROGRESS_SECONDS,
    QUIET_SECONDS,
    RANKS,
    SLACK_SECONDS,
    Case,
    Ended,
    Judge,
    without_job,
)
from mpi_programs.leaving import leave
from telling import tell

WORLD = MPI.COMM_WORLD
#: A message that never comes: to look for it lets MPI go on.
PENDING = MPI.COMM_SELF.Irecv(bytearray(1))
#: A case that takes longer hangs [s].
CASE_SECONDS = 100.0
#: How long a rank may take to end what limits hold [s].
END_SECONDS = ARRIVAL_SECONDS + 2 * PROGRESS_SECONDS + 2 * SLACK_SECONDS
#: Longest stall, if nobody ends it [ms].
STALL_MS = 30_000
#: How long the second attempt waits at the call at which a rank is to come back [ms].
PAUSE_MS = 400


class BrokenError(Exception):
    """The lane cannot go on."""


def wait_for(found: Callable[[], bool], seconds: float) -> bool:
    """Wait until something is so; returns whether it is.

    MPI goes on meanwhile: where the first call on a communicator reached its limit, MPICH makes no other communicator
    until each rank of that one, the late one included, has been in MPI again.
    """
    until = time.monotonic() + seconds
    while not found():
        if time.monotonic() > until:
            return False
        PENDING.Test()
        time.sleep(0.003)
    return True


def meet(comm: MPI.Comm) -> None:
    """Wait for all ranks without taking the cores from those that are at work."""
    request = comm.Ibarrier()
    while not request.Test():
        time.sleep(0.001)


class Notes:
    """Files by which the ranks of a case tell each other."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def write(self, name: str, content: Any) -> None:
        """Tell all."""
        tell(self._directory / name, content)

    def there(self, name: str) -> bool:
        """Whether it has been told."""
        return (self._directory / name).exists()

    def read(self, name: str, seconds: float) -> Any:
        """What was told, when it has been."""
        path = self._directory / name
        if not wait_for(lambda: path.exists() or self.there("broken"), seconds) or not path.exists():
            message = f"nobody wrote '{name}' within {seconds:.0f} s"
            raise BrokenError(message)
        return json.loads(path.read_text())

    def path(self, name: str) -> Path:
        """Where it would be."""
        return self._directory / name


class Lane:
    """One rank of a lane."""

    def __init__(self, directory: Path, ranks: list[int]) -> None:
        self.directory = directory
        self.living = ranks
        self.rank = WORLD.rank
        self.faults = Faults()

    def comm(self, ranks: list[int], tag: int) -> MPI.Intracomm:
        """A fresh communicator of some ranks."""
        return WORLD.Create_group(WORLD.group.Incl(ranks), tag=tag)

    def run(self, number: int, case: Case) -> None:
        """Carry out one case."""
        faulthandler.dump_traceback_later(CASE_SECONDS, exit=True)
        group, others = self.living[:RANKS], self.living[RANKS:]
        if not others:
            case = without_job(case)
        victim = group[case.victim]
        rest = [rank for rank in group if rank != victim]
        one = _Case(self, number, case, group, rest, others)
        # All are here before files of the case are made by one, and begin when they are there.
        meet(self.comm(self.living, 8 * number))
        if self.rank == rest[0]:
            one.prepare()
        meet(self.comm(self.living, 8 * number + 1))
        try:
            one.run()
        except Exception as error:
            one.give_up(error)
            raise
        if one.breaks:
            message = "MPI broke with a death"
            raise BrokenError(message)
        if case.event == "kill":
            self.living = [rank for rank in self.living if rank != victim]
        faulthandler.cancel_dump_traceback_later()


class _Case:
    """One rank in one case."""

    def __init__(
        self, lane: Lane, number: int, case: Case, group: list[int], rest: list[int], others: list[int]
    ) -> None:
        self.lane, self.number, self.case = lane, number, case
        self.made = case.made
        self.group, self.rest, self.others = group, rest, others
        self.rank, self.victim, self.leader = lane.rank, group[case.victim], rest[0]
        self.faults = lane.faults
        base = lane.directory / str(number)
        self.template, self.undisturbed, self.directory = base / "template", base / "undisturbed", base / "case"
        self.base = base
        self.notes = Notes(base)
        self.retrying = {"same": group, "others": rest, "job": others}[case.again]
        #: Of each rank of the group in an undisturbed attempt.
        self.counts: list[dict[str, int]] = []
        self.began = time.monotonic()
        #: Whether MPI broke with a death, so that nobody but another job can go on.
        self.alone = False
        self.back: Ended | None = None
        self.usual_seconds = 0.0

    def prepare(self) -> None:
        """Make what is there before."""
        self.template.mkdir(parents=True)
        self.made.prepare(self.template)
        self.before = self.made.look(self.template)
        shutil.copytree(self.template, self.undisturbed)
        shutil.copytree(self.template, self.directory)

    @property
    def breaks(self) -> bool:
        """Whether MPI broke with a death, so that the lane cannot go on."""
        return self.notes.there("over") and bool(self.notes.read("over", 1.0))

    def give_up(self, error: Exception) -> None:
        """Let no rank wait for others, and say why."""
        if not self.notes.there("broken"):
            self.notes.write("broken", str(error))
        if self.rank == self.leader:
            told = f"{type(error).__name__}: {error}"
            self._write_result([*self.judge.complaints, f"it did not go on: {told}"], stopped=True)

    def run(self) -> None:
        """Carry out all that this rank has to do in the case."""
        if self.rank in self.group:
            if not self._count():
                return
            self._first()
        elif self.notes.read("feasible", CASE_SECONDS) is False:
            return
        plan = None
        if self.rank == self.leader:
            self._judge_first()
        if self.rank in self.retrying:
            plan = self.notes.read("second", CASE_SECONDS)
            self._second(plan)
        if self.rank == self.victim:
            self._settle()
        if self.rank == self.leader:
            self._judge_second()
        if self.rank in self.rest:
            self._third(self.notes.read("third", CASE_SECONDS))
        if self.rank == self.leader:
            self._judge_third()
        if not (self.rank == self.victim and self.case.event == "kill"):
            self.notes.read("over", CASE_SECONDS)

    # ---- attempts ----------------------------------------------------------------------------------------------

    def _attempt(self, comm: MPI.Intracomm | None, directory: Path, number: int, **options: Any) -> Ended:
        # Other ranks may not be able to do it in the same way.
        strategy = self.case.strategy if number == 1 or self.case.strategy not in OWN else None
        attempt = Attempt(comm, directory, number, strategy, **options)
        started = time.monotonic()
        told = carry_out(self.made, attempt)
        seconds = time.monotonic() - started
        errors = [(type(error).__name__, str(error).replace(f"{self.base}/", "")) for error in attempt.errors]
        return Ended(errors, told, attempt.published, seconds, self.faults.where())

    def _count(self) -> bool:
        """Carry out the operation undisturbed, on all ranks of the group; whether that can be done."""
        comm = self.lane.comm(self.group, 8 * self.number + 2)
        self.faults.watch(self.undisturbed)
        patient = limits(PATIENT_SECONDS, PATIENT_SECONDS)
        end = self._attempt(comm, self.undisturbed, 1, limits=patient)
        self.counts = comm.allgather(self.faults.counts())
        self.usual_seconds = comm.allreduce(end.seconds, MPI.MAX)
        self.faults.rest()
        feasible = not any("cannot carry out" in text for _, text in end.errors)
        assert end.errors == [] or not feasible, end.errors
        if comm.rank == 0:
            self.notes.write("feasible", feasible)
            shutil.rmtree(self.undisturbed)
            if not feasible:
                infeasible = {"case": str(self.case), "infeasible": True, "wrong": []}
                tell(self.lane.directory / f"{self.number}.result", infeasible)
        return feasible

    def _first(self) -> None:
        """The attempt in which one rank goes out."""
        comm = self.lane.comm(self.group, 8 * self.number + 3)
        if self.case.connected:
            # Otherwise the first call of the package on this communicator may be where a rank goes out.
            hs.open(self.template / "connect.zarr", "w", comm=comm).close()
        self.faults.watch(self.directory)
        meet(comm)
        if self.rank == self.victim:
            self.notes.write("pid", os.getpid())
            self._go_out()
        end = self._attempt(comm, self.directory, 1, limits=limits(ARRIVAL_SECONDS, PROGRESS_SECONDS))
        if self.rank == self.victim:
            self.notes.write("victim", asdict(end))
            return
        self.faults.rest()
        self.notes.write(f"first-{self.rank}", asdict(end))

    def _go_out(self) -> None:
        """See to it that this rank is killed, stopped or stalled."""
        case, counts = self.case, self.counts[self.case.victim]
        number = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}.get(case.event)
        made = [name for name in (case.moment, "write", "sync", "open", "stat") if counts.get(name, 0) > 0]
        self.faults.gate(self.notes.path("back"))
        if number is not None and (case.moment == "" or not made):
            wait = case.part * self.usual_seconds
            threading.Timer(wait, partial(os.kill, os.getpid(), number)).start()
        elif made:
            first = 1 + int(case.part * counts[made[0]])
            self.faults.arm(Fault(made[0], first, case.event, STALL_MS))
        else:
            # A rank that has nothing to do with storage can only come late.
            wait_for(partial(self.notes.there, "back"), STALL_MS / 1000)

    def _come_back(self) -> None:
        """Let the rank that is out go on."""
        self.notes.write("back", content=True)
        if self.case.event == "stop":
            os.kill(self.notes.read("pid", 1.0), signal.SIGCONT)

    def _second(self, plan: dict[str, Any]) -> None:
        """The same again, in the middle of which the rank that was out comes back."""
        comm = self.lane.comm(self.retrying, 8 * self.number + 4)
        options: dict[str, Any] = {"turn": plan["turn"], "limits": limits(PATIENT_SECONDS, PATIENT_SECONDS)}
        first = comm.rank == 0
        over = threading.Event()
        watching: threading.Thread | None = None
        if self.case.before_publish:
            options["before_publish"] = partial(self._come_back_and_wait, first)
        # A rank that is to come back itself counts and waits in its first attempt.
        elif first and self.rank != self.victim and self.case.back is not None and self.case.event != "kill":
            self.faults.watch(self.directory)
            number = 1 + int(self.case.back_part * plan["counts"].get(self.case.back, 0))
            self.faults.arm(Fault(self.case.back, number, "delay", PAUSE_MS))
            watching = threading.Thread(target=self._watch, args=(over,))
            watching.start()
        end = self._attempt(comm, self.directory, 2, **options)
        over.set()
        if watching is not None:
            watching.join()
            self.faults.rest()
        self.notes.write(f"second-{self.rank}", asdict(end))

    def _watch(self, over: threading.Event) -> None:
        while not over.is_set():
            if self.faults.hits() > 0:
                self._come_back()
                return
            time.sleep(0.002)

    def _come_back_and_wait(self, first: bool) -> None:  # noqa: FBT001
        """Before a step is published: until the rank that came back has done what it would do."""
        if first and self.case.event != "kill":
            self._come_back()
            if self.case.again != "same":
                wait_for(partial(self.notes.there, "settled"), END_SECONDS)
                return
        time.sleep(2 * QUIET_SECONDS)

    def _settle(self) -> None:
        """Wait until this rank, which was out, does nothing more."""
        counts, since = self.faults.counts(), time.monotonic()
        while self.faults.stalled() > 0 or time.monotonic() - since < QUIET_SECONDS:
            now = self.faults.counts()
            if now != counts:
                counts, since = now, time.monotonic()
            time.sleep(0.01)
        self.notes.write("settled", {"where": self.faults.where()})
        self.faults.rest()

    def _third(self, plan: dict[str, Any]) -> None:
        """An attempt that nothing disturbs."""
        comm = None if plan["alone"] else self.lane.comm(self.rest, 8 * self.number + 5)
        if plan["alone"] and self.rank != self.leader:
            return
        patient = limits(PATIENT_SECONDS, PATIENT_SECONDS)
        end = self._attempt(comm, self.directory, 3, turn=plan["turn"], limits=patient)
        self.notes.write(f"third-{self.rank}", asdict(end))

    # ---- what the leader sees of them ----------------------------------------------------------------------------

    def _ends(
        self, attempt: str, ranks: list[int], seconds: float = PATIENT_SECONDS + SLACK_SECONDS
    ) -> dict[int, Ended]:
        """What ranks ended with."""
        return {rank: Ended(**self.notes.read(f"{attempt}-{rank}", seconds)) for rank in ranks}

    def _judge_first(self) -> None:
        judge = self.judge = Judge(self.case, self.directory, self.before)
        ends = self._ends("first", self.rest, END_SECONDS)
        # A rank that has ended, too, was not held up; one that is dead, stopped or stalled in the call itself has not.
        hit = not self.notes.there("victim")
        judge.look_at_first({self.group.index(rank): end for rank, end in ends.items()}, hit=hit)
        self.alone = judge.lost_link
        if self.case.again == "same" and not wait_for(partial(self.notes.there, "victim"), 2 * PROGRESS_SECONDS):
            # It is held up in the call itself, and cannot take part before it is back.
            self._come_back()
            self.notes.read("victim", END_SECONDS)
        judge.turns[2] = self.made.turn(judge.state)
        plan = {"turn": judge.turns[2], "counts": self.counts[0]}
        if self.alone and self.leader in self.retrying:
            self.retrying = []
            return
        self.notes.write("second", plan)

    def _judge_second(self) -> None:
        judge = self.judge
        ends = self._ends("second", self.retrying)
        back = None
        if self.case.event != "kill":
            self._come_back()
            back = Ended(**self.notes.read("victim", END_SECONDS))
            if not wait_for(partial(self.notes.there, "settled"), END_SECONDS / 2):
                # The call at which it stops may have come after its attempt, and after it was told to go on.
                self._come_back()
            back.where = self.notes.read("settled", END_SECONDS)["where"] or back.where
        if ends:
            judge.look_at_second(ends, back)
        else:
            judge.state = self.made.look(self.directory)
        judge.turns[3] = self.made.turn(judge.state)
        self.back = back
        self.notes.write("third", {"turn": judge.turns[3], "alone": self.alone})

    def _judge_third(self) -> None:
        judge = self.judge
        judge.look_at_third(self._ends("third", [self.leader] if self.alone else self.rest))
        self._write_result(judge.complaints)
        self.notes.write("over", self.alone)
        shutil.rmtree(self.directory, ignore_errors=True)
        shutil.rmtree(self.template, ignore_errors=True)

    def _write_result(self, wrong: list[str], *, stopped: bool = False) -> None:
        errors = {rank: end.errors for rank, end in self.judge.ends.items()}
        seconds = time.monotonic() - self.began
        told = {"case": str(self.case), "errors": errors, "wrong": wrong, "seconds": seconds}
        told |= {} if self.back is None else {"back": asdict(self.back)}
        told |= {"broke": self.alone, "stopped": stopped}
        tell(self.lane.directory / f"{self.number}.result", told)


def main() -> None:
    """Run under MPI; a rank that is left alone by a dead one cannot finalize it, so all leave without."""
    directory, lanes = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
    size = WORLD.size // len(lanes)
    number = min(WORLD.rank // size, len(lanes) - 1)
    last = WORLD.size if number == len(lanes) - 1 else (number + 1) * size
    lane = Lane(directory / str(number), list(range(number * size, last)))
    try:
        for each, case in enumerate(lanes[number]):
            lane.run(each, Case(**case))
    except BaseException:  # noqa: BLE001 (shown, and the end)
        traceback.print_exc()
    finally:
        (directory / f"ended-{WORLD.rank}").touch()
        leave()


if __name__ == "__main__":
    main()
