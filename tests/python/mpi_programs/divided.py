"""A rank that a handler of signals strikes while ranks are divided into clients and servers, at each moment in turn.

Usage: divided VICTIM. The others end soon: nobody waits in MPI for a rank that does not come.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import hyperslab as hs
from hyperslab import servers
from mpi4py import MPI

from struck_doors import Moments, Struck, handling

WORLD = MPI.COMM_WORLD
#: Longer than any of them takes, and shorter than any limit [s].
LONG_SECONDS = 15.0


def one(comm: MPI.Intracomm, moments: Moments, victim: int) -> str:
    """Divide a communicator, with what it takes to notice that another rank is not there."""
    ranks = servers._ranks

    def known(*given: Any) -> list[int]:
        # Who is struck before it knows the communicator has no way to tell others anything.
        if comm.rank == victim:
            moments.begin()
        return ranks(*given)

    servers._ranks = known
    try:
        try:
            io = hs.dedicate(comm, servers=1)
        finally:
            moments.end()
            servers._ranks = ranks
        with io:
            io.serve() if io.is_server else io.barrier()
    except Struck:
        return "struck"
    except (hs.PeerError, hs.InterruptedError):
        return "failed"
    return "passed"


def main() -> None:
    victim = int(sys.argv[1])
    number, seen = 1, set()
    with handling():
        while True:
            comm, moments = WORLD.Dup(), Moments(number)
            WORLD.barrier()
            began = time.monotonic()
            ended = one(comm, moments, victim)
            took = time.monotonic() - began
            where = WORLD.bcast(moments.where, victim)
            every = WORLD.allgather((ended, took < LONG_SECONDS))
            if not where:
                break
            assert all(soon for _, soon in every), f"struck by {where}: {every}"
            assert every[victim][0] == "struck", f"struck by {where}: {every}"
            assert {told for rank, (told, _) in enumerate(every) if rank != victim} == {"failed"}, (where, every)
            seen.add(where)
            number += 1
    assert ended == "passed"
    if WORLD.rank == 0:
        print(f"struck at {number - 1} moments")


if __name__ == "__main__":
    main()
