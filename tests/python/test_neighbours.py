"""Two programs, or two halves of one, with the same store: new things are never lost, mixed or refused without need.

Whoever changes an array or file in place has it alone; everything else goes on beside it.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest

from mpi_launch import run_ranks
from neighbour_programs import CHUNKS, SHAPE, Outcome, full
from neighbours import (
    ARRAYS,
    BOTH,
    COUNT,
    MOMENTS,
    arrays_at,
    calls_of,
    here,
    leftovers,
    make_all,
    program,
    reach,
    step_of,
    stops,
    write_step_beside,
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store, and files beside it."""
    return make_all(tmp_path)


# ---- one after the other, at moments that are known ------------------------------------------------------------


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_step_is_written_while_another_program_comes_and_goes(moment: str, store: Path) -> None:
    def come_and_go() -> None:
        outcome = here("write_step_at_once", store, "t", 3.0)
        assert outcome.kind == "none", outcome.text

    with program("write_step", store, "s", 2.0) as other:
        outcome = write_step_beside(other, {moment: come_and_go})
    assert outcome.kind == "none", outcome.text
    assert arrays_at(store) == ARRAYS | step_of(2.0) | step_of(3.0, "t")
    assert leftovers(store.parent) == []


def test_a_step_that_lives_is_neither_removed_nor_named(store: Path) -> None:
    def look() -> None:
        for mode in ("r", "r+"):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                with hs.open(store, mode, durable=False) as ours:
                    assert (ours.removed, ours.unfinished) == ((), ())
        assert arrays_at(store) == ARRAYS

    with program("write_step", store, "s", 2.0) as other:
        outcome = write_step_beside(other, dict.fromkeys(MOMENTS, look))
    assert outcome.kind == "none", outcome.text
    assert arrays_at(store) == ARRAYS | step_of(2.0)


@pytest.mark.parametrize("moment", MOMENTS)
def test_of_two_programs_that_write_the_same_step_one_succeeds(moment: str, store: Path) -> None:
    ours: list[Outcome] = []
    with program("write_step", store, "s", 2.0) as other:
        theirs = write_step_beside(other, {moment: lambda: ours.append(here("write_step_at_once", store, "s", 3.0))})
    assert Counter([ours[0].kind, theirs.kind]) == BOTH, (ours, theirs)
    assert arrays_at(store) == ARRAYS | step_of(3.0 if ours[0].kind == "none" else 2.0)
    assert leftovers(store.parent) == []


def test_appends_of_two_programs_that_have_the_same_store_open(store: Path) -> None:
    """No rows are lost: those of both are there, or one hears of it."""
    with program("append", store, "a", 2.0) as other:
        other.until("open")
        ours = here("append_at_once", store, "a", 3.0)
        theirs = other.finish()
    assert ours.kind == "none", ours
    assert theirs.ours, theirs
    expected = [1.0] * COUNT + [3.0] * COUNT + [2.0] * COUNT * (theirs.kind == "none")
    assert arrays_at(store)["a"] == expected, theirs


# ---- both at once ----------------------------------------------------------------------------------------------

NAMES = [f"s{number:02}" for number in range(12)]


def check_races(store: Path, first: list[str], second: list[str], names: Sequence[str], arrays: str = "ab") -> None:
    """Of two that wrote the same things, with values 2 and 3, each was written by the one that was told so."""
    found = arrays_at(store)
    for name, one, other in zip(names, first, second, strict=True):
        assert Counter([one, other]) == BOTH, (name, one, other)
        value = [2.0 if one == "none" else 3.0] * COUNT
        for array in arrays:
            assert found[f"{name}/{array}" if arrays != "." else name] == value, name


@pytest.mark.parametrize(("function", "arrays"), [("write_many_steps", "ab"), ("write_many_arrays", ".")])
def test_two_programs_write_the_same_things_at_once(function: str, arrays: str, store: Path) -> None:
    with program(function, store, NAMES, 2.0) as first, program(function, store, NAMES, 3.0) as second:
        first.until("open")
        second.until("open")
        first.go()
        second.go()
        outcomes = [first.outcome(), second.outcome()]
    assert [outcome.kind for outcome in outcomes] == ["none", "none"], outcomes
    check_races(store, outcomes[0].value, outcomes[1].value, NAMES, arrays)
    assert leftovers(store.parent) == []


