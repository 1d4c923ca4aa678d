"""A program is killed before each call that changes files: what others then see is old or new, and nothing stays.

In the ordinary run before some of these calls, among them all that rename or remove; else before all.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neighbour_programs import full, write_step
from neighbours import ARRAYS, COUNT, arrays_at, calls_of, here, is_sync, leftovers, make_all, program, reach, step_of

OLD, NEW, NEWEST = [1.0] * COUNT, [2.0] * COUNT, [3.0] * COUNT
#: So many calls are looked at in the ordinary run, besides the first and last that rename or remove.
SAMPLE = 5


@dataclass(frozen=True)
class Scenario:
    """A program that is killed."""

    #: Function of `neighbour_programs`, and its arguments after the path.
    function: str
    arguments: tuple[Any, ...]
    #: Looks at the path after a kill, and after what the next program does there.
    check: Callable[[Path], None]
    name: str = "s.zarr"
    surroundings: str | None = None


#: What is there before.
BEFORE = ARRAYS | step_of(1, "0001")


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with arrays 'a' and 'b', a step '0001' with the same, a raw file and an npy file, all of value 1."""
    directory = tmp_path_factory.mktemp("before")
    write_step(lambda _: None, make_all(directory), "0001", 1)
    return directory


def next_program(path: Path, mode: str = "r+") -> list[str]:
    """Open the store for writing, as the next run of a program does; returns what is said to be unfinished."""
    outcome = here("open_and_close", path, mode)
    assert outcome.kind == "none", outcome.text
    named: list[str] = outcome.value
    return named


def no_leftovers(path: Path) -> None:
    """Nothing of the killed program is left; while an update has not ended, its marker, and what tells its owner."""
    names = leftovers(path.parent)
    if any(name.endswith(".hyperslab-update") for name in names):
        names = [name for name in names if "/" in name and not name.endswith(".hyperslab-update")]
    assert names == [], f"leftovers: {names}"


# ---- stores that are replaced ----------------------------------------------------------------------------------


def store_is_old_or_new(path: Path) -> None:
    """The store is the old one whole, or the new one, perhaps with nothing in it yet, or not there."""
    found = arrays_at(path)
    assert all(None not in chunks for chunks in found.values()), f"arrays with missing chunks: {found}"
    if (path / "zarr.json").exists() and found != BEFORE:
        assert all(chunks == NEW for chunks in found.values()), f"neither the old store nor the new one: {found}"
        assert set(found) <= {"b", "n"}
    again = here("make_store_at_once", path, 3.0)
    assert again.kind == "none", again.text
    assert arrays_at(path) == {"a": NEWEST, "b": NEWEST}
    no_leftovers(path)


# ---- new arrays, files and steps -------------------------------------------------------------------------------


def array_is_old_or_new(path: Path) -> None:
    """One array that is replaced."""
    for _ in range(2):
        found = arrays_at(path)
        assert found in (BEFORE, BEFORE | {"a": NEW}), found
        next_program(path)
    no_leftovers(path)


def several_are_old_or_new(group: str) -> Callable[[Path], None]:
    """Three arrays of one call, of which two replace others: all old or all new, after the next opening."""

    def check(path: Path) -> None:
        found = arrays_at(path)
        after = BEFORE | {f"{group}{name}": NEW for name in "abn"}
        each = {name: chunks for name, chunks in found.items() if chunks not in (BEFORE.get(name), after[name])}
        assert each == {}, "arrays that are neither old nor new"
        assert set(BEFORE) <= set(found), "arrays that were there are gone"
        if found not in (BEFORE, after):
            assert here("open_and_close", path, "r").value, "a reader is not told that some are old"
        next_program(path)
        assert arrays_at(path) in (BEFORE, after)
        no_leftovers(path)

    return check


def new_thing_is_whole_or_absent(*names: str) -> Callable[[Path], None]:
    """A new array, or a step with its arrays."""

    def check(path: Path) -> None:
        for _ in range(2):
            found = arrays_at(path)
            assert found in (BEFORE, BEFORE | dict.fromkeys(names, NEW)), found
            step = path / names[0].rpartition("/")[0]
            assert found != BEFORE or step == path or not step.exists(), "an empty step is visible"
            next_program(path)
        no_leftovers(path)

    return check


