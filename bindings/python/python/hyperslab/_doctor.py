"""What a place does for the ranks of a program: what each sees of the others, locks, renames, room and rates.

All ranks call `examine` together. Nothing here goes through the library's own stores: the system is asked, as any
program would ask it. What is made lies in one directory with a name that never comes again, and is removed at the end.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol, TypeAlias

from hyperslab import _core

__all__ = ["Alone", "Examination", "Ranks", "examine"]

#: How often each thing is tried that another client may see late.
TRIES = 3
#: Another client is given so long to see something; NFS keeps attributes for up to 60 s [s].
SEEN_LIMIT = 70.0
#: A step that takes longer is taken for one that hangs [s].
STEP_LIMIT = 120.0
#: Files of the small writes, and bytes of the long one and of its pieces.
SMALL_FILES, LONG_BYTES, PIECE_BYTES = 32, 32 << 20, 1 << 20
#: renameat2(2)
AT_FDCWD, NOREPLACE, EXCHANGE = -100, 1, 2


class Ranks(Protocol):
    """What of a communicator of mpi4py is used."""

    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    def allgather(self, value: Any) -> list[Any]: ...
    def Abort(self, status: int) -> None: ...  # noqa: N802  # as mpi4py calls it


class Alone:
    """The only rank."""

    rank = 0
    size = 1

    def allgather(self, value: Any) -> list[Any]:
        """What all ranks say."""
        return [value]

    def Abort(self, status: int) -> None:  # noqa: N802
        """Leave it to the caller: no other rank waits."""


#: Changes a file, and gives what it holds then; what is kept open is added to the list.
_Change: TypeAlias = Callable[[Path, list[IO[bytes]]], bytes | None]


@dataclass
class Examination:
    """What was found; the same on all ranks."""

    path: str
    ranks: int
    hosts: list[str] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)
    place: dict[str, Any] = field(default_factory=dict)
    mounts: int = 1
    shared: bool = True
    #: What other clients see at once of what one did, of how many tries, and the longest wait [s].
    seen: dict[str, dict[str, Any]] = field(default_factory=dict)
    measured: str = "not measured"
    locks: str = "not tried"
    renames: dict[str, bool] = field(default_factory=dict)
    room: dict[str, int] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    #: What puts data at risk, and what is good to know.
    risks: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@contextmanager
def answering(what: str, path: str) -> Iterator[None]:
    """End the process if the file system does not answer: such a call cannot be interrupted."""

    def give_up() -> None:
        os.write(2, f"hyperslab: doctor: '{path}' has not answered for {STEP_LIMIT:.0f} s: {what}\n".encode())
        os._exit(1)

    watch = threading.Timer(STEP_LIMIT, give_up)
    watch.daemon = True
    watch.start()
    try:
        yield
    finally:
        watch.cancel()


def examine(path: str | os.PathLike[str], comm: Ranks) -> Examination:
    """Look at a directory, which all ranks name alike."""
    at = Path(path).absolute()
    told = comm.allgather((str(at), platform.node(), _core.__version__, _core.place_seen(at)))
    seen = Examination(path=told[0][0], ranks=comm.size)
    seen.hosts = sorted({host for _, host, _, _ in told})
    seen.versions = sorted({version for _, _, version, _ in told})
    places = [place for *_, place in told]
    kind, source, options, strength, locks, _ = places[0] or ("unknown", "", "", "timeouts", "each host", 0)
    seen.place = {"type": kind, "source": source, "options": options, "strength": strength, "locks": locks}
    numbers = [place[-1] if place else None for place in places]
    seen.mounts = len(set(numbers))
    if len({name for name, *_ in told}) > 1:
        seen.risks.append("ranks name different paths: give an absolute one")
    if len(seen.versions) > 1:
        seen.risks.append(f"ranks have different versions of hyperslab: {', '.join(seen.versions)}")
    work = _Work(at, comm, seen)
    if work.begin():
        try:
            work.compare_clients(apart=numbers[comm.rank] != numbers[0])
            work.try_locks()
            work.try_names()
            work.measure()
        finally:
            work.end()
    _judge(seen)
    return seen


class _Work:
    """One rank's part, in a directory of its own."""

    def __init__(self, at: Path, comm: Ranks, seen: Examination) -> None:
        self.comm, self.seen, self.is_root = comm, seen, comm.rank == 0
        token = comm.allgather(os.urandom(8).hex())[0]
        self.directory = at / f".hyperslab-doctor-{token}"

    def by_root(self, run: Callable[[], Any]) -> Any:
        """What rank 0 finds or makes; an error is that of all."""
        found: Any = None
        if self.is_root:
            try:
                with answering("rank 0 looks or writes there", self.seen.path):
                    found = run()
            except OSError as error:
                found = error
        found = self.comm.allgather(found)[0]
        if isinstance(found, OSError):
            raise found
        return found

    def begin(self) -> bool:
        """Make the directory; says whether all ranks see it."""
        seen = self.seen
        try:
            self.by_root(self.directory.mkdir)
        except OSError as error:
            seen.risks.append(f"nothing can be made there: {error.strerror}")
            return False
        with answering("this rank looks for what rank 0 made", seen.path):
            found = self.directory.is_dir()
        everywhere = self.comm.allgather(found)
        seen.shared = all(everywhere)
        if not seen.shared:
            blind = [rank for rank, sees in enumerate(everywhere) if not sees]
            seen.risks.append(f"ranks {blind[:8]} do not see what rank 0 makes there: give a path that all nodes mount")
            self.end()
        return seen.shared

    def end(self) -> None:
        with suppress(OSError):
            self.by_root(lambda: shutil.rmtree(self.directory, ignore_errors=True))

    def compare_clients(self, *, apart: bool) -> None:
        """What ranks at other mounts see of what rank 0 does, at once and after how long."""
        if self.seen.mounts == 1:
            return
        for name, change in _CHANGES.items():
            right, longest, by_reading = 0, 0.0, 0
            for turn in range(TRIES):
                file = self.directory / f"{name} {turn}" / "file"
                at_once, reading, waited = self.tried(file, change, apart=apart)
                right, by_reading, longest = right + at_once, by_reading + reading, max(longest, waited)
            told = {"at_once": right, "by_opening": by_reading, "of": TRIES, "seconds": round(longest, 3)}
            self.seen.seen[name] = told
        rows = self.seen.seen.values()
        if all(row["at_once"] == row["of"] for row in rows):
            self.seen.measured = "coherent"
        elif all(row["by_opening"] == row["of"] for name, row in self.seen.seen.items() if name not in _NOT_PROMISED):
            self.seen.measured = "close-to-open"
        else:
            self.seen.measured = "timeouts"

    def tried(self, file: Path, change: _Change, *, apart: bool) -> tuple[bool, bool, float]:
        """One change, and whether all others see it at once, or by opening the file, and after how long."""
        self.by_root(file.parent.mkdir)
        self.by_root(lambda: file.write_bytes(b"old" * 100))
        if apart:
            # It is looked at before, so that it is kept.
            with answering("this rank reads what rank 0 wrote", self.seen.path), suppress(OSError):
                _until(lambda: _read(file) == b"old" * 100)
                list(file.parent.iterdir())
        self.comm.allgather(None)
        kept: list[IO[bytes]] = []
        new = self.by_root(lambda: change(file, kept))
        at_once, by_opening, waited = True, True, 0.0
        if apart:
            # What its writer keeps open may be seen only when he closes it.
            limit = 0.0 if change is _kept_open else SEEN_LIMIT
            with answering("this rank reads what rank 0 changed", self.seen.path):
                length = None if new is None else len(new)
                at_once = _length(file) == length
                by_opening = _read(file) == new
                at_once &= by_opening
                waited = _until(lambda: _read(file) == new and _length(file) == length, limit)
        all_of = self.comm.allgather((at_once, by_opening, waited))
        for opened in kept:
            opened.close()
        return all(a for a, _, _ in all_of), all(b for _, b, _ in all_of), max(w for _, _, w in all_of)

    def try_locks(self) -> None:
        """Whether a lock of rank 0 keeps the others out, and is free when he lets go of it."""
        file = self.directory / "lock"
        self.by_root(lambda: file.write_bytes(b"x"))
        held = None
        if self.is_root:
            held = file.open("r+b")
            with suppress(OSError):
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.comm.allgather(None)
        with answering("this rank locks a file", self.seen.path):
            kept_out = self.is_root or not _locks(file)
        everywhere = all(self.comm.allgather(kept_out))
        if held is not None:
            held.close()
        self.comm.allgather(None)
        free = self.is_root or _until(lambda: _locks(file), 5.0) < 5.0
        freed = all(self.comm.allgather(free))
        if self.comm.size == 1:
            self.seen.locks = "held" if _locks(file) else "refused"
        else:
            self.seen.locks = "held" if everywhere and freed else "not held by all ranks"

    def try_names(self) -> None:
        """Which ways to give names there are."""

        def tried() -> dict[str, bool]:
            a, b, c = (self.directory / name for name in "abc")
            for each in (a, b, c):
                each.write_bytes(b"x")
            # Of a name that is taken the system says so by itself, also where the file system cannot.
            found = {"rename without replacing": _renameat2(c, self.directory / "new", NOREPLACE)}
            found["exchange of two names"] = _renameat2(a, b, EXCHANGE)
            try:
                os.link(a, self.directory / "linked")
                found["hard links"] = True
            except OSError:
                found["hard links"] = False
            return found

        self.seen.renames = self.by_root(tried)
        told = self.by_root(lambda: os.statvfs(self.directory))
        self.seen.room = {"bytes": told.f_bavail * told.f_frsize, "files": told.f_favail}

    def measure(self) -> None:
        """Times of small files, and rates of long writes by one rank and by all [s], [B/s]."""
        if self.seen.room["bytes"] < 4 * LONG_BYTES:
            self.seen.notes.append("there is too little room to measure rates")
            return
        rates = self.seen.rates
        rates["seconds to make a small file"] = self.by_root(lambda: _timed(self._small_files) / SMALL_FILES)
        rates["seconds to make one durable"] = self.by_root(lambda: _timed(lambda: _write(self.directory / "s", 4096)))
        rates["bytes per second by one rank"] = LONG_BYTES / self.by_root(
            lambda: _timed(lambda: _write(self.directory / "one", LONG_BYTES))
        )
        if self.comm.size > 1:
            share = LONG_BYTES // self.comm.size
            self.comm.allgather(None)
            failed, seconds = None, 0.0
            try:
                with answering("each rank writes a file", self.seen.path):
                    seconds = _timed(lambda: _write(self.directory / f"all-{self.comm.rank}", share))
            except OSError as error:
                failed = error.strerror
            all_of = self.comm.allgather((failed, seconds))
            if wrong := [why for why, _ in all_of if why]:
                self.seen.risks.append(f"some rank cannot write there: {wrong[0]}")
            else:
                rates["bytes per second by all ranks"] = share * self.comm.size / max(each for _, each in all_of)

    def _small_files(self) -> None:
        for number in range(SMALL_FILES):
            (self.directory / f"small-{number}").write_bytes(b"x" * 4096)


