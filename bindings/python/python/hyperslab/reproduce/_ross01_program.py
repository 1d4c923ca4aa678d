"""What processes of the FLASH I/O benchmark live through when HDF5 writes a file, as stages of a rehearsal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hyperslab.reproduce._study import Runner
from hyperslab.simulation import Simulated, Stage

MACHINE = "chiba-city"
MB = 2.0**20

#: Blocks have 8 zones a side, and 4 halo cells around them.
ZONES, HALO, VARIABLES = 8, 4, 24
#: What HDF5 puts before the data of a dataset, and at the beginning of the file [B]: guesses, which only shift data.
OBJECT_BYTES, SUPERBLOCK_BYTES = 544, 2048

# HDF5 goes through hyperslabs recursively. A gather from memory takes about 2.5 s for the 81 x 512 elements of a
# variable, each alone in memory; a scatter into the file takes 0.2 s, of which 0.04 s are the write (Ross et al.,
# 4.2.1), for 81 x 64 rows of 8 elements.
GATHER_SECONDS = 2.5 / (81 * ZONES**3)
SCATTER_SECONDS = (0.2 - 0.04) / (81 * ZONES**2)

#: What process 0 does for the metadata of a dataset [s]: fitted once, to Table 3, together with
#: what PVFS's manager needs.
METADATA_SECONDS = 0.07


@dataclass(frozen=True)
class Kind:
    """A kind of file."""

    name: str
    variables: int
    zones: int
    code: str

    @property
    def element_bytes(self) -> int:
        """Bytes of a real number."""
        return int(self.code[1:])

    def datasets(self) -> Iterator[tuple[str, list[int], str, bool]]:
        """Name, shape of a block's record, type, and whether it is one of the variables, in the order of the file."""
        for name, count in (("level", 1), ("type", 1), ("neighbours", 15)):
            yield name, [count], "i4", False
        for name, count in (("coordinates", 3), ("size", 3), ("bounds", 6)):
            yield name, [count], self.code, False
        for number in range(self.variables):
            yield f"variable{number}", [self.zones] * 3, self.code, True


CHECKPOINT = Kind("checkpoint", VARIABLES, ZONES, "f8")
PLOTFILE = Kind("plotfile", 4, ZONES, "f4")
CORNERS = Kind("plotfile with corners", 4, ZONES + 1, "f4")
KINDS = (CHECKPOINT, PLOTFILE, CORNERS)


@dataclass(frozen=True)
class Written:
    """One file that was written.

    Attributes
    ----------
    bytes : int
        Of its arrays.
    labels : dict
        What each stage was, by its number.
    report : Simulated
        What came out.
    """

    bytes: int
    labels: Mapping[int, str]
    report: Simulated

    @property
    def seconds(self) -> float:
        """Until all were through."""
        return float(self.report["seconds"])

    @property
    def rate(self) -> float:
        """MB/s."""
        return self.bytes / MB / self.seconds

    def stages(self, label: str) -> list[Mapping[str, Any]]:
        """The stages of that label, in order."""
        return [stage for stage in self.report["stages"] if self.labels[stage["stage"]] == label]

    def mean(self, label: str) -> float:
        """What a process spent in a stage of that label, on average [s]."""
        means = [float(stage["mean"]) for stage in self.stages(label)]
        return sum(means) / len(means)


def rows_of(record: list[int]) -> int:
    """Rows of a block's record, along its last dimension."""
    return math.prod(record[:-1])


