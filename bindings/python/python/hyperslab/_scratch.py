"""Directories for scratch files, which go also when their program was killed: the next one of the kind removes them."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["scratch"]

#: Who holds a lock on this file in it uses a directory; the lock goes with the process, however that ends.
OWNER = "owner"


@contextmanager
def scratch(prefix: str, directory: Path) -> Iterator[Path]:
    """A directory of its own in `directory`, removed at the end, also at a polite kill (SIGTERM, SIGHUP)."""
    remove_left(prefix, directory)
    made = Path(tempfile.mkdtemp(prefix=prefix, dir=directory))
    owner = os.open(made / OWNER, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(owner, fcntl.LOCK_EX)
        with _ended_by_signals():
            yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(owner)


def remove_left(prefix: str, directory: Path) -> list[Path]:
    """Remove the directories of programs that were killed; returns which."""
    removed = []
    for left in sorted(Path(directory).glob(f"{prefix}*")):
        try:
            owner = os.open(left / OWNER, os.O_RDWR)
        except OSError:
            continue
        try:
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # Somebody uses it.
        finally:
            os.close(owner)
        shutil.rmtree(left, ignore_errors=True)
        removed.append(left)
    return removed


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let signals that end a program end it by an exception, so that it cleans up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            with suppress(TypeError):
                signal.signal(number, handler)
