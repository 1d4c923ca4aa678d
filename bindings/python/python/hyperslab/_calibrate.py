"""``hyperslab calibrate``: measures this machine and writes its profile."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import tomllib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hyperslab import _core
from hyperslab._calibrate_launch import Load, available_bytes, measure_ranks
from hyperslab._calibrate_profile import BUSY, RATES, TIMES, profile
from hyperslab._calibrate_ranks import FAR, NEAR, WIRE, Phase, Series, library, measure_mpi
from hyperslab._printing import say, say_json
from hyperslab._progress import tell
from hyperslab._quantities import number, rates, said_bytes, times
from hyperslab._scratch import scratch
from hyperslab.comm import connect
from hyperslab.errors import Error, InvalidError, NotFoundError, StorageError

__all__ = ["add_verb"]

DESCRIPTION = """\
Measures this machine, in under two minutes, and writes a machine profile: what copies, messages, agreements and files
cost here, how far they spread, and where each number comes from. The library chooses by it how transfers are done, and
'hyperslab simulate --machine FILE' runs on it. Without one, a built-in profile holds.

The profile lies where HYPERSLAB_PROFILE says, or else at hyperslab/machine.toml in $XDG_CONFIG_HOME or ~/.config.
On a cluster, 'mpiexec -n 64 python -m mpi4py -m hyperslab calibrate --here' measures with the ranks of that launch.
"""

#: Largest buffer or file of one rank [B], and smallest, when there is little time.
BYTES_MAX, BYTES_MIN = 64 << 20, 4 << 20
#: Below this many seconds, buffers are smaller.
SECONDS_FULL = 40.0
#: Shares of the time: by one process, and by all ranks that have a core each.
ALONE = {"copies": 0.03, "coding": 0.03, "planning": 0.02, "files": 0.3}
TOGETHER = (("messages", NEAR, 0.14), ("messages", WIRE, 0.14), ("writers", NEAR, 0.14), ("copies", NEAR, 0.03))
#: Of agreements of all numbers of ranks.
AGREEMENTS = 0.08
#: Room that files need [B]. Files of all ranks together have a quarter of it.
ROOM_BYTES = 16 * BYTES_MAX
#: Buffers of all ranks of a node together have this part of the memory, or so: an array is four buffers long.
MEMORY_SHARE = 1 / 32


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
    verb.add_argument(
        "--ranks",
        type=_counts,
        help="numbers of ranks; by default 1, 2, the cores and more",
    )
    verb.add_argument("--seconds", type=_seconds, default=80.0, help="about how long it may last; 80 by default")
    verb.add_argument("--threads", action="store_true", help="let threads be the ranks, also where there is MPI")
    verb.add_argument("--here", action="store_true", help="measure with the ranks of this launch of mpiexec")
    verb.add_argument("--json", action="store_true", help="print all times as JSON, too")
    verb.set_defaults(run=run)


def _counts(text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.isdigit() and int(part) > 0 for part in parts):
        message = f"{text!r} is not a list of numbers of ranks such as 1,2,4"
        raise argparse.ArgumentTypeError(message)
    return sorted({int(part) for part in parts})


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= 3600:
        message = f"{text!r} is not a number of seconds, above 0 and at most 3600"
        raise argparse.ArgumentTypeError(message)
    return seconds


def default_ranks(cores: int) -> list[int]:
    """One, two, as many as there are cores, and some more.

    >>> default_ranks(2)
    [1, 2, 4, 8]
    >>> default_ranks(64)
    [1, 2, 64, 128]
    """
    more = {2 * cores, 4 * cores} if cores <= 8 else {2 * cores}
    return sorted({1, 2, cores} | more)


def full_of(ranks: Sequence[int], cores: int) -> int:
    """The number of ranks that measures everything: the most that have a core each, but two at least.

    >>> full_of([1, 2, 4, 8], 4), full_of([1, 8], 2), full_of([1], 2)
    (4, 8, 1)
    """
    fit = [count for count in ranks if 1 < count <= cores]
    return max(fit) if fit else min((count for count in ranks if count > 1), default=1)


@dataclass(frozen=True)
class _Plan:
    """Numbers of ranks, that which measures everything, seconds in all, and bytes of a rank's file at most."""

    counts: Sequence[int]
    full: int
    seconds: float
    file_bytes: int


class Progress:
    """Tells on stderr what is being measured, if that is a terminal; what is wrong is told in any case."""

    def __init__(self, seconds: float) -> None:
        self._begun = time.monotonic()
        self._seconds = seconds

    def __call__(self, what: str) -> None:
        """Tell one line."""
        gone = time.monotonic() - self._begun
        tell(f"[{gone:5.1f} of about {self._seconds:.0f} s] {what}")

    @staticmethod
    def warn(what: str) -> None:
        """Tell what makes the numbers worse."""
        say(f"warning: {what}", error=True)

    def ranks(self, count: int, phase: Phase) -> None:
        """Tell of a phase of several ranks."""
        way = {WIRE: ", packed", FAR: ", between nodes"}.get(phase.way, "")
        self(f"{count} rank{'s' if count > 1 else ''}: {phase.what}{way}")


