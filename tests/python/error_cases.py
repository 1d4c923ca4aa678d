"""Calls that must fail, on all ranks alike, after which the store works as before.

A case is a function of a communicator and a fresh directory. It makes one call that fails and returns what `attempt`
says of it; what it asserts besides must hold on all ranks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np

SHAPE = (12, 8)
#: The rank that differs from the others.
ODD = 1
#: Kind and text of an error.
Outcome = tuple[str, str]
Run = Callable[[Any, Path], Outcome]


@dataclass(frozen=True)
class Case:
    """A failing call and the error that all ranks must get."""

    run: Run
    kind: str
    #: What the text must say.
    words: tuple[str, ...]
    #: Whether the odd rank, whose own exception it was, keeps that one.
    own: bool = False


CASES: dict[str, Case] = {}


def case(kind: str, *words: str, own: bool = False) -> Callable[[Run], Run]:
    """Add a function to the cases."""

    def add(run: Run) -> Run:
        CASES[run.__name__] = Case(run, kind, words, own)
        return run

    return add


def attempt(call: Callable[[], Any]) -> Outcome:
    """The error that a call ends with."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 (any error is the result)
        return (type(error).__name__, str(error))
    return ("none", "the call succeeded")


def spread(comm: Any, shape: tuple[int, ...] = SHAPE) -> hs.Distribution:
    """Rows in blocks."""
    return hs.Distribution(shape, (comm.size,), ("block", *["*"] * (len(shape) - 1)))


def mine(comm: Any, start: float = 0.0, kind: str = "f8") -> np.ndarray:
    """This rank's part of a ramp."""
    values = start + np.arange(np.prod(SHAPE, dtype=int)).reshape(SHAPE)
    return values[spread(comm).slices(comm)].astype(kind)


@contextmanager
def survivor(comm: Any, path: Path, **options: Any) -> Iterator[hs.Group]:
    """A store with an array 'old', of which, and of new ones, no failure in between may take anything away."""
    with hs.open(path / "a.zarr", "w", comm=comm, durable=False, **options) as store:
        store.write("old", mine(comm), spread(comm), chunks=(5, 8))
        yield store
        assert np.array_equal(store.read("old", spread(comm)), mine(comm))
        store.write("new", mine(comm, 5.0), spread(comm))
        assert np.array_equal(store.read("new", spread(comm)), mine(comm, 5.0))
        assert store.arrays() == ["new", "old"]
        comm.barrier()
    assert [found.name for found in path.iterdir() if "hyperslab" in found.name] == []


def of_write(comm: Any, path: Path, *arguments: Any, **options: Any) -> Outcome:
    """How a write fails."""
    with survivor(comm, path) as store:
        return attempt(lambda: store.write(*arguments, **options))


def of_read(comm: Any, path: Path, *arguments: Any, **options: Any) -> Outcome:
    """How a read fails."""
    with survivor(comm, path) as store:
        return attempt(lambda: store.read(*arguments, **options))


# ---- what one rank does differently ----------------------------------------------------------------------------


@case("DisagreementError", "shape of 'a'", "rank 1", "(12, 8)", "(12, 9)")
def shapes_differ(comm: Any, path: Path) -> Outcome:
    dist = spread(comm, (12, 9) if comm.rank == ODD else SHAPE)
    return of_write(comm, path, "a", dist.zeros(comm), dist)


@case("InvalidError", "on rank 1", "'a'", "negative")
def chunks_of_one_rank_are_negative(comm: Any, path: Path) -> Outcome:
    chunks = (-1, 8) if comm.rank == ODD else (5, 8)
    return of_write(comm, path, "a", mine(comm), spread(comm), chunks=chunks)


@case("DisagreementError", "strategy is not given on rank 0", "rank 1", "'root-gather'")
def strategies_differ(comm: Any, path: Path) -> Outcome:
    strategy = "root-gather" if comm.rank == ODD else None
    return of_write(comm, path, "a", mine(comm), spread(comm), strategy=strategy)


@case("InvalidError", "on rank 1", "write of 5", "must be a string, got 5")
def a_name_of_one_rank_is_a_number(comm: Any, path: Path) -> Outcome:
    return of_write(comm, path, 5 if comm.rank == ODD else "a", mine(comm), spread(comm))


@case("InvalidError", "on rank 1", "negative")
def buffers_of_one_rank_are_negative(comm: Any, path: Path) -> Outcome:
    return attempt(lambda: hs.open(path / "b.zarr", "w", comm=comm, buffer_bytes=-1 if comm.rank == ODD else None))


