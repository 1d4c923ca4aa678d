"""Communicators: MPI's, threads of this process, or this process alone."""

from __future__ import annotations

import atexit
import math
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Protocol, TypeAlias, TypeVar

from hyperslab import _core
from hyperslab._signals import behind
from hyperslab._thread_ranks import Meeting, join, stop
from hyperslab._values import unfit, whole_number
from hyperslab._weakly import Weakly
from hyperslab.errors import PeerError

__all__ = ["ThreadComm", "release", "threads"]

T = TypeVar("T")

#: Seconds that duplicating a communicator waits for the other ranks.
CONNECT_SECONDS = 1800.0
#: Seconds that ending a membership waits for the other ranks.
CLOSE_SECONDS = 10.0
#: Seconds that a rank whose program failed waits for the others to make their first call on MPI.COMM_WORLD; it cannot
#: end before them anyway, since MPI_Finalize waits.
TELL_SECONDS = 30.0


class HasRank(Protocol):
    """A communicator of mpi4py, or of this package."""

    @property
    def rank(self) -> int:
        """Number of this rank."""
        ...


RankLike: TypeAlias = "int | HasRank"


def rank_of(rank: RankLike) -> int:
    """Rank number of a number or of a communicator."""
    return whole_number(getattr(rank, "rank", rank), "rank")


class _Divided:
    """Divisions of threads into clients and servers; the first thread that comes makes them for all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts: dict[int, dict[int, _core.Comm]] = {}

    def part(self, number: int, rank: int, size: int, servers: list[int]) -> _core.Comm:
        """The part of a rank in division `number`."""
        with self._lock:
            if number not in self._parts:
                self._parts[number] = dict(enumerate(_core.Comm.threads_with_servers(size, servers)))
            part = self._parts[number].pop(rank)
            if not self._parts[number]:
                del self._parts[number]
            return part


class Barrier(Protocol):
    """Where threads wait for each other."""

    def wait(self) -> Any:
        """Wait for all."""
        ...


class ThreadComm:
    """One of several threads of this process that stand in for ranks; made by `threads`."""

    def __init__(self, core: _core.Comm, barrier: Barrier, divided: _Divided | None = None) -> None:
        self._core = core
        self._barrier = barrier
        self._divided = _Divided() if divided is None else divided
        self._divisions = 0
        self._parts: list[_core.Comm] = []

    def _divide(self, servers: list[int]) -> _core.Comm:
        """The same threads, some of which serve the others: this rank's part. All threads call it alike."""
        self._divisions += 1
        part = self._divided.part(self._divisions, self.rank, self.size, servers)
        self._parts.append(part)
        return part

    def _end(self, why: str) -> None:
        """Tell those who wait for this rank, or come to, that it has ended."""
        if isinstance(self._barrier, Meeting):
            self._barrier.leave(why)
        for core in (self._core, *self._parts):
            core.depart()

    @property
    def rank(self) -> int:
        """Number of this thread."""
        return self._core.rank

    @property
    def size(self) -> int:
        """Number of threads."""
        return self._core.size

    def Get_rank(self) -> int:  # noqa: N802 (as mpi4py has it)
        """Number of this thread."""
        return self.rank

    def Get_size(self) -> int:  # noqa: N802
        """Number of threads."""
        return self.size

    def barrier(self) -> None:
        """Wait for all threads."""
        self._barrier.wait()


