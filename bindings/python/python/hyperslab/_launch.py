"""How many ranks a program was started with, where nobody named a communicator."""

from __future__ import annotations

import sys
from typing import Any

from hyperslab import _core
from hyperslab._printing import warn
from hyperslab.comm import connect, lone
from hyperslab.errors import InvalidError

__all__ = ["LEFT_OUT", "LeftOut", "alone", "joined", "ranks_of_launch", "warn_lone_reader"]


class LeftOut:
    """Stands for a communicator that was not given, which is less than ``None``: this rank alone."""

    def __repr__(self) -> str:
        """As a signature shows it."""
        return "<left out>"


#: The default of ``comm=``.
LEFT_OUT = LeftOut()


def ranks_of_launch() -> tuple[int, str] | None:
    """How many ranks this program has, at least, and by what it is known; None where it is one, or nothing tells.

    MPI is asked where mpi4py is loaded and has initialised it, which nothing here does.
    """
    mpi: Any = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized():
        size = mpi.COMM_WORLD.Get_size()
        if size > 1:
            return (size, "the size of MPI.COMM_WORLD")
    return _core.ranks_of_launcher()


def alone(comm: Any, doing: str, *, writes: bool) -> Any:
    """The communicator that was given; where it was left out, this rank alone, unless several would write.

    Raises
    ------
    InvalidError
        When several ranks of this program are about to write the same thing, each for itself.
    """
    if comm is not LEFT_OUT:
        return comm
    found = ranks_of_launch() if writes else None
    if found is not None:
        ranks, known = found
        message = (
            f"{doing}: comm= is left out, but this program runs on {ranks} ranks ({known}), each of which would write "
            "by itself\n  hint: give comm=MPI.COMM_WORLD to write together, or comm=None to write by this rank alone"
        )
        raise InvalidError(message)
    return None


def joined(comm: Any, doing: str, mode: str, arrival_seconds: float) -> _core.Comm:
    """The membership by which something is opened in this mode."""
    member = connect(alone(comm, doing, writes=mode != "r"), arrival_seconds)
    warn_lone_reader(mode)
    return member


def warn_lone_reader(mode: str) -> None:
    """Warn, once, who reads by MPI's world of one rank in a program that was started with several."""
    if lone and mode == "r" and (text := lone[-1].lone_reader()) is not None:
        lone.clear()
        warn(text, stacklevel=4)