@case("InvalidError", "on rank 1", "neither 'C'")
def the_order_of_one_rank_is_none(comm: Any, path: Path) -> Outcome:
    order: Any = "Q" if comm.rank == ODD else "C"
    return attempt(lambda: hs.open_raw(path / "b.raw", "w", comm=comm, order=order))


@case("DisagreementError", "element type of 'a'", "float32", "float64")
def types_differ(comm: Any, path: Path) -> Outcome:
    return of_write(comm, path, "a", mine(comm, kind="f4" if comm.rank == ODD else "f8"), spread(comm))


@case("DisagreementError", "distribution of 'a'")
def distributions_differ(comm: Any, path: Path) -> Outcome:
    dist = hs.Distribution(SHAPE, (comm.size,), ("cyclic" if comm.rank == ODD else "block", "*"))
    return of_write(comm, path, "a", dist.zeros(comm), dist)


@case("DisagreementError", "'a'", "'b'")
def names_differ(comm: Any, path: Path) -> Outcome:
    return of_write(comm, path, "b" if comm.rank == ODD else "a", mine(comm), spread(comm))


@case("DisagreementError", "attributes")
def attributes_differ(comm: Any, path: Path) -> Outcome:
    return of_write(comm, path, "a", mine(comm), spread(comm), attributes={"number": int(comm.rank == ODD)})


@case("DisagreementError", "chunks is (4, 4) on rank 0", "(4, 5) on rank 1")
def chunks_differ(comm: Any, path: Path) -> Outcome:
    return of_write(comm, path, "a", mine(comm), spread(comm), chunks=(4, 4 + (comm.rank == ODD)))


@case("DisagreementError", "section of 'old'")
def sections_differ(comm: Any, path: Path) -> Outcome:
    dist = spread(comm, (4, 8))
    return of_read(comm, path, "old", dist, section=(slice(comm.rank == ODD, 4 + (comm.rank == ODD)),))


@case("DisagreementError", "read", "write")
def calls_differ(comm: Any, path: Path) -> Outcome:
    with survivor(comm, path) as store:
        if comm.rank == ODD:
            return attempt(lambda: store.read("old", spread(comm)))
        return attempt(lambda: store.write("a", mine(comm), spread(comm)))


@case("DisagreementError", "path")
def paths_differ(comm: Any, path: Path) -> Outcome:
    return attempt(lambda: hs.open(path / f"{comm.rank == ODD}.zarr", "w", comm=comm))


@case("DisagreementError", "mode")
def modes_differ(comm: Any, path: Path) -> Outcome:
    return attempt(lambda: hs.open(path / "a.zarr", "x" if comm.rank == ODD else "w", comm=comm))


@case("InvalidError", "rank 1", "local part of 'a'", "expected shape", "hint:")
def a_local_part_has_the_wrong_shape(comm: Any, path: Path) -> Outcome:
    array = mine(comm)[:, :-1] if comm.rank == ODD else mine(comm)
    return of_write(comm, path, "a", array, spread(comm))


@case("InvalidError", "rank 1", "texts of 'a' are expected, found")
def a_part_holds_objects(comm: Any, path: Path) -> Outcome:
    return of_write(comm, path, "a", mine(comm).astype("O" if comm.rank == ODD else "f8"), spread(comm))


@case("DisagreementError", "'a'", "datetime64[s]", "float64", "hint:")
def a_part_holds_dates(comm: Any, path: Path) -> Outcome:
    return of_write(comm, path, "a", mine(comm).astype("M8[s]" if comm.rank == ODD else "f8"), spread(comm))


@case("InvalidError", "rank 1", "the local part must be an array, got an object of type set", "hint:")
def a_part_is_a_set(comm: Any, path: Path) -> Outcome:
    return of_write(comm, path, "a", set(mine(comm).flat) if comm.rank == ODD else mine(comm), spread(comm))


@case("InvalidError", "rank 1", "Distribution", "got (2, 2)")
def a_distribution_is_none(comm: Any, path: Path) -> Outcome:
    return of_write(comm, path, "a", mine(comm), (2, 2) if comm.rank == ODD else spread(comm))


@case("InvalidError", "rank 1", "halo")
def guard_cells_leave_nothing(comm: Any, path: Path) -> Outcome:
    return of_write(comm, path, "a", mine(comm), spread(comm), halo=50 if comm.rank == ODD else 0)


