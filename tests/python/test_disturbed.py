"""Something happens to data in the middle of a call: others replace them, a system call fails or hangs, others look."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest

from fault_library import compiled, quick_directory

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def preloaded() -> Iterator[dict[str, str]]:
    """An environment with the library that fails and stalls."""
    with compiled() as variables:
        yield variables


def told(case: str, variables: dict[str, str]) -> Any:
    """What a case of `disturbed` came to."""
    with quick_directory() as directory:
        command = [sys.executable, str(HERE / "disturbed.py"), case, str(directory)]
        environment = os.environ | variables | {"PYTHONPATH": str(HERE)}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.parametrize(
    ("how", "end", "values"),
    [
        ("overwrite", "ok", [3.0]),
        ("other chunks", "ok", [3.0]),
        ("mode w", "NotFoundError", []),
        ("raw", "StorageError", []),
    ],
)
def test_what_is_replaced_while_it_is_read_is_no_mixture(
    how: str, end: str, values: list[float], preloaded: dict[str, str]
) -> None:
    assert told(f"read_beside:{how}", preloaded) == {"end": end, "other": "ok", "values": values}


@pytest.mark.parametrize("how", ["overwrite", "mode w", "raw", "raw by a link"])
def test_what_is_changed_in_place_is_not_replaced(how: str, preloaded: dict[str, str]) -> None:
    found = told(f"update_beside:{how}", preloaded)
    assert found == {"end": "ok", "other": "BusyError", "values": [2.0], "named": []}


@pytest.mark.parametrize("which", ["sync", "unlink", "rename", "write"])
def test_an_append_that_fails_has_not_grown_the_array(which: str, preloaded: dict[str, str]) -> None:
    found = told(f"append_fails:{which}", preloaded)
    assert found[-1] == ["ok", 8]
    for end, length in found[:-1]:
        assert length == (8 if end == "UnsyncedError" else 4), found
    assert len(found) > 1, "nothing failed"


@pytest.mark.parametrize("which", ["exchange", "unlink", "open", "mkdir"])
def test_an_outage_while_arrays_are_replaced_loses_none(which: str, preloaded: dict[str, str]) -> None:
    found = told(f"several_fail:{which}", preloaded)
    assert len(found) > 1, "nothing failed"
    for end, *values in found:
        # What is half published is published whole by the next opening.
        allowed = [[[2.0], [2.0]]] if end in ("ok", "UnsyncedError") else [[[1.0], [1.0]]]
        assert values in allowed, (end, values, found)


def test_rank_0_does_not_hang_longer_than_the_limit(preloaded: dict[str, str]) -> None:
    for end, seconds in told("hang:mkdir", preloaded):
        assert end == "TimeoutError"
        assert seconds < 10


def test_who_only_looks_disturbs_nobody(preloaded: dict[str, str]) -> None:
    ends = told("lookers", preloaded)
    assert set(ends) == {"ok"}, ends


def test_a_rank_0_that_comes_late_begins_nothing(tmp_path: Path) -> None:
    """The others have told their users that it failed, and somebody may have made it anew."""
    path = tmp_path / "a.zarr"
    with hs.open(path, "w") as store:
        store.write("old", np.zeros(4))

    def rank(comm: hs.ThreadComm) -> str:
        if comm.rank == 0:
            time.sleep(4)
        try:
            hs.open(path, "w", comm=comm, durable=False, arrival_seconds=1.0, progress_seconds=1.0)
        except hs.Error as error:
            return type(error).__name__
        return "ok"

    assert hs.threads(2, rank) == ["TimeoutError", "TimeoutError"]
    with hs.open(path) as store:
        assert store.arrays() == ["old"]


def test_a_store_whose_maker_was_killed_can_be_made(tmp_path: Path) -> None:
    directory = tmp_path / "a.zarr"
    directory.mkdir()
    left = directory / f".zarr.json.hyperslab-{'0' * 32}"
    left.write_text("{")
    for mode in ("x", "w"):
        with hs.open(directory, mode) as store:
            store.write("a", np.ones(4))
        assert not left.exists()
        shutil.rmtree(directory / "a")
        (directory / "zarr.json").rename(left)
