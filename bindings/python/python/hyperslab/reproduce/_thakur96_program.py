"""The program of Thakur et al. 1996 as stages of a rehearsal: a restart, then dumps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hyperslab.simulation import Simulated, Stage

MB = 2.0**20
HEADER_BYTES = 24
SP, PARAGON = "anl-sp-piofs", "caltech-paragon-pfs-1995"
NAMES = {SP: "SP", PARAGON: "Paragon"}
OPERATIONS = ("open", "close", "read", "write", "seek")


@dataclass(frozen=True)
class Case:
    """One of the two sizes; shapes are in the order of C, z first, which in a file is what x first is in Fortran."""

    name: str
    shape: tuple[int, int, int]
    mesh: tuple[int, int, int]
    dumps: int

    @property
    def ranks(self) -> int:
        """Processors."""
        return self.mesh[0] * self.mesh[1] * self.mesh[2]

    @property
    def points(self) -> int:
        """Elements of one array."""
        return self.shape[0] * self.shape[1] * self.shape[2]

    @property
    def arrays(self) -> int:
        """Arrays that move in all: 6 of the restart, then 6, 6 and 4 a dump."""
        return 6 + 16 * self.dumps


SMALL = Case("small", (64, 128, 128), (2, 2, 2), 4)
LARGE = Case("large", (128, 256, 256), (4, 4, 4), 1)
CASES = (SMALL, LARGE)


def _move(case: Case, name: str, number: int, code: str, *, write: bool) -> list[Stage]:
    """One array: all seek to their slabs but rank 0, which is there at the first; later all to the end of the array."""
    element_bytes = 4 if code == "f4" else 1
    array = {
        "name": f"{name}{number}",
        "shape": case.shape,
        "mesh": case.mesh,
        "dims": ["block"] * 3,
        "dtype": code,
        "memory_dtype": "f8" if code == "f4" else code,
        "store": {"file": {"object": name, "offset": HEADER_BYTES + number * case.points * element_bytes}},
    }
    transfer = {
        "write": write,
        "arrays": [array],
        "strategy": "two-phase",
        "servers": list(range(case.ranks)),
        "slots": 1,
        "subchunk_bytes": case.points * element_bytes // case.ranks,
    }
    return [{"query": {}}, {"transfer": transfer}, *_seek_of_others(case)]


def _seek_of_others(case: Case) -> list[Stage]:
    return [{"query": {"who": rank}} for rank in range(1, case.ranks)]


def _file(case: Case, name: str, arrays: int, code: str, *, write: bool) -> list[Stage]:
    """One file, which all open and close together: a header by rank 0, then its arrays."""
    header: Stage = {"call": {"who": 0, "object": name, "bytes": HEADER_BYTES, "write": write}}
    stages: list[Stage] = [{"open": {}}, "agree", header, *_seek_of_others(case)]
    for number in range(arrays):
        stages += _move(case, name, number, code, write=write)
    return [*stages, "agree", {"close": {}}]


def program(case: Case) -> list[Stage]:
    """What the ranks live through."""
    stages = _file(case, "restart", 6, "f4", write=False)
    for dump in range(case.dumps):
        stages += _file(case, f"analysis{dump}", 6, "f4", write=True)
        stages += _file(case, "restart", 6, "f4", write=True)
        for picture in range(4):
            stages += _file(case, f"picture{dump}.{picture}", 1, "u1", write=True)
    return stages


@dataclass(frozen=True)
class Run:
    """What came out of one machine and case."""

    machine: str
    case: Case
    report: Simulated

    def calls(self, operation: str) -> Mapping[str, Any]:
        """Calls of a kind; seeks are questions to the file system."""
        calls: Mapping[str, Any] = self.report["calls"]["query" if operation == "seek" else operation]
        return calls

    def each(self, operation: str) -> float:
        """Seconds a processor, as the paper's averages."""
        if operation != "communication":
            return float(self.calls(operation)["seconds"]) / self.case.ranks
        # All that transfers and the waiting for each other took, less the calls inside.
        inside = ("agree", "read", "write", "call")
        whole = sum(stage["mean"] for stage in self.report["stages"] if stage["what"] in inside)
        return float(whole) - self.each("read") - self.each("write")

    def count(self, operation: str) -> int:
        """Calls; for communication the messages with data, and the rest of a fitted formula."""
        if operation != "communication":
            return int(self.calls(operation)["count"])
        ranks = self.case.ranks
        return int(self.report["messages"]) + self.case.arrays * ranks * (ranks - 1) + ranks

    def sizes(self, operation: str) -> tuple[int, int, int, int]:
        """Calls of 24 B, 128 KB and 512 KB, and MB in all without headers; no other size may be among them."""
        sizes = {int(size): int(count) for size, count in self.calls(operation)["sizes"].items()}
        known = tuple(sizes.pop(size, 0) for size in (HEADER_BYTES, 128 * 1024, 512 * 1024))
        if sizes:
            return (-1, -1, -1, -1)
        return (known[0], known[1], known[2], (known[1] + 4 * known[2]) // 8)

    def rate(self, operation: str) -> float:
        """MB/s: data over the average time of a processor."""
        return float(self.calls(operation)["bytes"]) / MB / self.each(operation)