@case("InvalidError", "rank 1", "attributes cannot have such a value")
def attributes_are_no_json(comm: Any, path: Path) -> Outcome:
    return of_write(comm, path, "a", mine(comm), spread(comm), attributes={"a": {1, 2}} if comm.rank == ODD else {})


@case("InvalidError", "rank 1", "read-only")
def the_target_is_read_only(comm: Any, path: Path) -> Outcome:
    out = mine(comm)
    out.flags.writeable = comm.rank != ODD
    return of_read(comm, path, "old", spread(comm), out=out)


@case("InvalidError", "rank 1", "expected shape")
def the_target_has_the_wrong_shape(comm: Any, path: Path) -> Outcome:
    return of_read(comm, path, "old", spread(comm), out=mine(comm)[: -1 if comm.rank == ODD else None])


@case("InvalidError", "strategy 'magic'", "server-directed")
def a_strategy_is_unknown(comm: Any, path: Path) -> Outcome:
    return of_write(comm, path, "a", mine(comm), spread(comm), strategy="magic")


@case("InvalidError", "rank 1", "negative")
def a_section_is_negative(comm: Any, path: Path) -> Outcome:
    return of_read(comm, path, "old", spread(comm), section=((-3 if comm.rank == ODD else 0, 1, 12, 1), slice(None)))


# ---- what all ranks ask alike, in vain -------------------------------------------------------------------------


@case("InvalidError", "section", "(12, 8)")
def a_section_is_out_of_range(comm: Any, path: Path) -> Outcome:
    return of_write(comm, path, "old", mine(comm), spread(comm), section=((3, 1, 12, 1), (0, 1, 8, 1)))


@case("InvalidError", "section", "block")
def blocks_of_a_section_overlap(comm: Any, path: Path) -> Outcome:
    return of_read(comm, path, "old", spread(comm, (4, 8)), section=((0, 1, 2, 2), (0, 1, 8, 1)))


@case("InvalidError", "shape", "(12, 8)", "(3, 8)", "hint:")
def a_distribution_does_not_fit_the_section(comm: Any, path: Path) -> Outcome:
    return of_read(comm, path, "old", spread(comm), section=(slice(0, 3),))


@case("InvalidError", "3 dimensions", "(12, 8)")
def a_section_has_too_many_dimensions(comm: Any, path: Path) -> Outcome:
    return of_read(comm, path, "old", spread(comm), section=(slice(None),) * 3)


@case("NotFoundError", "no array 'a'", "hint:")
def an_array_is_missing(comm: Any, path: Path) -> Outcome:
    return of_read(comm, path, "a", spread(comm))


@case("NotFoundError", "no array 'a'")
def an_array_to_change_is_missing(comm: Any, path: Path) -> Outcome:
    return of_write(comm, path, "a", mine(comm), spread(comm), section=(slice(0, 12),))


@case("ExistsError", "'old' exists already", "hint:", "overwrite")
def an_array_exists(comm: Any, path: Path) -> Outcome:
    return of_write(comm, path, "old", mine(comm), spread(comm))


@case("InvalidError", "'../a' cannot be the name", "hint:")
def a_name_leaves_the_store(comm: Any, path: Path) -> Outcome:
    return of_write(comm, path, "../a", mine(comm), spread(comm))


@case("InvalidError", "'old'", "twice")
def a_name_is_given_twice(comm: Any, path: Path) -> Outcome:
    return of_read(comm, path, ["old", "old"], spread(comm))


@case("InvalidError", "independent", "cannot carry out", "hint:")
def a_forced_strategy_cannot_do_it(comm: Any, path: Path) -> Outcome:
    dist = hs.Distribution(SHAPE, (comm.size,), ("cyclic", "*"))
    return of_write(comm, path, "a", dist.zeros(comm), dist, chunks=(12, 8), strategy="independent")


@case("InvalidError", "buffers", "4096 B", "hint:")
def buffers_are_too_small(comm: Any, path: Path) -> Outcome:
    dist = hs.Distribution((100, 100), (comm.size,), ("cyclic", "*"))
    with survivor(comm, path, buffer_bytes=4096) as store:
        return attempt(lambda: store.write("a", dist.zeros(comm), dist, chunks=(100, 100)))


@case("InvalidError", "chunk")
def a_chunk_has_no_extent(comm: Any, path: Path) -> Outcome:
    return of_write(comm, path, "a", mine(comm), spread(comm), chunks=(0, 8))


