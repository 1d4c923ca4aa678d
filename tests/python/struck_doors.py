"""Signals at each moment at which Python may run a handler in this package's doors, one after another.

Python runs handlers where one of its functions begins, after a call of a compiled one, and where a loop goes back. A
profile function is called at the first two, a trace function at each line besides. So they run a handler at the n-th of
these moments, for each n, until the door has been passed.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import CO_GENERATOR
from pathlib import Path
from types import FrameType
from typing import Any

import hyperslab as hs
import numpy as np

from fault_operations import disks

PACKAGE = str(Path(hs.__file__).parent)
#: Where no door is.
TESTS = (__file__, str(Path(__file__).with_name("test_interrupts.py")))
VALUES = np.arange(6.0)
#: How something new is opened, by the name of the case: of a directory and a communicator.
OPENINGS: dict[str, Callable[[Path, Any], Any]] = {
    "zarr": lambda path, comm: hs.open(path / "a.zarr", "w", comm=comm, arrival_seconds=10.0),
    "hdf5": lambda path, comm: hs.open(path / "a.h5", "w", comm=comm, arrival_seconds=10.0),
    "netcdf": lambda path, comm: hs.open(path / "a.nc", "w", comm=comm, arrival_seconds=10.0),
    "netcdf4": lambda path, comm: hs.open(path / "a.nc", "w", format="netcdf4", comm=comm, arrival_seconds=10.0),
    "raw": lambda path, comm: hs.open_raw(path / "a.raw", "w", comm=comm, arrival_seconds=10.0),
    "plain raw": lambda path, comm: hs.open_raw(path / "a.raw", "w", comm=comm),
    "striped": lambda path, comm: hs.open_raw(hs.Striped(disks(path), "a.raw", unit=64), "w", comm=comm),
}


class Struck(BaseException):
    """What the handler raises."""


def handler(*_: object) -> None:
    """Raise it."""
    raise Struck


class Moments:
    """Runs the handler at the n-th moment of this thread in the package, between `begin` and `end`.

    Everywhere, it also counts those in the standard library.
    """

    def __init__(self, number: int, *, everywhere: bool = False) -> None:
        self._left = number
        self._everywhere = everywhere
        #: Where it was, once it was there.
        self.where = ""

    def begin(self) -> None:
        """A door is entered."""
        sys.setprofile(self._profile)
        sys.settrace(self._trace)

    @staticmethod
    def end() -> None:
        """It is passed."""
        sys.settrace(None)
        sys.setprofile(None)

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        # Generators are called, too, when they are dropped.
        if event == "c_return" or (event == "call" and not frame.f_code.co_flags & CO_GENERATOR):
            self._come_by(frame, event)

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            self._come_by(frame, event)
        return self._trace

    def _come_by(self, frame: FrameType, event: str) -> None:
        name = frame.f_code.co_filename
        if self.where or name in TESTS or not (self._everywhere or name.startswith(PACKAGE)):
            return
        self._left -= 1
        if self._left == 0:
            self.where = f"{event} in {Path(name).name}:{frame.f_lineno}"
            self.end()
            handler()


@contextmanager
def handling() -> Iterator[None]:
    """What `handler` raises is known to come from a handler of signals."""
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


def at_each_moment(door: Callable[[Moments], None], check: Callable[[], None]) -> int:
    """Pass a door again and again, struck at each moment once, and check what is there after each.

    What came out of all of them is kept, as by a program that logs it. Gives how many moments there are.
    """
    kept: list[BaseException] = []
    number = 0
    with handling():
        while True:
            number += 1
            moments = Moments(number, everywhere=True)
            try:
                door(moments)
            except Struck as error:
                # Its traceback keeps the frames, and so all that they hold.
                kept.append(error)
            finally:
                moments.end()
            if not moments.where:
                return number - 1
            assert len(kept) == number, f"struck by {moments.where}, but nothing came out"
            try:
                check()
            except Exception as error:
                error.add_note(f"struck by {moments.where}")
                raise


def fill(file: Any, comm: Any = None) -> None:
    """Write something to what was opened."""
    size = 1 if comm is None else comm.size
    dist = hs.Distribution.block((6,), size)
    first, last = dist.indices(0 if comm is None else comm.rank)[0][[0, -1]]
    file.write({"a": VALUES[first : last + 1]}, dist)
