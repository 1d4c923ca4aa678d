"""Calls at a path where not all ranks see the same files; each rank writes down how its calls end.

Usage: unshared DIRECTORY REPORT [RANK...]

At DIRECTORY some ranks see files of their own: those on other nodes, or the given ones, which mount an empty file
system there (in a namespace that this program may mount in). REPORT is a directory that all ranks see.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from error_cases import attempt
from unshared_cases import CASES, SHARED, Views


def run(comm: Any, name: str, path: Path) -> dict[str, Any]:
    """How a case ends on this rank."""
    path.mkdir(exist_ok=True)
    comm.barrier()
    assert Views(comm, path).differ, "all ranks see the same files"
    steps = CASES[name].run(comm, path, CASES[name].options)
    started = time.monotonic()
    kind, text = attempt(next(steps))
    seconds = time.monotonic() - started
    comm.barrier()
    found = None
    try:
        next(steps)
    except StopIteration as end:
        found = end.value
    comm.barrier()
    return {"node": os.uname().nodename, "kind": kind, "text": text, "seconds": seconds, "found": found}


def see_files_of_its_own(directory: Path) -> None:
    """Begin anew in a mount namespace with an empty file system at the directory."""
    mounting = 'mount -t tmpfs own "$0" && exec "$@"'
    again = [sys.executable, "-m", "mpi4py", "-m", "mpi_programs.unshared", *sys.argv[1:3]]
    os.execvp("unshare", ["unshare", "--mount", "sh", "-c", mounting, str(directory), *again])


def main() -> None:
    """Run under MPI."""
    directory, report = Path(sys.argv[1]), Path(sys.argv[2])
    rank = os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK"))
    if rank in sys.argv[3:]:
        see_files_of_its_own(directory)
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    SHARED.append(report / "shared")
    if comm.rank == 0:
        SHARED[0].mkdir()
    for name in CASES:
        outcome = run(comm, name, directory / name)
        with (report / f"rank{comm.rank}").open("a") as file:
            print(json.dumps([name, outcome]), file=file)


if __name__ == "__main__":
    main()
