"""Kills one process at system calls of each operation, and judges what it leaves.

Usage: kill_points DIRECTORY SEED CASES, where CASES is how many for each operation, or "all", with `faults/failing.c`
preloaded. Prints a JSON list of what went wrong, and how many cases there were.

Each process that dies, or looks at what is left, is a fork of one that has not used the package.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fault_library import CLASSES, Fault, Faults
from fault_operations import Attempt, Operation, State, carry_out
from kill_cases import CHANGING, Case, Ended, Judge

#: Calls by which things become visible: few, and a death between two of them is what journals are for.
PUBLISHING = ("rename", "exchange")


def in_child(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns in a process of its own; nothing if that is killed."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receiver)
        try:
            with os.fdopen(sender, "w") as pipe:
                json.dump(function(*arguments), pipe)
        except BaseException:  # noqa: BLE001 (shown, and the end of the child)
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(sender)
    with os.fdopen(receiver) as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    assert not os.WIFEXITED(status) or os.WEXITSTATUS(status) == 0, answer
    return json.loads(answer) if answer and os.WIFEXITED(status) else None


def prepared(made: Operation, directory: Path) -> State:
    """Make what is there before; returns what is seen of it."""
    directory.mkdir()
    made.prepare(directory)
    return made.look(directory)


def counted(made: Operation, directory: Path) -> dict[str, int]:
    """How many calls an undisturbed attempt makes."""
    faults = Faults()
    faults.watch(directory)
    attempt = Attempt(None, directory, 1)
    carry_out(made, attempt)
    assert attempt.errors == [], attempt.errors
    return faults.counts()


def killed(made: Operation, directory: Path, fault: Fault) -> str:
    """Carry out an operation up to a call; returns only if that call is not made."""
    faults = Faults()
    faults.watch(directory)
    faults.arm(fault)
    carry_out(made, Attempt(None, directory, 1))
    return "ended"


def judged(case: Case, directory: Path, before: State) -> list[str]:
    """What is wrong with what is left, and with a fresh attempt afterwards."""
    judge = Judge(case, directory, before)
    judge.look_at_first({}, hit=True)
    told: list[str] = []
    for _ in range(2):
        judge.turns[3] = case.made.turn(judge.state)
        attempt = Attempt(None, directory, 3, turn=judge.turns[3])
        told += carry_out(case.made, attempt)
        errors = [(type(error).__name__, str(error)) for error in attempt.errors]
        if not (errors and errors[0][0] == "ExistsError" and judge.may_exist(None)):
            break
        # The opening published what was complete, and had been about to be published.
        judge.state = case.made.look(directory)
        judge.expect([judge.after(judge.before, 1)], "a fresh attempt says that it exists")
    judge.look_at_third({0: Ended(errors, told, attempt.published, 0.0)})
    return judge.complaints


def chosen(counts: dict[str, int], random: np.random.Generator, number: int | None) -> list[Fault]:
    """Calls to die at: all of them, or some, of which each class has the same part, and all that publish something."""

    def every(names: Sequence[str]) -> list[Fault]:
        return [Fault(name, call, "kill") for name in names for call in range(1, counts[name] + 1)]

    if number is None:
        return every(CLASSES)
    names = [name for name in CLASSES if counts[name] > 0]
    some = [str(random.choice(names)) for _ in range(number)]
    return every(PUBLISHING) + [Fault(name, int(random.integers(1, counts[name] + 1)), "kill") for name in some]


def main() -> None:
    directory, seed = Path(sys.argv[1]), int(sys.argv[2])
    number = None if sys.argv[3] == "all" else int(sys.argv[3])
    random = np.random.default_rng(seed)
    wrong, cases = [], 0
    template, copy = directory / "template", directory / "case"
    for name, made in CHANGING.items():
        before = in_child(prepared, made, template)
        shutil.copytree(template, copy)
        counts = in_child(counted, made, copy)
        shutil.rmtree(copy)
        for fault in chosen(counts, random, number):
            shutil.copytree(template, copy)
            case = Case(name, None, "kill", 0, fault.name, 0.0, "others", None)
            ended = in_child(killed, made, copy, fault)
            complaints = in_child(judged, case, copy, before)
            if ended is None and complaints:
                wrong.append({"case": f"{name}: {fault}", "wrong": complaints})
            cases += ended is None
            shutil.rmtree(copy)
        shutil.rmtree(template)
    print(json.dumps({"wrong": wrong, "cases": cases}))


if __name__ == "__main__":
    main()