@case("InvalidError", "chunk")
def chunks_have_too_few_dimensions(comm: Any, path: Path) -> Outcome:
    return of_write(comm, path, "a", mine(comm), spread(comm), chunks=(4,))


@case("InvalidError", "dimension")
def names_of_dimensions_are_too_few(comm: Any, path: Path) -> Outcome:
    return of_write(comm, path, "a", mine(comm), spread(comm), dimension_names=("x",))


@case("InvalidError", "fill")
def a_fill_value_does_not_fit(comm: Any, path: Path) -> Outcome:
    return of_write(comm, path, "a", mine(comm), spread(comm), dtype="u1", fill_value=-1)


@case("InvalidError", "(3, 7)", "(12, 8)", "hint:")
def what_is_appended_does_not_fit(comm: Any, path: Path) -> Outcome:
    dist = spread(comm, (3, 7))
    with survivor(comm, path) as store:
        return attempt(lambda: store.append("old", dist.zeros(comm), dist))


@case("ExistsError", "'old'", "taken", "hint:")
def a_step_has_the_name_of_an_array(comm: Any, path: Path) -> Outcome:
    with survivor(comm, path) as store:
        return attempt(lambda: store.step("old"))


@case("UnsupportedError", "cannot hold another step")
def a_step_in_a_step(comm: Any, path: Path) -> Outcome:
    with survivor(comm, path) as store, store.step("outer") as step:
        return attempt(lambda: step.step("inner"))


@case("NotFoundError", "no group 'a'", "hint:")
def a_group_is_missing(comm: Any, path: Path) -> Outcome:
    with survivor(comm, path) as store:
        return attempt(lambda: store.group("a"))


@case("InvalidError", "no distribution", "hint:")
def nobody_says_who_holds_what(comm: Any, path: Path) -> Outcome:
    return of_write(comm, path, "a", mine(comm))


@case("InvalidError", "reading only", "hint:")
def a_store_for_reading_is_written(comm: Any, path: Path) -> Outcome:
    with survivor(comm, path), hs.open(path / "a.zarr", comm=comm) as store:
        return attempt(lambda: store.write("a", mine(comm), spread(comm)))


@case("ExistsError", "exists already", "hint:")
def a_store_to_create_exists(comm: Any, path: Path) -> Outcome:
    with survivor(comm, path):
        return attempt(lambda: hs.open(path / "a.zarr", "x", comm=comm))


@case("NotFoundError", "does not exist", "hint:")
def a_store_is_missing(comm: Any, path: Path) -> Outcome:
    return attempt(lambda: hs.open(path / "a.zarr", comm=comm))


@case("InvalidError", "mode must be 'r', 'r+', 'a', 'w' or 'x', got 'q'")
def a_mode_is_unknown(comm: Any, path: Path) -> Outcome:
    return attempt(lambda: hs.open(path / "a.zarr", "q", comm=comm))  # type: ignore[arg-type]


# ---- pieces of each rank's own ---------------------------------------------------------------------------------


def rows(comm: Any, first: int = 0, last: int = 12) -> hs.Boxes:
    """Some rows as one box of the odd rank; the other ranks hold nothing."""
    return hs.Boxes(SHAPE, [(slice(first, last), slice(0, 8))] if comm.rank == ODD else [])


def of_pieces(comm: Any, path: Path, pieces: hs.Pieces, **options: Any) -> Outcome:
    """How writing pieces fails, to new arrays and, the same, over a section of an old one."""
    arrays = pieces.empty(comm, "f8")
    for array in arrays if isinstance(arrays, list) else [arrays]:
        array[...] = 1.0
    with survivor(comm, path) as store:
        outcome = attempt(lambda: store.write("a", arrays, pieces, dtype="f8", chunks=(5, 3), **options))
        again = attempt(lambda: store.write("old", arrays, pieces, section=(slice(None), slice(None)), **options))
        assert again[0] == outcome[0], again
        return outcome


@case("InvalidError", "element (4, 2) of 'a'", "ranks 0 and 2", "overlap", "hint:")
def boxes_of_two_ranks_overlap(comm: Any, path: Path) -> Outcome:
    boxes = {0: [(slice(0, 5), slice(0, 8))], 1: [], 2: [((4, 2), (6, 3)), ((8, 0), (12, 8))]}
    return of_pieces(comm, path, hs.Boxes(SHAPE, boxes[comm.rank]))


