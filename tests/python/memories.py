"""What tests of files and of objects in memory have in common."""

from __future__ import annotations

from typing import Any

import hyperslab as hs
import numpy as np
import zarr
import zarr.core.buffer.cpu
import zarr.storage

RANKS = 3
SHAPE = (12, 8)
ROWS = hs.Distribution(SHAPE, (RANKS,), ("block", "*"))
VALUES = np.arange(96.0).reshape(SHAPE)


def mine(comm: Any, start: float = 0.0) -> np.ndarray:
    """This rank's rows."""
    return start + VALUES[ROWS.slices(comm)]


def in_zarr(memory: hs.MemoryStore | hs.ObjectMemory, name: str = "") -> zarr.Group:
    """A copy of a store, as zarr-python sees it."""
    copy = {
        key.removeprefix(f"{name}/"): zarr.core.buffer.cpu.Buffer.from_bytes(content)
        for key, content in memory.files().items()
        if key.startswith(name)
    }
    group = zarr.open(zarr.storage.MemoryStore(copy), mode="r")
    assert isinstance(group, zarr.Group)
    return group
