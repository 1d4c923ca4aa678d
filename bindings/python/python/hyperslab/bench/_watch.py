"""Time on all ranks together."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress

import numpy as np
from mpi4py import MPI

__all__ = ["Stopwatch", "rest"]

#: Pause between two looks at a request of MPI; a rank that spun would take the processor from the others.
LOOK_SECONDS = 0.0005
#: From the last rank's arrival to the moment at which all begin.
HEAD_START_SECONDS = 0.005


def rest(request: MPI.Request) -> None:
    """Wait for MPI asleep."""
    while not request.Test():
        time.sleep(LOOK_SECONDS)


def _go_to(number: int) -> None:
    """Move this rank to a core, where it may stay or not.

    Two ranks that woke on one core stay there for milliseconds, though another one is idle: how long a short transfer
    takes would depend on what was timed before it. Ranks of a job have cores of their own where a batch system starts
    them; here they begin so, and are free to move at once.
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    allowed = os.sched_getaffinity(0)
    cores = sorted(allowed)
    # Where that is forbidden, ranks begin where they are.
    with suppress(OSError):
        os.sched_setaffinity(0, {cores[number % len(cores)]})
        os.sched_setaffinity(0, allowed)


class Stopwatch:
    """Times collective work from one moment on all ranks to the end of the last.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        The ranks.
    forgets_bytes : int
        So much of other memory each rank walks over before, as programs do that compute between two calls: then nobody
        finds his code in the caches of his core because his like came before him [B].
    """

    def __init__(self, comm: MPI.Intracomm, forgets_bytes: int = 0) -> None:
        self._comm = comm
        self._other = np.zeros(forgets_bytes, "u1")

    def meet(self) -> None:
        """A barrier that leaves the processors alone."""
        rest(self._comm.Ibarrier())

    def most(self, value: float) -> float:
        """The largest of the ranks' values."""
        own, most = np.array([value]), np.empty(1)
        rest(self._comm.Iallreduce(own, most, MPI.MAX))
        return float(most[0])

    def of_rank_0(self, value: float) -> float:
        """The value of rank 0."""
        told = np.array([value])
        rest(self._comm.Ibcast(told))
        return float(told[0])

    def seconds(self, work: Callable[[], object]) -> float:
        """Seconds that the slowest rank needs; the same number on all ranks."""
        self.meet()
        _go_to(self._comm.rank)
        self._other += 1
        # The clock is the machine's, so a moment of rank 0 is one of all: ranks share a machine here.
        moment = self.of_rank_0(time.monotonic() + HEAD_START_SECONDS)
        time.sleep(max(0.0, moment - time.monotonic()))
        work()
        return self.most(time.monotonic() - moment)
