"""Full file systems, in which removing makes room: tmpfs in a namespace of its own, ext4 and XFS where root may mount.

By hand, all of them on all numbers of ranks: ``python -m pytest tests/python/test_full_disk.py``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from fault_library import compiled
from mpi_launch import run_ranks

#: Bytes and inodes of the tmpfs; so few inodes are used up at once.
TMPFS = "size=6M,nr_inodes=1500"
#: How file systems are made, and of how many bytes.
MADE = {"ext4": ("mkfs.ext4 -q -F -m 0 -N 1500", 24 << 20), "xfs": ("mkfs.xfs -q -f", 320 << 20)}
#: What is used up.
WAYS = ("bytes", "inodes", "limit")
#: Some of the cases, for ordinary tests.
SOME = ("step-1-1", "keep-0-1", "array-1-0", "replacing", "hdf5", "cleaned")


def tried(*command: str) -> None:
    """Skip the test, with a name, where a command cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    except FileNotFoundError:
        pytest.skip(f"there is no {command[0]}")
    if done.returncode != 0:
        pytest.skip(f"{' '.join(command[:3])} does not work here: {done.stderr.decode().strip()}")


def on_tmpfs(disk: Path) -> tuple[str, ...]:
    """What runs a command where a tmpfs is mounted at a directory."""
    script = f'mount -t tmpfs -o {TMPFS} small "$0" && "$@"'
    inside = ("unshare", "--map-root-user", "--mount", "sh", "-c", script, str(disk))
    tried(*inside, "true")
    return inside


def on_image(disk: Path, image: Path, kind: str) -> tuple[str, ...]:
    """The same of a file system in a file, which only root mounts."""
    if os.geteuid() != 0:
        pytest.skip(f"only root mounts {kind}")
    make, size = MADE[kind]
    with image.open("wb") as file:
        file.truncate(size)
    if shutil.which(make.split()[0]) is None:
        pytest.skip(f"there is no {make.split()[0]}")
    subprocess.run([*make.split(), str(image)], capture_output=True, check=True, timeout=60)
    inside = (
        "unshare",
        "--mount",
        "sh",
        "-c",
        f'mount -o loop {image} "$0" && "$@"; s=$?; umount "$0"; exit $s',
        str(disk),
    )
    tried(*inside, "true")
    return inside


@pytest.mark.mpi
@pytest.mark.parametrize(("way", "ranks"), [("bytes", 3), ("inodes", 1), ("limit", 4)])
def test_removing_needs_no_room(tmp_path: Path, way: str, ranks: int) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    told = run_ranks(ranks, "full_disk", disk, way, *SOME, inside=on_tmpfs(disk))
    assert f"{len(SOME)} cases" in told


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.parametrize("way", ["bytes", "inodes"])
def test_a_program_that_is_killed_while_it_makes_room_leaves_old_or_new(tmp_path: Path, way: str) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    with compiled() as preloaded:
        inside = on_tmpfs(disk)
        told = run_ranks(1, "full_disk", disk, way, "killed", inside=inside, extra_environment=preloaded, timeout=600)
    assert "1 cases" in told


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.parametrize("ranks", [1, 3, 4])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["tmpfs", *MADE])
def test_removing_needs_no_room_on_any_file_system(kind: str, way: str, ranks: int) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        disk = Path(temporary) / "disk"
        disk.mkdir()
        inside = on_tmpfs(disk) if kind == "tmpfs" else on_image(disk, Path(temporary) / "image", kind)
        assert "18 cases" in run_ranks(ranks, "full_disk", disk, way, inside=inside, timeout=300)
