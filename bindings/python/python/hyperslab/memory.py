"""Stores in the memory of this process, and where things are stored at all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, MutableMapping
from typing import TypeAlias

from hyperslab import _core
from hyperslab.errors import InvalidError
from hyperslab.striped import Striped

__all__ = ["MemoryPath", "MemoryStore"]


class MemoryPath:
    """A name in a store in memory; made by ``memory / "name"``."""

    def __init__(self, memory: MemoryStore, name: str) -> None:
        self.memory = memory
        self.name = name

    def __truediv__(self, name: str) -> MemoryPath:
        """A name below this one."""
        return MemoryPath(self.memory, f"{self.name}/{name}")

    def __str__(self) -> str:
        return self.memory._core.full(self.name)

    def __repr__(self) -> str:
        return f"<MemoryPath '{self}'>"


class MemoryStore(MutableMapping[str, bytes]):
    r"""Directories and files in the memory of this process, to be given wherever a path is.

    Ranks that are threads share one and the same object. Several processes of MPI cannot: each would have one of its
    own, so all get an `UnsupportedError`. What is said of paths holds: steps become visible whole or not at all, an
    older file stays until its successor is complete. But nothing outlives the process, so ``durable`` does nothing.

    As a mapping, it has the names and contents of all files. What is not published yet is there, too, under names of
    which a part begins with a dot. Values are copies.

    Parameters
    ----------
    files : mapping of names to bytes, optional
        What is in it at first.

    Examples
    --------
    >>> import numpy as np, hyperslab as hs
    >>> memory = hs.MemoryStore()
    >>> with hs.open(memory / "run.zarr", "w") as store:
    ...     report = store.write("rho", np.arange(6.0).reshape(2, 3))
    >>> with hs.open(memory / "run.zarr") as store:
    ...     store.read("rho", section=(1,))
    array([[3., 4., 5.]])
    >>> list(memory)
    ['run.zarr/rho/c.0.0', 'run.zarr/rho/zarr.json', 'run.zarr/zarr.json']
    >>> report = hs.save_npy(memory / "a.npy", np.ones(4, "u1"))
    >>> memory["a.npy"][-4:]
    b'\x01\x01\x01\x01'

    Ranks that are threads, and a store that is the whole memory:

    >>> memory = hs.MemoryStore()
    >>> def save(comm):
    ...     dist = hs.Distribution.block((4, 4), comm.size)
    ...     with hs.open(memory, "w", comm=comm) as store:
    ...         store.write("rank", np.full(dist.local_shape(comm), comm.rank), dist)
    >>> _ = hs.threads(4, save)
    >>> hs.open(memory).read("rank")
    array([[0, 0, 1, 1],
           [0, 0, 1, 1],
           [2, 2, 3, 3],
           [2, 2, 3, 3]])
    """

    def __init__(self, files: Mapping[str, bytes] | None = None) -> None:
        self._core = _core.Memory()
        self.update(files or {})

    def __truediv__(self, name: str) -> MemoryPath:
        """A name in it, to be given as a path."""
        return MemoryPath(self, name)

    def files(self) -> dict[str, bytes]:
        """Names and contents of all files, sorted by name."""
        return dict(self)

    @property
    def nbytes(self) -> int:
        """Bytes of all files together."""
        return sum(length for _, length in self._core.lengths())

    def __getitem__(self, name: str) -> bytes:
        """The content of a file."""
        found = self._core.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def __setitem__(self, name: str, content: bytes) -> None:
        """Write a whole file; who reads it at the moment sees the old one or the new one."""
        self._core.put(name, bytes(content))

    def __delitem__(self, name: str) -> None:
        """Remove a file, or a directory with all that is in it."""
        if not self._core.remove(name):
            raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        """Whether there is a file with this name."""
        return isinstance(name, str) and self._core.length(name) is not None

    def __iter__(self) -> Iterator[str]:
        """Names of all files, sorted."""
        return iter([name for name, _ in self._core.lengths()])

    def __len__(self) -> int:
        """Number of files."""
        return len(self._core.lengths())

    def __bool__(self) -> bool:
        """True, also while it is empty."""
        return True

    def __str__(self) -> str:
        return self._core.full("")

    def __repr__(self) -> str:
        return f"<MemoryStore '{self}': {len(self)} files, {self.nbytes} B>"


#: Where something is stored.
Place: TypeAlias = str | os.PathLike[str] | MemoryStore | MemoryPath | Striped


def place_text(place: Place) -> str:
    """A place in words, for messages; also one that makes no sense."""
    if isinstance(place, (str, os.PathLike)):
        return os.fspath(place)
    return str(place)


def place_of(place: Place) -> str | tuple[_core.Memory, str] | tuple[list[str], str, int]:
    """A place as the core takes it."""
    if isinstance(place, MemoryStore):
        return (place._core, "")
    if isinstance(place, MemoryPath):
        return (place.memory._core, place.name)
    if isinstance(place, (str, os.PathLike)):
        return os.fspath(place)
    if isinstance(place, Striped):
        return place._parts()
    message = f"a path, a MemoryStore or a Striped is needed, but this is {type(place).__name__}"
    raise InvalidError(message)
