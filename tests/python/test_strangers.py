"""What another user of the machine plants beside data in a directory that all may write to changes nothing of it.

``python tests/python/test_strangers.py`` carries out all cases.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest

from fault_library import quick_directory
from mpi_launch import run_ranks
from strangers import (
    ALONE,
    ME,
    OF_STORES,
    OTHER,
    PLANTED,
    TOKEN,
    UNREADABLE,
    VALUES,
    Case,
    act,
    as_user,
    cases,
    line,
    load,
    store,
    tree,
)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
#: Cases of an ordinary run, by the number of ranks.
CASES = {1: 60, 3: 40, 4: 40}


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    load()


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory that all may write to, and each may only remove his own from."""
    with quick_directory() as made:
        made.chmod(0o1777)
        yield made


@dataclass
class Planted:
    """A case that was planted in a directory with nothing in it."""

    case: Case
    shared: Path
    path: Path
    #: What strangers have, and the data.
    planted: dict[str, Any]
    before: Any


def planted_in(case: Case, shared: Path) -> Planted:
    """Plants it."""
    shared.chmod(0o1777)
    outside = shared / "outside"
    outside.mkdir()
    (outside / "file").write_text("kept")
    path = case.plant(shared)
    planted = {name: found for name, found in tree(shared).items() if not name.startswith(path.name)}
    return Planted(case, shared, path, planted, tree(path) if path.is_dir() else path.read_bytes())


def wrong(at: Planted, done: dict[str, Any]) -> str | None:
    """What is not as it should be after an action with these answers; nothing if all is right."""
    case, shared, path, planted, before = at.case, at.shared, at.path, at.planted, at.before
    answer, told = str(done["answer"]), " ".join(done["told"])
    now = {name: found for name, found in tree(shared).items() if not name.startswith(path.name)}
    mine = case.planter != OTHER
    refused = "Error: " in answer
    if "666.0" in answer and "Error" not in answer and not (mine and case.suffix == ".zarr"):
        return f"what was planted is read: {answer}"
    if mine:
        return None
    lost = {name for name, found in planted.items() if name != "." and now.get(name) != found}
    if lost:
        return f"what others have is changed or gone: {sorted(lost)}"
    if case.action in ("r", "verify", "clean") and (tree(path) if path.is_dir() else path.read_bytes()) != before:
        return "who only looks changes something"
    if case.action == "r" and answer != str(VALUES.tolist()):
        return f"reading fails: {answer}"
    if path.is_dir() and (path / "evil").exists():
        return "what was planted is in the store"
    if case.action in ("r", "r+", "a", "w"):
        named = (".hyperslab-" in answer + told and f"({OTHER})" in answer + told) or "user 1002" in answer + told
        # What nothing leads to, or nothing is done with.
        passed = case.kind in ("root", "gone", "link to root", "first a directory") or case.suffix == ".npy"
        passed |= case.action == "r" and case.kind == "first a pipe"
        if not named and not passed:
            return f"nobody is told: {answer} {told}"
    unreadable = case.kind.startswith("list") and case.kind.endswith(UNREADABLE)
    if case.action in ("r+", "w") and unreadable and case.actor == ME and not refused:
        return f"it is not refused: {answer}"
    if case.action in ("r+", "a", "w") and case.suffix == ".zarr" and refused and not unreadable:
        return f"it is refused: {answer}"
    return None


def carried_out(case: Case, ranks: int = 1) -> str | None:
    """What is wrong with a case by so many threads, in a directory of its own."""
    with quick_directory() as made:
        at = planted_in(case, made)
        ended = as_user(case.actor, lambda: act(at.path, case.action, ranks))
        return wrong(at, ended["done"]) if "done" in ended else f"it raised something else: {ended['failed']}"


