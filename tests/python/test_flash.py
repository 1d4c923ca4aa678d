"""The FLASH example: its tree is one, its files hold the bytes that plain loops give, and its sizes are the paper's."""

from __future__ import annotations

import itertools
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest
from hyperslab.trace._run import load, pick
from hyperslab.trace._summary import summarize
from numpy.typing import NDArray

zarr = pytest.importorskip("zarr")

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "flash"))

import flash_io  # noqa: E402
import levels  # noqa: E402
import octree  # noqa: E402
import output  # noqa: E402
from mpi_launch import launched, run_ranks  # noqa: E402
from mpi_programs import flash  # noqa: E402
from output import CHECKPOINT, CORNERS, KINDS, PLOTFILE, Part  # noqa: E402
from state import PLOTTED, VARIABLES, State, value  # noqa: E402

BLOCKS = 25
Records = dict[str, NDArray[Any]]


# ---- the tree --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("total", [1, 5, 8, 9, 70, 71, 323, 600])
def test_the_tree_obeys_its_rules(total: int) -> None:
    tree = octree.grow(total)
    assert len(tree) == total
    cells = [(int(level), *map(int, place)) for level, place in zip(tree.refine_level, tree.place, strict=True)]
    assert cells == list(depth_first(set(cells), tree.roots))
    leaf = tree.node_type == octree.LEAF
    assert np.prod(tree.block_size[leaf], axis=1).sum() == tree.roots  # they fill the domain
    check_neighbours(tree, cells)
    check_numbers(tree, cells)
    if total > 100:
        assert tree.refine_level.max() >= 4


def depth_first(cells: set[octree.Cell], roots: int) -> Iterator[octree.Cell]:
    """Morton's curve by recursion: a block, then its children, x fastest."""

    def below(cell: octree.Cell) -> Iterator[octree.Cell]:
        if cell in cells:
            yield cell
            level, x, y, z = cell
            for k, j, i in itertools.product((0, 1), repeat=3):
                yield from below((level + 1, 2 * x + i, 2 * y + j, 2 * z + k))

    for x in range(roots):
        yield from below((1, x, 0, 0))


def check_neighbours(tree: octree.Tree, cells: list[octree.Cell]) -> None:
    """Leaves that touch differ by at most one level, and no two overlap."""
    leaves = np.flatnonzero(tree.node_type == octree.LEAF)
    low, high = tree.bounding_box[leaves, :, 0], tree.bounding_box[leaves, :, 1]
    for number, leaf in enumerate(leaves):
        touch = (low <= high[number]).all(axis=1) & (high >= low[number]).all(axis=1)
        steps = np.abs(tree.refine_level[leaves[touch]] - tree.refine_level[leaf])
        assert steps.max() <= 1, cells[leaf]
        assert ((low < high[number]).all(axis=1) & (high > low[number]).all(axis=1)).sum() == 1, cells[leaf]


def check_numbers(tree: octree.Tree, cells: list[octree.Cell]) -> None:
    """Neighbours, parents and children are where they should be, and say the same of each other."""
    box, edges = tree.bounding_box, (tree.roots, 1, 1)
    for row, cell in enumerate(cells):
        around, parent, children = tree.gid[row, :6], tree.gid[row, 6], tree.gid[row, 7:]
        for face, number in enumerate(around):
            axis, side = divmod(face, 2)
            bound = box[row, axis, side]
            if number == octree.OUTSIDE:
                assert bound == (edges[axis] if side else 0)
            elif number == octree.NO_BLOCK:
                level, *place = cell
                place[axis] += 1 if side else -1
                assert (level, *place) not in cells
            else:
                assert box[number - 1, axis, 1 - side] == bound
                assert tree.refine_level[number - 1] == cell[0]
                assert tree.gid[number - 1, face ^ 1] == row + 1
        assert (parent == octree.NO_BLOCK) == (cell[0] == 1)
        if tree.node_type[row] == octree.LEAF:
            assert (children == octree.NO_BLOCK).all()
            continue
        assert (tree.gid[children - 1, 6] == row + 1).all()
        assert np.array_equal(box[children - 1, :, 0].min(axis=0), box[row, :, 0])
        assert np.array_equal(box[children - 1, :, 1].max(axis=0), box[row, :, 1])
        assert (tree.node_type[row] == octree.PARENT) == (tree.node_type[children - 1] == octree.LEAF).any()


@pytest.mark.parametrize("ranks", [1, 3, 4, 64])
def test_work_is_cut_into_equal_parts(ranks: int) -> None:
    costs = octree.grow(323).work
    counts = octree.equal_work(costs, ranks)
    assert (len(counts), sum(counts)) == (ranks, 323)
    shares = [int(part.sum()) for part in np.split(costs, np.cumsum(counts)[:-1])]
    assert max(abs(share - costs.sum() / ranks) for share in shares) <= max(octree.WORK.values())


