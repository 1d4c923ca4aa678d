"""The same interface without MPI: threads of one process as ranks, or one process alone."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest

from global_arrays import Spread
from mpi_programs.roundtrip import run_cases
from random_cases import some_shape, some_spread

MODULES = [name for _, name, _ in pkgutil.iter_modules(hs.__path__, "hyperslab.") if not name.endswith("__main__")]


@pytest.mark.parametrize("name", ["hyperslab", *MODULES])
def test_examples_in_docstrings_run(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_there_are_examples_to_run() -> None:
    assert sum(doctest.testmod(importlib.import_module(name)).attempted for name in ["hyperslab", *MODULES]) > 20


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
def test_random_transfers_equal_the_oracle(ranks: int, tmp_path: Path) -> None:
    summaries = hs.threads(ranks, lambda comm: run_cases(comm, tmp_path, 7, 60))
    assert len(summaries) == ranks


def test_ownership_equals_the_formulas() -> None:
    """Of local_shape, indices, to_global, owners and slices, for random distributions."""
    random = np.random.default_rng(3)
    for _ in range(300):
        ranks = int(random.integers(1, 9))
        spread = some_spread(random, some_shape(random), ranks)
        check_ownership(spread, ranks)


def check_ownership(spread: Spread, ranks: int) -> None:
    dist = spread.distribution()
    assert (dist.shape, dist.mesh, dist.ndim) == (spread.shape, spread.mesh, len(spread.shape))
    holders = np.zeros(spread.shape, int)
    for rank in range(ranks + 1):
        expected = spread.indices(rank)
        found = dist.indices(rank)
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True)), (spread, rank)
        shape = tuple(len(each) for each in expected)
        assert dist.local_shape(rank) == shape
        if not spread.holds(rank):
            continue
        holders[np.ix_(*expected) if spread.shape else ...] += 1
        if all(shape):
            last = tuple(extent - 1 for extent in shape)
            at = tuple(int(each[-1]) for each in expected)
            assert dist.to_global(rank, last) == at
            assert rank in dist.owners(at)
        if shape:
            with pytest.raises(IndexError, match="is outside"):
                dist.to_global(rank, shape)
    if holders.size:
        assert (holders == dist.replication).all(), spread


def test_slices_where_there_are_any() -> None:
    dist = hs.Distribution((10, 7), (2, 3), ("block", "cyclic"))
    values = np.arange(70).reshape(10, 7)
    for rank in range(6):
        assert np.array_equal(values[dist.slices(rank)], values[np.ix_(*dist.indices(rank))])
    with pytest.raises(hs.InvalidError, match="hint: use indices"):
        hs.Distribution((20,), (2,), ("cyclic(3)",)).slices(0)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (((4, 4), (2,), ("block(1)", "*")), "over 2 ranks covers 2 indices"),
        (((4, 4), (2,), ("blok", "*")), "'blok' is not a way to distribute"),
        (((4, 4), (2,), ("block",)), "dim"),
        (((4, 4), (2,), ("block", "block")), "mesh"),
        (((4, -4), (2,), ("block", "*")), "-4"),
        (((4, 4), (0,), ("block", "*")), "mesh"),
        (((2**40, 2**40), (2,), ("block", "*")), "1099511627776"),
    ],
)
def test_distributions_that_make_no_sense(arguments: tuple[Any, ...], text: str) -> None:
    with pytest.raises(hs.InvalidError, match=text):
        hs.Distribution(*arguments)


def test_one_process_needs_no_communicator(tmp_path: Path) -> None:
    values = np.arange(30, dtype="f4").reshape(5, 6)
    with hs.open(tmp_path / "a.zarr", "w") as store:
        report = store.write("a", values)
        assert (report.bytes, report.seconds > 0) == (120, True)
        assert "\n" not in str(report)
        store.write({"b": values + 1, "c": values.T[::-1].T}, chunks=(2, 6))
        assert store.arrays() == ["a", "b", "c"] == list(store)
        assert "b" in store
        assert "d" not in store
        assert store["b"].chunks == (2, 6)
    with hs.open(tmp_path / "a.zarr") as store:
        both = store.read(["b", "a"])
        assert list(both) == ["b", "a"]
        assert np.array_equal(both["b"], values + 1)
        assert np.array_equal(store.read("c", section=(slice(1, 3), 2)), values[:, ::-1][1:3, 2:3])
    hs.save_npy(tmp_path / "a.npy", values.T, order="F")
    assert np.array_equal(hs.load_npy(tmp_path / "a.npy", section=(slice(2, 5),)), np.load(tmp_path / "a.npy")[2:5])


def test_the_mapping_of_information_is_complete(tmp_path: Path) -> None:
    with hs.open(tmp_path / "a.zarr", "w") as store:
        store.write(
            "a",
            np.zeros((2, 3), "f4"),
            dimension_names=("x", None),
            attributes={"unit": "m", "list": [1, 2.5], "numpy": np.float32(0.5)},
            fill_value=np.nan,
        )
        info = store["a"]
    assert (info.shape, info.dtype, info.ndim) == ((2, 3), np.dtype("f4"), 2)
    assert info.dimension_names == ("x", None)
    assert info.attrs == {"unit": "m", "list": [1, 2.5], "numpy": 0.5}
    assert isinstance(info.fill_value, np.floating)
    assert np.isnan(info.fill_value)


def test_threads_return_and_raise_what_their_functions_do() -> None:
    assert hs.threads(4, lambda comm: (comm.rank, comm.size, comm.Get_rank(), comm.Get_size())) == [
        (rank, 4, rank, 4) for rank in range(4)
    ]

    def fail(comm: hs.ThreadComm) -> None:
        if comm.rank == 2:
            raise KeyError("of rank 2")
        comm.barrier()

    before = threading.active_count()
    with pytest.raises(KeyError, match="of rank 2"):
        hs.threads(4, fail)
    assert threading.active_count() == before


def test_a_step_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    dist = hs.Distribution((8,), (3,))

    def body(comm: hs.ThreadComm) -> None:
        with hs.open(path, "w", comm=comm) as store:
            with store.step("good", attributes={"time": 1}) as step:
                step.write("a", dist.zeros(comm), dist)
                assert step.read("a").shape == (8,)
                step.attrs.replace({"time": 2})
                comm.barrier()
                assert store.groups() == []
                comm.barrier()
            assert store.groups() == ["good"]
            assert store.group("good").attrs == {"time": 2}
            check_given_up(store, dist, comm)
            assert store.groups() == ["good"]
        assert hs.open(path, comm=comm).group("good").arrays() == ["a"]

    hs.threads(3, body)
    assert [found.name for found in tmp_path.iterdir()] == ["a.zarr"]


def check_given_up(store: hs.Group, dist: hs.Distribution, comm: hs.ThreadComm) -> None:
    """An exception on any rank, in the step or before it is published, gives it up on all."""

    def complain() -> None:
        if comm.rank == 1:
            raise ZeroDivisionError("of the program")

    def give_up(before: Callable[[], None] | None) -> None:
        with store.step("bad", before_publish=before) as step:
            step.write("a", dist.zeros(comm), dist)
            if before is None:
                complain()

    for before in (None, complain):
        with pytest.raises(ZeroDivisionError if comm.rank == 1 else hs.PeerError, match="of the program"):
            give_up(before)


@pytest.mark.parametrize("strategy", [None, "server-directed", "two-phase", "root-gather", "independent"])
def test_ranks_read_arrays_that_are_alike_into_types_of_their_own(strategy: str | None, tmp_path: Path) -> None:
    """Whether arrays move as one depends on the types in a rank's memory, in which ranks may differ."""
    names, shape = ["a", "b", "c", "d"], (40, 6)
    stored = {name: np.random.default_rng(i).integers(0, 99, shape).astype("f4") for i, name in enumerate(names)}
    types = [["f4", "f4", "f8", "f8"], ["f4", "f8", "f8", "f8"], ["f8", "f8", "f8", "f4"]]
    path = tmp_path / "alike.raw"
    with hs.open_raw(path, "w", order="C") as file:
        file.write(stored)

    def rank(comm: hs.ThreadComm) -> None:
        dist = hs.Distribution(shape, (comm.size,), ("cyclic", "*"))
        told = dict.fromkeys(names, (shape, "f4"))
        with hs.open_raw(path, comm=comm, order="C", arrays=told, strategy=strategy, subchunk_bytes=4096) as file:
            for _ in range(2):
                out = {
                    name: np.zeros(dist.local_shape(comm.rank), kind)
                    for name, kind in zip(names, types[comm.rank], strict=True)
                }
                file.read(names, dist, out=out)
                for name in names:
                    assert np.array_equal(out[name], stored[name][dist.slices(comm)]), (name, comm.rank)

    hs.threads(len(types), rank)
