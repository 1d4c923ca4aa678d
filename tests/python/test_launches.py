"""Launches leave nothing behind, however they end."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from mpi_launch import environment, mpiexec, session


def of_session(folder: str) -> list[bytes]:
    """Commands of the processes that have this folder among their arguments."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            found.append((process / "cmdline").read_bytes())
    return [command for command in found if folder.encode() in command.split(b"\0")]


@pytest.mark.mpi
def test_a_launch_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    """No processes that left the launcher's group and are stopped, and no files that a later launch stumbles over."""
    with session() as own:
        folder = own.variables["TMPDIR"]
        # The folder is also an argument, by which the ranks can be told from others.
        rank = ["sh", "-c", 'setsid sh -c "kill -STOP \\$\\$" "$1" & : > "$0/$$"; sleep 60', str(tmp_path), folder]
        launcher = subprocess.Popen(
            [mpiexec(), "-n", "2", *rank],
            env=environment(own.variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        until = time.monotonic() + 30.0
        # A rank makes its file before what it left in the background may have begun.
        left = lambda: [one for one in of_session(folder) if one.startswith(b"sh\0-c\0kill -STOP")]  # noqa: E731
        while (len(list(tmp_path.iterdir())) < 2 or len(left()) < 2) and time.monotonic() < until:
            time.sleep(0.02)
        assert len(list(tmp_path.iterdir())) == 2
        os.kill(launcher.pid, signal.SIGKILL)
        launcher.wait(10)
        assert len(of_session(folder)) >= 2
    assert of_session(folder) == []
    assert not Path(folder).exists()
