"""Dedicated servers: ranks that only move the data of the others to storage and back."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Sequence
from typing import Any

from hyperslab import _core
from hyperslab._calls import attending
from hyperslab._signals import quietly, travels
from hyperslab._weakly import Weakly
from hyperslab.comm import CLOSE_SECONDS, CONNECT_SECONDS, ThreadComm, connect
from hyperslab.errors import InvalidError, PoisonedError

__all__ = ["ServedComm", "dedicate"]

#: How long ranks that have agreed to be divided may take to come to MPI; a signal waits so long at most [s].
GRACE_SECONDS = 5.0
#: Clients that have not ended their service; when the program ends, their servers must hear of it.
_clients: Weakly[ServedComm] = Weakly()


def dedicate(comm: Any, servers: int | Sequence[int] = 1) -> ServedComm:
    """Divide a communicator into clients and servers. Collective.

    Clients use what is returned as the communicator of their stores and files; distributions are over the clients. All
    data then pass through the servers, which hold no elements: a write returns when its data have left the client,
    while the servers still store them. Publishing a step, closing, `Group.flush` and every other collective call wait
    until that is done, and raise what went wrong, on all clients alike.

    Servers call `ServedComm.serve`, which returns when the clients end the service. They wait for any length of time
    while clients compute, and hardly use the processor meanwhile.

    Parameters
    ----------
    comm : communicator
        An intracommunicator of mpi4py, or one of `threads`, with at least two ranks.
    servers : int or sequence of int
        How many ranks serve, spread evenly with rank 0 a client; or which.

    Returns
    -------
    ServedComm
        A context manager; at its end, clients end the service.

    Examples
    --------
    >>> import numpy as np, hyperslab as hs, tempfile
    >>> path = tempfile.mkdtemp() + "/run.zarr"
    >>> def program(comm):
    ...     with hs.dedicate(comm, servers=1) as io:
    ...         if io.is_server:
    ...             io.serve()
    ...             return "served"
    ...         dist = hs.Distribution.block((6,), io.size)
    ...         with hs.open(path, "w", comm=io) as store:
    ...             store.write("rho", np.full(dist.local_shape(io), float(io.rank)), dist)
    ...             return store.read("rho").tolist()
    >>> hs.threads(3, program)
    [[0.0, 0.0, 0.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0, 1.0, 1.0], 'served']
    """
    parent = connect(comm)
    what = "dedicating servers"
    # What is made of both: this library's part, and that of mpi4py.
    made: list[Any] = []
    try:
        with attending(parent, what):
            ranks = _ranks(servers, parent.size)
        if isinstance(comm, ThreadComm):
            parent.compare(what, [("ranks that serve", str(ranks))])
            made.extend((comm._divide(ranks), None))
        else:
            parent.divide(
                what, (comm, sys.modules["mpi4py.MPI"].__file__), ranks, (CONNECT_SECONDS, GRACE_SECONDS), made
            )
        return ServedComm(made[0], made[1], comm.rank in ranks)
    except BaseException as error:
        # Others wait for this rank: clients in their next call, servers for any length of time.
        for core in made[:1]:
            core.leave(f"{type(error).__name__}: {error}")
        if not made and (not isinstance(error, Exception) or travels(error)):
            parent.interrupt(what)
        raise


def _ranks(servers: int | Sequence[int], size: int) -> list[int]:
    if isinstance(servers, Sequence):
        ranks = [rank.__index__() for rank in servers]
        bad = len(set(ranks)) < len(ranks) or any(not 0 <= rank < size for rank in ranks)
    else:
        number = servers.__index__()
        ranks = [(i + 1) * size // number - 1 for i in range(number)] if 0 < number < size else []
        bad = False
    if bad or not 0 < len(ranks) < size:
        message = (
            f"servers={servers!r} must leave a client, but the communicator has {size} rank{'s' * (size > 1)}\n"
            "  hint: give fewer servers than ranks, or run more ranks; name each rank that serves once"
        )
        raise InvalidError(message)
    return ranks


class ServedComm(_core.Context):
    """The clients or the servers of a communicator; made by `dedicate`."""

    def __init__(self, core: _core.Comm, side: Any, is_server: bool) -> None:  # noqa: FBT001
        self._rank, self._size, self._servers = core.rank, core.size, core.servers
        self._side = side
        self._is_server = is_server
        self._process = os.getpid()
        # Last, since what has it ends it when it is dropped.
        self._core: _core.Comm | None = core
        if not is_server:
            _clients.add(self)

    @property
    def is_server(self) -> bool:
        """Whether this rank is to call `serve`."""
        return self._is_server

    @property
    def servers(self) -> int:
        """Number of servers."""
        return self._servers

    @property
    def rank(self) -> int:
        """Number of this rank among the clients, or among the servers if it is one."""
        return self._rank

    @property
    def size(self) -> int:
        """Number of clients, or of servers on a server."""
        return self._size

    def Get_rank(self) -> int:  # noqa: N802 (as mpi4py has it)
        """Number of this rank among the clients, or among the servers if it is one."""
        return self.rank

    def Get_size(self) -> int:  # noqa: N802
        """Number of clients, or of servers on a server."""
        return self.size

    @property
    def comm(self) -> Any:
        """A communicator of mpi4py that joins the clients, or the servers; ``None`` where ranks are threads."""
        return self._side

    def _member(self) -> _core.Comm:
        if self._core is None:
            message = "the dedicated servers have been closed"
            raise InvalidError(message)
        return self._core

    def _client(self) -> _core.Comm:
        if self._is_server:
            message = "a rank that serves opens nothing itself\n  hint: if io.is_server: io.serve()"
            raise InvalidError(message)
        return self._member()

    def barrier(self) -> None:
        """Wait for all clients, and for the servers to be done with what was asked of them before."""
        self._client().compare("barrier", [])

    def serve(self) -> None:
        """On a server: serve the clients until they end the service.

        What fails here, such as a full disk, is an error of the clients, and the service goes on.

        Raises
        ------
        Error
            When the service breaks off, since a rank was lost, left, or was interrupted.
        """
        core = self._member()
        if not self._is_server:
            message = "only a server serves\n  hint: if io.is_server: io.serve()"
            raise InvalidError(message)
        core.serve()
        self._core = None
        core.close(CLOSE_SECONDS)

    def close(self) -> None:
        """On clients: end the service, when all is stored. Collective among them.

        Raises
        ------
        Error
            What went wrong in a call that had returned before. The service ends all the same.
        """
        if self._core is None or self._is_server:
            return
        core = self._core
        try:
            core.end_service()
        finally:
            self._core = None
            _clients.discard(self)
            if not core.poisoned:
                core.close(CLOSE_SECONDS)

    def _leave(self, why: str) -> None:
        core, self._core = self._core, None
        # What a forked child inherits is not its own to end.
        if core is not None and not self._is_server and self._process == os.getpid():
            core.leave_service(why)

    def __del__(self) -> None:
        """Let nobody wait for a client that has forgotten the servers."""
        if getattr(self, "_core", None) is not None:
            self._leave("a client dropped them without close()")

    def _exit(self, error: BaseException | None) -> None:
        """End the service; after an exception on this client alone, let all other ranks fail instead of waiting."""
        if error is None:
            self.close()
        elif getattr(error, "_collective", False) and not isinstance(error, PoisonedError):
            with quietly():
                self.close()
        else:
            self._give_up(error)

    def _give_up(self, error: BaseException) -> None:
        self._leave(f"{type(error).__name__}: {error}")

    def __repr__(self) -> str:
        """Rank and kind."""
        kind = "server" if self._is_server else "client"
        return f"<ServedComm {kind} {self._rank} of {self._size}>"


def _leave_all() -> None:
    for client in list(_clients):
        client._leave("the program ended without close()")


atexit.register(_leave_all)
