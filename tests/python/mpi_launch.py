"""Starting programs of `mpi_programs` on several ranks, with a limit of time and nothing left behind.

Each launch has a folder of its own for what MPI keeps while it runs (`session`). Open MPI names its files there by
process numbers and leaves them behind when it is killed; a later launcher that gets such a number does not start.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pytest

from mpi_programs.leaving import shared_memory

HERE = Path(__file__).parent
#: A launch that takes longer is taken for stuck [s].
TIMEOUT_SECONDS = 120.0
#: In the place of a rank: outlives it, so that the launcher does not hear of its death and end the others.
OUTLIVE = ("sh", "-c", 'trap "" USR1; "$@"; sleep 600', "rank")


#: A launch in a namespace that may mount.
MOUNTING = ("unshare", "--map-root-user", "--mount")


def check_can_mount(directory: Path) -> None:
    """Skip a test where no file system can be mounted in a user namespace."""
    try:
        tried = subprocess.run(
            [*MOUNTING, "sh", "-c", 'mount -t tmpfs own "$0"', str(directory)], capture_output=True, timeout=60
        )
    except FileNotFoundError:
        pytest.skip("there is no unshare (util-linux)")
    if tried.returncode != 0:
        pytest.skip(f"no file system can be mounted in a user namespace here: {tried.stderr.decode().strip()}")


def mpiexec() -> str:
    """Return the launcher of this Python's MPI; without any, the test is skipped."""
    sibling = Path(sys.executable).parent / "mpiexec"
    found = str(sibling) if sibling.exists() else shutil.which("mpiexec")
    if found is None:
        pytest.skip("no mpiexec beside python nor on the path")
    return found


def environment(extra: dict[str, str]) -> dict[str, str]:
    """Return an environment in which Open MPI, too, starts more ranks than there are cores, also as root."""
    return (
        os.environ
        | {
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
            "PYTHONPATH": os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")])),
            "PYTHONFAULTHANDLER": "1",
        }
        | extra
    )


class Session:
    """A folder for the temporary files of one launch, by which its processes are known, also when they are stopped."""

    def __init__(self, folder: str) -> None:
        self._mark = f"TMPDIR={folder}".encode()
        self._shared: set[Path] = set()
        self.variables = {"TMPDIR": folder}

    def processes(self) -> list[Path]:
        """Those that were started with this folder, as directories of /proc."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            # Those of other users cannot be read; those that have ended are empty, or gone.
            with suppress(OSError):
                if self._mark in (process / "environ").read_bytes().split(b"\0"):
                    found.append(process)
        return found

    def note_shared_memory(self) -> None:
        """Remember the files in /dev/shm that they have mapped; MPI removes its own, unless it is killed."""
        for process in self.processes():
            with suppress(OSError):
                self._shared |= shared_memory(process.name)

    def end(self) -> None:
        """Kill them, wait until they are gone, and remove their shared memory."""
        self.note_shared_memory()
        until = time.monotonic() + 5.0
        while (left := self.processes()) and time.monotonic() < until:
            for process in left:
                with suppress(ProcessLookupError):
                    os.kill(int(process.name), signal.SIGKILL)
            time.sleep(0.01)
        for path in self._shared:
            path.unlink(missing_ok=True)


@contextmanager
def session() -> Iterator[Session]:
    """One launch; at the end, all that is left of it ends, and its files go away."""
    # Paths of sockets may have 107 bytes.
    usual = tempfile.gettempdir()
    short = usual if len(os.fsencode(usual)) <= 40 or not os.access("/tmp", os.W_OK | os.X_OK) else "/tmp"
    folder = tempfile.mkdtemp(prefix="hs-", dir=short)
    own = Session(folder)
    try:
        yield own
    finally:
        own.end()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running(
    ranks: int,
    program: str,
    *arguments: object,
    extra_environment: dict[str, str] | None = None,
    deaths_are_hidden: bool = False,
    inside: Sequence[str] = (),
    through: Sequence[str] = (),
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """Run ``mpi_programs.<program>``; gives the launcher and the file of all that it and the ranks print.

    At the end of the context, what still runs is ended. An exception on one rank ends all (``python -m mpi4py``),
    unless deaths are hidden from the launcher. `inside` is a command that runs the launcher, `through` one that runs
    each rank.
    """
    before = [*OUTLIVE, sys.executable] if deaths_are_hidden else [sys.executable, "-m", "mpi4py"]
    ranked = [mpiexec(), "-n", str(ranks), *through, *before, "-m", f"mpi_programs.{program}"]
    command = [*inside, *ranked, *map(str, arguments)]
    with session() as own, tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            env=environment(own.variables | (extra_environment or {})),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield process, output
        finally:
            own.note_shared_memory()
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a launcher and its ranks: first so that it can clean up, then for sure."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                process.wait(5)


def printed(output: IO[bytes]) -> str:
    """All that was printed so far."""
    output.seek(0)
    return output.read().decode(errors="replace")


def run_ranks(
    ranks: int,
    program: str,
    *arguments: object,
    timeout: float = TIMEOUT_SECONDS,
    extra_environment: dict[str, str] | None = None,
    inside: Sequence[str] = (),
    through: Sequence[str] = (),
) -> str:
    """Run a program to its good end and return what it printed; otherwise the test fails and shows that."""
    how: dict[str, Any] = {"extra_environment": extra_environment, "inside": inside, "through": through}
    with running(ranks, program, *arguments, **how) as (process, output):
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            pytest.fail(
                f"{program} on {ranks} ranks did not end within {timeout:.0f} s; it printed:\n{printed(output)}"
            )
        if status != 0:
            pytest.fail(f"{program} on {ranks} ranks ended with status {status}:\n{printed(output)}")
        return printed(output)


def launched(
    ranks: int, *command: object, extra_environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command on ranks, whatever it ends with; all that it prints is kept."""
    with session() as own:
        return subprocess.run(
            [mpiexec(), "-n", str(ranks), *map(str, command)],
            env=environment(own.variables | (extra_environment or {})),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
