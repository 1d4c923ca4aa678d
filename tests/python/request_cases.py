"""Calls that do not block, as a collection of cases for any ranks: threads or MPI."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest

SHAPE = (48, 40)
#: A rank that computes for longer than this without its request being over has waited in vain [s].
PATIENCE_SECONDS = 60.0


def spread(comm: Any) -> hs.Distribution:
    """Rows dealt out one by one, so that every chunk is brought together from all ranks."""
    return hs.Distribution(SHAPE, (comm.size,), ("cyclic", "*"))


def part(comm: Any, start: float = 0.0) -> np.ndarray:
    """This rank's part of a global array in which all elements differ."""
    return whole(start)[spread(comm).indices(comm)[0]].copy()


def whole(start: float = 0.0) -> np.ndarray:
    """The global array."""
    return start + np.arange(np.prod(SHAPE), dtype=float).reshape(SHAPE)


def compute_until(done: Callable[[], bool]) -> int:
    """Compute until something happens; returns the number of rounds."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    matrix, rounds = np.eye(60), 0
    while not done():
        matrix = matrix @ matrix
        rounds += 1
        assert time.monotonic() < deadline, f"nothing had happened after {rounds} rounds"
    return rounds


def several_outstanding(comm: Any, path: Path) -> None:
    """Requests are over in their order; a blocking call waits for those before it."""
    with hs.open(path / "a.zarr", "w", comm=comm, durable=False) as store:
        writes = [store.iwrite(f"a{i}", part(comm, 1000.0 * i), spread(comm), chunks=(16, 40)) for i in range(5)]
        # Of what is under way, it is known what it will be.
        reads = [store.iread(f"a{i}", spread(comm)) for i in (4, 0)]
        assert np.array_equal(store.read("a3"), whole(3000.0))
        assert all(request.test() for request in writes + reads)
        last, first = hs.wait_all(reads)
        assert np.array_equal(last, part(comm, 4000.0))
        assert np.array_equal(first, part(comm))
        reports = hs.wait_all(writes)
        assert [report.bytes for report in reports] == [8 * 48 * 40] * 5
        assert writes[0].wait().bytes == reports[0].bytes, "one may wait twice"
        out = {name: np.empty_like(part(comm)) for name in ("a1", "a2")}
        both = store.iread(["a1", "a2"], spread(comm), out=out).wait()
        assert both["a2"] is out["a2"]
        assert np.array_equal(out["a2"], part(comm, 2000.0))
        request = store.iwrite("a0", part(comm, 7.0), spread(comm), section=(slice(0, 48), slice(0, 40)))
        assert store["a0"].shape == SHAPE
        request.wait()


def overlap(comm: Any, path: Path) -> None:
    """The file appears while all ranks compute and none of them is in a call."""
    dist = spread(comm)
    store = hs.open(path / "b.zarr", "w", comm=comm, durable=False)
    assert store._comm.moves_alone
    request = store.iwrite("a", part(comm), dist, chunks=SHAPE)
    compute_until((path / "b.zarr/a/zarr.json").exists)
    assert request.wait().strategy
    out = np.full_like(part(comm), -1.0)
    request = store.iread("a", dist, out=out)
    compute_until(lambda: bool((out != -1.0).all()))
    assert np.array_equal(request.wait(), part(comm))
    request = store.iwrite("b", part(comm), dist)
    compute_until(request.test)
    store.close()


def staged(comm: Any, path: Path) -> None:
    """Copied arrays may be changed at once, in any memory order; copies and buffers stay within the budget."""
    dist = spread(comm)
    bytes_each = part(comm).nbytes
    budget = 6 * 8 * 48 * 40
    with hs.open(path / "c.zarr", "w", comm=comm, durable=False, buffer_bytes=budget) as store:
        array = np.asfortranarray(part(comm))
        requests = []
        for i in range(12):
            array += 1.0
            requests.append(store.iwrite(f"a{i}", array[::-1][::-1], dist, staged=True, chunks=(16, 40)))
        array[:] = np.nan
        for i, report in enumerate(hs.wait_all(requests)):
            assert report.buffer_bytes + bytes_each <= budget
            assert np.array_equal(store.read(f"a{i}"), whole(i + 1.0))
    with hs.open(path / "d.zarr", "w", comm=comm, durable=False, buffer_bytes=1000) as store:
        request = store.iwrite("a", part(comm), dist, staged=True)
        with pytest.raises(
            hs.InvalidError, match=r"copies of 'a' take \d+ B on a rank, but there may be 1000 B"
        ) as info:
            request.wait()
        assert "staged=False" in str(info.value)
        assert store.arrays() == []


def many_small(comm: Any, path: Path) -> None:
    """Small writes that wait behind a larger one become one call, and each has its own report and its own error."""
    count = 40
    shapes = [(3 + i % 5, 4 + i) for i in range(count)]

    def dist_of(shape: tuple[int, ...]) -> hs.Distribution:
        return hs.Distribution(shape, (comm.size,), ("cyclic", "*"))

    def small(i: int) -> np.ndarray:
        """Array number i, all of it."""
        return 100.0 * i + np.arange(np.prod(shapes[i]), dtype=float).reshape(shapes[i])

    def mine(i: int) -> np.ndarray:
        """This rank's part of it."""
        return small(i)[dist_of(shapes[i]).indices(comm)[0]].copy()

    def request_all(target: Any) -> list[hs.Request[hs.Report]]:
        """Writes all, behind one that takes long enough for all ranks to have asked for several."""
        large = np.ones((comm.size, 1 << 20))
        requests = [target.iwrite("large", large[comm.rank : comm.rank + 1], dist_of(large.shape))]
        return requests + [target.iwrite(f"s{i}", mine(i), dist_of(shapes[i])) for i in range(count)]

    def check(target: Any, reports: list[hs.Report]) -> None:
        assert [report.bytes for report in reports] == [small(i).nbytes for i in range(count)]
        assert len({report.seconds for report in reports}) < count, "none were carried out as one"
        assert all(f"write of 's{i}' to" in str(report) for i, report in enumerate(reports))
        assert all(np.array_equal(target.read(f"s{i}"), small(i)) for i in range(count))

    with hs.open(path / "j.zarr", "w", comm=comm, durable=False) as store:
        check(store, hs.wait_all(request_all(store))[1:])
    with hs.open_raw(path / "j.raw", "w", comm=comm, durable=False) as file:
        reports = hs.wait_all(request_all(file))[1:]
    arrays = {"large": ((comm.size, 1 << 20), "f8")} | {f"s{i}": (shape, "f8") for i, shape in enumerate(shapes)}
    with hs.open_raw(path / "j.raw", "r", comm=comm, arrays=arrays) as file:
        check(file, reports)
    # One fails on all ranks; what follows it in the file lies where it would without it.
    with hs.open_raw(path / "k.raw", "w", comm=comm, durable=False) as file:
        file.write("s7", mine(7), dist_of(shapes[7]))
        requests = request_all(file)
        with pytest.raises(hs.InvalidError, match="'s7' of a new file is written already"):
            requests[8].wait()
        assert all(request.wait() for number, request in enumerate(requests) if number != 8)
    order = ["s7", "large", *(f"s{i}" for i in range(count) if i != 7)]
    with hs.open_raw(path / "k.raw", "r", comm=comm, arrays={name: arrays[name] for name in order}) as file:
        assert all(np.array_equal(file.read(f"s{i}"), small(i)) for i in range(count))
    # One fails on all ranks, and one on the last rank alone.
    with hs.open(path / "k.zarr", "w", comm=comm, durable=False) as store:
        store.write("s7", mine(7), dist_of(shapes[7]))
        requests = request_all(store)[1:]
        last = np.zeros((99, 4)) if comm.rank == comm.size - 1 else mine(0)
        unfit = store.iwrite("unfit", last, dist_of(shapes[0]))
        with pytest.raises(hs.ExistsError, match=r"write of 's7' to .*'s7' exists already"):
            requests[7].wait()
        with pytest.raises(hs.InvalidError, match="the local part of 'unfit' does not fit"):
            unfit.wait()
        assert all(requests[i].wait().bytes == small(i).nbytes for i in range(count) if i != 7)
        assert all(np.array_equal(store.read(f"s{i}"), small(i)) for i in range(count))
        assert "unfit" not in store


