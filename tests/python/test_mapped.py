"""Reads by way of mappings: of files that are cut short meanwhile, and beside others who want the same signal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import hyperslab as hs
import numpy as np
import pytest

from mpi_launch import run_ranks

#: Shorter runs are read by a call.
BYTES = 8 << 20

#: Reads a file by way of a mapping, and then touches a mapping of its own whose file is empty.
DIES = """
import faulthandler, mmap, os, sys
import hyperslab as hs
faulthandler.enable()
path = sys.argv[1]
hs.load_npy(path)
own = open(path + ".own", "w+b")
own.truncate(8192)
mapped = mmap.mmap(own.fileno(), 8192)
own.truncate(0)
mapped[5000]
"""

#: Whether the library has the signal by the kernel's record, after a read and after the program has taken it; and
#: whether a read is right then.
KEEPS = """
import signal, sys
import hyperslab as hs, numpy as np

def caught():
    line = next(line for line in open("/proc/self/status") if line.startswith("SigCgt"))
    return bool(int(line.split()[1], 16) >> (signal.SIGBUS - 1) & 1)

hs.load_npy(sys.argv[1])
first = caught()
signal.signal(signal.SIGBUS, signal.SIG_DFL)
found = hs.load_npy(sys.argv[1])
print(first, caught(), np.array_equal(found, np.arange(found.size)))
"""

#: Sends itself the signal, after a read.
SENDS = """
import os, signal, sys
import hyperslab as hs
signal.signal(signal.SIGBUS, getattr(signal, sys.argv[2]))
hs.load_npy(sys.argv[1])
for _ in range(2):
    os.kill(os.getpid(), signal.SIGBUS)
"""


@pytest.mark.mpi
@pytest.mark.parametrize("mapped", ["1", "0"])
def test_a_file_that_is_cut_short_while_ranks_read_it(mapped: str, tmp_path: Path) -> None:
    """With mappings as without: what is said to be read was read, all ranks say the same, and nobody dies."""
    printed = run_ranks(2, "cut_short", tmp_path, 4.0, extra_environment={"HYPERSLAB_MAPPED": mapped})
    right, failed = map(int, re.findall(r"\d+", printed.splitlines()[-1]))
    assert right > 0, printed
    assert failed > 0, f"it was never found cut short: {printed}"


def test_signals_of_others_go_to_whoever_wanted_them_before(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones(BYTES // 8))
    command = [sys.executable, "-c", DIES, str(tmp_path / "a.npy")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == -signal.SIGBUS, ended
    assert "Bus error" in ended.stderr, "faulthandler was not asked"


def test_a_program_that_takes_the_signal_later_keeps_it(tmp_path: Path) -> None:
    """Then calls read, as they do where mappings are switched off."""
    np.save(tmp_path / "a.npy", np.arange(BYTES // 8))
    command = [sys.executable, "-c", KEEPS, str(tmp_path / "a.npy")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.split() == ["True", "False", "True"], ended


@pytest.mark.parametrize(("before", "dies"), [("SIG_DFL", True), ("SIG_IGN", False)])
def test_a_signal_that_is_sent_does_what_it_did(before: str, dies: bool, tmp_path: Path) -> None:  # noqa: FBT001
    np.save(tmp_path / "a.npy", np.arange(BYTES // 8))
    command = [sys.executable, "-c", SENDS, str(tmp_path / "a.npy"), before]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == (-signal.SIGBUS if dies else 0), ended


def test_holes_and_files_that_nobody_may_write_are_read(tmp_path: Path) -> None:
    """Of a file with holes, nothing is in the cache where they are."""
    path = tmp_path / "a.raw"
    with path.open("wb") as file:
        file.seek(BYTES)
        file.write(np.arange(1000.0).tobytes())
    shape = ((BYTES >> 3) + 1000,)
    with hs.open_raw(path, arrays={"a": (shape, "f8")}) as raw:
        found = raw.read("a")
    assert not found[: BYTES >> 3].any()
    assert np.array_equal(found[BYTES >> 3 :], np.arange(1000.0))
    path.chmod(0o444)
    with hs.open_raw(path, arrays={"a": (shape, "f8")}) as raw:
        assert np.array_equal(raw.read("a"), found)


def test_memory_of_mappings_is_given_back(tmp_path: Path) -> None:
    def mappings() -> int:
        return Path("/proc/self/maps").read_text(encoding="utf-8").count(os.fspath(tmp_path))

    values = np.arange(4 << 20, dtype="f8")
    hs.save_npy(tmp_path / "a.npy", values)
    for _ in range(3):
        assert np.array_equal(hs.load_npy(tmp_path / "a.npy"), values)
        assert mappings() == 0
