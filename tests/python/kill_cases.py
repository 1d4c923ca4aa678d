"""Ranks that are killed, stopped or stalled in the middle of an operation: cases by chance, and what must hold.

A case has three attempts, whose elements differ. In the first, one rank of four goes out: it is killed, or stopped, or
one of its system calls takes longer than the limits. When the others have ended with an error, a second attempt does
the same thing again, by the same ranks, by those that are left, or by another job. The rank that was out comes back in
the middle of that, unless it is dead. When it has ended, too, a third attempt must find everything in order.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import hyperslab as hs
import numpy as np

from fault_operations import (
    OPERATIONS,
    SHAPE,
    Attempt,
    Operation,
    State,
    beside_data,
    filled,
    look_at_store,
    names_any,
    names_unfinished,
    prepare_store,
    reopen,
    turns,
)

#: Ranks of a first attempt.
RANKS = 4
#: Limits of the first attempt, in which a rank goes out [s].
ARRIVAL_SECONDS = 1.5
PROGRESS_SECONDS = 1.0
#: Those of attempts that nothing disturbs, on a machine that has other things to do, too [s].
PATIENT_SECONDS = 30.0
#: What may pass between a limit and the error [s].
SLACK_SECONDS = 8.0
#: A rank that has made no call for this time, and is not stalled, makes no more [s].
QUIET_SECONDS = 0.3
#: Chunks of more than 4 MiB, which are written by a thread beside the one that made the call.
LARGE_COLUMNS = 300_000
LARGE_SHAPE = (SHAPE[0] // 2, LARGE_COLUMNS)
LARGE_CHUNKS = (2, LARGE_COLUMNS)
LARGE_CUTS = range(0, LARGE_SHAPE[0] + 1, 2)
#: When a rank goes out: at a call of one of these classes, or at some moment.
MOMENTS = ("write", "write", "write", "open", "sync", "rename", "exchange", "mkdir", "unlink", "stat", "lock")
#: How an error says that a rank is missing.
BLAME = re.compile(r"rank (\d+)[^:\n]*? (?:did not|does not|stopped|is gone|died|has not)")

Event = Literal["kill", "stop", "stall"]
Again = Literal["same", "others", "job"]


def large_step(attempt: Attempt) -> None:
    with attempt.store() as store:
        attributes = {"attempt": attempt.number}
        with store.step(f"{attempt.turn:04}", attributes=attributes, before_publish=attempt.before_publish) as group:
            group.write("a", *attempt.given(LARGE_SHAPE), chunks=LARGE_CHUNKS)
        attempt.published = True


LARGE_STEP = Operation(
    large_step,
    prepare_store,
    look_at_store,
    lambda s, a: s | {f"{a.turn:04}/": a.number} | filled(f"{a.turn:04}/a", a.number, LARGE_CUTS),
    turn=turns("{:04}/"),
)
#: Those that change something, by name.
CHANGING = {name: made for name, made in OPERATIONS.items() if "read" not in name and name != "clearing up"}


@dataclass(frozen=True)
class Case:
    """What happens to whom, and who tries again."""

    operation: str
    strategy: str | None
    event: Event
    #: Which rank goes out, and at which part of its calls of a class; at which part of the time, if there are none.
    victim: int
    moment: str
    part: float
    again: Again
    #: At which call of the first rank of the second attempt the rank comes back; after all of them without.
    back: str | None
    back_part: float = 0.0
    #: Whether it comes back when a step is written and not yet published.
    before_publish: bool = False
    #: Whether the communicator has been used before.
    connected: bool = True

    @property
    def made(self) -> Operation:
        """The operation."""
        return LARGE_STEP if self.operation == LARGE_STEP.name else CHANGING[self.operation]

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    def __str__(self) -> str:
        """In words."""
        when = f"{self.moment} {self.part:.2f}"
        back = "" if self.event == "kill" else f", back at {self.back} {self.back_part:.2f}"
        if self.before_publish:
            back = ", back before publishing"
        fresh = "" if self.connected else " of a fresh communicator"
        what = f"{self.operation} by {self.strategy}: {self.event} rank {self.victim} at {when}{fresh}"
        return f"{what}; again {self.again}{back}"


def random_case(random: np.random.Generator, *, kill: bool) -> Case:
    """Any case."""
    fenced = [name for name, made in CHANGING.items() if kill or made.fenced]
    name = str(random.choice([*fenced, LARGE_STEP.name]))
    strategies = LARGE_STEP.strategies if name == LARGE_STEP.name else CHANGING[name].strategies
    event: Event = "kill" if kill else ("stop", "stall")[int(random.integers(2))]
    ways: list[Again] = ["others", "job"] if event != "stall" else ["same", "others", "job"]
    moments = [*MOMENTS, *[""] * (0 if event == "stall" else 4)]
    return Case(
        name,
        strategies[int(random.integers(len(strategies)))],
        event,
        # Rank 0, who publishes, is the one whose return does most.
        int(random.choice([0, 0, 1, 2, 3])),
        str(random.choice(moments)),
        float(random.random()),
        ways[int(random.integers(len(ways)))],
        None if random.random() < 0.2 else str(random.choice(["write", "sync", "rename", "exchange", "mkdir"])),
        float(random.random()),
        bool(name.endswith("step") and random.random() < 0.5),
        bool(random.random() < 0.8),
    )


@dataclass
class Ended:
    """What a rank's attempt ended with."""

    errors: list[tuple[str, str]]
    warnings: list[str]
    published: bool
    seconds: float
    #: Where it was held up, if it was.
    where: str = ""

    @property
    def succeeded(self) -> bool:
        """Whether there was no error."""
        return not self.errors

    @property
    def lost_link(self) -> bool:
        """Whether a death hit MPI itself, so that nothing can be sent from this rank any more."""
        return any(kind == "PeerError" for kind, _ in self.errors)


