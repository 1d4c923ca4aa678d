"""Libraries that write Zarr, behind one face, and which of the peers are installed."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hyperslab.bench._peers_rows import LIMIT, PEER

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Library", "Plain", "found", "libraries", "missing"]

#: A part of an array.
Slices = tuple[slice, ...]
#: Peers, and what each is imported as.
PEERS = {
    "MPI-IO": "mpi4py.MPI",
    "h5py": "h5py",
    "zarr-python": "zarr",
    "TensorStore": "tensorstore",
    "netCDF4": "netCDF4",
    "PnetCDF": "pnetcdf",
}


def found(name: str) -> tuple[Any, str]:
    """A peer's module, or None and why not."""
    try:
        return import_module(PEERS[name]), ""
    except Exception as error:  # noqa: BLE001 (a library built against another one raises anything)
        return None, f"could not be imported: {error}"


def missing() -> dict[str, str]:
    """Peers that cannot take part, and why; some take part only in reading."""
    reasons = {}
    for name in PEERS:
        module, reason = found(name)
        if module is None:
            reasons[name] = reason
        elif name == "h5py" and not module.get_config().mpi:
            reasons["parallel h5py"] = "this h5py is built without MPI; it gathers on rank 0, and each rank reads"
        elif name == "netCDF4" and not getattr(module, "__has_parallel4_support__", False):
            reasons[name] = "this netCDF4 is built without parallel HDF5"
        elif name in ("netCDF4", "PnetCDF"):
            reasons[name] = "is installed, but has no way here yet"
    return reasons


class Library(Protocol):
    """A library that makes, opens, writes and reads Zarr arrays of float64 without compression, on one rank."""

    name: str
    role: str
    #: Whether `durable` is left to `os.sync`.
    leaves_sync: bool

    def create(self, path: Path, shape: Sequence[int], chunks: Sequence[int]) -> Any:
        """A new array."""

    def create_all(self, paths: Sequence[Path], data: Sequence[NDArray[Any]]) -> None:
        """New arrays of one chunk each, and what is in them."""

    def open(self, path: Path) -> Any:
        """An array that is there."""

    def put(self, handle: Any, part: Slices, data: NDArray[Any]) -> None:
        """Write a part."""

    def get(self, handle: Any, part: Slices, out: NDArray[Any]) -> None:
        """Read a part."""


class ZarrPython:
    """zarr-python, whose arrays are read and written by indexing."""

    name, role, leaves_sync = "zarr-python", PEER, True

    def __init__(self, zarr: Any) -> None:
        self._zarr = zarr

    def create(self, path: Path, shape: Sequence[int], chunks: Sequence[int]) -> Any:
        """See `Library`."""
        given: dict[str, Any] = {
            "shape": tuple(shape),
            "chunks": tuple(chunks),
            "dtype": "float64",
            "compressors": None,
        }
        given |= {"chunk_key_encoding": {"name": "default", "separator": "."}}
        return self._zarr.create_array(store=str(path), **given)

    def create_all(self, paths: Sequence[Path], data: Sequence[NDArray[Any]]) -> None:
        """See `Library`."""
        for path, one in zip(paths, data, strict=True):
            self.create(path, one.shape, one.shape)[...] = one

    def open(self, path: Path) -> Any:
        """See `Library`."""
        return self._zarr.open_array(store=str(path), mode="r+")

    def put(self, handle: Any, part: Slices, data: NDArray[Any]) -> None:
        """See `Library`."""
        handle[part] = data

    def get(self, handle: Any, part: Slices, out: NDArray[Any]) -> None:
        """See `Library`."""
        out[...] = handle[part]


class TensorStore:
    """TensorStore, which makes files durable one by one unless told otherwise, and has many requests under way."""

    name, role, leaves_sync = "TensorStore", PEER, False

    def __init__(self, tensorstore: Any, *, durable: bool) -> None:
        self._tensorstore, self._durable = tensorstore, durable

    def _begin(self, path: Path, shape: Sequence[int] | None, chunks: Sequence[int]) -> Any:
        spec: dict[str, Any] = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/"}}
        spec["context"] = {"file_io_sync": self._durable}
        if shape is not None:
            spec["metadata"] = {"shape": list(shape), "data_type": "float64", "chunk_grid": _grid(chunks)}
            # Without codecs, it would put large chunks into shards.
            spec["metadata"] |= {"chunk_key_encoding": _KEYS, "codecs": _CODECS}
        return self._tensorstore.open(spec, create=shape is not None, open=shape is None)

    def create(self, path: Path, shape: Sequence[int], chunks: Sequence[int]) -> Any:
        """See `Library`."""
        return self._begin(path, shape, chunks).result()

    def create_all(self, paths: Sequence[Path], data: Sequence[NDArray[Any]]) -> None:
        """See `Library`."""
        opened = [self._begin(path, one.shape, one.shape) for path, one in zip(paths, data, strict=True)]
        written = [handle.result().write(one) for handle, one in zip(opened, data, strict=True)]
        for future in written:
            future.result()

    def open(self, path: Path) -> Any:
        """See `Library`."""
        return self._begin(path, None, ()).result()

    def put(self, handle: Any, part: Slices, data: NDArray[Any]) -> None:
        """See `Library`."""
        handle[part].write(data).result()

    def get(self, handle: Any, part: Slices, out: NDArray[Any]) -> None:
        """See `Library`."""
        out[...] = handle[part].read().result()


