"""Directories for scratch files, which go also when their program was killed: the next one of the kind removes them.

Whoever uses a directory holds a lock on a file in it, which goes with the process, however that ends. A directory has
its lock before it has its name, so nobody takes one that is just being made for one that was left. Where a file system
has no locks, directories of killed programs stay.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["scratch"]

#: The file that is locked.
OWNER = "owner"
#: What a name begins with until the lock is there.
UNNAMED = ".new-"


@contextmanager
def scratch(prefix: str, directory: Path) -> Iterator[Path]:
    """A directory of its own in `directory`, removed at the end, also at a polite kill (SIGTERM, SIGHUP)."""
    remove_left(prefix, directory)
    # The names are known before anything is made, so nothing stays wherever a signal comes.
    made = Path(directory) / f"{prefix}{secrets.token_hex(4)}"
    unnamed = made.with_name(f"{UNNAMED}{made.name}")
    owner = None
    with _ended_by_signals():
        try:
            unnamed.mkdir(mode=0o700)
            owner = os.open(unnamed / OWNER, os.O_CREAT | os.O_RDWR, 0o600)
            with suppress(OSError):
                fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
            unnamed.rename(made)
            yield made
        finally:
            for place in (unnamed, made):
                shutil.rmtree(place, ignore_errors=True)
            if owner is not None:
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
