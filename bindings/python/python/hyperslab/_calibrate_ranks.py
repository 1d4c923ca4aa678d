"""What several ranks measure together; the program that ``hyperslab calibrate`` launches."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from hyperslab import _core
from hyperslab._printing import say_json
from hyperslab.comm import ThreadComm, connect, threads

__all__ = ["FAR", "NEAR", "WIRE", "Phase", "Series", "library", "measure", "measure_mpi", "measure_threads", "merged"]

#: ``kernel``, ``at`` (circumstances) and ``seconds`` of one operation in each round.
Series: TypeAlias = dict[str, Any]

#: Environment variable that keeps ranks out of each other's memory when it is 0.
DIRECT = "HYPERSLAB_DIRECT"
#: Ways of messages: out of each other's memory; as plain messages on one node; between nodes.
NEAR, WIRE, FAR = "near", "wire", "far"


@dataclass(frozen=True)
class Phase:
    """One kernel, measured for some seconds with buffers of some bytes; messages go one of three ways."""

    what: str
    seconds: float
    nbytes: int
    way: str = NEAR


def partners(hosts: Sequence[str], *, far: bool) -> list[int | None]:
    """With whom each rank exchanges messages: a rank of the same host, or of another.

    >>> partners(["a", "a", "a", "b"], far=False)
    [1, 0, None, None]
    >>> partners(["a", "a", "a", "b"], far=True)
    [3, None, None, 0]
    """
    of: defaultdict[str, list[int]] = defaultdict(list)
    for rank, host in enumerate(hosts):
        of[host].append(rank)
    pairs: list[tuple[int, int]] = []
    if far:
        nodes = list(of.values())
        for one, other in zip(nodes[::2], nodes[1::2], strict=False):
            pairs += zip(one, other, strict=False)
    else:
        for ranks in of.values():
            pairs += zip(ranks[::2], ranks[1::2], strict=False)
    found: list[int | None] = [None] * len(hosts)
    for first, second in pairs:
        found[first], found[second] = second, first
    return found


@contextmanager
def _packed(way: str) -> Iterator[None]:
    """Let messages be plain ones meanwhile."""
    before = os.environ.get(DIRECT)
    if way == WIRE:
        os.environ[DIRECT] = "0"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(DIRECT, None)
        else:
            os.environ[DIRECT] = before


def measure(
    member: _core.Comm,
    hosts: Sequence[str],
    phases: Sequence[Phase],
    directory: str,
    tell: Callable[[Phase], None],
) -> list[Series]:
    """Measure on one of several ranks, collectively; gives this rank's times, with the way of messages."""
    found: list[Series] = []
    for phase in phases:
        tell(phase)
        far = phase.way == FAR
        partner = partners(hosts, far=far)[member.rank] if phase.what == "messages" else None
        told = _core.measure_together(member, phase.what, directory, phase.seconds, phase.nbytes, partner)
        found += [series | {"way": phase.way} for series in json.loads(told)]
    return found


def merged(ranks: Sequence[Sequence[Series]]) -> list[Series]:
    """Times of all ranks as those of one: of each round, that of the slowest; of copies, all."""
    found: dict[str, list[Series]] = {}
    for series in (series for times in ranks for series in times):
        key = json.dumps([series["kernel"], series["at"], series["way"]], sort_keys=True)
        found.setdefault(key, []).append(series)
    whole = []
    for same in found.values():
        if same[0]["kernel"] in ("copy", "turn", "touch"):
            # Each rank copied for itself, so rounds of different ranks have nothing in common.
            seconds = [time for series in same for time in series["seconds"]]
        else:
            seconds = [max(times) for times in zip(*(series["seconds"] for series in same), strict=True)]
        whole.append({**same[0], "seconds": seconds})
    return whole


def measure_threads(size: int, phases: Sequence[Phase], directory: str, tell: Callable[[Phase], None]) -> list[Series]:
    """Measure with threads of this process as ranks."""
    found: list[Series] = []
    for phase in phases:
        tell(phase)

        def rank(comm: ThreadComm, phase: Phase = phase) -> list[Series]:
            return measure(connect(comm), ["here"] * size, [phase], directory, lambda _: None)

        # The environment belongs to all threads, so it is changed outside of them.
        with _packed(phase.way):
            found += merged(threads(size, rank))
    return found


def measure_mpi(comm: Any, phases: Sequence[Phase], directory: str, tell: Callable[[Phase], None]) -> list[Series]:
    """Measure with the ranks of a communicator of mpi4py; rank 0 gets the times of all, others nothing."""
    hosts = comm.allgather(_core.identity(directory)[0])
    member = connect(comm)
    found: list[Series] = []
    for phase in phases:
        with _packed(phase.way):
            found += measure(member, hosts, [phase], directory, tell if comm.rank == 0 else lambda _: None)
    gathered = comm.gather(found)
    return merged(gathered) if comm.rank == 0 else []


def library() -> str:
    """Name and version of the MPI that the process has loaded, such as ``MPICH 5.0.2``."""
    from mpi4py import MPI

    told = MPI.Get_library_version().splitlines()[0].split(",")[0]
    return re.sub(r"\s*[Vv]ersion:?\s*|\s+v(?=\d)", " ", told).strip()


def command(phases: Sequence[Phase], directory: str, answer: Path) -> list[str]:
    """The command of one rank that measures and, if it is the first, leaves the times of all in a file."""
    task = {"directory": directory, "answer": str(answer), "phases": [asdict(phase) for phase in phases]}
    return [sys.executable, "-m", "mpi4py", "-m", "hyperslab._calibrate_ranks", json.dumps(task)]


def main() -> None:
    """Measure on one rank of a launch."""
    from mpi4py import MPI

    task = json.loads(sys.argv[1])
    comm = MPI.COMM_WORLD
    phases = [Phase(**phase) for phase in task["phases"]]

    def tell(phase: Phase) -> None:
        say_json(asdict(phase), flush=True)

    found = measure_mpi(comm, phases, task["directory"], tell)
    if comm.rank == 0:
        Path(task["answer"]).write_text(json.dumps({"library": library(), "series": found}))


if __name__ == "__main__":
    main()
