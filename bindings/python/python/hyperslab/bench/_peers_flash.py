"""Ways of ``hyperslab bench peers`` with FLASH's files: interleaved variables with a halo (Ross et al. 2001)."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

import hyperslab as hs
from hyperslab.bench._formats_flash import Checkpoint
from hyperslab.bench._mpiio import MpiIo, memory_type
from hyperslab.bench._peers_libraries import Library, Plain, libraries
from hyperslab.bench._peers_raw import hint_ways
from hyperslab.bench._peers_ways import LIMIT, OURS, PEER, Setting, Way
from hyperslab.bench._peers_zarr import finish_array, unpublished

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["flash"]

#: Variables of a plotfile, which has them in single precision.
PLOTTED = 4


class Flash:
    """A checkpoint or a plotfile: for each variable, the blocks of all ranks one after another."""

    def __init__(self, setting: Setting) -> None:
        self._setting, self._comm = setting, setting.comm
        state = Checkpoint(setting.comm, setting.place, setting.size.blocks, durable=False)
        plotted = setting.options["form"] == "plotfile"
        self._views = dict(list(state.views.items())[:PLOTTED]) if plotted else state.views
        self._kind = np.dtype("f4" if plotted else "f8")
        self._dist, self._mine, self._shape = state.dist, state.mine, state.shape
        self._item = self._kind.itemsize * math.prod(state.shape)
        self._first = self._item // self._comm.size * self._comm.rank
        self.nbytes = self._item * len(self._views)

    def _path(self, who: str, number: int) -> Path:
        return self._setting.place / f"{who.split()[-1]}-{number}"

    def _packed(self) -> list[NDArray[Any]]:
        return [np.ascontiguousarray(view, self._kind) for view in self._views.values()]

    def _check_raw(self, who: str, number: int, _: int | None) -> None:
        stored = np.memmap(self._path(who, number), self._kind, "r", shape=(len(self._views), *self._shape))
        for one, view in zip(stored, self._views.values(), strict=True):
            right = np.array_equal(one[self._mine], view.astype(self._kind))
            assert right, f"{who}: rank {self._comm.rank} wrote other bytes"

    def _way(self, name: str, role: str, call: Any, **more: Any) -> Way:
        check = partial(self._check_raw, name)
        return Way(name, role, lambda number: call(self._path(name, number)), partial(self._path, name), check, **more)

    # ---- raw -----------------------------------------------------------------------------------------------------

    def _ours(self, path: Path) -> None:
        with hs.open_raw(path, "w", comm=self._comm, order="C", durable=False) as file:
            file.write(self._views, self._dist, dtype=self._kind)

    def _filetype(self) -> MPI.Datatype:
        part = self._item // self._comm.size
        blocks = MPI.BYTE.Create_hvector(len(self._views), part, self._item)
        return blocks.Create_resized(0, self.nbytes).Commit()

    def _mpiio(self, hints: Mapping[str, str], path: Path) -> None:
        """Out of memory by a derived type where types are the same, otherwise packed."""
        filetype = self._filetype()
        rival = MpiIo("", path, self._comm, MPI.BYTE, filetype, hints, header_bytes=self._first)
        memory: Any = np.concatenate([one.ravel() for one in self._packed()]).view("u1")
        rival.write_memory(memory, MPI.MODE_CREATE | MPI.MODE_WRONLY, durable=False)
        filetype.Free()

    def _mpiio_types(self, path: Path) -> None:
        filetype = self._filetype()
        rival = MpiIo("", path, self._comm, MPI.BYTE, filetype, {}, header_bytes=self._first)
        memory = memory_type(list(self._views.values()), MPI.DOUBLE)
        rival.write_memory([MPI.BOTTOM, 1, memory], MPI.MODE_CREATE | MPI.MODE_WRONLY, durable=False)
        memory.Free()
        filetype.Free()

    def _plain(self, path: Path) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
        for number, part in enumerate(self._packed()):
            os.pwrite(descriptor, part.reshape(-1).view(np.uint8).data, number * self._item + self._first)
        os.close(descriptor)

    def raw(self) -> list[Way]:
        """One raw file."""
        rivals = [
            self._way(f"{name}", PEER, partial(self._mpiio, hints), hints=hints, is_candidate=one)
            for name, hints, one in hint_ways(self._setting)
        ]
        if self._kind.itemsize == 8:
            rivals.append(self._way("MPI-IO, types of memory", PEER, self._mpiio_types))
        return [self._way("hyperslab", OURS, self._ours), *rivals, self._way("limit: plain code", LIMIT, self._plain)]

    # ---- Zarr ----------------------------------------------------------------------------------------------------

    def _ours_zarr(self, path: Path) -> None:
        with hs.open(path, "w", comm=self._comm, durable=False) as group:
            group.write(self._views, self._dist)

    def _zarr(self, library: Library, path: Path) -> None:
        names = [path / name for name in self._views]
        handles = []
        chunk = (self._shape[0] // self._comm.size, *self._shape[1:])
        if self._comm.rank == 0:
            path.mkdir()
            (path / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group", "attributes": {}}')
            handles = [library.create(unpublished(library, name), self._shape, chunk) for name in names]
        self._setting.barrier()
        handles = handles or [library.open(unpublished(library, name)) for name in names]
        part = (self._mine, *(slice(0, extent) for extent in self._shape[1:]))
        for handle, view in zip(handles, self._packed(), strict=True):
            library.put(handle, part, view)
        finish_array(self._setting, library, names)

    def _check_zarr(self, who: str, number: int, _: int | None) -> None:
        plain = Plain()
        path = self._path(who, number)
        part = (self._mine, *(slice(0, extent) for extent in self._shape[1:]))
        for name, view in self._views.items():
            stored = np.empty(view.shape)
            plain.get(plain.open(path / name), part, stored)
            assert np.array_equal(stored, view), f"{who}: rank {self._comm.rank} wrote other bytes"

    def zarr(self) -> list[Way]:
        """A Zarr group."""
        ways = [self._way("hyperslab", OURS, self._ours_zarr)]
        for one in libraries(durable=False):
            ways.append(self._way(one.name, one.role, partial(self._zarr, one)))
        for way in ways:
            way.check = partial(self._check_zarr, way.name)
        return ways


def flash(setting: Setting) -> tuple[list[Way], int]:
    """One of FLASH's files, and its bytes."""
    one = Flash(setting)
    return one.zarr() if setting.options["form"] == "zarr" else one.raw(), one.nbytes