def _writable(directory: Path) -> Path:
    """The directory, if files can be made in it."""
    hint = "\n  hint: --directory names a directory on the file system that is to be measured"
    if not directory.is_dir():
        found = "is not a directory" if directory.exists() else "does not exist"
        message = f"calibrate: '{directory}' {found}{hint}"
        raise NotFoundError(message)
    try:
        with tempfile.NamedTemporaryFile(prefix=".hyperslab-calibrate-", dir=directory):
            free = os.statvfs(directory)
    except OSError as error:
        message = f"calibrate: no file can be made in '{directory}': {error.strerror}{hint}"
        raise StorageError(message) from error
    room = free.f_bavail * free.f_frsize
    if room < ROOM_BYTES:
        message = f"calibrate: '{directory}' has room for {said_bytes(room)}, expected {said_bytes(ROOM_BYTES)}{hint}"
        raise StorageError(message)
    return directory.resolve()


def _output(asked: Path | None) -> Path:
    """Where the profile goes; what is wrong with that is found out before any time is spent on it."""
    path = asked or _core.profile_path()
    hint = "\n  hint: name a file with --output"
    if path is None:
        message = f"calibrate: HYPERSLAB_PROFILE or the lack of a home directory leaves no place for a profile{hint}"
        raise InvalidError(message)
    if str(path) == "-":
        return path
    if path.is_dir():
        message = f"calibrate: '{path}' is a directory{hint}"
        raise InvalidError(message)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(prefix=f".{path.name}-", dir=path.parent):
            pass
    except OSError as error:
        message = f"calibrate: no profile can be written to '{path}': {error.strerror}{hint}"
        raise StorageError(message) from error
    return path


def _buffer_bytes(seconds: float, ranks: int) -> int:
    """How long a buffer may be, of so many ranks of a node [B]."""
    share = min(1.0, seconds / SECONDS_FULL)
    most = min(share * BYTES_MAX, available_bytes() * MEMORY_SHARE / ranks)
    nbytes = BYTES_MIN
    while 2 * nbytes <= most:
        nbytes *= 2
    return nbytes


def _alone(directory: Path, seconds: float, progress: Progress) -> list[Series]:
    found = []
    for what, share in ALONE.items():
        progress(f"one process: {what}")
        told = json.loads(_core.measure_alone(what, directory, share * seconds, _buffer_bytes(seconds, 1)))
        found += [series | {"way": "alone"} for series in told]
    return found


def _file_bytes(series: Sequence[Series]) -> int:
    """How large files may be here: as large as one process made them, who found out how fast they are."""
    return max(int(one["at"]["bytes"]) for one in series if one["kernel"] == "sync")


