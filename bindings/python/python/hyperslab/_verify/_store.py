"""A Zarr store: each array's files are held against its chunk grid, and each chunk is read."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import stat
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

from hyperslab._findings import Finding, Severity, VerifiedArray
from hyperslab._verify import _leftovers
from hyperslab._verify._files import Damaged, Denied, follow, kind_of, link_text, ours
from hyperslab._verify._grid import Blocks, Grid, Index, elements, named, within
from hyperslab._verify._library import Library, Node, Problem, Readers
from hyperslab._verify._progress import Bar
from hyperslab._verify._tree import ArrayNode, changed, unlistable, walk
from hyperslab.array import ArrayInfo

#: How often an array is checked that another program replaces meanwhile.
ATTEMPTS_MAX = 5


@dataclasses.dataclass
class Found:
    """What was found so far."""

    findings: list[Finding] = dataclasses.field(default_factory=list)
    arrays: list[VerifiedArray] = dataclasses.field(default_factory=list)
    groups: int = 0
    nbytes: int = 0


def verify_store(path: Path, jobs: int, buffer_bytes: int | None, storage_seconds: float) -> Found:
    """Check all groups and arrays below a directory."""
    found = Found()
    with Library(buffer_bytes, storage_seconds) as library:
        tree = walk(path, library, found.findings.append)
        found.groups = tree.groups
        total = sum(map(_total_bytes, tree.arrays))
        pool = Readers(jobs)
        try:
            with Bar("verify", total) as bar:
                for array in sorted(tree.arrays, key=lambda array: array.name):
                    begun = found.nbytes
                    _verify_array(array, library, pool, jobs, bar, found)
                    # What is absent, damaged or not checked needs no time.
                    bar.add(_total_bytes(array) - (found.nbytes - begun))
        finally:
            pool.end()
    return found


def _verify_array(array: ArrayNode, library: Library, pool: Readers, jobs: int, bar: Bar, found: Found) -> None:
    """Check an array; again if it was replaced meanwhile, so that chunks were held against other metadata."""
    before = len(found.findings)
    for _ in range(ATTEMPTS_MAX):
        result = _Array(array, library.node(array.path), pool, jobs, bar, found).run()
        now = changed(array) if len(found.findings) > before else None
        if now is None:
            found.arrays.append(result)
            return
        array = now
        del found.findings[before:]
    text = f"it was replaced {ATTEMPTS_MAX} times while it was checked"
    found.findings.append(Finding("unchecked", "gone", str(array.path), text, array.name))
    found.arrays.append(VerifiedArray(array.name))


def _total_bytes(array: ArrayNode) -> int:
    """Size of all elements, as far as the name of their type tells; for the bar."""
    metadata = array.metadata
    grid = Grid.of(metadata)
    bits = re.search(r"[0-9]+$", named(metadata.get("data_type"))[0])
    itemsize = max(int(bits[0]) // 8, 1) if bits is not None and len(bits[0]) < 4 else 1
    return 0 if grid is None else math.prod(grid.shape) * itemsize


class _Array:
    """The check of one array."""

    def __init__(
        self,
        array: ArrayNode,
        node: Node,
        pool: Readers,
        jobs: int,
        bar: Bar,
        found: Found,
    ) -> None:
        self._array = array
        self._metadata = array.metadata
        self._grid = Grid.of(self._metadata)
        self._node = node
        self._pool = pool
        self._most = 4 * jobs
        self._bar = bar
        self._found = found
        self._pending: deque[tuple[Index, Index, Future[None]]] = deque()
        self._checked = self._damaged = self._present = 0
        #: Whether nothing more of it is read, since all of it would fail alike.
        self._given_up = False
        self._info: ArrayInfo | None = None
        #: Length of each chunk's file, where the reader does not need all of it and would not notice.
        self._length: int | None = None

    def run(self) -> VerifiedArray:
        try:
            self._info = self._node.array()
            if self._grid is not None:
                self._length = self._grid.plain_bytes(self._metadata, self._info.dtype.itemsize)
        except Problem as problem:
            path = self._array.path / "zarr.json"
            self._note(problem.severity, problem.kind, str(path), problem.text)
            if problem.severity == "damage":
                self._grid = None
        self._read_all()
        name, grid = self._array.name, self._grid
        dtype = named(self._metadata.get("data_type"))[0] or None
        if grid is None:
            return VerifiedArray(name, dtype=dtype)
        return VerifiedArray(
            name,
            grid.shape,
            dtype,
            grid.chunk_shape,
            chunks=grid.count,
            checked=self._checked,
            damaged=self._damaged,
            absent=grid.count - self._present,
        )

    # ---- reading -----------------------------------------------------------------------------------------------

    def _read_all(self) -> None:
        chunks = self._scan()
        grid, info = self._grid, self._info
        if grid is None or info is None:
            # Nothing can be read, but what else lies there is told.
            for _ in chunks:
                pass
            return
        blocks = Blocks(grid, elements(grid.box((0,) * grid.ndim, (0,) * grid.ndim)) * info.dtype.itemsize)
        if blocks.single:
            for index in chunks:
                self._submit(index, index)
        else:
            for index in chunks:
                blocks.add(index)
            for first, last in blocks.take():
                self._submit(first, last)
        while self._pending:
            self._settle()

    def _submit(self, first: Index, last: Index) -> None:
        if self._given_up:
            return
        while len(self._pending) >= self._most:
            self._settle()
        self._begin(first, last)

    def _begin(self, first: Index, last: Index) -> None:
        assert self._grid is not None
        assert self._info is not None
        box = self._grid.box(first, last)
        self._pending.append((first, last, self._pool.submit(self._node.read, box, self._info.dtype)))

    def _settle(self) -> None:
        """Wait for the oldest of what is being read."""
        assert self._grid is not None
        assert self._info is not None
        first, last, future = self._pending.popleft()
        try:
            future.result()
        except Problem as problem:
            if first == last:
                self._failed(first, problem)
                return
            # One of several: which one is found by reading each by itself.
            for index in within(first, last):
                self._begin(index, index)
            return
        nbytes = elements(self._grid.box(first, last)) * self._info.dtype.itemsize
        self._checked += math.prod(high - low + 1 for low, high in zip(first, last, strict=True))
        self._found.nbytes += nbytes
        self._bar.add(nbytes)

    def _failed(self, index: Index, problem: Problem) -> None:
        assert self._grid is not None
        path = str(self._array.path / self._grid.key(index))
        if problem.severity == "damage":
            if _is_denied(path):
                self._note("unchecked", "permission", path, "permission denied", index)
                return
            self._damaged += 1
            self._note("damage", problem.kind, path, problem.text, index)
            return
        if problem.kind == "gone":
            return
        if not self._given_up:
            self._given_up = True
            self._note("unchecked", problem.kind, str(self._array.path), problem.text)

    # ---- files -------------------------------------------------------------------------------------------------

    def _scan(self) -> Iterator[Index]:
        """The chunks in the grid that are there; of all else that is there, tell what it is."""
        left = [(str(self._array.path), "")]
        linked: set[tuple[int, int]] = set()
        while left:
            folder, prefix = left.pop()
            hidden: list[Path] = []
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        key = f"{prefix}{entry.name}"
                        if key == "zarr.json":
                            continue
                        if ours(entry.name) is not None:
                            hidden.append(Path(entry.path))
                        elif self._is_folder(entry, key):
                            if self._enter(entry, linked):
                                left.append((entry.path, f"{key}/"))
                        elif (index := self._chunk(entry, key)) is not None:
                            yield index
            except FileNotFoundError:
                # It was removed meanwhile.
                continue
            except OSError as error:
                self._found.findings.append(unlistable(folder, error, self._array.name))
            self._found.findings += _leftovers.findings(hidden, self._array.name)

    def _is_folder(self, entry: os.DirEntry[str], key: str) -> bool:
        """Whether it is a directory in which chunks may lie."""
        if self._grid is None or not self._grid.is_folder(key):
            return False
        try:
            return entry.is_dir()
        except OSError:
            return False

    def _enter(self, entry: os.DirEntry[str], linked: set[tuple[int, int]]) -> bool:
        """Whether a directory remains to be looked at: links may lead to one time and again."""
        if not entry.is_symlink():
            return True
        status = Path(entry.path).stat()
        identity = (status.st_dev, status.st_ino)
        known = identity in linked
        linked.add(identity)
        text = "leads to a directory that was checked already" if known else link_text(Path(entry.path))
        self._note("warning", "link", entry.path, text)
        return not known

    def _chunk(self, entry: os.DirEntry[str], key: str) -> Index | None:
        """The place of the chunk that a file holds; None if it is none that can be read."""
        index = None if self._grid is None else self._grid.index(key)
        inside = index is not None and self._grid is not None and self._grid.holds(index)
        wrong: str | None = None
        if not entry.is_file(follow_symlinks=False):
            try:
                mode = follow(Path(entry.path)).st_mode
                wrong = None if stat.S_ISREG(mode) else kind_of(mode)
            except FileNotFoundError:
                return None
            except Denied as error:
                self._note("unchecked", "permission", entry.path, str(error), index if inside else None)
                self._present += inside
                return None
            except Damaged as error:
                wrong = str(error)
        if inside:
            self._present += 1
            if wrong is not None:
                self._damaged += 1
                self._note("damage", "chunk", entry.path, f"expected a regular file, found {wrong}", index)
                return None
            if entry.is_symlink():
                self._note("warning", "link", entry.path, link_text(Path(entry.path)), index)
            return index if self._length is None or self._has_its_length(entry, index) else None
        if index is not None and wrong is None:
            self._note("warning", "outside", entry.path, "a chunk outside of the array, which no reader sees")
        elif self._grid is not None:
            self._note("warning", "foreign", entry.path, f"{wrong or 'a file'} that is no chunk of the array")
        return None

    def _has_its_length(self, entry: os.DirEntry[str], index: Index | None) -> bool:
        try:
            length = entry.stat().st_size
        except OSError:
            # Reading it tells why.
            return True
        if length == self._length:
            return True
        self._damaged += 1
        self._note("damage", "chunk", entry.path, f"expected {self._length} B, found {length} B", index)
        return False

    def _note(self, severity: Severity, kind: str, path: str, text: str, index: Index | None = None) -> None:
        box = None if index is None or self._grid is None else self._grid.box(index, index)
        name = self._array.name
        self._found.findings.append(Finding(severity, kind, path, text, name, box))


def _is_denied(path: str) -> bool:
    """Whether this process may not read a file."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC))
    except PermissionError:
        return True
    except OSError:
        return False
    return False
