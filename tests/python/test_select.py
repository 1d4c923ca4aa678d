"""Selections are what NumPy selects, on any number of ranks, and what travels is what was selected."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest

from mpi_launch import run_ranks
from peak import PEAK
from select_cases import run_case
from server_cases import serve

#: Random cases, by the number of ranks that are threads.
CASES = {1: 120, 3: 120, 4: 120}


@pytest.mark.parametrize("ranks", CASES)
def test_random_selections_equal_numpy(ranks: int, tmp_path: Path) -> None:
    def rank(comm: hs.ThreadComm) -> int:
        return sum(run_case(comm, tmp_path, 7 * ranks, number) for number in range(CASES[ranks]))

    found = hs.threads(ranks, rank)
    assert len({*found}) == 1
    assert found[0] > 10000


@pytest.mark.mpi
@pytest.mark.parametrize(("ranks", "extra"), [(3, {}), (4, {"HYPERSLAB_DIRECT": "0"})])
def test_random_selections_by_processes(ranks: int, extra: dict[str, str], tmp_path: Path) -> None:
    printed = run_ranks(ranks, "selecting", tmp_path, 0, 40, extra_environment=extra)
    assert f"40 cases on {ranks} ranks" in printed


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A store of two arrays in chunks of 64 KiB, in rows of several chunks, and what is in them."""
    rng = np.random.default_rng(5)
    shape = (1024, 1024)
    arrays = {"rho": rng.random(shape), "cell": rng.integers(0, 4000, shape, dtype="i4")}
    path = tmp_path_factory.mktemp("grid") / "a.zarr"
    with hs.open(path, "w") as store:
        store.write(arrays, chunks=(64, 128))
    return path, arrays


