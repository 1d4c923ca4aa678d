"""``hyperslab bench flash``: the three files of the FLASH I/O benchmark, beside PnetCDF."""

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

__all__ = ["add_verb"]

DESCRIPTION = """\
Writes the files of the FLASH I/O benchmark: a checkpoint (24 variables of 8^3 cells a block, doubles out of
interleaved memory with a halo), a plotfile (4 of them in single precision) and one at corners (4 variables of 9^3
points), each with six records about the tree. The time is that of one file from its making to its closing. The first
call of a process counts for itself, since a dump happens once.

Beside it stands PnetCDF where --pnetcdf names its library, by the calls of the program that comes with it. It must be
made for the MPI of mpi4py. All take turns in one launch; every element of the first round is compared.
"""
FORMS = ("raw", "netcdf", "hdf5", "zarr")
KINDS = ("checkpoint", "plotfile", "corners")


def add_verb(which: Any) -> None:
    """Add ``flash`` to the benchmarks."""
    verb = which.add_parser(
        "flash",
        help="the files of the FLASH I/O benchmark beside PnetCDF",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("--ranks", type=counts, default=[2], help="numbers of ranks, such as 2,8; 2 by default")
    verb.add_argument("--blocks", type=positive, default=80, help="blocks a rank, or one or two more; 80 by default")
    verb.add_argument("--forms", nargs="+", choices=FORMS, default=list(FORMS), help="which formats")
    verb.add_argument("--durable", action="store_true", help="whether files are to reach the disk (fsync)")
    verb.add_argument("--pnetcdf", type=Path, help="libpnetcdf.so, made for the MPI of mpi4py")
    verb.add_argument(
        "--launches", type=positive, default=3, help="launches, of which each has first calls; 3 by default"
    )
    verb.add_argument("--directory", type=Path, default=Path(), help="where scratch files go; here by default")
    verb.add_argument("--repetitions", type=positive, default=5, help="later rounds of each launch; 5 by default")
    verb.add_argument("--json", action="store_true", help="print all times as JSON")
    verb.set_defaults(run=run)


def measure(ranks: int, args: argparse.Namespace) -> dict[str, Any]:
    """Launch ranks that measure, and return what they found."""
    told = {
        "blocks": args.blocks,
        "forms": args.forms,
        "durable": args.durable,
        "pnetcdf": args.pnetcdf and str(args.pnetcdf.resolve()),
        "repetitions": args.repetitions,
    }
    return measured(ranks, "_flash_ranks", args.directory, told)


def table(launches: list[dict[str, Any]]) -> str:
    """A table of the launches on as many ranks: medians of first and later calls, and how much longer PnetCDF takes."""
    ways = launches[0]["seconds"]

    def middle(way: str, kind: str, *, first: bool) -> float:
        each = [one["seconds"][way][kind] for one in launches]
        return statistics.median([times[0] for times in each] if first else [t for times in each for t in times[1:]])

    heads = "".join(f"{kind + ', first':>20}{'later':>9}" for kind in KINDS)
    lines = [f"{launches[0]['ranks']} ranks, {launches[0]['blocks']} blocks, ms", f"{'':16}{heads}"]
    for way in ways:
        both = [(middle(way, kind, first=True), middle(way, kind, first=False)) for kind in KINDS]
        lines.append(f"{way:16}" + "".join(f"{number(one * 1e3):>20}{number(two * 1e3):>9}" for one, two in both))
    for way in [way for way in ways if way != "PnetCDF"] if "PnetCDF" in ways else []:
        cells = [
            [middle("PnetCDF", kind, first=first) / middle(way, kind, first=first) for first in (True, False)]
            for kind in KINDS
        ]
        lines.append(
            f"{'PnetCDF / ' + way:16}" + "".join(f"{number(one) + 'x':>20}{number(two) + 'x':>9}" for one, two in cells)
        )
    return "\n".join(lines)


def run(args: argparse.Namespace) -> int:
    """Measure for each number of ranks, and print."""
    args.directory.mkdir(parents=True, exist_ok=True)
    facts, found = about(args.directory), []
    for ranks in args.ranks:
        tell(f"measuring on {ranks} ranks ...")
        found.append([measure(ranks, args) for _ in range(args.launches)])
    if args.json:
        say_json({"about": facts, "launches": found})
        return 0
    for name, text in facts.items():
        say(f"{name + ':':9}{text}")
    if found[0][0]["peer"]:
        say(f"{'peer:':9}PnetCDF {found[0][0]['peer']}")
    for launches in found:
        say()
        say(table(launches))
    return 0
