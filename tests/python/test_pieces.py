"""Pieces that each rank tells by itself: boxes, runs and element maps, under every strategy."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest

from mpi_launch import run_ranks
from mpi_programs.pieces import ALL, run_cases

SEED = 20261122
CASES = {1: 40, 3: 60, 4: 60}


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", CASES)
def test_random_pieces_equal_numpy(ranks: int, tmp_path: Path) -> None:
    printed = run_ranks(ranks, "pieces", tmp_path, SEED, CASES[ranks])
    assert f"all cases on {ranks} ranks" in printed


@pytest.mark.parametrize("ranks", [1, 2, 5, 8])
def test_random_pieces_of_threads_equal_numpy(ranks: int, tmp_path: Path) -> None:
    done = hs.threads(ranks, lambda comm: run_cases(comm, tmp_path, SEED + 1, 60))
    assert done[0].keys() >= set(ALL), "each strategy had something to do"


@pytest.mark.parametrize("strategy", ["root-gather", "two-phase", "server-directed", "disk-directed"])
def test_two_elements_of_an_array_of_many_chunks(strategy: str) -> None:
    """What takes time is the pieces, not the 2**35 chunks around them."""
    mine = hs.ElementMap((2**40, 2**10), [5, 2**45])
    with hs.open(hs.MemoryStore(), "w", strategy=strategy) as store:
        store.write("a", np.array([1.0, 2.0]), mine, chunks=(1024, 32))
        assert store.read("a", mine).tolist() == [1.0, 2.0]


@pytest.mark.mpi
def test_messages_instead_of_memory_write_the_same(tmp_path: Path) -> None:
    run_ranks(4, "pieces", tmp_path, SEED + 2, 40, extra_environment={"HYPERSLAB_DIRECT": "0"})


@pytest.mark.parametrize("strategy", ALL)
def test_many_pieces_of_one_compressed_chunk(strategy: str, tmp_path: Path) -> None:
    """Each is read from a chunk of its own in memory, however many are on their way at once."""
    values = np.random.default_rng(4).integers(0, 1000, (40, 30))
    with hs.open(tmp_path / "a.zarr", "w") as store:
        store.write("a", values, zstd=1, chunks=(40, 30))
        boxes = hs.Boxes((40, 30), [(slice(i, i + 2), slice(0, 30)) for i in range(39)])
        for number, box in enumerate(store.read("a", boxes, strategy=strategy)):
            assert np.array_equal(box, values[number : number + 2]), number
        often = hs.ElementMap((40, 30), [7] * 50)
        assert (store.read("a", often, strategy=strategy) == values[0, 7]).all()


def test_an_element_named_too_often_is_refused(tmp_path: Path) -> None:
    with hs.open(tmp_path / "a.zarr", "w") as store:
        for shape in ((), (1,), (3, 4)):
            name = f"a{len(shape)}"
            store.write(name, np.ones(shape))
            assert (store.read(name, hs.ElementMap(shape, [0] * 64)) == 1).all()
            with pytest.raises(hs.InvalidError, match=r"more than 64 times[\s\S]*hint:"):
                store.read(name, hs.ElementMap(shape, [0] * 65))


def test_a_map_of_everything_backwards_is_one_pass(tmp_path: Path) -> None:
    """Regular maps are folded: no request for each element."""
    count = 50_000
    with hs.open_raw(tmp_path / "a.raw", "w", durable=False) as file:
        values = np.arange(count, dtype="f8")
        report = file.write({"a": values}, hs.ElementMap((count,), np.arange(count)[::-1]))
        assert report.store_calls < 10
    assert np.array_equal(np.fromfile(tmp_path / "a.raw"), values[::-1])


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: hs.Boxes((12, 8), [(slice(0, 2),)]), "box 0, .*, cannot be one of an array of shape .12, 8."),
        (lambda: hs.Boxes((12, 8), [(slice(0, 2), slice(0, 8, 2))]), r"box 0[\s\S]*without a step"),
        (lambda: hs.Boxes((12, 8), [((0, 0), (3,))]), "box 0"),
        (lambda: hs.Boxes((12, 8), [((0, 0, 0), (3, 1, 1))]), "box 0"),
        (lambda: hs.Boxes((12, 8), [((3, 0), (2, 8))]), "cannot be one of an array"),
        (lambda: hs.Boxes((12, 8), [(slice(-2, 12), slice(0, 8))]), "cannot be one of an array"),
        (lambda: hs.Boxes((12, 8), [((0, 0), (1, 1), (2, 2))]), "box 0"),
        (lambda: hs.Boxes((12, 8), [(3, slice(0, 8))]), "box 0"),
        (lambda: hs.Boxes((-12, 8), []), "shape"),
        (lambda: hs.Boxes((12, 8), [((0, 0), (1 << 70, 8))]), "box 0"),
        (lambda: hs.Boxes((12, 8), slice(0, 3)), "boxes"),
        (lambda: hs.Boxes((12, 8), (slice(0, 3), slice(0, 8))), "box 0"),
        (lambda: hs.Runs((12, 8), [0, 1], [1]), "2 offsets need as many lengths, got 1"),
        (lambda: hs.Runs((12, 8), [-1], [1]), "offsets must be"),
        (lambda: hs.Runs((12, 8), [0.5], [1]), "offsets must be"),
        (lambda: hs.Runs((12, 8), [0], [-1]), "lengths must be"),
        (lambda: hs.Runs((12, 8), [[0]], [[1]]), "offsets must be"),
        (lambda: hs.Runs((12, 8), [2**63], [1]), "offsets must be"),
        (lambda: hs.Runs.strided((12, 8), 5, 1, [(-4, 3)]), "offsets must be"),
        (lambda: hs.Runs.strided((12, 8), 0, -1), "lengths must be"),
        (lambda: hs.ElementMap((12, 8), [[0, 1], [2, 3]]), "indices must be"),
        (lambda: hs.ElementMap((12, 8), [0.0, 1.0]), "indices must be"),
        (lambda: hs.ElementMap((12, 8), [3, -1]), "indices must be"),
        (lambda: hs.ElementMap((12, 8), np.array([2**63 + 5], "u8")), "indices must be"),
        (lambda: hs.Distribution((10, 4), (3,), ([5, 5], "*")), "3"),
        (lambda: hs.Distribution((10, 4), (2,), ([5, 6], "*")), "10"),
        (lambda: hs.Distribution((10, 4), (2,), ([-1, 11], "*")), "block"),
        (lambda: hs.Distribution((10, 4), (2,), ([], "*")), "block"),
    ],
)
def test_pieces_that_make_no_sense(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(hs.InvalidError, match=text):
        make()


def test_uneven_blocks_with_empty_ones(tmp_path: Path) -> None:
    """Ranks of no size take part; another cut reads the same."""
    values = np.arange(60.0).reshape(12, 5)

    def run(comm: Any) -> None:
        with hs.open(tmp_path / "a.zarr", "w", comm=comm, durable=False) as store:
            for sizes in ([0, 12, 0, 0], [5, 0, 0, 7], [0, 0, 0, 12], [1, 2, 3, 6]):
                dist = hs.Distribution(values.shape, (4,), (sizes, "*"))
                name = "".join(f"n{size}" for size in sizes)
                store.write(name, values[dist.slices(comm)], dist, chunks=(5, 5))
                back = hs.Distribution(values.shape, (4,), (sizes[::-1], "*"))
                assert np.array_equal(store.read(name, back), values[back.slices(comm)])

    hs.threads(4, run)


@pytest.mark.parametrize("strategy", ALL)
@pytest.mark.parametrize("form", ["whole", "chunks", "checksum", "zstd", "raw"])
def test_strided_sections_with_blocks(form: str, strategy: str, tmp_path: Path) -> None:
    """HDF5's example of 8 x 12 elements: start (0, 1), stride (4, 3), count (2, 4), block (3, 2)."""
    values, new = np.arange(96.0).reshape(8, 12), -1.0 - np.arange(48.0).reshape(6, 8)
    section = [(0, 4, 2, 3), (1, 3, 4, 2)]
    expected = values.copy()
    expected[np.ix_([0, 1, 2, 4, 5, 6], [1, 2, 4, 5, 7, 8, 10, 11])] = new
    options = {
        "whole": {"chunks": (8, 12), "checksum": False},
        "chunks": {"chunks": (3, 5), "checksum": False},
        "checksum": {"chunks": (3, 5)},
        "zstd": {"chunks": (4, 12), "zstd": 1},
    }

    def change(stored: Any, name: str, comm: Any, dist: hs.Distribution) -> None:
        if form == "raw":
            stored.write({name: new[dist.slices(comm)]}, dist, section=section)
        else:
            try:
                stored.write(name, new[dist.slices(comm)], dist, section=section)
            except hs.InvalidError as error:
                if strategy not in ("independent", "data-sieving") or "cannot share a chunk" not in str(error):
                    raise
                stored.write(name, new[dist.slices(comm)], dist, section=section, strategy="server-directed")

    def run(comm: Any) -> None:
        all_rows = hs.Distribution(values.shape, (3,), ([3, 0, 5], "*"))
        dist = hs.Distribution(new.shape, (3,), ("*", [1, 4, 3]))
        given: dict[str, Any] = {"comm": comm, "durable": False}
        if form == "raw":
            path = tmp_path / "a.raw"
            with hs.open_raw(path, "w", order="C", **given) as file:
                file.write({"a": values[all_rows.slices(comm)]}, all_rows)
            given |= {"arrays": {"a": (values.shape, "f8")}, "order": "C", "strategy": strategy}
            stored: Any = hs.open_raw(path, "r+", **given)
        else:
            with hs.open(tmp_path / "a.zarr", "w", **given) as store:
                store.write("a", values[all_rows.slices(comm)], all_rows, **options[form])
            stored = hs.open(tmp_path / "a.zarr", "r+", strategy=strategy, **given)
        with stored:
            change(stored, "a", comm, dist)
            assert np.array_equal(stored.read("a", dist, section=section), new[dist.slices(comm)])
            assert np.array_equal(stored.read("a", all_rows), expected[all_rows.slices(comm)])

    hs.threads(3, run)


