"""``hyperslab bench regret``: how much the library's own choice ever loses against the best simple method."""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hyperslab as hs
from hyperslab._printing import say
from hyperslab._quantities import said_bytes
from hyperslab.bench._arguments import byte_count, counts, positive
from hyperslab.bench._campaign import Campaign
from hyperslab.bench._families import LARGEST_BYTES
from hyperslab.bench._launch import about, find_mpiexec
from hyperslab.bench._regret_tables import case_table, sample_text, summary_text
from hyperslab.bench._scoring import Score, score, summary
from hyperslab.bench._sweep import RANKS

__all__ = ["add_verb"]

DESCRIPTION = """\
Draws a sample of a sweep (whole arrays, chunks across the bounds of ranks, CYCLIC, uneven blocks, sections, reading in
another distribution, many arrays, FLASH, the dumps of a gas cloud; 1-D to 4-D, 64 KiB to 1 GiB, 2, 4 and 8 ranks, with
and without fsync), and does each case as the library chooses, by each strategy over a fixed grid of parameters, and by
MPI-IO with default and other hints where it can do the same.

Every way is checked once. The slow ones drop out, the fastest compete with the library's choice in interleaved rounds.
The best is chosen on half of the rounds and compared on the other half; differences inside of noise are ties. The
choice competes with itself, too, which shows how large noise is. Reads are warm. See docs/benchmarks.md.
"""

#: What --quick stands for.
QUICK_MINUTES, QUICK_LARGEST_BYTES = 3.0, 64 << 20
#: Room that the largest case needs, in memory and on disk, as multiples of what it stores.
ROOM = 4


def add_verb(which: Any) -> None:
    """Add ``regret`` to the benchmarks."""
    verb = which.add_parser(
        "regret",
        help="the library's choice, beside every strategy and MPI-IO, over a sample of many cases",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("--seed", type=int, default=1, help="which sample; 1 by default")
    verb.add_argument(
        "--minutes", type=float, help="how long it may take, 60 by default; cases are drawn while it lasts"
    )
    verb.add_argument("--cases", type=positive, help="most cases; as many as there is time for by default")
    verb.add_argument("--ranks", type=counts, default=list(RANKS), help="numbers of ranks; 2,4,8 by default")
    verb.add_argument("--largest", type=byte_count, help="most bytes that a case stores; 1GiB by default")
    verb.add_argument("--quick", action="store_true", help="3 minutes, up to 64MiB")
    verb.add_argument("--directory", type=Path, default=Path(), help="where scratch files go; here by default")
    verb.add_argument("--output", type=Path, metavar="FILE", help="write all that was measured into this file, as JSON")
    verb.add_argument("--json", action="store_true", help="print all that was measured, as JSON")
    verb.set_defaults(run=run)


def _check_room(largest_bytes: int, directory: Path) -> None:
    """Refuse to begin what disk or memory cannot hold."""
    needed = ROOM * largest_bytes
    free = shutil.disk_usage(directory).free
    if free < needed:
        message = f"cases need up to {said_bytes(needed)} in {directory.resolve()}, which has {said_bytes(free)} free"
        raise hs.StorageError(f"{message}\n  hint: --largest makes them smaller, --directory puts them elsewhere")
    info = Path("/proc/meminfo")
    rows = dict(line.split(":") for line in info.read_text().splitlines()) if info.exists() else {}
    available = int(rows["MemAvailable"].split()[0]) << 10 if "MemAvailable" in rows else needed
    if available < needed:
        message = f"cases need up to {said_bytes(needed)} of memory, of which {said_bytes(available)} are available"
        raise hs.StorageError(f"{message}\n  hint: --largest makes them smaller")


def run(args: argparse.Namespace) -> int:
    """Measure, score, print."""
    began = time.monotonic()
    args.minutes = args.minutes or (QUICK_MINUTES if args.quick else 60.0)
    args.largest = args.largest or (QUICK_LARGEST_BYTES if args.quick else LARGEST_BYTES)
    find_mpiexec()
    args.directory.mkdir(parents=True, exist_ok=True)
    if args.output is not None:
        # Not after an hour should it turn out that this cannot be written.
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.touch()
    _check_room(args.largest, args.directory)
    campaign = Campaign(args.seed, args.ranks, args.largest, args.minutes, args.directory, args.cases)
    campaign.run()
    results, facts = campaign.results, about(args.directory)
    scores = [score(result) for result in results]
    told = json.dumps(_told(args, campaign, scores) | {"about": facts})
    if args.output is not None:
        args.output.write_text(told)
    status = 1 if campaign.died or not results else 0
    if args.json:
        say(told)
        return status
    for name, text in facts.items():
        say(f"{name + ':':9}{text}")
    say(sample_text(campaign, args.seed, (time.monotonic() - began) / 60))
    if results:
        say(f"\n{case_table(results, scores)}\n\n{summary_text(results, scores)}")
    for case in campaign.died:
        say(f"failed: case {case.number}, {case.family}, {case.ranks} ranks, {case.mode}: {case}")
    return status


def _told(args: argparse.Namespace, campaign: Campaign, scores: Sequence[Score]) -> dict[str, Any]:
    """All that was measured, as data."""
    listed = [result | {"score": one.to_json()} for result, one in zip(campaign.results, scores, strict=True)]
    return {
        "seed": args.seed,
        "drawn": campaign.drawn,
        "missing": campaign.missing,
        "failed": [case.to_json() for case in campaign.died],
        "cases": listed,
        "summary": summary(scores) if scores else None,
    }