def _phases(ranks: int, plan: _Plan, *, nodes: int = 1) -> list[Phase]:
    """What so many ranks measure; those of `plan.full` measure everything."""
    nbytes = _buffer_bytes(plan.seconds, -(-ranks // nodes))
    phases = [Phase("agreements", AGREEMENTS / len(plan.counts) * plan.seconds, nbytes)]
    if ranks == plan.full > 1:
        for what, way, share in TOGETHER:
            file_bytes = min(plan.file_bytes, max(1 << 20, ROOM_BYTES // 4 // ranks))
            phases.append(Phase(what, share * plan.seconds, file_bytes if what == "writers" else nbytes, way))
        if nodes > 1:
            phases.append(Phase("messages", TOGETHER[0][2] * plan.seconds, nbytes, FAR))
    return phases


def run(args: argparse.Namespace) -> int:
    """Measure, and write the profile."""
    try:
        return _here(args) if args.here else _launching(args)
    except KeyboardInterrupt:
        say("hyperslab: calibrate: interrupted by the user; no profile was written", error=True)
        return 130


def _launching(args: argparse.Namespace) -> int:
    """Measure with this process, and with ranks that it starts."""
    output, directory = _output(args.output), _writable(args.directory)
    cores = _core.identity(directory)[3]
    counts = args.ranks or default_ranks(cores)
    full = full_of(counts, cores)
    progress, load = Progress(args.seconds), Load()
    with scratch(".hyperslab-calibrate-", directory) as place:
        series = _alone(place, args.seconds, progress)
        plan = _Plan(counts, full, args.seconds, _file_bytes(series))
        phases = {count: _phases(count, plan) for count in counts}
        wire, more, why = measure_ranks(phases, place, progress.ranks, mpi=not args.threads)
    if why is not None:
        progress.warn(f"threads were measured in the place of processes: {why}")
    others = load.others(cores)
    if others is not None and others > BUSY:
        progress.warn(f"other programs used {100 * others:.0f} % of the cores meanwhile: times may be too long")
    launched: dict[str, Any] = {"cores": cores, "nodes": 1, "ranks_per_node": max(*counts, cores)}
    launched |= {"together": full, "wire": wire, "others": others}
    _write(args, output, directory, series + more, launched)
    progress(f"done: {output}")
    return 0


def _here(args: argparse.Namespace) -> int:
    """Measure with the ranks of this launch; all call it."""
    try:
        from mpi4py import MPI
    except ImportError as error:
        message = f"the ranks of this launch are not known: {error}\n  hint: pip install mpi4py, or leave out --here"
        raise InvalidError(message) from None
    with ExitStack() as made:
        return _of_launch(args, MPI.COMM_WORLD, made)


def _of_launch(args: argparse.Namespace, comm: Any, made: ExitStack) -> int:
    """Measure with the ranks of a communicator; scratch files of rank 0 are `made`."""
    output, directory, where, failure = Path("-"), args.directory, None, None
    if comm.rank == 0:
        try:
            output, directory = _output(args.output), _writable(args.directory)
            where = str(made.enter_context(scratch(".hyperslab-calibrate-", directory)))
        except Error as error:
            failure = error
    where = comm.bcast(where)
    if where is None:
        if failure is not None:
            raise failure
        return 2
    progress = Progress(args.seconds)
    hosts = comm.allgather(_core.identity(where)[0])
    # Launchers bind ranks to cores of their own; a node has those of all its ranks.
    bound = comm.allgather(os.sched_getaffinity(0))
    cores = len(set().union(*(own for own, host in zip(bound, hosts, strict=True) if host == hosts[0])))
    counts = sorted({count for count in (args.ranks or [1, 2, comm.size]) if count < comm.size} | {comm.size})
    series = _alone(Path(where), args.seconds, progress) if comm.rank == 0 else []
    # Who waits in MPI takes a core for it; who waits in this library sleeps.
    member = connect(comm)
    member.compare("waiting for one process", [])
    file_bytes = comm.bcast(_file_bytes(series) if comm.rank == 0 else None)
    plan = _Plan(counts, comm.size, args.seconds, file_bytes)
    for count in counts:
        phases = comm.bcast(_phases(count, plan, nodes=len(set(hosts))))
        part = comm.Split(int(comm.rank < count), comm.rank)
        if comm.rank < count:
            series += measure_mpi(part, phases, where, partial(progress.ranks, count))
        member.compare("waiting for fewer ranks", [])
        part.Free()
    if comm.rank == 0:
        made.close()
        most = max(hosts.count(host) for host in set(hosts))
        launched: dict[str, Any] = {"cores": cores, "nodes": len(set(hosts)), "ranks_per_node": most}
        launched |= {"together": comm.size, "wire": library(), "others": None}
        _write(args, output, directory, series, launched)
        progress(f"done: {output}")
    return 0


def _write(
    args: argparse.Namespace, output: Path, directory: Path, series: list[Series], launched: dict[str, Any]
) -> None:
    text = profile(series, directory, launched)
    # What is written can be read, or it is not written.
    _core.profile_constants(str(output), text)
    if str(output) != "-":
        beside = output.with_name(f".{output.name}.{os.getpid()}")
        beside.write_text(text, encoding="utf-8")
        beside.replace(output)
    if args.json:
        told = {"profile": text, "output": str(output), "launched": launched, "series": series}
        say_json(told | {"summary": dict(summary(text))})
    elif str(output) == "-":
        say(text, end="")
    else:
        for what, value in summary(text):
            say(f"{what:<36} {value:>12}")


#: Units of a profile, and what one of each is.
SECONDS, BYTES_PER_SECOND = dict(TIMES), dict(RATES)

#: What people want to know of a machine first, and where a profile has it.
_SUMMARY = (
    ("copies of a rank, all at work", "processor.copy_rate"),
    ("messages: start of one", "messages.send"),
    ("a neighbour's memory", "measured.neighbours.rate"),
    ("an agreement, for each rank", "measured.agreements.rank"),
    ("writing to a file, to the cache", "measured.files.write_rate"),
    ("writing to a file, direct", "measured.files.direct_write_rate"),
    ("reading a file, from the cache", "measured.files.read_rate"),
    ("reading a file, direct", "measured.files.direct_read_rate"),
    ("making a file durable", "measured.files.sync"),
    ("ranks that write one file at a time", "measured.files.writers"),
)


def summary(profile: str) -> list[tuple[str, str]]:
    """What a profile says of the machine first of all, for people: all times in one unit, and all rates."""
    found = _first_of_all(profile)
    spans = iter(times([value * SECONDS[unit] for _, value, unit in found if unit in SECONDS]))
    speeds = iter(rates([value * BYTES_PER_SECOND[unit] for _, value, unit in found if unit in BYTES_PER_SECOND]))
    return [
        (what, next(spans) if unit in SECONDS else next(speeds) if unit in BYTES_PER_SECOND else number(value))
        for what, value, unit in found
    ]


def _first_of_all(profile: str) -> list[tuple[str, float, str]]:
    """Numbers of a profile, with what they are and their units."""
    told = tomllib.loads(profile)
    found = []
    for what, key in _SUMMARY:
        value: Any = told
        for part in key.split("."):
            value = value.get(part, {}) if isinstance(value, dict) else {}
        value = value.get("is") if isinstance(value, dict) else value
        if value is not None:
            digits, _, unit = str(value).partition(" ")
            found.append((what, float(digits), unit))
    return found
