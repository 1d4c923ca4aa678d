"""Writes until it is killed; run by `test_torn` and `test_stripes`.

Usage: dying_writer step|steps|raw|striped|stripes DIRECTORY

Prints a line when it has got to where it is to be killed, and then waits; `steps` and `stripes` go on writing.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import hyperslab as hs
import numpy as np

SHAPE = (64, 64)


def wait() -> None:
    """Tell that the moment has come."""
    print("now", flush=True)
    time.sleep(60)


def step(directory: Path) -> None:
    """All of a step is written and on disk; only its name is missing."""
    with hs.open(directory / "a.zarr", "r+", comm=None) as store, store.step("0001", before_publish=wait) as group:
        group.write({"a": np.ones(SHAPE), "b": np.ones(SHAPE)})


def steps(directory: Path) -> None:
    """One step after another, of two arrays each that hold the number of the step."""
    with hs.open(directory / "a.zarr", "w", comm=None, durable=False) as store:
        print("now", flush=True)
        for number in range(100_000):
            with store.step(f"{number:06}", attributes={"number": number}) as group:
                group.write({"a": np.full(SHAPE, number), "b": np.full(SHAPE, -number)}, chunks=(16, 16))


def raw(directory: Path) -> None:
    """A new file is complete but not closed."""
    with hs.open_raw(directory / "a.raw", "w", comm=None, header=b"new") as file:
        file.write({"a": np.ones(SHAPE)})
        wait()


def stripes_of(directory: Path) -> hs.Striped:
    """A file in three directories."""
    return hs.Striped([directory / str(number) for number in range(3)], "a.raw", unit=1000)


def striped(directory: Path) -> None:
    """A new striped file is complete but not closed."""
    with hs.open_raw(stripes_of(directory), "w", comm=None, header=b"head") as file:
        file.write({"a": np.full(SHAPE, 2.0)})
        wait()


def stripes(directory: Path) -> None:
    """One striped file after another, each in the place of the last."""
    print("now", flush=True)
    for number in range(100_000):
        with hs.open_raw(stripes_of(directory), "w", comm=None, header=b"head", durable=False) as file:
            file.write({"a": np.full(SHAPE, float(number))})


SCENARIOS = {"step": step, "steps": steps, "raw": raw, "striped": striped, "stripes": stripes}

if __name__ == "__main__":
    SCENARIOS[sys.argv[1]](Path(sys.argv[2]))
