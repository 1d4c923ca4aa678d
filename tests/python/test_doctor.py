"""``hyperslab doctor``: what a directory does for ranks; `test_cluster` runs it on shared file systems."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mpi_launch import MOUNTING, check_can_mount, environment, mpiexec

DOCTOR = (sys.executable, "-m", "hyperslab", "doctor", "--json")


def doctor(*command: str, **variables: str) -> tuple[int, dict[str, Any]]:
    """The exit status, and what it found."""
    done = subprocess.run(command, env=environment(variables), capture_output=True, text=True, timeout=120)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_a_directory_of_this_host(tmp_path: Path) -> None:
    status, found = doctor(*DOCTOR, str(tmp_path))
    assert (status, found["risks"], found["locks"], found["place"]["strength"]) == (0, [], "held", "coherent")
    assert found["rates"]["bytes per second by one rank"] > 0
    assert list(tmp_path.iterdir()) == [], "nothing is left"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        status, found = doctor(*DOCTOR, str(tmp_path))
    finally:
        tmp_path.chmod(0o700)
    assert status == 1
    assert "nothing can be made there" in found["risks"][0]


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    status, found = doctor(*DOCTOR, str(tmp_path / "missing"))
    assert status == 1
    assert "No such file" in found["risks"][0]


@pytest.mark.mpi
def test_ranks_on_one_client(tmp_path: Path) -> None:
    status, found = doctor(mpiexec(), "-n", "3", *DOCTOR, str(tmp_path))
    assert (status, found["ranks"], found["mounts"], found["shared"]) == (0, 3, 1, True)
    assert found["rates"]["bytes per second by all ranks"] > 0


@pytest.mark.mpi
def test_ranks_that_do_not_see_the_same_directory(tmp_path: Path) -> None:
    own = 'test "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" = 0 || mount -t tmpfs own "$0"; exec "$@"'
    ranks = ("unshare", "--mount", "sh", "-c", own, str(tmp_path), *DOCTOR, str(tmp_path))
    check_can_mount(tmp_path)
    status, found = doctor(*MOUNTING, mpiexec(), "-n", "3", *ranks)
    assert status == 1
    assert found["risks"] == ["ranks [1, 2] do not see what rank 0 makes there: give a path that all nodes mount"]
    assert list(tmp_path.iterdir()) == []
