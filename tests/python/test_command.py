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


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (("explain", "--shape", "2,a", "--mesh", "1"), 2, "'2,a' is not a list of numbers such as 128,128,64"),
        (("explain", "--shape", "8", "--mesh", "1", "--section", "0:a"), 2, "'0:a' is not low:high or low:high:step"),
        (("plan", "--machine", "here", "--scale", "messages.send"), 2, "is not key=factor, such as messages.send=1.2"),
        (("plan", "--machine", "here", "--clients", "-1"), 1, "-1 clients: at least one is needed"),
        (("plan", "--machine", "here", "--clients", "2"), 1, "hint: or name a --benchmark\n"),
        (("simulate", "--machine", "here", "--clients", "2"), 1, "hint: or name a --benchmark, or --stages\n"),
    ],
)
def test_what_cannot_be_read_is_told(arguments: tuple[str, ...], status: int, told: str) -> None:
    assert told in run(*arguments, status=status).stderr


def test_explain_tells_who_moves_what() -> None:
    shape = ("explain", "--shape", "64,64", "--mesh", "2,2", "--chunks", "48,48", "--cores", 2)
    lines = run(*shape).stdout.splitlines()
    assert "write 1 array, 32768 B in storage, 4 ranks" in lines
    why = next(line for line in lines if line.startswith("  why: "))
    assert "predicted, bound by the" in why
    assert "independent is out, since two ranks hold parts of one chunk of array 'array' (at index 32 of" in why
    assert any(line.startswith("  independent: not possible: two ranks hold parts of one chunk") for line in lines)
    told = json.loads(run(*shape, "--json").stdout)
    assert told["strategy"] != "independent"
    assert sum(row["elements"] for table in told["rounds"] for row in table["ranks"]) == 64 * 64
    prices = [one["predicted"] for one in told["candidates"]]
    seconds = [price["seconds"] + price["later_seconds"] for price in prices]
    assert seconds == sorted(seconds)
    assert "advice" in told
    assert told["predicted"]["seconds"] == pytest.approx(sum(told["predicted"]["phases"].values()))
    assert "strategy independent" in run(*shape[:5], "--chunks", "32,32").stdout
    assert "chunks of 'array' are [64, 64], since [32, 32] would take " in run(*shape[:5]).stdout
    refused = run(*shape, "--strategy", "independent", status=1)
    assert "cannot share a chunk" in refused.stderr
    shared = ("explain", "--shape", "64,64", "--mesh", "2,2", "--layout", "raw", "--strategy", "two-phase")
    told = json.loads(run(*shared, "--exchange", "sharers", "--json").stdout)
    assert told["parameters"]["exchange"] == "sharers"
    unknown = run(*shape, "--strategy", "magic", status=1)
    assert "there is no strategy 'magic'" in unknown.stderr


def test_explain_knows_raw_files_sections_and_servers() -> None:
    raw = ("explain", "--shape", "32,32", "--mesh", "2,2", "--dtype", "f4", "--layout", "raw", "--order", "F")
    raw += ("--strategy", "server-directed")
    told = json.loads(run(*raw, "--name", "a", "b", "--server-ranks", "3,1", "--json").stdout)
    assert [array["order"] for array in told["arrays"]] == [[1, 0], [1, 0]]
    assert [array["file"]["offset"] for array in told["arrays"]] == [0, 4096]
    assert told["parameters"]["servers"] == [3, 1]
    assert {row["rank"] for row in told["servers"]} == {1, 3}
    part = run(*raw, "--section", "1:64:2,0:32", "--stored-shape", "64,40", "--rounds", 1, "--ranks", 2).stdout
    assert "array[1:64:2, 0:32] of [64, 40] float32" in part
    assert "... and 2 more ranks" in part
    lost = run(*raw, "--section", "1:64:2,0:32", status=1)
    assert "needs the shape" in lost.stderr


def test_explain_takes_the_pieces_of_all_ranks() -> None:
    held = [hs.Boxes((8, 8), [((0, 0), (4, 8))]), hs.Boxes((8, 8), [((4, 0), (8, 4)), ((4, 4), (8, 8))])]
    told = hs.explain(held, "f8", layout="raw", cores=2, strategy="server-directed", servers=1)
    moved = [row for table in told.to_dict()["rounds"] for row in table["ranks"]]
    assert [(row["rank"], row["pieces"], row["bytes"]) for row in moved] == [(0, 1, 256), (1, 2, 256)]
    assert str(told) == told.text
    assert "server-directed" in repr(told)
    with pytest.raises(hs.InvalidError, match="both write element"):
        hs.explain([held[0], held[0]])
    with pytest.raises(hs.InvalidError, match="not one of zarr, raw"):
        hs.explain(hs.Distribution.block((4,), 2), layout="tar")  # type: ignore[arg-type]


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
