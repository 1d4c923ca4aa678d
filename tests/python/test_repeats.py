"""Calls that ask for what an earlier one asked for, elsewhere in a file: what was agreed holds again, but the place."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest

ROWS, COLUMNS, RANKS = 24, 10, 3
Spread = tuple[str, str]
SPREADS: tuple[Spread, ...] = (("block", "*"), ("*", "block"), ("cyclic(2)", "*"), ("*", "cyclic"))


def on_ranks(run: Callable[[hs.ThreadComm], Any]) -> list[Any]:
    return hs.threads(RANKS, run)


def held(shape: tuple[int, int], spread: Spread) -> hs.Distribution:
    mesh = (1, RANKS) if spread[0] == "*" else (RANKS, 1)
    return hs.Distribution(shape, mesh, spread)


def part(values: np.ndarray[Any, Any], dist: hs.Distribution, rank: int) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(values[np.ix_(*dist.indices(rank))])


@pytest.mark.parametrize("seed", range(6))
def test_calls_of_many_kinds_in_any_order_move_what_they_say(tmp_path: Path, seed: int) -> None:
    """More kinds than are kept, in files of two layouts: sections that wander, arrays by name, types that differ."""
    random = np.random.default_rng(seed)
    shape, names = (ROWS, COLUMNS), ("a", "b", "c")
    kept = {order: {name: random.integers(0, 1000, shape).astype("f8") for name in names} for order in "CF"}
    paths = {order: tmp_path / f"{order}.raw" for order in "CF"}
    for order, values in kept.items():
        paths[order].write_bytes(b"".join(array.tobytes(order) for array in values.values()))
    known = dict.fromkeys(names, (shape, "f8"))
    plans = [
        (
            str(random.choice(["C", "F"])),
            str(random.choice(names)),
            SPREADS[random.integers(len(SPREADS))],
            int(random.integers(0, ROWS - 6)),
            int(random.choice([2, 3, 6])),
            ("write", "read", "read in another type", "together")[random.integers(4)],
            str(random.choice(["independent", "server-directed", "two-phase", ""])) or None,
        )
        for _ in range(120)
    ]

    def run(comm: hs.ThreadComm) -> None:
        expected = {order: {name: array.copy() for name, array in values.items()} for order, values in kept.items()}
        files = {
            order: hs.open_raw(path, "r+", comm=comm, order=order, arrays=known, durable=False)
            for order, path in paths.items()
        }
        for number, (order, name, spread, first, count, verb, strategy) in enumerate(plans):
            file, values = files[order], expected[order]
            dist, section = held((count, COLUMNS), spread), (slice(first, first + count), slice(None))
            options: dict[str, Any] = {"section": section}
            if strategy is not None and number % 2:
                options["strategy"] = strategy
            if verb == "write":
                values[name][section] = number + np.arange(count * COLUMNS).reshape(count, COLUMNS)
                file.write(name, part(values[name][section], dist, comm.rank), dist, **options)
            elif verb == "together":
                whole = held(shape, spread)
                found = file.read(list(names), whole)
                for each in names:
                    assert np.array_equal(found[each], part(values[each], whole, comm.rank)), (number, each)
            else:
                # Which type a rank reads into is its own affair.
                kind = "f4" if verb != "read" and comm.rank == 1 else "f8"
                out = np.full_like(part(values[name][section], dist, comm.rank), -1, dtype=kind)
                file.read(name, dist, out=out, **options)
                assert np.array_equal(out, part(values[name][section], dist, comm.rank)), (number, verb)
        for file in files.values():
            file.close()
        if comm.rank == 0:
            for order, path in paths.items():
                stored = np.fromfile(path).reshape(len(names), -1)
                for name, flat in zip(names, stored, strict=True):
                    assert np.array_equal(flat.reshape(shape, order=order), expected[order][name]), (order, name)

    on_ranks(run)


def test_arrays_of_a_new_file_follow_each_other(tmp_path: Path) -> None:
    """Also after some that were refused in between, and one of another size; a second file begins anew."""

    def run(comm: hs.ThreadComm) -> None:
        dist = hs.Distribution((12,), (comm.size,))
        for turn in range(2):
            path = tmp_path / f"{turn}.raw"
            with hs.open_raw(path, "w", comm=comm, order="C", durable=False) as file:
                for number in range(20):
                    values = np.arange(12.0) + 100 * number + turn
                    file.write({f"a{number}": values[dist.indices(comm.rank)[0]]}, dist)
                    if number == 7:
                        with pytest.raises(hs.InvalidError, match="is written already"):
                            file.write({"a0": values[dist.indices(comm.rank)[0]]}, dist)
                    if number == 15:
                        # Nothing of it stays.
                        with pytest.raises(hs.DisagreementError, match="rank 1"):
                            file.write({f"of rank {min(comm.rank, 1)}": values[dist.indices(comm.rank)[0]] - 1}, dist)
                    if number == 11:
                        other = hs.Distribution((5,), (comm.size,))
                        file.write({"other": np.full(5, 7.0)[other.indices(comm.rank)[0]]}, other)
            expected = [np.arange(12.0) + 100 * number + turn for number in range(20)]
            expected.insert(12, np.full(5, 7.0))
            if comm.rank == 0:
                assert np.array_equal(np.fromfile(path), np.concatenate(expected))

    on_ranks(run)


@pytest.mark.parametrize("kind", ["raw", "zarr"])
def test_ranks_that_give_the_same_arrays_in_other_ways_write_together(tmp_path: Path, kind: str) -> None:
    """Some give what the library takes as it is, others what has to be looked at: each its own way of the same call."""
    values = {name: np.arange(12.0) + 100 * number for number, name in enumerate("abc")}
    dist = hs.Distribution((12,), (RANKS,), ("block",))
    dists: list[Any] = [
        dist,
        dict.fromkeys("abc", dist),
        {"a": dist, "c": dist, "b": hs.Distribution.block((12,), RANKS)},
    ]

    def run(comm: hs.ThreadComm) -> None:
        here: dict[str, Any] = {
            name: part(array[:, None], held_rows, comm.rank)[:, 0] for name, array in values.items()
        }
        if comm.rank == 1:
            here["b"] = here["b"].tolist()
        if comm.rank == 2:
            here["c"] = np.ma.masked_array(here["c"])
        path = tmp_path / f"whole.{kind}"
        with (
            hs.open_raw(path, "w", comm=comm, durable=False) if kind == "raw" else hs.open(path, "w", comm=comm) as file
        ):
            with pytest.raises(hs.InvalidError, match="masked"):
                file.write(here, dist)
            here["c"] = np.asarray(here["c"])
            file.write(here, dists[comm.rank])
            for wrong in ({"a": dist}, {"a": dist, "b": dist, "c": None}, {"a": dist, "b": dist, "d": dist}):
                other = {name * 2: array for name, array in here.items()}
                named = {name * 2: one for name, one in wrong.items()}
                with pytest.raises(hs.InvalidError):
                    file.write(other, named if comm.rank == 0 else dist)

    held_rows = hs.Distribution((12, 1), (RANKS, 1), ("block", "*"))
    on_ranks(run)
    if kind == "raw":
        stored = np.fromfile(tmp_path / "whole.raw").reshape(3, 12)
        assert np.array_equal(stored, [*values.values()])
        return
    with hs.open(tmp_path / "whole.zarr") as store:
        assert sorted(store) == ["a", "b", "c"]
        assert all(np.array_equal(store.read(name), array) for name, array in values.items())


def test_a_section_that_wanders_out_of_the_array_is_refused_on_all_ranks(tmp_path: Path) -> None:
    path = tmp_path / "a.raw"
    np.arange(30.0).tofile(path)

    def run(comm: hs.ThreadComm) -> str:
        dist = hs.Distribution((6,), (comm.size,))
        with hs.open_raw(path, "r", comm=comm, order="C", arrays={"x": ((30,), "f8")}) as file:
            out = np.empty(len(dist.indices(comm.rank)[0]))
            for first in (0, 6, 12):
                file.read("x", dist, out=out, section=slice(first, first + 6))
            with pytest.raises(hs.InvalidError) as refused:
                file.read("x", dist, out=out, section=((27, 6, 1, 6),))
            file.read("x", dist, out=out, section=slice(24, 30))
            assert np.array_equal(out, np.arange(24.0, 30.0)[dist.indices(comm.rank)[0]])
        return str(refused.value)

    told = on_ranks(run)
    assert len(set(told)) == 1
    assert "30" in told[0]


def test_plans_are_shown_for_each_call_and_forced_ones_are_not_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "a.raw"
    np.arange(96.0).tofile(path)

    def run(comm: hs.ThreadComm) -> list[str]:
        dist = hs.Distribution((32,), (comm.size,))
        used = []
        with hs.open_raw(path, "r+", comm=comm, order="C", arrays={"x": ((96,), "f8")}, durable=False) as file:
            for number, strategy in enumerate((None, None, "root-gather", "root-gather", None, "server-directed")):
                values = np.arange(32.0)[dist.indices(comm.rank)[0]]
                at = 32 * (number % 3)
                report = file.write("x", values, dist, section=slice(at, at + 32), strategy=strategy)
                used.append(report.strategy)
        return used

    usual, again, *forced = on_ranks(run)[0]
    assert again == usual
    assert forced == ["root-gather", "root-gather", usual, "server-directed"]


def test_what_replaced_the_file_is_not_taken_for_it(tmp_path: Path) -> None:
    path, other = tmp_path / "a.raw", tmp_path / "b.raw"
    np.arange(24.0).tofile(path)
    np.zeros(24).tofile(other)

    def run(comm: hs.ThreadComm) -> None:
        dist = hs.Distribution((6,), (comm.size,))
        out = np.empty(len(dist.indices(comm.rank)[0]))
        with hs.open_raw(path, "r", comm=comm, order="C", arrays={"x": ((24,), "f8")}) as file:
            for first in (0, 6, 12):
                file.read("x", dist, out=out, section=slice(first, first + 6))
            comm.barrier()
            if comm.rank == 0:
                other.replace(path)
            comm.barrier()
            with pytest.raises(hs.Error):
                file.read("x", dist, out=out, section=slice(18, 24))

    on_ranks(run)


@pytest.mark.parametrize("stderr", ["sys.stderr = None", "sys.stderr.close()"])
def test_a_program_without_stderr_reads_as_others_do(tmp_path: Path, stderr: str) -> None:
    path = tmp_path / "a.raw"
    np.arange(4.0).tofile(path)
    program = f"""
