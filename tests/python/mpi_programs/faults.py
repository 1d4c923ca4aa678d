"""Lets system calls of one rank fail in the middle of operations, and checks what becomes of it on all ranks.

Usage: faults DIRECTORY TASK, where TASK is a file with JSON:
    {"seed": number, "pairs": [[operation, strategy], ...], "faults": how many for each pair, or null for all,
     "only": "lasting" for those after which nothing of their class works any more, "late" for those that the sync or
     the close of a descriptor tells, or null}

Each pair is first carried out undisturbed, to count the calls of each rank; then once for each fault. Rank 0 writes one
line of JSON for each case that went wrong into the file ``wrong`` in the directory, and prints a summary.
"""

from __future__ import annotations

import errno
import faulthandler
import json
import re
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import hyperslab as hs
import numpy as np
from mpi4py import MPI

from fault_library import CLASSES, Fault, Faults
from fault_operations import (
    ARRIVAL_SECONDS,
    OPERATIONS,
    PROGRESS_SECONDS,
    Attempt,
    Operation,
    State,
    beside_data,
    carry_out,
    files,
    hidden,
    is_poisoned,
    names_any,
    names_unfinished,
    reopen,
)

WORLD = MPI.COMM_WORLD
#: What may pass beyond the limits on a machine that has other things to do, too [s].
SLACK_SECONDS = 8.0
#: No case takes longer unless it hangs [s].
CASE_SECONDS = 60.0
#: All calls from some number on.
ALL = 1 << 40
#: In an error that says that what was asked for will be seen all the same, perhaps is, or is.
SAYS_LATER = "the next opening for writing publishes"
SAYS_PERHAPS = "readers may see the change already"
SAYS_PUBLISHED = re.compile(r"^(?!.*\bnothing\b).*\b(is|was|are|were) published", re.MULTILINE)
DELAY_MS = 20

Outcome = tuple[list[tuple[str, str]], list[str], bool, bool, float]


def errors(name: str) -> tuple[int, ...]:
    """Error numbers with which calls of a class may fail."""
    creates = name in ("open", "write", "sync", "rename", "exchange", "mkdir", "truncate", "link")
    interrupted = name in ("open", "read", "write", "sync", "truncate")
    return (errno.EIO, *[errno.ENOSPC] * creates, *[errno.EINTR] * interrupted)


def possible(counts: dict[str, int]) -> list[Fault]:
    """All faults of one rank."""
    found = []
    for name in CLASSES:
        for number in range(1, counts[name] + 1):
            found += [Fault(name, number, "fail", value) for value in errors(name)]
            found += [Fault(name, number, "shorten")] * (name in ("read", "write"))
            found.append(Fault(name, number, "delay", DELAY_MS))
            # Once more when it is taken back.
            found += [Fault(name, number, "fail", errno.EIO, 2)] * (name in ("sync", "write", "rename"))
        # File systems without locks, and those that can neither exchange names nor rename without replacing.
        absent = {"lock": errno.ENOLCK, "exchange": errno.EINVAL}
        if name in absent and counts[name] > 0:
            found.append(Fault(name, 1, "fail", absent[name], ALL))
    # Those of writing as often as all others of it.
    return found + lasting(counts) + 6 * late(counts)


def late(counts: dict[str, int]) -> list[Fault]:
    """Those of one rank that its system tells late: with the sync of a descriptor that wrote, or with its close."""
    lost = [Fault("write", number, "lose", errno.ENOSPC) for number in range(1, counts["write"] + 1)]
    return lost + [Fault("close", number, "fail", errno.EIO) for number in range(1, counts["close"] + 1)]


def lasting(counts: dict[str, int]) -> list[Fault]:
    """Those of one rank after which nothing of a class works any more, from each of its calls on."""
    each = ((name, first) for name in CLASSES for first in range(1, counts[name] + 1))
    return [Fault(name, first, "fail", errno.EIO, ALL) for name, first in each]