@dataclass
class Judge:
    """What one rank that stays sees of a case, attempt by attempt."""

    case: Case
    directory: Path
    before: State
    complaints: list[str] = field(default_factory=list)
    state: State = field(default_factory=dict)
    #: The turns in which the second and the third attempt were made.
    turns: dict[int, int] = field(default_factory=dict)
    ends: dict[int, Ended] = field(default_factory=dict)

    @property
    def made(self) -> Operation:
        """The operation."""
        return self.case.made

    def after(self, state: State, number: int) -> State:
        """What is seen after an attempt, of what was seen before."""
        turn = self.turns.get(number, self.made.turn(state))
        return self.made.after(state, Attempt(None, self.directory, number, turn=turn))

    def expect(self, allowed: list[State], when: str) -> None:
        """Note what is seen and not allowed."""
        if self.state in allowed:
            return
        expected = allowed[-1]
        parts = sorted(self.state.keys() | expected.keys())
        wrong = {part: (self.state.get(part), expected.get(part)) for part in parts}
        some = [item for item in wrong.items() if item[1][0] != item[1][1]][:6]
        self.complaints.append(f"{when}, (seen, expected): {dict(some)}")

    def expect_parts(self, allowed: set[int], when: str, *, mixed: bool = False) -> None:
        """Note what is seen of an update in place, part by part, and is not allowed."""
        changed = {part for part, number in self.after(self.before, 9).items() if number == 9}
        wrong = {}
        for part, found in self.state.items():
            numbers = {int(each) for each in str(found).split("+")} if not str(found).startswith("torn") else {-1}
            fine = numbers <= (allowed if part in changed else {self.before.get(part)})
            if not fine or (len(numbers) > 1 and not mixed):
                wrong[part] = found
        if wrong or self.state.keys() != self.before.keys():
            self.complaints.append(f"{when}, expected {sorted(allowed)}: {dict(list(wrong.items())[:6])}")

    # ---- the first attempt -----------------------------------------------------------------------------------

    def look_at_first(self, ends: dict[int, Ended], *, hit: bool) -> None:
        """After those that were not out have ended; by their numbers in the attempt."""
        self.ends = ends
        self._survivors_end_alike(hit=hit)
        self.state = self.made.look(self.directory)
        new = self.after(self.before, 1)
        # Without anybody who stayed, there is nobody who was told.
        succeeded = any(end.succeeded or end.published for end in ends.values())
        if self.made.in_place:
            self.expect_parts({1} if succeeded else {0, 1}, "after the first attempt", mixed=self._is_raw)
            if self.state not in (self.before, new):
                self._expect_marker()
            return None
        if succeeded:
            return self.expect([new], "the first attempt told of success")
        allowed = [new, self.before, *self._between]
        if str(self.state.get("file")).startswith("busy") and self.case.victim == 0 and self.case.event != "kill":
            return None
        if self.state not in allowed and self._names_unfinished("r"):
            # An exchange of several arrays is half done; whoever opens the store to write ends it.
            return None
        return self.expect(allowed, "after the first attempt")

    @property
    def lost_link(self) -> bool:
        """Whether MPI cannot be used any more."""
        return self.case.event == "kill" and any(end.lost_link for end in self.ends.values())

    @property
    def _owner_lives(self) -> bool:
        return self.case.victim == 0 and self.case.event == "stop"

    @property
    def _is_raw(self) -> bool:
        return self.made.look is not look_at_store

    @property
    def _between(self) -> list[State]:
        stages = self.made.stages(self.before, Attempt(None, self.directory, 1))
        return stages if self.made.between is None else [self.made.between, {"store": "absent"}]

    def _names_unfinished(self, mode: Literal["r", "r+"]) -> list[str]:
        return [each for each in reopen(self.made, self.directory, mode) if names_unfinished(each)]

    def _expect_marker(self) -> None:
        if not (self.directory / self.made.marker).exists():
            self.complaints.append("some parts are old and some new, and there is no marker")
        elif self._owner_lives:
            # Readers are not warned of an update that lives, and a stopped owner does.
            return
        elif not self._names_unfinished("r"):
            self.complaints.append("some parts are old and some new, and an opening to read names nothing")

    def _survivors_end_alike(self, *, hit: bool) -> None:
        for rank, end in self.ends.items():
            if end.seconds > ARRIVAL_SECONDS + 2 * PROGRESS_SECONDS + SLACK_SECONDS:
                self.complaints.append(f"rank {rank} ended after {end.seconds:.1f} s: {end.errors}")
            for kind, text in end.errors:
                if not issubclass(getattr(hs, kind, object), hs.Error):
                    self.complaints.append(f"rank {rank} got {kind}, which is no error of the package: {text}")
        if self.lost_link:
            return
        kinds = {end.errors[0][0] if end.errors else "none" for end in self.ends.values()}
        # If rank 0 goes out while it tells the others that all went well, some have heard of it and others have not.
        if len(kinds - ({"none"} if self.case.victim == 0 else set())) > 1:
            self.complaints.append(f"ranks that stayed ended differently: {self._errors()}")
        if hit and kinds == {"TimeoutError"}:
            blamed = {rank: set(BLAME.findall(end.errors[0][1])) for rank, end in self.ends.items()}
            innocent = {rank: those for rank, those in blamed.items() if those and str(self.case.victim) not in those}
            if innocent:
                self.complaints.append(f"only ranks are blamed that were there: {innocent}: {self._errors()}")

    def _errors(self) -> dict[int, list[tuple[str, str]]]:
        return {rank: end.errors for rank, end in self.ends.items()}

    # ---- the second attempt ----------------------------------------------------------------------------------

    def look_at_second(self, ends: dict[int, Ended], back: Ended | None) -> None:
        """After all ranks of the second attempt have ended, and the one that was out (`back`), unless it is dead."""
        base = [self.state] if self.state in (self.before, self.after(self.before, 1)) else []
        base = base or [self.after(self.before, 1), self.before, *self._between]
        self.state = self.made.look(self.directory)
        every = {str(end.errors) for end in ends.values()}
        if len(every) > 1:
            self.complaints.append(f"ranks of the second attempt ended differently: {every}")
        for end in [back] if back is not None else []:
            if any(not issubclass(getattr(hs, kind, object), hs.Error) for kind, _ in end.errors):
                self.complaints.append(f"the rank that came back got {end.errors}")
        first = next(iter(ends.values()))
        if first.succeeded:
            self._second_succeeded(base, first, back)
        else:
            self._second_failed(base, first, back)

    def _second_succeeded(self, base: list[State], first: Ended, back: Ended | None) -> None:
        if self.made.in_place:
            late = self._is_raw and back is not None
            self.expect_parts({1, 2} if late else {2}, "the second attempt told of success", mixed=late)
            if late and 1 in self.state.values() and not first.warnings:
                self.complaints.append("a late write reached the file, and the next writer was not told of an update")
            return None
        allowed = [self.after(state, 2) for state in base]
        if back is not None and self.case.victim == 0 and self.made.replaces:
            # The one who publishes came back and put its own in the place of what was there.
            allowed = [self.after(self.after(self.before, 2), 1), *self._between, *allowed]
        return self.expect(allowed, "the second attempt told of success")

    def _second_failed(self, base: list[State], first: Ended, back: Ended | None) -> None:
        kinds = {kind for kind, _ in first.errors}
        alive = back is not None and self.case.victim == 0
        # A file has one owner as a whole, and of a store what is changed or replaced, or grows or shrinks.
        resized = self.case.operation.endswith(("append", "cut"))
        taken = self.made.in_place or self.made.replaces or self._is_raw or resized
        if not ((kinds == {"BusyError"} and alive and taken) or (kinds == {"ExistsError"} and self.may_exist(back))):
            self.complaints.append(f"the second attempt failed: {first.errors}")
        if self.made.in_place:
            self.expect_parts({0, 1}, "the second attempt failed", mixed=self._is_raw)
        else:
            self.expect([*base, self.after(self.before, 1)], "the second attempt failed")

    def may_exist(self, back: Ended | None) -> bool:
        """Whether the first attempt may have been published meanwhile.

        By rank 0, which has come back; or, of several arrays, by whoever opened the store to write.
        """
        if self.made.replaces or self.made.in_place or self.case.victim != 0:
            return False
        return back is not None or self.made.ends_later

    def _may_be_half_done(self, base: State) -> bool:
        """Whether the next opening may change what is seen: several files that change together were decided upon."""
        return base != self.before or self.case.operation == "pair append"

    # ---- the third attempt -----------------------------------------------------------------------------------

    def look_at_third(self, ends: dict[int, Ended]) -> None:
        """After an attempt that nothing disturbed."""
        found = [error for end in ends.values() for error in end.errors]
        if self.made.ends_later and {kind for kind, _ in found} == {"ExistsError"}:
            # Its own opening has ended what was decided.
            self.state = self.made.look(self.directory)
            self.expect([self.after(self.before, 1)], "a fresh attempt found what there was")
            return
        if found:
            self.complaints.append(f"a fresh attempt failed: {found[:2]}")
            return
        base, self.state = self.state, self.made.look(self.directory)
        if self.made.in_place:
            self.expect_parts({3}, "a fresh attempt told of success")
        elif self.turns.get(2) is None and (base != self.after(self.before, 1) and self._may_be_half_done(base)):
            # What was half done when it opened the store has been ended, or undone, by the opening.
            allowed = [self.after(state, 3) for state in (self.before, self.after(self.before, 1))]
            self.expect(allowed, "a fresh attempt told of success")
        elif not any(str(found).startswith("torn") or "+" in str(found) for found in base.values()):
            self.expect([self.after(base, 3)], "a fresh attempt told of success")
        left = beside_data(self.made, self.directory)
        if left and not names_any(left, [text for end in ends.values() for text in end.warnings]):
            self.complaints.append(f"left behind after a fresh attempt: {left[:6]}")


def without_job(case: Case) -> Case:
    """The same where there are no ranks for another job."""
    return replace(case, again="others") if case.again == "job" else case
