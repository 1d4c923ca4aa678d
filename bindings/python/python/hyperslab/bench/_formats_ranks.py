"""The ranks of ``hyperslab bench formats``; started by mpiexec with a task in JSON."""

from __future__ import annotations

import math
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from mpi4py import MPI

import hyperslab as hs
from hyperslab.bench._entire_ranks import ARRAY, CHUNK_BYTES, cut
from hyperslab.bench._formats import RAW
from hyperslab.bench._formats_flash import Checkpoint
from hyperslab.bench._launch import measure_task
from hyperslab.bench._watch import Stopwatch

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Elements are multiples of this.
STEP = 2.0**-12
LEVEL = 1


class Contender(Protocol):
    """A way to write and to read the array. All calls are collective."""

    name: str
    path: Path

    def write(self, array: NDArray[Any]) -> None:
        """Write the local part to a new file."""

    def read(self, array: NDArray[Any]) -> None:
        """Read the local part."""


class Ours:
    """A file or store by this package."""

    def __init__(self, bench: Bench, name: str, path: str, options: Mapping[str, Any]) -> None:
        self.name, self.path, self._bench, self._options = f"hyperslab, {name}", bench.directory / path, bench, options

    def write(self, array: NDArray[Any]) -> None:
        """Write a new file."""
        bench = self._bench
        with hs.open(self.path, "w", comm=bench.comm, durable=bench.durable) as file:
            file.write(ARRAY, array, bench.dist, **self._options)

    def read(self, array: NDArray[Any]) -> None:
        """Read it."""
        with hs.open(self.path, comm=self._bench.comm) as file:
            file.read(ARRAY, self._bench.dist, out=array)


class Raw:
    """One row-major file by this package."""

    name = RAW

    def __init__(self, bench: Bench) -> None:
        self.path, self._bench = bench.directory / "array.raw", bench

    def write(self, array: NDArray[Any]) -> None:
        """Write a new file."""
        bench = self._bench
        with hs.open_raw(self.path, "w", comm=bench.comm, order="C", durable=bench.durable) as file:
            file.write({ARRAY: array}, bench.dist)

    def read(self, array: NDArray[Any]) -> None:
        """Read it."""
        known = {ARRAY: (self._bench.dist.shape, array.dtype)}
        with hs.open_raw(self.path, "r", comm=self._bench.comm, order="C", arrays=known) as file:
            file.read(ARRAY, self._bench.dist, out=array)


class H5pyRoot:
    """Everything through rank 0, by h5py."""

    def __init__(self, bench: Bench, h5py: Any, name: str, options: Mapping[str, Any]) -> None:
        self.name, self._bench, self._h5py, self._options = f"h5py, rank 0, {name}", bench, h5py, options
        self.path = bench.directory / f"root-{'-'.join(name.split())}.h5"

    def write(self, array: NDArray[Any]) -> None:
        """Gather and write."""
        comm, dist = self._bench.comm, self._bench.dist
        if comm.rank > 0:
            comm.Send(array, 0)
            return
        whole = np.empty(dist.shape)
        for rank in range(comm.size):
            part = array if rank == 0 else np.empty(dist.local_shape(rank))
            if rank > 0:
                comm.Recv(part, rank)
            whole[np.ix_(*dist.indices(rank))] = part
        with self._h5py.File(self.path, "w") as file:
            file.create_dataset(ARRAY, data=whole, **self._options)

    def read(self, array: NDArray[Any]) -> None:
        """Read and scatter."""
        comm, dist = self._bench.comm, self._bench.dist
        if comm.rank > 0:
            comm.Recv(array, 0)
            return
        with self._h5py.File(self.path) as file:
            whole = file[ARRAY][...]
        for rank in range(1, comm.size):
            comm.Send(np.ascontiguousarray(whole[np.ix_(*dist.indices(rank))]), rank)
        array[...] = whole[np.ix_(*dist.indices(0))]


class H5pyParallel:
    """All ranks by parallel HDF5, collectively, which is the only way that it writes compressed data."""

    def __init__(self, bench: Bench, h5py: Any, name: str, options: Mapping[str, Any], *, collective: bool) -> None:
        how = "collective" if collective else "independent"
        self.name, self._bench, self._h5py = f"parallel h5py, {how}, {name}", bench, h5py
        self.path = bench.directory / f"parallel-{how}-{'-'.join(name.split())}.h5"
        self._options, self._collective = options, collective
        places = [part.tolist() for part in bench.dist.indices(bench.comm.rank)]
        self._part = tuple(slice(place[0], place[-1] + 1) for place in places)

    def _moved(self, dataset: Any, work: Callable[[], None]) -> None:
        if not self._collective:
            work()
            return
        with dataset.collective:
            work()

    def write(self, array: NDArray[Any]) -> None:
        """Write a new file."""
        with self._h5py.File(self.path, "w", driver="mpio", comm=self._bench.comm) as file:
            dataset = file.create_dataset(ARRAY, self._bench.dist.shape, "f8", **self._options)
            self._moved(dataset, lambda: dataset.__setitem__(self._part, array))

    def read(self, array: NDArray[Any]) -> None:
        """Read it."""
        with self._h5py.File(self.path, driver="mpio", comm=self._bench.comm) as file:
            dataset = file[ARRAY]
            self._moved(dataset, lambda: dataset.read_direct(array, self._part))


