"""Carries out operations by one process and prints, as JSON, how many calls of each class the library saw.

Usage: fault_counts DIRECTORY, with `faults/failing.c` preloaded; run by `test_faults`, also under strace.

Each operation has a directory of its own. Looking for the files ``begins`` and ``ends`` in it, which are not there,
tells whoever reads a trace what is between.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from fault_library import Faults
from fault_operations import OPERATIONS, Attempt, carry_out

#: With how many strategies each operation is carried out.
STRATEGIES_MAX = 2


def main() -> None:
    faults = Faults()
    seen = {}
    for number, made in enumerate(OPERATIONS.values()):
        strategies = made.strategies
        for turn in range(min(STRATEGIES_MAX, len(strategies))):
            strategy = strategies[(number + turn * len(strategies) // 2) % len(strategies)]
            name = f"{made.run.__name__}-{strategy}"
            directory = Path(sys.argv[1]) / name
            directory.mkdir()
            made.prepare(directory)
            attempt = Attempt(None, directory, 1, strategy)
            os.access(directory / "begins", os.F_OK)
            faults.watch(directory)
            carry_out(made, attempt)
            seen[name] = faults.counts()
            faults.rest()
            os.access(directory / "ends", os.F_OK)
            assert attempt.errors == [], (name, attempt.errors)
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
