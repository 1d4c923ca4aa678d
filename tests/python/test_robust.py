"""What users do that nobody meant: wrong numbers of ranks, threads, forks, exceptions in the wrong place."""

from __future__ import annotations

import json
import os
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest

SHAPE = (8, 6)


def test_a_distribution_for_more_ranks_than_there_are_is_refused(tmp_path: Path) -> None:
    four = hs.Distribution.block(SHAPE, 4)

    def rank(comm: hs.ThreadComm) -> list[str]:
        texts = []
        with hs.open(tmp_path / "s.zarr", "w", comm=comm) as store:
            two = hs.Distribution.block(SHAPE, 2)
            store.write("good", two.zeros(comm), two)
            for call in (
                lambda: store.write("a", four.zeros(comm), four),
                lambda: store.read("good", four),
                lambda: hs.save_npy(tmp_path / "a.npy", four.zeros(comm), four, comm=comm),
            ):
                with pytest.raises(hs.InvalidError, match=r"over 4 ranks.*communicator has 2") as caught:
                    call()
                texts.append(str(caught.value))
            assert store.arrays() == ["good"]
        return texts

    first, second = hs.threads(2, rank)
    assert first == second
    assert not (tmp_path / "a.npy").exists()


def test_threads_of_a_program_use_stores_of_their_own_at_the_same_time(tmp_path: Path) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(5):
                values = np.full((64, 1024), float(number * 10 + turn))
                with hs.open(tmp_path / f"{number}.zarr", "w", durable=False) as store:
                    store.write("a", values)
                    assert np.array_equal(store.read("a"), values)
        except BaseException as error:  # noqa: BLE001 (told below, on the test's own thread)
            failures.append(error)

    workers = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert not failures
    assert not any(worker.is_alive() for worker in workers)


def test_a_forked_child_reads_what_its_parent_wrote(tmp_path: Path) -> None:
    values = np.arange(12.0).reshape(3, 4)
    with hs.open(tmp_path / "s.zarr", "w") as store:
        store.write("a", values)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with hs.open(tmp_path / "s.zarr", progress_seconds=5) as store:
                status = 0 if np.array_equal(store.read("a"), values) else 2
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_an_exception_inside_a_step_on_one_rank_ends_it_for_all_and_nothing_else(tmp_path: Path) -> None:
    dist = hs.Distribution.block(SHAPE, 3)

    def rank(comm: hs.ThreadComm) -> float:
        with hs.open(tmp_path / "s.zarr", "w", comm=comm, arrival_seconds=20) as store:
            started = time.monotonic()
            expected: Any = ZeroDivisionError if comm.rank == 1 else hs.PeerError
            with pytest.raises(expected), store.step("bad") as step:  # noqa: PT012 (the context is what is tested)
                if comm.rank == 1:
                    raise ZeroDivisionError
                step.write("a", dist.zeros(comm), dist)
            took = time.monotonic() - started
            with store.step("good") as step:
                step.write("a", dist.zeros(comm), dist)
            assert store.groups() == ["good"]
        return took

    assert max(hs.threads(3, rank)) < 10


def test_an_update_that_did_not_end_is_told_of_until_the_array_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "s.zarr"
    with hs.open(path, "w") as store:
        store.write("a", np.zeros(8), chunks=(2,))
    (path / "a" / ".hyperslab-update").write_text("an update of section [0:4] has begun\n")
    with pytest.warns(UserWarning, match=r"did not end.*: a"):
        store = hs.open(path, "r+")
    with store:
        assert store.unfinished == ("a",)
        store.write("a", np.ones(2), section=slice(0, 2))
    with pytest.warns(UserWarning, match="did not end"):
        store = hs.open(path, "r+")
    with store:
        store.write("a", np.ones(8), section=slice(0, 8))
    with hs.open(path) as store:
        assert store.unfinished == ()


#: How each format is opened for updates, and the marker of an update.
FORMATS: dict[str, tuple[Callable[..., Any], str]] = {
    "s.zarr": (hs.open, "s.zarr/a/.hyperslab-update"),
    "s.h5": (hs.open, ".s.h5.hyperslab-update"),
    "s.nc": (hs.open, ".s.nc.hyperslab-update"),
    "s.raw": (partial(hs.open_raw, arrays={"a": ((8,), "f8")}), ".s.raw.hyperslab-update"),
}


@pytest.mark.parametrize("mode", ["w", "x"])
@pytest.mark.parametrize("name", [name for name in FORMATS if name != "s.zarr"])
def test_nothing_is_told_of_an_update_of_a_file_that_was_removed(name: str, mode: Any, tmp_path: Path) -> None:
    """Its marker lies beside it, and stays when somebody removes the file; the next one of this name is whole."""
    path, (open_as, marker) = tmp_path / name, FORMATS[name]
    (tmp_path / marker).write_text(json.dumps({"readers": "torn"}) + "\n")
    make = hs.open_raw if name == "s.raw" else hs.open
    with make(path, mode) as made:
        made.write("a", np.arange(8.0))
    assert [found.name for found in tmp_path.iterdir()] == [name]
    with open_as(path, "r") as reader:
        assert reader.unfinished == ()
        assert reader.read("a").tolist() == list(range(8))


@pytest.mark.parametrize("ranks", [1, 3, 4])
@pytest.mark.parametrize("name", FORMATS)
def test_refresh_forgets_an_update_that_another_program_has_ended(name: str, ranks: int, tmp_path: Path) -> None:
    """And keeps one that has not ended, also while another program is at it."""
    path = tmp_path / name
    open_as, marker = FORMATS[name]
    make = hs.open_raw if name == "s.raw" else hs.open
    with make(path, "w") as made:
        made.write("a", np.zeros(8))
    torn = json.dumps({"readers": "torn", "touched": '{"a": [[0, 1, 8, 1]]}'}) + "\n"
    (tmp_path / marker).write_text(torn)
    known = ("a",) if name == "s.zarr" else (name,)

    def rank(comm: hs.ThreadComm) -> None:
        with open_as(path, "r", comm=comm) as reader:
            assert reader.unfinished == known
            reader.refresh()
            assert reader.unfinished == known
            comm.barrier()
            if comm.rank == 0:
                with open_as(path, "r+", comm=None) as writer:
                    assert writer.unfinished == known
                    writer.write("a", np.ones(8), section=slice(0, 8))
                    assert writer.unfinished == ()
            comm.barrier()
            assert reader.unfinished == known
            reader.refresh()
            assert reader.unfinished == ()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hs.threads(ranks, rank)
    assert not (tmp_path / marker).exists()


def test_a_forced_strategy_lasts_one_call(tmp_path: Path) -> None:
    with hs.open(tmp_path / "s.zarr", "w", strategy="root-gather") as store:
        assert store.write("a", np.zeros(8)).strategy == "root-gather"
        assert store.write("b", np.zeros(8), strategy="independent").strategy == "independent"
        assert store.write("c", np.zeros(8)).strategy == "root-gather"


def test_files_are_not_held_open_after_they_are_closed(tmp_path: Path) -> None:
    path = tmp_path / "a.raw"
    with hs.open_raw(path, "w") as file:
        file.write({"a": np.zeros(1000)})
    # The store's thread closes them a moment later.
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        held = [str(fd.readlink()) for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()]
        if not any(name.startswith(str(tmp_path)) for name in held):
            return
        time.sleep(0.05)
    raise AssertionError(held)
