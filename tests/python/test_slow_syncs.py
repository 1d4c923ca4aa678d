"""Syncs that take longer: traces and reports say that it is a sync, of whom, and that the others wait for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fault_library import compiled, quick_directory
from mpi_launch import environment, run_ranks

HERE = Path(__file__).parent
#: What is carried out in ordinary tests: some of each kind, by three ranks and by one and four.
SOME = {
    3: (
        "new array",
        "step",
        "section",
        "steps kept",
        "hdf5 file",
        "hdf5 deleted",
        "striped file",
        "hdf5 resized",
        "reported",
    ),
    1: ("append", "hdf5 step", "netcdf file", "store resized", "reported"),
    4: ("attribute changed", "consolidated", "hdf5 renamed", "groups made", "netcdf append", "raw file", "reported"),
}


@pytest.fixture(scope="module")
def preloaded() -> Iterator[dict[str, str]]:
    """An environment with the library that delays calls."""
    with compiled() as variables:
        yield variables


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", SOME)
def test_slow_syncs_are_told_as_syncs(preloaded: dict[str, str], ranks: int) -> None:
    with quick_directory() as directory:
        told = run_ranks(ranks, "slow_syncs", directory, 10, 0, *SOME[ranks], extra_environment=preloaded)
    assert "s of syncs are told" in told


def test_slow_syncs_of_threads_are_told_as_syncs(preloaded: dict[str, str]) -> None:
    command = [sys.executable, HERE / "mpi_programs" / "slow_syncs.py"]
    with quick_directory() as directory:
        arguments = [directory, "10", "3", "new array", "hdf5 step", "reported"]
        subprocess.run([*command, *arguments], env=environment(preloaded), check=True, timeout=120)


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_all_slow_syncs_are_told_as_syncs(preloaded: dict[str, str], ranks: int) -> None:
    with quick_directory() as directory:
        run_ranks(ranks, "slow_syncs", directory, 300, 0, extra_environment=preloaded, timeout=600)