def test_two_programs_change_the_same_array_at_once_while_another_reads(store: Path) -> None:
    """Each change is whole or refused; a reader finds whole chunks."""
    arguments = (store, "a")
    with (
        program("update_many_times", *arguments, 2.0, 25) as first,
        program("update_many_times", *arguments, 3.0, 25) as second,
    ):
        first.until("open")
        second.until("open")
        first.go()
        second.go()
        with hs.open(store) as reader:
            for _ in range(10):
                assert set(np.unique(reader.read("a"))) <= {1.0, 2.0, 3.0}
        outcomes = [first.outcome(), second.outcome()]
    kinds = Counter(kind for outcome in outcomes for kind in outcome.value or [outcome.kind])
    assert set(kinds) <= {"none", "BusyError"}, kinds
    assert kinds["none"] > 0
    found = arrays_at(store)["a"]
    assert found in ([2.0] * COUNT, [3.0] * COUNT), f"the chunks are of different changes: {found}"
    assert leftovers(store.parent) == []


def in_two_halves(call: Any) -> list[Any]:
    """Run ``call(comm, half)`` on two groups of two threads each; what each group's first returns."""
    results: list[Any] = [None, None]

    def run(half: int) -> None:
        try:
            results[half] = hs.threads(2, lambda comm: call(comm, half))[0]
        except BaseException as error:  # noqa: BLE001 (looked at below, on the test's own thread)
            results[half] = error

    halves = [threading.Thread(target=run, args=(half,), daemon=True) for half in range(2)]
    for each in halves:
        each.start()
    for each in halves:
        each.join(60)
        assert not each.is_alive()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def test_two_halves_of_a_program_write_the_same_steps_and_arrays(store: Path) -> None:
    dist = hs.Distribution(SHAPE, (2,), ("block", "*"))

    def half(comm: hs.ThreadComm, half: int) -> list[str]:
        kinds = []
        with hs.open(store, "r+", comm=comm, durable=False) as opened:
            for name in NAMES:
                part = full(2.0 + half, dist.local_shape(comm))
                try:
                    with opened.step(name) as step:
                        step.write({"a": part, "b": part}, dist, chunks=CHUNKS)
                    kinds.append("none")
                except hs.Error as error:
                    kinds.append(type(error).__name__)
        return kinds

    first, second = in_two_halves(half)
    check_races(store, first, second, NAMES)
    assert leftovers(store.parent) == []


def test_two_halves_of_a_program_change_the_same_array(store: Path) -> None:
    """Each has a handle of its own in one process, where locks of a process would not tell them apart."""
    dist = hs.Distribution(SHAPE, (2,), ("block", "*"))

    def half(comm: hs.ThreadComm, half: int) -> Counter[str]:
        kinds: Counter[str] = Counter()
        with hs.open(store, "r+", comm=comm, durable=False) as opened:
            for _ in range(20):
                part = full(2.0 + half, dist.local_shape(comm))
                try:
                    opened.write("a", part, dist, section=(slice(None), slice(None)))
                    kinds["none"] += 1
                except hs.Error as error:
                    kinds[type(error).__name__] += 1
        return kinds

    kinds: Counter[str] = sum(in_two_halves(half), Counter())
    assert set(kinds) <= {"none", "BusyError"}, kinds
    assert kinds["none"] > 0
    assert arrays_at(store)["a"] in ([2.0] * COUNT, [3.0] * COUNT)
    assert leftovers(store.parent) == []


@pytest.mark.mpi
def test_two_halves_of_a_job(store: Path) -> None:
    """Two communicators of one job, each with the store open."""
    told = run_ranks(4, "halves", store, *NAMES)
    halves = [line.split() for line in sorted(told.splitlines()) if line.startswith(("half 0:", "half 1:"))]
    first, second = (words[2:] for words in halves)
    check_races(store, first[: len(NAMES)], second[: len(NAMES)], NAMES)
    found = arrays_at(store)
    assert found["a"] in ([2.0] * COUNT, [3.0] * COUNT)
    assert set(first[len(NAMES) :] + second[len(NAMES) :]) <= {"none", "BusyError"}
    assert {"only0/a", "only1/a"} <= set(found)
    assert leftovers(store.parent) == []


