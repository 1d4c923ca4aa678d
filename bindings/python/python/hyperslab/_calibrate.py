"""``hyperslab calibrate``: measures the machine at hand and writes a profile of it."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hyperslab import _core
from hyperslab._bench_entire import find_mpiexec
from hyperslab._calibrate_profile import profile
from hyperslab._calibrate_ranks import FAR, NEAR, WIRE, Phase, Series, command, measure_mpi, measure_threads
from hyperslab.errors import Error, InvalidError, NotFoundError, StorageError

__all__ = ["add_verb"]

DESCRIPTION = """\
Measures this machine, in under two minutes, and writes a machine profile: what copies, messages, agreements and files
cost here, how far they spread, and where each number comes from. The library chooses by it how transfers are done, and
'hyperslab simulate --machine FILE' runs on it. Without one, a built-in profile holds.

The profile lies where HYPERSLAB_PROFILE says, or else at hyperslab/machine.toml in $XDG_CONFIG_HOME or ~/.config.
On a cluster, 'mpiexec -n 64 python -m mpi4py -m hyperslab calibrate --here' measures with the ranks of that launch.
"""

#: Largest buffer or file of one rank [B]; less when there is little time.
BYTES_MAX = 64 << 20
BYTES_MIN = 4 << 20
#: Below this many seconds, buffers are smaller.
SECONDS_FULL = 40.0
#: Shares of the time: by one process, and by all ranks that have a core each.
ALONE = {"copies": 0.03, "coding": 0.03, "planning": 0.02, "files": 0.3}
TOGETHER = ((("messages", NEAR), 0.14), (("messages", WIRE), 0.14), (("writers", NEAR), 0.14), (("copies", NEAR), 0.03))
#: For agreements of each number of ranks, in all.
AGREEMENTS = 0.08
#: Ranks beyond the time they were given after which a launch is taken for stuck [s].
PATIENCE = 120.0


def add_verb(verbs: Any) -> None:
    """Add ``calibrate`` to the command line."""
    verb = verbs.add_parser(
        "calibrate",
        help="measure this machine and write a profile of it",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("--directory", type=Path, default=Path(), help="on the file system to measure; here by default")
    verb.add_argument("--output", type=Path, help="the profile; '-' prints it")
    verb.add_argument("--ranks", type=_counts, help="numbers of ranks; up to four times the cores by default")
    verb.add_argument("--seconds", type=float, default=80.0, help="about how long it may last; 80 by default")
    verb.add_argument("--threads", action="store_true", help="let threads be the ranks, also where there is MPI")
    verb.add_argument("--here", action="store_true", help="measure with the ranks of this launch of mpiexec")
    verb.add_argument("--json", action="store_true", help="print all times as JSON besides")
    verb.set_defaults(run=run)


def _counts(text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.isdigit() and int(part) > 0 for part in parts):
        message = f"{text!r} is not a list of numbers of ranks such as 1,2,4"
        raise argparse.ArgumentTypeError(message)
    return sorted({int(part) for part in parts})


def default_ranks(cores: int) -> list[int]:
    """One, two, as many as there are cores, and some more.

    >>> default_ranks(2)
    [1, 2, 4, 8]
    >>> default_ranks(64)
    [1, 2, 64, 128]
    """
    more = {2 * cores, 4 * cores} if cores <= 8 else {2 * cores}
    return sorted({1, 2, cores} | more)


class Progress:
    """Tells on stderr what is being measured."""

    def __init__(self, seconds: float) -> None:
        self._begun = time.monotonic()
        self._seconds = seconds

    def __call__(self, what: str) -> None:
        gone = time.monotonic() - self._begun
        print(f"[{gone:5.1f} of about {self._seconds:.0f} s] {what}", file=sys.stderr, flush=True)


def _writable(directory: Path) -> Path:
    """The directory, if files can be made in it."""
    if not directory.is_dir():
        found = "is not a directory" if directory.exists() else "does not exist"
        message = (
            f"calibrate: '{directory}' {found}\n"
            "  hint: --directory names a directory on the file system that is to be measured"
        )
        raise NotFoundError(message)
    try:
        with tempfile.NamedTemporaryFile(prefix=".hyperslab-calibrate-", dir=directory):
            pass
    except OSError as error:
        message = (
            f"calibrate: no file can be made in '{directory}': {error.strerror}\n"
            "  hint: --directory names a directory that you may write to"
        )
        raise StorageError(message) from error
    free = os.statvfs(directory)
    if free.f_bavail * free.f_frsize < 16 * BYTES_MAX:
        message = (
            f"calibrate: '{directory}' has {free.f_bavail * free.f_frsize >> 20} MiB free, {16 * BYTES_MAX >> 20} MiB are "
            "needed\n  hint: make room, or name another directory with --directory"
        )
        raise StorageError(message)
    return directory.resolve()


def _output(asked: Path | None) -> Path:
    """Where the profile goes, before any time is spent on it."""
    path = asked or _core.profile_path()
    if path is None:
        message = (
            "calibrate: there is no place for the profile: HYPERSLAB_PROFILE says that there shall be none, or there is no "
            "home directory\n  hint: name a file with --output"
        )
        raise InvalidError(message)
    if str(path) == "-":
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            message = f"calibrate: '{path}' is a directory\n  hint: name a file with --output"
            raise InvalidError(message)
        if not os.access(path.parent, os.W_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        message = (
            f"calibrate: no profile can be written to '{path}': {error.strerror}\n  hint: name a file with --output"
        )
        raise StorageError(message) from error
    return path


def _alone(directory: Path, seconds: float, nbytes: int, progress: Progress) -> list[Series]:
    found = []
    for what, share in ALONE.items():
        progress(f"one process: {what}")
        told = json.loads(_core.measure_alone(what, directory, share * seconds, nbytes))
        found += [series | {"way": "alone"} for series in told]
    return found


def _phases(ranks: int, full: int, counts: int, seconds: float, nbytes: int, *, far: bool) -> list[Phase]:
    """What so many ranks measure; `full` of them measure everything."""
    phases = [Phase("agreements", AGREEMENTS / counts * seconds, nbytes)]
    if ranks == full:
        phases += [Phase(what, share * seconds, nbytes, way) for (what, way), share in TOGETHER]
        if far:
            phases.append(Phase("messages", TOGETHER[0][1] * seconds, nbytes, FAR))
    return phases


def _launched(
    ranks: int, phases: Sequence[Phase], directory: Path, tell: Callable[[str], None]
) -> tuple[str, list[Series]]:
    """Measure with ranks of MPI; gives also what joins them."""
    with tempfile.TemporaryDirectory(prefix=".hyperslab-calibrate-", dir=directory) as scratch:
        answer = Path(scratch) / "times.json"
        launch = [str(find_mpiexec()), "-n", str(ranks), *command(phases, str(directory), answer)]
        environment = {
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
            "OMPI_MCA_rmaps_base_oversubscribe": "1",
        }
        errors = Path(scratch) / "errors"
        limit = time.monotonic() + sum(phase.seconds for phase in phases) * 3 + PATIENCE
        with errors.open("w") as stderr:
            process = subprocess.Popen(
                launch,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                env=os.environ | environment,
                start_new_session=True,
            )
            try:
                assert process.stdout is not None
                for line in process.stdout:
                    if line.startswith('"'):
                        tell(json.loads(line))
                process.wait(max(1.0, limit - time.monotonic()))
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGTERM)
                    process.wait()
        if process.returncode != 0 or not answer.exists():
            said = errors.read_text(errors="replace").strip().splitlines()[-1:] or ["nothing"]
            message = f"{ranks} ranks ended with status {process.returncode}; the last that they said: {said[0]}"
            raise Error(message)
        told = json.loads(answer.read_text())
        return told["library"].splitlines()[0].split(",")[0].strip(), told["series"]


def _has_mpi() -> bool:
    if importlib.util.find_spec("mpi4py") is None:
        return False
    try:
        find_mpiexec()
    except NotFoundError:
        return False
    return True


def _together(
    args: argparse.Namespace, directory: Path, ranks: Sequence[int], full: int, nbytes: int, progress: Progress
) -> tuple[str, list[Series]]:
    """Measure with each number of ranks, which are processes if there is MPI, or else threads."""
    wire, found = "threads", []
    mpi = not args.threads and _has_mpi()
    for count in ranks:
        phases = _phases(count, full, len(ranks), args.seconds, nbytes, far=False)

        def tell(what: str, count: int = count) -> None:
            progress(f"{count} rank{'s' if count > 1 else ''}: {what}")

        if mpi:
            try:
                wire, series = _launched(count, phases, directory, tell)
                found += series
                continue
            except Error as error:
                progress(f"MPI cannot be used, threads are measured instead: {error}")
                mpi, wire, found = False, "threads", []
        found += measure_threads(count, phases, str(directory), lambda phase: tell(phase.what))
    return wire, found


def run(args: argparse.Namespace) -> int:
    """Measure, and write the profile."""
    if args.here:
        return _here(args)
    output = _output(args.output)
    directory = _writable(args.directory)
    cores = _core.identity(directory)[3]
    ranks = args.ranks or default_ranks(cores)
    progress = Progress(args.seconds)
    nbytes = _buffer_bytes(args.seconds)
    full = full_of(ranks, cores)
    series = _alone(directory, args.seconds, nbytes, progress)
    wire, more = _together(args, directory, ranks, full, nbytes, progress)
    launched = {"ranks_per_node": max(max(ranks), cores), "together": full, "wire": wire}
    _write(args, output, directory, series + more, launched)
    progress(f"done: {output}")
    return 0


def full_of(ranks: Sequence[int], cores: int) -> int:
    """The number of ranks that measures everything: the most that have a core each, but two at least."""
    fit = [count for count in ranks if 1 < count <= cores]
    return max(fit) if fit else min((count for count in ranks if count > 1), default=1)


def _buffer_bytes(seconds: float) -> int:
    share = min(1.0, seconds / SECONDS_FULL)
    nbytes = BYTES_MIN
    while 2 * nbytes <= share * BYTES_MAX:
        nbytes *= 2
    return nbytes


def _write(
    args: argparse.Namespace, output: Path, directory: Path, series: list[Series], launched: dict[str, Any]
) -> None:
    text = profile(series, directory, launched)
    # What is written can be read, or it is not written.
    _core.profile_constants(str(output), text)
    if str(output) == "-":
        print(text, end="")
    else:
        beside = output.with_name(f".{output.name}.{os.getpid()}")
        beside.write_text(text)
        beside.replace(output)
    if args.json:
        print(json.dumps({"profile": str(output), "launched": launched, "series": series}))


def _here(args: argparse.Namespace) -> int:
    """Measure with the ranks of this launch; all call it."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    output, directory, failure = Path("-"), args.directory, None
    if comm.rank == 0:
        try:
            output, directory = _output(args.output), _writable(args.directory)
        except Error as error:
            failure = error
    failure, directory = comm.bcast((failure, directory))
    if failure is not None:
        if comm.rank == 0:
            raise failure
        return 1
    progress = Progress(args.seconds)
    nbytes = _buffer_bytes(args.seconds)
    identities = comm.allgather(_core.identity(directory))
    hosts = [identity[0] for identity in identities]
    ranks = sorted({count for count in (args.ranks or [1, 2, comm.size]) if count <= comm.size} | {comm.size})
    series = _alone(directory, args.seconds, nbytes, progress) if comm.rank == 0 else []
    for count in ranks:
        phases = _phases(count, comm.size, len(ranks), args.seconds, nbytes, far=len(set(hosts)) > 1)
        part = comm.Split(int(comm.rank < count), comm.rank)
        if comm.rank < count:
            series += measure_mpi(part, phases, str(directory), lambda p, n=count: progress(f"{n} ranks: {p.what}"))
        part.Free()
    if comm.rank == 0:
        most = max(hosts.count(host) for host in set(hosts))
        wire = MPI.Get_library_version().splitlines()[0].split(",")[0].strip()
        _write(args, output, directory, series, {"ranks_per_node": most, "together": comm.size, "wire": wire})
        progress(f"done: {output}")
    return 0
