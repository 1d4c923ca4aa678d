"""What goes to storage comes back, on any number of ranks, over any transport, and other tools read the same."""

from __future__ import annotations

from pathlib import Path

import hyperslab as hs
import pytest

from mpi_launch import run_ranks
from mpi_programs.roundtrip import run_cases

SEED = 20261121
CASES = {1: 40, 2: 60, 4: 80, 6: 50, 8: 40}


def files_of(root: Path) -> dict[str, bytes]:
    """All files below a directory, with their contents."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", CASES)
def test_random_transfers_equal_the_oracle(ranks: int, tmp_path: Path) -> None:
    printed = run_ranks(ranks, "roundtrip", tmp_path, SEED, CASES[ranks])
    assert f"{CASES[ranks]} cases on {ranks} ranks" in printed


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [3, 4])
def test_threads_mpi_and_messages_write_the_same_bytes(ranks: int, tmp_path: Path) -> None:
    """Whether ranks are processes or threads, and whether they reach each other's memory, cannot be seen in files."""
    places = {name: tmp_path / name for name in ("direct", "messages", "threads")}
    for place in places.values():
        place.mkdir()
    run_ranks(ranks, "roundtrip", places["direct"], SEED + 1, 30)
    run_ranks(ranks, "roundtrip", places["messages"], SEED + 1, 30, extra_environment={"HYPERSLAB_DIRECT": "0"})
    hs.threads(ranks, lambda comm: run_cases(comm, places["threads"], SEED + 1, 30))
    expected = files_of(places["direct"])
    assert len(expected) > 100
    for name in ("messages", "threads"):
        found = files_of(places[name])
        assert found.keys() == expected.keys(), name
        assert [path for path in found if found[path] != expected[path]] == [], name


@pytest.mark.mpi
def test_any_intracommunicator(tmp_path: Path) -> None:
    assert "all communicators" in run_ranks(4, "communicators", tmp_path)
