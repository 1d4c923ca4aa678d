"""One job that writes a step of large chunks; a rank of it may stop, after which the others leave.

Usage: restarted DIRECTORY NUMBER [CLASS RANK]

With a class and a rank, that rank stops itself (SIGSTOP) before its first call of this class; ``target`` is the call
that publishes the step. Otherwise the step waits, when it is written and not yet published, for a file ``go``. What a
rank ended with is in ``NUMBER-RANK.json``; its process number in ``NUMBER-RANK.pid``.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from mpi4py import MPI

from fault_library import Fault, Faults
from fault_operations import Attempt, carry_out, limits
from kill_cases import ARRIVAL_SECONDS, LARGE_STEP, PATIENT_SECONDS, PROGRESS_SECONDS, QUIET_SECONDS
from mpi_programs.kills import Notes
from mpi_programs.leaving import leave

COMM = MPI.COMM_WORLD


def wait_for_go(notes: Notes, number: int) -> None:
    """Say that all is written, and wait."""
    if COMM.rank == 0:
        notes.write(f"{number}.written", content=True)
    notes.read("go", 2 * PATIENT_SECONDS)


def main() -> None:
    directory, number = Path(sys.argv[1]), int(sys.argv[2])
    stops = sys.argv[3:4]
    notes, faults = Notes(directory), Faults()
    patient = limits(2 * PATIENT_SECONDS, 2 * PATIENT_SECONDS)
    made = LARGE_STEP
    attempt = Attempt(COMM, directory / "case", number, "independent", limits=patient)
    if stops:
        attempt.limits = limits(ARRIVAL_SECONDS, PROGRESS_SECONDS)
    else:
        # Not with a strategy that other numbers of ranks may not be able to follow.
        attempt.strategy = None
        attempt.before_publish = lambda: wait_for_go(notes, number)
    notes.write(f"{number}-{COMM.rank}.pid", os.getpid())
    faults.watch(directory / "case")
    if stops and COMM.rank == int(sys.argv[4]):
        faults.target((directory / "case" / "a.zarr" / "0001").resolve())
        faults.arm(Fault(stops[0], 1, "stop"))
    carry_out(made, attempt)
    if faults.hits() > 0:
        # It has come back; its other threads may still be at work.
        counts, since = faults.counts(), time.monotonic()
        while time.monotonic() - since < QUIET_SECONDS:
            if faults.counts() != counts:
                counts, since = faults.counts(), time.monotonic()
            time.sleep(0.01)
    errors = [(type(error).__name__, str(error)) for error in attempt.errors]
    told = {"errors": errors, "published": attempt.published, "where": faults.where()}
    notes.write(f"{number}-{COMM.rank}.json", told)
    leave()


if __name__ == "__main__":
    main()