def errors_on_all_ranks(comm: Any, path: Path) -> None:
    """A request fails on all ranks alike, whatever the rank that is at fault, and what is behind it goes on."""
    dist = spread(comm)
    with hs.open(path / "e.zarr", "w", comm=comm, durable=False) as store:
        array = part(comm)[1:] if comm.rank == comm.size - 1 else part(comm)
        bad = store.iwrite("a", array, dist)
        unready = store.iwrite("b", {} if comm.rank == 0 else part(comm), dist)
        good = store.iwrite("c", part(comm), dist)
        absent = store.iread("nothing", dist)
        differing = store.iwrite(f"a{comm.rank}", part(comm), dist)
        assert good.wait().bytes == 8 * 48 * 40
        with pytest.raises(hs.InvalidError, match="the local part of 'a' does not fit"):
            bad.wait()
        where = "on rank 0: " if comm.size > 1 else ""
        with pytest.raises(hs.InvalidError, match=rf"^{where}write of .*must be an array, got an object of type dict"):
            unready.wait()
        with pytest.raises(hs.NotFoundError, match="'nothing'"):
            absent.wait()
        if comm.size > 1:
            with pytest.raises(hs.DisagreementError):
                differing.wait()
        else:
            differing.wait()
        with pytest.raises(hs.InvalidError, match="the local part of 'a' does not fit"):
            bad.wait()