def raw_is_old_or_new(path: Path) -> None:
    """A raw file that is replaced."""
    assert np.fromfile(path).tobytes() in (full(1).tobytes(), full(2).tobytes())
    assert here("make_raw", path, 3.0).kind == "none"
    assert np.fromfile(path).tobytes() == full(3).tobytes()
    no_leftovers(path)


def npy_is_old_or_new(path: Path) -> None:
    """An npy file that is replaced."""
    assert np.load(path).tobytes() in (full(1).tobytes(), full(2).tobytes())
    assert here("make_npy", path, 3.0).kind == "none"
    assert np.load(path).tobytes() == full(3).tobytes()
    no_leftovers(path)


# ---- updates in place ------------------------------------------------------------------------------------------


def chunks_are_old_or_new(name: str) -> Callable[[Path], None]:
    """An update that did not end is named, wherever the array is, until all of it is written again."""
    group, _, array = name.rpartition("/")

    def check(path: Path) -> None:
        found = arrays_at(path)
        chunks = found[name]
        assert set(chunks) <= {1.0, 2.0}, f"neither old nor new: {chunks}"
        assert found == BEFORE | {name: chunks}
        mixed = chunks not in (OLD, NEW)
        for mode in ("r", "r+"):
            named = next_program(path, mode)
            assert set(named) <= {name, f"{group}/{name}"}
            assert named or not mixed, f"an update that did not end is not named (mode {mode})"
        no_leftovers(path)
        again = here("update", path, array, 3.0, group or None)
        assert again.kind == "none", again.text
        assert arrays_at(path) == BEFORE | {name: NEWEST}
        assert leftovers(path.parent) == []
        assert next_program(path, "r") == []

    return check


def rows_are_old_or_longer(path: Path) -> None:
    """An array that becomes longer: readers see the old shape or the new one."""
    for _ in range(2):
        found = arrays_at(path)
        assert found in (BEFORE, BEFORE | {"a": OLD + NEW}), found
        next_program(path)
    # A marker may tell of the rows that were not finished, until somebody appends again.
    no_leftovers(path)
    rows = len(arrays_at(path)["a"])
    again = here("append_at_once", path, "a", 3.0)
    assert again.kind == "none", again.text
    assert arrays_at(path)["a"] == (OLD + NEW)[:rows] + NEWEST
    assert leftovers(path.parent) == []


def raw_rows_are_old_or_new(path: Path) -> None:
    """A raw file promises only a marker."""
    values = np.fromfile(path)
    assert set(values) <= {1.0, 2.0}
    named = here("unfinished_of_raw", path)
    assert named.kind == "none", named.text
    assert named.value or len(set(values)) == 1, "an update that did not end is not named"
    again = here("update_raw", path, 3.0)
    assert again.kind == "none", again.text
    assert (np.fromfile(path) == 3).all()
    assert leftovers(path.parent) == []


SCENARIOS = {
    "mode_w": Scenario("make_store_at_once", (2.0, "bn"), store_is_old_or_new),
    "mode_w_below_a_parent_that_is_not_writable": Scenario(
        "make_store_at_once", (2.0, "bn"), store_is_old_or_new, surroundings="read-only parent"
    ),
    "mode_w_on_a_mount_point": Scenario(
        "make_store_at_once", (2.0, "bn"), store_is_old_or_new, surroundings="mount point"
    ),
    "overwrite": Scenario("write_arrays", ("a", 2.0, None, True), array_is_old_or_new),
    "several_arrays": Scenario("write_arrays", ("anb", 2.0, None, True), several_are_old_or_new("")),
    "several_arrays_of_a_step": Scenario("write_arrays", ("anb", 2.0, "0001", True), several_are_old_or_new("0001/")),
    "several_arrays_below_a_parent_that_is_not_writable": Scenario(
        "write_arrays", ("anb", 2.0, None, True), several_are_old_or_new(""), surroundings="read-only parent"
    ),
    "an_array_whose_name_ends_in_old": Scenario(
        "write_arrays", (("x.old",), 2.0), new_thing_is_whole_or_absent("x.old")
    ),
    "a_step": Scenario("write_step_at_once", ("0002", 2.0), new_thing_is_whole_or_absent("0002/a", "0002/b")),
    "a_step_whose_name_ends_in_old": Scenario(
        "write_step_at_once", ("x.old", 2.0), new_thing_is_whole_or_absent("x.old/a", "x.old/b")
    ),
    "a_step_on_a_mount_point": Scenario(
        "write_step_at_once",
        ("0002", 2.0),
        new_thing_is_whole_or_absent("0002/a", "0002/b"),
        surroundings="mount point",
    ),
    "a_step_below_a_parent_that_is_not_writable": Scenario(
        "write_step_at_once",
        ("0002", 2.0),
        new_thing_is_whole_or_absent("0002/a", "0002/b"),
        surroundings="read-only parent",
    ),
    "a_raw_file": Scenario("make_raw", (2.0,), raw_is_old_or_new, name="s.raw"),
    "an_npy_file": Scenario("make_npy", (2.0,), npy_is_old_or_new, name="s.npy"),
    "an_update": Scenario("update", ("a", 2.0), chunks_are_old_or_new("a")),
    "an_update_in_a_step": Scenario("update", ("a", 2.0, "0001"), chunks_are_old_or_new("0001/a")),
    "an_append": Scenario("append_at_once", ("a", 2.0), rows_are_old_or_longer),
    "an_update_of_a_raw_file": Scenario("update_raw", (2.0,), raw_rows_are_old_or_new, name="s.raw"),
}

