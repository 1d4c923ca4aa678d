"""``hyperslab bench maps``: arrays whose elements ranks hold by lists, beside the way by hand."""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import Any

from hyperslab._printing import say, say_json
from hyperslab._progress import tell
from hyperslab._quantities import number
from hyperslab.bench._arguments import counts, positive
from hyperslab.bench._launch import about, measured

__all__ = ["FORMATS", "KINDS", "add_verb"]

DESCRIPTION = """\
Writes and reads one array of float64 whose elements the ranks hold by element maps: in random order, sorted, and in
runs of 4 and of 100 elements in random order; of one dimension, or of three. Each call has a map that is made anew.

By hand is what a program does without a library: NumPy sorts by owner, one exchange of the places and one of the values
by mpi4py, scattering into a buffer, and one write for each rank; reading is the reverse. It writes a plain file.

All take turns in one launch for each number of ranks and of elements; every element is compared. Files are warm and not
synced. Memory is by how much a call makes the peak of a rank grow, in multiples of its map and values.
"""

#: How elements are dealt to ranks, and the length of runs.
KINDS = {"random": 1, "sorted": 0, "runs of 4": 4, "runs of 100": 100}
#: Formats, and the ends of names of their files.
FORMATS = {"hdf5": ".h5", "netcdf": ".nc", "zarr": ".zarr"}


def add_verb(which: Any) -> None:
    """Add ``maps`` to the benchmarks."""
    verb = which.add_parser(
        "maps",
        help="element maps beside the way by hand",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("--elements", type=counts, default=[10_000, 100_000, 1_000_000], help="such as 1000,1000000")
    verb.add_argument("--ranks", type=counts, default=[2], help="numbers of ranks, such as 2,8; 2 by default")
    verb.add_argument("--dimensions", type=int, choices=(1, 3), default=1, help="of the array; 1 by default")
    verb.add_argument("--chunks", type=positive, default=16, help="of the array in Zarr; 16 by default")
    verb.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="how elements are dealt")
    verb.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS), help="which formats")
    verb.add_argument("--directory", type=Path, default=Path(), help="where scratch files go; here by default")
    verb.add_argument("--repetitions", type=positive, default=5, help="rounds that count; 5 by default")
    verb.add_argument("--json", action="store_true", help="print all times as JSON")
    verb.set_defaults(run=run)


def measure(ranks: int, elements: int, args: argparse.Namespace) -> dict[str, Any]:
    """Launch ranks that measure, and return what they found."""
    told = {
        "elements": elements,
        "dimensions": args.dimensions,
        "chunks": args.chunks,
        "kinds": args.kinds,
        "formats": args.formats,
        "repetitions": args.repetitions,
    }
    return measured(ranks, "_maps_ranks", args.directory, told)


def table(result: dict[str, Any]) -> str:
    """A table of one launch: medians, how they compare with the way by hand, and memory."""
    lines = [f"{result['elements']:,} elements of shape {tuple(result['shape'])}, {result['ranks']} ranks, ms"]
    columns = [
        f"{f'{name} write':>14}{'by hand':>9}{'read':>9}{'by hand':>9}{'memory':>8}" for name in result["formats"]
    ]
    lines.append(f"{'':14}{'by hand w':>10}{'r':>9}" + "".join(columns))
    for kind, case in result["cases"].items():
        middle = {name: [statistics.median(times) * 1e3 for times in both] for name, both in case["seconds"].items()}
        hand = middle.pop("by hand")
        line = f"{kind:14}{number(hand[0]):>10}{number(hand[1]):>9}"
        for name, (write, read) in middle.items():
            ratios = f"{number(write / hand[0])}x", f"{number(read / hand[1])}x"
            memory = f"{number(case['memory'][name])}x"
            line += f"{number(write):>14}{ratios[0]:>9}{number(read):>9}{ratios[1]:>9}{memory:>8}"
        lines.append(line)
    return "\n".join(lines)


def run(args: argparse.Namespace) -> int:
    """Measure for each number of ranks and of elements, and print."""
    args.directory.mkdir(parents=True, exist_ok=True)
    facts, found = about(args.directory), []
    for ranks in args.ranks:
        for elements in args.elements:
            tell(f"measuring {elements:,} elements on {ranks} ranks ...")
            found.append(measure(ranks, elements, args))
    if args.json:
        say_json({"about": facts, "launches": found})
        return 0
    for name, text in facts.items():
        say(f"{name + ':':9}{text}")
    for result in found:
        say()
        say(table(result))
    return 0
