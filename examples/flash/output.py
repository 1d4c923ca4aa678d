"""The three files of FLASH, written and read through hyperslab: checkpoint, plotfile, plotfile at corners.

Each is a header, six records about the tree, and one record per variable with all blocks of all ranks, as
[block][z][y][x]: one raw file, or one step of a Zarr store. A rank holds consecutive blocks, more or fewer than others,
which is an uneven BLOCK distribution of the first dimension (GEN_BLOCK). All variables go in one collective call,
straight out of ``unk``.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hyperslab as hs
import numpy as np

from octree import equal_work, work
from packing import element_by_element
from state import PLOTTED, VARIABLES, ZONES, State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from octree import Tree

Arrays = dict[str, "NDArray[Any]"]

HEADER = np.dtype(
    [
        ("created", "S32"),
        ("version", "S16"),
        ("total_blocks", "<i4"),
        ("nsteps", "<i4"),
        ("nxb", "<i4"),
        ("nyb", "<i4"),
        ("nzb", "<i4"),
        ("unused", "<i4"),
        ("time", "<f8"),
    ]
)
"""What a raw file begins with."""
DIMENSIONS = ("block", "z", "y", "x")
CHUNK_BLOCKS = 32
"""Blocks in one chunk of a Zarr array."""


@dataclass(frozen=True)
class Kind:
    """One of the three files."""

    name: str
    stem: str
    variables: tuple[str, ...]
    edge: int
    """Points of a block along each axis."""
    real: str
    """Type of all reals in the file."""

    @property
    def block_bytes(self) -> int:
        """Bytes that a block takes: its variables, and 2 + 15 integers and 12 reals about its place in the tree."""
        real = np.dtype(self.real).itemsize
        return len(self.variables) * self.edge**3 * real + 4 * 17 + 12 * real

    def shape(self, blocks: int) -> tuple[int, int, int, int]:
        """Return the shape of a variable's record."""
        return (blocks, self.edge, self.edge, self.edge)


CHECKPOINT = Kind("checkpoint", "chk", VARIABLES, ZONES, "<f8")
PLOTFILE = Kind("plotfile", "plt_cnt", PLOTTED, ZONES, "<f4")
CORNERS = Kind("plotfile with corners", "plt_crn", PLOTTED, ZONES + 1, "<f4")
KINDS = (CHECKPOINT, PLOTFILE, CORNERS)


@dataclass(frozen=True)
class Row:
    """What one file cost."""

    kind: Kind
    form: str
    path: Path
    bytes: int
    """Of the header and all records."""
    seconds: float
    strategy: str


@dataclass(frozen=True)
class Part:
    """Which blocks a rank has: `counts` on each rank, along the list of all."""

    rank: int
    counts: list[int]

    @property
    def slice(self) -> slice:
        """Blocks of this rank among all."""
        first = sum(self.counts[: self.rank])
        return slice(first, first + self.counts[self.rank])

    def spread(self, *each: int) -> hs.Distribution:
        """How the ranks hold an array with this shape for each block."""
        return hs.Distribution((sum(self.counts), *each), (len(self.counts),), (self.counts, *["*"] * len(each)))


def tree_records(tree: Tree, blocks: slice, real: str) -> list[Arrays]:
    """Return what is stored about some blocks, in the order of the file; arrays of one shape together."""
    return [
        {"refine_level": tree.refine_level[blocks], "node_type": tree.node_type[blocks]},
        {"gid": tree.gid[blocks]},
        {"coordinates": tree.coordinates[blocks].astype(real), "block_size": tree.block_size[blocks].astype(real)},
        {"bounding_box": tree.bounding_box[blocks].astype(real)},
    ]


def variables(kind: Kind, state: State) -> Arrays:
    """Return this rank's part of each variable: views into ``unk``, or fresh means at corners."""
    pick = state.corners if kind is CORNERS else state.interior
    return {name: pick(name) for name in kind.variables}


def attributes(total: int, created: str, nsteps: int, now: float) -> dict[str, Any]:
    """Return what the header of a file tells."""
    cells = {"nxb": ZONES, "nyb": ZONES, "nzb": ZONES}
    return {"created": created, "version": "hyperslab", "total_blocks": total, "nsteps": nsteps, **cells, "time": now}


def header(about: dict[str, Any]) -> bytes:
    """Return the header of a raw file."""
    fields: NDArray[Any] = np.zeros((), HEADER)
    for name, content in about.items():
        fields[name] = content
    return fields.tobytes()


