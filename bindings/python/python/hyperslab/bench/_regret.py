"""``hyperslab bench regret``: how much the library's own choice ever loses against the best simple method."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hyperslab as hs
from hyperslab.bench._arguments import byte_count, counts, positive
from hyperslab.bench._cases import Case
from hyperslab.bench._families import LARGEST_BYTES
from hyperslab.bench._launch import about, find_mpiexec, launch
from hyperslab.bench._regret_tables import case_table, summary_text
from hyperslab.bench._scoring import score, summary
from hyperslab.bench._sweep import RANKS, sweep

__all__ = ["add_verb", "estimate"]

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
#: Share of the time for which cases are drawn; the rest is for those that are slower than estimated.
PLANNED_SHARE = 0.8
#: Runs of all transfers of a case: checks, qualifying, and the rounds that count.
TRANSFERS = 90
#: What a transfer costs on this many ranks [s], for each file [s], and by what it moves [B/s].
BASE_SECONDS = {2: 0.015, 4: 0.03, 8: 0.06}
FILE_SECONDS = 0.0002
RATES = {"write": 1.0e9, "write, fsync": 0.5e9, "read": 1.5e9}
#: A short case gets this time for many rounds, since its times spread more [s].
LEAST_SECONDS = 12.0
#: What is not timed: making arrays and files, and checking [B/s].
SETUP_RATE = 0.1e9
#: Launches on one number of ranks that may die before the rest of their cases is given up.
MOST_DEATHS = 3
#: Room that a case needs, in memory and on disk, as multiples of what it stores.
ROOM = 4

Result = dict[str, Any]


def add_verb(which: Any) -> None:
    """Add ``regret`` to the benchmarks."""
    verb = which.add_parser(
        "regret",
        help="the library's choice, beside every strategy and MPI-IO, over a sample of many cases",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("--seed", type=int, default=1, help="which sample; 1 by default")
    verb.add_argument("--minutes", type=float, help="how long it may take, 60 by default; decides how many cases")
    verb.add_argument("--cases", type=positive, help="how many cases, if all can be done in time")
    verb.add_argument("--ranks", type=counts, default=list(RANKS), help="numbers of ranks; 2,4,8 by default")
    verb.add_argument("--largest", type=byte_count, help="most bytes that a case stores; 1GiB by default")
    verb.add_argument("--quick", action="store_true", help="3 minutes, up to 64MiB")
    verb.add_argument("--directory", type=Path, default=Path(), help="where scratch files go; here by default")
    verb.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured to this file")
    verb.set_defaults(run=run)


def estimate(case: Case) -> float:
    """About how long a case takes [s]."""
    base = BASE_SECONDS.get(case.ranks, 0.008 * case.ranks) + FILE_SECONDS * case.files
    short = 1 + 64 / max(1, case.run_bytes)  # loops over short runs, of the file or of memory
    short *= 3 if case.memory == "interleaved" else 1
    moving = TRANSFERS * (base + short * case.bytes / RATES[case.mode])
    return max(LEAST_SECONDS, moving + case.stored_bytes / SETUP_RATE)


def drawn(args: argparse.Namespace) -> list[Case]:
    """The cases that fit into the time, or as many as were asked for."""
    cases: list[Case] = []
    seconds = 0.0
    for case in sweep(args.seed, args.ranks, args.largest):
        seconds += estimate(case)
        if len(cases) == args.cases or (args.cases is None and seconds > PLANNED_SHARE * 60 * args.minutes):
            return cases
        cases.append(case)
    raise AssertionError("a sweep has no end")


def _check_room(cases: Sequence[Case], directory: Path) -> None:
    """Refuse to begin what disk or memory cannot hold."""
    needed = ROOM * max((case.stored_bytes for case in cases), default=0)
    free = shutil.disk_usage(directory).free
    if free < needed:
        message = f"cases need up to {needed} B in {directory.resolve()}, which has {free} B free"
        raise hs.StorageError(f"{message}\n  hint: --largest makes them smaller, --directory puts them elsewhere")
    info = Path("/proc/meminfo")
    rows = dict(line.split(":") for line in info.read_text().splitlines()) if info.exists() else {}
    available = int(rows["MemAvailable"].split()[0]) << 10 if "MemAvailable" in rows else needed
    if available < needed:
        message = f"cases need up to {needed} B of memory, of which {available} B are available"
        raise hs.StorageError(f"{message}\n  hint: --largest makes them smaller")


def _measure(ranks: int, cases: list[Case], deadline: float, directory: Path) -> tuple[list[Result], list[Case]]:
    """What was found about cases of one number of ranks, and the cases at which ranks died."""
    found: list[Result] = []
    died: list[Case] = []
    while cases and len(died) <= MOST_DEATHS:
        with tempfile.TemporaryDirectory(prefix="hyperslab-bench-", dir=directory) as scratch:
            task, answer = Path(scratch) / "task.json", Path(scratch) / "results.jsonl"
            estimates = [estimate(case) for case in cases]
            told = {"directory": scratch, "answer": str(answer), "deadline": deadline, "estimates": estimates}
            task.write_text(json.dumps(told | {"cases": [case.to_json() for case in cases]}))
            ended = True
            try:
                launch(ranks, "_regret_ranks", task)
            except hs.PeerError as error:
                print(error, file=sys.stderr)
                ended = False
            lines = [json.loads(line) for line in answer.read_text().splitlines()] if answer.exists() else []
        found += [line for line in lines if "skipped" not in line]
        if ended or len(lines) == len(cases):
            break
        died.append(cases[len(lines)])
        print(f"  ranks died at case {died[-1].number}: {died[-1]}", file=sys.stderr)
        cases = cases[len(lines) + 1 :]
    return found, died


def measure(args: argparse.Namespace, cases: Sequence[Case]) -> tuple[list[Result], list[Case]]:
    """Launch once for each number of ranks; returns results in the order of the cases, and cases that failed."""
    end = time.monotonic() + 60 * args.minutes
    groups = {ranks: [case for case in cases if case.ranks == ranks] for ranks in args.ranks}
    results, died = [], []
    while groups:
        ranks, group = groups.popitem()
        # If time runs out, chance decides which cases are left out.
        random.Random(f"{args.seed} {ranks}").shuffle(group)
        own, rest = (sum(map(estimate, some)) for some in (group, [case for each in groups.values() for case in each]))
        now = time.monotonic()
        deadline = now + (end - now) * own / max(own + rest, 1e-9)
        print(f"measuring {len(group)} cases on {ranks} ranks ...", file=sys.stderr)
        found, lost = _measure(ranks, group, deadline, args.directory)
        results += found
        died += lost
    return sorted(results, key=lambda result: int(result["case"]["number"])), died


def run(args: argparse.Namespace) -> int:
    """Measure, score, print."""
    args.minutes = args.minutes or (QUICK_MINUTES if args.quick else 60.0)
    args.largest = args.largest or (QUICK_LARGEST_BYTES if args.quick else LARGEST_BYTES)
    find_mpiexec()
    args.directory.mkdir(parents=True, exist_ok=True)
    if args.json is not None:
        # Not after an hour should it turn out that this cannot be written.
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.touch()
    cases = drawn(args)
    _check_room(cases, args.directory)
    results, died = measure(args, cases)
    facts = about(args.directory)
    missing = [case.number for case in cases if case.number not in [result["case"]["number"] for result in results]]
    scores = [score(result) for result in results]
    if args.json is not None:
        listed = [result | {"score": one.to_json()} for result, one in zip(results, scores, strict=True)]
        told = {"about": facts, "seed": args.seed, "drawn": len(cases), "missing": missing, "cases": listed}
        told |= {"failed": [case.to_json() for case in died], "summary": summary(scores) if scores else None}
        args.json.write_text(json.dumps(told))
    for name, text in facts.items():
        print(f"{name + ':':9}{text}")
    print(f"sample:  {len(results)} of {len(cases)} cases of seed {args.seed}")
    if results:
        print(f"\n{case_table(results, scores)}\n\n{summary_text(results, scores)}")
    if missing:
        print(f"not measured: {', '.join(map(str, missing))}")
    for case in died:
        print(f"failed: case {case.number}, {case.family}, {case.ranks} ranks, {case.mode}: {case}")
    return 1 if died or not results else 0
