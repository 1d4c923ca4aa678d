"""Panda's performance model (Chen et al. 1996, section 2; formulas F1 to F14 of our note), as pure functions.

It knows nothing of the simulator: times follow from the numbers of a machine and from who overlaps whom. The paper's
formulas are lost; these are rebuilt from its text. All times are in seconds, sizes in bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from hyperslab.simulation import Constant

#: A box: low and high index per dimension.
Box = tuple[tuple[int, int], ...]

ELEMENT = 8
_TIMES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_SIZES = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
_UNITS = _TIMES | _SIZES


def quantity(text: str) -> float:
    """A number with its unit, in seconds, bytes, and quotients of them.

    >>> quantity("2 ms"), quantity("2 MiB/s"), quantity("0.25")
    (0.002, 2097152.0, 0.25)
    """
    value, _, unit = text.strip('"').partition(" ")
    if not unit:
        return float(value)
    above, _, below = unit.partition("/")
    return float(value) * _UNITS[above] / (_UNITS[below] if below else 1.0)


def each_byte(text: str) -> float:
    """What a byte costs, where it is written as a time for each byte or as the rate that it amounts to."""
    value = quantity(text)
    return value if text.strip('"').endswith("s/B") else 1.0 / value


@dataclass(frozen=True)
class Costs:
    """The model's parameters: those of a machine, and of Panda on it."""

    find: float
    bound: float
    start_send: float
    start_receive: float
    send_byte: float
    receive_byte: float
    place_run: float
    extract_run: float
    eager: float
    header: float
    wire: float
    wire_byte: float
    call: float
    buffer_byte: float
    limit: float
    disk_byte: float

    @classmethod
    def of(cls, constants: Sequence[Constant], factors: Mapping[str, float]) -> Costs:
        """The costs on a machine with these numbers, some of which are multiplied."""
        texts = {constant.key: constant.value for constant in constants}

        def value(key: str) -> float:
            return quantity(texts[key]) * factors.get(key, 1.0)

        def byte(key: str) -> float:
            return each_byte(texts[key]) * factors.get(key, 1.0)

        return cls(
            find=value("processor.step"),
            bound=value("processor.piece"),
            start_send=value("messages.send"),
            start_receive=value("messages.receive"),
            send_byte=byte("messages.send_per_byte"),
            receive_byte=byte("messages.receive_per_byte"),
            place_run=value("messages.slot_per_run"),
            extract_run=value("messages.array_per_run"),
            eager=value("messages.eager"),
            header=value("messages.header"),
            wire=value("network.latency"),
            wire_byte=1.0 / value("network.link_rate"),
            call=value("storage.call"),
            buffer_byte=byte("storage.call_per_byte") + 1.0 / value("storage.cache.copy_rate"),
            limit=value("storage.cache.limit"),
            disk_byte=1.0 / value("storage.disk.write_rate"),
        )

    def with_instant_disk(self) -> Costs:
        """The same with disks that take no time."""
        return replace(self, disk_byte=0.0)

    def with_instant_network(self) -> Costs:
        """The same with messages that take no time."""
        starts = {"start_send": 0.0, "start_receive": 0.0, "send_byte": 0.0, "receive_byte": 0.0}
        return replace(self, **starts, wire=0.0, wire_byte=0.0)

    def send(self, size: float) -> float:
        """F12: time inside the call that sends."""
        asked = self.start_send + self.start_receive if size > self.eager else 0.0
        return self.start_send + size * self.send_byte + asked

    def receive(self, size: float) -> float:
        """F12: time inside the call that receives."""
        asked = self.start_send + self.start_receive if size > self.eager else 0.0
        return self.start_receive + size * self.receive_byte + asked

    def net(self, size: float) -> float:
        """F0: time on the wire that no call covers."""
        return self.wire + (size + self.header) * self.wire_byte

    def small(self) -> float:
        """A message without data, from call to return."""
        return self.send(0) + self.net(0) + self.receive(0)


@dataclass(frozen=True)
class Overlap:
    """What a subchunk has in common with a client's chunk."""

    client: int
    size: int
    runs: int


