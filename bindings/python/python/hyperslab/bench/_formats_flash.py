"""FLASH's checkpoint in ``hyperslab bench formats``: interleaved variables with a halo (Ross et al. 2001)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import hyperslab as hs
from hyperslab.bench._formats import RAW

__all__ = ["Checkpoint"]

#: Section 4 of the paper: cells of a block along each dimension, cells of the halo on each side, and variables.
CELLS, HALO, VARIABLES = 8, 4, 24


class Checkpoint:
    """Blocks of this rank, and ways to write them, each a name, a file and a collective call."""

    def __init__(self, comm: MPI.Intracomm, directory: Path, blocks: int, *, durable: bool) -> None:
        self.comm, self.durable = comm, durable
        around = CELLS + 2 * HALO
        self.unknowns = np.random.default_rng(comm.rank).random((blocks, around, around, around, VARIABLES))
        self.inner = (slice(None), *(slice(HALO, HALO + CELLS),) * 3)
        self.mine = slice(blocks * comm.rank, blocks * (comm.rank + 1))
        self.shape = (blocks * comm.size, CELLS, CELLS, CELLS)
        self.dist = hs.Distribution(self.shape, (comm.size,), ("block", "*", "*", "*"))
        self.views = {f"var{number:02}": self.unknowns[(*self.inner, number)] for number in range(VARIABLES)}
        self.nbytes = VARIABLES * 8 * int(np.prod(self.shape))
        self.ways: list[tuple[str, Path, Callable[[Path], None]]] = [
            (RAW, directory / "flash.raw", self._raw),
            ("hyperslab, HDF5", directory / "flash.h5", self._hdf5),
            *self._by_h5py(directory),
        ]

    def _raw(self, path: Path) -> None:
        with hs.open_raw(path, "w", comm=self.comm, order="C", durable=self.durable) as file:
            file.write(self.views, self.dist)

    def _hdf5(self, path: Path) -> None:
        with hs.open(path, "w", comm=self.comm, durable=self.durable) as file:
            file.write(self.views, self.dist)

    def _by_h5py(self, directory: Path) -> list[tuple[str, Path, Callable[[Path], None]]]:
        """As the paper did it, with hyperslabs of memory, and packed by hand."""
        try:
            import h5py
        except ImportError:
            return []
        if not h5py.get_config().mpi:
            return []

        def write(path: Path, put: Callable[[Any, int], None]) -> None:
            with h5py.File(path, "w", driver="mpio", comm=self.comm) as file:
                for number, name in enumerate(self.views):
                    dataset = file.create_dataset(name, self.shape, "f8")
                    with dataset.collective:
                        put(dataset, number)

        def from_memory(dataset: Any, number: int) -> None:
            dataset.write_direct(self.unknowns, (*self.inner, number), np.s_[self.mine])

        def packed(dataset: Any, number: int) -> None:
            dataset[self.mine] = np.ascontiguousarray(self.unknowns[(*self.inner, number)])

        return [
            ("parallel h5py, from memory", directory / "memory.h5", lambda path: write(path, from_memory)),
            ("parallel h5py, packed", directory / "packed.h5", lambda path: write(path, packed)),
        ]

    def check(self, path: Path) -> None:
        """Compare every element of this rank."""
        known = dict.fromkeys(self.views, (self.shape, "f8"))
        is_raw = path.suffix == ".raw"
        opened = hs.open_raw(path, comm=self.comm, order="C", arrays=known) if is_raw else hs.open(path, comm=self.comm)
        with opened as file:
            found = file.read(list(self.views), self.dist)
        for name, values in self.views.items():
            assert np.array_equal(found[name], values), f"{path.name}: rank {self.comm.rank} wrote other numbers"
