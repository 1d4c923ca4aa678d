"""Two halves of a job use the same store at once; the first rank of each prints how its calls ended.

Usage: halves STORE STEP...

Both write the same steps, change the same array 'a' in place, and write a step of their own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
from mpi4py import MPI

from error_cases import attempt
from neighbour_programs import CHUNKS, SHAPE, full


def main() -> None:
    """Run under MPI."""
    world = MPI.COMM_WORLD
    half = world.rank % 2
    comm = world.Split(half)
    dist = hs.Distribution(SHAPE, (comm.size,), ("block", "*"))
    part = full(2.0 + half, dist.local_shape(comm))
    with hs.open(Path(sys.argv[1]), "r+", comm=comm, durable=False) as store:

        def step(name: str) -> None:
            with store.step(name) as group:
                group.write({"a": part, "b": part}, dist, chunks=CHUNKS)

        def change() -> None:
            store.write("a", part, dist, section=(slice(None), slice(None)))

        calls: list[Callable[[], Any]] = [lambda name=name: step(name) for name in sys.argv[2:]]  # type: ignore[misc]
        world.barrier()
        kinds = [attempt(call)[0] for call in [*calls, *[change] * 20]]
        step(f"only{half}")
    for turn in range(2):
        world.barrier()
        if comm.rank == 0 and half == turn:
            print(f"half {half}:", *kinds, flush=True)


if __name__ == "__main__":
    main()
