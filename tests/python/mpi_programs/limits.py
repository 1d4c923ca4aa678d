"""Ranks that come late, die, or are interrupted; each other rank writes down which error it got, and when.

Usage: limits SCENARIO DIRECTORY

A rank that is left alone by a dead one cannot finalize MPI, so all leave without.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np

from fault_library import Fault, Faults
from mpi_programs.leaving import leave
from telling import tell

#: The rank that misbehaves, unless it is rank 0's turn.
ODD = 1
SHAPE = (64, 64)
ARRIVAL_SECONDS = 1.5
PROGRESS_SECONDS = 2.0
#: How long clients of servers wait for a client that may have died between two calls.
CLIENT_SECONDS = 6.0
Noted = dict[str, Any]


def noted(call: Callable[[], Any]) -> Noted:
    """Kind and text of the error that a call ends with, and how long it took [s]."""
    started = time.monotonic()
    kind, text = "none", "the call succeeded"
    try:
        call()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (any error is the result)
        kind, text = type(error).__name__, str(error)
    return {"kind": kind, "text": text, "seconds": time.monotonic() - started}


def open_store(comm: Any, directory: Path, mode: Any = "w") -> hs.Group:
    """Open a store with short limits."""
    return hs.open(
        directory / "a.zarr",
        mode,
        comm=comm,
        durable=False,
        arrival_seconds=ARRIVAL_SECONDS,
        progress_seconds=PROGRESS_SECONDS,
    )


def write(store: hs.Group, comm: Any, name: str) -> None:
    """Write an array of the rank numbers."""
    dist = hs.Distribution(SHAPE, (comm.size,), ("cyclic", "*"))
    store.write(name, np.full(dist.local_shape(comm), float(comm.rank)), dist, chunks=(8, 8))


def late(comm: Any, directory: Path) -> list[Noted]:
    """One rank does something else for longer than the others wait; then it calls, too. Nobody can go on."""
    store = open_store(comm, directory)
    write(store, comm, "before")
    if comm.rank == ODD:
        time.sleep(ARRIVAL_SECONDS + 1.5)
    return [noted(lambda: write(store, comm, "a")), noted(lambda: write(store, comm, "b"))]


def just_in_time(comm: Any, directory: Path) -> list[Noted]:
    """One rank comes after the limit of progress but before that of arrival: that is allowed."""
    with hs.open(
        directory / "a.zarr", "w", comm=comm, durable=False, arrival_seconds=30.0, progress_seconds=0.5
    ) as store:
        if comm.rank == ODD:
            time.sleep(1.5)
        return [noted(lambda: write(store, comm, "a"))]


def death(comm: Any, directory: Path, victim: int) -> list[Noted]:
    """One rank is killed while all write one array after another."""
    store = open_store(comm, directory)
    write(store, comm, "before")

    def many() -> None:
        for number in range(100_000):
            write(store, comm, f"a{number}")

    if comm.rank == victim:
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
    return [noted(many), noted(lambda: write(store, comm, "b"))]


def death_of_a_rank(comm: Any, directory: Path) -> list[Noted]:
    """A rank that is not rank 0 is killed."""
    return death(comm, directory, ODD)


def death_of_rank_0(comm: Any, directory: Path) -> list[Noted]:
    """The rank that publishes is killed."""
    return death(comm, directory, 0)


def death_of_rank_0_in_storage(comm: Any, directory: Path) -> list[Noted]:
    """Rank 0 is killed where it publishes, when the others know that it works in storage."""
    store = open_store(comm, directory)
    write(store, comm, "before")
    if comm.rank == 0:
        faults = Faults()
        faults.watch(directory)
        faults.arm(Fault("exchange", 1, "kill"))
    return [noted(lambda: write(store, comm, "a")), noted(lambda: write(store, comm, "b"))]


def interrupt(comm: Any, directory: Path) -> list[Noted]:
    """Rank 2 gets Ctrl-C while it waits for rank 1, which is busy; rank 1 comes later."""
    store = hs.open(directory / "a.zarr", "w", comm=comm, durable=False)
    if comm.rank == 2:
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    if comm.rank == ODD:
        time.sleep(1.5)
    return [noted(lambda: write(store, comm, "a"))]


def serving(comm: Any, directory: Path, victim: int, arrival_seconds: float) -> list[Noted]:
    """One rank of a communicator with two dedicated servers, the ranks 1 and 3, is killed while clients write."""

    def killed_soon() -> None:
        if comm.rank == victim:
            threading.Timer(0.7, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()

    io = hs.dedicate(comm, 2)
    if io.is_server:
        killed_soon()
        return [noted(io.serve)]
    limits: dict[str, Any] = {"arrival_seconds": arrival_seconds, "progress_seconds": PROGRESS_SECONDS}
    store = hs.open(directory / "a.zarr", "w", comm=io, durable=False, **limits)
    write(store, io, "before")
    killed_soon()

    def many() -> None:
        for number in range(100_000):
            write(store, io, f"a{number}")

    return [noted(many), noted(lambda: write(store, io, "b"))]


def death_of_a_server(comm: Any, directory: Path) -> list[Noted]:
    """A server is killed."""
    return serving(comm, directory, 3, 600.0)


def death_of_a_client(comm: Any, directory: Path) -> list[Noted]:
    """The client is killed that publishes, and that alone tells servers what to do."""
    return serving(comm, directory, 0, CLIENT_SECONDS)


SCENARIOS = {
    each.__name__: each
    for each in (
        late,
        just_in_time,
        death_of_a_rank,
        death_of_rank_0,
        death_of_rank_0_in_storage,
        death_of_a_server,
        death_of_a_client,
        interrupt,
    )
}


def main() -> None:
    """Run under MPI."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    scenario, directory = SCENARIOS[sys.argv[1]], Path(sys.argv[2])
    noted_here: list[Noted] = []
    try:
        noted_here = scenario(comm, directory)
    finally:
        tell(directory / f"rank{comm.rank}.json", noted_here)
    leave()


if __name__ == "__main__":
    main()
