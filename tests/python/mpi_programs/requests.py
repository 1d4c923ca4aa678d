"""All cases of `request_cases`; or, below MPI_THREAD_MULTIPLE, that messages move inside of calls.

Usage: requests LEVEL DIRECTORY
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import hyperslab as hs
import mpi4py
import numpy as np

from batch_cases import CASES as BATCH_CASES
from local_cases import LOCAL_CASES
from request_cases import CASES, compute_until, overlap, part, spread, whole


def below_multiple(comm: Any, path: Path) -> None:
    """`test` lets a request move and does not wait for other ranks; so does any other call."""
    dist = spread(comm)
    with hs.open(path / "t.zarr", "w", comm=comm, durable=False, progress_seconds=1.0) as store:
        assert not store._comm.moves_alone
        request = store.iwrite("a", part(comm), dist, chunks=(16, 40))
        if comm.size > 1:
            compute_until(iter([False] * 20_000 + [True]).__next__)
            assert not (path / "t.zarr/a").exists(), "nobody was in a call, and without messages nothing is agreed"
            comm.barrier()
            if comm.rank == 0:
                assert not any(request.test() for _ in range(100)), "rank 1 is in MPI, not here"
            comm.barrier()
        compute_until(request.test)
        later = store.iwrite("b", part(comm, 1.0), dist)
        assert np.array_equal(store.read("b"), whole(1.0))
        later.wait()
        # Computing for longer than the limit on progress, in the middle of a request, is no failure.
        late = store.iwrite("c", part(comm), dist)
        late.test()
        for _ in range(2 if comm.rank == 0 else 1):
            compute_until(iter([False] * 60_000 + [True]).__next__)
        late.wait()


def main() -> None:
    """Run under MPI."""
    level, directory = sys.argv[1], Path(sys.argv[2])
    mpi4py.rc.thread_level = level
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if level != "multiple":
        below_multiple(comm, directory)
    for name, case in (CASES | LOCAL_CASES | BATCH_CASES).items():
        if level != "multiple" and case is overlap:
            continue
        path = directory / name
        path.mkdir(exist_ok=True)
        comm.barrier()
        case(comm, path)
        comm.barrier()
    if comm.rank == 0:
        print(f"all requests on {comm.size} ranks")


if __name__ == "__main__":
    main()
