"""Steps, one after another, until a call fails; each rank writes down how that was.

Usage: cut_off DIRECTORY REPORT

A rank that others cannot reach any more cannot finalize MPI, so all leave without; but not before there is a file
REPORT/over, since Open MPI ends ranks whose neighbours leave.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
from pathlib import Path

import hyperslab as hs
import numpy as np

from telling import tell

SHAPE = (64, 512)
ARRIVAL_SECONDS = 2.0
PROGRESS_SECONDS = 2.0
#: A rank that hears nothing more when it knows that rank 0 works in storage waits as long as for storage.
STORAGE_SECONDS = 2.0


def main() -> None:
    """Run under MPI."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    dist = hs.Distribution(SHAPE, (comm.size,), ("cyclic", "*"))
    store = hs.open(
        Path(sys.argv[1]) / "a.zarr",
        "w",
        comm=comm,
        durable=False,
        arrival_seconds=ARRIVAL_SECONDS,
        progress_seconds=PROGRESS_SECONDS,
        storage_seconds=STORAGE_SECONDS,
    )
    started = time.monotonic()
    try:
        for number in itertools.count():
            started = time.monotonic()
            with store.step(f"{number:06}", attributes={"number": number}) as step:
                for name, sign in (("a", 1), ("b", -1)):
                    step.write(name, np.full(dist.local_shape(comm), float(sign * number)), dist, chunks=(8, 512))
    except Exception as error:  # noqa: BLE001 (any error is the result)
        noted = {
            "kind": type(error).__name__,
            "ours": isinstance(error, hs.Error),
            "text": str(error),
            "seconds": time.monotonic() - started,
        }
    note = Path(sys.argv[2]) / f"rank{comm.rank}.json"
    tell(note, noted)
    deadline = time.monotonic() + 60.0
    while not (Path(sys.argv[2]) / "over").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os._exit(0)


if __name__ == "__main__":
    main()
