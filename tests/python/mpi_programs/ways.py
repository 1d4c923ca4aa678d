"""Cases of each family of ``hyperslab bench regret``, done once by each way, with whole arrays compared."""

from __future__ import annotations

import sys
from pathlib import Path

import hyperslab as hs
from hyperslab.bench._grid import TWIN, grid
from hyperslab.bench._mpiio import hint_sets
from hyperslab.bench._sweep import sample
from hyperslab.bench._transfers import Transfer
from hyperslab.bench._watch import Stopwatch
from mpi4py import MPI


def main() -> None:
    comm = MPI.COMM_WORLD
    watch = Stopwatch(comm)
    done = refused = mpiio = 0
    for case in sample(int(sys.argv[2]), int(sys.argv[3]), (comm.size,), largest_bytes=256 << 10):
        transfer = Transfer(case, Path(sys.argv[1]), comm, watch.meet)
        transfer.make_ready()
        for way in grid(case, hint_sets(comm.size)[-2:])[0]:
            if way.name == TWIN:
                continue
            if case.direction == "write" and not transfer.changes_in_place:
                transfer.put_aside()
            transfer.renew()
            try:
                transfer.run(way)
            except hs.InvalidError as error:
                if "cannot carry out" not in str(error):
                    raise
                refused += 1
                continue
            transfer.check()
            watch.meet()
            done += 1
            mpiio += way.hints is not None
        transfer.close()
    # Independent writers cannot share chunks, and most cases can be done by most ways.
    assert 0 < refused < done / 4, (refused, done)
    assert mpiio > 10, mpiio
    if comm.rank == 0:
        print(f"{done} done, {mpiio} of them by MPI-IO, {refused} refused")


main()