def chunk_count(shape: tuple[int, ...], chunks: tuple[int, ...]) -> int:
    """How many chunks an array has."""
    return int(np.prod([-(-extent // chunk) for extent, chunk in zip(shape, chunks, strict=True)]))


@pytest.mark.parametrize("share", [0, 0.0001, 0.01, 0.5, 1])
@pytest.mark.parametrize("way", ["even", "owner", "distribution"])
@pytest.mark.parametrize("positions", [False, True])
def test_what_travels_is_what_was_selected(share: float, way: str, positions: bool, grid: Any) -> None:  # noqa: FBT001
    path, arrays = grid
    ranks = 4

    def rank(comm: hs.ThreadComm) -> Any:
        options: dict[str, Any] = {"positions": positions, "memory": "2MiB"}
        if way == "owner":
            options["owner"] = "cell // 1000"
        elif way == "distribution":
            options["distribution"] = hs.Distribution(arrays["rho"].shape, (2, 2), ("block", "cyclic(8)"))
        with hs.open(path, comm=comm) as store:
            return store.select("rho < share", ["rho", "cell"], parameters={"share": share}, **options)

    found = hs.threads(ranks, rank)
    matches = int((arrays["rho"] < share).sum())
    assert sum(each.count for each in found) == matches
    selected = matches * (8 + 4 + 8 * positions)
    sent = sum(each.report["sent_bytes"] for each in found)
    assert sent <= 1.1 * selected + 64 * chunk_count((1024, 1024), (64, 128))
    # Each rank reads chunks, and no rank reads what another one does.
    stored = sum(array.nbytes for array in arrays.values())
    read = sum(each.report["read_bytes"] for each in found)
    assert read <= 1.02 * stored
    if way != "even":
        assert max(each.report["buffer_bytes"] for each in found) <= 2 << 20
    if way == "owner":
        order = np.argsort(arrays["cell"].ravel() // 1000, kind="stable")
        order = order[arrays["rho"].ravel()[order] < share]
        assert np.array_equal(np.concatenate([each["cell"] for each in found]), arrays["cell"].ravel()[order])


def test_what_is_shared_evenly_and_found_evenly_stays_where_it_is(grid: Any) -> None:
    path, _ = grid

    def rank(comm: hs.ThreadComm) -> Any:
        with hs.open(path, comm=comm) as store:
            return store.select("True", ["rho"]).report

    assert [report["sent_bytes"] for report in hs.threads(4, rank)] == [0] * 4


def test_an_owner_that_is_no_rank_is_an_error_on_all_ranks(grid: Any) -> None:
    path, arrays = grid

    def rank(comm: hs.ThreadComm) -> None:
        with hs.open(path, comm=comm) as store:
            with pytest.raises(hs.InvalidError, match=r"the owner of element \(\d+, \d+\) is \d, and ranks are 0 to 2"):
                store.select("rho > 0.5", owner="cell // 1000")
            with pytest.raises(hs.InvalidError, match="gives float64, not integers"):
                store.select("rho > 0.5", owner="cell / 1000")
            with pytest.raises(hs.InvalidError, match="negative power"):
                store.select("2 ** (cell - 1) > 0", ["rho"])
            with pytest.raises(hs.InvalidError, match="by a distribution or by an owner"):
                store.select("rho > 0.5", owner="cell", distribution=hs.Distribution.block((1024, 1024), 3))
            with pytest.raises(hs.InvalidError, match="gives elements to several ranks"):
                store.select("rho > 0.5", distribution=hs.Distribution.replicated((1024, 1024), 3))
            found = store.select("rho > 0.999", owner="cell % 3")
            wanted = (arrays["rho"] > 0.999) & (arrays["cell"] % 3 == comm.rank)
            assert np.array_equal(found["rho"], arrays["rho"][wanted])

    hs.threads(3, rank)


def test_ranks_that_ask_for_different_things_hear_of_it(grid: Any) -> None:
    path, _ = grid

    def rank(comm: hs.ThreadComm) -> None:
        with hs.open(path, comm=comm) as store:
            with pytest.raises(hs.DisagreementError, match="expression"):
                store.select(f"rho > {comm.rank}", ["rho"])
            with pytest.raises(hs.DisagreementError, match="parameters"):
                store.select("rho > least", ["rho"], parameters={"least": comm.rank})
            with pytest.raises(hs.InvalidError, match="must be a number of bytes"):
                store.select("rho > 1", ["rho"], memory="much" if comm.rank == 1 else "1MiB")
            assert store.select("rho > 1", ["rho"]).count == 0

    hs.threads(3, rank)


def test_fields_of_records(tmp_path: Path) -> None:
    kind = np.dtype([("mass", "<f8"), ("at", [("x", ">f4"), ("y", "<f4")]), ("cell", "<i2"), ("v", "<f4", (3,))])
    records = np.zeros(5000, kind)
    rng = np.random.default_rng(1)
    records["mass"], records["cell"] = rng.random(5000), rng.integers(0, 3000, 5000)
    records["at"]["x"] = rng.normal(size=5000)
    with hs.open(tmp_path / "a.h5", "w") as store:
        store.write("p", records, chunks=(700,))

    def rank(comm: hs.ThreadComm) -> Any:
        with hs.open(tmp_path / "a.h5", comm=comm) as store:
            return store.select("(p.mass > 0.5) & (p.at['x'] < 0)", owner='p["cell"] // 1000')["p"]

    found = hs.threads(3, rank)
    wanted = records[(records["mass"] > 0.5) & (records["at"]["x"] < 0)]
    for number, each in enumerate(found):
        assert each.dtype == kind
        assert each.tobytes() == wanted[wanted["cell"] // 1000 == number].tobytes()


REDUCTIONS = ("count", "sum", "mean", "min", "max")


@pytest.mark.parametrize("name", ["f", "i", "u", "b", "h"])
def test_reductions_equal_numpy_on_any_number_of_ranks(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    shape = (211, 97)
    arrays = {
        "f": rng.normal(size=shape) * 10.0 ** rng.integers(-9, 9, shape),
        "i": rng.integers(-(2**62), 2**62, shape),
        "u": rng.integers(0, 2**64, shape, dtype="u8"),
        "b": rng.random(shape) < 0.3,
        "h": rng.normal(size=shape).astype("f2"),
        "part": rng.integers(0, 10, shape, dtype="i1"),
    }
    with hs.open(tmp_path / "a.zarr", "w") as store:
        store.write(arrays, chunks=(32, 50))

    def rank(comm: hs.ThreadComm) -> list[Any]:
        with hs.open(tmp_path / "a.zarr", comm=comm) as store:
            memory = "1MiB" if comm.size == 3 else "64MiB"
            return [store.reduce(op, name, where, memory=memory) for op in REDUCTIONS for where in (None, "part < 3")]  # type: ignore[arg-type]

    results = [each for ranks in (1, 2, 3, 4) for each in hs.threads(ranks, rank)]
    bits = {tuple(np.asarray(value).tobytes() for value in each) for each in results}
    assert len(bits) == 1, "the same on any number of ranks, to the last bit"
    found = iter(results[0])
    for op in REDUCTIONS:
        for mask in (np.ones(shape, bool), arrays["part"] < 3):
            values, value = arrays[name][mask], next(found)
            if op == "count":
                assert value == values.size
                continue
            with np.errstate(over="ignore"):
                wanted = getattr(np, op)(
                    values.astype("f8") if op == "mean" or (op == "sum" and name in "fh") else values
                )
            if op in ("min", "max"):
                assert value.dtype == values.dtype
                assert value == wanted
            elif op == "sum" and name in "iub":
                assert value == wanted
            else:
                assert np.isclose(value, wanted, rtol=1e-9, atol=1e-9)


def test_histograms_and_reductions_of_nothing(grid: Any) -> None:
    path, arrays = grid
    edges = [0, 10, 11, 1000, 3999]

    def rank(comm: hs.ThreadComm) -> Any:
        with hs.open(path, comm=comm) as store:
            with pytest.raises(hs.InvalidError, match="there is no element, and so no max"):
                store.reduce("max", "rho", "rho > 2")
            assert np.isnan(store.reduce("mean", "rho", "rho > 2"))
            assert store.reduce("sum", "rho", "rho > 2") == 0
            return store.reduce("histogram", "rho", bins=16, range=(0.25, 0.75)), store.reduce(
                "histogram", store["cell"] % 4000, store["rho"] < 0.5, bins=edges
            )

    for uniform, uneven in hs.threads(3, rank):
        counts, bounds = np.histogram(arrays["rho"], 16, (0.25, 0.75))
        assert np.array_equal(uniform[0], counts)
        assert np.array_equal(uniform[1], bounds)
        assert np.array_equal(uneven[0], np.histogram(arrays["cell"][arrays["rho"] < 0.5], edges)[0])


#: Selects from an array of 256 MiB and prints by how much its memory grew at most [B].
FRUGAL = (
    PEAK
    + """
import sys
import hyperslab as hs

with hs.open(sys.argv[1]) as store:
    store.select("rho > 2", ["rho"], memory="1MiB")
    before = peak_bytes()
    assert store.select("rho > 2", ["rho"], memory="16MiB").count == 0
    assert store.select("rho < 2", [], owner="0", memory="16MiB").count == 1 << 25
    assert store.reduce("count", "rho", "rho < 2", memory="16MiB") == 1 << 25
    found = store.select("rho < 0.0625", ["rho"], memory="16MiB")
    assert 1 << 20 < found.count < 1 << 22
print(peak_bytes() - before)
"""
)


def test_memory_stays_within_the_budget(tmp_path: Path) -> None:
    with hs.open(tmp_path / "a.zarr", "w") as store:
        store.create_array("rho", (1 << 25,), "f8", chunks=(1 << 17,))
        for part in range(8):
            values = np.random.default_rng(part).random(1 << 22)
            store["rho"].write(values, section=slice(part << 22, (part + 1) << 22))
    run = [sys.executable, "-c", FRUGAL, str(tmp_path / "a.zarr")]
    grown = int(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
    # The budget, the values that were selected (16 MiB), twice, and what the allocator keeps.
    assert grown < (16 + 2 * 16 + 16) << 20


def test_communicators_with_servers_refuse(tmp_path: Path) -> None:
    with hs.open(tmp_path / "a.zarr", "w") as store:
        store.write("rho", np.arange(9.0))

    def client(io: Any) -> None:
        with hs.open(tmp_path / "a.zarr", comm=io) as store:
            with pytest.raises(hs.UnsupportedError, match="dedicated servers"):
                store.select("rho > 1", ["rho"])
            with pytest.raises(hs.UnsupportedError, match="dedicated servers"):
                store.reduce("max", "rho")
            assert store.read("rho").sum() == 36

    hs.threads(3, lambda comm: serve(comm, 1, client))
