"""The ranks of ``hyperslab bench entire``; started by mpiexec with a task in JSON."""

from __future__ import annotations

import math
import random
import shutil
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from mpi4py import MPI

import hyperslab as hs
from hyperslab.bench._checks import check_chunks, check_file
from hyperslab.bench._entire_tables import DEFAULT, RAW, SHARDED, SMALL, TUNED, ZARR
from hyperslab.bench._launch import measure_task
from hyperslab.bench._limits import PlainFiles
from hyperslab.bench._mpiio import MpiIo, hint_sets
from hyperslab.bench._watch import Stopwatch

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Rounds in which sets of hints are compared.
TUNING_ROUNDS = 3
ARRAY = "field"
#: Small chunks, alone and in shards [B].
CHUNK_BYTES, SHARD_BYTES = 1 << 20, 16 << 20


def cut(shape: Sequence[int], bytes_max: int) -> list[int]:
    """A part of an array of float64: halved along its slowest dimensions, where that is even, until it fits."""
    part = list(shape)
    for dim, extent in enumerate(part):
        while math.prod(part) * 8 > bytes_max and part[dim] % 2 == 0 and extent > 1:
            part[dim] //= 2
    return part


class Contender(Protocol):
    """A way to write and to read the array. All calls are collective."""

    name: str

    def write(self, array: NDArray[Any], *, durable: bool) -> None:
        """Write the local part to a new file."""

    def read(self, array: NDArray[Any]) -> None:
        """Read the local part."""

    def remove(self) -> None:
        """Remove what was written."""


class RowMajor:
    """One row-major file by this package."""

    name = RAW

    def __init__(self, path: Path, comm: MPI.Intracomm, dist: hs.Distribution) -> None:
        self._path, self._comm, self._dist = path, comm, dist

    def write(self, array: NDArray[Any], *, durable: bool) -> None:
        """Write a new file."""
        with hs.open_raw(self._path, "w", comm=self._comm, order="C", durable=durable) as file:
            file.write({ARRAY: array}, self._dist)

    def read(self, array: NDArray[Any]) -> None:
        """Read the file."""
        known = {ARRAY: (self._dist.shape, array.dtype)}
        with hs.open_raw(self._path, "r", comm=self._comm, order="C", arrays=known) as file:
            file.read(ARRAY, self._dist, out=array)

    def remove(self) -> None:
        """Remove the file."""
        if self._comm.rank == 0:
            self._path.unlink(missing_ok=True)


class Zarr:
    """A Zarr array by this package, with natural chunks if nothing is said of them."""

    def __init__(
        self, name: str, path: Path, comm: MPI.Intracomm, dist: hs.Distribution, options: Mapping[str, Any]
    ) -> None:
        self.name, self._path, self._comm, self._dist, self._options = name, path, comm, dist, dict(options)

    def write(self, array: NDArray[Any], *, durable: bool) -> None:
        """Write a new store."""
        with hs.open(self._path, "w", comm=self._comm, durable=durable) as store:
            store.write(ARRAY, array, self._dist, **self._options)

    def read(self, array: NDArray[Any]) -> None:
        """Read the array."""
        with hs.open(self._path, comm=self._comm) as store:
            store.read(ARRAY, self._dist, out=array)

    def remove(self) -> None:
        """Remove the store."""
        if self._comm.rank == 0:
            shutil.rmtree(self._path, ignore_errors=True)