@case("InvalidError", "element (3, 7) of 'a'", "rank 1", "overlap", "hint:")
def boxes_of_one_rank_overlap(comm: Any, path: Path) -> Outcome:
    boxes = [(slice(0, 4), slice(0, 8)), (slice(3, 6), slice(7, 8))] if comm.rank == ODD else []
    return of_pieces(comm, path, hs.Boxes(SHAPE, boxes))


@case("InvalidError", "element (1, 5) of 'a'", "ranks 0 and 1", "overlap", "hint:")
def maps_of_two_ranks_overlap(comm: Any, path: Path) -> Outcome:
    maps = {0: [13, 0, 95], 1: [1, 13, 2], 2: [3]}
    return of_pieces(comm, path, hs.ElementMap(SHAPE, maps[comm.rank]))


@case("InvalidError", "element (1, 5) of 'a'", "rank 1", "overlap", "hint:")
def a_map_names_an_element_twice(comm: Any, path: Path) -> Outcome:
    return of_pieces(comm, path, hs.ElementMap(SHAPE, [13, 4, 13] if comm.rank == ODD else []))


@case("InvalidError", "element (0, 3) of 'a'", "ranks 0 and 1", "overlap")
def runs_overlap_in_a_raw_file(comm: Any, path: Path) -> Outcome:
    """The older file stays."""
    name = make_raw(comm, path)
    before = name.read_bytes()
    runs = {0: ([0], [4]), 1: ([3], [2]), 2: ([], [])}[comm.rank]
    pieces = hs.Runs(SHAPE, *runs)
    with hs.open_raw(name, "r+", comm=comm, header=4, arrays={"a": (SHAPE, "f8")}, durable=False) as file:
        outcome = attempt(lambda: file.write({"a": pieces.empty(comm)}, pieces))
    comm.barrier()
    assert name.read_bytes() == before
    return outcome


@case("InvalidError", "element (0, 3)", "ranks 0 and 1", "overlap")
def runs_overlap_in_an_npy_file(comm: Any, path: Path) -> Outcome:
    runs = {0: ([0], [4]), 1: ([3], [2]), 2: ([], [])}[comm.rank]
    pieces = hs.Runs(SHAPE, *runs)
    outcome = attempt(lambda: hs.save_npy(path / "a.npy", pieces.empty(comm), pieces, comm=comm, dtype="f8"))
    comm.barrier()
    assert list(path.iterdir()) == []
    return outcome


@case("InvalidError", "box 0", "rank 1", "(12, 8)", "hint:")
def a_box_reaches_beyond_the_array(comm: Any, path: Path) -> Outcome:
    return of_pieces(comm, path, rows(comm, 10, 13))


@case("InvalidError", "box 0", "rank 1", "(12, 8)", "hint:")
def a_box_to_read_reaches_beyond_the_array(comm: Any, path: Path) -> Outcome:
    return of_read(comm, path, "old", rows(comm, 10, 13))


@case("InvalidError", "run of 3 elements from element 94", "rank 1", "96 elements", "hint:")
def a_run_reaches_beyond_the_array(comm: Any, path: Path) -> Outcome:
    return of_pieces(comm, path, hs.Runs(SHAPE, [94], [3]) if comm.rank == ODD else hs.Runs(SHAPE, [comm.rank], [1]))


@case("InvalidError", "run of 1 elements from element 96", "rank 1", "hint:")
def a_map_to_read_reaches_beyond_the_array(comm: Any, path: Path) -> Outcome:
    return of_read(comm, path, "old", hs.ElementMap(SHAPE, [0, 96] if comm.rank == ODD else [0, 1]))


@case("InvalidError", "rank 1", "2 boxes need as many local arrays, got 1")
def there_are_fewer_arrays_than_boxes(comm: Any, path: Path) -> Outcome:
    boxes = [(slice(0, 2), slice(0, 8)), (slice(2, 4), slice(0, 8))] if comm.rank == ODD else []
    arrays = [np.zeros((2, 8))] if comm.rank == ODD else []
    return of_write(comm, path, "a", arrays, hs.Boxes(SHAPE, boxes), dtype="f8")


@case("InvalidError", "rank 1", "2 boxes need as many local arrays, got 3")
def there_are_more_arrays_to_read_into_than_boxes(comm: Any, path: Path) -> Outcome:
    boxes = [(slice(0, 2), slice(0, 8)), (slice(2, 4), slice(0, 8))] if comm.rank == ODD else []
    arrays = [np.zeros((2, 8))] * 3 if comm.rank == ODD else []
    return of_read(comm, path, "old", hs.Boxes(SHAPE, boxes), out=arrays)