#: Those that are left to the long run, since they are others in another place.
RARE = (
    "several_arrays_below_a_parent_that_is_not_writable",
    "a_step_on_a_mount_point",
    "a_step_below_a_parent_that_is_not_writable",
)


def surrounded(scenario: Scenario, path: Path) -> dict[str, Any]:
    """Surroundings of the program that is killed."""
    if scenario.surroundings == "read-only parent":
        path.parent.chmod(0o555)
        return {"unprivileged": True}
    return {"mounted": path} if scenario.surroundings == "mount point" else {}


def place(directory: Path, before: Path, scenario: Scenario) -> Path:
    """A fresh place, prepared."""
    path = Path(tempfile.mkdtemp(dir=directory)) / scenario.name
    if scenario.name == "s.zarr":
        shutil.copytree(before / scenario.name, path)
    else:
        shutil.copyfile(before / scenario.name, path)
    return path


def sample(calls: list[str]) -> list[int]:
    """Numbers of calls to look at, from 1."""
    every = range(1, len(calls) + 1)
    moving = [number for number in every if calls[number - 1].startswith(("rename", "unlink", "rmdir", "ftruncate"))]
    # Of many of one kind, one after another, the first and the last.
    ends = [number for number in moving if not {number - 1, number + 1} <= set(moving)]
    return sorted({*every[:: max(1, len(calls) // SAMPLE)], *ends[:SAMPLE], *ends[-SAMPLE:], every[-1]})


def check_kills(scenario: Scenario, directory: Path, before: Path, *, every: bool) -> None:
    """Kill the program before its calls, each time at a fresh place."""
    path = place(directory, before, scenario)
    try:
        made = calls_of(scenario.function, path, *scenario.arguments, **surrounded(scenario, path))
    finally:
        path.parent.chmod(0o755)
    calls = [call for call in made if not is_sync(call)]
    numbers = list(range(1, len(calls) + 1)) if every else sample(calls)
    failures = []
    for number in numbers:
        path = place(directory, before, scenario)
        try:
            with program(scenario.function, path, *scenario.arguments, **surrounded(scenario, path)) as killed:
                call = reach(killed, number, signal.SIGKILL)
        finally:
            path.parent.chmod(0o755)
        try:
            scenario.check(path)
        except AssertionError as error:
            where = None if call is None else call.replace(str(path.parent), "")
            failures.append(f"killed before call {number}, {where}: {str(error).splitlines()[0]}")
    assert failures == [], f"{len(failures)} of {len(numbers)} kills:\n" + "\n".join(failures)


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name not in RARE])
def test_a_kill_leaves_the_old_or_the_new(name: str, before: Path, tmp_path: Path) -> None:
    check_kills(SCENARIOS[name], tmp_path, before, every=False)


@pytest.mark.long
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_kill_before_any_call_leaves_the_old_or_the_new(name: str, before: Path, tmp_path: Path) -> None:
    check_kills(SCENARIOS[name], tmp_path, before, every=True)
