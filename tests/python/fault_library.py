"""Faults of the system: `faults/failing.c`, compiled once, preloaded into ranks, and steered from Python."""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("faults") / "failing.c"
#: Where ranks look for the library that was preloaded into them.
VARIABLE = "LD_PRELOAD"
#: What tests put into memory, at most [B].
MEMORY_BYTES = 1 << 28

#: Classes of calls and kinds of faults, in the order of the source.
CLASSES = (
    "open",
    "read",
    "write",
    "sync",
    "flush",
    "rename",
    "exchange",
    "mkdir",
    "unlink",
    "truncate",
    "link",
    "mode",
    "stat",
    "list",
    "lock",
    "close",
    "target",
)
#: ``lose``: a write says that it wrote all, and wrote half; the next sync or close of its descriptor tells, once.
KINDS = ("fail", "shorten", "delay", "stall", "stop", "kill", "lose")

#: The same classes by system calls, as strace has them.
SYSTEM_CALLS = {
    "open": ("open", "openat", "openat2", "creat"),
    "read": ("read", "pread64", "readv", "preadv", "preadv2"),
    "write": ("write", "pwrite64", "writev", "pwritev", "pwritev2", "copy_file_range", "sendfile", "splice"),
    "sync": ("fsync", "fdatasync", "syncfs", "sync", "msync"),
    "flush": ("sync_file_range",),
    "rename": ("rename", "renameat", "renameat2"),
    "mkdir": ("mkdir", "mkdirat"),
    "unlink": ("unlink", "unlinkat", "rmdir"),
    "truncate": ("truncate", "ftruncate", "fallocate"),
    "link": ("link", "linkat", "symlink", "symlinkat"),
    "mode": ("chmod", "fchmod", "fchmodat", "fchmodat2", "fchown", "fsetxattr", "fremovexattr"),
    "stat": ("stat", "lstat", "fstat", "newfstatat", "statx", "access", "faccessat", "faccessat2"),
    "list": ("getdents", "getdents64"),
    "lock": ("flock", "fcntl"),
    # Of descriptors that wrote.
    "close": (),
    "target": (),
}


@contextmanager
def quick_directory() -> Iterator[Path]:
    """A directory in memory, where there is room: what others write to the disk must not make a sync take seconds."""
    shared = Path("/dev/shm")
    suits = os.access(shared, os.W_OK | os.X_OK) and shutil.disk_usage(shared).free >= MEMORY_BYTES
    with tempfile.TemporaryDirectory(prefix="hs-faults-", dir=shared if suits else None) as made:
        yield Path(made)


@contextmanager
def compiled() -> Iterator[dict[str, str]]:
    """The library in a temporary folder; gives the environment of programs that are to have it preloaded."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler (cc)")
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        library = Path(folder) / "failing.so"
        options = "-std=gnu11 -O1 -Wall -Wextra -Werror -fPIC -shared -fvisibility=hidden -U_FORTIFY_SOURCE"
        command = [compiler, *shlex.split(options), str(SOURCE), "-o", str(library), "-ldl"]
        made = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert made.returncode == 0, made.stderr
        before = os.environ.get(VARIABLE)
        yield {VARIABLE: str(library) if before is None else f"{library}:{before}"}


@dataclass(frozen=True)
class Fault:
    """What happens to some calls of a class."""

    name: str
    #: The first call that suffers, counted from 1, and how many do.
    first: int
    #: One of `KINDS`.
    kind: str
    #: An error number to fail with, or milliseconds to wait at most.
    value: int = 0
    times: int = 1

    def __str__(self) -> str:
        """In words."""
        what = f"{self.kind} {os.strerror(self.value)!r}" if self.kind in ("fail", "lose") else self.kind
        if self.kind in ("delay", "stall"):
            what += f" {self.value} ms"
        return f"{self.name} {self.first}{'' if self.times == 1 else ' and those after it'}: {what}"


class Faults:
    """The library in this process, into which it was preloaded."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        self._library.faults_count.restype = ctypes.c_long
        self._library.faults_hits.restype = ctypes.c_long
        self._library.faults_stalled.restype = ctypes.c_long
        self._library.faults_text.restype = ctypes.c_char_p
        self._library.faults_arm.argtypes = [ctypes.c_int, ctypes.c_long, ctypes.c_long, ctypes.c_int, ctypes.c_long]

    def watch(self, directory: Path) -> None:
        """Count from zero what happens in a directory."""
        self._library.faults_watch(os.fsencode(directory.resolve()))

    def rest(self) -> None:
        """Count nothing, and let nothing fail."""
        self._library.faults_watch(b"")

    def arm(self, fault: Fault) -> None:
        """Let calls suffer."""
        number = CLASSES.index(fault.name)
        self._library.faults_arm(number, fault.first, fault.times, KINDS.index(fault.kind), fault.value)

    def target(self, path: Path) -> None:
        """Count in the class ``target`` what is renamed to this path."""
        self._library.faults_target(os.fsencode(path))

    def disarm(self) -> None:
        """Let no further calls suffer; count on."""
        self._library.faults_disarm()

    def counts(self) -> dict[str, int]:
        """How many calls of each class there were."""
        return {name: self._library.faults_count(number) for number, name in enumerate(CLASSES)}

    def hits(self) -> int:
        """How many calls suffered."""
        return int(self._library.faults_hits())

    def where(self) -> str:
        """The function and the path of the first call that suffered; empty without any."""
        return os.fsdecode(self._library.faults_text())

    def stalled(self) -> int:
        """How many threads are in a stall."""
        return int(self._library.faults_stalled())

    def gate(self, path: Path) -> None:
        """Let stalls end when there is a file of this name."""
        self._library.faults_gate(os.fsencode(path))
