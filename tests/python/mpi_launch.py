"""Starting programs of `mpi_programs` on several ranks, with a limit of time and nothing left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import pytest

HERE = Path(__file__).parent
#: A launch that takes longer is taken for stuck [s].
TIMEOUT_SECONDS = 120.0
#: In the place of a rank: outlives it, so that the launcher does not hear of its death and end the others.
OUTLIVE = ("sh", "-c", 'trap "" USR1; "$@"; sleep 60', "rank")


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
            "PYTHONPATH": str(HERE),
            "PYTHONFAULTHANDLER": "1",
        }
        | extra
    )


@contextmanager
def running(
    ranks: int,
    program: str,
    *arguments: object,
    extra_environment: dict[str, str] | None = None,
    deaths_are_hidden: bool = False,
    inside: Sequence[str] = (),
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """Run ``mpi_programs.<program>``; gives the launcher and the file of all that it and the ranks print.

    At the end of the context, what still runs is ended. An exception on one rank ends all (``python -m mpi4py``),
    unless deaths are hidden from the launcher. `inside` is a command that runs the launcher.
    """
    before = [*OUTLIVE, sys.executable] if deaths_are_hidden else [sys.executable, "-m", "mpi4py"]
    command = [*inside, mpiexec(), "-n", str(ranks), *before, "-m", f"mpi_programs.{program}", *map(str, arguments)]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            env=environment(extra_environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield process, output
        finally:
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
) -> str:
    """Run a program to its good end and return what it printed; otherwise the test fails and shows that."""
    with running(ranks, program, *arguments, extra_environment=extra_environment, inside=inside) as (process, output):
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            pytest.fail(
                f"{program} on {ranks} ranks did not end within {timeout:.0f} s; it printed:\n{printed(output)}"
            )
        if status != 0:
            pytest.fail(f"{program} on {ranks} ranks ended with status {status}:\n{printed(output)}")
        return printed(output)