@dataclass(frozen=True)
class Predicted:
    """What the model says: the whole, startup and intermediate phase by server, and what only assembling takes."""

    seconds: float
    servers: tuple[float, ...]
    assembling: tuple[float, ...]


def blocks(extent: int, parts: int) -> list[tuple[int, int]]:
    """BLOCK: parts of ceil(extent / parts) each, but for the last."""
    size = -(-extent // parts)
    return [(min(q * size, extent), min((q + 1) * size, extent)) for q in range(parts)]


def boxes(shape: Sequence[int], mesh: Sequence[int]) -> list[Box]:
    """Chunks of an array in the order of the mesh."""
    return list(product(*(blocks(n, p) for n, p in zip(shape, mesh, strict=True))))


def overlaps(subchunk: Box, chunks: Sequence[Box]) -> list[Overlap]:
    """Who holds something of a subchunk, in the order of clients."""
    found = []
    for client, chunk in enumerate(chunks):
        both = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(subchunk, chunk, strict=True)]
        extents = [high - low for low, high in both]
        if min(extents) <= 0:
            continue
        # Dimensions from the last on that are whole on both sides make one run.
        runs = prod(extents)
        for d in range(len(extents) - 1, -1, -1):
            runs //= extents[d]
            if not subchunk[d] == chunk[d] == both[d]:
                break
        found.append(Overlap(client, prod(extents) * ELEMENT, runs))
    return found


def assembling(met: Sequence[Overlap], costs: Costs) -> float:
    """F7 without the file system: all clients are asked, then all answer, both in their order."""
    ask = costs.bound + costs.send(0)
    received = 0.0
    for number, overlap in enumerate(met):
        # F8: what the client does once it is asked; F9 to F11: what of it the server has to wait for.
        extract = costs.bound + overlap.runs * costs.extract_run
        handled = costs.net(0) + costs.receive(0) + extract + costs.send(overlap.size) + costs.net(overlap.size)
        meanwhile = (len(met) - number - 1) * ask + received
        delay = max(0.0, handled - meanwhile)
        received += delay + costs.receive(overlap.size) + overlap.runs * costs.place_run
    return costs.find + len(met) * ask + received


def intermediate(subchunks: Sequence[tuple[float, int]], costs: Costs) -> float:
    """F6, F13, F14: subchunks, each assembled in so much time and so large, go to a disk that writes behind."""
    now = disk_free = 0.0
    for seconds, size in subchunks:
        now += seconds + costs.call + size * costs.buffer_byte
        # A write that finds no room waits until the disk has made some.
        if costs.disk_byte > 0.0:
            now = max(now, disk_free - (costs.limit - size) * costs.disk_byte)
        disk_free = max(disk_free, now) + size * costs.disk_byte
    return max(now, disk_free)


def predict(
    shape: Sequence[int], mesh: Sequence[int], servers: Sequence[Sequence[Box]], count: int, costs: Costs
) -> Predicted:
    """F1 to F14 for writing `count` arrays alike.

    Parameters
    ----------
    shape, mesh : sequence of int
        Of the arrays, and of the clients that hold them in blocks.
    servers : sequence
        By server, its subchunks of one array.
    count : int
        How many arrays.
    costs : Costs
        Those of the machine.
    """
    chunks = boxes(shape, mesh)
    message = costs.small()
    spent, assembled = [], []
    for number, own in enumerate(servers):
        each = [(assembling(overlaps(box, chunks), costs), prod(b - a for a, b in box) * ELEMENT) for box in own]
        # F2, F3: the client master tells the server master, which tells the others one after another.
        told = message + (number * costs.send(0) + costs.net(0) + costs.receive(0) if number else 0.0)
        told += (len(servers) - 1) * costs.send(0) if number == 0 else 0.0
        spent.append(told + intermediate(each * count, costs))
        assembled.append(sum(seconds for seconds, _ in each) * count)
    # F4, F5: the last client hears of the end after all others.
    closing = message + (len(chunks) - 1) * costs.send(0) + costs.net(0) + costs.receive(0)
    return Predicted(max(spent) + closing, tuple(spent), tuple(assembled))
