"""A file system that several clients share, with a server that accepts more than it can keep: GlusterFS, started here.

Needs root, and Debian's packages ``glusterfs-server`` and ``glusterfs-client``.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from mpi_launch import run_ranks

CLUSTER = Path(__file__).parents[1] / "cluster"
#: Six files of 2 MiB, and a part of another.
BRICK = "13m"


@pytest.mark.mpi
@pytest.mark.parametrize("which", ["some", pytest.param("all", marks=pytest.mark.long)])
def test_nothing_that_was_reported_is_lost_on_a_full_brick(which: str, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("GlusterFS is started by root only")
    if missing := [
        name for name in ("glusterd", "gluster", "mount.glusterfs", "unshare", "ip") if not shutil.which(name)
    ]:
        pytest.skip(f"there is no {missing[0]} (Debian: glusterfs-server, glusterfs-client, util-linux, iproute2)")
    inside = ("unshare", "--net", "--mount", "bash", str(CLUSTER / "full-brick"), str(tmp_path), BRICK)
    told = run_ranks(2, "full_brick", tmp_path / "one", tmp_path / "two", which, inside=inside, timeout=300.0)
    assert "nothing reported is lost" in told
