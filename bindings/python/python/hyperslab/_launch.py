"""How many ranks a program was started with, where nobody named a communicator."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from hyperslab.errors import InvalidError

__all__ = ["LEFT_OUT", "LeftOut", "alone", "ranks_of_launch"]


class LeftOut:
    """Stands for a communicator that was not given, which is less than ``None``: this rank alone."""

    def __repr__(self) -> str:
        """As a signature shows it."""
        return "<left out>"


#: The default of ``comm=``.
LEFT_OUT = LeftOut()

#: What starts ranks, and how it tells each of them its number and how many there are. The innermost comes first:
#: ``mpiexec`` in a job of Slurm starts its helpers by ``srun``, whose variables the ranks inherit.
LAUNCHERS = (
    ("Open MPI's mpiexec", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"),
    ("mpiexec", "PMI_RANK", "PMI_SIZE"),
    ("mpiexec", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("PALS", "PALS_RANKID", "PALS_LOCAL_SIZE"),
    ("flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
    ("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("PMIx", "PMIX_RANK", "PMIX_RANK"),
)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


def ranks_of_environment(environment: Mapping[str, str]) -> tuple[int, str] | None:
    """How many ranks a launcher started, at least, and by what it is known; None where it is one, or there is none."""
    for launcher, rank_name, size_name in LAUNCHERS:
        rank, size = _number(environment.get(rank_name)), _number(environment.get(size_name))
        if rank is None or size is None:
            continue
        # A batch script of Slurm has the variables of its job, but is no step.
        if launcher == "srun" and "SLURM_STEP_ID" not in environment:
            continue
        ranks = max(size, rank + 1)
        return (ranks, f"{launcher} set {size_name}={environment[size_name]}") if ranks > 1 else None
    return None


def ranks_of_launch() -> tuple[int, str] | None:
    """How many ranks this program has, at least, and by what it is known; None where it is one, or nothing tells.

    MPI is asked where mpi4py is loaded and has initialised it, which nothing here does.
    """
    mpi: Any = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized():
        size = mpi.COMM_WORLD.Get_size()
        if size > 1:
            return (size, "the size of MPI.COMM_WORLD")
    return ranks_of_environment(os.environ)


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
