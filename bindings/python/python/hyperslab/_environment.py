"""All environment variables that hyperslab reads, and the page that tells of them.

The page is made by ``python -m hyperslab._environment docs/environment.md``.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["VARIABLES", "Variable", "page"]


@dataclass(frozen=True)
class Variable:
    """An environment variable of the package."""

    name: str
    #: Its values, as the page shows them.
    values: str
    #: What holds where it is not set.
    default: str
    #: What it does.
    meaning: str


VARIABLES = (
    Variable(
        "HYPERSLAB_EXPLAIN",
        "`1` or `short`; `long`",
        "nothing is printed",
        "Rank 0 prints to stderr what each transfer did: in one line (what, bytes, time, strategy, servers, predicted "
        "time), or with `long` all that was compared, why one strategy won, who moved what, and predicted beside "
        "measured times.",
    ),
    Variable(
        "HYPERSLAB_TRACE",
        "a directory",
        "nothing is recorded",
        "Records what each rank does and when, for all communicators of the program. `hyperslab trace` reads it.",
    ),
    Variable(
        "HYPERSLAB_PLACE",
        "`coherent`, `close-to-open` or `timeouts`",
        "what is known of the type of the file system",
        "What other nodes see of what one does in the file systems of this program ([clusters](clusters.md)), in the "
        "place of what the table of mounts tells; any other word counts as `timeouts`. `hyperslab doctor` measures it.",
    ),
    Variable(
        "HYPERSLAB_PROFILE",
        "a file; empty or `none`",
        "`$XDG_CONFIG_HOME/hyperslab/machine.toml`, or the same below `~/.config`",
        "The profile of this machine, which `hyperslab calibrate` writes. With `none`, built-in defaults apply.",
    ),
    Variable(
        "HYPERSLAB_LEARNED",
        "a file; empty or `none`",
        "`$XDG_CACHE_HOME/hyperslab/learned.json`, or the same below `~/.cache`",
        "Where corrections that measured transfers taught are kept from run to run. With `none`, nothing is "
        "read or kept.",
    ),
    Variable(
        "HYPERSLAB_DIRECT",
        "`0`",
        "memory is shared where the system allows it",
        "With `0`, ranks on one node exchange messages and never read each other's memory.",
    ),
    Variable(
        "HYPERSLAB_MAPPED",
        "`0`",
        "files on this host are mapped",
        "With `0`, what the system's cache holds of a file is read by calls, and never out of a mapping of the file.",
    ),
    Variable(
        "HYPERSLAB_IDLE_CORES",
        "a number",
        "a rank's share of the cores that no rank of its node has",
        "At most so many threads of a rank compress and decompress chunks beside its own thread. With `0`, none does.",
    ),
    Variable(
        "HYPERSLAB_MPI_ABI",
        "`mpich`, `openmpi` or `standard`",
        "recognised by itself",
        "The binary interface of the MPI library, where it is not recognised.",
    ),
)

_HEAD = """# Environment variables

<!-- Made by `python -m hyperslab._environment docs/environment.md`. -->

Nothing has to be set. These variables hold for a whole program, and need no change of its code. Set them alike on all
ranks; what a transfer does follows from those of rank 0.

| variable | values | when not set | what it does |
| --- | --- | --- | --- |
"""

_TAIL = """
The command also respects [`NO_COLOR`](https://no-color.org). The number of ranks on a node is taken from the launcher:
`OMPI_COMM_WORLD_LOCAL_SIZE`, `MPI_LOCALNRANKS`, `MV2_COMM_WORLD_LOCAL_SIZE` or `SLURM_NTASKS_PER_NODE`. So is that of
all ranks, to notice where MPI does not know of them ([starting.md](starting.md)): `OMPI_COMM_WORLD_SIZE`, `PMI_SIZE`,
`SLURM_STEP_NUM_TASKS`, `PMIX_RANK` and others.
"""


def page() -> str:
    """The page that tells of all of them."""
    rows = [f"| `{one.name}` | {one.values} | {one.default} | {one.meaning} |" for one in VARIABLES]
    return _HEAD + "\n".join(rows) + "\n" + _TAIL


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
