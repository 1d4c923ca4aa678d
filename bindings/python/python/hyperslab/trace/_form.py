"""The files of a trace: blocks of spans. ``docs/trace.md`` describes them."""

from __future__ import annotations

import json
import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperslab.errors import CorruptError, InvalidError, NotFoundError, StorageError
from hyperslab.trace._check import check_header, check_spans

__all__ = ["KINDS", "NONE", "SPAN", "Block", "Kind", "blocks"]

MAGIC = b"hsTRACE1"
HEAD = struct.Struct("<8sIIQ")
#: No rank, step or object.
NONE = 0xFFFFFFFF

SPAN = np.dtype(
    [
        ("begin", "<u8"),
        ("end", "<u8"),
        ("ready", "<u8"),
        ("bytes", "<u8"),
        ("round", "<u4"),
        ("step", "<u4"),
        ("after", "<u4"),
        ("peer", "<u4"),
        ("object", "<u4"),
        ("pieces", "<u4"),
        ("kind", "u1"),
        ("of", "u1"),
        ("lane", "u1"),
        ("failed", "u1"),
        ("unused", "<u4"),
    ]
)
"""One span; times in ns."""

#: Names of kinds, by number.
KINDS = (
    "plan",
    "pack",
    "code",
    "send",
    "receive",
    "read",
    "write",
    "sync",
    "wait",
    "agree",
    "commit",
    "metadata",
    "application",
)


class Kind:
    """Numbers of kinds."""

    PLAN, PACK, CODE, SEND, RECEIVE, READ, WRITE, SYNC, WAIT, AGREE, COMMIT, METADATA, APPLICATION = range(13)


@dataclass(frozen=True)
class Block:
    """What one rank did in one call, or in a part of it; or what the application said of itself."""

    header: dict[str, Any]
    spans: NDArray[Any]
    whole: bool
    """Whether it is all there: of a program that was killed, the last block of a file may be cut off."""

    @property
    def rank(self) -> int:
        """The rank."""
        return int(self.header["rank"])

    @property
    def call(self) -> int | None:
        """Number of the call; None for what the application did."""
        return self.header["call"]


def blocks(directory: Path) -> Iterator[Block]:
    """Blocks of all files of a directory.

    Raises
    ------
    NotFoundError
        When the directory holds no trace.
    CorruptError
        When a file is something else, or damaged.
    StorageError
        When a file cannot be read.
    """
    if not directory.is_dir():
        message = f"there is no directory '{directory}' of a trace\n  hint: HYPERSLAB_TRACE={directory} records one"
        raise NotFoundError(message)
    files = sorted(directory.glob("*.trace"))
    if not files:
        message = f"'{directory}' holds no trace: no file of it ends with .trace"
        message += "\n  hint: HYPERSLAB_TRACE=directory records one"
        raise NotFoundError(message)
    for file in files:
        yield from _blocks_of(file)


def _contents(path: Path) -> bytes | mmap.mmap:
    try:
        # Opening a pipe would wait for somebody who writes.
        if not path.is_file():
            message = f"'{path}' cannot be read as a trace: it is not a file"
            raise StorageError(message)
        if path.stat().st_size == 0:
            return b""
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        message = f"'{path}' cannot be read as a trace: {error.strerror or error}"
        raise StorageError(message) from error


def _blocks_of(path: Path) -> Iterator[Block]:
    contents = _contents(path)
    at, size = 0, len(contents)
    while size - at >= HEAD.size:
        magic, header_bytes, span_bytes, count = HEAD.unpack_from(contents, at)
        if magic != MAGIC:
            message = f"'{path}' is no trace: byte {at} should begin a block with {MAGIC!r}, but there is {magic!r}"
            raise CorruptError(message)
        if span_bytes != SPAN.itemsize:
            message = f"'{path}' has spans of {span_bytes} B, but this version reads those of {SPAN.itemsize} B"
            raise InvalidError(message)
        begin = at + HEAD.size + header_bytes
        if begin > size:
            return
        where = f"'{path}', block at byte {at}"
        try:
            header = check_header(json.loads(contents[at + HEAD.size : begin]), where)
        except (ValueError, RecursionError) as error:
            message = f"{where}: it does not say in JSON what it is: {error}"
            raise CorruptError(message) from error
        there = min(count, (size - begin) // span_bytes)
        spans = np.frombuffer(contents, SPAN, there, begin)
        check_spans(spans, header["size"], len(KINDS), NONE, where)
        yield Block(header, spans, whole=there == count)
        at = begin + count * span_bytes
