"""Ranks that meet what another user planted beside their data: for `test_strangers`.

Usage: strangers_met TASK ANSWERS, where TASK has paths and what is done with each, and ANSWERS gets what came of it.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path

from mpi4py import MPI

from strangers import ME, joined, load, tried

WORLD = MPI.COMM_WORLD


def main() -> None:
    # Other users may not read what root's Python is made of.
    load()
    tasks = json.loads(Path(sys.argv[1]).read_text())
    os.setgroups([])
    os.setgid(ME)
    os.setuid(ME)
    every = []
    for path, action in tasks:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            answers = WORLD.gather(tried(Path(path), action, WORLD))
        if answers is not None:
            every.append({"answer": joined(answers), "told": [str(each.message) for each in told]})
    if WORLD.rank == 0:
        Path(sys.argv[2]).write_text(json.dumps(every))


if __name__ == "__main__":
    main()
