"""A program that is started without ``python -m mpi4py``, as beginners start it.

Usage: plain SCENARIO DIRECTORY

``left-out-...`` opens without a communicator and tells what came of it; in the others, one rank ends.
"""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np

#: The rank that ends.
ODD = 1


def outcome(call: Callable[[], Any]) -> str:
    """The error of a call, or that there was none."""
    try:
        call()
    except hs.Error as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def left_out(directory: Path) -> dict[str, str]:
    """What opening without a communicator ends with."""
    array = np.arange(6.0)
    raw = {"a": ((6,), "<f8")}
    alone = directory / f"{uuid.uuid4()}.zarr"
    found = {
        f"open {mode}": outcome(lambda mode=mode: hs.open(directory / "a.zarr", mode)) for mode in ("w", "x", "r+")
    }
    found["open_raw"] = outcome(lambda: hs.open_raw(directory / "a.raw", "w"))
    found["open_raw r+"] = outcome(lambda: hs.open_raw(directory / "a.raw", "r+", header=0, arrays=raw))
    found["save_npy"] = outcome(lambda: hs.save_npy(directory / "a.npy", array))
    found["read"] = outcome(lambda: hs.open(directory / "there.zarr").close())
    found["read raw"] = outcome(lambda: hs.open_raw(directory / "there.raw", header=0, arrays=raw).close())
    found["load_npy"] = outcome(lambda: hs.load_npy(directory / "there.npy"))
    found["alone"] = outcome(lambda: hs.open(alone, "w", comm=None).close())
    return found


def end(scenario: str, directory: Path) -> None:
    """Let one rank end while the others call."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    message = "the physics went wrong"
    if comm.rank == ODD and scenario == "first":
        raise ZeroDivisionError(message)
    with hs.open(directory / "a.zarr", "w", comm=comm) as store:
        mine = hs.Distribution.block((64, 64), comm.size).zeros(comm)
        dist = hs.Distribution.block((64, 64), comm.size)
        store.write("before", mine, dist)
        if comm.rank == ODD and scenario == "between":
            raise ZeroDivisionError(message)
        if comm.rank == ODD and scenario == "exit":
            sys.exit(3)
        with store.step("s") as step:
            step.write("a", mine, dist)
            if comm.rank == ODD:
                raise ZeroDivisionError(message)
            step.write("b", mine, dist)


def main() -> None:
    """Do what is asked."""
    scenario, directory = sys.argv[1], Path(sys.argv[2])
    if not scenario.startswith("left-out"):
        return end(scenario, directory)
    if scenario == "left-out-mpi":
        from mpi4py import MPI

        found = left_out(directory)
        told = MPI.COMM_WORLD.gather(found)
        if told is not None:
            print(json.dumps(told))
        return None
    # No rank loads MPI, so each writes down its own.
    name = directory / f"{uuid.uuid4()}.json"
    name.write_text(json.dumps(left_out(directory)))
    return None


if __name__ == "__main__":
    main()
