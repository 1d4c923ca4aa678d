"""Reads an array over and over while others update it in place; run by `test_readers`.

Usage: chunk_reader STORE hyperslab|zarr STOP_FILE

All elements of a chunk that the updates change should have one value. Prints, at the end, the number of reads and of
different values that were seen in the first chunk; a torn chunk, or a wrong checksum, ends it with an error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
from numpy.typing import NDArray

SHAPE = (512, 384)
CHUNKS = (128, 192)
#: What is updated: all of some chunks and parts of others.
SECTION = (slice(0, 450), slice(7, 384))


def reader(tool: str, path: Path) -> Callable[[], NDArray[Any]]:
    """A function that reads the array."""
    if tool == "hyperslab":
        store = hs.open(path)
        return lambda: store.read("a")
    import zarr

    return lambda: np.asarray(zarr.open_array(path / "a", mode="r")[...])


def check(values: NDArray[Any], when: str) -> None:
    """Compare the changing elements of each chunk with each other, and the others with what they always are."""
    for row in range(0, SHAPE[0], CHUNKS[0]):
        for column in range(0, SHAPE[1], CHUNKS[1]):
            low, high = max(column, 7), min(column + CHUNKS[1], SHAPE[1])
            part = values[row : min(row + CHUNKS[0], 450), low:high]
            assert (part == part[0, 0]).all(), f"{when}: chunk at {row, column} is torn: {np.unique(part)}"
    assert (values[450:] == -1).all(), f"{when}: rows that nobody changes have changed"
    assert (values[:, :7] == -1).all(), f"{when}: columns that nobody changes have changed"


def main() -> None:
    """Read until told to stop."""
    read, stop = reader(sys.argv[2], Path(sys.argv[1])), Path(sys.argv[3])
    print("ready", flush=True)
    reads, seen = 0, set()
    while not stop.exists() or reads == 0:
        values = read()
        reads += 1
        seen.add(float(values[0, 7]))
        check(values, f"read {reads}")
    print(reads, len(seen), flush=True)


if __name__ == "__main__":
    main()
