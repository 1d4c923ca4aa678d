"""Cases of Kotz 1997: access patterns, methods and sizes of the machine, and what each of them costs here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hyperslab.reproduce._study import Runner
from hyperslab.simulation import Machine, Simulated, simulate

MIB = 1 << 20
BLOCK = 8192
#: Records of a line of two-dimensional arrays, by their size [B] (table II).
LINE = {8: 1024, 8192: 32}
NAMES = {"spfs": "SPFS", "2pio": "2PIO", "ddio": "DDIO sort", "nosort": "DDIO no sort"}
#: Patterns with records of 8 B whose chunks are single records (section 6).
SMALL = ("rc", "rbc", "rcc", "wc", "wbc", "wcc")
#: All that the paper used: `ra` was only read, and those that equal others were left out (section 5).
PATTERNS = (
    *("ra", "rn", "rb", "rc", "rnb", "rbb", "rbc", "rcn", "rcb", "rcc"),
    *("wn", "wb", "wc", "wnb", "wbb", "wbc", "wcn", "wcb", "wcc"),
)


@dataclass(frozen=True)
class Case:
    """A transfer of the paper.

    Attributes
    ----------
    pattern : str
        ``r`` or ``w``, then the distribution of each dimension: ``a`` all, ``n`` none, ``b`` block, ``c`` cyclic.
    method : str
        ``spfs``, ``2pio``, ``ddio`` or ``nosort``.
    record : int
        Size of records [B].
    layout : str
        How the file lies on disks.
    cps, iops, disks : int
        Sizes of the machine; disks in all.
    mib : float
        Size of the file.
    scale : mapping
        Factors for numbers of the machine beside those.
    """

    pattern: str
    method: str
    record: int = 8192
    layout: str = "contiguous"
    cps: int = 16
    iops: int = 16
    disks: int = 16
    mib: float = 10
    scale: Mapping[str, float] = field(default_factory=dict, hash=False)

    @property
    def file_bytes(self) -> int:
        """Bytes of the file."""
        return int(self.mib * MIB)

    @property
    def is_small(self) -> bool:
        """Whether it moves single records of 8 B, which take long to simulate where each is a call of its own."""
        return self.record == 8 and self.pattern in SMALL and self.method == "spfs"


def shape_of(case: Case) -> tuple[list[int], list[str], list[int]]:
    """Shape in elements of 8 B, distribution, and mesh of the array of a case (table II)."""
    words = {"a": "*", "n": "*", "b": "block", "c": "cyclic"}
    kinds = case.pattern[1:]
    records = case.file_bytes // case.record
    if len(kinds) == 1:
        shape = [records]
    else:
        # Files larger than 10 MB have lines longer in proportion: those of 1000 MB ten times.
        longer = max(1, round((case.mib / 10) ** 0.5))
        shape = [records // (LINE[case.record] * longer), LINE[case.record] * longer]
    dims = [words[kind] for kind in kinds]
    spread = sum(kind in "bc" for kind in kinds)
    mesh = [case.cps] if kinds == "a" else [[1], [case.cps], [4, 4]][spread]
    if case.record > 8:
        shape, dims = [*shape, case.record // 8], [*dims, "*"]
    return shape, dims, mesh


def transfer_of(case: Case) -> tuple[dict[str, Any], dict[str, float]]:
    """The collective call of a case, and factors for numbers of the machine that belong to it."""
    shape, dims, mesh = shape_of(case)
    writes = case.pattern[0] == "w"
    array = {"shape": shape, "dims": dims, "mesh": mesh, "store": {"file": {"object": "f"}}}
    call: dict[str, Any] = {"write": writes, "sync": writes, "arrays": [array]}
    local_disks = case.disks / case.iops
    scale = {"storage.servers.disks": local_disks, **case.scale}
    if case.method == "spfs":
        # One call for each contiguous piece of the file, straight from or to the user's array.
        call |= {"strategy": "independent", "subchunk_bytes": case.file_bytes, "slots": 1, "direct_run_bytes": 0}
        call |= {"buffer_bytes": 2 * case.file_bytes}
    elif case.method == "2pio":
        call |= {"strategy": "two-phase", "servers": list(range(case.cps))}
        call |= {"subchunk_bytes": case.file_bytes // case.cps, "slots": 1}
        if len(case.pattern) == 3 and case.record == 8192:
            # 40 lines do not go evenly into 16 parts. Half lines do: five of them are a part, and four calls at once keep
            # as many requests under way as one call for the part would.
            call |= {"subchunk_bytes": shape[1] // 2 * case.record, "slots": 5}
            scale["storage.calls_at_once"] = 4
    else:
        # Two buffers for each local disk.
        slots = max(2, round(2 * local_disks))
        call |= {"strategy": "disk-directed", "subchunk_bytes": BLOCK, "slots": slots, "presort": case.method == "ddio"}
        scale["storage.calls_at_once"] = slots
    return call, scale


@dataclass
class Starfish:
    """The paper's machine, on which cases are run once for each trial."""

    runner: Runner

    def report(self, case: Case, seed: int = 1) -> Simulated:
        """What came out of one trial."""
        call, scale = transfer_of(case)
        scale = {**self.runner.scale.get("starfish", {}), **scale}
        stages = [{"transfer": call}]
        options: dict[str, Any] = {"clients": case.cps, "servers": case.iops, "seed": seed, "disk_layout": case.layout}
        if case.method in ("ddio", "nosort"):
            # The paper limits what waits in a processor's queue of messages (section 4.1): here nobody looks further ahead
            # than an IOP's buffers reach.
            options["period"] = {"look_ahead": call["slots"] * (case.cps + 1), "blocking_sends": case.pattern in SMALL and case.record == 8 and not call["write"]}
        key = json.dumps(["starfish", stages, options, scale], sort_keys=True)
        if key not in self.runner.known:
            self.runner.known[key] = simulate(machine_for(case.layout), stages, scale=scale, **options)
        return self.runner.known[key]

    def rate(self, case: Case) -> float:
        """Throughput [MB/s, of 2**20 B]: the mean of all trials, each until all that was begun is over (section 5)."""
        rates = [case.mib / self.report(case, seed)["settled_seconds"] for seed in self.seeds(case)]
        return sum(rates) / len(rates)

    def seeds(self, case: Case) -> range:
        """One seed for each trial."""
        return range(1, 1 + (1 if case.is_small and self.runner.quick else self.runner.trials))

    def rates(self, cases: Sequence[Case]) -> list[float]:
        """Throughput of several cases [MB/s]."""
        return [self.rate(case) for case in cases]


def machine_for(layout: str) -> Machine:
    """The machine with the queue of its disks that the paper's rates tell of.

    The paper's queue takes requests in the order of addresses, cyclically. On random layouts its rates are those of
    unsorted requests for any depth of the queue (4.4 and 5.0 MB/s; hp97560.md, section 5), on contiguous ones it sorts well:
    so the addresses must have been those in the file. Here queues know addresses on the disk only. Where both orders are
    one, the queue is cyclic; where the order of the file is no order on the disk, requests are taken as they come.
    """
    machine = Machine.load("starfish")
    if layout == "contiguous":
        return machine
    return Machine(machine.text.replace('queue = "cscan"', 'queue = "fcfs"'), machine.file)
