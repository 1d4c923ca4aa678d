"""MPI-IO as people use it: filetypes for distributions, and the collective calls of `mpi4py.MPI.File`."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from hyperslab.distribution import Distribution

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MpiIo", "element_type", "file_type", "hint_sets", "memory_type"]


def hint_sets(ranks: int) -> list[dict[str, str]]:
    """Sets of hints among which the best is sought. Implementations ignore hints that they do not know."""

    def two_phase(aggregators: int, buffer_bytes: int, **more: str) -> dict[str, str]:
        both = {"romio_cb_write": "enable", "romio_cb_read": "enable", "cb_config_list": "*:*"}
        return both | {"cb_nodes": str(aggregators), "cb_buffer_size": str(buffer_bytes)} | more

    sieving = {"romio_cb_write": "disable", "romio_cb_read": "disable"}
    sieving |= {"romio_ds_write": "enable", "romio_ds_read": "enable"}
    sets = [
        two_phase(ranks, 4 << 20),
        two_phase(ranks, 4 << 20, romio_ds_write="disable", romio_ds_read="disable"),
        two_phase(ranks, 1 << 20),
        two_phase(ranks, 16 << 20),
        two_phase(2, 4 << 20),
        sieving,
        sieving | {"romio_ds_write": "disable", "romio_ds_read": "disable"},
    ]
    return [hints for number, hints in enumerate(sets) if hints not in sets[:number]]


class _Making:
    """Derived types of which only the last is kept."""

    def __init__(self, first: MPI.Datatype) -> None:
        self.type = first.Dup()

    def take(self, made: MPI.Datatype) -> None:
        self.type.Free()
        self.type = made


def file_type(
    dist: Distribution,
    rank: int,
    element: MPI.Datatype,
    *,
    shape: Sequence[int] | None = None,
    section: Sequence[tuple[int, int, int]] | None = None,
    order: str = "C",
    arrays: int = 1,
) -> MPI.Datatype:
    """What a rank holds of arrays that lie one after another in a file.

    Parameters
    ----------
    dist : Distribution
        Who holds what, of an array or of a section of it.
    rank : int
        This rank.
    element : Datatype
        One element.
    shape, section : optional
        Shape of the arrays, and start, stop and step of the section along each dimension.
    order : {"C", "F"}
        Order of the elements in the file.
    arrays : int
        How many arrays.
    """
    extents = tuple(dist.shape if shape is None else shape)
    triplets = section or [(0, extent, 1) for extent in extents]
    making, pitch = _Making(element), element.Get_size()
    for dim in range(len(extents)) if order == "F" else reversed(range(len(extents))):
        start, _, step = triplets[dim]
        # Each dimension puts what lies inside of one index at the indices that the rank holds.
        terms, places = [], []
        for first, length, between, count in sorted(dist._core.runs(rank)[dim]):
            run = making.type.Create_hvector(length, 1, step * pitch)
            terms.append(run.Create_hvector(count, 1, between * step * pitch))
            places.append((start + first * step) * pitch)
            run.Free()
        pitch *= extents[dim]
        made = MPI.Datatype.Create_struct([1] * len(terms), places, terms)
        making.take(made.Create_resized(0, pitch))
        for one in (*terms, made):
            one.Free()
    making.take(making.type.Create_contiguous(arrays))
    return making.type.Commit()


def memory_type(arrays: Sequence[NDArray[Any]], element: MPI.Datatype, order: str = "C") -> MPI.Datatype:
    """Elements of arrays at their addresses, in the order of a file; to be used with ``MPI.BOTTOM``."""
    types = []
    for array in arrays:
        making = _Making(element)
        # The same order of elements as the file has, whatever the order in memory.
        for extent, stride in list(zip(array.shape, array.strides, strict=True))[:: 1 if order == "F" else -1]:
            making.take(making.type.Create_hvector(extent, 1, stride))
        types.append(making.type)
    made = MPI.Datatype.Create_struct([1] * len(types), [array.ctypes.data for array in arrays], types)
    for one in types:
        one.Free()
    return made.Commit()


class MpiIo:
    """Arrays of one file through ``Write_all`` and ``Read_all``.

    Parameters
    ----------
    name : str
        What it is called in results.
    path : Path
        The file.
    comm : mpi4py.MPI.Intracomm
        The ranks.
    element, filetype : Datatype
        One element, and what this rank holds of the file.
    hints : mapping
        Hints for MPI-IO.
    header_bytes : int
        Bytes before the first array [B].
    """

    def __init__(
        self,
        name: str,
        path: Path,
        comm: MPI.Intracomm,
        element: MPI.Datatype,
        filetype: MPI.Datatype,
        hints: Mapping[str, str],
        *,
        header_bytes: int = 0,
    ) -> None:
        self.name = name
        self.hints = dict(hints)
        self._path = path
        self._comm = comm
        self._element, self._filetype = element, filetype
        self._header_bytes = header_bytes

    @classmethod
    def of(cls, name: str, path: Path, comm: MPI.Intracomm, dist: Distribution, hints: Mapping[str, str]) -> MpiIo:
        """One row-major array of float64."""
        return cls(name, path, comm, MPI.DOUBLE, file_type(dist, comm.rank, MPI.DOUBLE), hints)

    def at(self, path: Path) -> MpiIo:
        """The same of another file."""
        other = copy.copy(self)
        other._path = path
        return other

    def _open(self, mode: int) -> MPI.File:
        info = MPI.Info.Create()
        for key, value in self.hints.items():
            info.Set(key, value)
        file = MPI.File.Open(self._comm, str(self._path), mode, info)
        file.Set_view(self._header_bytes, self._element, self._filetype, "native", info)
        info.Free()
        return file

    def write(self, array: NDArray[Any], *, durable: bool) -> None:
        """Write a contiguous array to a new file."""
        self.write_memory([array, self._element], MPI.MODE_CREATE | MPI.MODE_WRONLY, durable=durable)

    def write_memory(self, memory: Any, mode: int, *, durable: bool) -> None:
        """Write what MPI calls a buffer."""
        file = self._open(mode)
        file.Write_all(memory)
        if durable:
            file.Sync()
        file.Close()

    def read(self, array: NDArray[Any]) -> None:
        """Read this rank's part into a contiguous array."""
        self.read_memory([array, self._element])

    def read_memory(self, memory: Any) -> None:
        """Read into what MPI calls a buffer."""
        file = self._open(MPI.MODE_RDONLY)
        file.Read_all(memory)
        file.Close()

    def remove(self) -> None:
        """Remove the file."""
        if self._comm.rank == 0:
            self._path.unlink(missing_ok=True)


def element_type(dtype: Any) -> MPI.Datatype:
    """An element of any type, as bytes."""
    return MPI.BYTE.Create_contiguous(np.dtype(dtype).itemsize).Commit()
