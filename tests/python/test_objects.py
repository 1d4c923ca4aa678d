"""Zarr stores in an object store in memory: what comes back, what is refused, who dies, is late or hears nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import hyperslab as hs
import numpy as np
import pytest
import zarr
import zarr.core.buffer.cpu
import zarr.storage

from error_cases import attempt
from global_arrays import same
from memories import RANKS, ROWS, SHAPE, VALUES, in_zarr, mine
from mpi_programs.roundtrip import Runner
from random_cases import Case, Random


def made() -> hs.ObjectMemory:
    """An object store with a Zarr store in it."""
    memory = hs.ObjectMemory()
    hs.open(memory / "a.zarr", "w").close()
    return memory


def hidden(memory: hs.ObjectMemory) -> list[str]:
    return [name for name in memory if "hyperslab" in name]


def shown(memory: hs.ObjectMemory) -> dict[str, bytes]:
    return {name: content for name, content in memory.items() if "hyperslab" not in name}


# ---- what goes there comes back --------------------------------------------------------------------------------


class InObjects(Runner):
    """Cases in an object store: new arrays and steps; parts are changed, and arrays made longer, in steps only."""

    def one(
        self, store: hs.Group, steps: dict[str, hs.Step], case: Case, random: Random, expected: dict[str, Any]
    ) -> None:
        if case.form == "zarr":
            super().one(store, steps, case, random, expected)

    def change(self, store: hs.Group, case: Case, random: Random, stored: dict[str, Any]) -> None:
        if isinstance(store, hs.Step):
            super().change(store, case, random, stored)

    def grow(self, store: hs.Group, case: Case, random: Random, stored: dict[str, Any]) -> None:
        if isinstance(store, hs.Step):
            super().grow(store, case, random, stored)

    def check_with_other_tools(self, expected: dict[str, Any]) -> None:
        assert isinstance(self.directory, hs.ObjectMemory)
        group = in_zarr(self.directory, "cases.zarr")
        for name, values in expected.items():
            found = group[name]
            assert isinstance(found, zarr.Array)
            same(np.asarray(found[...]), values, f"zarr-python's '{name}'")


@pytest.mark.parametrize("disturbed", [0.0, 0.05])
@pytest.mark.parametrize("ranks", [1, 4])
def test_random_transfers_equal_the_oracle(ranks: int, disturbed: float) -> None:
    memory = hs.ObjectMemory()
    memory.disturb_by_chance(7, disturbed)
    hs.threads(ranks, lambda comm: InObjects(comm, memory).run(13, range(40)))  # type: ignore[arg-type]
    assert memory.deliver() > 0 or not disturbed
    assert len(list(memory)) > 30
    # What came late lay under a name that was free again.
    assert not hidden(memory) or disturbed


def test_zarr_python_reads_a_copy() -> None:
    memory = hs.ObjectMemory()

    def save(comm: hs.ThreadComm) -> None:
        with hs.open(memory, "x", comm=comm) as store:
            store.write("plain", mine(comm), ROWS, chunks=(4, 8), dimension_names=("x", "y"), attributes={"unit": "m"})
            store.write("packed", mine(comm, 1.0), ROWS, dtype=">f4", zstd=3, chunks=(6, 4))
            with store.step("0001", attributes={"time": 0.5}) as step:
                step.write("rho", mine(comm, 2.0), ROWS)
            request = store.iwrite("later", mine(comm, 5.0), ROWS)
            store.append("packed", mine(comm, 3.0), ROWS)
            request.wait()
            store.write("deep/below/nested", mine(comm, 6.0), ROWS)
            store.write("sharded", mine(comm, 7.0), ROWS, chunks=(2, 4), shards=(4, 8))
            store.append("sharded", mine(comm, 8.0), ROWS)
            store.consolidate()

    hs.threads(RANKS, save)
    found = in_zarr(memory)
    assert np.array_equal(found["plain"][...], VALUES)
    assert found["plain"].attrs["unit"] == "m"
    assert np.array_equal(found["packed"][...], np.concatenate([VALUES + 1, VALUES + 3]))
    assert np.array_equal(found["0001/rho"][...], VALUES + 2)
    assert np.array_equal(found["later"][...], VALUES + 5)
    assert np.array_equal(found["deep/below/nested"][...], VALUES + 6)
    assert np.array_equal(found["sharded"][...], np.concatenate([VALUES + 7, VALUES + 8]))
    assert found["0001"].attrs["time"] == 0.5
    assert hidden(memory) == []


def test_dedicated_servers() -> None:
    memory = made()

    def work(comm: Any) -> None:
        dist = hs.Distribution.block(SHAPE, comm.size)
        with hs.open(memory / "a.zarr", "r+", comm=comm) as store:
            with store.step("0001") as step:
                step.write("rho", VALUES[dist.slices(comm)], dist)
            assert np.array_equal(store.group("0001").read("rho"), VALUES)

    def rank(comm: hs.ThreadComm) -> None:
        with hs.dedicate(comm, servers=[1]) as io:
            if io.is_server:
                io.serve()
            else:
                work(io)

    hs.threads(RANKS, rank)
    assert np.array_equal(in_zarr(memory, "a.zarr")["0001/rho"][...], VALUES)


# ---- whole or not at all ---------------------------------------------------------------------------------------


def give_up(comm: hs.ThreadComm, step: hs.Step) -> None:
    """Begin a step, after which the program of one rank fails."""
    with step:
        step.write("a", mine(comm), ROWS)
        if comm.rank == 1:
            raise ZeroDivisionError


def test_a_step_is_there_whole_or_not_at_all() -> None:
    memory = made()

    def body(comm: hs.ThreadComm) -> None:
        with hs.open(memory / "a.zarr", "r+", comm=comm) as store:
            with store.step("good") as step:
                step.write("a", mine(comm), ROWS)
                assert np.array_equal(step.read("a", ROWS), mine(comm))
                comm.barrier()
                # Nothing says what the chunks mean.
                assert [name for name in memory if name.endswith("zarr.json") and ".hyperslab" not in name] == [
                    "a.zarr/zarr.json"
                ]
                assert hs.open(memory / "a.zarr").groups() == []
                comm.barrier()
            comm.barrier()
            before = shown(memory)
            comm.barrier()
            with pytest.raises(ZeroDivisionError if comm.rank == 1 else hs.PeerError):
                give_up(comm, store.step("bad"))
            comm.barrier()
            assert shown(memory) == before
            assert store.groups() == ["good"]

    hs.threads(RANKS, body)
    assert hidden(memory) == []


#: What a program does: where, and with which values.
Deed: TypeAlias = Callable[[Any, float], None]


def write_array(place: Any, value: float) -> None:
    with hs.open(place, "r+") as store:
        store.write("x", np.full(12, value), chunks=(4,))


def write_step(place: Any, value: float) -> None:
    with hs.open(place, "r+") as store, store.step("0001") as step:
        step.write({"x": np.full(12, value), "y": np.full(6, value)}, chunks=(3,))


def new(deed: Deed, value: float) -> dict[str, list[float]]:
    """What readers see of it."""
    return {"x": [value]} if deed is write_array else {"0001/x": [value], "0001/y": [value]}


def outcome(deed: Deed, program: hs.ObjectMemory, value: float) -> str:
    """How it ends."""
    return attempt(lambda: deed(program / "a.zarr", value))[0]


def found(memory: hs.ObjectMemory) -> dict[str, list[float]]:
    """What readers see."""
    root = hs.open(memory.program() / "a.zarr")
    groups = [("", root), *((f"{name}/", root.group(name)) for name in root.groups())]
    return {f"{at}{name}": np.unique(group.read(name)).tolist() for at, group in groups for name in group.arrays()}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("end", ["dies", "dies with a late change"])
@pytest.mark.parametrize("deed", [write_array, write_step])
def test_a_death_after_each_change_leaves_old_or_new(deed: Deed, end: str) -> None:
    late = end != "dies"
    for after in range(100):
        memory = made()
        dying = memory.program()
        dying.dies(after=after, late=late)
        kind = outcome(deed, dying, 2.0)
        first = found(memory)
        assert first in ({}, new(deed, 2.0)), (after, first)
        if not dying.is_dead:
            assert (kind, first, hidden(memory)) == ("none", new(deed, 2.0), [])
            assert after > 8
            return
        again = outcome(deed, memory.program(), 3.0)
        memory.deliver()
        assert found(memory) == new(deed, {"none": 3.0, "ExistsError": 2.0}[again]), after
        # Somebody else looks after what is left of the one that died.
        hs.open(memory / "a.zarr", "r+").close()
        assert not hidden(memory) or late, (after, dying.changes())
    raise AssertionError("it never ends")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("known", ["lives", "may be dead"])
@pytest.mark.parametrize("deed", [write_array, write_step])
def test_a_stalled_program_and_one_that_makes_the_same(deed: Deed, known: str) -> None:
    for after in range(100):
        memory = made()
        stalled = memory.program()
        if known != "lives":
            # It never dies, but nobody else can know that.
            stalled.dies(after=10**9, known=False)
        stalled.stop(after=after)
        ends: list[str] = []
        thread = threading.Thread(target=lambda one=stalled, ends=ends: ends.append(outcome(deed, one, 2.0)))
        thread.start()
        while thread.is_alive() and not stalled.wait_stopped(0.01):
            pass
        if not thread.is_alive():
            assert (ends, found(memory)) == (["none"], new(deed, 2.0))
            assert after > 8
            return
        other = outcome(deed, memory.program(), 3.0)
        if other == "BusyError":
            memory.clean("a.zarr")
            other = outcome(deed, memory.program(), 3.0)
        stalled.go_on()
        thread.join()
        # What one has decided is published, also by the other one.
        won = {("none", "BusyError"): 2.0, ("none", "ExistsError"): 2.0, ("UnsyncedError", "ExistsError"): 2.0}
        value = won.get((ends[0], other), 3.0)
        assert value == 2.0 or other == "none", (after, ends, other)
        assert known != "lives" or other != "none" or after < 3, (after, ends, other)
        assert found(memory) == new(deed, value), (after, ends, other)
    raise AssertionError("it never ends")


def test_of_two_that_make_the_same_step_one_is_refused_and_told_by_what() -> None:
    memory = made()
    with hs.open(memory.program() / "a.zarr", "r+") as one, hs.open(memory.program() / "a.zarr", "r+") as other:
        step = one.step("0001")
        with pytest.raises(hs.BusyError, match=r"a\.zarr/0001/\.hyperslab-update"):
            other.step("0001")
        with step:
            step.write("x", VALUES)
        with pytest.raises(hs.ExistsError, match="the name is taken"):
            other.step("0001")
    assert hidden(memory) == []


def test_whom_nobody_knows_is_named_and_cleaned_away() -> None:
    memory = made()
    lost = memory.program()
    lost.dies(after=7, known=False)
    with pytest.raises(hs.StorageError):
        write_step(lost / "a.zarr", 2.0)
    with pytest.warns(UserWarning, match="left"):
        store = hs.open(memory / "a.zarr", "r+")
    with store:
        assert any(".hyperslab" in name for name in store.unfinished)
        with pytest.raises(hs.BusyError, match="clean"):
            store.step("0001")
    assert any("would be removed" in line for line in memory.clean("a.zarr", dry_run=True))
    assert memory.clean("a.zarr")
    write_step(memory / "a.zarr", 3.0)
    assert found(memory) == {"0001/x": [3.0], "0001/y": [3.0]}
    assert hidden(memory) == []


# ---- what cannot be --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda place, _: hs.open_raw(place / "f.raw", "w"), "UnsupportedError", "whole objects only"),
        (lambda place, _: hs.save_npy(place / "f.npy", VALUES), "UnsupportedError", "whole objects only"),
        (lambda _, store: store.write("x", VALUES, overwrite=True), "UnsupportedError", "cannot replace it at once"),
        (
            lambda _, store: store.write("x", VALUES[:4], section=(slice(0, 4),)),
            "UnsupportedError",
            "changed where readers see it",
        ),
        (lambda _, store: store.append("x", VALUES[:5]), "none", ""),
        (lambda _, store: store.append("y", VALUES), "UnsupportedError", "chunks that are not full"),
        (lambda _, store: store.write("x", VALUES), "ExistsError", "exists already"),
        (lambda place, _: hs.open(place / "../a", "w"), "InvalidError", "cannot be a key"),
        (lambda place, _: hs.open(place / "none.zarr"), "NotFoundError", "does not exist"),
    ],
)
def test_what_cannot_be(call: Callable[..., Any], kind: str, words: str) -> None:
    memory = hs.ObjectMemory()
    with hs.open(memory / "a.zarr", "w") as store:
        store.write("x", VALUES, chunks=(4, 8))
        store.write("y", VALUES, chunks=(5, 8))
        before = shown(memory)
        outcome, text = attempt(lambda: call(memory, store))
        assert (outcome, words in text) == (kind, True), text
        assert kind == "none" or shown(memory) == before
    assert hidden(memory) == []


def test_npy_files_that_are_there_are_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", VALUES)
    memory = hs.ObjectMemory({"a.npy": (tmp_path / "a.npy").read_bytes()})
    assert np.array_equal(hs.load_npy(memory / "a.npy"), VALUES)


# ---- the object itself -----------------------------------------------------------------------------------------


def test_it_is_a_mapping_of_objects() -> None:
    memory = hs.ObjectMemory({"b/c": b"12", "a": b""})
    assert list(memory) == ["a", "b/c"]
    assert (len(memory), memory.nbytes, memory["b/c"]) == (2, 2, b"12")
    assert "b/c" in memory
    assert "b" not in memory
    with pytest.raises(KeyError):
        memory["b"]
    with pytest.raises(KeyError):
        del memory["d"]
    with pytest.raises(hs.InvalidError, match="cannot be a key"):
        memory["../x"] = b""
    # There are no directories: a key may be the beginning of others.
    memory["b"] = b"1"
    del memory["b"]
    assert memory.files() == {"a": b""}
    assert repr(memory).startswith("<ObjectMemory 'objects://")


def test_late_changes_of_one_program_are_delivered_by_any() -> None:
    memory = hs.ObjectMemory()
    other = memory.program()
    other.dies(after=0, late=True)
    with pytest.raises(hs.StorageError, match="no reply"):
        other["a"] = b"1"
    assert (list(memory), other.is_dead, memory.is_dead) == ([], True, False)
    assert memory.deliver() == 1
    assert memory.files() == {"a": b"1"}
    assert memory.changes() == []


def test_closing_takes_nothing_away_that_readers_see() -> None:
    """Four replies in a row are lost, which is all that a request is tried; wherever that is, what is visible stays."""
    for first in range(4, 34):
        memory = hs.ObjectMemory()
        hs.open(memory / "r.zarr", "w").close()
        program = memory.program()
        store = hs.open(program / "r.zarr", "r+")
        for number in range(first, first + 4):
            program.disturb(number)
        with suppress(hs.Error):
            store.write({name: np.ones(4) for name in "bef"})
        seen = hs.open(memory / "r.zarr").arrays()
        with suppress(hs.Error):
            store.close()
        memory.deliver()
        with hs.open(memory / "r.zarr") as reader:
            assert set(seen) <= set(reader.arrays()), f"from change {first} on"
            assert all((reader.read(name) == 1).all() for name in reader)