def threads(size: int, function: Callable[[ThreadComm], T]) -> list[T]:
    """Run ``function(comm)`` on `size` threads of this process, as ranks of one communicator.

    Requests that a rank has not waited for are waited for at its end. A rank that returns or raises while others wait
    for it lets them fail at once, with a `PeerError` that names it. What a handler of signals raises in the thread that
    waits here (such as Ctrl-C) ends the calls of all ranks with `InterruptedError`, and then travels on. Ranks that are
    in no call are waited for a second, and all their further calls fail.

    Returns
    -------
    list
        What each rank returned.

    Raises
    ------
    Exception
        The first exception of the lowest rank that raised one.

    Examples
    --------
    >>> import hyperslab as hs
    >>> hs.threads(3, lambda comm: comm.rank * 10)
    [0, 10, 20]
    """
    cores = _core.Comm.threads(whole_number(size, "size", 1))
    meeting, divided, crew = Meeting(size), _Divided(), _core.Crew()
    results: list[Any] = [None] * size
    failures: list[BaseException | None] = [None] * size

    def run(rank: int) -> None:
        crew.join()
        comm = ThreadComm(cores[rank], meeting, divided)
        ended = f"rank {rank} ended its program without this call"
        try:
            results[rank] = function(comm)
            # Requests end with their rank; what went wrong in one that nobody waited for is not lost.
            for error in cores[rank].finish(math.inf)[0]:
                raise error
        except BaseException as error:  # noqa: BLE001 (raised again below, on the caller's thread)
            failures[rank] = error
            if not getattr(error, "_collective", False) and not meeting.broke(error):
                ended = f"rank {rank} ended its program with an error: {_told(error)}"
                cores[rank].leave(_told(error))
        # Who waits for this rank, or comes to, hears of its end at once.
        comm._end(ended)

    workers = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            join(worker)
    except BaseException as stopped:  # noqa: BLE001 (raised again)
        stop(crew, meeting, [worker for worker in workers if worker.ident is not None])
        raise behind(stopped)  # noqa: B904 (it is that one, or the one before)
    # Of ranks that heard of another's failure in a barrier, the other's is the one to show.
    raised = [error for error in failures if error is not None]
    for error in [error for error in raised if not meeting.broke(error)] or raised:
        raise error
    return results


class _Cache(threading.local):
    """The membership of this process alone, one for each thread, so that threads do not wait for each other."""

    def __init__(self) -> None:
        self.alone: _core.Comm | None = None


_cache = _Cache()
#: What a forked child inherits and cannot use, since threads do not survive a fork; kept, because ending it would wait.
_inherited: list[_core.Comm | None] = []
#: Memberships of MPI communicators are attributes of theirs under this key, which MPI drops with the communicator.
_keyval: list[int] = []


#: Memberships whose other ranks must hear when this process ends.
_members: Weakly[_core.Comm] = Weakly()


def _after_fork() -> None:
    _inherited.append(_cache.alone)
    _cache.alone = None
    _members.clear()


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _watch(member: _core.Comm) -> None:
    """Let the other ranks of a membership hear when this process ends, at once if nobody caught an exception."""
    if not _hooks:
        _hooks.append(sys.excepthook)
        sys.excepthook = _leave
    _members.add(member)


#: The hook for exceptions that nobody caught, as it was before.
_hooks: list[Callable[[type[BaseException], BaseException, TracebackType | None], object]] = []


