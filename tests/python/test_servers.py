"""Dedicated servers: what they store, when calls return, errors, and ends."""

from __future__ import annotations

from pathlib import Path

import hyperslab as hs
import pytest

from mpi_launch import run_ranks
from server_cases import CASES


@pytest.mark.parametrize("ranks", [3, 5])
@pytest.mark.parametrize("name", CASES)
def test_threads(name: str, ranks: int, tmp_path: Path) -> None:
    hs.threads(ranks, lambda comm: CASES[name](comm, tmp_path))


@pytest.mark.mpi
@pytest.mark.parametrize(("ranks", "level"), [(6, "multiple"), (3, "serialized")])
def test_mpi(ranks: int, level: str, tmp_path: Path) -> None:
    assert f"all of servers on {ranks} ranks" in run_ranks(ranks, "servers", level, tmp_path)