#: Chunks are files of the array's directory, as this package has them.
_KEYS = {"name": "default", "configuration": {"separator": "."}}


_CODECS = [{"name": "bytes", "configuration": {"endian": "little"}}]


def _grid(chunks: Sequence[int]) -> dict[str, Any]:
    return {"name": "regular", "configuration": {"chunk_shape": list(chunks)}}


def _metadata(shape: Sequence[int], chunks: Sequence[int]) -> str:
    told = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": "float64",
        "chunk_grid": _grid(chunks),
        "chunk_key_encoding": _KEYS,
        "fill_value": 0.0,
        "codecs": _CODECS,
        "attributes": {},
    }
    return json.dumps(told, indent=2)


class Plain:
    """The limit: the plainest Python code that makes the same files, and replaces chunks whole."""

    name, role, leaves_sync = "limit: plain code", LIMIT, True

    def create(self, path: Path, shape: Sequence[int], chunks: Sequence[int]) -> Any:
        """See `Library`."""
        path.mkdir()
        (path / "zarr.json").write_text(_metadata(shape, chunks))
        return path, tuple(chunks), "."

    def create_all(self, paths: Sequence[Path], data: Sequence[NDArray[Any]]) -> None:
        """See `Library`."""
        for path, one in zip(paths, data, strict=True):
            self.put(self.create(path, one.shape, one.shape), tuple(slice(0, extent) for extent in one.shape), one)

    def open(self, path: Path) -> Any:
        """See `Library`."""
        told = json.loads((path / "zarr.json").read_text())
        chunks = told["chunk_grid"]["configuration"]["chunk_shape"]
        return path, tuple(chunks), told["chunk_key_encoding"]["configuration"]["separator"]

    def _cells(self, handle: Any, part: Slices) -> Iterator[tuple[Path, Slices, Slices]]:
        """Files of the chunks that a part meets, with where they meet in the chunk and in the part."""
        path, chunks, separator = handle
        spans = [range(one.start // size, -(-one.stop // size)) for one, size in zip(part, chunks, strict=True)]
        for at in itertools.product(*spans):
            starts = [place * size for place, size in zip(at, chunks, strict=True)]
            both = [
                (max(one.start, start), min(one.stop, start + size))
                for one, start, size in zip(part, starts, chunks, strict=True)
            ]
            inside = tuple(slice(low - start, high - start) for (low, high), start in zip(both, starts, strict=True))
            outside = tuple(
                slice(low - one.start, high - one.start) for (low, high), one in zip(both, part, strict=True)
            )
            yield path / separator.join(["c", *map(str, at)]), inside, outside

    def put(self, handle: Any, part: Slices, data: NDArray[Any]) -> None:
        """See `Library`."""
        chunks = handle[1]
        for file, inside, outside in self._cells(handle, part):
            cell = data[outside]
            if file.exists():
                if cell.shape != chunks:
                    cell, new = np.fromfile(file, "f8", math.prod(chunks)).reshape(chunks), cell
                    cell[inside] = new
                # Each chunk is old or new at every moment, as hyperslab has it.
                fresh = file.with_name(f".{file.name}")
                np.ascontiguousarray(cell).tofile(fresh)
                fresh.replace(file)
            else:
                np.ascontiguousarray(cell).tofile(file)

    def get(self, handle: Any, part: Slices, out: NDArray[Any]) -> None:
        """See `Library`."""
        chunks = handle[1]
        for file, inside, outside in self._cells(handle, part):
            target = out[outside]
            if target.shape == chunks and target.flags.c_contiguous:
                with file.open("rb", buffering=0) as opened:
                    read = opened.readinto(target.reshape(-1).view(np.uint8).data)
                assert read == target.nbytes, f"{file} ends early"
            else:
                # Without a copy of the whole chunk.
                target[...] = np.memmap(file, "f8", "r", shape=chunks)[inside]


def libraries(*, durable: bool) -> list[Library]:
    """Those that are installed, and plain code."""
    listed: list[Library] = []
    zarr, tensorstore = found("zarr-python")[0], found("TensorStore")[0]
    if zarr is not None:
        listed.append(ZarrPython(zarr))
    if tensorstore is not None:
        listed.append(TensorStore(tensorstore, durable=durable))
    return [*listed, Plain()]
