"""Cases of Kotz 1997: access patterns, methods and sizes of the machine, and what each of them costs here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hyperslab.reproduce._study import Runner
from hyperslab.simulation import Machine, Simulated

MIB = 1 << 20
BLOCK = 8192
#: Methods, and what figures call them.
METHODS = {"spfs": "SPFS", "2pio": "2PIO", "nosort": "DDIO no sort", "ddio": "DDIO sort"}
#: Patterns whose chunks are single records: of 8 B, they are those that single records make slow (section 6).
CYCLIC = ("rc", "rbc", "rcc", "wc", "wbc", "wcc")
#: All that the paper used: `ra` was only read, and those that equal others were left out (section 5).
PATTERNS = (
    *("ra", "rn", "rb", "rc", "rnb", "rbb", "rbc", "rcn", "rcb", "rcc"),
    *("wn", "wb", "wc", "wnb", "wbb", "wbc", "wcn", "wcb", "wcc"),
)
#: Records of a line of two-dimensional arrays of 10 MB, by their size [B] (table II).
_LINE = {8: 1024, 8192: 32}
_WORDS = {"a": "*", "n": "*", "b": "block", "c": "cyclic"}
#: Of the small cases, what a quick run keeps: those that decide the items.
_KEPT = {("rbc", "contiguous"), ("rcc", "contiguous"), ("wbc", "contiguous"), ("wbc", "random-blocks")}


@dataclass(frozen=True)
class Case:
    """A transfer of the paper.

    Attributes
    ----------
    pattern : str
        ``r`` or ``w``, then the distribution of each dimension: ``a`` all, ``n`` none, ``b`` block, ``c`` cyclic.
    method : str
        One of :data:`METHODS`.
    record : int
        Size of records [B].
    layout : str
        How the file lies on disks.
    cps, iops, disks : int
        Compute processors, I/O processors, and disks in all.
    mib : int
        Size of the file.
    scale : mapping
        Factors for numbers of the machine besides.
    """

    pattern: str
    method: str
    record: int = BLOCK
    layout: str = "contiguous"
    cps: int = 16
    iops: int = 16
    disks: int = 16
    mib: int = 10
    scale: Mapping[str, float] = field(default_factory=dict, hash=False)

    @property
    def writes(self) -> bool:
        """Whether it writes."""
        return self.pattern[0] == "w"

    @property
    def single(self) -> bool:
        """Whether it moves single records of 8 B."""
        return self.record == 8 and self.pattern in CYCLIC

    def array(self) -> dict[str, Any]:
        """The array in elements of 8 B, how it is spread, and its file (table II)."""
        kinds, records = self.pattern[1:], self.mib * MIB // self.record
        shape = [records]
        if len(kinds) == 2:
            # A larger file is larger in both dimensions alike.
            line = _LINE[self.record] * round((self.mib / 10) ** 0.5)
            shape = [records // line, line]
        dims = [_WORDS[kind] for kind in kinds]
        spread = sum(kind in "bc" for kind in kinds)
        mesh = [self.cps] if kinds == "a" else [[1], [self.cps], [4, 4]][spread]
        if self.record > 8:
            shape, dims = [*shape, self.record // 8], [*dims, "*"]
        return {"shape": shape, "dims": dims, "mesh": mesh, "store": {"file": {"object": "file"}}}


@dataclass
class Starfish:
    """The paper's machine, on which each trial of a case is run once."""

    runner: Runner

    def rate(self, case: Case) -> float:
        """Throughput [MB/s of 2**20 B]: the mean of all trials (section 5), of which one is enough for large files."""
        rates = [case.mib / self.seconds(case, seed) for seed in range(self.runner.trials if case.mib == 10 else 1)]
        return sum(rates) / len(rates)

    def rates(self, cases: Iterable[Case]) -> list[float]:
        """Throughput of several cases [MB/s]."""
        return [self.rate(case) for case in cases]

    def keeps(self, case: Case) -> bool:
        """Whether this run has the case: SPFS needs a call for each single record, which takes long to simulate."""
        small = case.single and case.method == "spfs"
        return not (small and self.runner.quick) or (case.pattern, case.layout) in _KEPT

    def seconds(self, case: Case, seed: int = 0) -> float:
        """Time until all that was begun is over, also what is written behind and fetched ahead (section 5) [s]."""
        if case.method != "2pio":
            return float(self.report(case, seed)["settled_seconds"])
        # Barriers keep the phases of 2PIO apart (figure 2b), while our walker lets them overlap. So they are simulated
        # apart: the conforming transfer, and what is added by the permutation where disks take no time.
        conforming = replace(case, method="spfs", pattern=case.pattern[0] + "b")
        if case.pattern == conforming.pattern:
            return self.seconds(conforming, seed)
        both, alone = (self.report(part, 0, instant=True)["settled_seconds"] for part in (case, conforming))
        return self.seconds(conforming, seed) + float(both - alone)

    def iops_at_work(self, case: Case) -> float:
        """How many IOPs are at work on average."""
        report = self.report(case)
        return float(sum(report["processors"][case.cps :]) / report["settled_seconds"])

    def without_batches(self) -> dict[str, float]:
        """Factors for Memputs and Memgets that are not batched.

        Each record costs its IOP what sending it alone does, and its CP the start-up of receiving it.
        """
        value = {
            constant.key: float(constant.value.split()[0])
            for constant in Machine.load("starfish").constants()
            if constant.key.startswith("messages.")
        }
        alone = value["messages.send"] + 8 * value["messages.send_per_byte"] / 1000
        return {
            "messages.slot_per_run": alone / value["messages.slot_per_run"],
            "messages.array_per_run": value["messages.receive"] / value["messages.array_per_run"],
        }

    def report(self, case: Case, seed: int = 0, *, instant: bool = False) -> Simulated:
        """What came out of one simulation."""
        if case.pattern[1:] in ("a", "n", "b"):
            # Each processor moves one piece, whatever the size of records (table II).
            case = replace(case, record=BLOCK)
        call, scale, period = _asked(case)
        options: dict[str, Any] = {"clients": case.cps, "servers": case.iops, "seed": seed, "disk_layout": case.layout}
        options |= {"period": period, "what_if": {"instant_disk": instant}}
        return self.runner.simulate("starfish", [{"transfer": call}], scale=scale, **options)