@case("InvalidError", "local array 0 of 'a'", "(12, 8)", "rank 1", "(8, 12)", "hint:")
def a_local_array_does_not_fit_its_box(comm: Any, path: Path) -> Outcome:
    arrays = [np.zeros((8, 12))] if comm.rank == ODD else []
    return of_write(comm, path, "a", arrays, rows(comm), dtype="f8")


@case("InvalidError", "local array 0 of 'old'", "(3,)", "rank 1", "(2,)", "hint:")
def an_array_to_read_into_does_not_fit_the_map(comm: Any, path: Path) -> Outcome:
    return of_read(comm, path, "old", hs.ElementMap(SHAPE, [5, 7, 7]), out=np.zeros(2 if comm.rank == ODD else 3))


@case("DisagreementError", "'a'", "(12, 8)", "(12, 9)", "rank 1")
def shapes_of_pieces_differ(comm: Any, path: Path) -> Outcome:
    pieces = hs.ElementMap((12, 9) if comm.rank == ODD else SHAPE, [comm.rank])
    return of_write(comm, path, "a", np.zeros(1), pieces, dtype="f8")


@case("DisagreementError", "'a'", "pieces", "rank 1")
def one_rank_has_pieces_and_the_others_a_distribution(comm: Any, path: Path) -> Outcome:
    pieces = hs.Boxes(SHAPE, [spread(comm).slices(comm)])
    if comm.rank == ODD:
        return of_write(comm, path, "a", [mine(comm)], pieces)
    return of_write(comm, path, "a", mine(comm), spread(comm))


@case("InvalidError", "'a'", "rank 0", "type", "hint:", "dtype")
def a_rank_without_pieces_knows_no_type(comm: Any, path: Path) -> Outcome:
    pieces = rows(comm)
    return of_write(comm, path, "a", pieces.empty(comm), pieces)


@case("InvalidError", "type", "hint:", "dtype")
def an_npy_file_of_no_known_type(comm: Any, path: Path) -> Outcome:
    arrays = [np.zeros(SHAPE)] if comm.rank == ODD else []
    outcome = attempt(lambda: hs.save_npy(path / "a.npy", arrays, rows(comm), comm=comm))
    comm.barrier()
    assert list(path.iterdir()) == []
    return outcome


@case("InvalidError", "shape", "(12, 8)", "(3, 8)", "hint:")
def pieces_do_not_fit_the_section(comm: Any, path: Path) -> Outcome:
    return of_read(comm, path, "old", rows(comm), section=(slice(0, 3),))


@case("InvalidError", "strategy 'fast'", "disk-directed")
def a_strategy_for_pieces_is_unknown(comm: Any, path: Path) -> Outcome:
    return of_pieces(comm, path, rows(comm), strategy="fast")


@case("InvalidError", "data-sieving", "cannot carry out", "'a'", "cannot share a chunk", "hint:", "server-directed")
def pieces_and_a_strategy_that_cannot_do_it(comm: Any, path: Path) -> Outcome:
    with survivor(comm, path) as store:
        write = lambda: store.write("a", [mine(comm)], mine_as_box(comm), strategy="data-sieving")  # noqa: E731
        return attempt(write)


def mine_as_box(comm: Any) -> hs.Boxes:
    """This rank's rows as a box."""
    return hs.Boxes(SHAPE, [spread(comm).slices(comm)])


@case("InvalidError", "buffers", "4096 B", "hint:")
def buffers_are_smaller_than_a_chunk_of_pieces(comm: Any, path: Path) -> Outcome:
    pieces = hs.Boxes((100, 100), [((comm.rank, 0), (comm.rank + 1, 100))])
    with survivor(comm, path, buffer_bytes=4096) as store:
        return attempt(lambda: store.write("a", pieces.empty(comm), pieces, chunks=(100, 100)))


@case("InvalidError", "buffers", "4 B", "hint:")
def buffers_hold_no_element_of_a_raw_file(comm: Any, path: Path) -> Outcome:
    """The older file stays."""
    name = make_raw(comm, path)
    before = name.read_bytes()
    pieces = mine_as_box(comm)

    def write() -> None:
        with hs.open_raw(name, "w", comm=comm, durable=False, buffer_bytes=4) as file:
            file.write({"a": [mine(comm)]}, pieces)

    outcome = attempt(write)
    assert name.read_bytes() == before
    return outcome