@pytest.mark.parametrize("strategy", ALL)
@pytest.mark.parametrize("form", ["zarr", "raw"])
def test_overlaps_are_refused_by_every_strategy(form: str, strategy: str, tmp_path: Path) -> None:
    """Before the first byte: what is there stays as it was, also when only one element of many is held twice."""
    shape, values = (40, 30), np.arange(1200.0).reshape(40, 30)
    maps = np.array_split(np.random.default_rng(8).permutation(1200), 3)
    twice = maps[0][17]
    at = rf"element \({twice // 30}, {twice % 30}\) of 'a' would be written by ranks 0 and 2"

    def run(comm: Any) -> str:
        mine = np.append(maps[2], twice) if comm.rank == 2 else maps[comm.rank]
        pieces, part = hs.ElementMap(shape, mine), -values.ravel()[mine]
        good, whole = hs.ElementMap(shape, maps[comm.rank]), values.ravel()[maps[comm.rank]]
        given: dict[str, Any] = {"comm": comm, "durable": False}
        if form == "raw":
            with hs.open_raw(tmp_path / "a.raw", "w", order="C", **given) as file:
                file.write({"a": whole}, good)
            given |= {"order": "C", "arrays": {"a": (shape, "f8")}}
            stored: Any = hs.open_raw(tmp_path / "a.raw", "r+", strategy=strategy, **given)
        else:
            with hs.open(tmp_path / "a.zarr", "w", **given) as store:
                store.write("a", whole, good, chunks=(11, 30))
            stored = hs.open(tmp_path / "a.zarr", "r+", strategy=strategy, **given)
        section = (slice(None), slice(None))
        with stored, pytest.raises(hs.InvalidError, match=r"overlap|cannot share a chunk") as caught:
            stored.write(*([{"a": part}] if form == "raw" else ["a", part]), pieces, section=section)
        with reopened(form, tmp_path, given) as again:
            assert np.array_equal(again.read("a"), values)
        return str(caught.value)

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of an update that is said not to have ended
        texts = set(hs.threads(3, run))
    assert len(texts) == 1
    assert sorted(found.name for found in tmp_path.iterdir()) == [f"a.{form}"]
    refused = strategy in ("independent", "data-sieving") and form == "zarr"
    assert refused or re.search(at, texts.pop())


