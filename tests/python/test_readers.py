"""Others read while an array is updated in place: each chunk is old or new, never torn."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest

from chunk_reader import CHUNKS, SECTION, SHAPE, check
from mpi_programs.pieces import ALL
from random_cases import OWN

READER = Path(__file__).with_name("chunk_reader.py")
UPDATES = 8


def update(comm: Any, path: Path, strategy: str, first: int) -> None:
    """Write one number after another over the section."""
    shape = (SECTION[0].stop, SECTION[1].stop - SECTION[1].start)
    # The writers of some strategies cannot share a chunk.
    dims = ([2 * CHUNKS[0], 0, 450 - 2 * CHUNKS[0]], "*") if strategy in OWN else ("*", [100, 0, 277])
    dist = hs.Distribution(shape, (3,), dims)
    with hs.open(path, "r+", comm=comm, durable=False, strategy=strategy) as store:
        for number in range(UPDATES):
            store.write("a", np.full(dist.local_shape(comm), float(first + number)), dist, section=SECTION)


# The readers never rest, which keeps ranks that share the cores with them from working.
@pytest.mark.alone
@pytest.mark.parametrize("options", [{}, {"checksum": False}, {"zstd": 1}], ids=["checksum", "plain", "zstd"])
def test_readers_never_see_a_torn_chunk(options: dict[str, Any], tmp_path: Path) -> None:
    path, stop = tmp_path / "a.zarr", tmp_path / "stop"
    with hs.open(path, "w", durable=False) as store:
        start = np.full(SHAPE, -1.0)
        store.write("a", start, chunks=CHUNKS, **options)
    readers = [
        subprocess.Popen(
            [sys.executable, READER, path, tool, stop], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        for tool in ("hyperslab", "zarr")
    ]
    try:
        for each in readers:
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"
        for turn, strategy in enumerate(ALL):
            hs.threads(3, lambda comm, s=strategy, t=turn: update(comm, path, s, 100 * t))
            time.sleep(0.1)
        stop.touch()
        printed = [each.communicate(timeout=60)[0] for each in readers]
    finally:
        for each in readers:
            each.kill()
    for each, text in zip(readers, printed, strict=True):
        assert each.returncode == 0, text
        reads, values = map(int, text.split())
        assert reads >= values > 1, "they did read while it changed"


def test_the_check_notices_a_torn_chunk() -> None:
    values = np.full(SHAPE, -1.0)
    values[SECTION] = 3.0
    check(values, "whole")
    values[130, 200] = 2.0
    with pytest.raises(AssertionError, match=r"chunk at \(128, 192\) is torn"):
        check(values, "torn")
