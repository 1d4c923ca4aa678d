"""What is no ordinary file where one should be: an error on all ranks within seconds, without much memory."""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neighbour_programs import Outcome, full
from neighbours import StuckError, make_all, program

#: Within this an error must come [s]; nothing has to be waited for.
LIMIT_SECONDS = 8.0
#: More memory than this is not needed to see that something is wrong [B].
LIMIT_BYTES = 200 << 20
HUGE = 4 << 40
#: A program gets no more than this, so that a mistake does not use up the machine [B].
MOST_BYTES = 1 << 30
#: So many programs run at the same time.
AT_ONCE = 32


def directory(path: Path) -> None:
    path.mkdir()


def fifo(path: Path) -> None:
    os.mkfifo(path)


def link_to_zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_to_a_terminal(path: Path) -> None:
    path.symlink_to("/dev/tty")


def unix_socket(path: Path) -> None:
    # By way of a descriptor, since paths of sockets are short.
    parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{parent}/{path.name}")
    finally:
        os.close(parent)


def sparse(path: Path) -> None:
    """A file of 4 TiB of which nothing is stored."""
    path.touch()
    os.truncate(path, HUGE)


def empty(path: Path) -> None:
    path.touch()


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


ODD: dict[str, Callable[[Path], None]] = {
    each.__name__: each
    for each in (
        directory,
        fifo,
        link_to_zeros,
        link_to_a_terminal,
        unix_socket,
        sparse,
        empty,
        link_to_itself,
    )
}


@dataclass(frozen=True)
class Place:
    """Where something odd is, and who meets it."""

    #: Function of `neighbour_programs`, and its arguments after the path.
    function: str
    arguments: tuple[Any, ...]
    #: What it is called for, and where the odd file is below it; ``CHUNK`` is the first chunk of array 'a'.
    target: str
    below: str
    #: Whether it may also be passed over, if the call then does what it is for.
    may_succeed: bool = False


PLACES = {
    "metadata_of_a_store": Place("read_store", (), "s.zarr", "zarr.json"),
    "metadata_of_a_store_to_be_changed": Place("write_arrays", ("n", 2.0), "s.zarr", "zarr.json"),
    "metadata_of_an_array": Place("read_store", (), "s.zarr", "a/zarr.json"),
    "metadata_of_an_array_to_be_changed": Place("update", ("a", 2.0), "s.zarr", "a/zarr.json"),
    "metadata_of_another_array": Place("read_store", (), "s.zarr", "b/zarr.json", may_succeed=True),
    "metadata_of_an_array_to_be_replaced": Place(
        "write_arrays", ("a", 2.0, None, True), "s.zarr", "a/zarr.json", may_succeed=True
    ),
    "a_chunk": Place("read_store", (), "s.zarr", "CHUNK"),
    "a_chunk_to_be_changed": Place("update_a_row", ("a", 2.0), "s.zarr", "CHUNK"),
    "a_chunk_to_be_replaced": Place("write_arrays", ("a", 2.0, None, True), "s.zarr", "CHUNK", may_succeed=True),
    "a_marker": Place("read_store", (), "s.zarr", "a/.hyperslab-update", may_succeed=True),
    "a_marker_of_an_array_to_be_changed": Place(
        "update", ("a", 2.0), "s.zarr", "a/.hyperslab-update", may_succeed=True
    ),
    "the_hidden_place_of_a_store": Place(
        "write_arrays", ("n", 2.0), "s.zarr", "../.s.zarr.hyperslab-partial", may_succeed=True
    ),
    "the_hidden_place_in_a_store": Place("write_arrays", ("n", 2.0), "s.zarr", ".hyperslab", may_succeed=True),
    "a_raw_file": Place("read_raw", (), "s.raw", "."),
    "a_raw_file_to_be_changed": Place("update_raw", (2.0,), "s.raw", "."),
    "a_marker_of_a_raw_file": Place("update_raw", (2.0,), "s.raw", "../.s.raw.hyperslab-update", may_succeed=True),
    "the_hidden_place_of_a_raw_file": Place(
        "make_raw", (2.0,), "s.raw", "../.s.raw.hyperslab-partial", may_succeed=True
    ),
    "an_npy_file": Place("read_npy", (), "s.npy", "."),
    "the_hidden_place_of_an_npy_file": Place(
        "make_npy", (2.0,), "s.npy", "../.s.npy.hyperslab-partial", may_succeed=True
    ),
}
#: A raw file may be longer than what is known of it.
NOT_ODD = {("a_raw_file", "sparse"), ("a_raw_file_to_be_changed", "sparse")}
CASES = [(where, odd) for where in PLACES for odd in ODD if (where, odd) not in NOT_ODD]


def put(odd: str, place: Place, directory: Path) -> Path:
    """Put something odd in its place; the path that the program is called for."""
    target = directory / place.target
    if place.below == "CHUNK":
        files = [each for each in sorted((target / "a").rglob("c*")) if each.is_file()]
        spot = files[0]
    else:
        spot = Path(os.path.normpath(target / place.below))
    spot.unlink(missing_ok=True)
    ODD[odd](spot)
    return target


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Outcome | str]:
    """How the programs ended; several run at the same time, so that those which hang take no longer than one."""
    before = tmp_path_factory.mktemp("before")
    make_all(before)
    found: dict[tuple[str, str], Outcome | str] = {}
    for group in (CASES[first : first + AT_ONCE] for first in range(0, len(CASES), AT_ONCE)):
        with ExitStack() as stack:
            started = {}
            for where, odd in group:
                place = PLACES[where]
                directory = tmp_path_factory.mktemp("place") / "place"
                shutil.copytree(before, directory)
                try:
                    target = put(odd, place, directory)
                except OSError as error:
                    found[where, odd] = f"impossible: {error}"
                    continue
                started[where, odd] = stack.enter_context(
                    program(place.function, target, *place.arguments, memory=MOST_BYTES)
                )
            deadline = time.monotonic() + LIMIT_SECONDS
            for each in started.values():
                each.go()
            for case, each in started.items():
                try:
                    found[case] = each.outcome(max(0.0, deadline - time.monotonic()))
                except StuckError:
                    found[case] = f"there was no error within {LIMIT_SECONDS:.0f} s"
                except EOFError:
                    found[case] = "the process died"
    return found


@pytest.mark.parametrize(("where", "odd"), CASES)
def test_an_odd_file_is_an_error_on_all_ranks_soon(
    where: str, odd: str, ends: dict[tuple[str, str], Outcome | str]
) -> None:
    end = ends[where, odd]
    if isinstance(end, str):
        if end.startswith("impossible: "):
            pytest.skip(end)
        pytest.fail(end)
    assert end.memory < LIMIT_BYTES, f"{end.memory >> 20} MiB"
    # Those that read have two ranks.
    outcomes: list[Outcome] = end.value if isinstance(end.value, list) else [end]
    kinds = {each.kind for each in outcomes}
    assert len(kinds) == 1, outcomes
    if kinds == {"none"}:
        assert PLACES[where].may_succeed, "there was no error"
        assert all(each.value is None or np.array_equal(each.value, full(1)) for each in outcomes)
    else:
        assert all(each.ours for each in outcomes), outcomes
        assert "TimeoutError" not in kinds, outcomes