def reopened(form: str, path: Path, given: dict[str, Any]) -> Any:
    """What was to be changed, for reading."""
    return hs.open_raw(path / "a.raw", **given) if form == "raw" else hs.open(path / "a.zarr", **given)


def test_the_note_of_an_earlier_update_stays(tmp_path: Path) -> None:
    """An update that is refused says nothing of itself, but takes no one else's note away."""
    twice = hs.ElementMap((12,), [3, 3])
    with hs.open(tmp_path / "a.zarr", "w", durable=False) as store:
        store.write("a", np.arange(12.0))
        note = tmp_path / "a.zarr" / "a" / ".hyperslab-update"
        note.write_text("an earlier one\n")
        with pytest.raises(hs.InvalidError, match="overlap"):
            store.write("a", np.zeros(2), twice, section=slice(None))
        assert note.read_text() == "an earlier one\n"
    with hs.open_raw(tmp_path / "a.raw", "w", durable=False) as file:
        file.write({"a": np.arange(12.0)})
    note = tmp_path / ".a.raw.hyperslab-update"
    note.write_text("an earlier one\n")
    with hs.open_raw(tmp_path / "a.raw", "r+", arrays={"a": ((12,), "f8")}, durable=False) as file:
        with pytest.raises(hs.InvalidError, match="overlap"):
            file.write({"a": np.zeros(2)}, twice)
        assert note.exists()
        # Nobody knows which part that was: only what replaces all of the file ends it.
        file.write({"a": np.zeros(2)}, section=slice(0, 2))
        assert note.exists()
        file.write({"a": np.zeros(12)})
        assert not note.exists()


