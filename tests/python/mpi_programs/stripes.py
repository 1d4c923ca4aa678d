"""Random raw files, striped over directories and not: the same bytes, in the places that the formula names.

Usage: stripes DIRECTORY SEED CASES
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np

from global_arrays import Memory, replace, same, select
from random_cases import Random, section_shape, some_section, some_shape, some_spread

UNITS = (1, 7, 100, 1000, 4096, 65536)


def together(directories: Sequence[Path], name: str, unit: int) -> bytes:
    """The bytes of a striped file: byte ``o`` is in directory ``(o // unit) % n``."""
    parts = [(directory / name).read_bytes() for directory in directories]
    n = len(parts)
    whole = bytearray(sum(map(len, parts)))
    for offset in range(len(whole)):
        whole[offset] = parts[(offset // unit) % n][offset // (unit * n) * unit + offset % unit]
    return bytes(whole)


def run_case(comm: Any, directory: Path, number: int, seed: int) -> None:
    """Write a file twice, change a part of it in place, and read it."""
    random: Random = np.random.default_rng((seed, number))
    disks = [directory / f"{number}-{disk}" for disk in range(int(random.integers(1, 6)))]
    for disk in disks:
        disk.mkdir(parents=True, exist_ok=True)
    unit = int(random.choice(UNITS))
    plain, striped = directory / f"{number}.raw", hs.Striped([*disks], "all.raw", unit=unit)
    shape, order = some_shape(random), random.choice(["C", "F"])
    values = {name: random.normal(size=shape) for name in ("a", "b")[: int(random.integers(0, 3))]}
    header = bytes(int(random.integers(0, 50)))
    kind = str(random.choice(["<f8", ">f4"]))
    spread = some_spread(random, shape, comm.size)
    quads = some_section(random, shape)
    narrow = some_spread(random, section_shape(quads), comm.size)
    new = random.normal(size=narrow.shape)
    options: dict[str, Any] = {"comm": comm, "order": order, "durable": bool(random.random() < 0.5)}
    known = dict.fromkeys(values, (shape, kind))
    for path in (plain, striped):
        parts = {name: Memory().hold(spread.part(each, comm.rank)) for name, each in values.items()}
        with hs.open_raw(path, "w", header=header, **options) as file:
            for name, part in parts.items():
                file.write({name: part}, spread.distribution(), dtype=kind)
        if values:
            section = [tuple(quad) for quad in quads]
            with hs.open_raw(path, "r+", header=len(header), arrays=known, **options) as file:
                file.write({"a": narrow.part(new, comm.rank)}, narrow.distribution(), section=section)
    stored = {name: each.astype(kind) for name, each in values.items()}
    if values:
        replace(stored["a"], quads, new.astype(kind))
    reads = some_spread(random, shape, comm.size)
    with hs.open_raw(striped, header=len(header), arrays=known, **options) as file:
        for name, each in stored.items():
            found = file.read(name, reads.distribution())
            if reads.holds(comm.rank):
                same(found, reads.part(each, comm.rank).astype(found.dtype), f"'{name}' of case {number}")
        if values:
            found = file.read("a", narrow.distribution(), section=[tuple(quad) for quad in quads])
            if narrow.holds(comm.rank):
                same(found, narrow.part(select(stored["a"], quads), comm.rank).astype(found.dtype), "a section")
    if comm.rank == 0:
        expected = header + b"".join(each.tobytes(str(order)) for each in stored.values())
        assert plain.read_bytes() == expected
        assert together(disks, "all.raw", unit) == expected, (number, len(disks), unit)
        for disk in disks:
            assert [found.name for found in disk.iterdir()] == ["all.raw"]


def run_cases(comm: Any, directory: Path, seed: int, cases: int) -> int:
    """Run all cases on one rank; returns how many."""
    for number in range(cases):
        run_case(comm, directory, number, seed)
    return cases


if __name__ == "__main__":
    from mpi4py import MPI

    done = run_cases(MPI.COMM_WORLD, Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    if MPI.COMM_WORLD.rank == 0:
        print(f"{done} cases on {MPI.COMM_WORLD.size} ranks")
