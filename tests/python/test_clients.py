"""Ranks that see a file system by clients of their own, which do not see at once what others do.

The worst client that a file system may have shows nothing of what others have done. So ranks but the first see an
empty file system at the path here, while the library is told that the place shows late what other clients do: all
calls must be right, since all that a program does there goes by the client of rank 0. `test_cluster` does the same on
real shared file systems.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mpi_launch import MOUNTING, check_can_mount, run_ranks

pytestmark = pytest.mark.mpi


@pytest.fixture(scope="module")
def mounting(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Where file systems can be mounted for one program."""
    directory = tmp_path_factory.mktemp("own")
    check_can_mount(directory)
    return MOUNTING


def cases(output: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in output.read_text().splitlines()]


@pytest.mark.parametrize(("strength", "ranks"), [("timeouts", 3), ("close-to-open", 2)])
def test_no_rank_looks_by_a_client_of_its_own(
    strength: str, ranks: int, mounting: tuple[str, ...], tmp_path: Path
) -> None:
    directory, output = tmp_path / "shared", tmp_path / "told"
    directory.mkdir()
    run_ranks(
        ranks,
        "second_touches",
        directory,
        output,
        "--own",
        inside=mounting,
        extra_environment={"HYPERSLAB_PLACE": strength},
    )
    found = cases(output)
    assert len(found) > 30
    assert [case for case in found if case["wrong"]] == []
    assert sum(int(str(case["refused"])) for case in found) > 0, "a rank read by itself what others had written"


def test_what_is_coherent_is_proved_as_before(mounting: tuple[str, ...], tmp_path: Path) -> None:
    """Without the variable, an empty directory on another rank is an error: the place is taken for one of this host."""
    directory, output = tmp_path / "shared", tmp_path / "told"
    directory.mkdir()
    run_ranks(2, "second_touches", directory, output, "--own", "section-h5", inside=mounting)
    told = str(cases(output)[0]["wrong"])
    assert "is not what rank 0 sees" in told
