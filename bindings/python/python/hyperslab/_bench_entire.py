"""``hyperslab bench entire``: a whole array to storage and back, beside the limits of the machine and beside MPI-IO."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import hyperslab as hs
from hyperslab._bench_tables import Results, case_table, ratios

__all__ = ["add_verb"]

DESCRIPTION = """\
Writes and reads a (BLOCK,BLOCK,BLOCK) array of float64, to one row-major file and to Zarr with natural chunks, and
beside it (a) each rank the same bytes to a file of its own, (b) all ranks contiguous parts of one file, both in pieces
of 4 MiB, and (c) MPI-IO's collective calls with a subarray filetype, as installed and with the best of some hints.

All modes take turns in one launch for each number of ranks, so that noise meets all of them alike. The clock starts at
a moment for which all ranks wait asleep, and stops when the last rank has its file closed. Making a fresh file is
inside of that for all; removing it is not. A first round, which does not count, warms up memory and checks every byte.
Reads are warm: the files are in the page cache.
"""

#: Shape for the default size; others scale its first dimension.
SHAPE = (512, 512, 256)
ITEM_BYTES = 8
UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


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
    verb.add_argument("--ranks", type=_counts, default=[2, 8], help="numbers of ranks, such as 2,8")
    verb.add_argument("--directory", type=Path, default=Path(), help="where scratch files go; here by default")
    verb.add_argument("--repetitions", type=_positive, default=5, help="rounds that count; 5 by default")
    verb.add_argument("--json", action="store_true", help="print all times as JSON")
    verb.set_defaults(run=run)


def byte_count(text: str) -> int:
    """A number of bytes, such as ``64MiB``."""
    digits = text.rstrip("BKMGi")
    unit = text[len(digits) :]
    if not digits.isdigit() or unit not in UNITS:
        message = f"{text!r} is no size such as 64MiB or 1GiB"
        raise argparse.ArgumentTypeError(message)
    return int(digits) * UNITS[unit]


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        message = f"{text!r} is not 1 or more"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def _counts(text: str) -> list[int]:
    return [_positive(part) for part in text.split(",")]


def shape_of(size_bytes: int) -> tuple[int, int, int]:
    """The shape of an array of about this size: planes of the default shape, or smaller planes for small arrays."""
    elements = max(1, size_bytes // ITEM_BYTES)
    _, rows, columns = SHAPE
    while rows * columns > elements // 8 and rows > 8:
        rows, columns = rows // 2, columns // 2
    return (max(1, elements // (rows * columns)), rows, columns)


def find_mpiexec() -> Path:
    """The launcher beside this interpreter, or else the one on the path.

    Raises
    ------
    NotFoundError
        When there is none.
    """
    beside = Path(sys.executable).with_name("mpiexec")
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        message = f"there is no mpiexec beside {sys.executable} or on the path\n  hint: pip install mpich mpi4py"
        raise hs.NotFoundError(message)
    return Path(found)


def measure(ranks: int, shape: tuple[int, ...], repetitions: int, directory: Path) -> Results:
    """Launch ranks that measure, and return what they found.

    Raises
    ------
    PeerError
        When they fail.
    """
    with tempfile.TemporaryDirectory(prefix="hyperslab-bench-", dir=directory) as scratch:
        answer = Path(scratch) / "results.json"
        task = {"directory": scratch, "shape": shape, "repetitions": repetitions, "answer": str(answer)}
        command = [str(find_mpiexec()), "-n", str(ranks)]
        command += [sys.executable, "-m", "hyperslab._bench_entire_ranks", json.dumps(task)]
        # Progress of the ranks, and their errors, belong to the person; stdout is for the results.
        ended = subprocess.run(command, stdout=sys.stderr, check=False)
        if ended.returncode != 0 or not answer.exists():
            message = f"the measurement on {ranks} ranks ended with status {ended.returncode}: {shlex.join(command)}"
            raise hs.PeerError(message)
        results: Results = json.loads(answer.read_text())
        return results


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _file_system(directory: Path) -> str:
    """Type of the file system of a directory: the one mounted deepest above it."""
    mounts = Path("/proc/self/mounts")
    rows = [line.split()[1:3] for line in mounts.read_text().splitlines()] if mounts.exists() else []
    above = [(len(point), kind) for point, kind in rows if directory.resolve().is_relative_to(point)]
    return max(above)[1] if above else "unknown file system"


def about(directory: Path) -> dict[str, str]:
    """What must be known to repeat a measurement."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0))
    return {
        "machine": f"{_processor()}, {cores} cores, {memory:.0f} GiB, {_file_system(directory)}",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "version": f"hyperslab {hs.__version__}",
        "command": shlex.join(["hyperslab", *sys.argv[1:]]),
    }


def run(args: argparse.Namespace) -> int:
    """Measure for each number of ranks, and print."""
    args.directory.mkdir(parents=True, exist_ok=True)
    shape = shape_of(args.size)
    facts = about(args.directory)
    found = []
    for ranks in args.ranks:
        print(f"measuring on {ranks} ranks ...", file=sys.stderr)
        found.append(measure(ranks, shape, args.repetitions, args.directory))
    if args.json:
        launches = [result | {"ratios": ratios(result)} for result in found]
        print(json.dumps({"about": facts, "launches": launches}))
        return 0
    for name, text in facts.items():
        print(f"{name + ':':9}{text}")
    print(f"array:   float64 {shape}, {math.prod(shape) * ITEM_BYTES / 1e6:.1f} MB, (BLOCK,BLOCK,BLOCK)")
    for result in found:
        print()
        print(case_table(result))
    return 0