def chosen(every: list[tuple[int, Fault]], random: np.random.Generator, number: int | None) -> list[tuple[int, Fault]]:
    """Of ranks and faults all, or some, of which each class has the same part."""
    if number is None or not every:
        return every
    classes = sorted({fault.name for _, fault in every})
    found = []
    for _ in range(number):
        name = random.choice(classes)
        some = [each for each in every if each[1].name == name]
        found.append(some[int(random.integers(len(some)))])
    return found


def is_one_alone(every: list[list[tuple[str, str]]]) -> bool:
    """Whether one rank failed by itself, and the others say that it did not come along."""
    firsts = [found[0] if found else ("none", "") for found in every]
    alone = [text for kind, text in firsts if kind == "StorageError"]
    # What fails in a call names the call in front.
    looked = len(alone) == 1 and alone[0].startswith(("reading ", "opening ", "looking at "))
    return looked and {kind for kind, _ in firsts} <= {"StorageError", "DisagreementError", "PeerError", "TimeoutError"}


def must_succeed(fault: Fault, where: str) -> bool:
    """Whether nothing may come of a fault."""
    if fault.kind in ("delay", "shorten"):
        return True
    # What takes the place of these calls on file systems that do not have them.
    if fault.value in (errno.ENOLCK, errno.EINVAL):
        return True
    # Of these, no manual says that they may be interrupted.
    return fault.value == errno.EINTR and not where.startswith(("syncfs", "opendir", "syscall"))


#: What says who has what under way; its makers keep it open, and it holds no data.
RECORD = re.compile(r"(/owner|-owners|hyperslab-update|hyperslab-first)( \(deleted\))?$")


def must_fail(fault: Fault, made: Operation, where: str) -> bool:
    """Whether success would be a lie: what was to be written or synced may not be there."""
    lost = fault.value in (errno.EIO, errno.ENOSPC)
    if fault.kind == "lose" or fault.name == "close":
        return lost and fault.kind in ("fail", "lose") and RECORD.search(where) is None
    # Where a marker cannot say that it rests, it goes.
    lost &= not (made.cached and where.endswith(made.marker))
    return fault.kind == "fail" and lost and fault.name in ("write", "sync") and "read" not in made.name


def meet(comm: MPI.Comm) -> None:
    """Wait for all ranks without taking the cores from those that are at work."""
    request = comm.Ibarrier()
    while not request.Test():
        time.sleep(0.0005)


@dataclass
class Case:
    """One operation with one fault."""

    made: Operation
    strategy: str | None
    rank: int
    fault: Fault
    directory: Path
    #: What is seen before, and the files that are there after an undisturbed run.
    before: State
    reference: list[str]

    def __str__(self) -> str:
        """In words."""
        return f"{self.made.name} by {self.strategy}: on rank {self.rank}, {self.fault}"


