"""Programs that are started by ``mpiexec python program.py``: no communicator given, and ranks that fail."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import hyperslab as hs
import numpy as np
import pytest
from hyperslab._launch import ranks_of_environment

from mpi_launch import launched

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
def test_launchers_tell_how_many_ranks_there_are(environment: dict[str, str], ranks: int | None) -> None:
    found = ranks_of_environment(environment)
    assert (found and found[0]) == ranks


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