def write_raw(
    comm: Any,
    path: Path,
    kind: Kind,
    tree: Tree,
    state: State,
    part: Part,
    about: dict[str, Any],
    *,
    packs: bool = False,
) -> Row:
    """Write one file: everything behind a header, row-major. If the application packs, one variable after another."""
    begin = time.perf_counter()
    with hs.open_raw(path, "w", comm=comm, order="C", header=header(about)) as file:
        for records in tree_records(tree, part.slice, kind.real):
            each = next(iter(records.values())).shape[1:]
            file.write(records, part.spread(*each))
        parts = variables(kind, state)
        spread = part.spread(*kind.shape(0)[1:])
        if packs:
            for name, selected in parts.items():
                with hs.trace.span("pack element by element", comm=comm, bytes=selected.nbytes):
                    packed = element_by_element(selected)
                report = file.write({name: packed}, spread, dtype=kind.real)
        else:
            report = file.write(parts, spread, dtype=kind.real)
    total = HEADER.itemsize + len(tree) * kind.block_bytes
    return Row(kind, "raw", path, total, time.perf_counter() - begin, report.strategy)


def write_zarr(
    comm: Any, path: Path, name: str, kind: Kind, tree: Tree, state: State, part: Part, about: dict[str, Any]
) -> Row:
    """Write one step of a Zarr store, which becomes visible whole or not at all."""
    begin = time.perf_counter()
    with (
        hs.open(path, "r+" if path.exists() else "w", comm=comm) as store,
        store.step(name, attributes=about) as step,
    ):
        for records in tree_records(tree, part.slice, kind.real):
            each = next(iter(records.values())).shape[1:]
            step.write(records, part.spread(*each), dimension_names=("block", *[None] * len(each)))
        report = step.write(
            variables(kind, state),
            part.spread(*kind.shape(0)[1:]),
            dtype=kind.real,
            chunks=(CHUNK_BLOCKS, *kind.shape(0)[1:]),
            dimension_names=DIMENSIONS,
        )
    return Row(kind, "zarr", path / name, len(tree) * kind.block_bytes, time.perf_counter() - begin, report.strategy)


def restart_raw(comm: Any, path: Path) -> tuple[State, Part, Arrays]:
    """Read a checkpoint on any number of ranks, blocks cut anew into equal work; also returns this rank's tree."""
    total = int(np.fromfile(path, HEADER, count=1)["total_blocks"][0])
    records: dict[str, tuple[tuple[int, ...], str]] = {
        "refine_level": ((total,), "<i4"),
        "node_type": ((total,), "<i4"),
        "gid": ((total, 15), "<i4"),
        "coordinates": ((total, 3), "<f8"),
        "block_size": ((total, 3), "<f8"),
        "bounding_box": ((total, 3, 2), "<f8"),
    }
    fields: dict[str, tuple[tuple[int, ...], str]] = {
        name: (CHECKPOINT.shape(total), CHECKPOINT.real) for name in VARIABLES
    }
    with hs.open_raw(path, comm=comm, order="C", header=HEADER.itemsize, arrays=records | fields) as file:
        return _restart(comm, file, {name: shape for name, (shape, _) in records.items()})


def restart_zarr(comm: Any, path: Path, name: str) -> tuple[State, Part, Arrays]:
    """As `restart_raw`, from a step."""
    with hs.open(path, comm=comm) as store:
        step = store.group(name)
        return _restart(comm, step, {name: step[name].shape for name in step if name not in VARIABLES})


def _restart(comm: Any, stored: hs.RawFile | hs.Group, records: dict[str, Sequence[int]]) -> tuple[State, Part, Arrays]:
    """Read the tree, then all variables in one call, straight into ``unk``."""
    part = Part(comm.rank, equal_work(work(stored.read("node_type")), comm.size))
    tree = {name: stored.read(name, part.spread(*shape[1:])) for name, shape in records.items()}
    state = State(tree["bounding_box"])
    out = {name: state.interior(name) for name in VARIABLES}
    stored.read(VARIABLES, part.spread(*CHECKPOINT.shape(0)[1:]), out=out)
    return state, part, tree


def verify(state: State, part: Part, read: Arrays, tree: Tree, expected: State) -> None:
    """Compare what was read with the tree and the values that it was made from, element by element."""
    for records in tree_records(tree, part.slice, CHECKPOINT.real):
        for name, content in records.items():
            _same(name, read[name], content)
    for name in VARIABLES:
        _same(name, state.interior(name), expected.interior(name))


def _same(name: str, found: NDArray[Any], expected: NDArray[Any]) -> None:
    if not np.array_equal(found, expected):
        places = np.argwhere(found != expected) if found.shape == expected.shape else [["of shape"]]
        message = f"{name}: {len(places)} elements differ from what was written, the first at {tuple(places[0])}"
        raise ValueError(message)