def _in_place(file: Path, _: list[IO[bytes]]) -> bytes:
    new = b"new" * 100
    with file.open("r+b") as opened:
        opened.write(new)
        opened.flush()
        os.fsync(opened.fileno())
    return new


def _appended(file: Path, _: list[IO[bytes]]) -> bytes:
    with file.open("ab") as opened:
        opened.write(b"new" * 100)
        opened.flush()
        os.fsync(opened.fileno())
    return b"old" * 100 + b"new" * 100


def _renamed(file: Path, _: list[IO[bytes]]) -> bytes:
    hidden = file.with_name(f"{file.name}.hidden")
    hidden.write_bytes(b"new" * 100)
    hidden.rename(file)
    return b"new" * 100


def _again(file: Path, _: list[IO[bytes]]) -> bytes:
    file.unlink()
    file.write_bytes(b"new" * 100)
    return b"new" * 100


def _removed(file: Path, _: list[IO[bytes]]) -> None:
    file.unlink()


def _kept_open(file: Path, kept: list[IO[bytes]]) -> bytes:
    new = b"new" * 100
    opened = file.open("r+b", buffering=0)
    opened.write(new)
    kept.append(opened)
    return new


def _directory_replaced(file: Path, _: list[IO[bytes]]) -> bytes:
    hidden = file.parent.with_name(f"{file.parent.name} hidden")
    hidden.mkdir()
    (hidden / file.name).write_bytes(b"new" * 100)
    file.parent.rename(file.parent.with_name(f"{file.parent.name} old"))
    hidden.rename(file.parent)
    return b"new" * 100


