"""Ranks that come late, die, or are interrupted: the others get an error that names them, soon, and never hang."""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest
import zarr

from fault_library import compiled
from mpi_launch import printed, running
from mpi_programs.limits import (
    ARRIVAL_SECONDS,
    CLIENT_SECONDS,
    ODD,
    PROGRESS_SECONDS,
    just_in_time,
    late,
    noted,
    open_store,
)

pytestmark = pytest.mark.alone

RANKS = 4
#: Those that only serve, where some do.
SERVERS = (1, 3)
#: What may pass between a limit and the error, on a machine that has other things to do, too [s].
SLACK_SECONDS = 8.0


def run(
    scenario: str, directory: Path, survivors: list[int], variables: dict[str, str] | None = None
) -> dict[int, list[dict[str, Any]]]:
    """What each surviving rank has noted."""
    files = {rank: directory / f"rank{rank}.json" for rank in survivors}
    until = time.monotonic() + 30.0 + ARRIVAL_SECONDS + PROGRESS_SECONDS
    options: dict[str, Any] = {"extra_environment": variables, "deaths_are_hidden": True}
    with running(RANKS, "limits", scenario, directory, **options) as (_, output):
        while not all(file.exists() for file in files.values()) and time.monotonic() < until:
            time.sleep(0.05)
        missing = [rank for rank, file in files.items() if not file.exists()]
        assert missing == [], f"ranks {missing} noted nothing; printed was:\n{printed(output)}"
    return {rank: json.loads(file.read_text()) for rank, file in files.items()}


def check_all_gave_up(noted: dict[int, list[dict[str, Any]]], culprit: int, limit: float) -> None:
    """All ranks had an error of one kind that names the culprit; afterwards the handle says why it is no use."""
    for rank, (first, second) in noted.items():
        assert first["kind"] == "TimeoutError", (rank, first)
        assert f"rank {culprit}" in first["text"]
        assert first["seconds"] < limit + SLACK_SECONDS, (rank, first)
        assert second["kind"] == "PoisonedError", (rank, second)
        assert second["seconds"] < 0.5
        assert "an earlier call failed" in second["text"]
        assert "hint:" in second["text"]


def run_until_mpi_survives(
    scenario: str, parent: Path, survivors: list[int], servers: tuple[int, ...] = ()
) -> tuple[dict[int, list[dict[str, Any]]], Path]:
    """As `run`, in a directory that it returns, too; again when the death hit MPI itself in the middle of a copy.

    MPI then fails on the rank that was copying, and nothing can be sent from there any more: each rank still gets an
    error, in time, but not all the same one. Which of the two happens is chance.
    """
    for attempt in range(4):
        directory = parent / str(attempt)
        directory.mkdir()
        noted = run(scenario, directory, survivors)
        broken = [rank for rank, (first, *_) in noted.items() if first["kind"] == "PeerError"]
        for rank in broken:
            assert "the link to the other ranks broke" in noted[rank][0]["text"], noted[rank]
        if not broken:
            return noted, directory
        for rank, (first, *later) in noted.items():
            assert first["kind"] in ("PeerError", "TimeoutError"), first
            assert first["seconds"] < ARRIVAL_SECONDS + PROGRESS_SECONDS + SLACK_SECONDS, first
            # Servers make no call of their own afterwards.
            kinds = [] if rank in servers else ["PoisonedError"]
            assert [second["kind"] for second in later] == kinds, (rank, later)
    pytest.fail("MPI itself broke four times in a row")


def texts(noted: dict[int, list[dict[str, Any]]]) -> set[str]:
    return {first["text"] for first, *_ in noted.values()}


@pytest.mark.mpi
def test_a_rank_that_comes_too_late(tmp_path: Path) -> None:
    noted = run("late", tmp_path, [0, 1, 2, 3])
    check_all_gave_up(noted, 1, ARRIVAL_SECONDS)
    assert len(texts(noted)) == 1
    assert "did not arrive" in texts(noted).pop()


def test_a_thread_that_comes_too_late(tmp_path: Path) -> None:
    noted = dict(enumerate(hs.threads(RANKS, lambda comm: late(comm, tmp_path))))
    check_all_gave_up(noted, 1, ARRIVAL_SECONDS)
    assert len(texts(noted)) == 1


