"""What else happened while ranks were measured: load of others, deleted files; and how much memory a call took."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

import numpy as np
from mpi4py import MPI

from hyperslab.bench._watch import rest

__all__ = ["Load", "Peak"]

#: Writing it resets the peak of resident memory to what is resident now (proc(5)).
RESET_PEAK = "5"


def _status(name: str) -> int:
    """A line of this process's status [B]; 0 where there is none."""
    place = Path("/proc/self/status")
    rows = place.read_text().splitlines() if place.exists() else []
    return next((int(row.split()[1]) << 10 for row in rows if row.startswith(f"{name}:")), 0)


class Peak:
    """Memory that a call takes at most over what was there before: arrays of the user, modules, leavings of calls.

    Pages that ranks share count for each of them.
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._comm = comm
        reset = Path("/proc/self/clear_refs")
        if reset.exists():
            reset.write_text(RESET_PEAK)
        self._before = _status("VmRSS")

    def found(self) -> dict[str, int]:
        """The most of one rank, and the sum of all."""
        own = np.array([max(0, _status("VmHWM") - self._before)], "i8")
        most, total = np.empty(1, "i8"), np.empty(1, "i8")
        rest(self._comm.Iallreduce(own, most, MPI.MAX))
        rest(self._comm.Iallreduce(own, total, MPI.SUM))
        return {"rank": int(most[0]), "node": int(total[0])}


def _machine() -> tuple[float, float]:
    """Time that programs and that the machine's host took so far, on all cores [s]."""
    place = Path("/proc/stat")
    fields = place.read_text().split("\n", 1)[0].split()[1:] if place.exists() else []
    tick = os.sysconf("SC_CLK_TCK")
    numbers = [int(one) / tick for one in fields] + [0.0] * 10
    # Without the system's own time: it writes back for the ranks, too.
    return numbers[0] + numbers[1], numbers[7]


class Load:
    """Cores that other programs took while ranks were measured, and that a host of virtual machines took away."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._comm, self._began, self._machine = comm, time.monotonic(), _machine()
        self._own = resource.getrusage(resource.RUSAGE_SELF).ru_utime

    def found(self) -> dict[str, float]:
        """Cores of others, and stolen ones, in the mean since the beginning."""
        own = np.array([resource.getrusage(resource.RUSAGE_SELF).ru_utime - self._own])
        total = np.empty(1)
        rest(self._comm.Iallreduce(own, total, MPI.SUM))
        seconds = max(1e-3, time.monotonic() - self._began)
        programs, stolen = (now - before for now, before in zip(_machine(), self._machine, strict=True))
        return {
            "seconds": seconds,
            "others": max(0.0, programs - float(total[0])) / seconds,
            "stolen": stolen / seconds,
        }