def _leave(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    for member in list(_members):
        member.leave(_told(error))
    _hooks[0](kind, error, trace)


def _tell_first(error: BaseException) -> None:
    """Take part in the first call of the others on MPI.COMM_WORLD, and fail there, so that they do not wait."""
    mpi: Any = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized():
        return
    world = mpi.COMM_WORLD
    if world.Get_size() == 1 or existing(world) is not None:
        return
    # Whatever goes wrong here, the program's own error has been shown.
    made: list[_core.Comm] = []
    with suppress(Exception):
        _core.Comm.mpi(world.py2f(), mpi.__file__, TELL_SECONDS, made)
        made[0].leave(_told(error))


def _depart() -> None:
    # Python notes there what nobody caught.
    uncaught = getattr(sys, "last_value", None)
    if isinstance(uncaught, BaseException):
        _tell_first(uncaught)
    for member in list(_members):
        member.depart()


# Registered before what waits for requests, and so called after it.
atexit.register(_depart)


os.register_at_fork(after_in_child=_after_fork)


def existing(comm: Any) -> _core.Comm | None:
    """The membership that `connect` would give, if it is there already; other ranks need not ask."""
    if comm is None:
        return _cache.alone
    if isinstance(comm, ThreadComm) or hasattr(comm, "_client"):
        return connect(comm)
    member = comm.Get_attr(_keyval[0]) if _keyval and hasattr(comm, "Get_attr") else None
    return member if isinstance(member, _core.Comm) else None


#: Memberships of this process alone, though its launcher started several; who reads by one is warned, once.
lone: list[_core.Comm] = []


def _drop(_comm: Any, _keyval: int, member: _core.Comm) -> None:
    # MPI frees a communicator collectively, so all ranks come here, but for those that have left it: of them there is
    # nothing to tell.
    if not member.poisoned:
        with suppress(PeerError):
            member.close(CLOSE_SECONDS)


def connect(comm: Any, arrival_seconds: float = CONNECT_SECONDS) -> _core.Comm:
    """The membership for what a user gives as communicator. The first time, it waits so long for the others [s]."""
    if comm is None:
        if _cache.alone is None or _cache.alone.poisoned:
            _cache.alone = _core.Comm.alone()
        return _cache.alone
    mpi = sys.modules.get("mpi4py.MPI")
    # First what is asked for most often: small transfers feel each step.
    if _keyval and mpi is not None and isinstance(comm, mpi.Intracomm) and comm:
        member = comm.Get_attr(_keyval[0])
        if isinstance(member, _core.Comm) and not member.poisoned:
            return member
    if isinstance(comm, ThreadComm):
        return comm._core
    client = getattr(comm, "_client", None)
    if client is not None:
        member = client()
        assert isinstance(member, _core.Comm)
        return member
    if mpi is None or not isinstance(comm, mpi.Comm):
        kinds = "an intracommunicator of mpi4py, one of hyperslab.threads() or hyperslab.dedicate(), or None"
        raise unfit("comm", kinds, comm)
    if comm == mpi.COMM_NULL or comm.Is_inter():
        from hyperslab.errors import InvalidError

        kind = "MPI_COMM_NULL" if comm == mpi.COMM_NULL else "an intercommunicator, whose ranks are in two groups"
        message = f"comm must be an intracommunicator, got {kind}\n  hint: make one of the two groups with comm.Merge()"
        raise InvalidError(message)
    if not _keyval:
        _keyval.append(mpi.Comm.Create_keyval(delete_fn=_drop))
    member = comm.Get_attr(_keyval[0])
    if member is None or (member.poisoned and not member.interrupted):
        member = _joined(comm, mpi, arrival_seconds)
    assert isinstance(member, _core.Comm)
    return member


def _joined(comm: Any, mpi: Any, arrival_seconds: float) -> _core.Comm:
    """A new membership of a communicator of MPI."""
    made: list[_core.Comm] = []
    try:
        _core.Comm.mpi(comm.py2f(), mpi.__file__, _seconds(arrival_seconds), made)
        member = made[0]
        comm.Set_attr(_keyval[0], member)
        _watch(member)
        if member.is_lone:
            lone.append(member)
        return member
    except BaseException as error:
        # The others have it, and wait for this rank in their next call.
        for member in made:
            member.leave(_told(error))
        raise


def _seconds(value: float) -> float:
    """A limit, also where somebody gave what is none: the error is one of the call, which all ranks shall make."""
    try:
        return value if 0 < value < math.inf else CONNECT_SECONDS
    except TypeError:
        return CONNECT_SECONDS


def release(comm: Any) -> None:
    """End this package's use of a communicator. Collective.

    The package keeps one duplicate of each communicator that it was given. MPI frees it together with the original;
    this frees it earlier.
    """
    if isinstance(comm, ThreadComm) or comm is None or hasattr(comm, "_client") or not _keyval:
        return
    if comm.Get_attr(_keyval[0]) is not None:
        comm.Delete_attr(_keyval[0])
