"""HDF5 and netCDF-4 files: metadata, length, and every chunk of every dataset, read by the library's own reader."""

from __future__ import annotations

import math
import os
import threading
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path

import numpy as np

from hyperslab import _core
from hyperslab._findings import Finding, Severity, VerifiedArray
from hyperslab._typed import NOTHING
from hyperslab._verify._flat import PART_BYTES, opened
from hyperslab._verify._grid import Blocks, Grid, Index, elements, within
from hyperslab._verify._library import Problem, Readers, problem_of, reason_of, room_for
from hyperslab._verify._progress import Bar
from hyperslab._verify._store import Found
from hyperslab.array import ArrayInfo
from hyperslab.comm import connect
from hyperslab.errors import CorruptError, Error, UnsupportedError
from hyperslab.hdf5 import ENDS, ENDS_OF_NETCDF4, SIGNATURE, Hdf5File, has_signature
from hyperslab.memory import place_of

#: Chunks whose places are looked up at once.
PAGE_CHUNKS = 1 << 16


def is_hdf5(path: Path) -> bool:
    """Whether a file is an HDF5 file, by its signature or else its name."""
    descriptor = opened(path)
    try:
        return has_signature(descriptor) or path.name.endswith((*ENDS, *ENDS_OF_NETCDF4))
    except OSError:
        return path.name.endswith((*ENDS, *ENDS_OF_NETCDF4))
    finally:
        os.close(descriptor)


def verify_hdf5(path: Path, jobs: int, buffer_bytes: int | None, storage_seconds: float) -> Found:
    """Check an HDF5 file: what it says of itself, its length, and all of its elements, with their checksums."""
    found = Found()
    reader = _Reader(path, buffer_bytes, storage_seconds)
    try:
        file = reader.opened()
        infos = {name: file._info(name) for name in file}
    except CorruptError as error:
        kind = "length" if "cut short" in str(error) else "metadata"
        found.findings.append(Finding("damage", kind, str(path), reason_of(error) + _never_closed(path)))
        return found
    except UnsupportedError as error:
        found.findings.append(Finding("unchecked", "unsupported", str(path), reason_of(error)))
        return found
    for name, why, damaged in file._others():
        found.arrays.append(VerifiedArray(name))
        severity: Severity = "damage" if damaged else "unchecked"
        kind = "metadata" if damaged else "unsupported"
        found.findings.append(Finding(severity, kind, str(path), f"{name}: {why}", name))
    pool = Readers(jobs)
    try:
        with Bar("verify", sum(map(_bytes, infos.values()))) as bar:
            for name, info in infos.items():
                found.arrays.append(_Dataset(name, info, reader, pool, 4 * jobs, bar, found).run())
    finally:
        pool.end()
    found.arrays.sort(key=lambda array: array.name)
    return found


def _bytes(info: ArrayInfo) -> int:
    return math.prod(info.shape) * info.dtype.itemsize


def _never_closed(path: Path) -> str:
    """What zeros at the beginning mean."""
    descriptor = opened(path)
    try:
        beginning = os.pread(descriptor, len(SIGNATURE), 0)
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    zeros = bytes(len(SIGNATURE))
    return ", but zeros: a new file that was never closed, or that lost its beginning" if beginning == zeros else ""


class _Reader:
    """Opens a file once on each thread, without warnings of updates that have not ended, which are findings here."""

    def __init__(self, path: Path, buffer_bytes: int | None, storage_seconds: float) -> None:
        self.path = path
        self._given: _core._OpenKeywords = {
            "durable": False,
            "storage_seconds": storage_seconds,
            "buffer_bytes": buffer_bytes,
        }
        self._local = threading.local()

    def opened(self) -> Hdf5File:
        """The file of this thread."""
        if not hasattr(self._local, "file"):
            said = (NOTHING, "hdf5", list[str]())
            member = connect(None)
            core = _core.Target()
            core.open_hdf5(member, place_of(self.path), "r", self._given, said)
            self._local.file = Hdf5File(core, member)
        file: Hdf5File = self._local.file
        return file

    def read(self, name: str, section: Sequence[slice], nbytes: int) -> None:
        """Read a box of an array, which has so many bytes, and forget it.

        Raises
        ------
        Problem
            If it cannot be read.
        """
        try:
            with room_for(nbytes):
                self.opened().read(name, section=tuple(section) or None)
        except Error as error:
            raise problem_of(error, "chunk", reason_of(error)) from error

    def stored(self, name: str, ndim: int) -> Iterator[list[Index]] | None:
        """The places of the chunks of an array that are stored, some at a time; None if it lies in one stretch.

        Raises
        ------
        Problem
            If the index of the chunks cannot be read; while it goes on, too.
        """
        first = self._next(name, None)
        return None if first is None else self._pages(name, ndim, first)

    def _next(self, name: str, after: list[int] | None) -> tuple[list[int], bool] | None:
        try:
            return _core.stored_chunks(self.opened()._core, name, after, PAGE_CHUNKS)
        except Error as error:
            raise problem_of(error, "metadata", reason_of(error)) from error

    def _pages(self, name: str, ndim: int, page: tuple[list[int], bool]) -> Iterator[list[Index]]:
        while True:
            numbers, more = page
            # Without dimensions there are no chunks, and no coordinates.
            yield [tuple(numbers[at : at + ndim]) for at in range(0, len(numbers), max(ndim, 1))]
            if not more:
                return
            following = self._next(name, numbers[-ndim:])
            assert following is not None
            page = following


