"""Storage that refuses: a file system of 8 MiB in a namespace of its own, full and then read-only."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from mpi_launch import run_ranks

IN_NAMESPACE = (
    "unshare",
    "--map-root-user",
    "--mount",
    "sh",
    "-c",
    'mount -t tmpfs -o size=8M,nr_inodes=400 small "$0" && "$@"',
)


@pytest.fixture
def inside(tmp_path: Path) -> list[str]:
    """What a command begins with that sees a small file system at ``disk``."""
    disk = tmp_path / "disk"
    disk.mkdir()
    inside = [*IN_NAMESPACE, str(disk)]
    try:
        tried = subprocess.run([*inside, "true"], capture_output=True, timeout=60, check=False)
    except FileNotFoundError:
        pytest.skip("there is no unshare (util-linux)")
    if tried.returncode != 0:
        pytest.skip(f"no file system can be mounted in a user namespace here: {tried.stderr.decode().strip()}")
    return inside


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("ranks", "of"), [(1, "blocks"), (3, "blocks"), (4, "blocks"), (1, "limit"), (4, "limit"), (3, "inodes")]
)
def test_the_error_where_something_runs_out_says_what_has_changed(
    ranks: int, of: str, inside: list[str], tmp_path: Path
) -> None:
    """The blocks of a disk, its inodes, or what one file may have."""
    seed = int(os.environ.get("HYPERSLAB_SEED", "58")) + ranks
    task = tmp_path / "task.json"
    cases = 60 if of == "blocks" else 40
    task.write_text(json.dumps({"seed": seed, "cases": cases, "step": 4096, "of": of}))
    told = run_ranks(ranks, "out_of_room", tmp_path / "disk", task, inside=inside)
    assert f"{cases} cases on {ranks} ranks" in told
    assert ("'error'" if of == "inodes" else "'torn'") in told, "some of them tear something, or fail"


@pytest.mark.mpi
@pytest.mark.parametrize(("of", "rooms"), [("blocks", [0]), ("limit", [4096, 8000])])
@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_what_took_no_byte_is_not_said_to_be_torn(
    ranks: int, of: str, rooms: list[int], inside: list[str], tmp_path: Path
) -> None:
    """The first byte does not fit any more, or lies behind what one file may have."""
    task = tmp_path / "task.json"
    task.write_text(json.dumps({"seed": 1, "cases": None, "step": 4096, "of": of, "rooms": rooms}))
    assert "'error'" in run_ranks(ranks, "out_of_room", tmp_path / "disk", task, inside=inside)


@pytest.mark.mpi
def test_a_full_and_a_read_only_file_system(inside: list[str], tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    assert "full, then read-only" in run_ranks(3, "small_disk", disk, inside=inside)
    assert list(disk.iterdir()) == []
