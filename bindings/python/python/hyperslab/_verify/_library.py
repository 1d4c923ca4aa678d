"""Nodes of a store as the library's own reader sees them, one at a time.

The reader opens groups by path and arrays by name. What is checked may lie in no group, in one that is damaged, or
under a name that the library refuses. So each node gets a temporary group of its own, with one symbolic link to it.
"""

from __future__ import annotations

import json
import re
import resource
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from hyperslab import _core
from hyperslab._findings import Box, Severity
from hyperslab._verify._grid import elements
from hyperslab.array import ArrayInfo
from hyperslab.comm import connect
from hyperslab.errors import (
    CorruptError,
    Error,
    InvalidError,
    NotFoundError,
    PeerError,
    StorageError,
    UnsupportedError,
)
from hyperslab.group import Group
from hyperslab.memory import place_of

#: What is no larger needs no look at how much memory there is [B].
SMALL_BYTES = 8 << 20

#: Name of the link.
_NODE = "node"
_GROUP = json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}})


class Problem(Exception):  # noqa: N818 (it is told, and no error of the program)
    """Why something cannot be read: damage, or a reason why it cannot be checked."""

    def __init__(self, severity: Severity, kind: str, text: str) -> None:
        super().__init__(text)
        self.severity: Severity = severity
        self.kind = kind
        self.text = text


class Library:
    """Reads nodes by the library's own reader, on any thread. A context manager."""

    def __init__(self, buffer_bytes: int | None, storage_seconds: float) -> None:
        self._buffer_bytes = buffer_bytes
        # Nobody else takes part, so the first two limits, on other ranks, do not matter.
        self._storage_seconds = storage_seconds
        self._local = threading.local()
        self._made = 0
        try:
            self._folder = tempfile.TemporaryDirectory(prefix="hyperslab-verify-")
        except OSError as error:
            message = f"no temporary directory can be made: {error}\n  hint: TMPDIR names another place for it"
            raise StorageError(message) from error

    def __enter__(self) -> Library:
        """Use it as a context."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the temporary groups."""
        self._folder.cleanup()

    def node(self, path: Path) -> Node:
        """The group or array in a directory."""
        self._made += 1
        folder = Path(self._folder.name, str(self._made))
        folder.mkdir()
        (folder / "zarr.json").write_text(_GROUP, encoding="utf-8")
        (folder / _NODE).symlink_to(path.absolute())
        return Node(self, folder, path)

    def opened(self, folder: Path) -> Group:
        """The temporary group, opened once on each thread until another one is asked for."""
        if getattr(self._local, "folder", None) != folder:
            member = connect(None)
            given: _core._OpenKeywords = {
                "durable": False,
                "storage_seconds": self._storage_seconds,
                "buffer_bytes": self._buffer_bytes,
            }
            # Not `hyperslab.open`, which warns of updates that have not ended; they are findings here.
            core = _core.Target()
            core.open_group(member, place_of(folder), "r", given)
            self._local.store = Group(core, member)
            self._local.folder = folder
        opened: Group = self._local.store
        return opened


class Node:
    """A group or an array; made by `Library.node`."""

    def __init__(self, library: Library, folder: Path, path: Path) -> None:
        self._library = library
        self._folder = folder
        self._path = path

    def check_group(self) -> None:
        """Read the metadata of a group.

        Raises
        ------
        Problem
            If they are not valid, or not supported.
        """
        try:
            self._library.opened(self._folder).group(_NODE)
        except Error as error:
            raise self._problem(error, "metadata") from error

    def array(self) -> ArrayInfo:
        """Read the metadata of an array.

        Raises
        ------
        Problem
            If they are not valid, or not supported.
        """
        try:
            return self._library.opened(self._folder)._info(_NODE)
        except Error as error:
            raise self._problem(error, "metadata") from error

    def read(self, box: Box, dtype: np.dtype[Any]) -> None:
        """Read a box of an array, and forget it.

        Raises
        ------
        Problem
            If it cannot be read.
        """
        section = tuple(slice(low, high) for low, high in box)
        # Without ml_dtypes, NumPy has no type for bfloat16.
        kind = "float32" if dtype == np.dtype("V2") else None
        try:
            with room_for(elements(box) * dtype.itemsize):
                self._library.opened(self._folder).read(_NODE, section=section or None, dtype=kind)
        except Error as error:
            raise self._problem(error, "chunk") from error

    def _problem(self, error: Error, kind: str) -> Problem:
        """What an error of the reader says about the node."""
        return problem_of(error, kind, reason_of(error).replace(str(self._folder / _NODE), str(self._path)))


