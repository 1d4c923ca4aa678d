"""What one call does while something else happens to the same data; run by `test_disturbed`, with the library of faults
preloaded.

Usage: disturbed CASE DIRECTORY

Prints what came of it, as JSON.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np

from fault_library import Fault, Faults

SHAPE = (64, 8)
#: How long a call is held up, in which others do something [ms].
DELAY_MS = 1500
#: A call that fails again and again.
FOR_EVER = 10**6
RAW: Any = {"x": (SHAPE, "f8")}
WHOLE = (slice(None), slice(None))


def full(value: float) -> Any:
    return np.full(SHAPE, value)


def kind_of(call: Callable[[], Any]) -> str:
    """The name of the error of a call, or ``ok``."""
    try:
        call()
    except hs.Error as error:
        return type(error).__name__
    return "ok"


def values_of(call: Callable[[], Any]) -> list[float]:
    """The values that a call reads, or nothing."""
    try:
        return sorted(set(np.ravel(call()).tolist()))
    except hs.NotFoundError:
        return []


def make(path: Path, **options: Any) -> None:
    with hs.open(path, "w", durable=False) as store:
        for name in "ab":
            store.write(name, full(1.0), chunks=(1, 8), **options)


def overwrite(path: Path, chunks: tuple[int, int] = (1, 8), comm: Any = None) -> None:
    with hs.open(path, "r+", comm=comm, durable=False) as store:
        store.write("a", full(3.0), chunks=chunks, overwrite=True)


def arm(faults: Faults, directory: Path, fault: Fault) -> None:
    """Let calls from now on suffer."""
    faults.watch(directory)
    faults.arm(fault)


def beside(faults: Faults, one: Callable[[], Any], other: Callable[[Any], Any]) -> tuple[str, str, list[Any]]:
    """How one call ends that is held up in the middle, and another that is made meanwhile; and what the first gives."""
    ends, gave = [], []
    thread = threading.Thread(target=lambda: ends.append(kind_of(lambda: gave.append(one()))))
    thread.start()
    while not faults.stalled():
        assert thread.is_alive(), f"nothing was held up: {ends}"
        time.sleep(0.005)
    faults.disarm()
    # A communicator of its own: calls of one wait for each other.
    (second,) = hs.threads(1, lambda comm: kind_of(lambda: other(comm)))
    assert faults.stalled(), "it was held up too shortly"
    thread.join()
    return ends[0], second, gave


def read_beside(directory: Path, faults: Faults, how: str) -> Any:
    """An array or a file is replaced while it is read: the values that are read without an error."""
    if how == "raw":
        path = directory / "a.raw"
        make_raw(path, 1.0)
        with hs.open_raw(path, arrays=RAW, durable=False, subchunk_bytes=512, strategy="server-directed") as file:
            arm(faults, directory, Fault("read", 3, "stall", DELAY_MS))
            end, other, gave = beside(faults, lambda: file.read("x"), lambda comm: make_raw(path, 3.0, comm))
    else:
        path = directory / "a.zarr"
        make(path)
        replace = {
            "overwrite": lambda comm: overwrite(path, comm=comm),
            "other chunks": lambda comm: overwrite(path, (64, 8), comm),
            "mode w": lambda comm: hs.open(path, "w", comm=comm, durable=False).close(),
        }[how]
        with hs.open(path) as store:
            arm(faults, directory, Fault("open", 20, "stall", DELAY_MS))
            end, other, gave = beside(faults, lambda: store.read("a"), replace)
    return {"end": end, "other": other, "values": sorted(set(np.ravel(gave).tolist()))}


def make_raw(path: Path, value: float, comm: Any = None) -> None:
    with hs.open_raw(path, "w", comm=comm, header=b"", durable=False) as file:
        file.write({"x": full(value)})


def update_raw(path: Path, comm: Any = None) -> None:
    options: dict[str, Any] = {"durable": False, "subchunk_bytes": 512, "strategy": "server-directed"}
    with hs.open_raw(path, "r+", comm=comm, arrays=RAW, **options) as file:
        file.write({"x": full(2.0)})


def update_beside(directory: Path, faults: Faults, how: str) -> Any:
    """Something is replaced while it is changed in place: how both end, the values, and what is told of it."""
    if how.startswith("raw"):
        path = directory / "a.raw"
        make_raw(path, 1.0)
        by = path
        if how == "raw by a link":
            by = directory / "link.raw"
            by.symlink_to(path)
        arm(faults, directory, Fault("write", 4, "stall", DELAY_MS))
        other = (lambda comm: make_raw(path, 3.0, comm)) if how == "raw" else (lambda comm: update_raw(by, comm))
        end, second, _ = beside(faults, lambda: update_raw(path), other)
        with hs.open_raw(path, arrays=RAW) as file:
            return {"end": end, "other": second, "values": values_of(lambda: file.read("x")), "named": file.unfinished}
    path = directory / "a.zarr"
    make(path)
    replace = {
        "overwrite": lambda comm: overwrite(path, comm=comm),
        "mode w": lambda comm: hs.open(path, "w", comm=comm, durable=False).close(),
    }[how]

    def update() -> None:
        with hs.open(path, "r+", durable=False) as store:
            store.write("a", full(2.0), section=WHOLE)

    arm(faults, directory, Fault("rename", 9, "stall", DELAY_MS))
    end, second, _ = beside(faults, update, replace)
    with hs.open(path) as store:
        return {"end": end, "other": second, "values": values_of(lambda: store.read("a")), "named": store.unfinished}


def append_fails(directory: Path, faults: Faults, which: str) -> Any:
    """Each sync, or each unlink, of an append fails: the error, and the length of the array."""
    found = []
    for first in range(1, 30):
        path = directory / f"{first}.zarr"
        with hs.open(path, "w", durable=True) as store:
            store.write("t", np.arange(4.0), chunks=(4,))
            arm(faults, directory, Fault(which, first, "fail", errno.EIO))
            end = kind_of(lambda s=store: s.append("t", np.arange(4.0)))
            faults.disarm()
            found.append((end, store["t"].shape[0]))
        if end == "ok":
            break
    return found


def several_fail(directory: Path, faults: Faults, which: str) -> Any:
    """From the n-th call on, all fail, and then work: the error, and two arrays when the store is opened again."""
    found = []
    for first in range(1, 40):
        path = directory / f"{first}.zarr"
        make(path)
        store = hs.open(path, "r+", durable=False)
        arm(faults, directory, Fault(which, first, "fail", errno.EIO, FOR_EVER))
        end = kind_of(lambda s=store: s.write({"a": full(2.0), "b": full(2.0)}, overwrite=True))
        faults.disarm()
        kind_of(store.close)
        with hs.open(path, "r+", durable=False) as again:
            found.append((end, *(values_of(lambda n=name, s=again: s.read(n)) for name in "ab")))
        if end == "ok":
            break
    return found


def hang(directory: Path, faults: Faults, which: str) -> Any:
    """The first call of a kind of rank 0 hangs: after how many seconds each rank returns."""
    limits: dict[str, Any] = {"storage_seconds": 2.0, "progress_seconds": 1.0}

    def rank(comm: hs.ThreadComm) -> tuple[str, float]:
        dist = hs.Distribution.block(SHAPE, comm.size)
        store = hs.open(directory / "a.zarr", "w", comm=comm, **limits)
        comm.barrier()
        if comm.rank == 0:
            arm(faults, directory, Fault(which, 1, "stall", 20_000))
        comm.barrier()
        began = time.monotonic()
        end = kind_of(lambda: store.write("a", np.zeros(dist.local_shape(comm)), dist))
        return end, time.monotonic() - began

    return hs.threads(2, rank)


def lookers(directory: Path, faults: Faults, which: str) -> Any:
    """Others open the store to read, again and again: how updates end."""
    path, over = directory / "a.zarr", threading.Event()
    make(path)

    def look() -> None:
        while not over.is_set():
            hs.open(path).close()

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    ends: Counter[str] = Counter()

    def update() -> None:
        with hs.open(path, "r+", durable=False) as store:
            store.write("a", full(2.0), section=WHOLE)
            store.write("b", full(2.0), overwrite=True)

    until = time.monotonic() + 3.0
    while time.monotonic() < until:
        ends[kind_of(update)] += 1
    over.set()
    for thread in threads:
        thread.join()
    return ends


CASES: dict[str, Callable[[Path, Faults, str], Any]] = {
    case.__name__: case for case in (read_beside, update_beside, append_fails, several_fail, hang, lookers)
}


def main(cases: dict[str, Callable[[Path, Faults, str], Any]]) -> None:
    """Carry out the case that the command line names."""
    name, _, how = sys.argv[1].partition(":")
    print(json.dumps(cases[name](Path(sys.argv[2]), Faults(), how)), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(CASES)
