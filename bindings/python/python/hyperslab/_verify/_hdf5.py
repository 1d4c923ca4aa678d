"""HDF5 and netCDF-4 files: metadata, length, and every chunk of every dataset, read by the library's own reader."""

from __future__ import annotations

import math
import os
import threading
from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np

from hyperslab import _core
from hyperslab._calls import json_of
from hyperslab._findings import Finding, Severity, VerifiedArray
from hyperslab._verify._flat import PART_BYTES, opened
from hyperslab._verify._grid import Blocks, Grid, Index, elements, within
from hyperslab._verify._library import Problem, problem_of, reason_of
from hyperslab._verify._progress import Bar
from hyperslab._verify._store import Found
from hyperslab.array import ArrayInfo
from hyperslab.comm import connect
from hyperslab.errors import CorruptError, Error, UnsupportedError
from hyperslab.hdf5 import ENDS, ENDS_OF_NETCDF4, SIGNATURE, Hdf5File, has_signature
from hyperslab.memory import place_of


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
    pool = ThreadPoolExecutor(jobs, thread_name_prefix="hyperslab-verify")
    try:
        with Bar("verify", sum(map(_bytes, infos.values()))) as bar:
            for name, info in infos.items():
                found.arrays.append(_Dataset(name, info, reader, pool, 4 * jobs, bar, found).run())
    finally:
        pool.shutdown(cancel_futures=True)
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
            said: tuple[str, bool, list[str]] = (json_of(None), False, [])
            member = connect(None)
            core = _core.Target.open_hdf5(member, place_of(self.path), "r", self._given, said)
            self._local.file = Hdf5File(core, member)
        file: Hdf5File = self._local.file
        return file

    def read(self, name: str, section: Sequence[slice]) -> None:
        """Read a box of an array, and forget it.

        Raises
        ------
        Problem
            If it cannot be read.
        """
        try:
            self.opened().read(name, section=tuple(section) or None)
        except Error as error:
            raise problem_of(error, "chunk", reason_of(error)) from error


class _Dataset:
    """The check of one dataset."""

    def __init__(
        self, name: str, info: ArrayInfo, reader: _Reader, pool: ThreadPoolExecutor, most: int, bar: Bar, found: Found
    ) -> None:
        self._name, self._info, self._reader = name, info, reader
        self._pool, self._most, self._bar, self._found = pool, most, bar, found
        #: Whether it lies in chunks; of others, parts are read that stand for chunks.
        self._chunked = bool(info.codecs) or info.chunks != info.shape
        parts = info.chunks if self._chunked else _parts(info)
        self._grid = Grid(info.shape, tuple(max(extent, 1) for extent in parts), prefixed=True, separator=".")
        self._pending: deque[tuple[Index, Index, Future[None]]] = deque()
        self._checked = 0
        self._failed: list[tuple[Index, Problem]] = []

    def run(self) -> VerifiedArray:
        grid = self._grid
        for first, last in Blocks(grid, math.prod(grid.chunk_shape) * self._info.dtype.itemsize).every():
            while len(self._pending) >= self._most:
                self._settle()
            self._begin(first, last)
        while self._pending:
            self._settle()
        damaged = self._tell()
        name, shape, dtype = self._name, self._info.shape, self._info.dtype.str
        if self._chunked:
            return VerifiedArray(name, shape, dtype, grid.chunk_shape, grid.count, self._checked, damaged)
        whole = not self._failed
        return VerifiedArray(name, shape, dtype, chunks=1, checked=int(whole), damaged=int(damaged > 0))

    def _begin(self, first: Index, last: Index) -> None:
        section = [slice(low, high) for low, high in self._grid.box(first, last)]
        self._pending.append((first, last, self._pool.submit(self._reader.read, self._name, section)))

    def _settle(self) -> None:
        """Wait for the oldest of what is being read."""
        first, last, future = self._pending.popleft()
        nbytes = elements(self._grid.box(first, last)) * self._info.dtype.itemsize
        try:
            future.result()
        except Problem as problem:
            if first == last:
                self._failed.append((first, problem))
                self._bar.add(nbytes)
                return
            # One of several: which one is found by reading each by itself.
            for index in within(first, last):
                self._begin(index, index)
            return
        self._checked += math.prod(high - low + 1 for low, high in zip(first, last, strict=True))
        self._found.nbytes += nbytes
        self._bar.add(nbytes)

    def _tell(self) -> int:
        """Findings for what failed; returns how many chunks are damaged."""
        path = str(self._reader.path)
        reasons = Counter(problem.text for _, problem in self._failed)
        told = set()
        for index, problem in self._failed:
            # What all chunks have alike concerns the whole array; what is not checked is told once, too.
            whole = reasons[problem.text] == self._grid.count or problem.severity != "damage"
            if whole and problem.text in told:
                continue
            told.add(problem.text)
            box = None if whole else self._grid.box(index, index)
            text = f"{self._name}: {problem.text}" if whole else problem.text
            self._found.findings.append(Finding(problem.severity, problem.kind, path, text, self._name, box))
        return sum(problem.severity == "damage" for _, problem in self._failed)


def _parts(info: ArrayInfo) -> tuple[int, ...]:
    """Parts of an array that lies in one stretch, each some MiB."""
    parts, room = [], max(PART_BYTES // max(np.dtype(info.dtype).itemsize, 1), 1)
    for extent in reversed(info.shape):
        parts.append(max(min(extent, room), 1))
        room = max(room // max(extent, 1), 1)
    return tuple(reversed(parts))
