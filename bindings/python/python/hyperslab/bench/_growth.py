"""``hyperslab bench growth``: how the time of each operation grows with the work."""

from __future__ import annotations

import argparse
import math
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import hyperslab as hs
from hyperslab._printing import say, say_json
from hyperslab._progress import tell
from hyperslab._quantities import number
from hyperslab._scratch import scratch
from hyperslab.bench._arguments import counts, positive
from hyperslab.bench._launch import about

__all__ = ["add_verb"]

DESCRIPTION = """\
Does each operation with a small amount of work and with 2, 4, 8 and 16 times as much, on threads as ranks, and prints
the times and the exponent by which they grow: 1 is linear. With t(n) = fixed + a n^b, b follows from the times of 1, 4
and 16 times the work, whatever is fixed; it is not given where these differ by less than the clock can tell.
"""

SEED = 20261130
#: How much work is done, in multiples of the smallest.
TIMES = (1, 2, 4, 8, 16)
#: Differences below this say nothing [s].
NOISE_SECONDS = 1e-3
SUFFIXES = {"zarr": ".zarr", "hdf5": ".h5", "netcdf": ".nc", "netcdf4": ".nc4"}


@dataclass(frozen=True)
class Case:
    """One operation at one size, on one rank."""

    path: Path
    comm: hs.ThreadComm
    size: int

    def fresh(self) -> hs.Group:
        """A new store or file."""
        return hs.open(self.path, "w", comm=self.comm, durable=False)

    def opened(self, mode: Any = "r") -> hs.Group:
        """The one that is there."""
        return hs.open(self.path, mode, comm=self.comm, durable=False)

    def random(self) -> np.random.Generator:
        """The same numbers on all ranks."""
        return np.random.default_rng(SEED)

    @property
    def even(self) -> hs.Distribution:
        """As many numbers as there is work, in blocks."""
        return hs.Distribution.block((self.size,), self.comm.size)


#: Prepares a case, and gives what is timed.
Operation = Callable[[Case], Callable[[], object]]


def element_map(case: Case, *, reads: bool) -> Callable[[], object]:
    """An array whose elements ranks hold in random order."""
    mine = case.random().permutation(case.size)[case.comm.rank :: case.comm.size]

    def write() -> None:
        with case.fresh() as file:
            file.write("a", mine.astype(float), hs.ElementMap((case.size,), mine))

    def read() -> None:
        with case.opened() as file:
            file.read("a", hs.ElementMap((case.size,), mine.copy()))

    if reads:
        write()
    return read if reads else write


def boxes(case: Case) -> Callable[[], object]:
    """Many boxes of 4^3 cells."""
    each = [(slice(0, 4), slice(0, 4), slice(4 * at, 4 * at + 4)) for at in range(case.size)][
        case.comm.rank :: case.comm.size
    ]
    parts = [np.full((4, 4, 4), 1.0) for _ in each]

    def write() -> None:
        with case.fresh() as file:
            file.write("a", parts, hs.Boxes((4, 4, 4 * case.size), each))

    return write


def indices(case: Case) -> Callable[[], object]:
    """A list of indices of one array, by each rank alone."""
    with case.fresh() as file:
        file.write("a", np.zeros(case.even.local_shape(case.comm)), case.even)
    wanted = case.random().integers(0, case.size, case.size)

    def read() -> None:
        with case.opened() as file:
            file["a"][wanted]

    return read


def many_arrays(case: Case) -> Callable[[], object]:
    """Small arrays, written by one call."""
    dist = hs.Distribution.block((64,), case.comm.size)
    part = np.zeros(dist.local_shape(case.comm))

    def write() -> None:
        with case.fresh() as file:
            file.write({f"a{at:06}": part for at in range(case.size)}, dist)

    return write