class _Dataset:
    """The check of one dataset."""

    def __init__(
        self, name: str, info: ArrayInfo, reader: _Reader, pool: Readers, most: int, bar: Bar, found: Found
    ) -> None:
        self._name, self._info, self._reader = name, info, reader
        self._pool, self._most, self._bar, self._found = pool, most, bar, found
        self._grid = _grid(info, info.chunks)
        self._pending: deque[tuple[Index, Index, Future[None]]] = deque()
        #: Chunks that are there; of what lies in one stretch, parts that stand for chunks.
        self._checked = self._present = 0
        #: Bytes that the bar has.
        self._told = 0
        self._failed: list[tuple[Index, Problem]] = []

    def run(self) -> VerifiedArray:
        name, shape, dtype = self._name, self._info.shape, self._info.dtype.str
        try:
            pages = self._reader.stored(name, self._grid.ndim)
            if pages is None:
                self._read_parts()
            else:
                self._read_stored(pages)
        except Problem as problem:
            # Its index: what it leads to, nobody knows.
            path = str(self._reader.path)
            self._found.findings.append(Finding(problem.severity, problem.kind, path, f"{name}: {problem.text}", name))
            self._tell()
            return VerifiedArray(name, shape, dtype)
        finally:
            self._bar.add(_bytes(self._info) - self._told)
        damaged = self._tell()
        if pages is None:
            whole = not self._failed
            return VerifiedArray(name, shape, dtype, chunks=1, checked=int(whole), damaged=int(damaged > 0))
        # What is one chunk, or was never written and is none, is told as what lies in one stretch.
        chunks = self._info.chunks if self._info.codecs or self._info.chunks != shape else None
        count = self._grid.count
        return VerifiedArray(name, shape, dtype, chunks, count, self._checked, damaged, count - self._present)

    def _read_parts(self) -> None:
        """Read all of an array that lies in one stretch, each part some MiB."""
        self._grid = _grid(self._info, _parts(self._info))
        self._present = self._grid.count
        self._read(Blocks(self._grid, self._chunk_bytes).every())

    @property
    def _chunk_bytes(self) -> int:
        return math.prod(self._grid.chunk_shape) * self._info.dtype.itemsize

    def _read_stored(self, pages: Iterator[list[Index]]) -> None:
        """Read the chunks that are there: of many millions that are not, nothing is asked."""
        for page in pages:
            self._present += len(page)
            blocks = Blocks(self._grid, self._chunk_bytes)
            for index in page:
                blocks.add(index)
            self._read(blocks.take())

    def _read(self, boxes: Iterator[tuple[Index, Index]]) -> None:
        for first, last in boxes:
            while len(self._pending) >= self._most:
                self._settle()
            self._begin(first, last)
        while self._pending:
            self._settle()

    def _begin(self, first: Index, last: Index) -> None:
        box = self._grid.box(first, last)
        section, nbytes = [slice(low, high) for low, high in box], elements(box) * self._info.dtype.itemsize
        self._pending.append((first, last, self._pool.submit(self._reader.read, self._name, section, nbytes)))

    def _settle(self) -> None:
        """Wait for the oldest of what is being read."""
        first, last, future = self._pending.popleft()
        nbytes = elements(self._grid.box(first, last)) * self._info.dtype.itemsize
        try:
            future.result()
        except Problem as problem:
            if first == last:
                self._failed.append((first, problem))
                self._count(nbytes)
                return
            # One of several: which one is found by reading each by itself.
            for index in within(first, last):
                self._begin(index, index)
            return
        self._checked += math.prod(high - low + 1 for low, high in zip(first, last, strict=True))
        self._found.nbytes += nbytes
        self._count(nbytes)

    def _count(self, nbytes: int) -> None:
        self._told += nbytes
        self._bar.add(nbytes)

    def _tell(self) -> int:
        """Findings for what failed; returns how many chunks are damaged."""
        path = str(self._reader.path)
        reasons = Counter(problem.text for _, problem in self._failed)
        told = set()
        for index, problem in self._failed:
            # What all chunks have alike concerns the whole array; what is not checked is told once, too.
            whole = reasons[problem.text] == self._present or problem.severity != "damage"
            if whole and problem.text in told:
                continue
            told.add(problem.text)
            box = None if whole else self._grid.box(index, index)
            text = f"{self._name}: {problem.text}" if whole else problem.text
            self._found.findings.append(Finding(problem.severity, problem.kind, path, text, self._name, box))
        return sum(problem.severity == "damage" for _, problem in self._failed)


def _grid(info: ArrayInfo, chunks: Sequence[int]) -> Grid:
    return Grid(info.shape, tuple(max(extent, 1) for extent in chunks), prefixed=True, separator=".")


def _parts(info: ArrayInfo) -> tuple[int, ...]:
    """Parts of an array that lies in one stretch, each some MiB."""
    parts, room = [], max(PART_BYTES // max(np.dtype(info.dtype).itemsize, 1), 1)
    for extent in reversed(info.shape):
        parts.append(max(min(extent, room), 1))
        room = max(room // max(extent, 1), 1)
    return tuple(reversed(parts))