@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_what_a_stranger_plants_is_named_and_passed_over(ranks: int) -> None:
    seed = int(os.environ.get("HYPERSLAB_SEED", "7")) + ranks - 1
    by_strangers = [case for case in cases() if case.planter == OTHER and (ranks == 1 or case.action not in ALONE)]
    some = random.Random(seed).sample(by_strangers, CASES[ranks])
    found = {str(case): told for case in some if (told := carried_out(case, ranks))}
    assert found == {}, f"HYPERSLAB_SEED={seed}"


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_ranks_of_mpi_name_and_pass_over_what_a_stranger_plants(ranks: int) -> None:
    """One launch carries all of them out, as the user who has the data."""
    seed = int(os.environ.get("HYPERSLAB_SEED", "7")) + 10 * ranks
    of_mine = [case for case in cases() if (case.planter, case.actor) == (OTHER, ME) and case.action not in ALONE]
    with quick_directory() as made:
        made.chmod(0o755)
        all_of = []
        for number, case in enumerate(random.Random(seed).sample(of_mine, CASES[ranks] // 2)):
            place = made / str(number)
            place.mkdir()
            all_of.append(planted_in(case, place))
        task, answers = made / "task.json", made / "answers.json"
        task.write_text(json.dumps([(str(at.path), at.case.action) for at in all_of]))
        # Rank 0 writes them as the other user.
        answers.touch(0o666)
        answers.chmod(0o666)
        run_ranks(ranks, "strangers_met", task, answers)
        every = json.loads(answers.read_text())
        found = {str(at.case): told for at, done in zip(all_of, every, strict=True) if (told := wrong(at, done))}
    assert found == {}, f"HYPERSLAB_SEED={seed}"


@pytest.mark.long
def test_all_that_strangers_plant() -> None:
    found = {str(case): told for case in cases() if (told := carried_out(case))}
    assert found == {}


@pytest.mark.parametrize("planter", [ME, 0], ids=["owner", "root"])
def test_what_the_owner_or_root_left_is_rolled_forward(planter: int, shared: Path) -> None:
    """The same records are believed of those who could have changed the store."""
    path = Case(".zarr", "list", planter, "r+", ME).plant(shared)
    done = as_user(planter, lambda: act(path, "r+"))["done"]
    assert (path / "evil").exists(), done
    assert not list(shared.glob(".s.zarr.hyperslab-*")), done


def test_members_of_the_group_that_may_write_a_store_are_believed(shared: Path) -> None:
    """Where users and groups are known: of the groups of the running machine, one with a member."""
    import grp
    import pwd

    members = [(group.gr_gid, pwd.getpwnam(name).pw_uid) for group in grp.getgrall() for name in group.gr_mem]
    members += [(user.pw_gid, user.pw_uid) for user in pwd.getpwall()]
    group, member = next((pair for pair in members if pair[1] not in (0, ME)), (None, None))
    if group is None or member is None:
        pytest.skip("no user is in a group")
    for may, expected in ((0o2775, True), (0o755, False)):
        place = shared / f"{may:o}"
        place.mkdir()
        place.chmod(0o1777)
        case = Case(".zarr", "list", member, "r+", ME)
        path = place / "s.zarr"
        assert "done" in as_user(ME, lambda place=place: str(store(place)))
        for each in [path, *path.rglob("*")]:
            os.chown(each, ME, group)
        path.chmod(may)
        planted = as_user(member, lambda case=case, path=path: OF_STORES[case.kind](path))
        assert "done" in planted, planted
        found = as_user(0, lambda path=path: act(path, "r+"))["done"]
        assert (path / "evil").exists() == expected, (may, found)
        assert expected or found["told"], found


def test_parts_of_a_striped_file_that_strangers_plant_are_not_renamed(shared: Path) -> None:
    """A part that waits for its name would be old or new in one directory only, also when somebody only reads."""
    places = [shared / "0", shared / "1"]
    for place in places:
        place.mkdir()
        place.chmod(0o1777)
    striped = hs.Striped(places, "f.raw", unit=8)

    def write() -> None:
        with hs.open_raw(striped, "w", comm=None) as file:
            file.write("rho", VALUES)

    def look(mode: str) -> list[Any]:
        with (
            pytest.warns(UserWarning, match="passed over"),
            hs.open_raw(striped, mode, arrays={"rho": ((8,), "f8")}, comm=None) as file,
        ):
            return [file.read("rho").tolist(), len(file.passed_over)]

    def plant() -> None:
        (places[0] / ".f.raw.hyperslab-owners").write_text(line(parts="2"))
        (places[1] / f".f.raw.hyperslab-{TOKEN}").write_bytes(PLANTED[::2].tobytes())

    assert "done" in as_user(ME, write)
    assert "done" in as_user(OTHER, plant)
    for listed in (OTHER, ME):
        for user, mode in ((ME, "r"), (0, "r"), (ME, "r+"), (0, "r+")):
            # Of a list that is believed, the part is not.
            os.chown(places[0] / ".f.raw.hyperslab-owners", listed, listed)
            found = as_user(user, lambda mode=mode: look(mode))
            assert found.get("done") == [VALUES.tolist(), 1], found
            assert (places[1] / f".f.raw.hyperslab-{TOKEN}").exists()
    assert np.fromfile(places[1] / "f.raw").tolist() == VALUES[1::2].tolist()


def test_a_hidden_root_whose_name_somebody_else_was_given_is_left_alone(shared: Path) -> None:
    """What is only read cannot be renamed by a link, and nothing is written through one."""
    path = shared / "s.zarr"
    assert "done" in as_user(ME, lambda: str(store(shared)))
    outside = shared / "outside"
    outside.mkdir()
    outside.chmod(0o777)
    (outside / "owner").write_text(line())
    for kind in ("owners", "update", "first"):
        (shared / f".s.zarr.hyperslab-{kind}").symlink_to(outside / "owner")
    for action in ("r", "r+", "w", "clean"):
        as_user(0, lambda action=action: act(path, action))
        assert (outside / "owner").read_text() == line(), action
        assert len(list(outside.iterdir())) == 1, action


if __name__ == "__main__":
    os.environ |= {"HYPERSLAB_PROFILE": "none", "HYPERSLAB_LEARNED": "none"}
    load()
    chosen = [case for case in cases() if not sys.argv[1:] or any(word in str(case) for word in sys.argv[1:])]
    began, bad = time.monotonic(), 0
    for one in chosen:
        if told := carried_out(one):
            bad += 1
            sys.stdout.write(f"{one}: {told}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(chosen)} cases in {time.monotonic() - began:.0f} s, {bad} wrong\n")
