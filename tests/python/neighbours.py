"""Other programs beside this one: told when to go on, stopped, or killed before any call that changes files.

A program is a process that runs a function of `neighbour_programs`. It comes from a server of processes that has
imported everything once, so that it starts within milliseconds.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import multiprocessing
import os
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import neighbour_programs
from neighbour_programs import CHUNKS, SHAPE, Outcome

HERE = Path(__file__).parent
#: A program that says nothing for longer is stuck [s].
TIMEOUT_SECONDS = 30.0
#: Chunks of an array.
COUNT = SHAPE[0] // CHUNKS[0]
#: What `make_all` makes.
ARRAYS = {name: [1.0] * COUNT for name in "ab"}
#: So many calls at which a program is stopped, and the last that rename.
STOPS = 6
#: How two end that want the same name: one has it, the other hears that it is taken.
BOTH = Counter({"none": 1, "ExistsError": 1})


class StuckError(AssertionError):
    """A program did not come to its end."""


@functools.cache
def _server() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """The server of processes, which ends with this one, and the socket by which it is asked."""
    ours, theirs = socket.socketpair()
    with theirs:
        code = f"import neighbour_programs; neighbour_programs.serve({theirs.fileno()})"
        environment = os.environ | {"PYTHONPATH": str(HERE)}
        process = subprocess.Popen(
            [sys.executable, "-c", code], env=environment, pass_fds=[theirs.fileno()], start_new_session=True
        )
    return ours, process


class Program:
    """Another program; made by `program`."""

    def __init__(self, function: str, arguments: tuple[Any, ...], surroundings: dict[str, Any]) -> None:
        self._ours, theirs = multiprocessing.Pipe()
        with theirs:
            server, _ = _server()
            socket.send_fds(server, [b"."], [theirs.fileno()])
            self.pid = int.from_bytes(server.recv(8), "little")
        # The process waits for what follows, so its number is still its own.
        self._handle = os.pidfd_open(self.pid)
        self._ours.send((function, arguments, surroundings))

    def hear(self, timeout: float = TIMEOUT_SECONDS) -> Any:
        """What the program says next."""
        if not self._ours.poll(timeout):
            message = f"the program has said nothing for {timeout:.0f} s"
            raise StuckError(message)
        return self._ours.recv()

    def go(self) -> None:
        """Let the program go on: at its beginning, and where it pauses."""
        self._ours.send("go")

    def until(self, where: str) -> None:
        """Let the program go on until it pauses there."""
        self.go()
        heard = self.hear()
        assert heard == where, heard

    def outcome(self, timeout: float = TIMEOUT_SECONDS) -> Outcome:
        """How the program ended."""
        heard = self.hear(timeout)
        assert isinstance(heard, Outcome), heard
        return heard

    def finish(self, timeout: float = TIMEOUT_SECONDS) -> Outcome:
        """Let the program go on to its end, past all its pauses."""
        heard: Any = None
        while not isinstance(heard, Outcome):
            self.go()
            heard = self.hear(timeout)
        return heard

    def wait_stopped(self) -> None:
        """Wait until the program has stopped."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] not in "Tt":
            assert time.monotonic() < deadline, "the program does not stop"
            time.sleep(0.002)

    def carry_on(self) -> None:
        """Let a stopped program go on."""
        signal.pidfd_send_signal(self._handle, signal.SIGCONT)

    def kill(self) -> None:
        """Kill the program (SIGKILL)."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        self.wait_ended()

    def wait_ended(self) -> None:
        """Wait until the process is gone, and all that it held with it."""
        gone, _, _ = select.select([self._handle], [], [], TIMEOUT_SECONDS)
        assert gone, "the program does not end"

    def end(self) -> None:
        """End the program, whatever it does."""
        self.kill()
        self._ours.close()
        os.close(self._handle)


@contextmanager
def program(function: str, *arguments: Any, **surroundings: Any) -> Iterator[Program]:
    """A program that runs a function of `neighbour_programs`, in the surroundings that `surround` there makes."""
    made = Program(function, arguments, surroundings)
    try:
        heard = made.hear()
        if heard != "ready":
            pytest.skip(heard)
        yield made
    finally:
        made.end()


def carried_out(function: str, *arguments: Any, timeout: float = TIMEOUT_SECONDS, **surroundings: Any) -> Outcome:
    """How a program ends that nobody disturbs; if it takes longer than the limit, `StuckError`."""
    with program(function, *arguments, **surroundings) as made:
        return made.finish(timeout)


def here(function: str, *arguments: Any) -> Outcome:
    """The same in this process, which is sooner."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return neighbour_programs.outcome_of(lambda: getattr(neighbour_programs, function)(lambda _: None, *arguments))


#: Where a program that writes a step pauses: its store is open, the step is begun, the step is written.
MOMENTS = ("open", "begun", "written")


def write_step_beside(other: Program, moments: Mapping[str, Callable[[], Any]]) -> Outcome:
    """Let a program write a step and make calls at some of its moments; how the program ends, maybe before some."""
    heard: Any = None
    while not isinstance(heard, Outcome):
        if heard in moments:
            moments[heard]()
        other.go()
        heard = other.hear()
    return heard


# ---- calls of the operating system -----------------------------------------------------------------------------


@functools.cache
def _tracer() -> tuple[str, Any]:
    """The program that counts calls, and what keeps it; or why there is none, and nothing."""
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
    if compiler is None:
        return "there is no C compiler", None
    kept = tempfile.TemporaryDirectory(prefix="hyperslab-calls-")
    built = f"{kept.name}/calls"
    command = [compiler, "-O1", "-o", built, str(HERE / "calls.c")]
    made = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return (built, kept) if made.returncode == 0 else (f"calls.c cannot be compiled: {made.stderr[:500]}", None)


