"""Storage that does not answer has a limit of its own, on all ranks, also while rank 0 works for all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import hyperslab as hs
import numpy as np
import pytest

from fault_library import compiled, quick_directory
from stalled_storage import BUSY, STALL_SECONDS, STORAGE_SECONDS

HERE = Path(__file__).parent
#: What may pass between the limit and the error, on a machine that has other things to do, too [s].
SLACK_SECONDS = 5.0
#: Mounts a file system of which nothing tells where it lies, and runs what follows there.
IN_OVERLAY = (
    "unshare",
    "--map-root-user",
    "--mount",
    "sh",
    "-c",
    'cd "$0" && mkdir lower upper work far && '
    'mount -t overlay far -o userxattr,lowerdir=lower,upperdir=upper,workdir=work far && exec "$@"',
)


def stalled(directory: Path, name: str, first: int, mode: str, inside: tuple[str, ...] = ()) -> list[list[object]]:
    """What each of two ranks gets: the name and text of its error, and after how many seconds."""
    with compiled() as variables:
        program = [sys.executable, str(HERE / "stalled_storage.py"), name, str(first), mode, str(directory)]
        environment = os.environ | variables | {"PYTHONPATH": str(HERE)}
        ran = subprocess.run(
            [*inside, *program], env=environment, capture_output=True, text=True, timeout=60, check=False
        )
    assert ran.returncode == 0, ran.stderr
    told: list[list[object]] = json.loads(ran.stdout)
    return told


def assert_stalled(told: list[object], limit: float = STORAGE_SECONDS) -> None:
    """It returned in time, and says which rank waits for storage."""
    kind, text, seconds = told
    assert kind == "TimeoutError", (kind, text)
    assert "storage has not answered rank 0" in str(text)
    assert "storage_seconds" in str(text)
    assert isinstance(seconds, float)
    assert STORAGE_SECONDS * 0.9 < seconds < limit + SLACK_SECONDS


@pytest.mark.parametrize(("name", "first"), [("open", 1), ("open", 3), ("stat", 2)])
def test_storage_that_may_lie_far_away_keeps_no_rank(tmp_path: Path, name: str, first: int) -> None:
    for made in ("tried", "used"):
        (tmp_path / made).mkdir()
    try:
        tried = subprocess.run(
            [*IN_OVERLAY, str(tmp_path / "tried"), "true"], capture_output=True, text=True, timeout=60, check=False
        )
    except FileNotFoundError:
        pytest.skip("there is no unshare (util-linux)")
    if tried.returncode != 0:
        pytest.skip(f"no overlay can be mounted in a user namespace here: {tried.stderr.strip()}")
    inside = (*IN_OVERLAY, str(tmp_path / "used"))
    for told in stalled(tmp_path / "used" / "far", name, first, "open", inside):
        assert_stalled(told)


@pytest.mark.parametrize(("name", "first"), [("open", 1), ("stat", 2)])
def test_a_disk_of_this_host_that_hangs_keeps_only_the_rank_that_asked_it(name: str, first: int) -> None:
    with quick_directory() as directory:
        root, other = stalled(directory, name, first, "open")
    assert_stalled(other)
    # It is told when the disk answers.
    assert_stalled(root, STALL_SECONDS)


def test_a_sync_that_hangs_keeps_no_rank() -> None:
    with quick_directory() as directory:
        for told in stalled(directory, "sync", 1, "update"):
            assert_stalled(told)


def test_who_hears_that_a_call_failed_finds_no_lock_of_it() -> None:
    with quick_directory() as directory:
        # The first sync is that of the marker.
        for kind, text, seconds in stalled(directory, "sync", 2, "section"):
            assert kind == "TimeoutError", (kind, text)
            assert "storage has not answered rank" in str(text)
            assert seconds != BUSY, "the update that failed is taken for one that lives"


@pytest.mark.parametrize(("name", "first"), [("mkdir", 1), ("write", 2)])
def test_a_rank_0_that_was_held_up_erases_nothing(name: str, first: int) -> None:
    """The others were told that making the store anew failed, and another program made it."""
    with quick_directory() as directory:
        root, other = stalled(directory, name, first, "anew")
        assert_stalled(other)
        assert root[0] == "TimeoutError", root
        with hs.open(directory / "a.zarr") as store:
            assert store.arrays() == ["later"]
            assert np.array_equal(store.read("later"), np.ones(4))