import sys, numpy as np, hyperslab as hs
{stderr}
out = np.empty(4)
with hs.open_raw({str(path)!r}, arrays={{"x": ((4,), "f8")}}) as file:
    file.read("x", hs.Distribution((4,), (1,)), out=out)
    file.read("x", hs.Distribution((4,), (1,)), out=out, order="C")
print(out.sum())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "6.0\n"


def test_a_new_file_grows_up_to_the_longest_that_there_may_be(tmp_path: Path) -> None:
    """And no further ahead: the system would end the program, or refuse what fits."""
    path = tmp_path / "a.raw"
    program = f"""
import resource, numpy as np, hyperslab as hs
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
dist = hs.Distribution((1024,), (1,))
with hs.open_raw({str(path)!r}, "w", durable=False) as file:
    for number in range(8):
        file.write({{f"a{{number}}": np.full(1024, float(number))}}, dist)
    try:
        file.write({{"more": np.zeros(1024)}}, dist)
    except hs.StorageError as error:
        print(type(error).__name__)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "StorageError\n"
    assert np.array_equal(np.fromfile(path), np.repeat(np.arange(8.0), 1024))


def test_batches_whose_parts_differ_do_not_take_over_one_part_for_all(tmp_path: Path) -> None:
    """Arrays one behind the other move as one where the same of each is asked for."""
    path = tmp_path / "a.raw"
    np.zeros((3, 32, 8)).tofile(path)
    known = dict.fromkeys("abc", ((32, 8), "f8"))

    def run(comm: hs.ThreadComm) -> None:
        dist = hs.Distribution((6, 8), (comm.size, 1), ("block", "*"))
        expected = np.zeros((3, 32, 8))
        with hs.open_raw(path, "r+", comm=comm, order="C", arrays=known, durable=False) as file:
            for turn, firsts in enumerate(((0, 0, 0), (6, 6, 6), (12, 12, 12), (18, 2, 26), (3, 3, 3), (9, 20, 9))):
                with file.batch() as batch:
                    for array, first in enumerate(firsts):
                        expected[array, first : first + 6] = 10 * turn + array
                        mine = np.full(dist.local_shape(comm.rank), 10.0 * turn + array)
                        batch.write("abc"[array], mine, dist, section=slice(first, first + 6))
        comm.barrier()
        assert np.array_equal(np.fromfile(path).reshape(3, 32, 8), expected)

    on_ranks(run)


@pytest.mark.parametrize("late", range(RANKS))
def test_no_rank_moves_anything_before_all_have_called(tmp_path: Path, late: int) -> None:
    """Who changes a file and then calls finds that the others read what he wrote, however often they called before."""
    path, dist, turns = tmp_path / "a.raw", held((RANKS * 4, COLUMNS), ("block", "*")), 6
    np.zeros(dist.shape).tofile(path)

    def run(comm: hs.ThreadComm) -> None:
        with hs.open_raw(path, comm=comm, order="C", arrays={"a": (dist.shape, "f8")}) as file:
            out = np.empty(dist.local_shape(comm.rank))
            for turn in range(1, turns):
                if comm.rank == late:
                    time.sleep(0.02)
                    with path.open("r+b") as changed:
                        changed.write(np.full(dist.shape, float(turn)).tobytes())
                file.read("a", dist, out=out)
                assert (out == turn).all(), turn

    on_ranks(run)


@pytest.mark.parametrize("durable", [False, True])
def test_what_ranks_bring_to_a_call_that_fails_is_in_no_file(tmp_path: Path, *, durable: bool) -> None:
    """Calls that came before come again, and now ranks mean different files."""
    dist, small = held((RANKS * 4, COLUMNS), ("block", "*")), held((RANKS, COLUMNS), ("block", "*"))
    names = ("f", "g")

    def run(comm: hs.ThreadComm) -> str:
        files = {name: hs.open_raw(tmp_path / name, "w", comm=comm, order="C", durable=durable) for name in names}
        for number in range(4):
            for file in files.values():
                file.write(f"a{number}", np.full(dist.local_shape(comm.rank), number + 1.0), dist)
        with pytest.raises(hs.DisagreementError) as caught:
            files["g" if comm.rank == 0 else "f"].write("b", np.full(dist.local_shape(comm.rank), 77.0), dist)
        for file in files.values():
            file.write("c", np.full(small.local_shape(comm.rank), 9.0), small)
            file.close()
        return str(caught.value)

    assert len(set(on_ranks(run))) == 1
    expected = np.repeat([1.0, 2.0, 3.0, 4.0, 9.0], [RANKS * 4 * COLUMNS] * 4 + [RANKS * COLUMNS])
    for name in names:
        assert np.array_equal(np.fromfile(tmp_path / name), expected)
