"""Signals at random moments of all operations: what reaches whom, and what is there afterwards."""

from __future__ import annotations

import random
import shutil
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np

from fault_operations import OPERATIONS, OWN, Attempt, Operation, State, names_unfinished, reopen

#: A call that an interrupt has met ends within this time on all ranks [s].
ENDS_SECONDS = 8.0
#: The longest delay of a signal, in times that the operation takes.
LATE = 1.1
#: Strategies are drawn for ranks; one alone has no choice.
ALONE, BESIDE, THREADS, MPI = "alone", "beside", "threads", "mpi"


class Struck(Exception):  # noqa: N818 (a program's own class, which is no error of ours)
    """What a handler raises."""


class StruckHard(BaseException):
    """The same, of the kind that no ``except Exception`` takes."""


RAISED: tuple[type[BaseException], ...] = (KeyboardInterrupt, Struck, StruckHard, TimeoutError)
ENDED = (hs.InterruptedError, hs.PeerError, hs.PoisonedError)


class Strike:
    """A signal after a delay, whose handler raises; for the main thread."""

    def __init__(self, delay: float, kind: type[BaseException]) -> None:
        self._delay, self.error = delay, kind("a handler raised it")
        self._show = sys.unraisablehook
        #: Whether the handler ran.
        self.fired = False
        #: What came out of what was struck.
        self.reached: BaseException | None = None

    def _handle(self, _number: int, _frame: object) -> None:
        self.fired = True
        raise self.error

    def _drop(self, dropped: Any) -> None:
        # What comes out of a finalizer, Python tells and drops: no call can learn of it.
        if dropped.exc_value is self.error:
            self.fired = False
        else:
            self._show(dropped)

    def during(self, act: Callable[[], None]) -> None:
        """Do something, and be struck in it, or not at all."""
        before = signal.signal(signal.SIGALRM, self._handle)
        sys.unraisablehook = self._drop
        try:
            signal.setitimer(signal.ITIMER_REAL, max(self._delay, 1e-6))
            act()
            signal.setitimer(signal.ITIMER_REAL, 0)
        except BaseException as error:  # noqa: BLE001 (that is what is asked)
            self.reached = error
        finally:
            self._disarm()
            signal.signal(signal.SIGALRM, before)
            sys.unraisablehook = self._show

    def _disarm(self) -> None:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
        except BaseException as error:  # noqa: BLE001 (it came at the last moment)
            self.reached = error

    def complaints(self) -> list[str]:
        """Whether what the handler raised came out as it is, and nothing else did."""
        if self.fired:
            if self.reached is not self.error:
                return [f"the handler raised {self.error!r}, but {self.reached!r} came out"]
            return []
        return [] if self.reached is None else [f"no signal came, but {self.reached!r}"]


@dataclass
class Case:
    """One signal."""

    way: str
    made: Operation
    strategy: str | None
    #: When it comes, of the time that the operation takes.
    moment: float
    kind: type[BaseException]
    victim: int = 0
    #: Whether it came before the operation was over.
    fired: bool = False

    def __str__(self) -> str:
        """All that it depends on."""
        told = f"{self.way}, {self.made.name} ({self.strategy}), {self.kind.__name__} at {self.moment:.3f}"
        return told + (f" of rank {self.victim}" if self.way == MPI else "")


def random_case(chance: random.Random, ways: Sequence[str], ranks: int) -> Case:
    """Any."""
    way = chance.choice(ways)
    made = chance.choice(list(OPERATIONS.values()))
    # Its arrays have chunks that ranks share.
    owns = "batch" not in made.name
    strategies = [None] if way in (ALONE, BESIDE) else [one for one in made.strategies if owns or one not in OWN]
    return Case(
        way, made, chance.choice(strategies), chance.uniform(0, LATE), chance.choice(RAISED), chance.randrange(ranks)
    )


def parts_are_right(made: Operation, before: State, after: State, found: State) -> bool:
    """Whether each part is old or new; of what is not chunked, parts may be mixed."""
    if found.keys() != before.keys():
        return False
    allowed = {part: {str(before[part]), str(after[part])} for part in before}
    return all(set(str(number).split("+")) <= allowed[part] for part, number in found.items())


def contents(made: Operation, directory: Path, before: State, number: int) -> tuple[State, list[str]]:
    """What is seen after an attempt that may have been ended, and what is wrong with it."""
    found = made.look(directory)
    after = made.after(before, Attempt(None, directory, number))
    stages = made.stages(before, Attempt(None, directory, number))
    between = [] if made.between is None else [made.between, {"store": "absent"}]
    allowed = [before, after, *stages, *between]
    if found in allowed or (made.in_place and parts_are_right(made, before, after, found)):
        return found, []
    if any(names_unfinished(each) for each in reopen(made, directory, "r")):
        return found, []
    return found, [f"seen is {found}, which is neither {before} nor {after}"]