# ---- the files -------------------------------------------------------------------------------------------------


def reference(kind: output.Kind, tree: octree.Tree, *, original: bool) -> Records:
    """All records of a file, block by block, from the definition."""
    real = kind.real
    records: Records = {
        "refine_level": tree.refine_level.astype("<i4"),
        "node_type": tree.node_type.astype("<i4"),
        "gid": tree.gid.astype("<i4"),
        "coordinates": tree.bounding_box.mean(axis=2).astype(real),
        "block_size": (tree.bounding_box[:, :, 1] - tree.bounding_box[:, :, 0]).astype(real),
        "bounding_box": tree.bounding_box.astype(real),
    }
    for name in kind.variables:
        records[name] = np.empty((len(tree), kind.edge, kind.edge, kind.edge), real)
        for block in range(len(tree)):
            zones = block_with_guards(VARIABLES.index(name), tree.bounding_box[block], original=original)
            records[name][block] = zones[4:12, 4:12, 4:12] if kind is not CORNERS else at_corners(zones)
    return records


def block_with_guards(number: int, box: NDArray[np.float64], *, original: bool) -> NDArray[np.float64]:
    """One variable of one block as [z][y][x]."""
    if original:
        return np.full((16, 16, 16), number + 1.0)
    zone = (box[0, 1] - box[0, 0]) / 8
    x, y, z = ([box[axis, 0] + (i - 4 + 0.5) * zone for i in range(16)] for axis in range(3))
    return value(number, np.array(x)[None, None, :], np.array(y)[None, :, None], np.array(z)[:, None, None])


