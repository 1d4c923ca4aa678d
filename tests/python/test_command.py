"""The command: what it lists, explains and measures, for people and as JSON."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import termios
import threading
from contextlib import suppress
from pathlib import Path

import hyperslab as hs
import numpy as np
import pytest

from mpi_launch import environment, mpiexec


def run(*arguments: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hyperslab", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment({}))
    assert done.returncode == status, done.stderr
    return done


def test_inspect_lists_arrays_and_steps(tmp_path: Path) -> None:
    path = tmp_path / "s.zarr"
    with hs.open(path, "w") as store:
        store.write("rho", np.zeros((4, 6), "f4"), chunks=(2, 6))
        with store.step("0001") as step:
            step.write("u", np.zeros(3))
    assert run("inspect", path).stdout == "rho: float32 (4, 6), chunks (2, 6)\n0001/\n"
    told = json.loads(run("inspect", path, "--json").stdout)
    assert told["arrays"] == {"rho": {"shape": [4, 6], "dtype": "float32", "chunks": [2, 6]}}
    assert told["groups"] == ["0001"]


def test_an_error_goes_to_stderr_with_its_hint(tmp_path: Path) -> None:
    done = run("inspect", tmp_path / "none.zarr", status=1)
    assert done.stdout == ""
    assert "does not exist" in done.stderr
    assert "hint:" in done.stderr


def test_explain_tells_who_moves_what() -> None:
    shape = ("explain", "--shape", "64,64", "--mesh", "2,2", "--chunks", "48,48")
    lines = run(*shape).stdout.splitlines()
    assert lines[0] == "chunks [48, 48]"
    assert "server-directed" in lines[3]
    assert len(lines) == 9
    assert json.loads(run(*shape, "--json").stdout)["explain"] == lines
    assert "independent" in run(*shape[:-2]).stdout
    refused = run(*shape, "--strategy", "independent", status=1)
    assert "cannot share a chunk" in refused.stderr


@pytest.mark.mpi
def test_the_benchmark_runs_and_checks_itself(tmp_path: Path) -> None:
    mpiexec()
    small = ("--size", "2MiB", "--ranks", 2, "--repetitions", 1, "--directory", tmp_path)
    told = json.loads(run("bench", "entire", *small, "--json").stdout)
    assert told
    assert not list(tmp_path.iterdir())


def test_a_long_transfer_shows_a_bar_on_a_terminal(tmp_path: Path) -> None:
    program = (
        "import sys, numpy as np, hyperslab as hs, hyperslab._calls as calls\n"
        "calls.BAR_SECONDS = 0.0\n"
        "with hs.open(sys.argv[1], 'w', subchunk_bytes=1 << 20) as store:\n"
        "    store.write('a', np.ones((96, 1 << 19)), chunks=(1, 1 << 19))\n"
    )
    terminal, inner = pty.openpty()
    termios.tcsetwinsize(inner, (24, 80))
    shown = bytearray()

    def watch() -> None:
        # Reading from a terminal that nobody has open any more is an error, and the end.
        with suppress(OSError):
            while part := os.read(terminal, 4096):
                shown.extend(part)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    child = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "s.zarr")], stderr=inner, stdout=inner)
    os.close(inner)
    assert child.wait(100) == 0
    watcher.join(10)
    assert b"write of 'a'" in shown, bytes(shown)
    assert b"%" in shown
