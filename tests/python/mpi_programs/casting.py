"""Floats become integers, or are refused, through every door of `casting_cases`, on ranks that are processes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
from mpi4py import MPI

from casting_cases import DOORS, Door, floats, integers

COMM = MPI.COMM_WORLD


def outcome(door: Door, path: Path, *, nan: bool, **rule: Any) -> Any:
    """What this rank read, or the words of the error, which are the same on all ranks."""
    COMM.barrier()
    try:
        found = door.act(COMM, path, rule, floats(nan=nan))
    except hs.InvalidError as error:
        (told,) = set(COMM.allgather(str(error)))
        return told
    return None if door.written is not None else np.concatenate(COMM.allgather(found))


def check(name: str, door: Door, path: Path) -> None:
    def prepare(where: str, *, nan: bool = False) -> Path:
        if COMM.rank == 0:
            (path / where).mkdir(parents=True)
            door.prepare(path / where, floats(nan=nan))
        return path / where

    told = outcome(door, prepare("refused"), nan=False)
    assert "from float64 to int16" in told, (name, told)
    told = outcome(door, prepare("nan", nan=True), nan=True, casting="unsafe")
    assert "NaN" in told, (name, told)
    assert f"'{door.name}'" in told, (name, told)
    where = prepare("done")
    found = outcome(door, where, nan=False, casting="unsafe")
    assert not isinstance(found, str), (name, found)
    COMM.barrier()
    np.testing.assert_array_equal(found if door.written is None else door.written(where), integers(), name)


for number, (name, door) in enumerate(DOORS.items()):
    check(name, door, Path(sys.argv[1]) / str(number))
if COMM.rank == 0:
    print(f"{len(DOORS)} doors")
