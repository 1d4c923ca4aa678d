"""Starting programs of `mpi_programs` on several ranks, with a limit of time and nothing left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent
#: A launch that takes longer is taken for stuck [s].
TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True)
class Launched:
    """How a program on several ranks ended."""

    #: Exit status of the launcher.
    status: int
    #: Standard output and standard error of all ranks, as they came.
    output: str
    #: How long it took [s].
    seconds: float


def mpiexec() -> str:
    """Return the launcher of this Python's MPI; without any, the test is skipped."""
    sibling = Path(sys.executable).parent / "mpiexec"
    found = str(sibling) if sibling.exists() else shutil.which("mpiexec")
    if found is None:
        pytest.skip("no mpiexec beside python nor on the path")
    return found


def is_mpich() -> bool:
    """Whether the launcher is MPICH's, which can leave the other ranks alone when one dies."""
    asked = subprocess.run([mpiexec(), "--version"], capture_output=True, text=True, timeout=60, check=False)
    return "HYDRA" in asked.stdout


def environment(extra: dict[str, str] | None = None) -> dict[str, str]:
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
        | (extra or {})
    )


def launch(
    ranks: int,
    program: str,
    *arguments: object,
    timeout: float = TIMEOUT_SECONDS,
    launcher_options: Sequence[str] = (),
    extra_environment: dict[str, str] | None = None,
    abort_on_error: bool = True,
) -> Launched:
    """Run ``mpi_programs.<program>`` on `ranks` ranks to its end; after `timeout` seconds all of it is killed.

    With `abort_on_error` an exception on one rank ends all of them (``python -m mpi4py``).
    """
    command = [mpiexec(), *launcher_options, "-n", str(ranks), sys.executable]
    command += [*(["-m", "mpi4py"] if abort_on_error else []), "-m", f"mpi_programs.{program}", *map(str, arguments)]
    started = time.monotonic()
    running = subprocess.Popen(
        command,
        env=environment(extra_environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = running.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        output, _ = running.communicate()
        pytest.fail(f"{program} on {ranks} ranks did not end within {timeout:.0f} s; it printed:\n{output}")
    return Launched(running.returncode, output, time.monotonic() - started)


def run_ranks(
    ranks: int,
    program: str,
    *arguments: object,
    timeout: float = TIMEOUT_SECONDS,
    extra_environment: dict[str, str] | None = None,
) -> Launched:
    """As `launch`, but the program must end well; else the test fails and shows all that it printed."""
    launched = launch(ranks, program, *arguments, timeout=timeout, extra_environment=extra_environment)
    if launched.status != 0:
        pytest.fail(f"{program} on {ranks} ranks ended with status {launched.status}:\n{launched.output}")
    return launched
