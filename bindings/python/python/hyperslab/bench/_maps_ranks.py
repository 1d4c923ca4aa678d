"""The ranks of ``hyperslab bench maps``; started by mpiexec with a task in JSON."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

import hyperslab as hs
from hyperslab.bench._launch import measure_task
from hyperslab.bench._maps import FORMATS, KINDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEED = 20261129
ITEM_BYTES = 8


def dealt(kind: str, elements: int, rank: int, ranks: int) -> NDArray[np.int64]:
    """The elements of a rank."""
    random = np.random.default_rng(SEED)
    run = KINDS[kind]
    if run == 0:
        return np.flatnonzero(random.integers(0, ranks, elements) == rank)
    runs = random.permutation(elements // run)[rank::ranks]
    return (runs[:, None] * run + np.arange(run)).ravel()


class ByHand:
    """Sorting by owner, two exchanges, and one write for each rank."""

    def __init__(self, comm: MPI.Intracomm, path: Path, elements: int) -> None:
        self._comm, self._path = comm, path
        self._share = -(-elements // comm.size)
        self._low = min(comm.rank * self._share, elements)
        self._count = min(self._low + self._share, elements) - self._low

    def _exchange(self, mine: NDArray[np.int64]) -> tuple[Any, ...]:
        owners = mine // self._share
        order = np.argsort(owners, kind="stable")
        sent = np.bincount(owners, minlength=self._comm.size)
        taken = np.empty_like(sent)
        self._comm.Alltoall(sent, taken)
        sides = [(count, np.cumsum(count) - count) for count in (sent, taken)]
        places = np.empty(int(taken.sum()), np.int64)
        self._comm.Alltoallv([mine[order], sides[0], MPI.INT64_T], [places, sides[1], MPI.INT64_T])
        return order, places - self._low, *sides

    def write(self, mine: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """Write what each rank holds."""
        order, places, sent, taken = self._exchange(mine)
        came = np.empty(places.size)
        self._comm.Alltoallv([values[order], sent, MPI.DOUBLE], [came, taken, MPI.DOUBLE])
        part = np.empty(self._count)
        part[places] = came
        file = os.open(self._path, os.O_CREAT | os.O_WRONLY)
        os.pwrite(file, part.data, self._low * ITEM_BYTES)
        os.close(file)

    def read(self, mine: NDArray[np.int64]) -> NDArray[np.float64]:
        """Read it."""
        order, places, sent, taken = self._exchange(mine)
        part, came, values = np.empty(self._count), np.empty(mine.size), np.empty(mine.size)
        file = os.open(self._path, os.O_RDONLY)
        os.preadv(file, [part.data], self._low * ITEM_BYTES)
        os.close(file)
        self._comm.Alltoallv([part[places], taken, MPI.DOUBLE], [came, sent, MPI.DOUBLE])
        values[order] = came
        return values


class Peak:
    """By how much a call makes the memory of this process grow at most [B]."""

    def __enter__(self) -> Peak:
        """Forget earlier peaks."""
        Path("/proc/self/clear_refs").write_text("5")
        self._before = self._status("VmRSS")
        return self

    def __exit__(self, *_: object) -> None:
        """Look how high it was."""
        self.grown = self._status("VmHWM") - self._before

    @staticmethod
    def _status(what: str) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(what))


class Bench:
    """One launch."""

    def __init__(self, comm: MPI.Intracomm, task: dict[str, Any]) -> None:
        self.comm, self.task, self.elements = comm, task, task["elements"]
        self.directory = Path(task["directory"])
        rows = max(self.elements // 10_000, 1)
        self.shape = (self.elements,) if task["dimensions"] == 1 else (rows, 100, self.elements // rows // 100)
        self.elements = int(np.prod(self.shape))
        self.chunk = (-(-self.shape[0] // task["chunks"]), *self.shape[1:])

    def timed(self, call: Callable[[], Any]) -> tuple[float, Any]:
        """How long a call takes all ranks [s], and what it gives."""
        self.comm.barrier()
        begin = time.perf_counter()
        result = call()
        self.comm.barrier()
        return time.perf_counter() - begin, result

    def fresh(self, name: str) -> Path:
        """The path of a file that is not there."""
        path = self.directory / name
        if self.comm.rank == 0:
            shutil.rmtree(path, ignore_errors=True)
            path.unlink(missing_ok=True)
        self.comm.barrier()
        return path

    def compare(self, way: str, found: NDArray[np.float64], values: NDArray[np.float64]) -> None:
        """Refuse other values than were written."""
        if not np.array_equal(found, values):
            message = f"{way} gave other values"
            raise hs.CorruptError(message)

    def ours(self, form: str, mine: NDArray[np.int64], values: NDArray[np.float64]) -> tuple[float, float, float]:
        """Times to write and to read by this package, and memory as a multiple of map and values."""
        options: dict[str, Any] = {"chunks": self.chunk} if form == "zarr" else {}
        path = self.fresh(f"maps{FORMATS[form]}")
        with hs.open(path, "w", comm=self.comm, durable=False) as file, Peak() as peak:
            write, _ = self.timed(lambda: file.write("a", values, hs.ElementMap(self.shape, mine), **options))
        with hs.open(path, comm=self.comm) as file:
            read, found = self.timed(lambda: file.read("a", hs.ElementMap(self.shape, mine)))
        self.compare(form, found, values)
        return write, read, peak.grown / max(mine.nbytes + values.nbytes, 1)

    def case(self, kind: str) -> dict[str, Any]:
        """All ways in turns."""
        mine = dealt(kind, self.elements, self.comm.rank, self.comm.size)
        values = mine.astype(np.float64)
        ways: dict[str, tuple[list[float], list[float]]] = {}
        memory: dict[str, float] = {}
        for round_ in range(self.task["repetitions"] + 1):
            by_hand = ByHand(self.comm, self.fresh("by-hand"), self.elements)
            write, _ = self.timed(partial(by_hand.write, mine, values))
            read, found = self.timed(partial(by_hand.read, mine))
            self.compare("by hand", found, values)
            taken = {"by hand": (write, read)}
            for form in self.task["formats"]:
                write, read, grown = self.ours(form, mine, values)
                taken[form] = (write, read)
                memory[form] = max(memory.get(form, 0.0), *self.comm.allgather(grown))
            # The first round warms up.
            for way, both in taken.items() if round_ > 0 else ():
                for times, one in zip(ways.setdefault(way, ([], [])), both, strict=True):
                    times.append(one)
        return {"seconds": ways, "memory": memory}

    def run(self) -> dict[str, Any]:
        """All cases."""
        cases = {kind: self.case(kind) for kind in self.task["kinds"]}
        about = {"ranks": self.comm.size, "elements": self.elements, "shape": self.shape}
        return {**about, "formats": self.task["formats"], "cases": cases}


if __name__ == "__main__":
    measure_task(MPI.COMM_WORLD, lambda task: Bench(MPI.COMM_WORLD, task).run())
