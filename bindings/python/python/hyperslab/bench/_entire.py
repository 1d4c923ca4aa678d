"""``hyperslab bench entire``: a whole array to storage and back, beside the limits of the machine and beside MPI-IO."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from hyperslab._printing import say, say_json
from hyperslab._progress import tell
from hyperslab._quantities import said_bytes
from hyperslab._scratch import scratch
from hyperslab.bench._arguments import byte_count, counts, positive
from hyperslab.bench._entire_tables import Results, case_table, ratios
from hyperslab.bench._launch import about, launch

__all__ = ["add_verb"]

DESCRIPTION = """\
Writes and reads a (BLOCK,BLOCK,BLOCK) array of float64, to one row-major file, to Zarr with natural chunks, and to
Zarr with chunks of 1 MiB, each a file or in shards of 16 MiB; and beside it (a) each rank the same bytes to a file of
its own, (b) all ranks contiguous parts of one file, both in pieces of 4 MiB, and (c) MPI-IO's collective calls with a
subarray filetype, as installed and with the best of some hints.

All modes take turns in one launch for each number of ranks, so that noise meets all of them alike. The clock starts at
a moment for which all ranks wait asleep, and stops when the last rank has its file closed. Making a fresh file is
inside of that for all; removing it is not. A first round, which does not count, warms up memory and checks every byte.
Reads are warm: the files are in the page cache.
"""

#: Shape for the default size; others scale its first dimension.
SHAPE = (512, 512, 256)
ITEM_BYTES = 8


def add_verb(which: Any) -> None:
    """Add ``entire`` to the benchmarks."""
    verb = which.add_parser(
        "entire",
        help="a whole array, beside limits and MPI-IO",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    default = f"{math.prod(SHAPE) * ITEM_BYTES >> 20}MiB"
    verb.add_argument(
        "--size", type=byte_count, default=byte_count(default), help=f"of the array; {default} by default"
    )
    verb.add_argument("--ranks", type=counts, default=[2, 8], help="numbers of ranks, such as 2,8")
    verb.add_argument("--directory", type=Path, default=Path(), help="where scratch files go; here by default")
    verb.add_argument("--repetitions", type=positive, default=5, help="rounds that count; 5 by default")
    verb.add_argument("--json", action="store_true", help="print all times as JSON")
    verb.set_defaults(run=run)


def shape_of(size_bytes: int) -> tuple[int, int, int]:
    """The shape of an array of about this size: planes of the default shape, or smaller planes for small arrays."""
    elements = max(1, size_bytes // ITEM_BYTES)
    _, rows, columns = SHAPE
    while rows * columns > elements // 8 and rows > 8:
        rows, columns = rows // 2, columns // 2
    return (max(1, elements // (rows * columns)), rows, columns)


def measure(ranks: int, shape: tuple[int, ...], repetitions: int, directory: Path) -> Results:
    """Launch ranks that measure, and return what they found.

    Raises
    ------
    PeerError
        When they fail.
    """
    with scratch("hyperslab-bench-", directory) as place:
        task, answer = place / "task.json", place / "results.json"
        told = {"directory": str(place), "shape": shape, "repetitions": repetitions, "answer": str(answer)}
        task.write_text(json.dumps(told))
        launch(ranks, "_entire_ranks", task)
        results: Results = json.loads(answer.read_text())
        return results


def run(args: argparse.Namespace) -> int:
    """Measure for each number of ranks, and print."""
    args.directory.mkdir(parents=True, exist_ok=True)
    shape = shape_of(args.size)
    facts = about(args.directory)
    found = []
    for ranks in args.ranks:
        tell(f"measuring on {ranks} ranks ...")
        found.append(measure(ranks, shape, args.repetitions, args.directory))
    if args.json:
        launches = [result | {"ratios": ratios(result)} for result in found]
        say_json({"about": facts, "launches": launches})
        return 0
    for name, text in facts.items():
        say(f"{name + ':':9}{text}")
    say(f"array:   float64 {shape}, {said_bytes(math.prod(shape) * ITEM_BYTES)}, (BLOCK,BLOCK,BLOCK)")
    for result in found:
        say()
        say(case_table(result))
    return 0
