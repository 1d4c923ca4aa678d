"""A program dies or is held up in the middle of a call, and others go on meanwhile: what they published later stays."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest
from hyperslab._clean import clean

from disturbed import RAW, WHOLE, full, kind_of, make, values_of
from fault_library import compiled, quick_directory
from neighbours import leftovers
from overtaken import LARGE, striped

HERE = Path(__file__).parent
LIMIT_SECONDS = 60.0
# Openings warn of what others left, which is looked at here by itself.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def preloaded() -> Iterator[dict[str, str]]:
    """An environment with the library that kills and stalls."""
    with compiled() as variables:
        yield variables


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory with a store, in which there are the arrays a and b."""
    with quick_directory() as made:
        make(made / "a.zarr")
        yield made


@contextmanager
def other(case: str, directory: Path, variables: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A program at work."""
    command = [sys.executable, str(HERE / "overtaken.py"), case, str(directory)]
    environment = os.environ | variables | {"PYTHONPATH": str(HERE)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str]) -> Any:
    """What it printed; nothing if it was killed."""
    printed, complained = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode in (0, -9), complained
    return json.loads(printed) if printed else None


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    """Wait until the program made a file."""
    until = time.monotonic() + LIMIT_SECONDS
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.002)


def held_up(case: str, directory: Path, variables: dict[str, str], meanwhile: Callable[[], Any]) -> tuple[Any, Any]:
    """What comes of something that is done while a program is held up, and how that ends when it goes on."""
    with other(case, directory, variables) as process:
        wait_for(directory / "held", process)
        came = meanwhile()
        (directory / "gate").touch()
        end = ended(process)
    for name in ("held", "gate", "given-up"):
        (directory / name).unlink(missing_ok=True)
    return came, end


def change(store: hs.Group, how: str, name: str) -> None:
    """Replace, update or lengthen an array; or leave it."""
    if how == "overwrite":
        store.write(name, full(9.0), overwrite=True)
    elif how == "update":
        store.write(name, full(9.0), section=WHOLE)
    elif how == "append":
        store.append(name, full(9.0))


@pytest.mark.parametrize("how", ["overwrite", "update", "append", "nothing"])
@pytest.mark.parametrize("group", ["", "g"])
def test_what_a_dead_program_left_replaces_nothing_newer(
    how: str, group: str, directory: Path, preloaded: dict[str, str]
) -> None:
    path = directory / "a.zarr" / group
    if group:
        make(path)
    # This program has the store open since before, or by another group, and does not know of the other one.
    with hs.open(directory / "a.zarr", "r+") as store:
        with other(f"replace_both:{group}", directory, preloaded) as process:
            assert ended(process) is None
        change(store.group(group) if group else store, how, "b")
    with hs.open(path, "r+") as store:
        assert store.removed == (("b",) if how != "nothing" else ())
        assert values_of(lambda: store.read("a")) == [5.0]
        expected = {"overwrite": [9.0], "update": [9.0], "append": [1.0, 9.0], "nothing": [5.0]}[how]
        assert values_of(lambda: store.read("b")) == expected
    assert leftovers(directory) == []


@pytest.mark.parametrize("how", ["overwrite", "update", "append", "nothing"])
def test_what_is_taken_back_is_ones_own(how: str, directory: Path, preloaded: dict[str, str]) -> None:
    def meanwhile() -> None:
        with hs.open(directory / "a.zarr", "r+") as store:
            change(store, how, "c")
            store.write("d", full(9.0))

    _, end = held_up("make_both", directory, preloaded, meanwhile)
    assert end == "ExistsError"
    with hs.open(directory / "a.zarr") as store:
        expected = {"overwrite": [9.0], "update": [9.0], "append": [5.0, 9.0], "nothing": []}[how]
        assert [values_of(lambda n=name: store.read(n)) for name in "cd"] == [expected, [9.0]]
    assert leftovers(directory) == []


@pytest.mark.parametrize("way", ["same", "group above", "link to the group", "link above"])
def test_a_late_chunk_reaches_no_later_update(way: str, directory: Path, preloaded: dict[str, str]) -> None:
    with hs.open(directory / "a.zarr" / "g", "w", durable=False) as store:
        store.write("large", np.full(LARGE, 1.0), chunks=(1, LARGE[1]))
    (directory / "link").symlink_to(directory / "a.zarr" / "g")
    (directory / "above").symlink_to(directory)
    path = {
        "same": directory / "a.zarr" / "g",
        "group above": directory / "a.zarr",
        "link to the group": directory / "link",
        "link above": directory / "above" / "a.zarr" / "g",
    }[way]
    with other("update_and_give_up:g", directory, preloaded) as process:
        wait_for(directory / "given-up", process)
        # The chunk is late still: it was not let go, and the time for which it is held up is not over.
        with hs.open(directory / "a.zarr" / "g") as store:
            assert values_of(lambda: store.read("large", section=(1, slice(None)))) == [1.0]
        with hs.open(path, "r+") as store:
            group = store.group("g") if way == "group above" else store
            group.write("large", np.full(LARGE, 9.0), section=WHOLE)
        (directory / "gate").touch()
        assert ended(process) == "['TimeoutError', 'TimeoutError']"
    with hs.open(directory / "a.zarr" / "g") as store:
        assert values_of(lambda: store.read("large")) == [9.0]
        assert store.unfinished == ()


def test_an_append_and_an_overwrite_exclude_each_other(directory: Path, preloaded: dict[str, str]) -> None:
    def by_another(call: Callable[[hs.Group], Any]) -> Callable[[], str]:
        def meanwhile() -> str:
            with hs.open(directory / "a.zarr", "r+") as store:
                return kind_of(lambda: call(store))

        return meanwhile

    appended = held_up("overwrite", directory, preloaded, by_another(lambda store: store.append("b", full(9.0))))
    assert appended == ("BusyError", "ok")
    replaced = held_up(
        "append", directory, preloaded, by_another(lambda store: store.write("b", full(9.0), overwrite=True))
    )
    assert replaced == ("BusyError", "ok")
    # Of two that replace, the last one wins; a program that is stopped keeps nobody from making something new.
    both = held_up(
        "overwrite", directory, preloaded, by_another(lambda store: store.write("b", full(9.0), overwrite=True))
    )
    assert both == ("ok", "ok")
    with hs.open(directory / "a.zarr") as store:
        assert store["b"].shape == (64, 8)
        assert values_of(lambda: store.read("b")) == [5.0]
    assert [finding for finding in hs.verify(directory / "a.zarr").findings if finding.severity == "damage"] == []
    assert leftovers(directory) == []


@pytest.mark.parametrize("what", ["array", "step", "store"])
@pytest.mark.parametrize("mode", ["x", "w"])
def test_a_store_made_late_destroys_nothing_unasked(
    mode: str, what: str, directory: Path, preloaded: dict[str, str]
) -> None:
    path = directory / "a.zarr"

    def meanwhile() -> None:
        with hs.open(path, "r+") as store:
            if what == "array":
                store.write("q", full(2.0))
            elif what == "step":
                with store.step("q") as step:
                    step.write("x", full(2.0))
        if what == "store":
            with hs.open(path / "q", "x") as store:
                store.write("x", full(2.0))

    _, end = held_up(f"open_anew:{mode}", directory, preloaded, meanwhile)
    assert end == ("ExistsError" if mode == "x" else "ok" if what != "array" else end)
    with hs.open(path) as store:
        if mode == "x" and what == "array":
            assert values_of(lambda: store.read("q")) == [2.0]
        else:
            group = store.group("q")
            assert group.arrays() == (["x"] if mode == "x" else [])
    assert hs.verify(path).findings == ()


@pytest.mark.parametrize("how", ["end", "exception"])
def test_a_forked_child_ends_nothing_of_its_parent(how: str, directory: Path, preloaded: dict[str, str]) -> None:
    with other(f"fork:{how}", directory, preloaded) as process:
        assert ended(process) == "ok"
    assert leftovers(directory) == []


def test_owners_are_found_behind_a_line_that_was_written_by_half(directory: Path, preloaded: dict[str, str]) -> None:
    with other("lists_by_half", directory, preloaded) as process:
        assert ended(process) == "StorageError"
    with hs.open(directory / "a.zarr", "r+") as store:
        assert store.removed == ("keep", "late")
    assert leftovers(directory) == []


@pytest.mark.parametrize("arrays", [{"z": ((32, 8), "f8")}, {"z": ((512,), "f8")}], ids=["shorter", "of another shape"])
def test_a_file_that_was_replaced_is_another_one(arrays: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.raw"
    (shape, _) = arrays["z"]

    def write(value: float, shape: tuple[int, ...]) -> None:
        with hs.open_raw(path, "w", durable=False) as file:
            file.write({"x" if shape == (64, 8) else "z": np.full(shape, value)})

    write(1.0, (64, 8))
    with hs.open_raw(path, "r+", arrays=RAW) as changed, hs.open_raw(path, arrays=RAW) as read:
        write(3.0, shape)
        assert kind_of(lambda: changed.write({"x": full(7.0)})) == "StorageError"
        assert kind_of(lambda: read.read("x")) == "StorageError"
    with hs.open_raw(path, arrays=arrays) as file:
        assert values_of(lambda: file.read("z")) == [3.0]
        assert file.unfinished == ()
    assert leftovers(tmp_path) == []


def test_nothing_is_written_into_the_metadata_of_another_store(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    make(path)
    with hs.open(path, "r+") as old, old.step("s") as step:
        step.write("a", full(1.0))
        path.rename(tmp_path / "moved.zarr")
        assert kind_of(old.consolidate) == "StorageError"
        with hs.open(path, "w") as new:
            new.write("c", full(2.0))
            new.consolidate()
        before = (path / "zarr.json").read_bytes()
        assert kind_of(old.consolidate) == "StorageError"
        assert kind_of(lambda: old.append("a", full(1.0))) in ("StorageError", "NotFoundError")
        assert kind_of(lambda: step.__exit__(None, None, None)) == "StorageError"
    assert (path / "zarr.json").read_bytes() == before


@pytest.mark.parametrize("looker", ["too few directories", "the first part", "clean"])
def test_who_sees_some_parts_of_a_striped_file_leaves_it(
    looker: str, directory: Path, preloaded: dict[str, str]
) -> None:
    for number in range(3):
        (directory / f"s{number}").mkdir()
    with hs.open_raw(striped(directory), "w") as file:
        file.write({"x": full(1.0)})
    with other("publish_striped", directory, preloaded) as process:
        assert ended(process) is None
    if looker == "clean":
        command = [sys.executable, "-m", "hyperslab", "clean", str(directory / "s0" / "f.raw")]
        subprocess.run(command, check=True, capture_output=True, timeout=LIMIT_SECONDS)
    else:
        place = striped(directory, 2) if looker == "too few directories" else directory / "s0" / "f.raw"
        assert kind_of(lambda: hs.open_raw(place, "r+", arrays=RAW)) == "CorruptError"
    with hs.open_raw(striped(directory), "r+", arrays=RAW) as file:
        assert values_of(lambda: file.read("x")) == [5.0]
    assert [left for number in range(3) for left in leftovers(directory / f"s{number}")] == []


def test_a_store_that_is_made_anew_through_a_link_is_another_one(directory: Path) -> None:
    path, link = directory / "a.zarr", directory / "link.zarr"
    link.symlink_to(path)
    with hs.open(path, "r+") as old, old.step("s") as step:
        step.write("x", full(2.0))
        with hs.open(link, "w") as new:
            new.write("mine", full(9.0))
        assert kind_of(lambda: step.__exit__(None, None, None)) == "StorageError"
        assert kind_of(lambda: old.write("c", full(2.0))) == "StorageError"
    with hs.open(path) as store:
        assert (store.arrays(), store.groups()) == (["mine"], [])
    assert link.is_symlink()
    assert leftovers(directory) == []


def test_a_marker_names_nothing_but_chunks_that_are_to_replace_others(directory: Path) -> None:
    path = directory / "a.zarr"
    make(path / "g")
    with hs.open(path, "r+") as store, store.step("s") as step:
        step.write("x", full(2.0))
        (root,) = directory.glob(".a.zarr.hyperslab-*/")
        owner = json.loads((root / "owner").read_text().splitlines()[0])
        marker = path / "g" / "b" / ".hyperslab-update"
        marker.write_text(json.dumps(owner | {"updates": "1-step-s", "readers": "torn"}) + "\n")
        with hs.open(path / "g", "r+") as group:
            group.write("b", full(9.0), section=WHOLE)
    with hs.open(path) as store:
        assert values_of(lambda: store.group("s").read("x")) == [2.0]


def as_user(number: int, act: Callable[[], Any]) -> int:
    """What a child ends with that does this as another user."""
    if (child := os.fork()) == 0:
        os.setgid(number)
        os.setuid(number)
        try:
            act()
            os._exit(0)
        except BaseException as error:  # noqa: BLE001 (the child ends here)
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
@pytest.mark.parametrize("mode", [0o777, 0o1777], ids=["shared", "sticky"])
def test_another_user_goes_on(mode: int, directory: Path) -> None:
    (directory / "shared").mkdir()
    path = directory / "shared" / "a.zarr"
    make(path)
    for each in (directory, directory / "shared", path):
        each.chmod(mode if each.name == "shared" else 0o777)

    def die() -> None:
        step = hs.open(path, "r+").step("left").__enter__()
        step.write("a", full(1.0))
        os._exit(0)

    def go_on() -> None:
        with hs.open(path, "r+") as store:
            assert store.removed == ()
            assert any("left" in each for each in store.unfinished)
            store.write("mine", full(2.0))
            with store.step("s") as step:
                step.write("a", full(2.0))

    assert as_user(1001, die) == 0
    assert as_user(1002, go_on) == 0
    with hs.open(path, "r+") as store:
        assert store.arrays() == ["a", "b", "mine"]
        assert store.groups() == ["s"]
        # The second user could put it out of sight, but not remove it, where the directory is not sticky.
        assert store.removed == (("left",) if mode == 0o1777 else ())
    assert leftovers(directory / "shared") == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
@pytest.mark.parametrize("mode", [0o777, 0o1777], ids=["shared", "sticky"])
def test_another_user_makes_the_same_file(mode: int, directory: Path) -> None:
    path = directory / "shared" / "a.raw"
    path.parent.mkdir()
    directory.chmod(0o777)
    path.parent.chmod(mode)

    def write(value: float) -> hs.RawFile:
        file = hs.open_raw(path, "w", comm=None)
        file.write("a", full(value))
        return file

    def die() -> None:
        file = write(1.0)
        assert file
        os._exit(0)

    def go_on() -> None:
        file = write(2.0)
        # Where the directory is sticky, nobody else may remove it.
        assert file.removed == (() if mode == 0o1777 else ("a.raw",))
        assert file.unfinished == ()
        assert [".a.raw.hyperslab-first" in each for each in file.passed_over] == ([True] if mode == 0o1777 else [])
        file.close()

    assert as_user(1001, die) == 0
    assert as_user(1002, go_on) == 0
    assert np.fromfile(path).tolist() == np.ravel(full(2.0)).tolist()
    with hs.open_raw(path, "r+", arrays={"a": (full(2.0).shape, "f8")}, comm=None) as file:
        # What the first user left is not what the second one's file is to be.
        assert file.removed == ()
        assert len(file.passed_over) == (mode == 0o1777)
    assert as_user(1001, lambda: clean(path, dry_run=False)) == 0
    assert leftovers(path.parent) == []


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("again", [False, True], ids=["renamed", "replaced"])
def test_a_new_file_in_a_directory_that_was_renamed_meanwhile(*, again: bool, durable: bool, tmp_path: Path) -> None:
    """It appears in neither: nobody would look for it in the one, and the other is another one."""
    place, aside = tmp_path / "runs", tmp_path / "old"
    place.mkdir()
    file = hs.open_raw(place / "a.raw", "w", durable=durable, comm=None)
    file.write("a", np.arange(5.0))
    place.rename(aside)
    if again:
        place.mkdir()
    with pytest.raises(hs.StorageError, match=r"'.*/runs' was renamed, replaced or removed"):
        file.close()
    assert list(aside.iterdir()) == []
    assert place.exists() == again
    assert not again or list(place.iterdir()) == []


#: Makes a file, and closes it when it is told to.
FIRST_OF_TWO = """
import sys
import hyperslab as hs
import numpy as np

file = hs.open_raw(sys.argv[1], "w", durable=False, comm=None)
file.write("a", np.arange(5.0))
print("written", flush=True)
sys.stdin.readline()
try:
    file.close()
except hs.StorageError as error:
    print(error)
"""


def start(program: str, path: Path) -> subprocess.Popen[str]:
    """Run a program until it has written."""
    command = [sys.executable, "-c", program, str(path)]
    started = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    assert started.stdout.readline() == "written\n"
    return started


def test_a_file_in_a_directory_that_was_renamed_leaves_the_owners_of_others_alone(tmp_path: Path) -> None:
    place, aside = tmp_path / "runs", tmp_path / "old"
    place.mkdir()
    # The first of several programs needs no line in the list.
    first, second = (start(FIRST_OF_TWO, place / "a.raw") for _ in range(2))
    place.rename(aside)
    other = hs.open_raw(aside / "a.raw", "w", durable=False, comm=None)
    other.write("a", np.arange(3.0))
    owners = aside / ".a.raw.hyperslab-owners"
    both = owners.read_bytes().splitlines()
    assert "was renamed" in second.communicate("\n", timeout=60)[0]
    (its_own,) = (line for line in owners.read_bytes().splitlines() if line)
    assert its_own == both[1]
    assert "was renamed" in first.communicate("\n", timeout=60)[0]
    other.close()
    assert [path.name for path in aside.iterdir()] == ["a.raw"]
    assert np.fromfile(aside / "a.raw").tolist() == [0, 1, 2]


def test_a_directory_that_cannot_be_opened_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    with pytest.raises(hs.StorageError, match=r"opening '.*/nowhere' failed: No such file"):
        hs.open_raw(tmp_path / "nowhere" / "a.raw", "w", comm=None)
    with pytest.raises(hs.NotFoundError, match=r"the directory '.*/none' does not exist"):
        hs.open_raw(tmp_path / "none" / "a.raw", "w", comm=None)
