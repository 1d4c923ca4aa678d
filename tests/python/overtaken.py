"""Programs that are held up or killed in the middle of a call, while others go on; run by `test_overtaken`, with the
library of faults preloaded.

Usage: overtaken CASE DIRECTORY

A program that is held up makes the file ``held`` and goes on when there is a file ``gate``. At its end it prints how
its call ended.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np

from disturbed import RAW, WHOLE, full, kind_of, main
from fault_library import Fault, Faults

#: An array whose chunks are so long that no rank writes one itself, but a thread of its own, which may be left behind.
LARGE = (2, 1 << 20)
#: Longest time for which a program is held up [ms].
HELD_MS = 30_000
#: What a program has open when it ends without closing it.
OPEN: list[Any] = []


def hold(faults: Faults, directory: Path, fault: Fault, target: Path | None = None) -> None:
    """Let a call be held up, or kill."""
    faults.watch(directory)
    faults.gate(directory / "gate")
    if target is not None:
        faults.target(target)
    faults.arm(fault)
    if fault.kind == "kill":
        return

    def tell() -> None:
        while not faults.stalled():
            time.sleep(0.002)
        (directory / "held").touch()

    threading.Thread(target=tell, daemon=True).start()


def striped(directory: Path, stripes: int = 3) -> hs.Striped:
    return hs.Striped([directory / f"s{number}" for number in range(stripes)], "f.raw", unit=64)


def replace_both(directory: Path, faults: Faults, group: str) -> str:
    """Dies when one of two arrays is replaced and the other is not."""
    path = directory / "a.zarr" / group
    with hs.open(path, "r+", durable=False) as store:
        hold(faults, directory, Fault("target", 1, "kill"), path / "b")
        return kind_of(lambda: store.write({"a": full(5.0), "b": full(5.0)}, overwrite=True, chunks=(1, 8)))


def make_both(directory: Path, faults: Faults, _: str) -> str:
    """Is held up when one of two new arrays is visible and the other is not."""
    path = directory / "a.zarr"
    with hs.open(path, "r+", durable=False) as store:
        hold(faults, directory, Fault("target", 1, "stall", HELD_MS), path / "d")
        return kind_of(lambda: store.write({"c": full(5.0), "d": full(5.0)}))


def update_and_give_up(directory: Path, faults: Faults, group: str) -> str:
    """Two ranks update an array; a chunk takes its name only when both have been told that this took too long."""
    path = directory / "a.zarr" / group
    limits: dict[str, Any] = {"storage_seconds": 1.0, "progress_seconds": 1.0, "durable": False}

    def rank(comm: hs.ThreadComm) -> str:
        store = hs.open(path, "r+", comm=comm, **limits)
        dist = hs.Distribution.block(LARGE, comm.size)
        if comm.rank == 0:
            hold(faults, directory, Fault("target", 1, "stall", HELD_MS), path / "large" / "c.1.0")
        comm.barrier()
        mine = np.full(dist.local_shape(comm), 5.0)
        return kind_of(lambda: store.write("large", mine, dist, section=WHOLE, strategy="independent"))

    ended = hs.threads(2, rank)
    (directory / "given-up").touch()
    while not (directory / "gate").exists():
        time.sleep(0.005)
    # The late chunk has its moment.
    time.sleep(0.5)
    return str(sorted(ended))


def overwrite(directory: Path, faults: Faults, _: str) -> str:
    """Is held up just before an array is replaced."""
    path = directory / "a.zarr"
    with hs.open(path, "r+", durable=False) as store:
        hold(faults, directory, Fault("target", 1, "stall", HELD_MS), path / "b")
        return kind_of(lambda: store.write("b", full(5.0), overwrite=True, chunks=(64, 8)))


def append(directory: Path, faults: Faults, _: str) -> str:
    """Is held up when it has written, and has not told of the new shape."""
    path = directory / "a.zarr"
    with hs.open(path, "r+", durable=False) as store:
        hold(faults, directory, Fault("target", 1, "stall", HELD_MS), path / "b" / "zarr.json")
        return kind_of(lambda: store.append("b", full(5.0)))


def open_anew(directory: Path, faults: Faults, mode: str) -> str:
    """Is held up when it is about to make the directory of a new store."""
    hold(faults, directory, Fault("mkdir", 1, "stall", HELD_MS))
    return kind_of(lambda: hs.open(directory / "a.zarr" / "q", "w" if mode == "w" else "x").close())


def fork(directory: Path, _: Faults, how: str) -> str:
    """A child made by a fork leaves what its parent has open."""
    path = directory / "a.zarr"
    with hs.open(path, "r+", durable=False) as store, hs.open_raw(directory / "a.raw", "w", durable=False) as file:
        file.write({"x": full(1.0)})
        with store.step("s") as step:
            step.write("a", full(5.0))
            request = step.iwrite("b", full(6.0))
            if (child := os.fork()) == 0:
                ends = [kind_of(call) for call in (request.wait, file.close, lambda: step.write("c", full(7.0)))]
                error = ValueError("in the child") if how == "exception" else None
                ends.append(kind_of(lambda: step.__exit__(type(error) if error else None, error, None)))
                ends.append(kind_of(store.close))
                with hs.open(directory / "of-child.zarr", "w") as own:
                    own.write("a", full(1.0))
                # Leaving a step by an exception tells nothing more than the exception.
                ends[3] = "InvalidError" if error else ends[3]
                os._exit(int(ends[1:] != ["InvalidError"] * 4))
            assert os.waitpid(child, 0)[1] == 0, "the child used what is its parent's"
            assert not (path / "s").exists()
            assert not (directory / "a.raw").exists()
            request.wait()
    with hs.open(path) as store, hs.open_raw(directory / "a.raw", arrays=RAW) as file:
        assert store.group("s").arrays() == ["a", "b"]
        assert file.read("x").min() == 1.0
    return "ok"


def lists_by_half(directory: Path, faults: Faults, _: str) -> str:
    """The disk is full in the middle of a line of the list of owners; another owner comes, and both die."""
    path = directory / "a.zarr"
    keeping, failing, late = (hs.open(path, "r+", durable=False) for _ in range(3))
    OPEN.append(keeping.step("keep").__enter__())
    faults.watch(directory)
    faults.arm(Fault("write", 1, "shorten", times=2))
    ended = kind_of(lambda: failing.step("failing").__enter__())
    faults.disarm()
    OPEN.append(late.step("late").__enter__())
    return ended


def publish_striped(directory: Path, faults: Faults, _: str) -> str:
    """Dies when a file is renamed in the first of its directories, and not yet in the others."""
    with hs.open_raw(striped(directory), "w", durable=False) as file:
        file.write({"x": full(5.0)})
        faults.watch(directory)
        faults.arm(Fault("rename", 2, "kill"))
    return "ok"


CASES: dict[str, Callable[[Path, Faults, str], Any]] = {
    case.__name__: case
    for case in (
        replace_both,
        make_both,
        update_and_give_up,
        overwrite,
        append,
        open_anew,
        fork,
        lists_by_half,
        publish_striped,
    )
}


if __name__ == "__main__":
    main(CASES)