def arrays_in_turn(case: Case) -> Callable[[], object]:
    """Small arrays, each by a call of its own."""
    dist = hs.Distribution.block((64,), case.comm.size)
    part = np.zeros(dist.local_shape(case.comm))

    def write() -> None:
        with case.fresh() as file:
            for at in range(case.size):
                file.write(f"a{at:06}", part, dist, dimension_names=["x"], attributes={"units": "m"})

    return write


def list_arrays(case: Case) -> Callable[[], object]:
    """Opening a store or file of many arrays, and listing them."""
    many_arrays(case)()

    def look() -> None:
        with case.opened() as file:
            list(file)

    return look


def steps(case: Case) -> Callable[[], object]:
    """Steps of one small array each."""
    dist = hs.Distribution.block((64,), case.comm.size)
    part = np.zeros(dist.local_shape(case.comm))

    def write() -> None:
        with case.fresh() as file:
            for at in range(case.size):
                with file.step(f"s{at:06}") as step:
                    step.write("a", part, dist)

    return write


def appends(case: Case) -> Callable[[], object]:
    """One row at a time."""
    dist = hs.Distribution((1, 64), (1, case.comm.size), ("*", "block"))
    part = np.zeros(dist.local_shape(case.comm))
    with case.fresh() as file:
        file.write("a", part, dist, **appendable(case.path))

    def append() -> None:
        with case.opened("r+") as file:
            for _ in range(case.size):
                file.append("a", part, dist)

    return append


def appendable(path: Path) -> dict[str, Any]:
    """What an array that grows is written with."""
    return {"chunks": (16, 64), "maxshape": (None, 64)} if path.suffix == ".h5" else {"chunks": (16, 64)}


def attributes(case: Case) -> Callable[[], object]:
    """One attribute at a time."""

    def write() -> None:
        with case.fresh() as file:
            for at in range(case.size):
                file.attrs[f"n{at:06}"] = at

    return write


def chunks(case: Case, *, reads: bool) -> Callable[[], object]:
    """Chunks of 8 numbers."""
    part = np.zeros(case.even.local_shape(case.comm))

    def write() -> None:
        with case.fresh() as file:
            file.write("a", part, case.even, chunks=(8,))

    def read() -> None:
        with case.opened() as file:
            file.read("a", case.even)

    if reads:
        write()
    return read if reads else write


def depth(case: Case) -> Callable[[], object]:
    """An array below so many groups, written and read."""
    path = "/".join(["g"] * case.size) + "/a"
    dist = hs.Distribution.block((64,), case.comm.size)

    def both() -> None:
        with case.fresh() as file:
            file.write(path, np.zeros(dist.local_shape(case.comm)), dist)
        with case.opened() as file:
            file.read(path, dist)

    return both


def requests(case: Case) -> Callable[[], object]:
    """Calls that are not waited for until the last one was made."""
    dist = hs.Distribution.block((64,), case.comm.size)
    part = np.zeros(dist.local_shape(case.comm))

    def write() -> None:
        with case.fresh() as file:
            for request in [file.iwrite(f"a{at:06}", part, dist) for at in range(case.size)]:
                request.wait()

    return write


#: Operations: the smallest work, the formats, and what is done.
OPERATIONS: dict[str, tuple[int, tuple[str, ...], Operation]] = {
    "element map written": (8192, ("zarr", "hdf5", "netcdf"), lambda case: element_map(case, reads=False)),
    "element map read": (8192, ("zarr", "hdf5", "netcdf"), lambda case: element_map(case, reads=True)),
    "boxes": (256, ("zarr", "hdf5", "netcdf"), boxes),
    "list of indices": (8192, ("zarr", "hdf5", "netcdf"), indices),
    "arrays of one call": (64, ("zarr", "hdf5", "netcdf"), many_arrays),
    "arrays one by one": (64, ("zarr", "hdf5", "netcdf", "netcdf4"), arrays_in_turn),
    "arrays listed": (64, ("zarr", "hdf5", "netcdf"), list_arrays),
    "steps": (32, ("zarr", "hdf5"), steps),
    "appends": (32, ("zarr", "hdf5"), appends),
    "attributes": (32, ("zarr", "hdf5"), attributes),
    "chunks written": (2048, ("zarr", "hdf5"), lambda case: chunks(case, reads=False)),
    "chunks read": (2048, ("zarr", "hdf5"), lambda case: chunks(case, reads=True)),
    "depth of groups": (4, ("zarr", "hdf5"), depth),
    # A new classic file has room for the header of some hundred variables.
    "requests": (32, ("zarr", "hdf5"), requests),
}


