"""Time on all ranks together."""

from __future__ import annotations

import time
from collections.abc import Callable

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


class Stopwatch:
    """Times collective work from one moment on all ranks to the end of the last."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._comm = comm

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
        # The clock is the machine's, so a moment of rank 0 is one of all: ranks share a machine here.
        moment = self.of_rank_0(time.monotonic() + HEAD_START_SECONDS)
        time.sleep(max(0.0, moment - time.monotonic()))
        work()
        return self.most(time.monotonic() - moment)
