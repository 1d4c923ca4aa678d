"""Calls that end something are compared like all others, and a rank that ends tells the others."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest

from mpi_launch import printed, run_ranks, running
from mpi_programs.endings import FIRST_SECONDS, ODD

RANKS = 3
#: What may pass between the end of a rank and the error of the others, on a machine that has other things to do [s].
SLACK_SECONDS = 8.0
ROWS = hs.Distribution.block((6, 4), RANKS)


def on_ranks(path: Path, act: Callable[[hs.Group, hs.ThreadComm], None]) -> list[str]:
    """The error of each rank."""

    def one(comm: hs.ThreadComm) -> str:
        with hs.open(path, "w", comm=comm, arrival_seconds=20) as store:
            with pytest.raises(hs.DisagreementError) as caught:
                act(store, comm)
            return str(caught.value)

    return hs.threads(RANKS, one)


def mine(comm: hs.ThreadComm) -> Any:
    return np.full(ROWS.local_shape(comm), float(comm.rank))


def test_a_flush_is_not_the_publishing_of_a_step(tmp_path: Path) -> None:
    def act(store: hs.Group, comm: hs.ThreadComm) -> None:
        step = store.step("s")
        step.write("a", mine(comm), ROWS)
        if comm.rank == ODD:
            store.flush()
        else:
            step.close()

    texts = on_ranks(tmp_path / "a.zarr", act)
    assert len(set(texts)) == 1
    assert "operation is publish on rank 0, but flush on rank 1" in texts[0]
    with hs.open(tmp_path / "a.zarr") as store:
        assert store.groups() == []


def test_closing_one_file_is_not_closing_another(tmp_path: Path) -> None:
    def one(comm: hs.ThreadComm) -> str:
        files = [hs.open_raw(tmp_path / name, "w", comm=comm, arrival_seconds=20) for name in ("a.raw", "b.raw")]
        for file in files:
            file.write({"a": mine(comm)}, ROWS)
        with pytest.raises(hs.DisagreementError) as caught:
            files[comm.rank == ODD].close()
        return str(caught.value)

    texts = hs.threads(RANKS, one)
    assert len(set(texts)) == 1
    assert "a.raw' on rank 0" in texts[0]
    assert not (tmp_path / "a.raw").exists()
    assert not (tmp_path / "b.raw").exists()


def test_all_ranks_have_a_hook_or_none(tmp_path: Path) -> None:
    calls: list[int] = []

    def act(store: hs.Group, comm: hs.ThreadComm) -> None:
        hook = (lambda: calls.append(comm.rank)) if comm.rank == ODD else None
        with store.step("s", before_publish=hook) as step:
            step.write("a", mine(comm), ROWS)

    texts = on_ranks(tmp_path / "a.zarr", act)
    assert "before_publish is not given on rank 0, but a function on rank 1" in texts[0]
    assert calls == []


def test_ctrl_c_in_a_step_ends_it_on_all_ranks(tmp_path: Path) -> None:
    def one(comm: hs.ThreadComm) -> float:
        with hs.open(tmp_path / "a.zarr", "w", comm=comm, arrival_seconds=60) as store:
            began = time.monotonic()
            expected: Any = KeyboardInterrupt if comm.rank == ODD else hs.PeerError
            with pytest.raises(expected), store.step("s") as step:  # noqa: PT012 (the context is what is tested)
                if comm.rank == ODD:
                    raise KeyboardInterrupt
                step.write("a", mine(comm), ROWS)
            took = time.monotonic() - began
            # A caught one is no end.
            store.write("b", mine(comm), ROWS)
            assert (store.arrays(), store.groups()) == (["b"], [])
        return took

    assert max(hs.threads(RANKS, one)) < SLACK_SECONDS


def test_a_thread_that_raises_outside_of_a_call_ends_the_call_of_the_others(tmp_path: Path) -> None:
    seen: dict[int, tuple[str, float]] = {}

    def one(comm: hs.ThreadComm) -> None:
        store = hs.open(tmp_path / "a.zarr", "w", comm=comm, arrival_seconds=60)
        if comm.rank == ODD:
            # Until the others have returned from opening, too: whoever is still in it fails there.
            time.sleep(0.2)
            message = "the physics went wrong"
            raise ZeroDivisionError(message)
        began = time.monotonic()
        with pytest.raises(hs.PeerError, match="the physics went wrong") as caught:
            store.write("a", mine(comm), ROWS)
        seen[comm.rank] = (str(caught.value), time.monotonic() - began)

    with pytest.raises(ZeroDivisionError):
        hs.threads(RANKS, one)
    assert seen.keys() == {0, 2}
    assert all(seconds < SLACK_SECONDS for _, seconds in seen.values())


#: A rank whose end is known keeps nobody waiting for longer than this [s].
AT_ONCE_SECONDS = 2.0


def waiting(path: Path, wait: str) -> Callable[[hs.ThreadComm], None]:
    """What ranks do while one has ended."""

    def one(comm: hs.ThreadComm) -> None:
        if wait == "barrier":
            comm.barrier()
        elif wait == "opening":
            hs.open(path, "w", comm=comm)
        elif wait == "service":
            with hs.dedicate(comm, 1) as io:
                if io.is_server:
                    io.serve()
        else:
            request = hs.open(path, "w", comm=comm).iwrite("a", mine(comm), ROWS)
            request.wait()

    return one


@pytest.mark.parametrize("ranks", [2, 3, 4, 9])
@pytest.mark.parametrize("wait", ["barrier", "opening", "request", "service"])
@pytest.mark.parametrize("how", ["returns", "raises", "raises what all have"])
def test_a_thread_rank_that_ends_keeps_nobody_waiting(how: str, wait: str, ranks: int, tmp_path: Path) -> None:
    """Others hear of its end at once, with an error that names it, whatever they wait for."""
    errors: dict[int, BaseException] = {}
    last = ranks - 1
    act = waiting(tmp_path / "a.zarr", wait)

    def one(comm: hs.ThreadComm) -> None:
        if comm.rank == last:
            if how == "raises":
                message = "the physics went wrong"
                raise ZeroDivisionError(message)
            if how != "returns":
                known = hs.NotFoundError("of all")
                known._collective = True  # type: ignore[attr-defined]
                raise known
            return
        try:
            act(comm)
        except BaseException as error:
            errors[comm.rank] = error
            raise

    began = time.monotonic()
    with pytest.raises((hs.PeerError, ZeroDivisionError, hs.NotFoundError)):
        hs.threads(ranks, one)
    assert time.monotonic() - began < AT_ONCE_SECONDS
    assert errors.keys() == set(range(last))
    assert all(f"rank {last} ended its program" in str(error) for error in errors.values()), errors


def test_a_thread_rank_that_raises_with_a_request_under_way_ends_the_calls_of_the_others(tmp_path: Path) -> None:
    def one(comm: hs.ThreadComm) -> None:
        with hs.open(tmp_path / "a.zarr", "w", comm=comm) as store:
            dist = hs.Distribution.block((3_000_000,), comm.size)
            requests = [store.iwrite(name, dist.zeros(comm) + 1, dist) for name in "ab"]
            if comm.rank == ODD:
                message = "the physics went wrong"
                raise ZeroDivisionError(message)
            hs.wait_all(requests)
            store.flush()

    began = time.monotonic()
    with pytest.raises((hs.PeerError, ZeroDivisionError), match="the physics went wrong"):
        hs.threads(RANKS, one)
    assert time.monotonic() - began < SLACK_SECONDS


def test_ranks_that_end_one_after_another_disturb_nobody(tmp_path: Path) -> None:
    """Who has the end of his last call is gone, while others still come out of it."""

    def one(comm: hs.ThreadComm) -> int:
        with hs.open(tmp_path / "a.zarr", "a", comm=comm, durable=False) as store:
            store.write("a", mine(comm), ROWS, overwrite=True)
        return comm.rank

    for _ in range(100):
        assert hs.threads(RANKS, one) == [0, 1, 2]


@pytest.mark.mpi
@pytest.mark.alone
@pytest.mark.parametrize(
    ("scenario", "kind", "words"),
    [
        ("raises", "PeerError", "the physics went wrong"),
        ("exits", "PeerError", f"rank {ODD} ended its program"),
        ("caught", "none", ""),
        ("finalized", "PoisonedError PeerError", "finalised"),
        ("first", "TimeoutError", "not all ranks have come"),
    ],
)
def test_a_process_that_ends(scenario: str, kind: str, words: str, tmp_path: Path) -> None:
    """Soon, and not after the half minute that others would wait for it."""
    survivors = [rank for rank in range(RANKS) if rank != ODD or scenario in ("caught", "finalized")]
    files = {rank: tmp_path / f"rank{rank}.json" for rank in survivors}
    until = time.monotonic() + 40
    with running(RANKS, "endings", scenario, tmp_path, deaths_are_hidden=True) as (_, output):
        while not all(file.exists() for file in files.values()) and time.monotonic() < until:
            time.sleep(0.05)
        assert all(file.exists() for file in files.values()), printed(output)
    for rank, file in files.items():
        found = json.loads(file.read_text())
        assert found["kind"] in kind.split(), (rank, found)
        assert found["seconds"] < FIRST_SECONDS + SLACK_SECONDS, (rank, found)
        assert words in found["text"], (rank, found)


@pytest.mark.mpi
@pytest.mark.parametrize("scenario", ["left", "elsewhere"])
def test_freeing_a_communicator_waits_for_no_rank_that_does_not_come(scenario: str, tmp_path: Path) -> None:
    told = run_ranks(RANKS, "freed", scenario, tmp_path)
    assert "no rank waited" in told
    assert "Traceback" not in told or scenario == "elsewhere", told


def in_a_step(file: hs.Group, comm: hs.ThreadComm) -> None:
    with file.step("0001") as step:
        step.write("b", mine(comm), ROWS)
        if comm.rank == ODD:
            raise ValueError("the physics went wrong")


def in_a_batch(file: hs.Group, comm: hs.ThreadComm) -> None:
    with file.batch() as batch:
        batch.write("b", mine(comm), ROWS)
        if comm.rank == ODD:
            raise ValueError("the physics went wrong")


@pytest.mark.parametrize("name", ["a.zarr", "a.h5"])
@pytest.mark.parametrize("act", [in_a_step, in_a_batch])
def test_what_was_given_up_on_all_ranks_is_not_given_up_once_more(
    act: Callable[[hs.Group, hs.ThreadComm], None], name: str, tmp_path: Path
) -> None:
    """The others have left the file around it, too; all ranks then go on together."""

    def one(comm: hs.ThreadComm) -> str:
        try:
            with hs.open(tmp_path / name, "w", comm=comm, arrival_seconds=30) as file:
                file.write("a", mine(comm), ROWS)
                act(file, comm)
        except (ValueError, hs.Error) as error:
            kind = type(error).__name__
        with hs.open(tmp_path / "next.h5", "w", comm=comm, arrival_seconds=30) as file:
            file.write("a", mine(comm), ROWS)
        return kind

    began = time.monotonic()
    kinds = hs.threads(RANKS, one)
    assert kinds.pop(ODD) == "ValueError"
    assert kinds == ["InvalidError" if act is in_a_batch else "PeerError"] * (RANKS - 1)
    assert time.monotonic() - began < SLACK_SECONDS
