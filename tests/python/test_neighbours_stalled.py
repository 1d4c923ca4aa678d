"""A program that is stopped anywhere goes on when others have done the same, or something else, in its place."""

from __future__ import annotations

import shutil
import signal
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest

from neighbours import (
    ARRAYS,
    BOTH,
    COUNT,
    MOMENTS,
    arrays_at,
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


def stopped(
    function: str, path: Path, theirs: Sequence[Any], ours: Sequence[Any], number: int
) -> tuple[str | None, Any, Any]:
    """Stop a program after a call, do the same here with other values, and let it go on: the call and both ends."""
    with program(function, path, *theirs) as other:
        call = reach(other, number, signal.SIGSTOP)
        our_outcome = here(function, path, *ours)
        other.carry_on()
        return call, other.outcome(), our_outcome


@pytest.mark.parametrize(("function", "name"), [("write_step_at_once", "s"), ("write_arrays", "n")])
def test_a_stalled_program_and_one_that_writes_the_same_anew(function: str, name: str, store: Path) -> None:
    """The stalled one goes on when all is over, and changes nothing of what the other has published."""
    for number in stops(function, store, name, 2.0):
        before = store.with_name(f"{number}.zarr")
        shutil.copytree(store, before)
        call, theirs, ours = stopped(function, before, (name, 2.0), (name, 3.0), number)
        assert Counter([ours.kind, theirs.kind]) == BOTH, (call, ours, theirs)
        value = 3.0 if ours.kind == "none" else 2.0
        new = step_of(value, name) if function == "write_step_at_once" else {name: [value] * COUNT}
        assert arrays_at(before) == ARRAYS | new, call
        assert leftovers(before.parent) == [], call


def test_a_stalled_program_and_one_that_overwrites_the_same(store: Path) -> None:
    """Both may succeed; each array is of one that did, whole, and never the old one again."""
    arguments = [("ab", value, None, True) for value in (2.0, 3.0)]
    for number in stops("write_arrays", store, *arguments[0]):
        place = store.with_name(f"{number}.zarr")
        shutil.copytree(store, place)
        call, theirs, ours = stopped("write_arrays", place, arguments[0], arguments[1], number)
        assert theirs.ours, (call, theirs)
        assert ours.ours, (call, ours)
        assert "none" in (ours.kind, theirs.kind), (call, ours, theirs)
        values = [value for value, end in ((2.0, theirs), (3.0, ours)) if end.kind == "none"]
        found = arrays_at(place)
        assert set(found) == {"a", "b"}, call
        assert all(chunks in [[value] * COUNT for value in values] for chunks in found.values()), (call, found)
        assert leftovers(place.parent) == [], call


def test_a_stalled_program_and_one_that_changes_the_same_array_in_place(store: Path) -> None:
    """While one is at it, the other hears who has it; no chunk is torn, and none is the stalled one's afterwards."""
    busy = 0
    for number in stops("update", store, "a", 2.0):
        place = store.with_name(f"{number}.zarr")
        shutil.copytree(store, place)
        with program("update", place, "a", 2.0) as other:
            call = reach(other, number, signal.SIGSTOP)
            ours = here("update", place, "a", 3.0)
            others = here("write_arrays", place, "n", 3.0)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                with hs.open(place) as reader:
                    assert reader.unfinished == (), f"a reader is warned of an update that lives ({call})"
            other.carry_on()
            theirs = other.outcome()
            pid = other.pid
        assert {ours.kind, theirs.kind} <= {"none", "BusyError"}, (call, ours, theirs)
        assert "none" in (ours.kind, theirs.kind), (call, ours, theirs)
        assert others.kind == "none", f"a new array is refused ({call}): {others.text}"
        if ours.kind == "BusyError":
            busy += 1
            assert "hyperslab clean" in ours.text, ours.text
            assert str(pid) in ours.text, ours.text
        found = arrays_at(place)["a"]
        if ours.kind == theirs.kind:
            # One after the other.
            assert found in ([2.0] * COUNT, [3.0] * COUNT), call
        else:
            assert found == [3.0 if ours.kind == "none" else 2.0] * COUNT, call
        assert leftovers(place.parent) == [], call
    assert busy > 0


def test_a_stalled_program_and_one_that_changes_the_same_raw_file_in_place(store: Path) -> None:
    path = store.with_name("s.raw")
    busy = 0
    for number in stops("update_raw", path, 2.0):
        place = path.with_name(f"{number}.raw")
        shutil.copyfile(path, place)
        call, theirs, ours = stopped("update_raw", place, (2.0,), (3.0,), number)
        assert {ours.kind, theirs.kind} <= {"none", "BusyError"}, (call, ours, theirs)
        assert "none" in (ours.kind, theirs.kind), (call, ours, theirs)
        busy += ours.kind == "BusyError"
        assert len(set(np.fromfile(place))) == 1, f"mixed ({call})"
        assert leftovers(place.parent) == [], call
    assert busy > 0


@pytest.mark.parametrize(("function", "name"), [("make_raw", "s.raw"), ("make_npy", "s.npy")])
def test_a_stalled_program_and_one_that_makes_the_same_file_anew(function: str, name: str, store: Path) -> None:
    for number in stops(function, store.with_name(name), 2.0):
        place = store.with_name(f"{number}{name[1:]}")
        shutil.copyfile(store.with_name(name), place)
        call, theirs, ours = stopped(function, place, (2.0,), (3.0,), number)
        assert theirs.ours, (call, theirs)
        assert ours.kind == "none", (call, ours)
        values = np.fromfile(place) if name.endswith("raw") else np.load(place)
        allowed = (3.0, 2.0) if theirs.kind == "none" else (3.0,)
        assert any((values == value).all() for value in allowed), call
        assert leftovers(place.parent) == [], call


# ---- a store that is replaced ----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["renamed", "mode_w", "gone"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_step_for_a_store_that_was_replaced_meanwhile(moment: str, how: str, store: Path) -> None:
    """It is published neither in the new store, which is another one, nor in the old one, which nobody sees there."""
    aside = store.with_name("aside.zarr")

    def replace() -> None:
        if how != "mode_w":
            store.rename(aside)
        if how != "gone":
            assert here("make_store_at_once", store, 5.0, "x").kind == "none"

    with program("write_step", store, "s", 2.0) as other:
        outcome = write_step_beside(other, {moment: replace})
    assert outcome.ours, outcome
    assert outcome.kind not in ("none", "TimeoutError"), "the step was published into a store that is not the one"
    if how != "mode_w":
        assert arrays_at(aside) == ARRAYS
    if how == "gone":
        assert not store.exists()
        return
    assert arrays_at(store) == {"x": [5.0] * COUNT}
    # Once the next program has looked after it, nothing is left.
    assert here("open_and_close", store).kind == "none"
    assert [name for name in leftovers(store.parent) if not name.startswith("aside.zarr")] == []


@pytest.mark.parametrize("number", range(3))
def test_arrays_for_a_store_that_was_replaced_meanwhile(number: int, store: Path) -> None:
    points = stops("write_arrays", store, "n", 2.0)
    aside = store.with_name("aside.zarr")
    with program("write_arrays", store, "n", 2.0) as other:
        call = reach(other, points[(number + 1) * len(points) // 4], signal.SIGSTOP)
        before = arrays_at(store)
        store.rename(aside)
        assert here("make_store_at_once", store, 5.0, "x").kind == "none"
        other.carry_on()
        outcome = other.outcome()
    assert outcome.ours, outcome
    assert outcome.kind != "none" or "n" in before, f"it was published into another store ({call})"
    assert arrays_at(store) == {"x": [5.0] * COUNT}
    assert arrays_at(aside) == before