#: What rank 0 does to a file that others have looked at; gives what it holds then.
_CHANGES: dict[str, _Change] = {
    "written in place": _in_place,
    "appended": _appended,
    "renamed over": _renamed,
    "made again": _again,
    "removed": _removed,
    "its directory replaced": _directory_replaced,
    "written and kept open": _kept_open,
}


#: What even clients may see late that look at each file when they open it.
_NOT_PROMISED = ("its directory replaced", "written and kept open", "appended")


def _read(file: Path) -> bytes | OSError | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:  # such as ESTALE
        return error


def _length(file: Path) -> int | OSError | None:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return None
    except OSError as error:
        return error


def _until(right: Callable[[], bool], limit: float = SEEN_LIMIT) -> float:
    """How long it takes until something is right, at most so long [s]."""
    began = time.monotonic()
    while not right() and time.monotonic() - began < limit:
        time.sleep(0.01)
    return time.monotonic() - began


def _locks(file: Path) -> bool:
    try:
        with file.open("r+b") as opened:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _renameat2(old: Path, new: Path, flags: int) -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        return False
    return bool(libc.renameat2(AT_FDCWD, os.fsencode(old), AT_FDCWD, os.fsencode(new), flags) == 0)


def _write(file: Path, size: int) -> None:
    piece = os.urandom(min(PIECE_BYTES, size))
    with file.open("wb", buffering=0) as opened:
        for _ in range(0, size, len(piece)):
            opened.write(piece)
        os.fsync(opened.fileno())


