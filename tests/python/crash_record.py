"""Carries out an operation of `fault_operations` under strace: crash_record OPERATION DIRECTORY TURN RANKS."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import hyperslab as hs

from crash_images import BEGIN, END
from fault_operations import OPERATIONS, Attempt

made, directory, turn, ranks = OPERATIONS[sys.argv[1]], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])


def run(comm: Any) -> None:
    """One rank's side."""
    attempt = Attempt(comm, directory, 1, turn=turn)
    made.run(attempt)
    assert attempt.errors == [], attempt.errors


# Strace shows where it begins.
os.access(BEGIN, os.F_OK)
run(None) if ranks == 1 else hs.threads(ranks, run)
os.access(END, os.F_OK)
