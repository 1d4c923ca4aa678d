"""FLASH's I/O on an adaptive mesh: checkpoint, plotfile and corner plotfile, and a restart on other ranks.

Run it under MPI, or on threads of one process, for example::

    mpiexec -n 4 python -m mpi4py examples/flash/flash_io.py --out run
    mpiexec -n 3 python -m mpi4py examples/flash/flash_io.py --out run --restart
    python examples/flash/flash_io.py --out run --threads 4
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hyperslab as hs

import levels
import output
from octree import Tree, equal_work, grow
from output import CHECKPOINT, CORNERS, KINDS, PLOTFILE, Part, Row
from state import PLOTTED, State

if TYPE_CHECKING:
    from collections.abc import Sequence

MB = 1 << 20
"""What the paper calls a MB, as its sizes show [B]."""
PAPER = {CHECKPOINT: 243.1 / 32, PLOTFILE: 20.4 / 32, CORNERS: 29.0 / 32}
"""Sizes per process in table 3 of Ross, Nurmi, Cheng and Zingale, SC2001 [MB]."""
BLOCKS = 80
STORE = "run.zarr"
NOTE = "run.json"
"""What a restart must know to check what it reads: how the values were made."""


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="directory of the files")
    parser.add_argument("--threads", type=int, metavar="N", help="ranks are threads; without it, MPI's processes")
    parser.add_argument("--restart", action="store_true", help="read the checkpoints that are there, and verify them")
    parser.add_argument("--format", choices=("raw", "zarr", "both"), default="both", help="of the three files")
    parser.add_argument("--only-checkpoint", action="store_true", help="no plotfiles")
    parser.add_argument(
        "--packs",
        action="store_true",
        help="the application packs each variable, element by element, before it writes it; of raw files",
    )
    parser.add_argument("--blocks", type=int, default=BLOCKS, help="blocks of rank 0; rank r has r mod 3 more")
    parser.add_argument(
        "--cut",
        choices=("work", "count"),
        default="work",
        help="each rank has equal work, or the number of blocks above",
    )
    parser.add_argument(
        "--original", action="store_true", help="the benchmark's values, unk(v,...) = v, and its number of blocks"
    )
    parser.add_argument(
        "--level", type=int, help="refinement level that is written as one array; the busiest without it"
    )
    return parser.parse_args(argv)


def block_counts(blocks: int, ranks: int) -> list[int]:
    """Return how many blocks each rank has in the original benchmark: 80, 81 or 82."""
    return [blocks + rank % 3 for rank in range(ranks)]


def say(comm: Any, line: str) -> None:
    """Print a line on rank 0."""
    if comm.rank == 0:
        print(line, flush=True)


def made(tree: Tree, part: Part, *, original: bool) -> State:
    """Return the blocks of a rank with their values."""
    state = State(tree.bounding_box[part.slice])
    if original:
        state.fill_constant()
    else:
        state.fill()
    return state


def run(comm: Any, asked: argparse.Namespace) -> list[Row]:
    """Write all files, or read the checkpoints; every rank calls it."""
    if comm.rank == 0:
        asked.out.mkdir(parents=True, exist_ok=True)
    comm.barrier()
    if asked.restart:
        restart(comm, asked.out)
        return []
    counts = block_counts(asked.blocks, comm.size)
    tree = grow(sum(counts))
    if asked.cut == "work" and not asked.original:
        counts = equal_work(tree.work, comm.size)
    part = Part(comm.rank, counts)
    state = made(tree, part, original=asked.original)
    rows = write(comm, asked, tree, state, part)
    if comm.rank == 0:
        (asked.out / NOTE).write_text(json.dumps({"original": asked.original, "blocks": len(tree)}), encoding="utf-8")
        print(table(rows, tree, counts), flush=True)
    comm.barrier()
    return rows


def write(comm: Any, asked: argparse.Namespace, tree: Tree, state: State, part: Part) -> list[Row]:
    """Write the three files in each form, and one level as an array."""
    about = output.attributes(len(tree), "2001-03-20", nsteps=1, now=0.25)
    rows = []
    if asked.format != "zarr":
        for kind in (CHECKPOINT,) if asked.only_checkpoint else KINDS:
            path = asked.out / f"flash_{kind.stem}_0000"
            rows.append(output.write_raw(comm, path, kind, tree, state, part, about, packs=asked.packs))
    if asked.format != "raw":
        with hs.open(asked.out / STORE, "w", comm=comm):
            pass
        for kind in KINDS:
            name = f"{kind.stem}_0000"
            rows.append(output.write_zarr(comm, asked.out / STORE, name, kind, tree, state, part, about))
        level = asked.level or levels.busiest(tree)
        name = f"level_{level}"
        rows.append(levels.write_level(comm, asked.out / STORE, name, PLOTTED, tree, state, part, level))
        levels.verify_level(comm, asked.out / STORE, name, tree, state, part, level)
    return rows


def restart(comm: Any, out: Path) -> None:
    """Read the checkpoints that are there, on this number of ranks, and compare every element."""
    note = json.loads((out / NOTE).read_text(encoding="utf-8"))
    tree = grow(note["blocks"])
    raw = out / f"flash_{CHECKPOINT.stem}_0000"
    step = f"{CHECKPOINT.stem}_0000"
    forms = [form for form, path in (("raw", raw), ("zarr", out / STORE / step)) if path.exists()]
    for form in forms:
        read = output.restart_raw(comm, raw) if form == "raw" else output.restart_zarr(comm, out / STORE, step)
        state, part, records = read
        output.verify(state, part, records, tree, made(tree, part, original=note["original"]))
        comm.barrier()
        say(
            comm, f"restart from {form}: {len(tree)} blocks on {comm.size} ranks, {part.counts}: every element is right"
        )


def table(rows: list[Row], tree: Tree, counts: list[int]) -> str:
    """Return sizes and rates, as the benchmark reports them, beside the sizes that the paper reports."""
    ranks = len(counts)
    leaves = int((tree.node_type == 1).sum())
    lines = [
        f"{len(tree)} blocks of 8 x 8 x 8 zones, {leaves} of them leaves, levels 1 to {tree.refine_level.max()}, "
        f"on {ranks} ranks: {min(counts)} to {max(counts)} each",
        "",
        f"{'file':22} {'form':6} {'MB':>9} {'s':>7} {'MB/s':>8} {'MB a rank':>10} {'paper':>6}  strategy",
    ]
    for row in rows:
        size = row.bytes / MB
        boxes = row.form == "boxes"
        name = row.path.name.replace("_", " ") if boxes else row.kind.name
        # The paper's ranks have 80 to 82 blocks each.
        paper = f"{PAPER[row.kind]:.3f}" if not boxes and 80 <= len(tree) / ranks <= 82 else ""
        lines.append(
            f"{name:22} {row.form:6} {size:9.2f} {row.seconds:7.3f} {size / row.seconds:8.1f} "
            f"{size / ranks:10.3f} {paper:>6}  {row.strategy}"
        )
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Run on threads or under MPI."""
    asked = arguments(argv)
    if asked.threads:
        hs.threads(asked.threads, lambda comm: run(comm, asked))
        return
    from mpi4py import MPI

    run(MPI.COMM_WORLD, asked)


if __name__ == "__main__":
    main()