def at_corners(zones: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means of the 8 zones around each corner of the inner zones."""
    a, b, c, d, e, f, g, h = (
        zones[3 + k : 12 + k, 3 + j : 12 + j, 3 + i : 12 + i] for k, j, i in itertools.product((0, 1), repeat=3)
    )
    return (((a + b) + (c + d)) + ((e + f) + (g + h))) / 8


def check_files(directory: Path, ranks: int) -> None:
    """All that a run has written is what the reference says, byte by byte."""
    total = sum(BLOCKS + rank % 3 for rank in range(ranks))
    tree = octree.grow(total)
    header = output.header(output.attributes(total, "2001-03-20", nsteps=1, now=0.25))
    assert len(header) == output.HEADER.itemsize == 80
    for name in flash.RUNS:
        for kind in KINDS:
            expected = reference(kind, tree, original=name == "original")
            content = (directory / name / f"flash_{kind.stem}_0000").read_bytes()
            assert content == header + b"".join(each.tobytes() for each in expected.values()), (name, kind.name)
            group = zarr.open_group(directory / name / "run.zarr" / f"{kind.stem}_0000", mode="r")
            assert sorted(group.array_keys()) == sorted(expected)
            assert group.attrs["total_blocks"] == total
            for record, values in expected.items():
                found = np.asarray(group[record][...])
                assert found.dtype == values.dtype
                assert found.tobytes() == values.tobytes(), (name, kind.name, record)
        check_level(directory / name / "run.zarr", tree, original=name == "original")


def check_level(path: Path, tree: octree.Tree, *, original: bool) -> None:
    """The leaves of one level lie at their places in one array, as others read it, and nothing else does."""
    level = levels.busiest(tree)
    dataset: Any = zarr.open_group(path, path=f"level_{level}", mode="r")
    if find_spec("xarray") is not None:
        import xarray

        dataset = xarray.open_zarr(path, group=f"level_{level}", consolidated=False)
        assert all(dataset[name].dims == ("z", "y", "x") for name in PLOTTED)
    assert set(dataset) == set(PLOTTED)
    for name in PLOTTED:
        edge = 8 * 2 ** (level - 1)
        expected = np.full((edge, edge, edge * tree.roots), np.nan)
        for block in range(len(tree)):
            if tree.refine_level[block] == level and tree.node_type[block] == octree.LEAF:
                zones = block_with_guards(VARIABLES.index(name), tree.bounding_box[block], original=original)
                x, y, z = (8 * int(at) for at in tree.place[block])
                expected[z : z + 8, y : y + 8, x : x + 8] = zones[4:12, 4:12, 4:12]
        assert np.array_equal(np.asarray(dataset[name][...]), expected, equal_nan=True)
        assert np.isnan(expected).any()


@pytest.mark.mpi
def test_files_hold_the_bytes_of_plain_loops_and_restart_anywhere(tmp_path: Path) -> None:
    """Written by 1, 3 and 4 processes and by 2 threads, each of which restarts from what the one before has written."""
    before: Path | None = None
    for ranks in (1, 3, 4):
        directory = tmp_path / str(ranks)
        printed = run_ranks(ranks, "flash", directory, BLOCKS, *([] if before is None else [before]))
        assert printed.count("every element is right") == (0 if before is None else 4), printed
        check_files(directory, ranks)
        before = directory
    check_threads(tmp_path / "threads", before)


def test_files_of_threads(tmp_path: Path) -> None:
    check_threads(tmp_path, None)


def check_threads(directory: Path, before: Path | None) -> None:
    hs.threads(2, lambda comm: flash.run(comm, directory, BLOCKS, before))
    check_files(directory, 2)


def test_a_restart_notices_a_wrong_element(tmp_path: Path) -> None:
    """Of a variable or of the tree; so does reading a level back."""
    flash_io.main(["--out", str(tmp_path), "--threads", "2", "--blocks", "9", "--format", "raw"])
    path = tmp_path / "flash_chk_0000"
    whole = path.read_bytes()
    kept = shutil.copy(path, tmp_path / "kept")
    for place in (len(whole) - 5, 80 + 4 * 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(ValueError, match="differ from what was written"):
            flash_io.main(["--out", str(tmp_path), "--threads", "3", "--restart"])
    shutil.copy(kept, path)
    flash_io.main(["--out", str(tmp_path), "--threads", "3", "--restart"])


def test_variables_are_views_and_guard_cells_stay(tmp_path: Path) -> None:
    """Nothing is packed by the application, and a restart writes only zones."""
    flash_io.main(["--out", str(tmp_path), "--threads", "1", "--blocks", "9", "--format", "raw"])

    def check(comm: Any) -> None:
        state, _, _ = output.restart_raw(comm, tmp_path / "flash_chk_0000")
        zones = state.interior("pres")
        assert np.shares_memory(zones, state.unk)
        assert zones.strides[-1] == 24 * 8
        assert int(np.isfinite(state.unk).sum()) == 24 * 512 * len(state)
        assert np.isfinite(zones).all()

    hs.threads(2, check)


@pytest.mark.mpi
@pytest.mark.alone
@pytest.mark.alone
def test_an_application_that_packs_writes_the_same_bytes_and_is_the_cause(tmp_path: Path) -> None:
    """As the study of 2001 found: the gaps between writes are packing, and without it they are gone."""
    causes = {}
    for how, options in (("packs", ["--packs"]), ("gathers", [])):
        # Processes: threads that pack would wait for each other's turn of the interpreter.
        common = ["--out", str(tmp_path / how), "--blocks", "30", "--format", "raw", "--only-checkpoint", *options]
        program = [sys.executable, "-m", "mpi4py", str(Path(flash_io.__file__)), *common]
        traced = {"HYPERSLAB_TRACE": str(tmp_path / f"{how}-trace")}
        launched(2, *program, extra_environment=traced).check_returncode()
        causes[how] = summarize(pick(load(tmp_path / f"{how}-trace"), None))
    name = f"flash_{CHECKPOINT.stem}_0000"
    assert (tmp_path / "packs" / name).read_bytes() == (tmp_path / "gathers" / name).read_bytes()
    assert "the application (pack element by element)" in causes["packs"]["cause"]
    assert causes["packs"]["calls_in_all"] == causes["gathers"]["calls_in_all"] + 23
    assert "application" not in causes["gathers"]["states"]
    assert causes["gathers"]["seconds"] < causes["packs"]["seconds"]


# ---- the paper -------------------------------------------------------------------------------------------------


def test_sizes_are_those_of_the_paper() -> None:
    """Table 3 of Ross et al., SC2001, for 64 processes, within the accuracy with which its rule is known."""
    blocks = sum(flash_io.block_counts(80, 64))
    assert blocks == 5183
    measured = {CHECKPOINT: 486.2, PLOTFILE: 40.7, CORNERS: 57.9}
    for kind, size in measured.items():
        assert blocks * kind.block_bytes / 2**20 == pytest.approx(size, rel=0.01)
    assert [kind.block_bytes for kind in KINDS] == [98304 + 164, 8192 + 116, 11664 + 116]


def test_unk_has_the_layout_of_flash() -> None:
    state = State(octree.grow(80).bounding_box)
    assert state.unk.shape[:4] == (24, 16, 16, 16)
    assert state.unk.strides[:2] == (8, 24 * 8)
    part = Part(1, [80, 81, 82])
    assert part.slice == slice(80, 161)
    assert part.spread(8, 8, 8).local_shape(1) == (81, 8, 8, 8)