def add_verb(which: Any) -> None:
    """Add ``growth`` to the benchmarks."""
    verb = which.add_parser(
        "growth",
        help="how the time of each operation grows with the work",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("--ranks", type=counts, default=[1, 2], help="numbers of threads; 1,2 by default")
    verb.add_argument("--formats", nargs="+", choices=SUFFIXES, default=list(SUFFIXES), help="which formats")
    verb.add_argument("--operations", nargs="+", help="only those whose names begin so")
    verb.add_argument("--scale", type=positive, default=1, help="multiplies all work; 1 by default")
    verb.add_argument("--directory", type=Path, default=Path(), help="where scratch files go; here by default")
    verb.add_argument("--repetitions", type=positive, default=3, help="the fastest of so many counts; 3 by default")
    verb.add_argument("--json", action="store_true", help="print all times as JSON")
    verb.set_defaults(run=run)


def once(operation: Operation, path: Path, ranks: int, size: int) -> float:
    """How long it takes all ranks [s]."""

    def rank(comm: hs.ThreadComm) -> float:
        act = operation(Case(path, comm, size))
        comm.barrier()
        begin = time.perf_counter()
        act()
        comm.barrier()
        return time.perf_counter() - begin

    taken = hs.threads(ranks, rank)
    shutil.rmtree(path, ignore_errors=True)
    path.unlink(missing_ok=True)
    return max(taken)


def exponent(seconds: list[float]) -> float | None:
    """By which power times grow, if they grow enough to tell."""
    first, last = seconds[2] - seconds[0], seconds[4] - seconds[2]
    return math.log(last / first, TIMES[2]) if min(first, last) > NOISE_SECONDS else None


def run(args: argparse.Namespace) -> int:
    """Measure, and print."""
    args.directory.mkdir(parents=True, exist_ok=True)
    facts, found = about(args.directory), []
    with scratch("hyperslab-bench-", args.directory) as place:
        for name, (smallest, formats, operation) in OPERATIONS.items():
            if args.operations and not name.startswith(tuple(args.operations)):
                continue
            for form in [form for form in formats if form in args.formats]:
                for ranks in args.ranks:
                    tell(f"measuring {name}, {form}, {ranks} ranks ...")
                    sizes = [smallest * args.scale * times for times in TIMES]
                    path = place / f"growth{SUFFIXES[form]}"
                    rounds = [[once(operation, path, ranks, size) for size in sizes] for _ in range(args.repetitions)]
                    seconds = [min(each) for each in zip(*rounds, strict=True)]
                    found.append(
                        {
                            "operation": name,
                            "format": form,
                            "ranks": ranks,
                            "sizes": sizes,
                            "seconds": seconds,
                            "exponent": exponent(seconds),
                        }
                    )
    if args.json:
        say_json({"about": facts, "growth": found})
        return 0
    for fact, text in facts.items():
        say(f"{fact + ':':9}{text}")
    say()
    times = "".join(f"{f'{times}x':>8}" for times in TIMES)
    say(f"{'ms':22}{'format':8}{'ranks':>6}{'smallest':>10}{times}{'exponent':>10}")
    for row in found:
        cells = "".join(f"{number(one * 1e3):>8}" for one in row["seconds"])
        power = "-" if row["exponent"] is None else f"{row['exponent']:.2f}"
        head = f"{row['operation']:22}{row['format']:8}{row['ranks']:>6}{row['sizes'][0]:>10,}"
        say(f"{head}{cells}{power:>10}")
    return 0
