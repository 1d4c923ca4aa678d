"""The limits of a machine: the plainest loops of ``pwrite`` and ``preadv`` that move the same bytes."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hyperslab.bench._entire_tables import OWN, SHARED

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PlainFiles"]

#: What one call moves.
PIECE_BYTES = 4 << 20


class PlainFiles:
    """Each rank's bytes, contiguous, in a file of its own or at a place of its own in one file.

    Parameters
    ----------
    directory : Path
        Where the files are.
    rank : int
        This rank.
    offset : int, optional
        Where this rank's bytes begin in a file that all share; without it, each rank has a file.
    """

    def __init__(self, directory: Path, rank: int, offset: int | None) -> None:
        self.name = OWN if offset is None else SHARED
        self._owner = offset is None or rank == 0
        self._path = directory / (f"own-{rank}" if offset is None else "shared")
        self._offset = offset or 0

    def at(self, path: Path) -> PlainFiles:
        """The same of a file of this name."""
        other = copy.copy(self)
        other._path = path
        return other

    def write(self, array: NDArray[Any], *, durable: bool) -> None:
        """Write this rank's bytes to a new file."""
        content = array.reshape(-1).view(np.uint8).data
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            for start in range(0, len(content), PIECE_BYTES):
                _write_all(descriptor, content[start : start + PIECE_BYTES], self._offset + start)
            if durable:
                os.fdatasync(descriptor)
        finally:
            os.close(descriptor)

    def read(self, array: NDArray[Any]) -> None:
        """Read this rank's bytes."""
        content = array.reshape(-1).view(np.uint8).data
        descriptor = os.open(self._path, os.O_RDONLY)
        try:
            for start in range(0, len(content), PIECE_BYTES):
                _read_all(descriptor, content[start : start + PIECE_BYTES], self._offset + start)
        finally:
            os.close(descriptor)

    def remove(self) -> None:
        """Remove what this rank has to remove."""
        if self._owner:
            self._path.unlink(missing_ok=True)


def _write_all(descriptor: int, piece: memoryview, offset: int) -> None:
    while piece:
        written = os.pwrite(descriptor, piece, offset)
        piece, offset = piece[written:], offset + written


def _read_all(descriptor: int, piece: memoryview, offset: int) -> None:
    while piece:
        got = os.preadv(descriptor, [piece], offset)
        if got == 0:
            message = f"the file ends at byte {offset}"
            raise EOFError(message)
        piece, offset = piece[got:], offset + got
