"""What a transfer would do, without doing it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, SupportsIndex

from hyperslab import _core
from hyperslab._calls import type_code
from hyperslab.distribution import Distribution
from hyperslab.store import options

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["explain"]


def explain(
    dist: Distribution,
    dtype: DTypeLike = float,
    *,
    name: str = "array",
    direction: str = "write",
    chunks: Sequence[SupportsIndex] | None = None,
    strategy: str | None = None,
    servers: int | None = None,
    subchunk_bytes: int | None = None,
    buffer_bytes: int | None = None,
    cores: int | None = None,
) -> str:
    """Tell how an array would be written to, or read from, a Zarr store: who moves what.

    Parameters
    ----------
    dist : Distribution
        Who holds what in memory.
    direction : {"write", "read"}
        Which way.
    chunks, strategy, servers, subchunk_bytes, buffer_bytes : optional
        As for `Store.write` and `open`; chosen when not given.
    cores : int, optional
        Cores of a compute node; those of this machine by default.

    Returns
    -------
    str
        The choice and, for up to 16 ranks, steps, messages, pieces, elements sent and received, requests, stored
        bytes, and bytes of buffers.

    Examples
    --------
    >>> import hyperslab as hs
    >>> print(hs.explain(hs.Distribution.block((64, 64), 4), cores=2).splitlines()[3])
    strategy independent (servers [0, 2], 2 slots, subchunk 8388608 B, buffers at most 268435456 B a rank)
    """
    given = options(True, 1800.0, 60.0, buffer_bytes, subchunk_bytes, servers, strategy)  # noqa: FBT003
    shape = None if chunks is None else [chunk.__index__() for chunk in chunks]
    new = (shape, None, True, None, None, None, "{}", False)
    node = cores or os.cpu_count() or 1
    kind = type_code(dtype)
    return _core.explain(name, dist._core, kind, new, direction == "write", given, dist.size, node)
