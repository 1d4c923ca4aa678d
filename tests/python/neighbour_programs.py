"""What programs beside the test do; see `neighbours`.

Each function is given `pause`, which tells the test where the program is and waits until it may go on.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hyperslab as hs
import numpy as np

from peak import peak_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Of all arrays, which hold one number everywhere.
SHAPE = (12, 16)
CHUNKS = (4, 16)
Pause = Callable[[str], None]

PR_SET_PTRACER, PR_SET_PTRACER_ANY = 0x59616D61, ctypes.c_ulong(-1)
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWUSER = 0x00020000, 0x04000000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18


@dataclass(frozen=True)
class Outcome:
    """How a call ended."""

    #: Name of the exception, or ``none``.
    kind: str
    text: str
    #: Whether the exception is one of the package's.
    ours: bool
    value: Any
    seconds: float
    #: Most memory that the process had, more than at its beginning [B].
    memory: int


def serve(descriptor: int) -> None:
    """Start a program, a process of its own, for each link that comes on a socket, until its other end is closed."""
    requests = socket.socket(fileno=descriptor)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, 1, 1)
        if not message:
            return
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            requests.close()
            run(Connection(descriptors[0]))
            os._exit(0)
        os.close(descriptors[0])
        requests.sendall(child.to_bytes(8, "little"))


def run(link: Connection) -> None:
    """Be a program: hear what it is, wait, run a function of this module, and tell how it ended."""
    function, arguments, surroundings = link.recv()
    libc = ctypes.CDLL(None, use_errno=True)
    # Whoever traces it is no ancestor, which some systems ask for.
    libc.prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0)
    try:
        surround(libc, **surroundings)
    except OSError as error:
        link.send(f"impossible: {error}")
        return

    def pause(where: str) -> None:
        link.send(where)
        link.recv()

    pause("ready")
    link.send(outcome_of(lambda: globals()[function](pause, *arguments)))


def outcome_of(call: Callable[[], Any]) -> Outcome:
    """Make a call."""
    before, started = peak_bytes(), time.monotonic()
    kind, text, ours, value = "none", "the call succeeded", True, None
    try:
        value = call()
    except Exception as error:  # noqa: BLE001 (any error is the result)
        kind, text, ours = type(error).__name__, str(error), isinstance(error, hs.Error)
    seconds = time.monotonic() - started
    memory = peak_bytes() - before
    return Outcome(kind, text, ours, value, seconds, memory)


def surround(
    libc: Any,
    *,
    unprivileged: bool = False,
    mounted: Path | None = None,
    elsewhere: bool = False,
    memory: int | None = None,
) -> None:
    """Change what this process is, and what it sees.

    Parameters
    ----------
    unprivileged : bool
        Give up the rights that root has over files.
    mounted : path, optional
        Make this directory a mount point.
    elsewhere : bool
        Have another host name, and another identity of the running system.
    memory : int, optional
        Have no more memory than this, besides what there is already [B].
    """
    if memory is not None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    user, group = os.getuid(), os.getgid()

    def checked(status: int, what: str) -> None:
        if status != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"{what}: {os.strerror(number)}")

    def mount(source: Path, target: Path) -> None:
        checked(libc.mount(os.fsencode(source), os.fsencode(target), None, MS_BIND, None), f"mounting {target}")

    if unprivileged and user == 0:
        # The owner of files without a say over those of others: a user of a namespace in which nobody is known.
        checked(libc.unshare(CLONE_NEWUSER), "a user namespace")
    if mounted is not None or elsewhere:
        checked(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWUTS), "a mount namespace")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
        checked(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "making mounts private")
    if mounted is not None:
        mount(mounted, mounted)
    if elsewhere:
        socket.sethostname("elsewhere")
        with tempfile.NamedTemporaryFile("w") as identity:
            identity.write(f"{uuid.uuid4()}\n")
            identity.flush()
            mount(Path(identity.name), Path("/proc/sys/kernel/random/boot_id"))


def full(value: float, shape: tuple[int, ...] = SHAPE) -> NDArray[Any]:
    """An array of one number."""
    return np.full(shape, float(value))


def group_of(store: hs.Group, group: str | None) -> hs.Group:
    """A group of a store, or the store."""
    return store if group is None else store.group(group)


def opened(path: Path, mode: Any = "r+", **options: Any) -> hs.Group:
    """A store, open without syncing."""
    return hs.open(path, mode, **({"durable": False} | options))


# ---- stores ----------------------------------------------------------------------------------------------------


def make_store(pause: Pause, path: Path, value: float, names: Sequence[str] = ("a", "b")) -> None:
    """Write a store anew."""
    with opened(path, "w") as store:
        pause("open")
        store.write({name: full(value) for name in names}, chunks=CHUNKS)
        pause("written")


def make_store_at_once(_: Pause, path: Path, value: float, names: Sequence[str] = ("a", "b")) -> None:
    """The same without a pause."""
    make_store(lambda _: None, path, value, names)


def make_durable_store(_: Pause, path: Path) -> None:
    """An empty store, on disk."""
    hs.open(path, "w").close()


def write_step(pause: Pause, path: Path, name: str, value: float) -> None:
    """Write a step of two arrays; pauses when it is open, when it begins, and before it is published."""
    with opened(path) as store:
        pause("open")
        with store.step(name, attributes={"value": value}) as step:
            pause("begun")
            step.write({"a": full(value), "b": full(value)}, chunks=CHUNKS)
            pause("written")


def write_step_at_once(_: Pause, path: Path, name: str, value: float) -> None:
    """The same without a pause."""
    write_step(lambda _: None, path, name, value)


def write_arrays(
    _: Pause,
    path: Path,
    names: Sequence[str],
    value: float,
    group: str | None = None,
    overwrite: bool = False,  # noqa: FBT001, FBT002
) -> None:
    """Write arrays in one call."""
    with opened(path) as store:
        arrays = {name: full(value) for name in names}
        group_of(store, group).write(arrays, chunks=CHUNKS, overwrite=overwrite)


def update(_: Pause, path: Path, name: str, value: float, group: str | None = None) -> None:
    """Write all elements of an array in place."""
    with opened(path) as store:
        group_of(store, group).write(name, full(value), section=(slice(None), slice(None)))


def update_a_row(_: Pause, path: Path, name: str, value: float) -> None:
    """Write the first row of an array in place, which is a part of a chunk."""
    with opened(path) as store:
        store.write(name, full(value, SHAPE[1:]), section=(0, slice(None)))


def update_many_times(pause: Pause, path: Path, name: str, value: float, times: int) -> list[str]:
    """Write all elements of an array in place many times, whatever others do; returns how each ended."""
    with opened(path) as store:
        pause("open")
        whole = (slice(None), slice(None))
        return [outcome_of(lambda: store.write(name, full(value), section=whole)).kind for _ in range(times)]


def write_many_steps(pause: Pause, path: Path, names: Sequence[str], value: float) -> list[str]:
    """Write steps, some of which others write, too; returns how each ended."""
    kinds = []
    with opened(path) as store:
        pause("open")
        for name in names:

            def call(name: str = name) -> None:
                with store.step(name) as step:
                    step.write({"a": full(value), "b": full(value)}, chunks=CHUNKS)

            kinds.append(outcome_of(call).kind)
    return kinds


def write_many_arrays(pause: Pause, path: Path, names: Sequence[str], value: float) -> list[str]:
    """The same with new arrays."""
    kinds = []
    with opened(path) as store:
        pause("open")
        for name in names:

            def call(name: str = name) -> None:
                store.write(name, full(value), chunks=CHUNKS)

            kinds.append(outcome_of(call).kind)
    return kinds


def append(pause: Pause, path: Path, name: str, value: float) -> None:
    """Append as many rows as an array had at first."""
    with opened(path) as store:
        pause("open")
        store.append(name, full(value))


def append_at_once(_: Pause, path: Path, name: str, value: float) -> None:
    """The same without a pause."""
    append(lambda _: None, path, name, value)


def open_and_close(_: Pause, path: Path, mode: str = "r+") -> list[str]:
    """Open a store and its groups; returns all that is said to be unfinished."""
    with opened(path, mode) as store:
        named = list(store.unfinished)
        for group in store.groups():
            named += [f"{group}/{name}" for name in store.group(group).unfinished]
        return named


def open_and_use(_: Pause, path: Path) -> list[str]:
    """All that a program does to a store: writes new arrays and old ones, a step, and changes one in place."""

    def step(store: hs.Group) -> None:
        with store.step("step") as step:
            step.write("a", full(7), chunks=CHUNKS)

    with opened(path) as store:
        calls: list[Callable[[], Any]] = [
            lambda: store.write("new", full(7), chunks=CHUNKS),
            lambda: store.write("a", full(7), chunks=CHUNKS, overwrite=True),
            lambda: store.write("b", full(7), section=(slice(None), slice(None))),
            lambda: store.append("b", full(7)),
            lambda: step(store),
        ]
        return [outcome_of(call).kind for call in calls]


# ---- files -----------------------------------------------------------------------------------------------------


def make_raw(_: Pause, path: Path, value: float) -> None:
    """Write a raw file anew."""
    with hs.open_raw(path, "w", durable=False) as file:
        file.write({"a": full(value)})


def update_raw(_: Pause, path: Path, value: float) -> None:
    """Write all of a raw file in place, in several pieces."""
    known: Any = {"a": (SHAPE, "f8")}
    with hs.open_raw(path, "r+", order="C", arrays=known, durable=False, subchunk_bytes=512) as file:
        file.write({"a": full(value)})


def unfinished_of_raw(_: Pause, path: Path) -> list[str]:
    """Open a raw file for reading; returns what is said to be unfinished."""
    with hs.open_raw(path, arrays={"a": (SHAPE, "f8")}) as file:
        return list(file.unfinished)


def make_npy(_: Pause, path: Path, value: float) -> None:
    """Write an npy file anew."""
    hs.save_npy(path, full(value), durable=False)


# ---- reading what may be odd -----------------------------------------------------------------------------------


def read_store(_: Pause, path: Path) -> list[Outcome]:
    """Open a store on two ranks and read an array of it."""

    def call(comm: hs.ThreadComm) -> NDArray[Any]:
        with hs.open(path, comm=comm) as store:
            return store.read("a")

    return on_two_ranks(call)


def read_raw(_: Pause, path: Path) -> list[Outcome]:
    """Read a raw file on two ranks."""

    def call(comm: hs.ThreadComm) -> NDArray[Any]:
        with hs.open_raw(path, comm=comm, arrays={"a": (SHAPE, "f8")}) as file:
            return file.read("a")

    return on_two_ranks(call)


def read_npy(_: Pause, path: Path) -> list[Outcome]:
    """Read an npy file on two ranks."""
    return on_two_ranks(lambda comm: hs.load_npy(path, comm=comm))


def on_two_ranks(call: Callable[[hs.ThreadComm], Any]) -> list[Outcome]:
    """How a call ends on two ranks."""
    return hs.threads(2, lambda comm: outcome_of(lambda: call(comm)))
