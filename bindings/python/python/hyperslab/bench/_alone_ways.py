"""How this package and others read and write one array in one process, for ``hyperslab bench alone``."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hyperslab as hs

__all__ = ["FILES", "FileKind", "Way", "ways_for"]

#: Reads a section.
Reader = Callable[[Any], Any]


@dataclass(frozen=True)
class FileKind:
    """A kind of file, and who else reads it."""

    suffix: str
    compression: str | None
    peers: tuple[str, ...]


FILES = {
    "zarr": FileKind(".zarr", None, ("tensorstore", "zarr")),
    "zarr-zstd": FileKind(".zarr", "zstd", ("tensorstore", "zarr")),
    "hdf5": FileKind(".h5", None, ("h5py",)),
    "hdf5-gzip": FileKind(".h5", "gzip", ("h5py",)),
    "hdf5-contiguous": FileKind(".h5", "contiguous", ("h5py",)),
}


@dataclass(frozen=True)
class Way:
    """One library."""

    name: str
    write: Callable[[Path, Any], None]
    reading: Callable[[Path], AbstractContextManager[Reader]]

    @staticmethod
    def forget(path: Path) -> None:
        """Remove what was written."""
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)


def _ours(kind: FileKind, chunk: tuple[int, ...]) -> Way:
    def write(path: Path, values: Any) -> None:
        options: dict[str, Any] = {} if kind.compression == "contiguous" else {"chunks": chunk}
        if kind.compression in ("zstd", "gzip"):
            options |= {"compression": kind.compression, "compression_opts": 1}
        if kind.compression == "gzip":
            options["shuffle"] = True
        with hs.open(path, "w", comm=None, durable=False) as file:
            file.write("a", values, **options)

    @contextmanager
    def reading(path: Path) -> Iterator[Reader]:
        with hs.open(path, comm=None) as file:
            yield file["a"].__getitem__

    return Way("hyperslab", write, reading)


def _h5py(kind: FileKind, chunk: tuple[int, ...]) -> Way:
    import h5py

    def write(path: Path, values: Any) -> None:
        options: dict[str, Any] = {} if kind.compression == "contiguous" else {"chunks": chunk}
        if kind.compression == "gzip":
            options |= {"compression": "gzip", "compression_opts": 1, "shuffle": True}
        with h5py.File(path, "w", libver="latest") as file:
            file.create_dataset("a", data=values, **options)

    @contextmanager
    def reading(path: Path) -> Iterator[Reader]:
        with h5py.File(path) as file:
            yield file["a"].__getitem__

    return Way("h5py", write, reading)


def _zarr(kind: FileKind, chunk: tuple[int, ...]) -> Way:
    import zarr

    def write(path: Path, values: Any) -> None:
        codecs = zarr.codecs.ZstdCodec(level=1) if kind.compression == "zstd" else None
        group = zarr.open_group(path, mode="w")
        array = group.create_array("a", shape=values.shape, dtype=values.dtype, chunks=chunk, compressors=codecs)
        array[...] = values

    @contextmanager
    def reading(path: Path) -> Iterator[Reader]:
        group: Any = zarr.open_group(path, mode="r")
        yield group["a"].__getitem__

    return Way("zarr-python", write, reading)


def _tensorstore(kind: FileKind, chunk: tuple[int, ...]) -> Way:
    import tensorstore

    def spec(path: Path) -> dict[str, Any]:
        return {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/a/"}}

    def write(path: Path, values: Any) -> None:
        codecs: list[dict[str, Any]] = [{"name": "bytes", "configuration": {"endian": "little"}}]
        if kind.compression == "zstd":
            codecs.append({"name": "zstd", "configuration": {"level": 1}})
        about = {
            "shape": list(values.shape),
            "data_type": values.dtype.name,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk)}},
            "codecs": codecs,
        }
        store = tensorstore.open(spec(path) | {"metadata": about}, create=True).result()
        store.write(values).result()

    @contextmanager
    def reading(path: Path) -> Iterator[Reader]:
        store = tensorstore.open(spec(path), read=True).result()
        yield lambda key: store[key].read().result()

    return Way("TensorStore", write, reading)


_MAKERS = {"h5py": _h5py, "zarr": _zarr, "tensorstore": _tensorstore}


def ways_for(kind: str, chunk: tuple[int, ...]) -> list[Way]:
    """Ours first, then the others that are installed; the last is the one that the format is known by."""
    file = FILES[kind]
    peers = [_MAKERS[name](file, chunk) for name in file.peers if importlib.util.find_spec(name)]
    return [_ours(file, chunk), *peers]