def problem_of(error: Error, kind: str, text: str) -> Problem:
    """What an error of the reader says about what it read; other errors, such as limits of time, are raised again."""
    if isinstance(error.__cause__, MemoryError):
        return Problem("unchecked", "buffer", f"expected memory to read it, found none: {error.__cause__}")
    if isinstance(error, NotFoundError):
        return Problem("unchecked", "gone", "it was removed meanwhile")
    if isinstance(error, PeerError):
        # There are no other ranks: the system gave no thread.
        return Problem("unchecked", "buffer", text)
    if isinstance(error, UnsupportedError):
        return Problem("unchecked", "unsupported", text)
    if isinstance(error, (CorruptError, StorageError)):
        return Problem("damage", kind, text)
    if isinstance(error, InvalidError):
        # Metadata that contradict themselves are told as invalid; chunks that need too much memory, too.
        return Problem("damage", kind, text) if kind == "metadata" else Problem("unchecked", "buffer", text)
    raise error


class Readers:
    """Threads that read, so many at most; where the system gives none, that of the caller reads."""

    def __init__(self, jobs: int) -> None:
        self._pool = ThreadPoolExecutor(jobs, thread_name_prefix="hyperslab-verify")
        self._is_alone = False

    def submit(self, read: Callable[..., None], *arguments: Any) -> Future[None]:
        """Begin to read."""
        if not self._is_alone:
            try:
                return self._pool.submit(read, *arguments)
            except RuntimeError:
                # It is queued all the same. If a thread that there is comes to it, nobody listens.
                self._is_alone = True
        done: Future[None] = Future()
        try:
            read(*arguments)
            done.set_result(None)
        except Exception as error:  # noqa: BLE001 (who asks for the result has it)
            done.set_exception(error)
        return done

    def end(self) -> None:
        """Wait for what is being read, and begin nothing more."""
        self._pool.shutdown(cancel_futures=True)


#: One at a time, where memory is short.
_LARGE = threading.Lock()


@contextmanager
def room_for(nbytes: int) -> Iterator[None]:
    """Read something of so many bytes only if the process may have the memory that this takes.

    Where it has a limit of its own (``ulimit -v``), what is asked for beyond it would end the process.

    Raises
    ------
    Problem
        If it may not have it, or there is none.
    """
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY or nbytes < SMALL_BYTES:
        with _memory_is_said(nbytes):
            yield
        return
    with _LARGE:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        # Elements, the chunk before and after it is decoded, and what else is needed meanwhile.
        needed = 3 * nbytes + 2 * SMALL_BYTES
        if needed > limit - used:
            left = f"{max(limit - used, 0)} B that the process may have"
            text = f"expected about {needed} B of memory to read it, found {left}"
            raise Problem("unchecked", "buffer", text)
        with _memory_is_said(nbytes):
            yield


@contextmanager
def _memory_is_said(nbytes: int) -> Iterator[None]:
    try:
        yield
    except MemoryError as error:
        raise Problem(
            "unchecked", "buffer", f"expected {nbytes} B of memory to read it, found none: {error}"
        ) from error


def reason_of(error: Error) -> str:
    """The first line of an error, from what was expected on."""
    text = str(error).partition("\n")[0]
    found = re.search(r"expected .*", text)
    return re.sub(r"^on rank \d+: ", "", text) if found is None else found[0]