def _dataset(
    blocks: list[int],
    name: str,
    record: list[int],
    code: str,
    offset: int,
    seconds: Mapping[str, float],
    *,
    strided: bool,
) -> list[tuple[str, Stage]]:
    """All create a dataset together and ask the manager; process 0 writes metadata; then each writes its blocks."""
    array: dict[str, Any] = {
        "name": name,
        "shape": [sum(blocks), *record],
        "mesh": [len(blocks)],
        "dims": [blocks, *["*"] * len(record)],
        "dtype": code,
        "store": {"file": {"object": "file", "offset": offset + OBJECT_BYTES}},
    }
    if strided:
        array["local"] = {"halo": [0, HALO, HALO, HALO], "interleave": VARIABLES}
    metadata = {"who": 0, "object": "file", "offset": offset, "bytes": OBJECT_BYTES, "write": True}
    # One subchunk for all, so that each process has one call for what it writes.
    whole = sum(blocks) * rows_of(record) * record[-1] * int(code[1:])
    transfer = {
        "write": True,
        "arrays": [array],
        "strategy": "independent",
        "subchunk_bytes": whole,
        "slots": 1,
        "agree": False,
    }
    kind = "variable" if len(record) == 3 else "tree"
    return [
        ("create", "agree"),
        ("ask", {"query": {}}),
        ("created", "agree"),
        ("metadata", {"work": {"who": 0, "seconds": METADATA_SECONDS}}),
        ("metadata", {"call": metadata}),
        (f"gather {kind}", {"work": {"seconds": seconds["gather"]}}),
        (f"scatter {kind}", {"work": {"seconds": seconds["scatter"]}}),
        (f"write {kind}", {"transfer": transfer}),
    ]


def write_file(
    runner: Runner, kind: Kind, ranks: int, *, gathers: bool = False, strided: bool = False, log: bool = False
) -> Written:
    """Writes a file.

    Parameters
    ----------
    runner : Runner
        Runs it.
    kind : Kind
        Which file.
    ranks : int
        Processes.
    gathers : bool
        Whether HDF5 gathers variables from memory element by element (Table 2), or the program has packed them.
    strided : bool
        Whether hyperslab gathers them, from between halo and the other variables.
    log : bool
        Whether to tell what happens.
    """
    blocks = [80 + rank % 3 for rank in range(ranks)]
    mean_blocks = sum(blocks) / ranks
    steps: list[tuple[str, Stage]] = [("open", {"open": {}})]
    offset, data_bytes = SUPERBLOCK_BYTES, 0
    for name, record, code, variable in kind.datasets():
        rows = rows_of(record)
        gathered = rows * record[-1] if gathers and variable else 0
        seconds = {
            "gather": mean_blocks * gathered * GATHER_SECONDS,
            "scatter": mean_blocks * rows * SCATTER_SECONDS,
        }
        steps += _dataset(blocks, name, record, code, offset, seconds, strided=strided and variable)
        size = sum(blocks) * rows * record[-1] * int(code[1:])
        offset, data_bytes = offset + OBJECT_BYTES + size, data_bytes + size
    steps += [("barrier", "agree"), ("close", {"close": {}})]
    report = runner.simulate(MACHINE, [stage for _, stage in steps], clients=ranks, log=log)
    return Written(data_bytes, {number: label for number, (label, _) in enumerate(steps)}, report)


def concurrent_rate(runner: Runner, ranks: int, *, hdf5: bool = False) -> float:
    """MB/s of processes that each write 7 MB at once (Figures 4 and 5), by PVFS or through HDF5.

    From one synchronization to the next, so that the slowest counts. HDF5 has its metadata before the data, which are
    then not aligned with stripes, and process 0 writes them.
    """
    each = int(7 * MB)
    offset = SUPERBLOCK_BYTES + OBJECT_BYTES if hdf5 else 0
    metadata: list[Stage] = [
        {"work": {"who": 0, "seconds": METADATA_SECONDS}},
        {"call": {"who": 0, "object": "file", "bytes": offset, "write": True}},
    ]
    write: Stage = {"call": {"object": "file", "offset": offset, "pitch": each, "bytes": each, "write": True}}
    stages: list[Stage] = [{"open": {}}, "agree", *(metadata if hdf5 else []), write, "agree", {"close": {}}]
    report = runner.simulate(MACHINE, stages, clients=ranks)
    begin = min(stage["begin"] for stage in report["stages"] if stage["stage"] == 2)
    end = max(stage["end"] for stage in report["stages"] if stage["stage"] == len(stages) - 2)
    return ranks * each / MB / float(end - begin)
