"""All failing calls of `error_cases`; prints, as JSON, the error of each rank in each case.

Usage: failing DIRECTORY
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import hyperslab as hs

from error_cases import CASES, Outcome


def run_cases(comm: Any, directory: Path) -> dict[str, Outcome]:
    """Run all cases on the ranks of a communicator; this rank's errors."""
    outcomes = {}
    for name, case in CASES.items():
        path = directory / name
        path.mkdir(exist_ok=True)
        comm.barrier()
        outcomes[name] = case.run(comm, path)
    return outcomes


def main() -> None:
    """Run under MPI."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    every = comm.gather(run_cases(comm, Path(sys.argv[1])))
    if every is not None:
        print(json.dumps(every))
    # Some cases leave files behind that one rank has closed; they are told, and this program ends well all the same.
    hs.finalize()


if __name__ == "__main__":
    main()