class Templates:
    """What is there before an operation, and how long it takes."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._known: dict[tuple[str, ...], tuple[Path, State, float]] = {}
        self._count = 0

    def of(self, case: Case, run: Callable[[Path], None]) -> tuple[Path, State, float]:
        """A copy to work in, what is seen there, and the time of an undisturbed run [s]."""
        key = (case.way, case.made.name, str(case.strategy))
        if key not in self._known:
            template = self._directory / "-".join(key).replace(" ", "_")
            template.mkdir()
            case.made.prepare(template)
            for _ in range(2):
                usual = self.copy(template)
                began = time.monotonic()
                run(usual)
                seconds = time.monotonic() - began
                shutil.rmtree(usual)
            self._known[key] = template, case.made.look(template), seconds
        template, before, seconds = self._known[key]
        return self.copy(template), before, seconds

    def copy(self, template: Path) -> Path:
        """A fresh copy."""
        self._count += 1
        return Path(shutil.copytree(template, self._directory / f"case{self._count}"))


def carry_out(case: Case, directory: Path, comm: Any, number: int = 1, turn: int = 1) -> None:
    """Carry the operation out on this rank; what goes wrong is raised."""
    attempt = Attempt(comm, directory, number, case.strategy, turn=turn)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case.made.run(attempt)
    for error in attempt.errors:
        raise error


class Beside:
    """Another thread of the program, which writes to a store of its own all the time, and must not notice anything."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "beside.zarr"
        self._over = False
        self.count = 0
        self.errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._write)
        self._thread.start()
        while not (self.count or self.errors):
            time.sleep(0.001)

    def _write(self) -> None:
        try:
            with hs.open(self._path, "w", comm=None, durable=False) as store:
                while not self._over:
                    self.count += 1
                    requests = [store.iwrite(f"r{self.count}", np.full(5000, self.count))]
                    store.write(f"a{self.count}", np.full(5000, self.count))
                    hs.wait_all(requests)
                    if self.count > 4:
                        store.delete(f"a{self.count - 4}")
                        store.delete(f"r{self.count - 4}")
        except BaseException as error:  # noqa: BLE001 (none is right)
            self.errors.append(error)

    def end(self) -> list[str]:
        """What it noticed."""
        self._over = True
        self._thread.join()
        return [f"the other thread got {error!r}" for error in self.errors]


def by_threads(case: Case, directory: Path, ranks: int, errors: list[BaseException]) -> None:
    """Carry it out by thread ranks, and note what each ended with."""

    def one(comm: hs.ThreadComm) -> None:
        try:
            carry_out(case, directory, comm)
        except BaseException as error:
            errors.append(error)
            raise

    hs.threads(ranks, one)


def run(case: Case, templates: Templates, ranks: int) -> list[str]:
    """One case in this process; returns what is wrong."""
    errors: list[BaseException] = []

    def act(directory: Path) -> None:
        if case.way == THREADS:
            by_threads(case, directory, ranks, errors)
        else:
            carry_out(case, directory, None)

    directory, before, seconds = templates.of(case, act)
    beside = Beside(directory.with_name(directory.name + "-beside")) if case.way == BESIDE else None
    strike = Strike(case.moment * seconds, case.kind)
    began = time.monotonic()
    strike.during(lambda: act(directory))
    took = time.monotonic() - began
    wrong, case.fired = strike.complaints(), strike.fired
    if took > ENDS_SECONDS:
        wrong.append(f"it took {took:.1f} s")
    if case.way == THREADS and strike.fired:
        wrong += [f"a rank ended with {error!r}" for error in errors if not isinstance(error, ENDED)]
    found, told = contents(case.made, directory, before, 1)
    wrong += told
    if case.way == THREADS and case.made.look(directory) != found:
        wrong.append("it changed when its ranks had ended")
    wrong += follow(case, directory, found, lambda number, turn: carry_out(case, directory, None, number, turn))
    if beside is not None:
        wrong += beside.end()
    if not wrong:
        shutil.rmtree(directory)
    return wrong


def follow(case: Case, directory: Path, found: State, act: Callable[[int, int], None]) -> list[str]:
    """The next opening goes, hears of no signal, and leaves what it shall."""
    made, wrong = case.made, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reopen(made, directory, "r+")
    found = made.look(directory)
    turn = made.turn(found)
    try:
        act(2, turn)
    except BaseException as error:  # noqa: BLE001 (none is right)
        wrong.append(f"the next attempt ended with {error!r}")
    expected = made.after(found, Attempt(None, directory, 2, turn=turn))
    if not wrong and made.look(directory) != expected:
        wrong.append(f"after the next attempt {made.look(directory)}, not {expected}")
    return wrong


def campaign(count: int, seed: int, ways: Sequence[str], directory: Path, ranks: int = 4) -> dict[str, Any]:
    """Many cases in this process; gives what was counted and what went wrong."""
    chance, templates = random.Random(seed), Templates(directory)
    told: dict[str, Any] = {"cases": 0, "fired": 0, "wrong": []}
    for number in range(count):
        case = random_case(chance, ways, ranks)
        wrong = run(case, templates, ranks)
        told["cases"] += 1
        told["fired"] += case.fired
        if wrong:
            told["wrong"].append([str(case), *wrong])
            print(f"case {number} of seed {seed}: {case}: {wrong}", file=sys.stderr, flush=True)
    return told
