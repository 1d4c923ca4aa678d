"""Starting the ranks that measure together: processes of MPI where there are any, else threads."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from hyperslab._calibrate_ranks import Phase, Series, command, measure_threads
from hyperslab.bench._launch import end, find_mpiexec, session
from hyperslab.errors import NotFoundError, PeerError

__all__ = ["Load", "available_bytes", "measure_ranks"]

#: What ranks may take beyond the time that they were given, after which they are taken for stuck [s].
PATIENCE = 90.0
#: Open MPI starts more ranks than there are cores, also as root, only when it is told so.
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}


def available_bytes() -> int:
    """Memory that this machine, or the container that this process is in, has to spare [B]; 0 if that is not known."""
    free, limit = 0, None
    with suppress(OSError):
        found = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
        free = int(found[1]) * 1024 if found else 0
    with suppress(OSError, ValueError):
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
    return free if limit is None else min(free, limit)


class Load:
    """What other programs take of the cores from now on."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._busy = self._busy_seconds()
        self._own = self._own_seconds()

    @staticmethod
    def _own_seconds() -> float:
        return sum(os.times()[:4])

    @staticmethod
    def _busy_seconds() -> float | None:
        """Seconds that all cores were busy, or taken away by the host of a virtual machine."""
        with suppress(OSError, ValueError):
            first = Path("/proc/stat").read_text().split("\n", 1)[0].split()
            user, nice, system, _idle, _waiting, irq, softirq, steal = (int(ticks) for ticks in first[1:9])
            return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
        return None

    def others(self, cores: int) -> float | None:
        """Which part of the cores others took; only of children that have ended is it known what they took."""
        busy = self._busy_seconds()
        if busy is None or self._busy is None:
            return None
        gone = max(time.monotonic() - self._begun, 1e-3)
        return max(busy - self._busy - (self._own_seconds() - self._own), 0.0) / gone / cores


def _has_mpi() -> bool:
    if importlib.util.find_spec("mpi4py") is None:
        return False
    try:
        find_mpiexec()
    except NotFoundError:
        return False
    return True


@contextmanager
def _running(launch: Sequence[str], errors: Path, limit: float) -> Iterator[subprocess.Popen[str]]:
    """A launch, which is ended after this time or at the end of the context."""
    with (
        session() as environment,
        errors.open("w") as stderr,
        subprocess.Popen(
            launch,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env=environment | ENVIRONMENT,
            start_new_session=True,
        ) as process,
    ):
        watch = threading.Timer(limit, end, [process])
        watch.daemon = True
        watch.start()
        try:
            yield process
        finally:
            watch.cancel()
            end(process)


def _launched(
    ranks: int, phases: Sequence[Phase], directory: Path, tell: Callable[[Phase], None]
) -> tuple[str, list[Series]]:
    """Measure with processes; gives also what joins them.

    Raises
    ------
    PeerError
        When they fail.
    """
    answer, errors = directory / f"times-{ranks}.json", directory / f"errors-{ranks}"
    launch = [str(find_mpiexec()), "-n", str(ranks), *command(phases, str(directory), answer)]
    limit = 2 * sum(phase.seconds for phase in phases) + PATIENCE
    with _running(launch, errors, limit) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                tell(Phase(**json.loads(line)))
        status = process.wait()
    if status != 0 or not answer.exists():
        said = errors.read_text(errors="replace").strip().splitlines()[-1:] or ["nothing"]
        message = f"{ranks} ranks ended with status {status}; the last that they said: {said[0]}"
        raise PeerError(message)
    told = json.loads(answer.read_text())
    return told["library"], told["series"]


def measure_ranks(
    phases: Mapping[int, Sequence[Phase]], directory: Path, tell: Callable[[int, Phase], None], *, mpi: bool
) -> tuple[str, list[Series], str | None]:
    """Measure with each number of ranks.

    Returns
    -------
    tuple
        What joins the ranks; all times; and why threads took the place of processes that were wanted, if they did.
    """
    why = None if mpi and _has_mpi() else "there is no mpiexec with mpi4py"
    wire, found = "threads", []
    for ranks, those in phases.items():

        def told(phase: Phase, ranks: int = ranks) -> None:
            tell(ranks, phase)

        if mpi and why is None:
            try:
                wire, series = _launched(ranks, those, directory, told)
            except PeerError as error:
                why = str(error)
                # Processes and threads must not meet in one profile.
                return (*measure_ranks(phases, directory, tell, mpi=False)[:2], why)
        else:
            series = measure_threads(ranks, those, str(directory), told)
        found += series
    return wire, found, why if mpi else None
