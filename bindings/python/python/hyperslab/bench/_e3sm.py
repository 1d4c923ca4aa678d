"""``hyperslab bench e3sm``: the history output of a climate model, beside PnetCDF."""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import Any

import hyperslab as hs
from hyperslab._printing import say, say_json
from hyperslab._progress import tell
from hyperslab._quantities import number, said_bytes
from hyperslab.bench._arguments import counts, positive
from hyperslab.bench._launch import about, measured

__all__ = ["add_verb"]

DESCRIPTION = """\
Writes the history of a climate model: hundreds of variables of a few types, most of them spread over the ranks by one
of a few maps of elements (decompositions), the others whole on each rank; all in one batch, and one by one. Reads all
of it in blocks. MAP is a file of decompositions as E3SM-IO has them, HEADER what 'ncdump -h' prints of the history.
Without both it is a small case of our own.

Beside it stands PnetCDF where --pnetcdf names its library: nonblocking calls of a list of parts for each variable and
one wait for a record, or one collective call a variable; with its default hints and with the best of some. It must be
made for the MPI of mpi4py. All take turns in one launch; every element is compared once. Files are warm and not synced.
"""
ORDERS = ("batch", "one by one", "read")
FORMATS = ("netcdf", "netcdf4", "zarr")


def lengths(text: str) -> dict[str, int]:
    """Lengths of dimensions, such as nCells=285,nEdges=879."""
    return {name: int(length) for name, length in (one.split("=") for one in text.split(","))}


def add_verb(which: Any) -> None:
    """Add ``e3sm`` to the benchmarks."""
    verb = which.add_parser(
        "e3sm",
        help="the history of a climate model beside PnetCDF",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("map", nargs="?", type=Path, help="file of decompositions, in any format of NetCDF")
    verb.add_argument("header", nargs="?", type=Path, help="what ncdump -h printed")
    verb.add_argument("--dims", type=lengths, default={}, help="other lengths of dimensions, such as nCells=285")
    verb.add_argument("--ranks", type=counts, default=[2], help="numbers of ranks, such as 2,8; 2 by default")
    verb.add_argument("--records", type=positive, default=1, help="records of the history; 1 by default")
    verb.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS), help="which formats")
    verb.add_argument("--pnetcdf", type=Path, help="libpnetcdf.so, made for the MPI of mpi4py")
    verb.add_argument(
        "--hints", type=int, default=4, help="sets of hints that PnetCDF tries beside its own; 4 by default"
    )
    verb.add_argument("--directory", type=Path, default=Path(), help="where scratch files go; here by default")
    verb.add_argument("--repetitions", type=positive, default=5, help="rounds that count; 5 by default")
    verb.add_argument("--json", action="store_true", help="print all times as JSON")
    verb.set_defaults(run=run)


def measure(ranks: int, args: argparse.Namespace) -> dict[str, Any]:
    """Launch ranks that measure, and return what they found."""
    told = {
        "map": args.map and str(args.map.resolve()),
        "header": args.header and str(args.header.resolve()),
        "dims": args.dims,
        "records": args.records,
        "formats": args.formats,
        "pnetcdf": args.pnetcdf and str(args.pnetcdf.resolve()),
        "hints": args.hints,
        "repetitions": args.repetitions,
    }
    return measured(ranks, "_e3sm_ranks", args.directory, told)


def table(result: dict[str, Any]) -> str:
    """A table of one launch: first calls, medians, and how much longer PnetCDF takes."""
    head = f"{result['variables']} variables, {said_bytes(result['bytes'])}, {result['records']} records, "
    lines = [head + f"{result['ranks']} ranks, ms", f"{'':18}" + "".join(f"{'first':>10}{one:>12}" for one in ORDERS)]
    middle = {
        way: {order: statistics.median(times[1:] or times) for order, times in each.items()}
        for way, each in result["seconds"].items()
    }
    for way, each in result["seconds"].items():
        cells = [(each[one][0], middle[way][one]) if one in each else (None, None) for one in ORDERS]
        line = "".join(
            f"{'-' if first is None else number(first * 1e3):>10}{'-' if later is None else number(later * 1e3):>12}"
            for first, later in cells
        )
        lines.append(f"{way:18}{line}")
    peers = [way for way in middle if way.startswith("PnetCDF")]
    for way in [] if not peers else [one for one in middle if one not in peers]:
        ratios = []
        for order in ORDERS:
            best = min(middle[peer][order] for peer in peers if order in middle[peer])
            ratios.append(f"{'':10}{number(best / middle[way][order]) + 'x':>12}")
        lines.append(f"{'best / ' + way:18}" + "".join(ratios))
    return "\n".join(lines)


def run(args: argparse.Namespace) -> int:
    """Measure for each number of ranks, and print."""
    if (args.map is None) != (args.header is None):
        message = "a map without a header\n  hint: give both, or neither for the small case"
        raise hs.InvalidError(message)
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
    if found and found[0]["peer"]:
        say(f"{'peer:':9}PnetCDF {found[0]['peer']}")
    for result in found:
        say()
        say(table(result))
    return 0
