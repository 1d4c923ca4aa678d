"""Dedicated servers, as a collection of cases for any ranks: threads or MPI."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest

from request_cases import compute_until, part, spread, whole

Client = Callable[[Any], None]


def serve(comm: Any, servers: int | list[int], client: Client) -> None:
    """Run a program on the clients."""
    with hs.dedicate(comm, servers) as io:
        if io.is_server:
            io.serve()
        else:
            client(io)


def everything(comm: Any, path: Path) -> None:
    """All kinds of calls; all bytes pass through the servers, and files are as ever."""

    def client(io: Any) -> None:
        assert (io.size, io.servers) == (comm.size - 2, 2)
        clients = list(range(io.size))
        assert io.rank in clients
        dist = spread(io)
        with hs.open(path / "a.zarr", "w", comm=io, durable=False) as store:
            report = store.write("a", part(io), dist, chunks=(16, 40), zstd=1)
            assert report.strategy == "server-directed"
            assert sorted(report.servers) == [io.size, io.size + 1]
            assert (report.store_calls, report.buffer_bytes) == (0, 0), "a client stores nothing itself"
            assert np.array_equal(store.read("a"), whole())
            columns = hs.Distribution(store["a"].shape, (io.size,), ("*", "block"))
            out = columns.empty(io, "f4", order="F")
            read = store.read("a", columns, out=out)
            assert np.array_equal(read, whole()[columns.slices(io)].astype("f4"))
            half = hs.Distribution((48, 20), (io.size,), ("cyclic", "*"))
            store.write("a", part(io, 5.0)[:, 20:], half, section=(slice(0, 48), slice(20, 40)))
            expected = np.concatenate([whole()[:, :20], whole(5.0)[:, 20:]], axis=1)
            assert np.array_equal(store.read("a"), expected)
            store.append("a", part(io, 9.0), dist)
            assert np.array_equal(store.read("a", section=(slice(48, 96), slice(0, 40))), whole(9.0))
            requests = [store.iwrite(f"b{i}", part(io, float(i)), dist, staged=i % 2 == 1) for i in range(6)]
            found = store.iread("b3", dist)
            hs.wait_all(requests)
            assert np.array_equal(found.wait(), part(io, 3.0))
            scalar = hs.Distribution.replicated((), io.size)
            store.write("time", np.array(0.5), scalar)
            assert store.read("time") == 0.5
            with store.step("s", attributes={"time": 1}) as step:
                step.write({"u": part(io, 1.0), "v": part(io, 2.0)}, dist)
            assert np.array_equal(store.group("s").read("v"), whole(2.0))
            with pytest.raises(hs.InvalidError, match="dedicated servers work by strategy server-directed"):
                store.write("c", part(io), dist, strategy="independent")
        with hs.open(path / "d.zarr", "w", comm=io) as store, store.step("durable") as step:
            step.write("a", part(io), dist, chunks=(16, 40))
        with hs.open_raw(path / "e.raw", "w", comm=io, order="C") as file:
            file.write({"a": part(io)}, dist)
            file.iwrite({"b": part(io, 1.0)}, dist).wait()
        known = {"a": ((48, 40), "f8"), "b": ((48, 40), "f8")}
        with hs.open_raw(path / "e.raw", comm=io, order="C", arrays=known) as file:
            assert np.array_equal(file.read("b"), whole(1.0))
        hs.save_npy(path / "f.npy", part(io), dist, comm=io, order="F", durable=False)
        assert np.array_equal(hs.load_npy(path / "f.npy", comm=io), whole())
        io.barrier()
        assert np.array_equal(np.load(path / "f.npy"), whole())

    serve(comm, 2, client)


def a_write_returns_early(comm: Any, path: Path) -> None:
    """The array is free at once; what is written appears while clients compute, without a call of theirs."""

    def client(io: Any) -> None:
        store = hs.open(path / "g.zarr", "w", comm=io, durable=False)
        array = part(io)
        store.write("a", array, spread(io), chunks=(16, 40))
        array[:] = np.nan
        compute_until((path / "g.zarr/a/zarr.json").exists)
        store.write("b", part(io), spread(io))
        store.flush()
        assert (path / "g.zarr/b/zarr.json").exists()
        assert np.array_equal(store.read("a"), whole())
        store.close()

    serve(comm, 1, client)


def errors(comm: Any, path: Path) -> None:
    """Errors of arguments come at once; those of servers with the next call; the service goes on after each."""

    def client(io: Any) -> None:
        dist = spread(io)
        with pytest.raises(hs.NotFoundError, match="does not exist"):
            hs.open(path / "nothing.zarr", comm=io)
        if io.size > 1:
            with pytest.raises(hs.DisagreementError, match=r"on ranks? 1"):
                hs.open(path / f"h{min(io.rank, 1)}.zarr", "w", comm=io)
        store = hs.open(path / "h.zarr", "w", comm=io, durable=False)
        with pytest.raises(hs.InvalidError, match="expected shape"):
            store.write("a", part(io)[1:] if io.rank == 0 else part(io), dist)
        with pytest.raises(hs.InvalidError, match="must be a Distribution"):
            store.write("a", part(io), None if io.rank else "x")
        store.write("a", part(io), dist, chunks=(16, 40))
        store.flush()
        block_writes(io, path / "h.zarr/a")
        # A section is written into chunks that are there; now they cannot be replaced.
        store.write("a", part(io, 1.0), dist, section=(slice(0, 48), slice(0, 40)))
        with pytest.raises(
            hs.StorageError, match=r"(?s)its data having left, failed: .*on server .* of the communicator"
        ):
            store.read("a")
        unblock_writes(io, path / "h.zarr/a")
        assert np.array_equal(store.read("a"), whole())
        broken_step(io, store, path)
        assert store.groups() == []
        store.write("b", part(io), dist)
        store.close()
        io.barrier()
        # No chunk took the place of another, so nothing is unfinished.
        left = sorted(each.name for each in path.iterdir() if "h.zarr" in each.name)
        assert left == ["h.zarr"]

    serve(comm, 1, client)


def block_writes(io: Any, array: Path) -> None:
    """Put directories where chunks were."""
    io.barrier()
    if io.rank == 0:
        for chunk in list(array.glob("c.*")):
            chunk.rename(chunk.with_name(f"aside-{chunk.name}"))
            chunk.mkdir()
    io.barrier()


def unblock_writes(io: Any, array: Path) -> None:
    """Put the chunks back."""
    io.barrier()
    if io.rank == 0:
        for chunk in list(array.glob("aside-*")):
            there = chunk.with_name(chunk.name.removeprefix("aside-"))
            there.rmdir()
            chunk.rename(there)
    io.barrier()


def broken_step(io: Any, store: hs.Group, path: Path) -> None:
    """What cannot be stored is an error of publishing, and nothing is published."""

    def step_with_obstacle() -> None:
        with store.step("s") as step:
            step.write("good", part(io), spread(io), chunks=(16, 40))
            step.flush()
            hidden = next(path.glob(".h.zarr*/*-step-s/good"))
            block_writes(io, hidden)
            step.write("good", part(io), spread(io), section=(slice(0, 48), slice(0, 40)))

    with pytest.raises(hs.StorageError, match=r"(?s)publishing step 's' .*on server 0"):
        step_with_obstacle()
    io.barrier()


def selected(comm: Any, path: Path) -> None:
    """Which ranks serve may be chosen, also rank 0; numbers of clients keep the order of ranks."""
    chosen = [comm.size - 1, 0]

    def client(io: Any) -> None:
        assert io.rank == comm.rank - 1
        with hs.open(path / "i.zarr", "w", comm=io, durable=False) as store:
            store.write("a", part(io), spread(io))
            assert np.array_equal(store.read("a"), whole())

    with hs.dedicate(comm, chosen) as io:
        assert io.is_server == (comm.rank in chosen)
        if io.is_server:
            assert io.rank == chosen.index(comm.rank)
            with pytest.raises(hs.InvalidError, match=r"io\.serve"):
                hs.open(path / "i.zarr", comm=io)
            io.serve()
        else:
            client(io)
    for servers in (0, comm.size, [0, 0], [comm.size]):
        with pytest.raises(hs.InvalidError, match="must leave a client, but the communicator has"):
            hs.dedicate(comm, servers)
    with pytest.raises(hs.DisagreementError, match="ranks that serve"):
        hs.dedicate(comm, 1 if comm.rank else 2)


def a_client_leaves(comm: Any, path: Path) -> None:
    """An exception on one client ends the service on all ranks, with an error that names it."""

    def client(io: Any) -> None:
        store = hs.open(path / "j.zarr", "w", comm=io, durable=False)
        if io.rank == io.size - 1:
            message = "the simulation broke"
            raise ArithmeticError(message)
        store.write("a", part(io), spread(io))
        store.close()

    expected = ArithmeticError if comm.rank == comm.size - 2 else hs.PeerError
    with pytest.raises(expected, match="the simulation broke"):
        serve(comm, 1, client)


def bounded(comm: Any, path: Path) -> None:
    """Buffers are on the servers, copies on the clients; what does not fit is an error on all clients."""

    def client(io: Any) -> None:
        bytes_all = 8 * 48 * 40
        with hs.open(path / "k.zarr", "w", comm=io, durable=False, buffer_bytes=bytes_all) as store:
            store.iwrite("a", part(io), spread(io), staged=True, chunks=(48, 40)).wait()
            assert np.array_equal(store.read("a"), whole())
        with hs.open(path / "l.zarr", "w", comm=io, durable=False, buffer_bytes=100) as store:
            with pytest.raises(hs.InvalidError, match="may have 100 B"):
                store.write("a", part(io), spread(io), chunks=(48, 40))
            with pytest.raises(hs.InvalidError, match="copies of 'a' take"):
                store.iwrite("a", part(io), spread(io), staged=True).wait()

    serve(comm, 1, client)


def idle_servers_sleep(comm: Any, path: Path) -> None:
    """A server that waits takes little of a processor, and longer than the clients' limits for others."""

    def client(io: Any) -> None:
        options: dict[str, Any] = {"arrival_seconds": 1.0, "progress_seconds": 1.0, "durable": False}
        with hs.open(path / "m.zarr", "w", comm=io, **options) as store:
            store.write("a", part(io), spread(io))
            deadline = os.times().elapsed + 2.5
            compute_until(lambda: os.times().elapsed > deadline)
            assert np.array_equal(store.read("a"), whole())

    started = os.times()
    serve(comm, 1, client)
    ended = os.times()
    if comm.rank == comm.size - 1 and not isinstance(comm, hs.ThreadComm):
        used = ended.user + ended.system - started.user - started.system
        assert used < 0.5 * (ended.elapsed - started.elapsed), f"{used} s of a processor"
        print(f"an idle server took {used:.3f} s of a processor in {ended.elapsed - started.elapsed:.3f} s")


CASES: dict[str, Callable[[Any, Path], None]] = {
    each.__name__: each
    for each in (
        everything,
        a_write_returns_early,
        errors,
        selected,
        bounded,
        idle_servers_sleep,
        a_client_leaves,
    )
}
