"""``hyperslab bench formats``: the same array in each format, beside its raw bytes and beside h5py."""

from __future__ import annotations

import argparse
import json
import math
import statistics
from pathlib import Path
from typing import Any

from hyperslab._printing import say, say_json
from hyperslab._progress import tell
from hyperslab._quantities import bytes_unit, number, said_bytes, seconds_unit
from hyperslab._scratch import scratch
from hyperslab.bench._arguments import byte_count, counts, positive
from hyperslab.bench._entire import ITEM_BYTES, shape_of
from hyperslab.bench._launch import about, launch

__all__ = ["RAW", "add_verb"]

DESCRIPTION = """\
Writes and reads a (BLOCK,BLOCK,BLOCK) array of float64 as a raw file, NetCDF, Zarr and HDF5, plain and compressed (gzip
of level 1 behind shuffle, chunks of at most 1 MiB); and, where h5py is installed, the same by h5py on rank 0, which
gathers all, and on all ranks where h5py is built with parallel HDF5. Elements are those of a smooth field in steps of
2^-12, which gzip makes about four times smaller.

Then FLASH's checkpoint (Ross et al. 2001): 24 variables, interleaved in memory, in blocks of 8^3 cells with a halo of
4, each variable an array of the file. Where h5py is parallel, it writes the same with hyperslabs of memory, as in the
paper, and packed by hand.

All modes take turns in one launch for each number of ranks. A first round tells what the first call costs, and every
element is compared after it. Opening, making and closing the file are inside of each time; reads are warm.
"""

#: The contender that the others are held against.
RAW = "hyperslab, raw"


def add_verb(which: Any) -> None:
    """Add ``formats`` to the benchmarks."""
    verb = which.add_parser(
        "formats",
        help="the same array in each format, beside raw bytes and h5py",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("--size", type=byte_count, default=byte_count("128MiB"), help="of the array; 128MiB by default")
    verb.add_argument("--ranks", type=counts, default=[2], help="numbers of ranks, such as 2,8; 2 by default")
    verb.add_argument("--directory", type=Path, default=Path(), help="where scratch files go; here by default")
    verb.add_argument("--blocks", type=int, default=80, help="of FLASH on each rank; 80 by default, 0 for none")
    verb.add_argument("--repetitions", type=positive, default=5, help="rounds that count; 5 by default")
    verb.add_argument("--durable", action="store_true", help="files are on disk before they are there (fsync)")
    verb.add_argument("--json", action="store_true", help="print all times as JSON")
    verb.set_defaults(run=run)


def measure(ranks: int, args: argparse.Namespace) -> dict[str, Any]:
    """Launch ranks that measure, and return what they found."""
    with scratch("hyperslab-bench-", args.directory) as place:
        task, answer = place / "task.json", place / "results.json"
        told = {
            "directory": str(place),
            "shape": shape_of(args.size),
            "repetitions": args.repetitions,
            "blocks": args.blocks,
            "durable": args.durable,
            "answer": str(answer),
        }
        task.write_text(json.dumps(told))
        launch(ranks, "_formats_ranks", task)
        results: dict[str, Any] = json.loads(answer.read_text())
        return results


def table(result: dict[str, Any]) -> str:
    """A table of one launch: times of the first and of later calls, and how they compare with raw files."""
    cases = result["cases"].values()
    measured = [one for case in cases for seconds in case["seconds"].values() for one in seconds]
    unit, second = seconds_unit(measured)
    rates = [case["bytes"] / one for case in cases for seconds in case["seconds"].values() for one in seconds]
    rate_unit, byte = bytes_unit(rates)
    lines = [f"{result['ranks']} ranks, median of {result['repetitions']} [fastest, slowest], {result['mpi']}"]
    for title, case in result["cases"].items():
        columns = f"{'first':>9}{unit:>9} {'':18}{rate_unit + '/s':>7}{'of raw':>9}{'file':>10}"
        lines.append(f"{title:36}{columns}")
        raw = statistics.median(case["seconds"][RAW][1:])
        for name, (first, *later) in case["seconds"].items():
            middle = statistics.median(later)
            spread = f"[{number(min(later) / second)}, {number(max(later) / second)}]"
            line = f"  {name:34}{number(first / second):>9}{number(middle / second):>9} {spread:18}"
            stored = said_bytes(case["stored_bytes"][name])
            lines.append(f"{line}{number(case['bytes'] / middle / byte):>7}{number(middle / raw):>9}{stored:>10}")
    return "\n".join(lines)


def run(args: argparse.Namespace) -> int:
    """Measure for each number of ranks, and print."""
    args.directory.mkdir(parents=True, exist_ok=True)
    facts, found = about(args.directory), []
    for ranks in args.ranks:
        tell(f"measuring on {ranks} ranks ...")
        found.append(measure(ranks, args))
    if args.json:
        say_json({"about": facts, "launches": found})
        return 0
    for name, text in facts.items():
        say(f"{name + ':':9}{text}")
    shape = shape_of(args.size)
    say(f"array:   float64 {shape}, {said_bytes(math.prod(shape) * ITEM_BYTES)}, (BLOCK,BLOCK,BLOCK)")
    for result in found:
        say()
        say(table(result))
    return 0
