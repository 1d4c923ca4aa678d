"""How a rank ends that cannot finalize MPI, since another one is dead or stopped."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def shared_memory(process: str = "self") -> set[Path]:
    """Files in /dev/shm that a process has mapped; MPI removes its own when it is finalized."""
    lines = Path(f"/proc/{process}/maps").read_text().splitlines()
    found = {Path(line.split(maxsplit=5)[-1]) for line in lines if " /dev/shm/" in line}
    return {path for path in found if path.parent == Path("/dev/shm")}


def leave() -> None:
    """End this process at once, with success."""
    for path in shared_memory():
        path.unlink(missing_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
