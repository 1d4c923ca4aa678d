"""Stores in memory: what holds on disk holds there, and other tools read a copy of them."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest
import zarr
import zarr.core.buffer.cpu
import zarr.storage

from error_cases import attempt
from memories import RANKS, ROWS, SHAPE, VALUES, in_zarr, mine
from mpi_programs.roundtrip import Runner, run_cases


def on_all(call: Callable[[hs.ThreadComm], Any]) -> tuple[str, str]:
    """The error that a call raises, on all ranks alike."""
    outcomes = hs.threads(RANKS, lambda comm: attempt(lambda: call(comm)))
    assert len(set(outcomes)) == 1, outcomes
    return outcomes[0]


def give_up(comm: hs.ThreadComm, opened: Any, write: Callable[[Any], Any]) -> None:
    """Begin to write, after which the program of one rank fails."""
    with opened as inside:
        write(inside)
        if comm.rank == 1:
            raise ZeroDivisionError


# ---- what goes there comes back --------------------------------------------------------------------------------


class InMemory(Runner):
    """Cases in memory, of which other tools read a copy in files."""

    def __init__(self, comm: Any, memory: hs.MemoryStore, copy: Path) -> None:
        super().__init__(comm, memory)  # type: ignore[arg-type]
        self.copy = copy

    def check_with_other_tools(self, expected: dict[str, Any]) -> None:
        assert isinstance(self.directory, hs.MemoryStore)
        for name, content in self.directory.items():
            (self.copy / name).parent.mkdir(parents=True, exist_ok=True)
            (self.copy / name).write_bytes(content)
        Runner(self.comm, self.copy).check_with_other_tools(expected)


@pytest.mark.parametrize("ranks", [1, 3, 6])
def test_random_transfers_equal_the_oracle_and_those_to_files(ranks: int, tmp_path: Path) -> None:
    memory = hs.MemoryStore()
    copy, files = tmp_path / "copy", tmp_path / "files"
    copy.mkdir()
    files.mkdir()
    hs.threads(ranks, lambda comm: InMemory(comm, memory, copy).run(11, range(50)))
    hs.threads(ranks, lambda comm: run_cases(comm, files, 11, 50))
    expected = {str(path.relative_to(files)): path.read_bytes() for path in files.rglob("*") if path.is_file()}
    assert len(expected) > 40
    assert memory.files() == dict(sorted(expected.items()))


def test_zarr_python_reads_a_copy() -> None:
    memory = hs.MemoryStore()

    def save(comm: hs.ThreadComm) -> None:
        with hs.open(memory, "x", comm=comm) as store:
            store.write("plain", mine(comm), ROWS, chunks=(5, 8), dimension_names=("x", "y"), attributes={"unit": "m"})
            store.write("packed", mine(comm, 1.0), ROWS, dtype=">f4", zstd=3)
            with store.step("0001", attributes={"time": 0.5}) as step:
                step.write("rho", mine(comm, 2.0), ROWS)
            store.write(
                "plain",
                mine(comm, 9.0)[:, 2:4],
                hs.Distribution((12, 2), (RANKS,), ("block", "*")),
                section=(slice(None), slice(2, 4)),
            )
            store.append("packed", mine(comm, 3.0), ROWS)

    hs.threads(RANKS, save)
    found = in_zarr(memory)
    changed = VALUES.copy()
    changed[:, 2:4] += 9
    assert np.array_equal(found["plain"][...], changed)
    assert found["plain"].attrs["unit"] == "m"
    assert np.array_equal(found["packed"][...], np.concatenate([VALUES + 1, VALUES + 3]))
    assert np.array_equal(found["0001/rho"][...], VALUES + 2)
    assert found["0001"].attrs["time"] == 0.5
    assert not [name for name in memory if ".hyperslab" in name]


def test_what_zarr_python_wrote_is_read() -> None:
    there: dict[str, Any] = {}
    zarr.open_group(zarr.storage.MemoryStore(there), mode="w").create_array("a", data=VALUES, chunks=(5, 3))
    memory = hs.MemoryStore({name: buffer.to_bytes() for name, buffer in there.items()})
    with hs.open(memory) as store:
        assert np.array_equal(store.read("a"), VALUES)


# ---- whole or not at all ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "deep/below/run.zarr"])
def test_a_step_is_there_whole_or_not_at_all(name: str) -> None:
    memory = hs.MemoryStore()
    place = memory / name if name else memory
    prefix = f"{name}/" if name else ""

    def visible() -> set[str]:
        return {key for key in memory if not any(part.startswith(".") for part in key.split("/"))}

    def body(comm: hs.ThreadComm) -> None:
        with hs.open(place, "w", comm=comm) as store:
            with store.step("good") as step:
                step.write("a", mine(comm), ROWS)
                assert np.array_equal(step.read("a", ROWS), mine(comm))
                comm.barrier()
                assert visible() == {f"{prefix}zarr.json"}
                assert len(memory) > 3
                comm.barrier()
            assert f"{prefix}good/a/zarr.json" in visible()
            before = visible()
            comm.barrier()
            with pytest.raises(ZeroDivisionError if comm.rank == 1 else hs.PeerError):
                give_up(comm, store.step("bad"), lambda step: step.write("a", mine(comm), ROWS))
            comm.barrier()
            assert visible() == before
            assert store.groups() == ["good"]

    hs.threads(RANKS, body)


def test_an_array_is_replaced_whole_or_not_at_all() -> None:
    memory = hs.MemoryStore()

    def body(comm: hs.ThreadComm) -> None:
        with hs.open(memory / "a.zarr", "w", comm=comm) as store:
            store.write("a", mine(comm), ROWS)
            comm.barrier()
            before = memory.files()
            comm.barrier()
            with pytest.raises(hs.ExistsError, match="overwrite"):
                store.write("a", mine(comm, 1.0), ROWS)
            wrong = mine(comm)[:, :-1] if comm.rank == 2 else mine(comm)
            with pytest.raises(hs.InvalidError, match="rank 2"):
                store.write("a", wrong, ROWS, overwrite=True)
            assert memory.files() == before
            comm.barrier()
            store.write("a", mine(comm, 1.0), ROWS, overwrite=True)
            assert np.array_equal(store.read("a", ROWS), mine(comm, 1.0))

    hs.threads(RANKS, body)
    assert [name for name in memory if "hyperslab" in name] == []


def test_what_an_earlier_run_left_is_told() -> None:
    """A copy that was taken while a run was writing tells of it as files after a crash do."""
    memory = hs.MemoryStore()
    with hs.open(memory / "a.zarr", "w") as store:
        store.write("a", VALUES)
        step = store.step("0001")
        step.write("b", VALUES)
        copy = hs.MemoryStore(memory)
        with step:
            pass
    copy["a.zarr/a/.hyperslab-update"] = b"an update"
    with pytest.warns(UserWarning, match="did not end"), hs.open(copy / "a.zarr") as store:
        assert store.unfinished == ("a",)
    del copy["a.zarr/a/.hyperslab-update"]
    with pytest.warns(UserWarning, match="left unfinished: 0001"):
        hs.open(copy / "a.zarr", "r+").close()
    assert [name for name in copy if "hyperslab" in name] == []
    assert "a.zarr/0001/b/zarr.json" in memory


# ---- raw and npy files -----------------------------------------------------------------------------------------


def test_an_older_raw_file_stays_until_the_new_one_is_whole() -> None:
    memory = hs.MemoryStore({"a.raw": b"older"})
    known = {"a": (SHAPE, "f8"), "b": (SHAPE, "<f4")}

    def body(comm: hs.ThreadComm) -> None:
        with pytest.raises(ZeroDivisionError if comm.rank == 1 else hs.PeerError):
            give_up(
                comm, hs.open_raw(memory / "a.raw", "w", comm=comm), lambda file: file.write({"a": mine(comm)}, ROWS)
            )
        comm.barrier()
        assert memory.files() == {"a.raw": b"older"}
        comm.barrier()
        with hs.open_raw(memory / "a.raw", "w", comm=comm, order="C", header=b"head") as file:
            # A file that grows twice keeps what is in it.
            file.write({"a": mine(comm)}, ROWS)
            file.write({"b": mine(comm, 0.5)}, ROWS, dtype="<f4")
            comm.barrier()
            assert memory["a.raw"] == b"older"
            comm.barrier()
        with hs.open_raw(memory / "a.raw", "r+", comm=comm, order="C", header=4, arrays=known) as file:
            file.write({"a": mine(comm, 7.0)}, ROWS)
        with hs.open_raw(memory / "a.raw", comm=comm, order="C", header=4, arrays=known) as file:
            assert file.path == f"{memory}/a.raw"
            assert np.array_equal(file.read("b"), (VALUES + 0.5).astype("<f4"))

    hs.threads(RANKS, body)
    expected = b"head" + (VALUES + 7).tobytes() + (VALUES + 0.5).astype("<f4").tobytes()
    assert memory.files() == {"a.raw": expected}


def test_npy_files() -> None:
    memory = hs.MemoryStore()
    hs.threads(RANKS, lambda comm: hs.save_npy(memory / "a.npy", mine(comm), ROWS, comm=comm, order="F"))
    found = np.load(io.BytesIO(memory["a.npy"]))
    assert found.flags.f_contiguous
    assert np.array_equal(found, VALUES)
    buffer = io.BytesIO()
    np.save(buffer, VALUES.astype(">i2"))
    memory["b.npy"] = buffer.getvalue()
    parts = hs.threads(RANKS, lambda comm: hs.load_npy(memory / "b.npy", ROWS, comm=comm))
    assert np.array_equal(np.concatenate(parts), VALUES)


# ---- errors ----------------------------------------------------------------------------------------------------


def test_ranks_must_give_the_same_memory() -> None:
    kind, text = on_all(lambda comm: hs.open(hs.MemoryStore(), "w", comm=comm))
    assert kind == "DisagreementError"
    assert "path is 'memory://" in text
    memory = hs.MemoryStore()
    kind, text = on_all(lambda comm: hs.open(memory / "a" if comm.rank == 1 else memory / "b", "w", comm=comm))
    assert kind == "DisagreementError"
    assert f"path is '{memory}/b' on rank 0, but '{memory}/a' on rank 1" in text
    kind, _ = on_all(lambda comm: hs.open("nowhere.zarr" if comm.rank == 1 else memory, "w", comm=comm))
    assert kind == "DisagreementError"
    assert not list(memory)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda memory, comm: hs.open(memory, comm=comm), "NotFoundError", "is not a Zarr store"),
        (lambda memory, comm: hs.open(memory / "a", comm=comm), "NotFoundError", "does not exist"),
        (lambda memory, comm: hs.open(memory, "w", comm=comm), "ExistsError", "not empty"),
        (lambda memory, comm: hs.open(memory, "x", comm=comm), "ExistsError", "exists already"),
        (
            lambda memory, comm: hs.open(memory / "f", "x", comm=comm),
            "ExistsError",
            "expected a directory, found a file",
        ),
        (lambda memory, comm: hs.open(memory / "../a", "w", comm=comm), "InvalidError", "'../a' cannot be a name"),
        (lambda memory, comm: hs.open(memory / "/a", "w", comm=comm), "InvalidError", "give a relative name"),
        (lambda memory, comm: hs.open(memory / "f" / "a.zarr", "w", comm=comm), "StorageError", "not a directory"),
        (lambda memory, comm: hs.open_raw(memory, "w", comm=comm), "InvalidError", "does not end with a file name"),
        (lambda memory, comm: hs.open_raw(memory / "a" / "b", "w", comm=comm), "NotFoundError", "/a' does not exist"),
        (lambda memory, comm: hs.open_raw(memory / "a", comm=comm), "NotFoundError", "/a' does not exist"),
        (lambda memory, comm: hs.open_raw(memory / "f", comm=comm), "CorruptError", "the file has 3 B, but"),
        (lambda memory, comm: hs.load_npy(memory / "f", comm=comm), "CorruptError", "/f"),
        (lambda _, comm: hs.open(7 if comm.rank == 1 else "nowhere.zarr", comm=comm), "InvalidError", "got 7"),
    ],
)
def test_what_cannot_be(call: Callable[..., Any], kind: str, words: str) -> None:
    memory = hs.MemoryStore({"f": b"abc"})
    found, text = on_all(lambda comm: call(memory, comm))
    assert found == kind, text
    assert words in text
    assert memory.files() == {"f": b"abc"}


@pytest.mark.parametrize("zstd", [None, 1])
@pytest.mark.parametrize("change", [lambda b: b[:-5], lambda b: b[:9] + bytes([b[9] ^ 1]) + b[10:], lambda b: b + b"x"])
def test_damage_is_noticed(change: Callable[[bytes], bytes], zstd: int | None) -> None:
    memory = hs.MemoryStore()
    with hs.open(memory, "w") as store:
        store.write("a", VALUES, chunks=(5, 8), zstd=zstd)
    memory["a/c.1.0"] = change(memory["a/c.1.0"])

    def read(comm: hs.ThreadComm) -> None:
        with hs.open(memory, comm=comm) as store:
            assert attempt(lambda: store.read("a", ROWS))[0] == "CorruptError"
            same = store.read("a", hs.Distribution((5, 8), (RANKS,), ("block", "*")), section=(slice(0, 5),))
            assert np.array_equal(same, VALUES[:5][hs.Distribution((5, 8), (RANKS,), ("block", "*")).slices(comm)])

    hs.threads(RANKS, read)


# ---- the object itself -----------------------------------------------------------------------------------------


def test_it_is_a_mapping_of_files() -> None:
    memory = hs.MemoryStore({"b/c": b"12", "a": b""})
    assert list(memory) == ["a", "b/c"]
    assert (len(memory), memory.nbytes, memory["b/c"]) == (2, 2, b"12")
    assert "b/c" in memory
    assert "b" not in memory
    for name in ("b", "d", "a/b", ""):
        with pytest.raises(KeyError):
            memory[name]
    with pytest.raises(KeyError):
        del memory["d"]
    with pytest.raises(hs.StorageError, match=r"'memory://[0-9]+/a' failed: the name is taken"):
        memory["a/b"] = b""
    with pytest.raises(hs.StorageError, match="it is a directory"):
        memory["b"] = b""
    for name in ("../x", "/x", "x//y"):
        with pytest.raises(hs.InvalidError, match="cannot be a name"):
            memory[name] = b""
    del memory["b"]
    assert memory.files() == {"a": b""}
    assert str(memory / "x" / "y") == f"{memory}/x/y"
    assert "1 files, 0 B" in repr(memory)
    assert bool(hs.MemoryStore())
    assert str(hs.MemoryStore()) != str(memory)


def test_an_open_store_keeps_its_memory() -> None:
    store = hs.open(hs.MemoryStore(), "w")
    store.write("a", VALUES)
    assert np.array_equal(store.read("a"), VALUES)
    assert store.path.startswith("memory://")
    store.close()


def test_several_are_open_at_once(tmp_path: Path) -> None:
    """Two memories and files, with one communicator, hold what was written to each."""
    places: list[Any] = [hs.MemoryStore(), hs.MemoryStore(), tmp_path / "a.zarr"]

    def body(comm: hs.ThreadComm) -> None:
        stores = [hs.open(place, "w", comm=comm) for place in places]
        for turn in range(3):
            for number, store in enumerate(stores):
                store.write("a", mine(comm, 100.0 * number + turn), ROWS, overwrite=True)
        for number, store in enumerate(stores):
            assert np.array_equal(store.read("a", ROWS), mine(comm, 100.0 * number + 2))
            store.close()

    hs.threads(RANKS, body)
    assert np.array_equal(in_zarr(places[1])["a"][...], VALUES + 102)