def not_silent(comm: Any, path: Path) -> None:
    """A failure that nobody waited for is that of the next collective call, or of closing."""
    dist = spread(comm)
    text = r"a request that was not waited for failed: .*there is no array 'nothing'"
    store = hs.open(path / "f.zarr", "w", comm=comm, durable=False)
    store.write("a", part(comm), dist)

    def fail() -> hs.Request[Any]:
        out = np.empty_like(part(comm))
        # Found on rank 0 only once all ranks are in the call.
        request = store._core.read_later(
            ["nothing"], {"dist": dist._core, "out": [hs._calls.describe(out, writable=True)]}
        )
        return hs.Request(request, lambda _: out)

    fail()
    gc.collect()
    with pytest.raises(hs.NotFoundError, match=text):
        store.read("a", dist)
    assert np.array_equal(store.read("a", dist), part(comm)), "once is enough"
    # Dropped on one rank only: all the same, on all ranks.
    kept = fail() if comm.rank else None
    if comm.rank == 0:
        fail()
    gc.collect()
    with pytest.raises(hs.NotFoundError, match=text):
        store.flush()
    store.flush()
    del kept
    # One that a rank could not even make, and that is still held.
    kept = store.iwrite("b", part(comm) if comm.rank else "no array", dist)
    with pytest.raises(hs.InvalidError, match="must be an array, got an object of type str"):
        store.flush()
    kept = fail()
    with pytest.raises(hs.NotFoundError, match=text):
        store.close()
    with pytest.raises(hs.NotFoundError):
        kept.wait()


def steps(comm: Any, path: Path) -> None:
    """A step is published when its requests are over, and not at all when one of them failed."""
    dist = spread(comm)
    with hs.open(path / "g.zarr", "w", comm=comm, durable=False) as store:
        with store.step("good") as step:
            for i in range(4):
                step.iwrite(f"a{i}", part(comm, float(i)), dist, chunks=(16, 40))
        assert np.array_equal(store.group("good").read("a3"), whole(3.0))
        array = part(comm)[1:] if comm.rank == 0 else part(comm)
        requests: list[hs.Request[Any]] = []

        def not_waited_for() -> None:
            with store.step("bad") as step:
                requests.extend([step.iwrite("a", array, dist), step.iwrite("b", part(comm), dist)])

        def waited_for() -> None:
            with store.step("worse") as step:
                step.iwrite("a", part(comm), dist, chunks=(4, 4))
                request = step.iwrite("b", array, dist)
                requests.append(step.iwrite("c", part(comm), dist, chunks=(4, 4)))
                request.wait()

        with pytest.raises(hs.InvalidError, match="publishing step 'bad'"):
            not_waited_for()
        assert requests[1].wait().bytes
        with pytest.raises(hs.InvalidError, match="expected shape"):
            waited_for()
        assert requests[2].test(), "what is given up is not written to any more"
        assert store.groups() == ["good"]
    comm.barrier()
    assert [each.name for each in path.iterdir() if "g.zarr" in each.name] == ["g.zarr"]


def files(comm: Any, path: Path) -> None:
    """Raw files: where an array begins follows from the calls before, and closing publishes all or nothing."""
    dist = spread(comm)
    name = path / "h.raw"
    with hs.open_raw(name, "w", comm=comm, order="C", header=b"12345678", durable=False) as file:
        requests = [file.iwrite({f"a{i}": part(comm, float(i))}, dist, staged=i == 1) for i in range(3)]
        bad = file.iwrite({"a0": part(comm)}, dist)
        last = file.iwrite({"last": part(comm, 9.0)}, dist, dtype="<f4")
        hs.wait_all(requests)
        with pytest.raises(hs.InvalidError, match="'a0' of a new file is written already"):
            bad.wait()
        assert list(file) == ["a0", "a1", "a2"]
        last.wait()
        assert list(file) == ["a0", "a1", "a2", "last"]
    known = {f"a{i}": (SHAPE, "f8") for i in range(3)} | {"last": (SHAPE, "<f4")}
    with hs.open_raw(name, "r+", comm=comm, order="C", header=8, arrays=known, durable=False) as file:
        half = hs.Distribution((48, 20), (comm.size,), ("cyclic", "*"))
        file.iwrite({"a1": part(comm, 5.0)[:, :20]}, half, section=(slice(0, 48), slice(20, 40)))
        request = file.iread("a1", dist)
        assert np.array_equal(file.iread("last").wait(), whole(9.0).astype("f4"))
        expected = np.concatenate([whole(1.0)[:, :20], whole(5.0)[:, :20]], axis=1)
        assert np.array_equal(request.wait(), expected[dist.indices(comm)[0]])
    comm.barrier()
    before = name.read_bytes()
    comm.barrier()

    def twice() -> None:
        with hs.open_raw(name, "w", comm=comm) as file:
            file.iwrite({"a": part(comm)}, dist)
            file.iwrite({"a": part(comm)}, dist)

    with pytest.raises(hs.InvalidError, match="a request that was not waited for failed"):
        twice()
    comm.barrier()
    assert name.read_bytes() == before
    assert sorted(each.name for each in path.iterdir() if "h.raw" in each.name) == ["h.raw"]


CASES: dict[str, Callable[[Any, Path], None]] = {
    each.__name__: each
    for each in (several_outstanding, overlap, staged, many_small, errors_on_all_ranks, not_silent, steps, files)
}
