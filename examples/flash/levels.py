"""Leaf blocks of one refinement level as one global array: boxes at their places, the rest is left out.

In the files of FLASH a reader must find blocks by their bounding boxes. Here each leaf is a box of one ordinary array
over the whole domain, so that xarray can show it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import hyperslab as hs
import numpy as np

from octree import LEAF
from output import CHECKPOINT, Row
from state import ZONES

if TYPE_CHECKING:
    from pathlib import Path

    from octree import Tree
    from output import Part
    from state import State

CHUNK = 4 * ZONES
"""Zones in a chunk along each axis."""


def busiest(tree: Tree) -> int:
    """Return the refinement level that most leaves have."""
    return int(np.bincount(tree.refine_level[tree.node_type == LEAF]).argmax())


def leaves(tree: Tree, part: Part, level: int) -> list[int]:
    """Return the local numbers of the leaves of one level that a rank has."""
    mine = (tree.refine_level[part.slice] == level) & (tree.node_type[part.slice] == LEAF)
    return [int(number) for number in np.flatnonzero(mine)]


def boxes(tree: Tree, part: Part, level: int) -> hs.Boxes:
    """Return where those leaves lie in the array of all zones of that level, as [z][y][x]."""
    edge = ZONES << (level - 1)
    places = tree.place[part.slice][leaves(tree, part, level)]
    where = [tuple(slice(ZONES * int(at), ZONES * int(at + 1)) for at in place[::-1]) for place in places]
    return hs.Boxes((edge, edge, edge * tree.roots), where)


def write_level(
    comm: Any, path: Path, name: str, names: tuple[str, ...], tree: Tree, state: State, part: Part, level: int
) -> Row:
    """Write variables of one level as a step of a Zarr store; where there is no such leaf they are not a number."""
    where = boxes(tree, part, level)
    mine = leaves(tree, part, level)
    size = 0.5 ** (level - 1) / ZONES
    begin = time.perf_counter()
    with (
        hs.open(path, "r+" if path.exists() else "w", comm=comm) as store,
        store.step(name, attributes={"refine_level": level, "zone": size}) as step,
    ):
        report = step.write(
            {each: [state.block(each, number) for number in mine] for each in names},
            where,
            dtype="f8",  # a rank without a leaf cannot tell it
            fill_value=np.nan,
            chunks=(CHUNK, CHUNK, CHUNK),
            dimension_names=("z", "y", "x"),
        )
    seconds = time.perf_counter() - begin
    return Row(CHECKPOINT, "boxes", path / name, report.bytes, seconds, report.strategy)


def verify_level(comm: Any, path: Path, name: str, tree: Tree, state: State, part: Part, level: int) -> int:
    """Read this rank's leaves of one level back, compare them, and return how many there were."""
    where = boxes(tree, part, level)
    mine = leaves(tree, part, level)
    with hs.open(path, comm=comm) as store:
        step = store.group(name)
        for variable in step:
            found = step.read(variable, where)
            for block, number in zip(found, mine, strict=True):
                if not np.array_equal(block, state.block(variable, number)):
                    message = f"{variable}: block {number} of rank {comm.rank} differs from what was written"
                    raise ValueError(message)
    return len(mine)