class Tester:
    """One rank that tries faults; rank 0 judges."""

    def __init__(self, directory: Path, faults_of: Callable[[dict[str, int]], list[Fault]]) -> None:
        self.directory = directory
        self.faults_of = faults_of
        self.faults = Faults()
        self.comm = WORLD.Dup()
        self.rank = WORLD.rank
        self.tried = self.hit = self.wrong = 0
        #: By what cases ended with.
        self.kinds: dict[str, int] = {}

    def _carry_out(self, made: Operation, attempt: Attempt) -> Outcome:
        """What an operation ends with on this rank."""
        started = time.monotonic()
        told = carry_out(made, attempt)
        seconds = time.monotonic() - started
        found = [(type(error).__name__, str(error).replace(f"{self.directory}/", "")) for error in attempt.errors]
        poisoned = any(is_poisoned(error) for error in attempt.errors)
        return found, told, attempt.published, poisoned, seconds

    def count(
        self, made: Operation, strategy: str | None
    ) -> tuple[Path, State, list[str], list[dict[str, int]]] | None:
        """Carry out an operation undisturbed: template, what is seen before, files afterwards, calls of each rank."""
        template, undisturbed = self.directory / "template", self.directory / "undisturbed"
        if self.rank == 0:
            template.mkdir()
            made.prepare(template)
            shutil.copytree(template, undisturbed)
        meet(WORLD)
        self.faults.watch(undisturbed)
        attempt = Attempt(self.comm, undisturbed, 1, strategy)
        outcomes = WORLD.gather(self._carry_out(made, attempt))
        counts = WORLD.allgather(self.faults.counts())
        self.faults.rest()
        infeasible, found = False, None
        if outcomes is not None:
            texts = [text for found_errors, *_ in outcomes for _, text in found_errors]
            infeasible = any("cannot carry out" in text for text in texts)
            if not infeasible:
                assert texts == [], texts
                before, after = made.look(template), made.look(undisturbed)
                assert after == made.after(before, attempt), (before, after)
                assert hidden(undisturbed) == [], hidden(undisturbed)
                found = (template, before, files(undisturbed))
            shutil.rmtree(undisturbed)
        found = WORLD.bcast(found)
        return None if found is None else (*found, counts)

    def try_pair(self, name: str, strategy: str | None, random: np.random.Generator, number: int | None) -> None:
        """Count and then try faults in one operation with one strategy."""
        made = OPERATIONS[name]
        counted = self.count(made, strategy)
        if counted is not None:
            template, before, reference, counts = counted
            every = [(rank, fault) for rank, each in enumerate(counts) for fault in self.faults_of(each)]
            for rank, fault in chosen(every, random, number):
                case = Case(made, strategy, rank, fault, self.directory / "case", before, reference)
                if self.rank == 0:
                    shutil.copytree(template, case.directory)
                self._try_case(case)
        if self.rank == 0:
            shutil.rmtree(self.directory / "template")
        meet(WORLD)

    def _try_case(self, case: Case) -> None:
        faulthandler.dump_traceback_later(CASE_SECONDS, exit=True)
        if self.rank == 0:
            (self.directory / "last").write_text(str(case))
        self.faults.watch(case.directory)
        if self.rank == case.rank:
            self.faults.arm(case.fault)
        meet(WORLD)
        attempt = Attempt(self.comm, case.directory, 1, case.strategy)
        outcome = self._carry_out(case.made, attempt)
        where = self.faults.where()
        hits = self.faults.hits()
        # What still runs after an error may not suffer any more, or may in a later case.
        self.faults.rest()
        wheres = WORLD.gather((hits, where))
        outcomes = WORLD.gather(outcome)
        retries, turn = False, 1
        judge: Judge | None = None
        if outcomes is not None and wheres is not None:
            judge = Judge(case, outcomes, *wheres[case.rank])
            judge.look()
            retries, turn = judge.failed, case.made.turn(judge.state)
        retries, turn = WORLD.bcast((retries, turn))
        poisoned = WORLD.allreduce(outcome[3], MPI.LOR)
        if poisoned:
            self.comm = WORLD.Dup()
        if retries:
            second = Attempt(self.comm, case.directory, 2, case.strategy, turn)
            outcomes = WORLD.gather(self._carry_out(case.made, second))
            if judge is not None and outcomes is not None:
                judge.look_again(outcomes, second)
        if judge is not None:
            judge.look_for_leftovers()
            self._note(judge)
            shutil.rmtree(case.directory, ignore_errors=True)
        faulthandler.cancel_dump_traceback_later()

    def _note(self, judge: Judge) -> None:
        self.tried += 1
        self.hit += judge.hits > 0
        kind = judge.errors[0][0] if judge.errors else "none"
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        if judge.complaints:
            told = {"case": str(judge.case), "at": judge.where, "errors": judge.errors, "wrong": judge.complaints}
            self.wrong += 1
            with (self.directory / "wrong").open("a") as file:
                file.write(f"{json.dumps(told)}\n")


