"""What people touch: arrays, mappings and everyday verbs, on threads and on the ranks of MPI programs."""

from __future__ import annotations

from pathlib import Path

import hyperslab as hs
import pytest

from mpi_launch import run_ranks
from mpi_programs.doors import CASES


@pytest.mark.parametrize("name", CASES)
def test_on_threads(name: str, tmp_path: Path) -> None:
    for ranks in (1, 3):
        path = tmp_path / str(ranks)
        path.mkdir()
        hs.threads(ranks, lambda comm: CASES[name](comm, path if name == "mappings" else path / "s.zarr"))  # noqa: B023


@pytest.mark.mpi
def test_on_ranks_of_mpi(tmp_path: Path) -> None:
    assert "all 4" in run_ranks(4, "doors", tmp_path)
