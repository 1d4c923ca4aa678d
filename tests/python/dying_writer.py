"""Writes until it is killed; run by `test_torn`.

Usage: dying_writer step|steps|raw DIRECTORY

Prints a line when it has got to where it is to be killed, and then waits; `steps` goes on writing.
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
    with hs.open(directory / "a.zarr", "r+") as store, store.step("0001", before_publish=wait) as group:
        group.write({"a": np.ones(SHAPE), "b": np.ones(SHAPE)})


def steps(directory: Path) -> None:
    """One step after another, of two arrays each that hold the number of the step."""
    with hs.open(directory / "a.zarr", "w", durable=False) as store:
        print("now", flush=True)
        for number in range(100_000):
            with store.step(f"{number:06}", attributes={"number": number}) as group:
                group.write({"a": np.full(SHAPE, number), "b": np.full(SHAPE, -number)}, chunks=(16, 16))


def raw(directory: Path) -> None:
    """A new file is complete but not closed."""
    with hs.open_raw(directory / "a.raw", "w", header=b"new") as file:
        file.write({"a": np.ones(SHAPE)})
        wait()


if __name__ == "__main__":
    {"step": step, "steps": steps, "raw": raw}[sys.argv[1]](Path(sys.argv[2]))