class Judge:
    """Rank 0's view of one case."""

    def __init__(self, case: Case, outcomes: list[Outcome], hits: int, where: str) -> None:
        self.case = case
        self.hits, self.where = hits, where.replace(f"{case.directory}/", "")
        self.complaints: list[str] = []
        self.errors, self.warnings = self._agreed(outcomes)
        self.failed = bool(self.errors)
        self.published = any(published for _, _, published, _, _ in outcomes)
        #: Whether it is said that an opening for writing publishes what is not yet; that nobody knows.
        self.later = self.perhaps = False
        self.named: list[str] = []
        self.state: State = {}
        self._judge_errors()

    def _agreed(self, outcomes: list[Outcome]) -> tuple[list[tuple[str, str]], list[str]]:
        """The errors of all ranks, which are the same, and all warnings."""
        every = [found for found, *_ in outcomes]
        if any(found != every[0] for found in every) and not (self.case.made.looks_alone and is_one_alone(every)):
            self.complaints.append(f"ranks do not end alike: {every}")
        for found in every:
            for kind, _ in found:
                if not issubclass(getattr(hs, kind, object), hs.Error):
                    self.complaints.append(f"{kind} is no error of the package: {found}")
        longest = max(seconds for *_, seconds in outcomes)
        if longest > ARRIVAL_SECONDS + PROGRESS_SECONDS + SLACK_SECONDS:
            self.complaints.append(f"it took {longest:.1f} s")
        return every[0], [text for _, told, _, _, _ in outcomes for text in told]

    def _judge_errors(self) -> None:
        if not self.hits:
            return
        if self.failed and must_succeed(self.case.fault, self.where):
            self.complaints.append("nothing should have come of this fault")
        if not self.failed and must_fail(self.case.fault, self.case.made, self.where) and not self.warnings:
            self.complaints.append("nobody was told of a failure to write or sync")
        # What follows is told of closing.
        first = self.errors[:1]
        self.later = any(SAYS_LATER in text for _, text in first)
        self.perhaps = any(SAYS_PERHAPS in text for _, text in first)
        self.published |= any(
            kind == "UnsyncedError" or SAYS_PUBLISHED.search(text) is not None for kind, text in first
        )

    def look(self) -> None:
        """What readers see after the fault, and again after an opening for writing."""
        case, made = self.case, self.case.made
        new = made.after(case.before, Attempt(None, case.directory, 1))
        stages = made.stages(case.before, Attempt(None, case.directory, 1))
        self.state = made.look(case.directory)
        left = hidden(case.directory)
        if self.later:
            self._look_later(new)
        elif self.perhaps:
            self._check(self.state, [case.before, *stages, new], "where it is not known whether it can be seen")
            self.published = self.state == new
        elif made.in_place:
            self._look_in_place(new)
        elif not self.failed or self.published:
            allowed = [*stages, new] if self.failed else [new]
            self._check(self.state, allowed, "after success" if not self.failed else "after it was published")
        else:
            self._check_attempt(new, stages)
        if self.failed:
            self.named = self.named or reopen(made, case.directory, "r+")
            told = [*self.named, *self.warnings, *(text for _, text in self.errors)]
            if left and not names_any(left, told):
                self.complaints.append(f"left behind and named by nobody: {left[:6]}; told: {told}")

    def _check(self, state: State, allowed: list[State], when: str) -> None:
        if state not in allowed:
            differ = {part: (state.get(part), allowed[-1].get(part)) for part in state.keys() | allowed[-1].keys()}
            wrong = {part: pair for part, pair in sorted(differ.items()) if pair[0] != pair[1]}
            self.complaints.append(f"{when}, (seen, expected): {dict(list(wrong.items())[:6])}")

    def _look_later(self, new: State) -> None:
        """Each part old or new, and all of them new once somebody has opened it for writing."""
        old = self.case.before
        # Of a pair that differs, the state says nothing else.
        is_part = [part in old.keys() | new.keys() for part in self.state]
        parts = {part: found for part, found in self.state.items() if any(is_part)}
        mixed = {part: found for part, found in parts.items() if found not in (old.get(part), new.get(part))}
        if mixed:
            self.complaints.append(f"before it is published, parts are neither old nor new: {mixed}")
        self.named = reopen(self.case.made, self.case.directory, "r+")
        self.state = self.case.made.look(self.case.directory)
        self._check(self.state, [new], "after it was published by an opening")
        self.published = True

    def _look_in_place(self, new: State) -> None:
        case, state = self.case, self.state
        if not self.failed or self.published:
            return self._check(state, [new], "after success" if not self.failed else "after it was published")
        either = {part: (case.before[part], new[part]) for part in case.before}
        chunked = case.made.marker.startswith("a.zarr")
        wrong = {
            part: found
            for part, found in state.items()
            if found not in either[part] and (chunked or found != "+".join(map(str, either[part])))
        }
        if wrong or state.keys() != case.before.keys():
            self.complaints.append(f"parts are neither old nor new: {wrong}")
        if state in (case.before, new):
            return None
        if not (case.directory / case.made.marker).exists():
            self.complaints.append("some parts are old and some new, and there is no marker")
        named = reopen(case.made, case.directory, "r")
        if not any(map(names_unfinished, named)):
            self.complaints.append(f"some parts are old and some new, and an opening to read names nothing: {named}")
        return None

    def _check_attempt(self, new: State, stages: list[State]) -> None:
        """All or nothing; an exchange of several arrays may be half done if that is said and ends later."""
        case, state = self.case, self.state
        allowed = [*stages, case.before]
        if case.made.between is not None:
            allowed += [case.made.between, {"store": "absent"}]
        if state in allowed:
            return
        if state == new:
            self.complaints.append(f"the error does not say that it is published: {self.errors}")
            self.published = True
            return
        named = reopen(case.made, case.directory, "r")
        after = reopen(case.made, case.directory, "r+")
        if any(map(names_unfinished, named)):
            self.state = case.made.look(case.directory)
            self._check(self.state, [case.before, new], f"half done, named by {named}, and opened again ({after})")
            self.published = self.state == new
        else:
            self._check(state, allowed, "after an error")

    def look_again(self, outcomes: list[Outcome], second: Attempt) -> None:
        """The same operation once more."""
        found, _ = self._agreed(outcomes)
        if found:
            self.complaints.append(f"it does not work again: {found}")
            return
        made = self.case.made
        before = made.look(self.case.directory) if made.in_place else self.state
        self.state = made.look(self.case.directory)
        self._check(self.state, [made.after(before, second)], "after another attempt")
        once = made.after(self.case.before, Attempt(None, self.case.directory, 1))
        if self.state.keys() == once.keys():
            self._compare_files()

    def _compare_files(self) -> None:
        found, expected = set(files(self.case.directory)), set(self.case.reference)
        differ = sorted(f"+{name}" for name in found - expected) + sorted(f"-{name}" for name in expected - found)
        if not set(differ) <= {f"+{name}" for name in hidden(self.case.directory)}:
            self.complaints.append(f"other files than after an undisturbed run: {differ[:6]}")

    def look_for_leftovers(self) -> None:
        """At the end, there is nothing but data."""
        left = beside_data(self.case.made, self.case.directory)
        if left and self.failed:
            self.complaints.append(f"left behind after another attempt: {left[:6]}")
        elif left and not names_any(left, self.warnings):
            self.complaints.append(f"left behind after success: {left[:6]}; warnings: {self.warnings}")


def main() -> None:
    """Run under MPI."""
    directory, task = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
    tester = Tester(directory, {"lasting": lasting, "late": late, None: possible}[task["only"]])
    random = np.random.default_rng(task["seed"])
    for name, strategy in task["pairs"]:
        tester.try_pair(name, strategy, random, task["faults"])
    if WORLD.rank == 0:
        ends = ", ".join(f"{kind} {number}" for kind, number in sorted(tester.kinds.items()))
        print(
            f"{tester.tried} faults, of which {tester.hit} happened, in {len(task['pairs'])} pairs; ended with {ends}"
        )
        print(f"{tester.wrong} cases went wrong")


if __name__ == "__main__":
    main()