def _asked(case: Case) -> tuple[dict[str, Any], dict[str, float], dict[str, Any]]:
    """The collective call of a case, factors for numbers of the machine, and how systems behave."""
    array, file_bytes = case.array(), case.mib * MIB
    local_disks = case.disks / case.iops
    scale = {"storage.servers.disks": local_disks, **case.scale}
    call: dict[str, Any] = {"write": case.writes, "sync": case.writes, "alone": True, "arrays": [array]}
    if case.method == "spfs":
        # One call for each contiguous piece of the file, straight from or to the user's array.
        # The paper's single CP also calls for one record at a time.
        most = case.record if case.pattern == "rc" and case.cps == 1 else file_bytes
        call |= {"strategy": "independent", "subchunk_bytes": most, "buffer_bytes": 2 * file_bytes}
        return call | {"slots": 1, "direct_run_bytes": 0}, scale, {}
    if case.method == "2pio":
        call |= {"strategy": "two-phase", "servers": list(range(case.cps))}
        if len(array["shape"]) == 3:
            # 40 lines do not go evenly into 16 parts, but half lines do: five of them are a part.
            half = array["shape"][1] // 2 * case.record
            return call | {"subchunk_bytes": half, "slots": 5}, scale | {"storage.calls_at_once": 4}, {}
        return call | {"subchunk_bytes": file_bytes // case.cps, "slots": 1}, scale, {}
    # Two buffers for each local disk, and all of them may be at the disks.
    slots = max(2, round(2 * local_disks))
    call |= {"strategy": "disk-directed", "subchunk_bytes": BLOCK, "slots": slots, "presort": case.method == "ddio"}
    # The paper limits what waits in a processor's queue of messages (section 4.1): here nobody looks further ahead
    # than an IOP's buffers reach. An IOP sends one Memput after another, so that what it reads next need not wait
    # behind all Memputs of two blocks.
    period: dict[str, Any] = {"look_ahead": slots * (case.cps + 1), "blocking_sends": True}
    return call, scale | {"storage.calls_at_once": slots}, period