def _timed(run: Callable[[], None]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


#: From the strongest on.
_ORDER = ("coherent", "close-to-open", "timeouts")


def _judge(seen: Examination) -> None:
    """What follows for a program."""
    taken, measured = seen.place["strength"], seen.measured
    if measured in _ORDER and taken in _ORDER and _ORDER.index(measured) > _ORDER.index(taken):
        seen.risks.append(
            f"it was taken for {taken}, but other clients see changes late ({measured}): set "
            f"HYPERSLAB_PLACE={measured} for all ranks, or mount it without caches"
        )
    elif measured in _ORDER and _ORDER.index(measured) < _ORDER.index(taken):
        seen.notes.append(
            f"it is taken for {taken}, and {measured} was measured here: HYPERSLAB_PLACE={measured} lets all nodes "
            "write by themselves; set it only if it is mounted so everywhere"
        )
    if taken != "coherent" and seen.mounts > 1:
        seen.notes.append(
            "the client of rank 0 moves all data there, so that no rank reads what is old: at one node's rate"
        )
    if seen.mounts == 1 and len(seen.hosts) == 1:
        seen.notes.append(
            "one client was looked at: run it by mpiexec or srun over the nodes of a job to compare several"
        )
    if seen.locks not in ("held", "not tried"):
        seen.risks.append(
            "locks do not hold there: of two programs that change one array, one may lose; mount it with locks"
        )
    elif len(seen.hosts) > 1 and seen.place["locks"] == "each host":
        seen.notes.append(
            "locks are not known to hold between hosts: what a dead program left may need `hyperslab clean`"
        )
    if seen.room and seen.room["bytes"] < LONG_BYTES:
        seen.risks.append("it is full, or over quota")
    if not all(seen.renames.get(name, True) for name in ("rename without replacing", "exchange of two names")):
        seen.notes.append(
            "names cannot be exchanged there: overwriting has a moment without the array (a journal closes it)"
        )