class Bench:
    """One launch: its array, its contenders, and what is measured in which order."""

    def __init__(self, comm: MPI.Intracomm, task: Mapping[str, Any]) -> None:
        self.comm, self.directory, self.durable = comm, Path(task["directory"]), bool(task["durable"])
        self.repetitions: int = task["repetitions"]
        self.dist = hs.Distribution.block(task["shape"], comm.size)
        self.watch = Stopwatch(comm)
        self.array = self._field()
        self.target = np.zeros_like(self.array)
        chunks = cut(self.dist.local_shape(0), CHUNK_BYTES)
        zipped: dict[str, Any] = {"chunks": chunks, "compression": "gzip", "compression_opts": LEVEL, "shuffle": True}
        zipped["checksum"] = False
        self.contenders: list[Contender] = [
            Raw(self),
            Ours(self, "NetCDF", "array.nc", {}),
            Ours(self, "HDF5", "array.h5", {}),
            Ours(self, "HDF5, chunks", "chunks.h5", {"chunks": chunks}),
            Ours(self, "HDF5, gzip", "gzip.h5", zipped),
            Ours(self, "Zarr", "array.zarr", {}),
            Ours(self, "Zarr, gzip", "gzip.zarr", zipped),
            *self._by_h5py(chunks),
        ]

    def _by_h5py(self, chunks: Sequence[int]) -> list[Contender]:
        """What h5py can do here."""
        try:
            import h5py
        except ImportError:
            return []
        plain: dict[str, Any] = {}
        zipped: dict[str, Any] = {
            "chunks": tuple(chunks),
            "compression": "gzip",
            "compression_opts": LEVEL,
            "shuffle": True,
        }
        if h5py.get_config().mpi:
            return [
                H5pyParallel(self, h5py, "plain", plain, collective=True),
                H5pyParallel(self, h5py, "plain", plain, collective=False),
                H5pyParallel(self, h5py, "gzip", zipped, collective=True),
                H5pyRoot(self, h5py, "gzip", zipped),
            ]
        return [H5pyRoot(self, h5py, "plain", plain), H5pyRoot(self, h5py, "gzip", zipped)]

    def _field(self) -> NDArray[np.float64]:
        """The local part of a smooth field, in steps."""
        places = np.ix_(*self.dist.indices(self.comm.rank))
        field = sum(np.sin(place * (0.013 * (d + 1))) for d, place in enumerate(places))
        return np.ascontiguousarray(np.round(np.asarray(field) / STEP) * STEP)

    def _remove(self, path: Path) -> None:
        self.watch.meet()
        if self.comm.rank == 0:
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)

    def write_seconds(self, contender: Contender) -> float:
        """Seconds of one write to a fresh file, which stays."""
        self._remove(contender.path)
        return self.watch.seconds(lambda: contender.write(self.array))

    def read_seconds(self, contender: Contender) -> float:
        """Seconds of one read, of which every element is compared."""
        self.target.fill(-1)
        seconds = self.watch.seconds(lambda: contender.read(self.target))
        assert np.array_equal(self.target, self.array), f"{contender.name}: rank {self.comm.rank} read other numbers"
        return seconds

    def _rounds(self, measured: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
        """Times of all, round after round; the first is that of the first call."""
        times: dict[str, list[float]] = {name: [] for name in measured}
        for repetition in range(1 + self.repetitions):
            for name in random.Random(repetition).sample(list(measured), len(measured)):
                times[name].append(measured[name]())
        return times

    def _checkpoint(self, blocks: int) -> dict[str, Any]:
        """FLASH's checkpoint, of so many blocks on each rank."""
        checkpoint = Checkpoint(self.comm, self.directory, blocks, durable=self.durable)

        def seconds(path: Path, write: Callable[[Path], None]) -> float:
            self._remove(path)
            taken = self.watch.seconds(lambda: write(path))
            checkpoint.check(path)
            return taken

        measured = {name: partial(seconds, path, write) for name, path, write in checkpoint.ways}
        times = self._rounds(measured)
        stored = {name: stored_bytes(path) for name, path, _ in checkpoint.ways}
        return {"bytes": checkpoint.nbytes, "seconds": times, "stored_bytes": stored}

    def run(self, blocks: int) -> dict[str, Any]:
        """All cases."""
        nbytes, cases = math.prod(self.dist.shape) * self.array.itemsize, {}
        for name, measure in (("write", self.write_seconds), ("read", self.read_seconds)):
            times = self._rounds({one.name: partial(measure, one) for one in self.contenders})
            stored = {one.name: stored_bytes(one.path) for one in self.contenders}
            cases[name] = {"bytes": nbytes, "seconds": times, "stored_bytes": stored}
        if blocks:
            cases[f"FLASH checkpoint, {blocks} blocks a rank"] = self._checkpoint(blocks)
        return {
            "ranks": self.comm.size,
            "shape": self.dist.shape,
            "repetitions": self.repetitions,
            "mpi": " ".join(MPI.Get_library_version().splitlines()[0].split()),
            "cases": cases,
        }


def stored_bytes(path: Path) -> int:
    """Bytes of a file, or of all files below a directory."""
    files = [one for one in path.rglob("*") if one.is_file()] if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def main() -> None:
    """Measure what the task says, and leave the results where it says."""
    comm = MPI.COMM_WORLD
    measure_task(comm, lambda task: Bench(comm, task).run(task["blocks"]))


if __name__ == "__main__":
    main()
