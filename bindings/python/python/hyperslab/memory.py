"""Stores in the memory of this process, and where things are stored at all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, MutableMapping
from typing import ClassVar, TypeAlias

from hyperslab import _core
from hyperslab._paths import local_path
from hyperslab._values import unfit
from hyperslab.striped import Striped

__all__ = ["MemoryPath", "MemoryStore", "ObjectMemory"]


class MemoryPath:
    """A name in a store or object store in memory; made by ``memory / "name"``."""

    def __init__(self, memory: _InMemory, name: str) -> None:
        self.memory = memory
        self.name = name

    def __truediv__(self, name: str) -> MemoryPath:
        """A name below this one."""
        return MemoryPath(self.memory, f"{self.name}/{name}")

    def __str__(self) -> str:
        return self.memory._core.full(self.name)

    def __repr__(self) -> str:
        return f"<MemoryPath '{self}'>"


class _InMemory(MutableMapping[str, bytes]):
    """Names and contents of what lies in the memory of this process."""

    _core: _core.Memory | _core.MemoryObjects
    #: What there are many of.
    _many: ClassVar[str]

    def __truediv__(self, name: str) -> MemoryPath:
        """A name in it, to be given as a path."""
        return MemoryPath(self, name)

    def files(self) -> dict[str, bytes]:
        """Names and contents of all files or objects, sorted by name."""
        return dict(self)

    @property
    def nbytes(self) -> int:
        """Bytes of all files or objects together."""
        return sum(length for _, length in self._core.lengths())

    def __getitem__(self, name: str) -> bytes:
        """The content of a file or object."""
        found = self._core.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def __setitem__(self, name: str, content: bytes) -> None:
        """Write it whole; who reads it at the moment sees the old one or the new one."""
        self._core.put(name, bytes(content))

    def __delitem__(self, name: str) -> None:
        """Remove it, or a directory with all that is in it."""
        if not self._core.remove(name):
            raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        """Whether there is a file or object with this name."""
        return isinstance(name, str) and self._core.length(name) is not None

    def __iter__(self) -> Iterator[str]:
        """Names of all of them, sorted."""
        return iter([name for name, _ in self._core.lengths()])

    def __len__(self) -> int:
        """How many there are."""
        return len(self._core.lengths())

    def __bool__(self) -> bool:
        """True, also while it is empty."""
        return True

    def __str__(self) -> str:
        return self._core.full("")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{self}': {len(self)} {self._many}, {self.nbytes} B>"


class MemoryStore(_InMemory):
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

    _many = "files"

    def __init__(self, files: Mapping[str, bytes] | None = None) -> None:
        self._core: _core.Memory = _core.Memory()
        self.update(files or {})


class ObjectMemory(_InMemory):
    """An object store in the memory of this process: what an S3 bucket can do, and no more.

    Whole objects are put under keys, if nothing has the key or if what has it is unchanged; they are read in ranges,
    listed and deleted. Nothing is renamed and nothing is written at an offset. Zarr stores lie there: new arrays and
    steps become visible whole or not at all, since their metadata come last; whole chunks can be appended. What an
    object store cannot do is refused: to replace or change an array that readers see, and to write raw or npy files.

    It is for tests of programs that shall run on object stores. The objects are those of all who have them, and each
    `program` is disturbed by itself: replies are lost, changes come late, or it dies.

    Parameters
    ----------
    objects : mapping of keys to bytes, optional
        What is in it at first.

    Examples
    --------
    >>> import numpy as np, hyperslab as hs
    >>> memory = hs.ObjectMemory()
    >>> with hs.open(memory / "run.zarr", "w") as store:
    ...     report = store.write("rho", np.arange(6.0).reshape(2, 3))
    >>> list(memory)
    ['run.zarr/rho/c.0.0', 'run.zarr/rho/zarr.json', 'run.zarr/zarr.json']

    A program that dies when it has made 5 changes leaves nothing that a reader sees:

    >>> program = memory.program()
    >>> program.dies(after=5)
    >>> try:
    ...     hs.open(program / "run.zarr", "r+").write("u", np.ones(4))
    ... except hs.StorageError:
    ...     hs.open(memory / "run.zarr").arrays()
    ['rho']
    """

    _many = "objects"

    def __init__(self, objects: Mapping[str, bytes] | None = None) -> None:
        self._core: _core.MemoryObjects = _core.MemoryObjects()
        self.update(objects or {})

    def program(self) -> ObjectMemory:
        """The same objects, as another program sees them: with changes, disturbances and a death of its own."""
        other = object.__new__(ObjectMemory)
        other._core = self._core.program()
        return other

    def stop(self, *, after: int) -> None:
        """Stop this program when it asks for a change after so many: all its changes wait until it goes on.

        Parameters
        ----------
        after : int
            How many changes are still carried out.
        """
        self._core.stop(after)

    def wait_stopped(self, seconds: float) -> bool:
        """Wait until this program has been stopped, at most so long [s]; returns whether it was."""
        return self._core.wait_stopped(seconds)

    def go_on(self) -> None:
        """Let this program go on."""
        self._core.go_on()

    def disturb(self, change: int, *, late: bool = False) -> None:
        """Let the reply to a change be lost.

        Parameters
        ----------
        change : int
            Number of the change, counted from now on and from 0.
        late : bool, optional
            Whether it is carried out only by `deliver`, and not at once.
        """
        self._core.disturb(change, late)

    def disturb_by_chance(self, seed: int, share: float) -> None:
        """Let a share of the changes be lost or late, by chance.

        Parameters
        ----------
        seed : int
            The same one gives the same changes.
        share : float
            How many of them, between 0 and 1.
        """
        self._core.disturb_by_chance(seed, round(share * 1000))

    def dies(self, *, after: int, late: bool = False, known: bool = True) -> None:
        """Let this program die: nothing that it asks for is done any more.

        Parameters
        ----------
        after : int
            How many changes are still carried out.
        late : bool, optional
            Whether the change in which it dies is still under way, and carried out by `deliver`.
        known : bool, optional
            Whether others can know that it is dead, as that of a process on their own host.
        """
        self._core.dies(after, late, known)

    @property
    def is_dead(self) -> bool:
        """Whether this program has died."""
        return self._core.is_dead()

    def deliver(self) -> int:
        """Carry out all changes that are late, of all programs; returns how many there were."""
        return self._core.deliver()

    def changes(self) -> list[str]:
        """What this program asked to change so far, in words."""
        return self._core.changes()

    def clean(self, name: str = "", *, dry_run: bool = False) -> list[str]:
        """Remove what owners left of a store who are not known to live, as ``hyperslab clean`` does.

        Parameters
        ----------
        name : str, optional
            The store.
        dry_run : bool, optional
            Whether nothing is removed, and it is only told what would be.

        Returns
        -------
        list of str
            What was found, a line each.
        """
        return [f"{path}: {note}" for _, path, note in self._core.clean(name, dry_run)]


#: Where something is stored.
Place: TypeAlias = str | os.PathLike[str] | MemoryStore | ObjectMemory | MemoryPath | Striped


def place_text(place: Place) -> str:
    """A place in words, for messages; also an invalid one."""
    if isinstance(place, (str, os.PathLike)):
        return os.fsdecode(place)
    return str(place)


def place_of(place: Place) -> str | tuple[_core.Memory | _core.MemoryObjects, str] | tuple[list[str], str, int]:
    """A place as the core takes it."""
    if isinstance(place, (MemoryStore, ObjectMemory)):
        return (place._core, "")
    if isinstance(place, MemoryPath):
        return (place.memory._core, place.name)
    if isinstance(place, (str, os.PathLike)):
        return local_path(place)
    if isinstance(place, Striped):
        return place._parts()
    raise unfit("path", "a string, a Path, a MemoryStore, an ObjectMemory or a Striped", place)
