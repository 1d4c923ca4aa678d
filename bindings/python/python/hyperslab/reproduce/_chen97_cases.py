"""Cases of the study of Panda and Disk Resident Arrays: which I/O node gets which chunk, and the calls that follow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil, isqrt
from typing import Any

from hyperslab.reproduce._study import Runner
from hyperslab.simulation import Simulated, Stage

MB = 2.0**20
KIB, MIB = 1 << 10, 1 << 20
#: Sizes of square arrays of doubles: 200 and 800 MB.
SMALL, LARGE = 5000, 10000
#: Meshes of compute nodes.
MESHES = {16: (4, 4), 32: (4, 8), 64: (8, 8), 128: (8, 16)}

Range = tuple[int, int]
Section = tuple[Range, Range]


@dataclass(frozen=True)
class System:
    """A file system of the study.

    Attributes
    ----------
    machine : str
        The machine that has it.
    peak : mapping
        What the paper measured, by library [MB/s]; of one node for JFS.
    slots : int
        Buffers of an I/O node. JFS writes behind by itself; the others are called asynchronously, with how many buffers
        is not stated: one that is filled, one at the file system, one on its way.
    """

    machine: str
    peak: Mapping[str, float]
    slots: int

    @property
    def is_local(self) -> bool:
        """Whether each I/O node has its own disk."""
        return self.machine == "nas-sp2"


SYSTEMS = {
    "JFS": System("nas-sp2", {"panda": 2.756, "dra": 2.756}, 1),
    "PIOFS": System("anl-sp-piofs", {"panda": 33.7, "dra": 30.4}, 3),
    "PFS": System("caltech-paragon-pfs", {"panda": 84.0, "dra": 84.0}, 3),
}
#: Panda's subfiles lie on one of 8 servers each.
ONE_CELL = {"storage.servers.width": 1 / 8}


@dataclass(frozen=True)
class Case:
    """A write of an array, or of a section of it, by one of the libraries.

    Attributes
    ----------
    system, library : str
        The file system; ``panda`` or ``dra``.
    extent : int
        Rows and columns of the array.
    compute, nodes : int
        Compute nodes and I/O nodes. Panda's are dedicated, those of DRA are compute nodes, too.
    grid : tuple of int
        Chunks along both dimensions.
    buffer : int
        Bytes of a buffer.
    section : tuple, optional
        Low and high index per dimension; all of the array when absent.
    """

    system: str
    library: str
    extent: int
    compute: int
    nodes: int
    grid: tuple[int, int]
    buffer: int
    section: Section | None = None

    @property
    def bytes(self) -> int:
        """Bytes that are asked for."""
        rows, columns = self.section or ((0, self.extent), (0, self.extent))
        return (rows[1] - rows[0]) * (columns[1] - columns[0]) * 8


def blocks(extent: int, parts: int) -> list[Range]:
    """Blocks of ceil(extent / parts), without those that hold nothing."""
    size = -(-extent // parts)
    return [(low, min(low + size, extent)) for low in range(0, extent, size)]


def dra_grid(extent: int, buffer: int) -> tuple[int, int]:
    """DRA's chunks fit into a buffer: the fewest square ones that do, in round numbers where they come close."""
    parts = ceil(extent / isqrt(buffer // 8))
    return parts, parts


def half(extent: int) -> Section:
    """A section that overlaps with about half of the array and lies off all grids.

    8 x 6 of 10 x 10 chunks, all but a five hundredth of the array at each side. Which section the paper takes is not
    known; this one goes evenly into 2 to 16 I/O nodes.
    """
    off = extent // 500
    return (extent // 10 + off, 9 * extent // 10 - off), (extent // 5 + off, 4 * extent // 5 - off)


def middle(extent: int) -> Section:
    """Figure 7's section: the middle, less a little."""
    off = extent // 500
    inside = (extent // 4 + off, 3 * extent // 4 - off)
    return inside, inside


def chunks(extent: int, grid: tuple[int, int]) -> Iterator[tuple[int, Section]]:
    """Chunks of an array by number, rows first."""
    across = blocks(extent, grid[1])
    for r, rows in enumerate(blocks(extent, grid[0])):
        for c, columns in enumerate(across):
            yield r * len(across) + c, (rows, columns)


def common(a: Section, b: Section) -> Section | None:
    """What two sections share."""
    both = [(max(p, r), min(q, s)) for (p, q), (r, s) in zip(a, b, strict=True)]
    return None if any(low >= high for low, high in both) else (both[0], both[1])


def touched(extent: int, grid: tuple[int, int], nodes: int, section: Section) -> dict[int, int]:
    """By I/O node, how many chunks of its own a section overlaps with."""
    found: dict[int, int] = {}
    for number, chunk in chunks(extent, grid):
        if common(chunk, section):
            found[number % nodes] = found.get(number % nodes, 0) + 1
    return dict(sorted(found.items()))


@dataclass
class _Deal:
    """Chunks dealt to I/O nodes, each an array of its own to the simulator."""

    case: Case
    arrays: list[list[dict[str, Any]]] = field(default_factory=list)
    units: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    subchunk: int = 1

    def __post_init__(self) -> None:
        nodes = self.case.nodes
        self.arrays, self.units, self.ends = [[] for _ in range(nodes)], [0] * nodes, [0] * nodes
        for number, chunk in chunks(self.case.extent, self.case.grid):
            self._give(number, chunk)
        self._fill()

    @property
    def _by_chunk(self) -> bool:
        """Whether chunks are files of their own, so that those written in part are read and written whole."""
        return self.case.section is not None or SYSTEMS[self.case.system].is_local

    def _give(self, number: int, chunk: Section) -> None:
        case, node = self.case, number % self.case.nodes
        section = case.section or ((0, case.extent), (0, case.extent))
        both = common(chunk, section)
        if both is None:
            return
        height, width = (high - low for low, high in chunk)
        rows = _rows_at_once(height, width, case.buffer)
        self.subchunk = max(self.subchunk, rows * width * 8)
        array: dict[str, Any] = {"name": f"c{number}", "shape": [height, width], "mesh": MESHES[case.compute]}
        array["dims"] = [_held(both[d], section[d], MESHES[case.compute][d]) for d in (0, 1)]
        array["store"] = self._store(number, node, height * width * 8, [rows, width])
        if case.section:
            array["section"] = [[both[d][0] - chunk[d][0], 1, both[d][1] - both[d][0], 1] for d in (0, 1)]
        self.arrays[node].append(array)
        first, last = (both[0][0] - chunk[0][0]) // rows, (both[0][1] - chunk[0][0] - 1) // rows
        self.units[node] += last - first + 1

    def _store(self, number: int, node: int, size: int, subchunk: list[int]) -> dict[str, Any]:
        if self._by_chunk:
            return {"chunks": subchunk}
        if self.case.system == "PIOFS" and self.case.library == "panda":
            place = {"object": f"node{node}", "offset": self.ends[node]}
            self.ends[node] += size
            return {"file": place}
        widest = -(-self.case.extent // self.case.grid[0]) * -(-self.case.extent // self.case.grid[1]) * 8
        return {"file": {"object": "all", "offset": number * widest}}

    def _fill(self) -> None:
        """Gives nodes with fewer units some of one element: all nodes' parts are equally many units."""
        mesh = MESHES[self.case.compute]
        most = max(self.units)
        for node, units in enumerate(self.units):
            if units < most:
                alone = [[1] + [0] * (parts - 1) for parts in mesh]
                store: dict[str, Any] = {"chunks": [1, 1]} if self._by_chunk else {"file": {}}
                same = {"name": f"none{node}-", "count": most - units, "mesh": mesh}
                self.arrays[node].append({**same, "shape": [1, 1], "dims": alone, "store": store})

    def stage(self) -> Stage:
        """The collective call: each I/O node has a contiguous part of the units, which two-phase I/O carries out."""
        case = self.case
        call: dict[str, Any] = {
            "write": True,
            "alone": True,
            "sync": True,
            "fresh": case.section is None,
            "strategy": "two-phase",
            "slots": SYSTEMS[case.system].slots,
            "subchunk_bytes": 1 if self._by_chunk else self.subchunk,
            "buffer_bytes": 1 << 30,
            "arrays": [array for own in self.arrays for array in own],
        }
        if case.library == "dra":
            call["servers"] = [node * case.compute // case.nodes for node in range(case.nodes)]
        return {"transfer": call}


def _rows_at_once(height: int, width: int, buffer: int) -> int:
    """Rows of a subchunk: equal parts of a chunk that fit into the buffer."""
    parts = -(-height // max(1, min(height, buffer // (8 * width))))
    return -(-height // parts)


def traffic(case: Case) -> tuple[list[int], list[int]]:
    """By I/O node, bytes that are written, and bytes that are read back before: subchunks that a section cuts."""
    section = case.section or ((0, case.extent), (0, case.extent))
    written, read = [0] * case.nodes, [0] * case.nodes
    for number, (rows, columns) in chunks(case.extent, case.grid):
        width = columns[1] - columns[0]
        step = _rows_at_once(rows[1] - rows[0], width, case.buffer)
        for low in range(*rows, step):
            subchunk = ((low, min(low + step, rows[1])), columns)
            both = common(subchunk, section)
            size = (subchunk[0][1] - low) * width * 8 if both else 0
            written[number % case.nodes] += size
            read[number % case.nodes] += 0 if both == subchunk else size
    return written, read


def _held(inside: Range, section: Range, parts: int) -> list[int]:
    """How much each part of a section, which is spread in blocks, holds of a range."""
    size = -(-(section[1] - section[0]) // parts)
    starts = [section[0] + part * size for part in range(parts)]
    return [max(0, min(inside[1], low + size, section[1]) - max(inside[0], low)) for low in starts]


@dataclass
class Libraries:
    """Runs cases."""

    runner: Runner

    def run(self, case: Case, slots: int | None = None) -> Simulated:
        """What came out; with another number of buffers, if it is given."""
        stage = _Deal(case).stage()
        if slots is not None:
            stage = {"transfer": {**stage["transfer"], "slots": slots}} if isinstance(stage, Mapping) else stage
        options: dict[str, Any] = {"clients": case.compute}
        if case.library == "panda":
            options |= {"servers": case.nodes, "period": {"linear_start": True, "look_ahead": 64}}
            if case.system == "PIOFS":
                options["scale"] = ONE_CELL
        return self.runner.simulate(SYSTEMS[case.system].machine, [stage], **options)

    def rate(self, case: Case) -> float:
        """Throughput: what was asked for over the time it took [MB/s]."""
        return case.bytes / MB / float(self.run(case)["seconds"])

    def share(self, case: Case) -> float:
        """Throughput as a fraction of the measured peak."""
        system = SYSTEMS[case.system]
        return self.rate(case) / system.peak[case.library] / (case.nodes if system.is_local else 1)

    def overhead(self, case: Case) -> float:
        """The part of a request that is communication and computing: with one buffer, all but calls to files."""
        result = self.run(case, slots=1)
        return 1 - float(result["calls"]["write"]["seconds"]) / (case.nodes * float(result["seconds"]))
