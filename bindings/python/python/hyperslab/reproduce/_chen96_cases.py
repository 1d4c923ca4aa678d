"""Cases of the study of Panda's performance model: what they ask of the simulator and of the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from hyperslab.reproduce._panda_model import Box, Costs, Predicted, boxes, overlaps, predict
from hyperslab.reproduce._study import Runner
from hyperslab.simulation import Machine, Simulated, Stage

MACHINE = "nas-sp2"
MB = 2.0**20
#: Best throughput of the file system of one node (MS, 3.2.1) [MB/s].
PEAK = 2.756
ARRAYS, QUICK_ARRAYS = 2048, 320
SUBCHUNK = 1 << 20

#: Shapes are not in the paper. Arrays whose extents are powers of two need 64 along the first dimension for blocks of
#: ceil(64 / n) to overlap as its figure 5 and its text say: with 24 clients two of 4 and two of 8 servers meet 16 of
#: them, and none of 3 and of 6 does.
SMALL, LARGE = (64, 8, 16), (64, 16, 16)
#: 128 MB, as a cube.
BIG = (256, 256, 256)
#: Meshes of clients: of 24 and 32 those of figures 5 and 7; of 16 and 48 they are not known: 2 x 4 x k, as that of 32.
MESHES = {16: (2, 4, 2), 24: (3, 4, 2), 32: (2, 4, 4), 48: (2, 4, 6)}

#: Conditions of section 3: what takes no time.
CONDITIONS: dict[str, dict[str, bool]] = {
    "normal": {},
    "disk": {"instant_disk": True},
    "network": {"instant_disk": True, "instant_network": True},
}
#: Two rounds of 16 overlaps each.
PERIOD = {"blocking_sends": True, "linear_start": True, "look_ahead": 40}


@dataclass(frozen=True)
class Case:
    """A collective write by clients of one of the meshes. `count` is 1 in the baseline benchmark."""

    clients: int
    servers: tuple[int, int, int]
    shape: tuple[int, int, int]
    count: int = ARRAYS

    @property
    def mesh(self) -> tuple[int, int, int]:
        """The mesh of clients."""
        return MESHES[self.clients]

    @property
    def bytes(self) -> int:
        """Bytes of one array."""
        return prod(self.shape) * 8

    @property
    def text(self) -> str:
        """Its name in figures."""
        return f"{self.clients} clients, {prod(self.servers)} servers"

    def subchunks(self) -> list[list[Box]]:
        """By server, its subchunks of one array: chunks of the disk schema, cut along the first dimension."""
        chunks = boxes(self.shape, self.servers)
        return [[(part, *chunk[1:]) for part in _cut(chunk)] for chunk in chunks]

    def met(self) -> list[int]:
        """By server, how many clients its first subchunk overlaps with."""
        chunks = boxes(self.shape, self.mesh)
        return [len(overlaps(own[0], chunks)) for own in self.subchunks()]

    def stage(self, count: int) -> Stage:
        """The collective call.

        Small arrays are stored by chunk, and each chunk makes a round of its own, since Panda 2.0.5 does not batch. The
        large one is one file, of which each server has a contiguous part: that is (BLOCK,*,*) on n x 1 x 1, which
        two-phase I/O with dedicated aggregators and one buffer carries out just as Panda does.
        """
        array: dict[str, Any] = {"shape": self.shape, "mesh": self.mesh, "dims": ["block"] * 3, "count": count}
        call: dict[str, Any] = {"write": True, "slots": 1, "sync": True, "alone": True, "arrays": [array]}
        if self.count == 1:
            call |= {"strategy": "two-phase", "subchunk_bytes": SUBCHUNK}
        else:
            array["store"] = {"chunks": [-(-n // p) for n, p in zip(self.shape, self.servers, strict=True)]}
            call |= {"strategy": "server-directed", "subchunk_bytes": 1}
        return {"transfer": call}


def _cut(chunk: Box) -> Iterator[tuple[int, int]]:
    (low, high), rest = chunk[0], chunk[1:]
    planes = max(1, SUBCHUNK // (prod(b - a for a, b in rest) * 8))
    return ((at, min(at + planes, high)) for at in range(low, high, planes))


@dataclass
class Panda:
    """Runs cases, and asks the model about them."""

    runner: Runner

    @cached_property
    def costs(self) -> Costs:
        """Costs of the machine."""
        return Costs.of(Machine.load(MACHINE).constants(), self.runner.scale.get(MACHINE, {}))

    def count(self, case: Case) -> int:
        """How many arrays."""
        return min(case.count, QUICK_ARRAYS) if self.runner.quick else case.count

    def run(self, case: Case, condition: str = "normal") -> Simulated:
        """What the simulator says."""
        options: dict[str, Any] = {"clients": case.clients, "servers": prod(case.servers), "period": PERIOD}
        stages = [case.stage(self.count(case))]
        return self.runner.simulate(MACHINE, stages, what_if=CONDITIONS[condition], **options)

    def predict(self, case: Case, condition: str = "normal") -> Predicted:
        """What the model says."""
        costs = self.costs
        if condition != "normal":
            costs = costs.with_instant_disk()
        if condition == "network":
            costs = costs.with_instant_network()
        return predict(case.shape, case.mesh, case.subchunks(), self.count(case), costs)

    def seconds(self, case: Case, condition: str = "normal") -> float:
        """Response time [s]; of fewer arrays than there should be, in proportion."""
        return float(self.run(case, condition)["seconds"]) * case.count / self.count(case)

    def rate(self, case: Case, condition: str = "normal") -> float:
        """Throughput of each server [MB/s]."""
        result = self.run(case, condition)
        return float(result["transfers"][0]["bytes"] / result["seconds"] / MB / prod(case.servers))

    def server_seconds(self, case: Case) -> list[float]:
        """By server, how long its processor or its disk was at work, whichever was longer [s].

        Not until when: clients of this library send in the order of the sequence, so that no server gets far ahead of
        the slowest, while Panda's clients answer whoever asks.
        """
        result = self.run(case)
        many = prod(case.servers)
        pairs = zip(result["processors"][-many:], result["servers"][-many:], strict=True)
        return [max(busy, disk["busy"]) * case.count / self.count(case) for busy, disk in pairs]

    def gap(self, case: Case, condition: str = "normal") -> float:
        """The model's time over the simulator's, less 1."""
        return self.predict(case, condition).seconds / float(self.run(case, condition)["seconds"]) - 1


def row(clients: int, servers: int, shape: tuple[int, int, int], count: int = ARRAYS) -> Case:
    """A case of (BLOCK,*,*) on a mesh of n x 1 x 1."""
    return Case(clients, (servers, 1, 1), shape, count)


#: Figure 2: which cases it shows is not known but for 32 clients with 8 servers.
FIGURE_2 = tuple(row(c, s, SMALL) for c, s in ((16, 8), (24, 4), (24, 8), (32, 4), (32, 8), (48, 8)))
FIGURE_3 = tuple(row(c, s, BIG, 1) for c, s in ((16, 2), (16, 4), (16, 8), (32, 4), (32, 8), (48, 4), (48, 8)))
FIGURE_4_SMALL = {n: row(24, n, SMALL) for n in (3, 4, 6, 8)}
FIGURE_4_LARGE = {n: row(32, n, LARGE) for n in (4, 6, 8)}
#: Schemas and meshes of figure 7, from left to right; the last two are those of rows and columns.
SCHEMAS = {
    "(*,B,B) 1x2x4": (1, 2, 4),
    "(B,B,B) 2x2x2": (2, 2, 2),
    "(B,B,*) 2x4x1": (2, 4, 1),
    "(B,B,B) 2x1x4": (2, 1, 4),
    "(B,*,*) 8x1x1": (8, 1, 1),
    "(*,*,B) 1x1x8": (1, 1, 8),
}
ALIGNED = tuple(SCHEMAS)[:4]
ROWS, COLUMNS = tuple(SCHEMAS)[4:]


def figure_7(schema: str, shape: tuple[int, int, int]) -> Case:
    """A case of figure 7."""
    return Case(32, _three(SCHEMAS[schema]), shape)


def _three(mesh: Sequence[int]) -> tuple[int, int, int]:
    a, b, c = mesh
    return (a, b, c)


def straddlers(case: Case) -> list[int]:
    """Servers whose subchunks overlap with more clients than the others'."""
    met = case.met()
    return [server for server, count in enumerate(met) if count > min(met)]
