"""Transfers of far more data than the buffers may hold; how far the memory of each rank rises, as JSON.

Usage: budget DIRECTORY [THREADS]

Ranks are MPI's processes, or that many threads.

The arrays of the user exist, and are touched, before; then the kernel's record of the process's peak is reset.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
from numpy.typing import NDArray

#: 400 MiB.
SHAPE = (6400, 8192)
BUFFER_BYTES = 4 << 20
CHUNKS = (128, 512)
STRATEGIES = ("server-directed", "two-phase")


def resident(what: str) -> int:
    """``VmRSS``, or ``VmHWM``, its peak, of this process [B]."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(what))


class Gauge:
    """Measures how far the memory of this process rises above what it was in the beginning."""

    def __init__(self, comm: Any) -> None:
        self.comm = comm
        comm.barrier()
        self.start = resident("VmRSS")
        #: Rise of the process and buffers of the rank in each case [B].
        self.found: dict[str, tuple[int, int]] = {}

    def note(self, name: str, call: Callable[[], Any]) -> None:
        """Measure a collective call."""
        self.comm.barrier()
        if self.comm.rank == 0 or not isinstance(self.comm, hs.ThreadComm):
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        self.comm.barrier()
        report = call()
        self.comm.barrier()
        buffers = report.buffer_bytes if isinstance(report, hs.Report) else 0
        self.found[name] = (resident("VmHWM") - self.start, buffers)


def warm_up(comm: Any, directory: Path) -> None:
    """Do all of it with little data: threads are started, and code is loaded, that later cases need too."""
    dist = hs.Distribution((64, 64), (comm.size,), ("*", "block"))
    mine = np.zeros(dist.local_shape(comm))
    for strategy in STRATEGIES:
        given: dict[str, Any] = {"comm": comm, "durable": False, "strategy": strategy}
        with hs.open_raw(directory / "warm.raw", "w", order="C", **given) as file:
            file.write({"a": mine}, dist)
        with hs.open_raw(directory / "warm.raw", order="C", arrays={"a": ((64, 64), "f8")}, **given) as file:
            file.read("a", dist, out=mine)
        with hs.open(directory / "warm.zarr", "w", **given) as store:
            store.write("a", mine, dist, chunks=(16, 16))
            store.read("a", dist, out=mine)


def measure(comm: Any, directory: Path) -> dict[str, tuple[int, int]]:
    """All cases."""
    dist = hs.Distribution(SHAPE, (comm.size,), ("*", "block"))
    mine = np.full(dist.local_shape(comm), 1.0 + comm.rank)
    out = np.zeros_like(mine)
    given: dict[str, Any] = {"comm": comm, "durable": False, "buffer_bytes": BUFFER_BYTES}
    warm_up(comm, directory)
    gauge = Gauge(comm)
    raw, store_path = directory / "a.raw", directory / "a.zarr"
    # At first, while no large buffers are kept that would do for all.
    with hs.open(store_path, "w", strategy=STRATEGIES[0], **given) as store:
        gauge.note("many sizes", lambda: many_sizes(store, comm, mine))
    for strategy in STRATEGIES:
        given["strategy"] = strategy
        with hs.open_raw(raw, "w", order="C", **given) as file:
            gauge.note(f"{strategy} write raw", lambda: file.write({"a": mine}, dist))
        with hs.open_raw(raw, order="C", arrays={"a": (SHAPE, "f8")}, **given) as file:
            out[...] = 0
            gauge.note(f"{strategy} read raw", lambda: file.read("a", dist, out=out))
            check(out, mine)
        with hs.open(store_path, "w", **given) as store:
            gauge.note(f"{strategy} write zarr", lambda: store.write("a", mine, dist, chunks=CHUNKS))
            out[...] = 0
            gauge.note(f"{strategy} read zarr", lambda: store.read("a", dist, out=out))
            check(out, mine)
    comm.barrier()
    if comm.rank == 0:
        raw.unlink()
    return gauge.found


def check(found: NDArray[Any], expected: NDArray[Any]) -> None:
    """Compare row by row: a mask of everything would count as memory."""
    for row, other in zip(found, expected, strict=True):
        assert np.array_equal(row, other)


def many_sizes(store: hs.Group, comm: Any, mine: NDArray[Any]) -> None:
    """One array after another, of growing chunks: buffers that became too small must not pile up."""
    for kib in range(128, 2049, 128):
        dist = hs.Distribution((kib * 128, 4), (comm.size,), ("*", [4, *[0] * (comm.size - 1)]))
        shape = dist.local_shape(comm)
        part = mine.reshape(-1)[: int(np.prod(shape))].reshape(shape)
        store.write("many", part, dist, chunks=(kib * 32, 4), overwrite=True)


def main() -> None:
    """Run under MPI, or as threads."""
    directory = Path(sys.argv[1])
    if len(sys.argv) > 2:
        print(json.dumps(hs.threads(int(sys.argv[2]), lambda comm: measure(comm, directory))))
        return
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    every = comm.gather(measure(comm, directory))
    if every is not None:
        print(json.dumps(every))


if __name__ == "__main__":
    main()
