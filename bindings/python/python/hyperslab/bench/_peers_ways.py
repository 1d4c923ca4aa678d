"""A way to do what a row asks for, and what all ways of a row share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

import hyperslab as hs
from hyperslab.bench._peers_rows import LIMIT, NOTHING, OURS, PEER, SIZES
from hyperslab.bench._watch import rest

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LIMIT", "NOTHING", "OURS", "PEER", "PLACES", "STEPS", "Setting", "Way", "each_in_turn"]

#: In how many places a large array is compared after the first call.
PLACES = 4
#: Values that change in place grow by up to so much, another one for each call.
STEPS = 1009


def _nothing(*_: object) -> None:
    """What most ways have to prepare."""


def _no_path(_: int) -> Path | None:
    return None


@dataclass
class Way:
    """One way. All calls are collective.

    Parameters
    ----------
    name : str
        What it is called.
    role : str
        `OURS`, `PEER`, `LIMIT` or `NOTHING`.
    call : callable
        Does it, in a file named after the number of the call.
    made : callable
        What the call of this number made.
    check : callable
        Compares what it made or read, everywhere or in so many places.
    prepare, before, finish : callable
        Before the first call, before each, and after the last; not timed.
    hints : mapping, optional
        Hints of MPI-IO, of which the best set competes.
    """

    name: str
    role: str
    call: Callable[[int], object]
    made: Callable[[int], Path | None] = _no_path
    check: Callable[[int, int | None], None] = _nothing
    prepare: Callable[[], None] = _nothing
    before: Callable[[int], None] = _nothing
    finish: Callable[[], None] = _nothing
    hints: Mapping[str, str] | None = None
    #: A way that competes with others under one name.
    is_candidate: bool = field(default=False)


class Setting:
    """What all ways of a row share.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        The ranks.
    task : mapping
        What the launch was told.
    """

    def __init__(self, comm: MPI.Intracomm, task: Mapping[str, Any]) -> None:
        self.comm, self.place = comm, Path(task["place"])
        self.size, self.options = SIZES[task["size"]], dict(task["options"])
        self.durable, self.reads = bool(self.options.get("durable")), bool(self.options.get("read"))
        #: Whether an earlier launch left what is read, so that nothing is called before the first call.
        self.prepared: bool = task["prepared"]
        #: The hints that were best in an earlier launch.
        self.best_hints: Mapping[str, str] | None = task["hints"]
        self._crowded = comm.size > len(os.sched_getaffinity(0))

    def barrier(self) -> None:
        """A barrier; one that sleeps where ranks that spun would take the cores of those that work."""
        if self._crowded:
            rest(self.comm.Ibarrier())
        else:
            self.comm.Barrier()

    def meet(self) -> None:
        """A barrier that sleeps, for what is not timed."""
        rest(self.comm.Ibarrier())

    def sync(self) -> None:
        """Make durable what all ranks wrote, as plain code does it."""
        self.barrier()
        if self.durable and self.comm.rank == 0:
            os.sync()
        self.barrier()

    def numbers(self, places: Sequence[NDArray[np.int64]], shape: Sequence[int], base: float = 0) -> NDArray[Any]:
        """Elements at global indices, which broadcast: row-major numbers from a base on."""
        found = np.zeros(np.broadcast_shapes(*(place.shape for place in places)))
        for place, extent in zip(places, shape, strict=True):
            found *= extent
            found += place
        found += base
        return found

    def part(self, dist: hs.Distribution, base: float = 0) -> NDArray[Any]:
        """The elements of this rank, touched."""
        return np.ascontiguousarray(self.numbers(np.ix_(*dist.indices(self.comm.rank)), dist.shape, base))


def each_in_turn(rounds: Sequence[Sequence[Way]]) -> list[Way]:
    """Ways of many similar rows as ways of one: call by call another of them."""

    def joined(which: int) -> Way:
        ways = [ways[which] for ways in rounds]

        def of(number: int) -> Way:
            return ways[number % len(ways)]

        def prepare() -> None:
            for way in ways:
                way.prepare()

        def finish() -> None:
            for way in ways:
                way.finish()

        first = ways[0]
        return Way(
            first.name,
            first.role,
            lambda number: of(number).call(number),
            lambda number: of(number).made(number),
            lambda number, places: of(number).check(number, places),
            prepare,
            lambda number: of(number).before(number),
            finish,
            first.hints,
            first.is_candidate,
        )

    return [joined(which) for which in range(len(rounds[0]))]
