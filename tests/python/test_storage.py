"""Storage that refuses: a file system of 8 MiB in a namespace of its own, full and then read-only."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mpi_launch import run_ranks

IN_NAMESPACE = ("unshare", "--map-root-user", "--mount", "sh", "-c", 'mount -t tmpfs -o size=8M small "$0" && "$@"')


@pytest.mark.mpi
def test_a_full_and_a_read_only_file_system(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    inside = [*IN_NAMESPACE, str(disk)]
    try:
        tried = subprocess.run([*inside, "true"], capture_output=True, timeout=60, check=False)
    except FileNotFoundError:
        pytest.skip("there is no unshare (util-linux)")
    if tried.returncode != 0:
        pytest.skip(f"no file system can be mounted in a user namespace here: {tried.stderr.decode().strip()}")
    assert "full, then read-only" in run_ranks(3, "small_disk", disk, inside=inside)
    assert list(disk.iterdir()) == []
