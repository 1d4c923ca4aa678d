"""PnetCDF through its C library, as a peer that benchmarks call under the same MPI as mpi4py."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

import hyperslab as hs

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Pieces", "PnetCdf"]

# Of pnetcdf.h.
CDF5, WRITE, UNLIMITED, GLOBAL = 0x20, 1, 0, -1
KINDS = {
    "S1": (2, "text"),
    "int8": (1, "schar"),
    "int16": (3, "short"),
    "int32": (4, "int"),
    "int64": (10, "longlong"),
    "float32": (5, "float"),
    "float64": (6, "double"),
}


def _kind(dtype: np.dtype[Any]) -> tuple[int, str]:
    return KINDS["S1" if dtype.kind == "S" else dtype.name]


@dataclass
class Pieces:
    """Parts of a variable by their starts and counts, both of shape (pieces, dimensions), as ``varn`` wants them."""

    starts: NDArray[np.int64]
    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        # Lists of pointers to rows; the rows stay where they are.
        self.tables = [
            one.ctypes.data + np.arange(len(one), dtype=np.uintp) * np.uintp(one.strides[0])
            for one in (self.starts, self.counts)
        ]

    @staticmethod
    def of(indices: NDArray[np.int64], shape: tuple[int, ...]) -> Pieces:
        """Parts of rows that hold some elements, in ascending order."""
        begins = (np.diff(indices, prepend=-2) != 1) | (indices % shape[-1] == 0)
        first = np.flatnonzero(begins)
        starts = np.stack(np.unravel_index(indices[first], shape), axis=-1).astype(np.int64)
        counts = np.ones_like(starts)
        counts[:, -1] = np.diff(first, append=indices.size)
        return Pieces(np.ascontiguousarray(starts), counts)

    def in_record(self, record: int) -> Pieces:
        """The same with a first dimension for records."""
        column = np.full((len(self.starts), 1), record)
        return Pieces(
            np.ascontiguousarray(np.hstack([column, self.starts])),
            np.ascontiguousarray(np.hstack([np.ones_like(column), self.counts])),
        )


class PnetCdf:
    """A file that is written or read.

    Parameters
    ----------
    library : Path
        libpnetcdf, made for the MPI of mpi4py.
    comm : Intracomm
        Who takes part.
    hints : mapping
        Of MPI-IO and PnetCDF.
    """

    def __init__(self, library: Path, comm: MPI.Intracomm, hints: Mapping[str, str]) -> None:
        self._library = ctypes.CDLL(str(library))
        self._comm = self._handle(comm, MPI.Comm)
        self._info = MPI.Info.Create()
        for name, value in hints.items():
            self._info.Set(name, value)
        self._requests: list[int] = []
        self._file = ctypes.c_int(-1)

    @property
    def version(self) -> str:
        """What the library calls itself."""
        inquire = self._library.ncmpi_inq_libvers
        inquire.restype = ctypes.c_char_p
        return str(inquire().decode())

    @staticmethod
    def _handle(handle: Any, kind: Any) -> Any:
        """An MPI handle as C passes it: an int in MPICH, a pointer in Open MPI."""
        passed = ctypes.c_int if MPI._sizeof(kind) == ctypes.sizeof(ctypes.c_int) else ctypes.c_void_p
        return passed.from_address(MPI._addressof(handle))

    def _call(self, name: str, *args: Any) -> None:
        status = getattr(self._library, name)(*args)
        if status != 0:
            strerror = self._library.ncmpi_strerror
            strerror.restype = ctypes.c_char_p
            message = f"{name}: {strerror(status).decode()}"
            raise hs.StorageError(message)

    def create(self, path: Path) -> None:
        """Make a file of CDF-5, in define mode."""
        args = str(path).encode(), CDF5, self._handle(self._info, MPI.Info), ctypes.byref(self._file)
        self._call("ncmpi_create", self._comm, *args)

    def open(self, path: Path) -> None:
        """Open a file for reading."""
        args = str(path).encode(), 0, self._handle(self._info, MPI.Info), ctypes.byref(self._file)
        self._call("ncmpi_open", self._comm, *args)

    def dimension(self, name: str, length: int) -> int:
        """Declare one; a length of 0 has no end."""
        found = ctypes.c_int()
        self._call("ncmpi_def_dim", self._file, name.encode(), ctypes.c_longlong(length), ctypes.byref(found))
        return found.value

    def variable(self, name: str, dtype: np.dtype[Any], dims: Sequence[int], attributes: Mapping[str, Any]) -> int:
        """Declare one."""
        found = ctypes.c_int()
        axes = (ctypes.c_int * len(dims))(*dims)
        self._call("ncmpi_def_var", self._file, name.encode(), _kind(dtype)[0], len(dims), axes, ctypes.byref(found))
        for label, value in attributes.items():
            if isinstance(value, str):
                text = value.encode()
                args: tuple[Any, ...] = ctypes.c_longlong(len(text)), text
                self._call("ncmpi_put_att_text", self._file, found, label.encode(), *args)
            else:
                args = _kind(value.dtype)[0], ctypes.c_longlong(value.size), value.ctypes.data_as(ctypes.c_void_p)
                self._call("ncmpi_put_att", self._file, found, label.encode(), *args)
        return found.value

    def declared(self) -> None:
        """End define mode."""
        self._call("ncmpi_enddef", self._file)

    def number(self, name: str) -> int:
        """Of a variable that is there."""
        found = ctypes.c_int()
        self._call("ncmpi_inq_varid", self._file, name.encode(), ctypes.byref(found))
        return found.value

    def _pieces(self, verb: str, variable: int, pieces: Pieces, array: NDArray[Any], *more: Any) -> None:
        count = ctypes.c_int(len(pieces.starts))
        starts, counts = (ctypes.c_void_p(one.ctypes.data) for one in pieces.tables)
        name = f"ncmpi_{verb}_varn_{_kind(array.dtype)[1]}{'' if more else '_all'}"
        self._call(name, self._file, variable, count, starts, counts, array.ctypes.data_as(ctypes.c_void_p), *more)

    def put(self, variable: int, pieces: Pieces, array: NDArray[Any]) -> None:
        """Write parts. Collective."""
        self._pieces("put", variable, pieces, array)

    def begin_put(self, variable: int, pieces: Pieces, array: NDArray[Any]) -> None:
        """Gather a write of parts."""
        request = ctypes.c_int()
        self._pieces("iput", variable, pieces, array, ctypes.byref(request))
        self._requests.append(request.value)

    def begin_put_block(
        self, variable: int, first: int, array: NDArray[Any], lying: tuple[NDArray[Any], MPI.Datatype] | None = None
    ) -> None:
        """Gather a write of rows from this one on, as an array has them, or a type of memory in a larger one."""
        start = np.zeros(array.ndim, np.int64)
        start[0], count = first, np.array(array.shape, np.int64)
        memory, request = array if lying is None else lying[0], ctypes.c_int()
        more: tuple[Any, ...] = ()
        if lying is not None:
            more = ctypes.c_longlong(1), self._handle(lying[1], MPI.Datatype)
        name = f"ncmpi_iput_vara_{_kind(array.dtype)[1]}" if lying is None else "ncmpi_iput_vara"
        places = (ctypes.c_void_p(one.ctypes.data) for one in (start, count, memory))
        self._call(name, self._file, variable, *places, *more, ctypes.byref(request))
        self._requests.append(request.value)

    def part_of(self, shape: Sequence[int], part: Sequence[int], start: Sequence[int]) -> MPI.Datatype:
        """A part of an array of doubles as a type of memory.

        mpi4py makes such types by calls of large counts, which PnetCDF does not understand.
        """
        made = MPI.Datatype()
        rows = [(ctypes.c_int * len(shape))(*one) for one in (shape, part, start)]
        of, into = self._handle(MPI.DOUBLE, MPI.Datatype), ctypes.c_void_p(MPI._addressof(made))
        self._call("MPI_Type_create_subarray", len(shape), *rows, int(MPI.ORDER_C), of, into)
        return made.Commit()

    def begin_get(self, variable: int, start: NDArray[np.int64], array: NDArray[Any]) -> None:
        """Gather a read of a part as large as an array, from there on."""
        request, count = ctypes.c_int(), np.array(array.shape, np.int64)
        places = (ctypes.c_void_p(one.ctypes.data) for one in (start, count, array))
        self._call(f"ncmpi_iget_vara_{_kind(array.dtype)[1]}", self._file, variable, *places, ctypes.byref(request))
        self._requests.append(request.value)

    def wait(self) -> None:
        """Carry out what was gathered. Collective."""
        count = len(self._requests)
        states = (ctypes.c_int * count)()
        self._call("ncmpi_wait_all", self._file, count, (ctypes.c_int * count)(*self._requests), states)
        self._requests.clear()
        if any(states):
            message = f"ncmpi_wait_all: requests ended with {sorted(set(states))}"
            raise hs.StorageError(message)

    def sync(self) -> None:
        """Have it reach the disk."""
        self._call("ncmpi_sync", self._file)

    def close(self) -> None:
        """Close the file. Collective."""
        self._call("ncmpi_close", self._file)
