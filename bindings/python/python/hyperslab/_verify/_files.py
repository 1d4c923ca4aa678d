"""What there is at a path, and small files read with a bound."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

#: Most bytes of metadata that are read.
METADATA_BYTES_MAX = 256 << 20

#: Names that this library gives to what is not finished: ``.hyperslab``, ``.NAME.hyperslab-partial`` and so on.
_OURS = re.compile(r"\.hyperslab(?:-(?P<inside>.+))?|\..+\.hyperslab-(?P<beside>.+)", re.DOTALL)

_KINDS = (
    (stat.S_ISREG, "a regular file"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISLNK, "a symbolic link"),
)


class Damaged(Exception):  # noqa: N818 (it says what a file is)
    """There is something at the path, but not what belongs there."""


class Denied(Exception):  # noqa: N818
    """It may not be read by this process."""


def kind_of(mode: int) -> str:
    """What a file is, by its mode."""
    return next((name for test, name in _KINDS if test(mode)), "something unknown")


def ours(name: str) -> str | None:
    """What a name says that this library gave: ``update`` or ``leftover``; nothing of other names.

    >>> ours(".hyperslab-update"), ours(".run.zarr.hyperslab-partial"), ours("c.0.0")
    ('update', 'leftover', None)
    """
    found = _OURS.fullmatch(name)
    if found is None:
        return None
    return "update" if "update" in (found["inside"], found["beside"]) else "leftover"


def follow(path: Path) -> os.stat_result:
    """What is at the end of a path that may be a symbolic link.

    Raises
    ------
    FileNotFoundError
        If there is nothing.
    Damaged
        If it is a link that leads nowhere.
    Denied
        If this process may not know.
    """
    try:
        return path.stat()
    except OSError as error:
        if _is_link(path):
            raise Damaged(f"{link_text(path)} that leads nowhere") from error
        if isinstance(error, (FileNotFoundError, NotADirectoryError)):
            raise FileNotFoundError(path) from error
        raise _failed(error) from error


def content(path: Path, limit: int = METADATA_BYTES_MAX) -> bytes:
    """All of a small regular file. Nothing else is opened, so this waits for no FIFO and rewinds no tape.

    Raises
    ------
    FileNotFoundError, Damaged, Denied
        As `follow`; also if it is not a regular file, or longer than `limit` bytes.
    """
    _check_regular(follow(path).st_mode)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _failed(error) from error
    try:
        status = os.fstat(descriptor)
        # It may have changed since.
        _check_regular(status.st_mode)
        if status.st_size > limit:
            raise Damaged(f"expected at most {limit} B, found {status.st_size} B")
        found = bytearray()
        while part := os.read(descriptor, min(limit + 1 - len(found), 1 << 20)):
            found += part
            if len(found) > limit:
                raise Damaged(f"expected at most {limit} B, found more")
        return bytes(found)
    except OSError as error:
        raise _failed(error) from error
    finally:
        os.close(descriptor)


def _check_regular(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise Damaged(f"expected a regular file, found {kind_of(mode)}")


def _failed(error: OSError) -> Exception:
    text = (error.strerror or str(error)).lower()
    return Denied(text) if isinstance(error, PermissionError) else Damaged(f"cannot be read: {text}")


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except OSError:
        return False


def link_text(path: Path) -> str:
    """A symbolic link, and where it leads."""
    try:
        return f"a symbolic link to '{path.readlink()}'"
    except OSError:
        return "a symbolic link"