def test_several_arrays_are_refused_where_one_of_them_cannot_be_used(tmp_path: Path) -> None:
    """Many arrays are looked at together, and say what one of them says alone."""
    arrays = {"a": np.arange(4.0), "b": np.arange(4.0)[::-1]}
    with hs.open_raw(tmp_path / "a.raw", "w", durable=False) as file:
        for odd, error, message in (
            ([[1.0], [2.0, 3.0]], hs.InvalidError, "must be an array, got an object of type list"),
            (np.array(["x"] * 4, object), hs.UnsupportedError, "has texts of variable length"),
        ):
            for name in arrays:
                with pytest.raises(error, match=message):
                    file.write({**arrays, name: odd})
        file.write(arrays)
    known = dict.fromkeys(arrays, ((4,), "f8"))
    with hs.open_raw(tmp_path / "a.raw", arrays=known) as file:
        found = {name: np.zeros(4) for name in arrays}
        file.read(list(arrays), out=found)
        assert all(np.array_equal(found[name], arrays[name]) for name in arrays)
        found["b"].flags.writeable = False
        with pytest.raises(hs.InvalidError, match="read-only"):
            file.read(list(arrays), out=found)


SECTIONS: list[Any] = [
    slice(-3, None),
    slice(None, 3),
    slice(-5, -2),
    slice(-6, None, 2),
    -2,
    (slice(-3, None), slice(0, 2)),
    (1, slice(-2, None)),
]


@pytest.mark.parametrize("section", SECTIONS, ids=str)
@pytest.mark.parametrize("kind", ["zarr", "raw"])
@pytest.mark.parametrize("blocks", [True, False])
def test_a_section_of_several_arrays_is_cut_to_each(tmp_path: Path, kind: str, section: Any, *, blocks: bool) -> None:
    """The end of an array is its own, and so are the dimensions that are left out."""
    tail = () if isinstance(section, tuple) else (2,)
    shapes = [(10, 4, *tail), (20, 6, *tail)] if isinstance(section, tuple) else [(10, 4), (20, 4)]
    expected = {
        name: np.arange(np.prod(shape), dtype="f8").reshape(shape) for name, shape in zip("ab", shapes, strict=True)
    }
    picks = tuple(slice(p, p + 1 or None) if isinstance(p, int) else p for p in np.index_exp[section])
    given = {
        name: -1.0 - np.arange(values[picks].size).reshape(values[picks].shape) for name, values in expected.items()
    }
    target: Any
    if kind == "zarr":
        target = hs.open(tmp_path / "s.zarr", "w", durable=False)
        target.write(expected)
    else:
        with hs.open_raw(tmp_path / "s.raw", "w", durable=False) as new:
            new.write(expected)
        known = {name: (values.shape, "f8") for name, values in expected.items()}
        target = hs.open_raw(tmp_path / "s.raw", "r+", header=0, arrays=known, durable=False)
    with target:
        if blocks:
            target.write(given, section=section)
        else:
            target.iwrite(given, section=section).wait()
        for name, values in expected.items():
            values[picks] = given[name]
            np.testing.assert_array_equal(target.read(name), values)
            np.testing.assert_array_equal(target.read_local(name, section=section), values[picks])
        read = target.read(["a", "b"], section=section) if blocks else target.iread(["a", "b"], section=section).wait()
        assert [np.array_equal(read[name], given[name]) for name in expected] == [True, True]