@contextmanager
def _traced(program: Program, *arguments: int) -> Iterator[subprocess.Popen[str]]:
    """A program with its tracer attached."""
    tracer, kept = _tracer()
    if kept is None:
        pytest.skip(tracer)
    command = [tracer, str(program.pid), *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            if process.stdout.readline() != "attached\n":
                pytest.skip(f"no process can be traced here: {process.stderr.read().strip()}")
            yield process
        finally:
            process.kill()


def calls_of(function: str, *arguments: Any, **surroundings: Any) -> list[str]:
    """Which calls that change or sync files a program makes: name and path."""
    with program(function, *arguments, **surroundings) as made, _traced(made) as tracer:
        outcome = made.finish()
        assert outcome.kind == "none", outcome.text
        made.wait_ended()
        return tracer.communicate(timeout=TIMEOUT_SECONDS)[0].splitlines()


def stops(function: str, path: Path, *arguments: Any) -> list[int]:
    """Numbers of some calls of a program; it is carried out on a copy."""
    copy = path.parent / "copy" / path.name
    copy.parent.mkdir()
    (shutil.copytree if path.is_dir() else shutil.copyfile)(path, copy)
    calls = [call for call in calls_of(function, copy, *arguments) if not is_sync(call)]
    shutil.rmtree(copy.parent)
    renames = [number for number, call in enumerate(calls, 1) if call.startswith("rename")]
    return sorted({*range(1, len(calls) + 1, max(1, len(calls) // STOPS)), *renames[-2:]})


def is_sync(call: str) -> bool:
    """Whether a call only makes sure that something is on disk."""
    return call.split()[0] in ("fsync", "fdatasync", "syncfs")


def reach(program: Program, number: int, signal_number: int) -> str | None:
    """Let a program go on to the call of this number, and send it a signal there; ``None`` if it ends before.

    Returns
    -------
    str
        The call. After SIGKILL it was not made, after SIGSTOP it was.
    """
    with _traced(program, number, signal_number) as tracer:
        program.go()
        calls = tracer.communicate(timeout=TIMEOUT_SECONDS)[0].splitlines()
        if tracer.returncode != 0:
            return None
    if signal_number == signal.SIGKILL:
        program.wait_ended()
    else:
        program.wait_stopped()
    return next(call for call in reversed(calls) if not is_sync(call))


# ---- what is there before, and afterwards ----------------------------------------------------------------------


def make_all(directory: Path) -> Path:
    """A store 's.zarr' with arrays 'a' and 'b' of value 1, a raw file 's.raw' and an npy file 's.npy' with the same."""
    path = directory / "s.zarr"
    neighbour_programs.make_store(lambda _: None, path, 1, "ab")
    neighbour_programs.make_raw(lambda _: None, path.with_name("s.raw"), 1)
    neighbour_programs.make_npy(lambda _: None, path.with_name("s.npy"), 1)
    return path


def tree(path: Path) -> dict[str, tuple[str, Any]]:
    """All that lies at a path and below, with contents, not following links."""
    if not os.path.lexists(path):
        return {}
    found = {".": _entry(path)}
    if found["."][0] == "directory":
        found |= {str(each.relative_to(path)): _entry(each) for each in sorted(path.rglob("*"))}
    return found


def _entry(path: Path) -> tuple[str, Any]:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return "link", str(path.readlink())
    if stat.S_ISREG(mode):
        return "file", path.read_bytes()
    return ("directory", None) if stat.S_ISDIR(mode) else ("special", stat.S_IFMT(mode))


def step_of(value: float, name: str = "s") -> dict[str, list[float]]:
    """What `arrays_at` finds of a step that `write_step` has written."""
    return {f"{name}/{array}": [value] * COUNT for array in "ab"}


def leftovers(directory: Path) -> list[str]:
    """Names in a directory and below that only this package gives."""
    return sorted(str(each.relative_to(directory)) for each in directory.rglob("*hyperslab*"))


def arrays_at(path: Path) -> dict[str, list[float | None]]:
    """All arrays that a reader finds at a path: the number that each chunk holds, ``None`` for one that is not whole.

    Shares no code with the package: the chunks of `neighbour_programs` hold one number everywhere and a checksum.
    """
    found: dict[str, list[float | None]] = {}
    for metadata in sorted(path.glob("**/zarr.json")):
        names = metadata.parent.relative_to(path)
        if any("hyperslab" in part for part in names.parts):
            continue
        described = json.loads(metadata.read_text())
        if described["node_type"] != "array":
            continue
        encoding = described["chunk_key_encoding"]
        separator = encoding.get("configuration", {}).get("separator", "/")
        extents = described["chunk_grid"]["configuration"]["chunk_shape"]
        counts = [range(-(-size // extent)) for size, extent in zip(described["shape"], extents, strict=True)]
        keys = [separator.join(["c", *map(str, index)]) for index in itertools.product(*counts)]
        found[str(names)] = [_number_in(metadata.parent / key, math.prod(extents)) for key in keys]
    return found


def _number_in(chunk: Path, elements: int) -> float | None:
    content = chunk.read_bytes() if chunk.is_file() else b""
    if len(content) != elements * 8 + 4:
        return None
    values = np.frombuffer(content[:-4])
    return float(values[0]) if (values == values[0]).all() else None