class Bench:
    """One launch: its arrays, its contenders, and what is measured in which order.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        The ranks.
    directory : Path
        An empty directory for scratch files.
    shape : sequence of int
        Global shape.
    repetitions : int
        Rounds that count.
    """

    def __init__(self, comm: MPI.Intracomm, directory: Path, shape: Sequence[int], repetitions: int) -> None:
        self.comm, self.repetitions = comm, repetitions
        self.dist = hs.Distribution.block(shape, comm.size)
        self.watch = Stopwatch(comm)
        self.array = self._numbers()
        self.target = np.zeros_like(self.array)
        self.array_bytes = 8 * math.prod(shape)
        sizes = [math.prod(self.dist.local_shape(rank)) * 8 for rank in range(comm.size)]
        # MPI-IO and this package make the same row-major file, so each also reads what the other wrote.
        self.file, self.store = directory / "array.raw", directory / "array.zarr"
        self.mpi_default = MpiIo.of(DEFAULT, self.file, comm, self.dist, {})
        self.own = PlainFiles(directory, comm.rank, None)
        self.shared = PlainFiles(directory, comm.rank, sum(sizes[: comm.rank]))
        self.row_major = RowMajor(self.file, comm, self.dist)
        self.zarr = Zarr(ZARR, self.store, comm, self.dist, {})
        part = self.dist.local_shape(0)
        small = {"chunks": cut(part, CHUNK_BYTES)}
        self.small = Zarr(SMALL, directory / "small.zarr", comm, self.dist, small | {"shards": False})
        sharded = small | {"shards": cut(part, SHARD_BYTES)}
        self.sharded = Zarr(SHARDED, directory / "sharded.zarr", comm, self.dist, sharded)
        self.ours: list[Contender] = [self.row_major, self.zarr, self.small, self.sharded]
        self.plain: list[Contender] = [self.own, self.shared, *self.ours, self.mpi_default]

    def _numbers(self) -> NDArray[np.float64]:
        """The local part of an array in which every element is its row-major number."""
        return self._numbered(np.ix_(*self.dist.indices(self.comm.rank)))

    def _numbered(self, places: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
        """The elements at global indices, which broadcast."""
        numbers = np.zeros(np.broadcast_shapes(*(part.shape for part in places)))
        for part, extent in zip(places, self.dist.shape, strict=True):
            numbers *= extent
            numbers += part
        return numbers

    def write_seconds(self, contender: Contender, *, durable: bool) -> float:
        """Seconds of one write to a fresh file, which stays."""
        self.watch.meet()
        contender.remove()
        return self.watch.seconds(lambda: contender.write(self.array, durable=durable))

    def read_seconds(self, contender: Contender) -> float:
        """Seconds of one read of what is there."""
        return self.watch.seconds(lambda: contender.read(self.target))

    def check_read(self, contender: Contender) -> None:
        """Read once, and compare every element."""
        self.target.fill(-1)
        self.read_seconds(contender)
        assert np.array_equal(self.target, self.array), f"{contender.name}: rank {self.comm.rank} read other numbers"

    def check_written(self, contender: Contender) -> None:
        """Compare every byte in storage with what should be there, without the code that wrote it."""
        self.watch.meet()
        if contender in (self.own, self.shared, self.small, self.sharded):
            self.check_read(contender)
        elif self.comm.rank == 0 and contender is self.zarr:
            check_chunks(self.store / ARRAY, self.dist.shape, self._numbered)
        elif self.comm.rank == 0:
            check_file(self.file, self.dist.shape, "f8", self._numbered)
            assert self.file.stat().st_size == self.array_bytes, f"{self.file} is too long"
        self.watch.meet()

    def tune(self, measure: Callable[[MpiIo], float], *, once: Callable[[MpiIo], None]) -> MpiIo:
        """The MPI-IO contender with the hints that are fastest, by the median of a few interleaved rounds."""
        sets = hint_sets(self.comm.size)
        rivals = [MpiIo.of(TUNED, self.file, self.comm, self.dist, hints) for hints in sets]
        for rival in rivals:
            measure(rival)
            once(rival)
        rounds = [[measure(rival) for rival in rivals] for _ in range(TUNING_ROUNDS)]
        medians = [statistics.median(times) for times in zip(*rounds, strict=True)]
        return rivals[medians.index(min(medians))]

    def writes(self, *, durable: bool) -> tuple[dict[str, list[float]], dict[str, str]]:
        """Seconds of each contender's writes, and the hints that were best."""

        def measure(contender: Contender) -> float:
            return self.write_seconds(contender, durable=durable)

        tuned = self.tune(measure, once=self.check_written)
        contenders = [*self.plain, tuned]
        for contender in contenders:
            measure(contender)
            self.check_written(contender)
        return self._rounds(contenders, measure), tuned.hints

    def reads(self) -> tuple[dict[str, list[float]], dict[str, str]]:
        """Seconds of each contender's warm reads, and the hints that were best."""
        for contender in (self.own, self.shared, *self.ours):
            self.write_seconds(contender, durable=True)
        tuned = self.tune(self.read_seconds, once=self.check_read)
        contenders = [*self.plain, tuned]
        for contender in contenders:
            self.check_read(contender)
        return self._rounds(contenders, self.read_seconds), tuned.hints

    def _rounds(self, contenders: Sequence[Contender], measure: Callable[[Contender], float]) -> dict[str, list[float]]:
        times: dict[str, list[float]] = {contender.name: [] for contender in contenders}
        for repetition in range(self.repetitions):
            # In another order each round, the same on all ranks: what one leaves to be written back slows the next.
            for contender in random.Random(repetition).sample(contenders, len(contenders)):
                times[contender.name].append(measure(contender))
        return times

    def run(self) -> dict[str, Any]:
        """All cases."""
        seconds, tuned = {}, {}
        for case, durable in (("write", False), ("write with fsync", True)):
            seconds[case], tuned[case] = self.writes(durable=durable)
        seconds["read"], tuned["read"] = self.reads()
        return {
            "ranks": self.comm.size,
            "shape": self.dist.shape,
            "mesh": self.dist.mesh,
            "repetitions": self.repetitions,
            "mpi": " ".join(MPI.Get_library_version().splitlines()[0].split()),
            "seconds": seconds,
            "tuned": tuned,
        }


def main() -> None:
    """Measure what the task says, and leave the results where it says."""
    comm = MPI.COMM_WORLD
    measure_task(comm, lambda task: Bench(comm, Path(task["directory"]), task["shape"], task["repetitions"]).run())


if __name__ == "__main__":
    main()
