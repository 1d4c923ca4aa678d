"""Links that lead out of a store, names that do, and backups that share files with it: only the store is changed.

Reading follows links; writing, renaming and removing do not below the root of a store.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import hyperslab as hs
import numpy as np
import pytest
import zarr

from neighbour_programs import CHUNKS, SHAPE, full, make_store, write_step
from neighbours import arrays_at, calls_of, carried_out, is_sync, make_all, program, reach, tree

LEFT = "left"
#: Where hidden entries of a store may lie: beside it, in it, or where a program that was killed has left some.
HIDDEN = (".s.zarr.hyperslab-partial", f".s.zarr.hyperslab-{'0a' * 16}", "s.zarr/.hyperslab", LEFT)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with a store, another one, a raw file, an npy file, and foreign files in 'home'."""
    make_all(tmp_path)
    make_store(lambda _: None, tmp_path / "other.zarr", 5)
    for name, value in (("s.zarr", 1), ("other.zarr", 5)):
        write_step(lambda _: None, tmp_path / name, "g", value)
    (tmp_path / "home").mkdir()
    for name in ("x", "a", "zarr.json"):
        (tmp_path / "home" / name).write_text(f"the content of {name}")
    (tmp_path / "home" / "directory").mkdir()
    (tmp_path / "home" / "directory" / "y").write_text("the content of y")
    return tmp_path


def outside(place: Path) -> dict[str, Any]:
    """All that is there besides the store, its hidden entries and the two files."""
    ours = ("s.zarr", "s.raw", "s.npy")
    return {
        name: entry
        for name, entry in tree(place).items()
        if not name.startswith(ours) and not name.startswith(tuple(f".{each}.hyperslab" for each in ours))
    }


# ---- backups that share files ----------------------------------------------------------------------------------

#: What a program does to the store or to a file beside it.
REPLACING: dict[str, tuple[Any, ...]] = {
    "overwrite": ("write_arrays", "s.zarr", "ab", 2.0, None, True),
    "overwrite_in_a_group": ("write_arrays", "s.zarr", "ab", 2.0, "g", True),
    "mode_w": ("make_store_at_once", "s.zarr", 2.0),
    # Chunks with a checksum are replaced, too.
    "update": ("update", "s.zarr", "a", 2.0),
    "append": ("append_at_once", "s.zarr", "a", 2.0),
    "raw_file": ("make_raw", "s.raw", 2.0),
    "npy_file": ("make_npy", "s.npy", 2.0),
}


@pytest.mark.parametrize("name", REPLACING)
def test_a_backup_of_hard_links_stays_as_it_was(name: str, place: Path) -> None:
    function, target, *arguments = REPLACING[name]
    backup = place / "backup"
    backup.mkdir()
    if (place / target).is_dir():
        shutil.copytree(place / target, backup / target, copy_function=os.link)
    else:
        os.link(place / target, backup / target)
    before = tree(backup)
    outcome = carried_out(function, place / target, *arguments)
    assert outcome.kind == "none", outcome.text
    assert tree(backup) == before
    assert tree(place / target) != before


# ---- links out of a store --------------------------------------------------------------------------------------