def test_a_request_that_reached_a_limit_is_what_the_next_call_tells(tmp_path: Path) -> None:
    """All ranks get the same kind of error, whether they wait for the request or not."""

    def program(comm: hs.ThreadComm) -> list[dict[str, Any]]:
        store = open_store(comm, tmp_path)
        dist = hs.Distribution((64, 64), (comm.size, 1))
        if comm.rank == ODD:
            time.sleep(ARRIVAL_SECONDS + 1.5)
        request = store.iwrite("a", np.zeros(dist.local_shape(comm)), dist)
        return [noted(request.wait if comm.rank == 0 else store.flush), noted(store.flush)]

    every = hs.threads(RANKS, program)
    assert {first["kind"] for first, _ in every} == {"TimeoutError"}, every
    assert {second["kind"] for _, second in every} == {"PoisonedError"}, every


def test_a_rank_may_come_later_than_the_limit_on_progress(tmp_path: Path) -> None:
    assert {first["kind"] for (first,) in hs.threads(3, lambda comm: just_in_time(comm, tmp_path))} == {"none"}


@pytest.mark.mpi
def test_the_death_of_a_rank(tmp_path: Path) -> None:
    """Rank 0 finds out who is missing, so that all have one text; all that was published is whole."""
    noted, directory = run_until_mpi_survives("death_of_a_rank", tmp_path, [0, 2, 3])
    check_all_gave_up(noted, 1, ARRIVAL_SECONDS + PROGRESS_SECONDS)
    assert len(texts(noted)) == 1
    check_store(directory)


@pytest.mark.mpi
def test_the_death_of_rank_0(tmp_path: Path) -> None:
    """Nobody is left to decide on one text, but each says that it was rank 0."""
    noted, directory = run_until_mpi_survives("death_of_rank_0", tmp_path, [1, 2, 3])
    check_all_gave_up(noted, 0, ARRIVAL_SECONDS + PROGRESS_SECONDS)
    check_store(directory)


@pytest.mark.mpi
def test_the_death_of_rank_0_in_storage(tmp_path: Path) -> None:
    """Nobody waits for the storage of a process that has ended."""
    with compiled() as variables:
        noted = run("death_of_rank_0_in_storage", tmp_path, [1, 2, 3], variables)
    check_all_gave_up(noted, 0, PROGRESS_SECONDS)
    assert len(texts(noted)) == 1
    assert "while it worked in storage" in texts(noted).pop()


@pytest.mark.mpi
def test_the_death_of_a_server(tmp_path: Path) -> None:
    """Clients hear of it within the limit on progress, though they would wait for each other for much longer."""
    noted, directory = run_until_mpi_survives("death_of_a_server", tmp_path, [0, 1, 2], SERVERS)
    for rank in (0, 2):
        first, second = noted[rank]
        assert "server 1 (rank 3 of the communicator)" in first["text"], first
        assert first["kind"] in ("TimeoutError", "PoisonedError"), first
        assert first["seconds"] < PROGRESS_SECONDS + SLACK_SECONDS, first
        assert second["kind"] == "PoisonedError", second
    assert "server 1 (rank 3 of the communicator)" in noted[1][0]["text"], "the other server stops, too"
    check_store(directory, 2)


@pytest.mark.mpi
def test_the_death_of_the_client_that_publishes(tmp_path: Path) -> None:
    """Servers wait without a limit, but not for clients that are gone."""
    noted, directory = run_until_mpi_survives("death_of_a_client", tmp_path, [1, 2, 3], SERVERS)
    for first, *_ in noted.values():
        assert first["kind"] in ("TimeoutError", "PoisonedError", "PeerError"), first
        assert "rank 0" in first["text"]
        assert first["seconds"] < CLIENT_SECONDS + PROGRESS_SECONDS + SLACK_SECONDS, first
    check_store(directory, 2)


def check_store(directory: Path, ranks: int = RANKS) -> None:
    """Each array that a reader sees is whole, and the store can be written again."""
    root = zarr.open_group(directory / "a.zarr", mode="r")
    names = list(root.array_keys())
    assert "before" in names
    for name in names:
        values = root[name][...]
        assert all((values[row] == row % ranks).all() for row in range(len(values))), name
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "'.*': removed what an earlier run left unfinished")
        store = hs.open(directory / "a.zarr", "r+")
    with store:
        assert sorted(names) == store.arrays()
        store.write("after", values)


@pytest.mark.mpi
def test_control_c_on_one_rank_ends_the_call_on_all(tmp_path: Path) -> None:
    noted = run("interrupt", tmp_path, [0, 1, 2, 3])
    kinds = {rank: first["kind"] for rank, (first,) in noted.items()}
    assert kinds == {0: "InterruptedError", 1: "InterruptedError", 2: "KeyboardInterrupt", 3: "InterruptedError"}
    for (first,) in noted.values():
        # What the handler raised has its own words, and ours as a note.
        assert first["kind"] == "KeyboardInterrupt" or "interrupted by a signal on rank 2" in first["text"]
        assert first["seconds"] < 0.5 + SLACK_SECONDS / 2