# ---- files that are not what they should be --------------------------------------------------------------------


def of_open(comm: Any, path: Path, files: dict[str, str], mode: Any = "r") -> Outcome:
    """How opening a directory with these files fails; nothing in it may change."""
    store = path / "a.zarr"
    if comm.rank == 0:
        store.mkdir()
        for name, content in files.items():
            (store / name).write_text(content)
    comm.barrier()
    outcome = attempt(lambda: hs.open(store, mode, comm=comm))
    assert {found.name: found.read_text() for found in store.iterdir()} == files
    return outcome


@case("CorruptError", "zarr.json")
def metadata_are_no_json(comm: Any, path: Path) -> Outcome:
    return of_open(comm, path, {"zarr.json": "{not json"})


@case("NotFoundError", "a store of Zarr v2", "can only be read", "hint:", "mode 'r'")
def a_store_is_of_zarr_2(comm: Any, path: Path) -> Outcome:
    return of_open(comm, path, {".zgroup": '{"zarr_format": 2}'}, "r+")


@case("ExistsError", "not a Zarr v3 store, and not empty", "hint:")
def a_directory_with_other_things_is_not_erased(comm: Any, path: Path) -> Outcome:
    return of_open(comm, path, {"thesis.txt": "ten years of work"}, "w")


@case("UnsupportedError", "is an array", "hint:")
def an_array_is_opened_as_a_group(comm: Any, path: Path) -> Outcome:
    with survivor(comm, path) as store:
        return attempt(lambda: hs.open(Path(store.path) / "old", "r+", comm=comm))


def of_damage(comm: Any, path: Path, damage: Callable[[bytes], bytes], name: str = "c.1.0") -> Outcome:
    """How reading fails when a file of the array 'bad' is damaged; others can be read."""
    with survivor(comm, path) as store:
        with store.step("step") as step:
            step.write("bad", mine(comm), spread(comm), chunks=(5, 8))
        if comm.rank == 0:
            chunk = path / "a.zarr" / "step" / "bad" / name
            chunk.write_bytes(damage(chunk.read_bytes()))
        comm.barrier()
        return attempt(lambda: store.group("step").read("bad", spread(comm)))


@case("CorruptError", "c.1.0", "damaged", "324 B", "100 B", "hint:")
def a_chunk_is_truncated(comm: Any, path: Path) -> Outcome:
    return of_damage(comm, path, lambda content: content[:100])


@case("CorruptError", "c.1.0", "damaged", "CRC-32C", "hint:")
def a_bit_of_a_chunk_is_flipped(comm: Any, path: Path) -> Outcome:
    return of_damage(comm, path, lambda content: content[:50] + bytes([content[50] ^ 4]) + content[51:])


@case("CorruptError", "c.1.0", "damaged")
def a_chunk_is_too_long(comm: Any, path: Path) -> Outcome:
    return of_damage(comm, path, lambda content: content + b"x")


@case("CorruptError", "zarr.json")
def metadata_of_an_array_are_cut_off(comm: Any, path: Path) -> Outcome:
    return of_damage(comm, path, lambda content: content[:40], "zarr.json")


@case("UnsupportedError", "lzma")
def a_codec_is_unknown(comm: Any, path: Path) -> Outcome:
    def change(content: bytes) -> bytes:
        metadata = json.loads(content)
        metadata["codecs"].append({"name": "lzma", "configuration": {}})
        return json.dumps(metadata).encode()

    return of_damage(comm, path, change, "zarr.json")


@case("NotADirectoryError StorageError NotFoundError", "a.zarr")
def a_store_lies_below_a_file(comm: Any, path: Path) -> Outcome:
    if comm.rank == 0:
        (path / "file").write_text("not a directory")
    comm.barrier()
    return attempt(lambda: hs.open(path / "file" / "a.zarr", "w", comm=comm))


# ---- raw and npy files -----------------------------------------------------------------------------------------


def make_raw(comm: Any, path: Path) -> Path:
    """A raw file with a header of 4 bytes and one array."""
    with hs.open_raw(path / "a.raw", "w", comm=comm, header=b"head", durable=False) as file:
        file.write({"a": mine(comm)}, spread(comm))
    return path / "a.raw"