def link(path: Path, target: Path) -> None:
    """Put a link in the place of what is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.symlink_to(target)


def an_array(place: Path) -> None:
    link(place / "s.zarr" / "a", place / "other.zarr" / "a")


def metadata_of_an_array(place: Path) -> None:
    link(place / "s.zarr" / "a" / "zarr.json", place / "other.zarr" / "a" / "zarr.json")


def chunks(place: Path) -> None:
    for chunk in (place / "other.zarr" / "a").glob("c*"):
        link(place / "s.zarr" / "a" / chunk.name, chunk)


def directories_of_chunks(place: Path) -> None:
    """Chunks in directories, as zarr-python has them."""
    for name in ("s.zarr", "other.zarr"):
        shutil.rmtree(place / name / "a")
        array = zarr.create_array(place / name, name="a", shape=SHAPE, chunks=CHUNKS, dtype="f8", compressors=None)
        array[...] = 1
    link(place / "s.zarr" / "a" / "c", place / "other.zarr" / "a" / "c")


def a_group(place: Path) -> None:
    link(place / "s.zarr" / "g", place / "other.zarr" / "g")


def metadata_of_the_store(place: Path) -> None:
    link(place / "s.zarr" / "zarr.json", place / "other.zarr" / "zarr.json")


def markers(place: Path) -> None:
    for array in ("a", "b", "g/a"):
        link(place / "s.zarr" / array / ".hyperslab-update", place / "home" / "x")


LINKS: dict[str, Callable[[Path], None]] = {
    each.__name__: each
    for each in (
        an_array,
        metadata_of_an_array,
        chunks,
        directories_of_chunks,
        a_group,
        metadata_of_the_store,
        markers,
    )
}
CHANGES: dict[str, tuple[Any, ...]] = {
    "overwrite": ("write_arrays", "ab", 2.0, None, True),
    "overwrite_in_a_group": ("write_arrays", "ab", 2.0, "g", True),
    "a_new_array_in_a_group": ("write_arrays", "n", 2.0, "g"),
    "mode_w": ("make_store_at_once", 2.0),
    "update": ("update", "a", 2.0),
    "update_in_a_group": ("update", "a", 2.0, "g"),
    "append": ("append_at_once", "a", 2.0),
    "a_step": ("write_step_at_once", "0001", 2.0),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", LINKS)
def test_what_a_link_leads_to_stays_as_it_was(name: str, change: str, place: Path) -> None:
    LINKS[name](place)
    before = outside(place)
    function, *arguments = CHANGES[change]
    outcome = carried_out(function, place / "s.zarr", *arguments)
    assert outside(place) == before, outcome
    assert outcome.ours, outcome
    if outcome.kind == "none" and change in ("overwrite", "mode_w", "update"):
        with hs.open(place / "s.zarr") as store:
            assert np.array_equal(store.read("a"), full(2)), "it went well, but other values are read"


def test_a_link_to_the_store_itself_is_followed(place: Path) -> None:
    """Also in mode `w`, which leaves the link and replaces what it leads to."""
    alias = place / "alias.zarr"
    alias.symlink_to("s.zarr")
    outcome = carried_out("write_step_at_once", alias, "0001", 2.0)
    assert outcome.kind == "none", outcome.text
    assert set(arrays_at(place / "s.zarr")) == {"a", "b", "g/a", "g/b", "0001/a", "0001/b"}
    outcome = carried_out("make_store_at_once", alias, 2.0)
    assert outcome.kind == "none", outcome.text
    assert alias.is_symlink()
    assert set(arrays_at(place / "s.zarr")) == {"a", "b"}


# ---- names that lead out of a store ----------------------------------------------------------------------------

#: Where an entry of that name would go if it were taken at its word.
TARGETS = ("../../home/x", "../home/x", "../../../home/x", "../../home/new", "../home/new", "../home/directory")


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("kind", ["directory", "file", "link"])
def test_hidden_entries_with_hostile_names(kind: str, hidden: str, place: Path) -> None:
    """However names are written in names: what is outside of the store stays, and nothing comes there."""
    hostile = hidden_place(place, hidden)
    for parent in {hostile / "arrays", hostile / "steps", *(entry for entry in hostile.rglob("*") if entry.is_dir())}:
        parent.mkdir(parents=True, exist_ok=True)
        for target in (*TARGETS, str(place / "home" / "x"), str(place / "home" / "new")):
            for suffix in ("", ".old"):
                entry = parent / (quote(target, safe="") + suffix)
                if kind == "directory":
                    entry.mkdir()
                    (entry / "zarr.json").write_text("{}")
                elif kind == "file":
                    entry.write_text(target)
                else:
                    entry.symlink_to(place / "home" / "directory")
    before = outside(place)
    outcome = carried_out("open_and_use", place / "s.zarr")
    assert outside(place) == before
    assert outcome.ours, outcome
    if outcome.kind == "none":
        assert outcome.value == ["none"] * 5


def hidden_place(place: Path, hidden: str) -> Path:
    """A directory of hidden entries."""
    if hidden == LEFT:
        torn(place, before=True)
        return next(entry for entry in hidden_entries(place) if entry.is_dir())
    (place / hidden).mkdir()
    return place / hidden


#: Arrays that a killed program was about to publish, and where somebody would like them to go.
ASTRAY = {"a": "../../home/a", "n": "../home/new", "b": "../../home/directory"}


def records(entries: list[Path]) -> list[Path]:
    """What the program has noted for the next one, in contrast to what it has stored."""
    return [entry for entry in entries if entry.is_file() and entry.name != "zarr.json" and entry.name[:2] != "c."]


def rewritten(entry: Path, change: Callable[[str], str]) -> None:
    """Change all texts in the lines of a record, which are JSON; or all words, if they are not."""

    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            return {change(key): changed(each) for key, each in value.items()}
        if isinstance(value, list):
            return [changed(each) for each in value]
        return change(value) if isinstance(value, str) else value

    lines = []
    for line in entry.read_text().splitlines():
        try:
            lines.append(json.dumps(changed(json.loads(line))))
        except ValueError:
            lines.append(" ".join(map(change, line.split())))
    entry.write_text("".join(f"{line}\n" for line in lines))


def records_name_targets_outside(entries: list[Path], place: Path) -> None:
    del place
    for record in records(entries):
        rewritten(record, lambda text: ASTRAY.get(text, text))


def records_name_targets_outside_absolutely(entries: list[Path], place: Path) -> None:
    for record in records(entries):
        rewritten(record, lambda text: str(place / "home" / "x") if text in ASTRAY else text)


def records_name_sources_outside(entries: list[Path], place: Path) -> None:
    """So that they would be moved into the store, or be exchanged with what is there."""
    del place
    names = {entry.name for entry in entries}
    for record in records(entries):
        rewritten(record, lambda text: "../home/directory" if text in names else text)


def records_name_another_store(entries: list[Path], place: Path) -> None:
    """The other one, which is beside the store."""
    for record in records(entries):
        rewritten(record, lambda text: text.replace(str(place / "s.zarr"), str(place / "other.zarr")))
        rewritten(record, lambda text: f"../other.zarr/{text}" if text in ASTRAY else text)


def entries_name_paths_outside(entries: list[Path], place: Path) -> None:
    """As do the records, which name the entries."""
    del place
    names = {
        entry.name: re.sub(
            r"(?<![A-Za-z0-9])[anb](?![A-Za-z0-9])", lambda found: quote(ASTRAY[found[0]], safe=""), entry.name
        )
        for entry in entries
    }
    for record in records(entries):
        rewritten(record, lambda text: names.get(text, text))
    # From below, so that the paths of those above still hold.
    for entry in reversed(entries):
        entry.rename(entry.with_name(names[entry.name]))


def files_are_links_outside(entries: list[Path], place: Path) -> None:
    for entry in entries:
        if entry.is_file():
            link(entry, place / "home" / "x")


def directories_are_links_outside(entries: list[Path], place: Path) -> None:
    for entry in reversed(entries):
        if entry.is_dir() and not any(each.is_dir() for each in entry.iterdir()):
            link(entry, place / "home" / "directory")


def the_hidden_place_is_a_link_outside(entries: list[Path], place: Path) -> None:
    link(next(entry for entry in entries if entry.is_dir()), place / "home")


FORGERIES = {
    each.__name__: each
    for each in (
        records_name_targets_outside,
        records_name_targets_outside_absolutely,
        records_name_sources_outside,
        records_name_another_store,
        entries_name_paths_outside,
        files_are_links_outside,
        directories_are_links_outside,
        the_hidden_place_is_a_link_outside,
    )
}


@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.parametrize("killed", ["while_publishing", "before_publishing"])
def test_what_a_killed_program_left_was_changed_by_somebody(killed: str, forgery: str, place: Path) -> None:
    """The next program changes nothing outside of the store, whatever the leftovers tell it to do."""
    torn(place, before=killed == "before_publishing")
    entries = hidden_entries(place)
    assert entries, "the program has left nothing"
    FORGERIES[forgery](entries, place)
    before = outside(place)
    outcome = carried_out("open_and_use", place / "s.zarr")
    assert outside(place) == before, outcome
    assert outcome.ours, outcome


def torn(place: Path, *, before: bool) -> None:
    """Kill a program while it publishes three arrays of one call, or before."""
    arguments = ("anb", 2.0, None, True)
    elsewhere = place / "s.zarr-copy"
    shutil.copytree(place / "s.zarr", elsewhere / "s.zarr")
    calls = [call for call in calls_of("write_arrays", elsewhere / "s.zarr", *arguments) if not is_sync(call)]
    shutil.rmtree(elsewhere)
    published = [
        number
        for number, call in enumerate(calls, 1)
        if call.startswith("rename") and call.split(" ", 1)[1].rpartition("/")[2] in ("a", "n", "b")
    ]
    with program("write_arrays", place / "s.zarr", *arguments) as killed:
        reach(killed, published[0] if before else published[-1], signal.SIGKILL)


def hidden_entries(place: Path) -> list[Path]:
    """What lies hidden beside the store or in it, that above before that below."""
    roots = [*place.glob(".s.zarr.hyperslab*"), *place.glob("s.zarr/.hyperslab*")]
    return [entry for root in sorted(roots) for entry in (root, *sorted(root.rglob("*")))]


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("below", ["", "arrays", "steps", "arrays/a.old", "arrays/home", "steps/step"])
def test_links_in_the_place_of_hidden_entries(below: str, hidden: str, place: Path) -> None:
    if hidden == LEFT:
        torn(place, before=True)
        hidden = str(next(entry for entry in hidden_entries(place) if entry.is_dir()))
        if not below:
            shutil.rmtree(hidden)
    entry = place / hidden / below
    if entry.is_dir():
        shutil.rmtree(entry)
    entry.parent.mkdir(parents=True, exist_ok=True)
    entry.symlink_to(place / "home")
    before = outside(place)
    outcome = carried_out("open_and_use", place / "s.zarr")
    assert outside(place) == before, outcome
    assert outcome.ours, outcome


@pytest.mark.parametrize("function", ["make_raw", "update_raw", "make_npy"])
def test_links_in_the_place_of_hidden_files_beside_files(function: str, place: Path) -> None:
    target = place / ("s.npy" if function == "make_npy" else "s.raw")
    for suffix in ("partial", "update"):
        (place / f".{target.name}.hyperslab-{suffix}").symlink_to(place / "home" / "x")
    before = outside(place)
    outcome = carried_out(function, target, 2.0)
    assert outside(place) == before, outcome
    assert outcome.ours, outcome


@pytest.mark.parametrize("change", ["update", "append", "overwrite", "mode_w", "a_step"])
def test_links_in_the_place_of_temporary_files(change: str, place: Path) -> None:
    """Whose names somebody could have known who knows the number of the process."""
    function, *arguments = CHANGES[change]
    with program(function, place / "s.zarr", *arguments) as other:
        for name in ("zarr.json", *(f"c.{row}.0" for row in range(6))):
            for parent in ("s.zarr", "s.zarr/a"):
                (place / parent / f".{name}.hyperslab-{other.pid}").symlink_to(place / "home" / "x")
        before = outside(place)
        outcome = other.finish()
    assert outside(place) == before, outcome
    assert outcome.ours, outcome
