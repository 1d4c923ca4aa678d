"""Two threads whose storage does not answer; run by `test_stalled_storage`, with the library of faults preloaded.

Usage: stalled_storage CLASS FIRST MODE DIRECTORY

The FIRST call of a CLASS stalls. Prints what each rank got, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np

from fault_library import Fault, Faults

STORAGE_SECONDS = 2.0
#: Longer than anybody may wait.
STALL_SECONDS = 8.0
#: Shorter, so that it shows that a rank that waits for storage is waited for by the others.
PROGRESS_SECONDS = 1.0
#: Instead of seconds: an opening right after the error named nothing as unfinished.
BUSY = -1.0
SHAPE = (64, 64)


def main() -> None:
    """Arm after a quiet write, and write again."""
    name, first, mode, directory = sys.argv[1], int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
    faults = Faults()
    dist = hs.Distribution.block((64, 64), 2)
    limits: dict[str, Any] = {"progress_seconds": PROGRESS_SECONDS, "storage_seconds": STORAGE_SECONDS}

    def change_section(comm: hs.ThreadComm) -> None:
        with hs.open_raw(directory / "b.raw", "r+", arrays={"a": (SHAPE, "f8")}, comm=comm, **limits) as file:
            rows = hs.Distribution((32, SHAPE[1]), (2,), ("block", "*"))
            file.write({"a": np.ones((16, SHAPE[1]))}, rows, section=slice(0, 32))

    def rank(comm: hs.ThreadComm) -> tuple[str, str, float]:
        # Not durable: after a durable write a thread of its own would still be removing things when the fault is armed.
        with hs.open(directory / "a.zarr", "w", comm=comm, durable=False) as made:
            made.write("before", np.zeros(dist.local_shape(comm)), dist)
        with hs.open_raw(directory / "b.raw", "w", comm=comm, durable=False) as file:
            file.write({"a": np.zeros((32, SHAPE[1]))}, hs.Distribution(SHAPE, (2,), ("block", "*")))
        store = hs.open(directory / "a.zarr", "r+", comm=comm, **limits)
        comm.barrier()
        if comm.rank == 0:
            faults.watch(directory)
            faults.arm(Fault(name, first, "stall", int(STALL_SECONDS * 1000)))
        comm.barrier()
        began = time.monotonic()
        try:
            if mode == "open":
                hs.open(directory / "a.zarr", "r+", comm=comm, **limits)
            elif mode == "anew":
                hs.open(directory / "a.zarr", "w", comm=comm, **limits)
            elif mode == "section":
                change_section(comm)
            else:
                # Chunks that are replaced are synced by the worker of the store.
                store.write("before", np.ones(dist.local_shape(comm)), dist, section=(slice(0, 64), slice(0, 64)))
        except hs.Error as error:
            told = type(error).__name__, str(error), time.monotonic() - began
            if mode == "section" and comm.rank == 1:
                # At once: rank 0 may still be about to hear that its call has ended.
                with hs.open_raw(directory / "b.raw", arrays={"a": (SHAPE, "f8")}) as file:
                    told = (*told[:2], told[2] if file.unfinished else BUSY)
            if mode == "anew" and comm.rank == 1:
                # Another job, while rank 0 of this one is still held up.
                with hs.open(directory / "a.zarr", "w") as store:
                    store.write("later", np.ones(4))
            return told
        return "none", "", time.monotonic() - began

    print(json.dumps(hs.threads(2, rank)), flush=True)
    # A thread hangs in the system.
    os._exit(0)


if __name__ == "__main__":
    main()