@case("CorruptError", "772 B", "768 B", "hint:")
def a_raw_file_has_another_length(comm: Any, path: Path) -> Outcome:
    name = make_raw(comm, path)
    return attempt(lambda: hs.open_raw(name, comm=comm, arrays={"a": (SHAPE, "f8")}))


@case("NotFoundError", "a.raw", "does not exist")
def a_raw_file_is_missing(comm: Any, path: Path) -> Outcome:
    return attempt(lambda: hs.open_raw(path / "a.raw", comm=comm, arrays={"a": (SHAPE, "f8")}))


@case("NotFoundError", "no array 'b', only 'a'")
def a_raw_file_has_no_such_array(comm: Any, path: Path) -> Outcome:
    name = make_raw(comm, path)
    with hs.open_raw(name, comm=comm, header=4, arrays={"a": (SHAPE, "f8")}) as file:
        return attempt(lambda: file.read("b", spread(comm)))


@case("DisagreementError", "'b'", "not given", "rank 1")
def a_rank_writes_an_array_less_into_a_raw_file(comm: Any, path: Path) -> Outcome:
    with hs.open_raw(path / "a.raw", "w", comm=comm, order="C", durable=False) as file:
        names = ("a",) if comm.rank == ODD else ("a", "b")
        outcome = attempt(lambda: file.write({name: mine(comm) for name in names}, spread(comm)))
        file.write({name: mine(comm, start) for start, name in enumerate("cd")}, spread(comm))
    found = np.fromfile(path / "a.raw").reshape(2, *SHAPE)[:, *spread(comm).slices(comm)]
    assert np.array_equal(found, [mine(comm), mine(comm, 1.0)])
    return outcome


@case("DisagreementError", "ask for different things", "operation is write on rank 0, but close on rank 1")
def a_rank_closes_a_raw_file_into_which_others_write(comm: Any, path: Path) -> Outcome:
    file = hs.open_raw(path / "a.raw", "w", comm=comm, durable=False)
    arrays = {"a": mine(comm), "b": mine(comm)}
    return attempt(lambda: file.close() if comm.rank == ODD else file.write(arrays, spread(comm)))


@case("DisagreementError", "ask for different things", "file or store is", "/a.raw' on rank 0", "/a.zarr' on rank 1")
def a_rank_writes_into_a_store_and_others_into_a_raw_file(comm: Any, path: Path) -> Outcome:
    with survivor(comm, path) as store, hs.open_raw(path / "a.raw", "w", comm=comm, durable=False) as file:
        arrays = {"a": mine(comm), "b": mine(comm)}
        target: Any = store if comm.rank == ODD else file
        return attempt(lambda: target.write(arrays, spread(comm)))


@case("DisagreementError", "header")
def headers_differ(comm: Any, path: Path) -> Outcome:
    make_raw(comm, path)
    outcome = attempt(lambda: hs.open_raw(path / "a.raw", "w", comm=comm, header=bytes([comm.rank == ODD])))
    assert (path / "a.raw").stat().st_size == 772
    return outcome


@case("PeerError", "rank 1", "ValueError: of the program", own=True)
def a_raw_file_is_given_up(comm: Any, path: Path) -> Outcome:
    """After an error of the program on one rank the older file stays, and all ranks end."""
    name = make_raw(comm, path)
    before = name.read_bytes()

    def write() -> None:
        with hs.open_raw(name, "w", comm=comm, durable=False) as file:
            file.write({"a": mine(comm, 9.0)}, spread(comm))
            if comm.rank == ODD:
                raise ValueError("of the program")

    outcome = attempt(write)
    assert name.read_bytes() == before
    if comm.rank == ODD:
        assert outcome == ("ValueError", "of the program")
    return outcome


@case("CorruptError", "a.npy")
def an_npy_file_is_none(comm: Any, path: Path) -> Outcome:
    if comm.rank == 0:
        (path / "a.npy").write_bytes(b"PK\3\4 something else" * 20)
    comm.barrier()
    return attempt(lambda: hs.load_npy(path / "a.npy", spread(comm), comm=comm))


@case("CorruptError", "a.npy", "B")
def an_npy_file_is_cut_off(comm: Any, path: Path) -> Outcome:
    hs.save_npy(path / "a.npy", mine(comm), spread(comm), comm=comm, durable=False)
    if comm.rank == 0:
        (path / "a.npy").write_bytes((path / "a.npy").read_bytes()[:-8])
    comm.barrier()
    return attempt(lambda: hs.load_npy(path / "a.npy", spread(comm), comm=comm))
