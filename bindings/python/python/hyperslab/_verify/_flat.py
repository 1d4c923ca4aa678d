"""Files that hold arrays one after another without checksums, npy and raw: lengths, and whether all can be read."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hyperslab._findings import Box, Finding, VerifiedArray
from hyperslab._printing import legible
from hyperslab._verify._files import Damaged
from hyperslab._verify._progress import Bar
from hyperslab._verify._store import Found
from hyperslab.errors import StorageError

MAGIC = b"\x93NUMPY"
#: Bytes that are read at once.
PART_BYTES = 8 << 20
#: Bytes at the beginning of an npy file that may hold its header.
HEADER_BYTES_MAX = 128 << 10


@dataclass(frozen=True)
class Region:
    """An array in a file, at bytes `start` to `stop`."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    itemsize: int
    #: Whether the first dimension varies fastest.
    fortran: bool
    start: int

    @property
    def stop(self) -> int:
        """Where it ends."""
        return self.start + math.prod(self.shape) * self.itemsize

    def section(self, low: int, high: int) -> Box | None:
        """The smallest slab that has all elements of the bytes from `low` to `high`; None if there are none."""
        low, high = max(low, self.start), min(high, self.stop)
        if low >= high:
            return None
        box = [(0, extent) for extent in self.shape]
        if box:
            # The dimension that varies slowest.
            dim = len(box) - 1 if self.fortran else 0
            slab = (self.stop - self.start) // self.shape[dim]
            box[dim] = ((low - self.start) // slab, -(-(high - self.start) // slab))
        return tuple(box)


def is_npy(path: Path) -> bool:
    """Whether a file is one of NumPy's, by its beginning or else its name."""
    descriptor = opened(path)
    try:
        return os.pread(descriptor, len(MAGIC), 0) == MAGIC or path.name.endswith(".npy")
    except OSError:
        return path.name.endswith(".npy")
    finally:
        os.close(descriptor)


def verify_npy(path: Path) -> Found:
    """Check an npy file: its header, its length, and that all of it can be read."""
    found = Found()
    try:
        region = _npy_region(path)
    except Damaged as error:
        found.findings.append(Finding("damage", "metadata", str(path), str(error), ""))
        return found
    except UnsupportedHeaderError as error:
        found.findings.append(Finding("unchecked", "unsupported", str(path), str(error), ""))
        return found
    _check(path, region.start, [region], found)
    return found


def verify_raw(path: Path, header: int, arrays: Sequence[tuple[str, Sequence[int], str]], order: str) -> Found:
    """Check a raw file: its length, if its arrays are given, and that all of it can be read."""
    found = Found()
    regions: list[Region] = []
    start = header
    for name, shape, code in arrays:
        itemsize = 2 if code == "bfloat16" else np.dtype(code).itemsize
        regions.append(Region(name, tuple(shape), code, itemsize, order == "F", start))
        start = regions[-1].stop
    _check(path, header, regions, found)
    return found


class UnsupportedHeaderError(Exception):
    """A header that may be right, but that is not read here."""


def _npy_region(path: Path) -> Region:
    """Where the array of an npy file lies.

    Raises
    ------
    Damaged
        If the header is not valid.
    UnsupportedHeaderError
        If it is of a kind that is not read.
    """
    file = io.BytesIO(_beginning(path))
    try:
        version = np.lib.format.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise UnsupportedHeaderError(f"an npy file of version {version[0]}.{version[1]}; 1.0 and 2.0 are checked")
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file)
    except UnsupportedHeaderError:
        raise
    except Exception as error:  # NumPy parses Python, and lets all that this raises through.
        if "max_header_size" in str(error):
            raise UnsupportedHeaderError("a header of more than 10000 B") from error
        text = str(error).partition("\n")[0]
        raise Damaged(f"expected the header of an npy file, found what does not parse: {text}") from error
    if dtype.hasobject:
        raise UnsupportedHeaderError("pickled objects, which are not loaded")
    if any(extent < 0 for extent in shape):
        raise Damaged(f"expected extents of 0 or more, found shape {shape}")
    code = dtype.str if dtype.names is None else str(dtype)
    return Region("", tuple(shape), code, dtype.itemsize, bool(fortran), file.tell())


def _beginning(path: Path) -> bytes:
    descriptor = opened(path)
    try:
        return os.pread(descriptor, HEADER_BYTES_MAX, 0)
    except OSError as error:
        raise Damaged(f"cannot be read: {error.strerror}") from error
    finally:
        os.close(descriptor)


def opened(path: Path) -> int:
    """A descriptor of a file, of which nothing is waited for."""
    try:
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        message = f"'{legible(str(path))}' cannot be read: {error.strerror}"
        raise StorageError(message) from error


def _check(path: Path, header: int, regions: Sequence[Region], found: Found) -> None:
    """Compare the length, if it is known, and read everything."""
    descriptor = opened(path)
    damaged: list[tuple[int, int]] = []
    try:
        length = os.fstat(descriptor).st_size
        expected = regions[-1].stop if regions else header
        if (regions or header) and (length < expected or (regions and length > expected)):
            least = "" if regions else "at least "
            text = f"expected {least}{expected} B{_sum(header, regions)}, found {length} B"
            found.findings += _concerning(str(path), "length", text, regions, length, expected)
            damaged.append((length, expected))
        for low, high, why in unreadable(descriptor, length, found):
            text = f"bytes {low} to {high} cannot be read: {why}"
            found.findings += _concerning(str(path), "unreadable", text, regions, low, high)
            damaged.append((low, high))
    finally:
        os.close(descriptor)
    for region in regions:
        bad = any(region.section(low, high) is not None for low, high in damaged)
        found.arrays.append(
            VerifiedArray(region.name, region.shape, region.dtype, chunks=1, checked=int(not bad), damaged=int(bad))
        )


def _sum(header: int, regions: Sequence[Region]) -> str:
    if not regions:
        return " of header"
    held = regions[-1].stop - header
    return f", a header of {header} B and {held} B of elements"


def _concerning(path: str, kind: str, text: str, regions: Sequence[Region], low: int, high: int) -> list[Finding]:
    """One finding for each array that has some of the bytes, or one for the file."""
    sections = [(region.name, region.section(low, high)) for region in regions]
    held = [(name, section) for name, section in sections if section is not None]
    if not held:
        return [Finding("damage", kind, path, text)]
    return [Finding("damage", kind, path, text, name, section) for name, section in held]


def unreadable(descriptor: int, length: int, found: Found) -> Iterator[tuple[int, int, str]]:
    """Read all bytes; those that cannot be read, and why."""
    at = 0
    with Bar("verify", length) as bar:
        while at < length:
            part = min(PART_BYTES, length - at)
            try:
                done = len(os.pread(descriptor, part, at))
            except OSError as error:
                yield at, at + part, (error.strerror or str(error)).lower()
                at += part
                continue
            if done == 0:
                yield at, length, "the file became shorter meanwhile"
                return
            found.nbytes += done
            bar.add(done)
            at += done
