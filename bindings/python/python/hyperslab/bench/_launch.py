"""Ranks that measure, started by mpiexec, and what must be known of the machine that they measure."""

from __future__ import annotations

import json
import math
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import hyperslab as hs
from hyperslab._printing import say
from hyperslab._scratch import scratch

__all__ = [
    "about",
    "end",
    "file_system",
    "find_mpiexec",
    "launch",
    "measure_task",
    "measured",
    "session",
    "task_of_this_launch",
]

#: How long a launcher has to end its ranks before all are killed.
ENDING_SECONDS = 5.0
#: How often whoever waits for a launcher looks whether somebody wants it to end.
LOOK_SECONDS = 1.0
#: A longer path of the usual folder for temporary files leaves too little for the names of sockets below it [B].
SESSION_PATH_BYTES_MAX = 40


def find_mpiexec() -> Path:
    """The launcher beside this interpreter, or else the one on the path.

    Raises
    ------
    NotFoundError
        When there is none.
    """
    beside = Path(sys.executable).with_name("mpiexec")
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        message = f"there is no mpiexec beside {sys.executable} or on the path\n  hint: pip install mpich mpi4py"
        raise hs.NotFoundError(message)
    return Path(found)


@contextmanager
def session() -> Iterator[dict[str, str]]:
    """An environment with a folder of its own for what MPI keeps while a launch runs; it goes away with the launch.

    Open MPI names its files in the usual folder by process numbers and leaves them behind when it is killed; a later
    launcher that gets such a number does not start.
    """
    usual = tempfile.gettempdir()
    # Paths of sockets may have 107 bytes.
    place = usual if len(os.fsencode(usual)) <= SESSION_PATH_BYTES_MAX or not os.access("/tmp", os.W_OK) else "/tmp"
    with scratch("hs-mpi-", Path(place)) as own:
        try:
            yield os.environ | {"TMPDIR": str(own)}
        finally:
            _end_left(own)


def _end_left(own: Path) -> None:
    """Kill what was started with this folder for temporary files and is still there.

    Ranks are in process groups of their own, and live on for a while when a launcher ends that had only just begun.
    """
    mark = f"TMPDIR={own}".encode()
    until = time.monotonic() + ENDING_SECONDS
    while time.monotonic() < until:
        left = [process for process in Path("/proc").glob("[0-9]*") if _has_in_environment(process, mark)]
        if not left:
            return
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(int(process.name), signal.SIGKILL)
        time.sleep(0.01)


def _has_in_environment(process: Path, mark: bytes) -> bool:
    # Those of other users cannot be read; those that have ended are empty, or gone.
    with suppress(OSError):
        return mark in (process / "environ").read_bytes().split(b"\0")
    return False


def launch(ranks: int, module: str, task: Path, *, limit_seconds: float = math.inf) -> None:
    """Run a module of this folder on ranks, with the name of the file that holds its task in JSON.

    Raises
    ------
    PeerError
        When they fail, or are not over within the limit, after which they are ended.
    """
    command = [str(find_mpiexec()), "-n", str(ranks)]
    command += [sys.executable, "-m", f"hyperslab.bench.{module}", str(task)]
    # Progress of the ranks, and their errors, belong to the person; stdout is for the results.
    with (
        session() as environment,
        subprocess.Popen(command, env=environment, stdout=sys.stderr, start_new_session=True) as running,
    ):
        try:
            status = _status(running, limit_seconds)
        except BaseException as expired:
            end(running)
            # Whoever was interrupted or told to end does so.
            if not isinstance(expired, subprocess.TimeoutExpired):
                raise
            message = (
                f"the measurement on {ranks} ranks was not over after {limit_seconds:.0f} s: {shlex.join(command)}"
            )
            raise hs.PeerError(message) from expired
    if status != 0:
        message = f"the measurement on {ranks} ranks ended with status {status}: {shlex.join(command)}"
        raise hs.PeerError(message)


def measured(ranks: int, module: str, directory: Path, told: dict[str, Any]) -> dict[str, Any]:
    """Launch ranks that measure in a folder of their own, as they are told, and return what they found."""
    with scratch("hyperslab-bench-", directory) as place:
        task, answer = place / "task.json", place / "results.json"
        task.write_text(json.dumps({**told, "directory": str(place), "answer": str(answer)}))
        launch(ranks, module, task)
        results: dict[str, Any] = json.loads(answer.read_text())
        return results


def _status(running: subprocess.Popen[Any], limit_seconds: float) -> int:
    """With what it ends, in time. A signal that comes just before a wait does not end that, so each is short."""
    until = time.monotonic() + limit_seconds
    while (left := until - time.monotonic()) > 0:
        with suppress(subprocess.TimeoutExpired):
            return running.wait(min(LOOK_SECONDS, left))
    raise subprocess.TimeoutExpired(running.args, limit_seconds)


def end(launcher: subprocess.Popen[Any]) -> None:
    """End a launcher that leads a session: first so that it can clean up, then for sure."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if launcher.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(launcher.pid, number)
            with suppress(subprocess.TimeoutExpired):
                launcher.wait(ENDING_SECONDS)


def measure_task(comm: Any, measure: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """On each rank: measure what the task says; rank 0 leaves the results where it says."""
    task = task_of_this_launch()
    try:
        found = measure(task)
        if comm.rank == 0:
            Path(task["answer"]).write_text(json.dumps(found))
    except Exception as error:  # noqa: BLE001 (the other ranks wait in MPI, which only an abort ends)
        say(f"rank {comm.rank}: {type(error).__name__}: {error}", error=True)
        comm.Abort(1)


def task_of_this_launch() -> Any:
    """What a rank was told to do."""
    return json.loads(Path(sys.argv[1]).read_text())


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def file_system(directory: Path) -> str:
    """Type of the file system of a directory: the one mounted deepest above it."""
    mounts = Path("/proc/self/mounts")
    rows = [line.split()[1:3] for line in mounts.read_text().splitlines()] if mounts.exists() else []
    above = [(len(point), kind) for point, kind in rows if directory.resolve().is_relative_to(point)]
    return max(above)[1] if above else "unknown file system"


def about(directory: Path) -> dict[str, str]:
    """What must be known to repeat a measurement."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0))
    return {
        "machine": f"{_processor()}, {cores} cores, {memory:.0f} GiB, {file_system(directory)}",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "version": f"hyperslab {hs.__version__}",
        "command": shlex.join(["hyperslab", *sys.argv[1:]]),
    }
