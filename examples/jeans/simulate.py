"""The collapse of a cloud of self-gravitating gas, with dumps and restarts.

Run it under MPI, for example::

    mpiexec -n 8 python -m mpi4py examples/jeans/simulate.py --out run --mesh 2,2,2
    mpiexec -n 6 python -m mpi4py examples/jeans/simulate.py --out run --mesh 3,2,1 --steps 48 --resume

The second command continues the first one on another number of ranks. ``-m mpi4py`` ends all ranks when one fails.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from mpi4py import MPI

from death import MOMENTS, Death
from dumps import Dumps
from evolve import Simulation

if TYPE_CHECKING:
    from collections.abc import Sequence

COSTS = "costs.jsonl"
"""The file to which rank 0 adds one line for each file that was written."""


def numbers(text: str) -> tuple[int, ...]:
    """Parse ``"2,2,2"``."""
    values = tuple(int(part) for part in text.split(","))
    if len(values) != 3 or min(values) < 1:
        raise argparse.ArgumentTypeError(f"expected three positive numbers such as 2,2,2, found {text!r}")
    return values


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n", maxsplit=1)[0] if __doc__ else None,
        epilog="Moments of death: " + "; ".join(f"{name}: {meaning}" for name, meaning in MOMENTS.items()) + ".",
    )
    parser.add_argument("--out", type=Path, required=True, help="directory of the dumps")
    parser.add_argument("--mesh", type=numbers, required=True, help="ranks in x, y and z")
    parser.add_argument("--shape", type=numbers, default=(128, 128, 64), help="cells in x, y and z")
    parser.add_argument("--steps", type=int, default=20, help="number of the last time step")
    parser.add_argument("--dump-every", type=int, default=5, help="time steps from dump to dump")
    parser.add_argument("--resume", action="store_true", help="continue from the last complete dump")
    death = parser.add_argument_group("sudden death, for the demonstration")
    death.add_argument("--die-at", choices=MOMENTS, help="moment at which one rank kills itself")
    death.add_argument("--die-in-dump", type=int, default=2, help="number of the dump in which it does")
    death.add_argument("--die-rank", type=int, default=0, help="the rank that does")
    death.add_argument("--die-after", type=float, default=0.01, help="time inside a transfer before it does [s]")
    return parser.parse_args(argv)


def main() -> None:
    """Run the simulation to its last step."""
    asked = arguments()
    comm = MPI.COMM_WORLD
    if comm.rank == 0:
        asked.out.mkdir(parents=True, exist_ok=True)
    comm.Barrier()
    simulation = Simulation(comm, asked.shape, asked.mesh)
    death = Death(asked.die_at, asked.die_in_dump, asked.die_after, comm.rank == asked.die_rank, asked.out)
    with Dumps(simulation, asked.out, resume=asked.resume, death=death) as dumps:
        if asked.resume:
            name = dumps.restore()
            for torn in dumps.removed:
                say(comm, f"removed the torn step {torn}")
            say(comm, f"resumed from {name}: step {simulation.step}, time {simulation.time:.5f}, {comm.size} ranks")
        else:
            simulation.begin()
            write_dump(comm, dumps, 0, asked.out)
        while simulation.step < asked.steps:
            begin = time.perf_counter()
            simulation.advance()
            say(comm, f"step {simulation.step:4d}  time {simulation.time:.5f}  {time.perf_counter() - begin:.2f} s")
            if simulation.step % asked.dump_every == 0:
                write_dump(comm, dumps, simulation.step // asked.dump_every, asked.out)


def write_dump(comm: MPI.Intracomm, dumps: Dumps, number: int, directory: Path) -> None:
    """Write one dump, and note on rank 0 what it cost."""
    rows = dumps.write(number)
    if comm.rank != 0:
        return
    with (directory / COSTS).open("a", encoding="utf-8") as costs:
        for row in rows:
            print(json.dumps({"dump": number, "ranks": comm.size} | vars(row)), file=costs)
    total, seconds = sum(row.bytes for row in rows), sum(row.seconds for row in rows)
    say(comm, f"dump {number:4d}  {total / 2**20:.0f} MiB in {seconds:.2f} s")


def say(comm: MPI.Intracomm, line: str) -> None:
    """Print a line on rank 0."""
    if comm.rank == 0:
        print(line, flush=True)


if __name__ == "__main__":
    main()
