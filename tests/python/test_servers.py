"""Dedicated servers: what they store, when calls return, errors, and ends."""

from __future__ import annotations

import subprocess
import sys
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


def test_servers_do_not_wait_for_clients_that_forgot_them(tmp_path: Path) -> None:
    def rank(comm: hs.ThreadComm) -> str:
        io = hs.dedicate(comm, 1)
        if not io.is_server:
            hs.open(tmp_path / "a.zarr", "w", comm=io, durable=False)
            return "forgot"
        with pytest.raises(hs.PeerError, match="a client dropped them without close"):
            io.serve()
        return "served"

    assert hs.threads(3, rank) == ["forgot", "forgot", "served"]


def test_a_program_may_end_without_closing(tmp_path: Path) -> None:
    """Where ranks are processes: the servers hear of it when a client's interpreter ends."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            """
import sys, threading, hyperslab as hs
def rank(comm):
    io = hs.dedicate(comm, 1)
    if not io.is_server:
        kept.append(io)
        return
    try:
        io.serve()
    except hs.PeerError as error:
        print("the program ended without close()" in str(error), flush=True)
kept = []
threading.Thread(target=lambda: hs.threads(2, rank), daemon=True).start()
while not kept:
    pass
""",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
