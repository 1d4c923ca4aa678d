"""A rank to which MPI says that it is alone, whatever its launcher says: what it may open, and what it is warned of.

Usage: lone DIRECTORY [variables]

Prints a JSON document a rank. With ``variables``, the launcher is one of environment variables only: each set in
turn, in one process.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
from mpi4py import MPI

from mpi_programs.plain import outcome

#: What launchers say to one of three ranks; and where that is nothing, or nothing of several ranks.
SAYS_THREE = (
    {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "3"},
    {"PMI_RANK": "2", "PMI_SIZE": "3"},
    {"MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "3"},
    {"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "3", "SLURM_NTASKS": "3"},
    {"PMIX_RANK": "2"},
)
SAYS_NOTHING: tuple[dict[str, str], ...] = (
    {},
    {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "3", "SLURM_PROCID": "0"},
    {"PMI_RANK": "0", "PMI_SIZE": "1", "SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "3"},
)


def clear() -> None:
    """Forget what the launcher of the tests says."""
    for name in list(os.environ):
        if name.startswith(("OMPI_COMM", "PMI_", "PMIX_", "MPI_LOCAL", "SLURM_", "MV2_", "PALS_", "FLUX_", "JSM_")):
            del os.environ[name]


def warned(call: Callable[[], Any]) -> list[str]:
    """What a call warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in caught]


def found(directory: Path, comm: Any) -> dict[str, Any]:
    """What writing and reading by a communicator ends with; by this process alone, it always may."""
    own = directory / f"{uuid.uuid4()}.zarr"
    array = np.arange(6.0)
    with hs.open(own, "w", comm=None) as store:
        store.write("a", array)
    np.save(own.with_suffix(".npy"), array)

    def save() -> None:
        hs.save_npy(directory / "all.npy", array, comm=comm)

    return {
        "written": [
            outcome(lambda: hs.open(directory / "all.zarr", "w", comm=comm).close()),
            outcome(lambda: hs.open(own, "r+", comm=comm).close()),
            outcome(lambda: hs.open(directory / "all.h5", "a", comm=comm).close()),
            outcome(lambda: hs.open(directory / "all.nc", "w", comm=comm).close()),
            outcome(lambda: hs.open_raw(directory / "all.raw", "w", comm=comm).close()),
            outcome(save),
        ],
        "memory": outcome(lambda: hs.open(hs.MemoryStore(), "w", comm=comm).close()),
        "self": outcome(lambda: hs.open(own, "r+", comm=MPI.COMM_SELF).close()),
        "warned": warned(lambda: hs.open(own, comm=comm).close()),
        "warned again": warned(lambda: hs.load_npy(own.with_suffix(".npy"), comm=comm)),
        "read": outcome(lambda: hs.open(own, comm=comm).close()),
    }


def main() -> None:
    """See above."""
    directory = Path(sys.argv[1])
    if "variables" not in sys.argv:
        told = {"size": MPI.COMM_WORLD.Get_size()} | found(directory, MPI.COMM_WORLD)
        print(json.dumps(told), flush=True)
        return
    every = []
    for says in (*SAYS_THREE, *SAYS_NOTHING):
        clear()
        os.environ.update(says)
        # A membership is made with the environment that there is.
        every.append({"says": says} | found(directory, MPI.COMM_WORLD.Dup()))
    print(json.dumps(every))


def spawned() -> None:
    """What is spawned by another program has a world of its own, and may write there."""
    parent = MPI.Comm.Get_parent()
    directory = Path(sys.argv[2])
    # What the launcher of the program that spawned it said may be inherited.
    os.environ.update(SAYS_THREE[0])
    error = outcome(lambda: hs.open(directory / "spawned.zarr", "w", comm=MPI.COMM_WORLD).close())
    parent.send((MPI.COMM_WORLD.Get_size(), error), 0)
    parent.Disconnect()


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "spawned":
        spawned()
    else:
        main()
