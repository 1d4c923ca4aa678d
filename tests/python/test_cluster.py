"""File systems that several clients share, started here: GlusterFS, in three ways, and MooseFS.

Needs root, and Debian's packages ``glusterfs-server`` and ``glusterfs-client``, or ``moosefs-master``,
``moosefs-chunkserver`` and ``moosefs-client``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mpi_launch import environment, mpiexec, run_ranks

CLUSTER = Path(__file__).parents[1] / "cluster"
#: Six files of 2 MiB, and a part of another.
BRICK = "13m"


#: What starts a shared file system, what it is started by, and what comes before the command.
SHARED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "timeouts": (("glusterd", "gluster", "glusterfs"), ("gluster", "timeouts")),
    "close-to-open": (("glusterd", "gluster", "glusterfs"), ("gluster", "close-to-open")),
    "coherent": (("glusterd", "gluster", "glusterfs"), ("gluster", "coherent")),
    "moosefs": (("mfsmaster", "mfschunkserver", "mfsmount"), ("moosefs",)),
}
#: Cases of `second_touches` that are tried each time, and on which file systems; all of them take a minute on each.
SAMPLE = ("over-zarr", "section", "renamed-zarr", "beside-nc4", "append-zarr")


def check_can_start(*programs: str) -> None:
    """Skip a test that needs what is not here, by name."""
    if os.geteuid() != 0:
        pytest.skip("shared file systems are started by root only")
    if missing := [name for name in (*programs, "unshare", "ip") if not found(name)]:
        pytest.skip(f"there is no {missing[0]} (Debian: glusterfs-server, glusterfs-client, moosefs-*, iproute2)")


def found(program: str) -> str | None:
    """Where a program is, also if the path leaves out those of the system's administrator."""
    return shutil.which(program, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]))


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("which", "ranks", "clients", "words"),
    [
        ("timeouts", 2, 2, SAMPLE),
        ("moosefs", 2, 2, SAMPLE),
        *(
            pytest.param(which, *spread, (), marks=pytest.mark.long)
            for which in SHARED
            for spread in ((2, 2), (3, 3), (4, 2))
        ),
    ],
)
def test_what_other_clients_did_is_seen(
    which: str, ranks: int, clients: int, words: tuple[str, ...], tmp_path: Path
) -> None:
    programs, started = SHARED[which]
    check_can_start(*programs)
    script, *how = started
    inside = ("unshare", "--net", "--mount", "bash", str(CLUSTER / script), str(tmp_path), *how)
    output = run_ranks(
        ranks,
        "second_touches",
        tmp_path / "mount",
        tmp_path / "told",
        *words,
        inside=inside,
        through=("bash", str(CLUSTER / "rank"), str(tmp_path)),
        extra_environment={"TURN": "1", "CLIENTS": str(clients)},
        timeout=600.0,
    )
    told = [json.loads(line) for line in (tmp_path / "told").read_text().splitlines()]
    assert len(told) >= len(words or SAMPLE), output
    assert [case for case in told if case["wrong"]] == []


@pytest.mark.mpi
@pytest.mark.parametrize("which", ["some", pytest.param("all", marks=pytest.mark.long)])
def test_nothing_that_was_reported_is_lost_on_a_full_brick(which: str, tmp_path: Path) -> None:
    check_can_start("glusterd", "gluster", "mount.glusterfs")
    inside = ("unshare", "--net", "--mount", "bash", str(CLUSTER / "full-brick"), str(tmp_path), BRICK)
    told = run_ranks(2, "full_brick", tmp_path / "one", tmp_path / "two", which, inside=inside, timeout=300.0)
    assert "nothing reported is lost" in told


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("which", "measured"),
    [
        ("timeouts", "timeouts"),
        *(pytest.param(which, which, marks=pytest.mark.long) for which in ("close-to-open", "coherent")),
        pytest.param("moosefs", "close-to-open", marks=pytest.mark.long),
    ],
)
def test_the_doctor_measures_what_other_clients_see(which: str, measured: str, tmp_path: Path) -> None:
    programs, started = SHARED[which]
    check_can_start(*programs)
    script, *how = started
    inside = ("unshare", "--net", "--mount", "bash", str(CLUSTER / script), str(tmp_path), *how)
    through = ("bash", str(CLUSTER / "rank"), str(tmp_path))
    doctor = (sys.executable, "-m", "hyperslab", "doctor", "--json", str(tmp_path / "mount"))
    done = subprocess.run(
        [*inside, mpiexec(), "-n", "3", *through, *doctor],
        env=environment({"TURN": "1", "CLIENTS": "3"}),
        capture_output=True,
        text=True,
        timeout=600,
    )
    found = json.loads(done.stdout)
    assert (found["mounts"], found["measured"], found["locks"], found["risks"]) == (3, measured, "held", []), (
        done.stderr
    )
    assert done.returncode == 0