# ---- owners that are dead, or that nobody can ask --------------------------------------------------------------


def test_what_a_dead_program_was_changing_can_be_changed_again(store: Path) -> None:
    number = stops("update", store, "a", 2.0)[3]
    with program("update", store, "a", 2.0) as other:
        reach(other, number, signal.SIGKILL)
    with pytest.warns(UserWarning, match="a"), hs.open(store) as reader:
        assert reader.unfinished == ("a",)
    outcome = here("update", store, "a", 3.0)
    assert outcome.kind == "none", outcome.text
    assert arrays_at(store) == ARRAYS | {"a": [3.0] * COUNT}
    assert leftovers(store.parent) == []


@pytest.mark.parametrize("stop", range(4))
def test_who_took_over_what_a_dead_program_was_changing_keeps_it(stop: int, store: Path) -> None:
    """It had the store open before the other died; a third one that opens it meanwhile takes nothing away from it."""
    number = stops("append_at_once", store, "a", 2.0)[3]
    with program("append", store, "a", 4.0) as second:
        second.until("open")
        with program("append_at_once", store, "a", 2.0) as first:
            reach(first, number, signal.SIGKILL)
        marker = store / "a" / ".hyperslab-update"
        assert marker.exists(), "the first one died too early"
        call = reach(second, 4 + 3 * stop, signal.SIGSTOP)
        third = here("append_at_once", store, "a", 3.0)
        second.carry_on()
        outcome = second.outcome()
    assert outcome.ours, (call, outcome)
    assert {third.kind, outcome.kind} <= {"none", "BusyError"}, (call, third, outcome)
    values = [value for value, end in ((3.0, third), (4.0, outcome)) if end.kind == "none"]
    assert values, (call, third, outcome)
    found = arrays_at(store)["a"]
    assert sorted(found) == sorted([1.0, *values] * COUNT), (call, third, outcome, found)
    # Where the second was stopped with the list of owners to itself, the next opening ends what the first left.
    assert here("open_and_close", store).value == [], call
    assert leftovers(store.parent) == [], call


def test_what_a_program_of_another_host_was_changing_is_left_or_taken_over_but_never_mixed(store: Path) -> None:
    """Nobody here can tell whether it still lives, unless the file system says so; `hyperslab clean` is told."""
    number = stops("update", store, "a", 2.0)[3]
    with program("update", store, "a", 2.0, elsewhere=True) as other:
        reach(other, number, signal.SIGKILL)
    outcome = here("open_and_close", store)
    assert outcome.value == ["a"], outcome
    assert here("write_arrays", store, "n", 3.0).kind == "none"
    assert here("write_step_at_once", store, "s", 3.0).kind == "none"
    outcome = here("update", store, "a", 3.0)
    if outcome.kind != "none":
        assert outcome.kind == "BusyError", outcome
        assert "hyperslab clean" in outcome.text, outcome.text
        assert "elsewhere" in outcome.text, outcome.text
        assert here("open_and_close", store).value == ["a"], "what cannot be judged was swept"
        cleaned = subprocess.run(
            [sys.executable, "-m", "hyperslab", "clean", str(store)], capture_output=True, text=True, timeout=60
        )
        assert cleaned.returncode == 0, cleaned.stderr
        outcome = here("update", store, "a", 3.0)
        assert outcome.kind == "none", outcome.text
    assert arrays_at(store)["a"] == [3.0] * COUNT
    assert leftovers(store.parent) == []


# ---- what is on disk -------------------------------------------------------------------------------------------


def test_all_directories_on_the_way_to_a_new_store_are_synced(tmp_path: Path) -> None:
    """Those that were made, and the one in which the first of them was."""
    path = tmp_path / "x" / "y" / "s.zarr"
    calls = calls_of("make_durable_store", path)
    synced = {Path(call.split(" ", 1)[1]) for call in calls if call.startswith(("fsync", "fdatasync"))}
    wanted = {path, path.parent, path.parent.parent, tmp_path}
    assert any(call.startswith("syncfs") for call in calls) or wanted <= synced, f"not synced: {wanted - synced}"
