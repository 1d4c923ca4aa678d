"""The FLASH example on the ranks of a communicator: all files twice, once with the original benchmark's values.

Usage: flash DIRECTORY BLOCKS [DIRECTORY_TO_RESTART_FROM]

Files go to DIRECTORY/real and DIRECTORY/original; checkpoints are read from the same places below the last argument.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3] / "examples" / "flash"))

import flash_io

RUNS = {"real": [], "original": ["--original"]}


def run(comm: Any, directory: Path, blocks: int, before: Path | None) -> None:
    """Write all files, and restart from those of another number of ranks."""
    for name, options in RUNS.items():
        flash_io.run(comm, flash_io.arguments(["--out", str(directory / name), "--blocks", str(blocks), *options]))
        if before is not None:
            flash_io.run(comm, flash_io.arguments(["--out", str(before / name), "--restart"]))


def main() -> None:
    """Run under MPI."""
    from mpi4py import MPI

    run(MPI.COMM_WORLD, Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]) if len(sys.argv) > 3 else None)


if __name__ == "__main__":
    main()
