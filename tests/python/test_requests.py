"""Calls that do not block: order, overlap with computation, copies, errors, and the end of the program."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import hyperslab as hs
import numpy as np
import pytest

from batch_cases import CASES as BATCH_CASES
from local_cases import LOCAL_CASES
from mpi_launch import run_ranks
from request_cases import CASES


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("name", CASES | BATCH_CASES)
def test_threads(name: str, ranks: int, tmp_path: Path) -> None:
    hs.threads(ranks, lambda comm: (CASES | BATCH_CASES)[name](comm, tmp_path))


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("name", LOCAL_CASES)
def test_threads_with_local_calls(name: str, ranks: int, tmp_path: Path) -> None:
    hs.threads(ranks, lambda comm: LOCAL_CASES[name](comm, tmp_path))


@pytest.mark.mpi
@pytest.mark.parametrize(("ranks", "level"), [(4, "multiple"), (3, "serialized"), (2, "funneled")])
def test_mpi(ranks: int, level: str, tmp_path: Path) -> None:
    assert f"all requests on {ranks} ranks" in run_ranks(ranks, "requests", level, tmp_path)


def test_a_rank_of_threads_ends_with_its_requests(tmp_path: Path) -> None:
    def rank(comm: hs.ThreadComm) -> None:
        store = hs.open(tmp_path / "a.zarr", "w", comm=comm, durable=False)
        dist = hs.Distribution.block((64,), comm.size)
        store.iwrite("a", np.ones(dist.local_shape(comm)), dist)
        store.iwrite("a", np.ones(dist.local_shape(comm)), dist)

    with pytest.raises(hs.ExistsError, match="'a' exists already"):
        hs.threads(2, rank)
    with hs.open(tmp_path / "a.zarr") as store:
        assert store.read("a").sum() == 64.0


def program(text: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", f"import sys, numpy as np, hyperslab as hs\n{text}", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_program_may_end_with_a_request(tmp_path: Path) -> None:
    """What moves is waited for, and a failure that nobody waited for is told."""
    done = program(
        """
store = hs.open(sys.argv[1], "w", durable=False)
requests = [store.iwrite("a", np.ones(4_000_000)), store.iwrite("a", np.ones(2))]
""",
        tmp_path / "a.zarr",
    )
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("a request that was not waited for failed: ") == 1, done.stderr
    assert done.stderr.count("'a' exists already") == 1, done.stderr
    with hs.open(tmp_path / "a.zarr") as store:
        assert store.read("a").sum() == 4_000_000


def test_a_program_may_end_without_the_other_ranks(tmp_path: Path) -> None:
    """A request that cannot move, since another rank never comes, is given up."""
    done = program(
        """
import hyperslab.requests, hyperslab._core, threading
hyperslab.requests.EXIT_SECONDS = 0.3
comms = [hs.ThreadComm(core, threading.Barrier(2)) for core in hyperslab._core.Comm.threads(2)]
worker = threading.Thread(target=lambda: hs.open(sys.argv[1], "w", comm=comms[1]))
worker.start()
store = hs.open(sys.argv[1], "w", comm=comms[0])
worker.join()
dist = hs.Distribution.block((8,), 2)
request = store.iwrite("a", np.ones(4), dist)
print(request.test(), flush=True)
""",
        tmp_path / "a.zarr",
    )
    assert (done.returncode, done.stdout) == (1, "False\n"), done.stderr
    assert "1 request(s) were given up" in done.stderr


def test_ctrl_c_ends_a_wait(tmp_path: Path) -> None:
    """While another rank does not come; the request is over then, and so is what stands behind it."""
    done = program(
        f"""
import hyperslab._core, os, signal, threading
comms = [hs.ThreadComm(core, threading.Barrier(2)) for core in hyperslab._core.Comm.threads(2)]
worker = threading.Thread(target=lambda: hs.open(sys.argv[1], "w", comm=comms[1]))
worker.start()
store = hs.open(sys.argv[1], "w", comm=comms[0])
worker.join()
dist = hs.Distribution.block((8,), 2)
requests = [store.iwrite(name, np.ones(4), dist) for name in "ab"]
threading.Timer(0.3, lambda: os.kill(os.getpid(), {int(signal.SIGINT)})).start()
try:
    requests[1].wait()
except KeyboardInterrupt as error:
    print("stopped", requests[0].test())
try:
    requests[0].wait()
except hs.Error as error:
    print(type(error).__name__)
""",
        tmp_path / "a.zarr",
    )
    assert (done.returncode, done.stdout) == (0, "stopped True\nInterruptedError\n"), done.stderr
