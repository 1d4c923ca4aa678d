"""Verbs that are local, beside collective calls and requests, for any ranks: threads or MPI."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest

from request_cases import part, spread, whole

#: So long a rank waits for what another one does after local calls [s].
PATIENCE_SECONDS = 20.0
#: What all wait for is over sooner, or a rank waited for one that waits for it.
LIMITS: dict[str, Any] = {"arrival_seconds": 2 * PATIENCE_SECONDS}
PROGRAMS = 8
CALLS = 14


def await_file(path: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not path.exists():
        assert time.monotonic() < deadline, f"'{path}' did not come: a rank that should have made it waits"
        time.sleep(0.005)


def nobody_is_waited_for(comm: Any, path: Path) -> None:
    """A rank with a request under way looks around, before the others have made the call."""
    dist = spread(comm)
    with hs.open(path / "n.zarr", "w", comm=comm, durable=False, **LIMITS) as store:
        store.write("old", part(comm, 7.0), dist)
        if comm.rank > 0:
            await_file(path / "looked")
        request = store.iwrite("new", part(comm), dist)
        read = store.iread("new", dist)
        if comm.rank == 0:
            assert store["old"].shape == store["new"].shape == whole().shape
            assert np.array_equal(store.read_local("old"), whole(7.0))
            if comm.size > 1:
                assert store.arrays() == list(store) == ["old"]
                assert "new" not in store
                with pytest.raises(hs.InvalidError, match="is being written by a request that is under way"):
                    store.read_local("new")
            (path / "looked").touch()
        request.wait()
        assert store.arrays() == ["new", "old"]
        assert np.array_equal(read.wait(), part(comm))
    with hs.open_raw(path / "n.raw", "w", comm=comm, durable=False, **LIMITS) as file:
        file.write({"old": part(comm)}, dist)
        if comm.rank > 0:
            await_file(path / "looked again")
        request = file.iwrite({"new": part(comm)}, dist)
        assert list(file) == ["old"]
        if comm.rank == 0:
            (path / "looked again").touch()
        request.wait()
        assert list(file) == ["old", "new"]


def a_rank_alone(comm: Any, path: Path) -> None:
    """What one rank reads, and fails to, is its own; what others make is seen after `refresh`."""
    dist = spread(comm)
    with hs.open(path / "l.zarr", "w", comm=comm, durable=False) as store:
        store.write("a", part(comm), dist)
        if comm.rank == comm.size - 1:
            for _ in range(3):
                found = store.read_local("a", section=(slice(1, 48, 3), slice(2, 9)))
                assert np.array_equal(found, whole()[1:48:3, 2:9])
            out = np.zeros(whole().shape, "f4", order="F")
            assert store.read_local("a", out=out) is out
            assert np.array_equal(out, whole().astype("f4"))
            with pytest.raises(hs.NotFoundError, match="there is no array 'b'"):
                store.read_local("b")
            with pytest.raises(hs.InvalidError, match="cannot change from float64 to int32"):
                store.read_local("a", dtype="i4")
            with pytest.raises(hs.InvalidError) as wrong:
                store.read_local("a", out=np.zeros(3))
            assert "on rank" not in str(wrong.value).splitlines()[0].split("local part")[0]
            with hs.open(path / "l.zarr", "r+", comm=None, durable=False) as other:
                other.write("made by another", np.ones(3))
                with other.step("step") as step:
                    step.write("x", np.ones(3))
        comm.barrier()
        assert (store.arrays(), store.groups()) == (["a"], [])
        store.refresh()
        assert (store.arrays(), store.groups()) == (["a", "made by another"], ["step"])
        assert store.group("step").arrays() == ["x"]
        with store.step("own") as step:
            step.write("y", part(comm), dist)
            assert step.arrays() == ["y"]
        assert store.groups() == ["own", "step"]


def a_rank_alone_in_a_file(comm: Any, path: Path) -> None:
    """The same of a file: while a request writes to it, and before and after."""
    dist = spread(comm)
    arrays = {"a": (whole().shape, "f8"), "b": (whole().shape, "f8")}
    with hs.open_raw(path / "l.raw", "w", comm=comm, durable=False) as file:
        file.write({"a": part(comm), "b": part(comm, 3.0)}, dist)
        with pytest.raises(hs.InvalidError, match="a new file is read after it was closed"):
            file.read_local("a")
    with hs.open_raw(path / "l.raw", "r+", comm=comm, header=0, arrays=arrays, durable=False, **LIMITS) as file:
        if comm.rank > 0:
            await_file(path / "looked into the file")
        else:
            found = file.read_local("a", section=(slice(1, 48, 3), slice(2, 9)))
            assert np.array_equal(found, whole()[1:48:3, 2:9])
            out = np.zeros(whole().shape, "f4", order="F")
            assert file.read_local("b", out=out) is out
            assert np.array_equal(out, whole(3.0).astype("f4"))
            with pytest.raises(hs.NotFoundError, match="has no array 'c'"):
                file.read_local("c")
            with pytest.raises(hs.InvalidError, match="cannot change from float64 to int32"):
                file.read_local("a", dtype="i4")
        request = file.iwrite({"a": part(comm, 9.0)}, dist)
        if comm.rank == 0:
            if comm.size > 1:
                with pytest.raises(hs.InvalidError, match="is being written by a request that is under way"):
                    file.read_local("b")
            (path / "looked into the file").touch()
        request.wait()
        comm.barrier()
        assert np.array_equal(file.read_local("a", section=slice(5, 6)), whole(9.0)[[5]])
    with hs.open_raw(path / "l.raw", comm=comm, header=0, arrays=arrays) as file:
        read = file.iread("a", dist)
        assert np.array_equal(file.read_local("b"), whole(3.0))
        assert np.array_equal(read.wait(), part(comm, 9.0))


def any_mixture(comm: Any, path: Path) -> None:
    """Ranks make the same collective calls and requests, and each does something local in between, at its own pace."""
    for seed in range(PROGRAMS):
        mixture(comm, path / f"m{seed}.zarr", seed)


def mixture(comm: Any, path: Path, seed: int) -> None:
    """One such program."""
    same, own, dist = random.Random(seed), random.Random(1000 * seed + comm.rank), spread(comm)
    written: dict[str, float] = {}
    shown: set[str] = set()
    under_way: list[tuple[str | None, Any, Any]] = []
    # Small calls on a file, in between: what it holds, and whether a request may be changing it.
    raw, arrays = path.with_suffix(".raw"), {"f": (whole().shape, "f8")}
    holds, changing = 1.0, False
    with hs.open_raw(raw, "w", comm=comm, durable=False) as file:
        file.write({"f": part(comm, holds)}, dist)
    with (
        hs.open(path, "w", comm=comm, durable=False, **LIMITS) as store,
        hs.open_raw(raw, "r+", comm=comm, header=0, arrays=arrays, durable=False, **LIMITS) as file,
    ):

        def look() -> None:
            if own.random() < 0.3:
                time.sleep(own.random() * 0.01)
            assert store.arrays() == sorted(shown), f"seed {seed}"
            for name in own.sample(sorted(written), min(2, len(written))):
                assert store[name].shape == whole().shape
            busy = {name for name, _, _ in under_way}
            still = sorted(shown - busy)
            if still:
                name = own.choice(still)
                rows = own.randrange(48)
                assert np.array_equal(
                    store.read_local(name, section=slice(rows, rows + 1)), whole(written[name])[[rows]]
                )
            if not changing:
                rows = own.randrange(48)
                assert np.array_equal(file.read_local("f", section=slice(rows, rows + 1)), whole(holds)[[rows]])

        def over() -> None:
            nonlocal changing
            for name, request, expected in under_way:
                found = request.wait()
                assert expected is None or np.array_equal(found, expected)
                shown.update([name] if name else [])
            under_way.clear()
            changing = False

        for number in range(CALLS):
            look()
            kinds = ["write", "iwrite", "iwrite", "iread", "read", "wait", "flush"]
            kind = same.choice([*kinds, "write file", "iwrite file", "read file"])
            name, start = f"a{number}", float(same.randrange(100))
            if kind == "write":
                store.write(name, part(comm, start), dist)
                shown.update(each for each, _, _ in under_way if each)
                written[name] = start
                shown.add(name)
            elif kind == "iwrite":
                under_way.append((name, store.iwrite(name, part(comm, start), dist, staged=same.random() < 0.5), None))
                written[name] = start
            elif kind == "iread" and written:
                name = same.choice(sorted(written))
                under_way.append((None, store.iread(name, dist), part(comm, written[name])))
            elif kind == "read" and written:
                name = same.choice(sorted(written))
                assert np.array_equal(store.read(name, dist), part(comm, written[name]))
                shown.update(each for each, _, _ in under_way if each)
            elif kind == "wait":
                over()
            elif kind == "write file":
                file.write({"f": part(comm, start)}, dist)
                holds, changing = start, False
                shown.update(each for each, _, _ in under_way if each)
            elif kind == "iwrite file":
                under_way.append((None, file.iwrite({"f": part(comm, start)}, dist), None))
                holds, changing = start, True
            elif kind == "read file":
                assert np.array_equal(file.read("f", dist), part(comm, holds))
                shown.update(each for each, _, _ in under_way if each)
                changing = False
            elif kind == "flush":
                changing = False
                store.flush()
                shown.update(each for each, _, _ in under_way if each)
        look()
        over()
        look()


def a_failed_call_settles_all_ranks(comm: Any, path: Path) -> None:
    """Also the rank whose arguments are at fault: lists are the same afterwards."""
    dist = spread(comm)
    with hs.open(path / "s.zarr", "w", comm=comm, durable=False) as store:
        request = store.iwrite("x", part(comm), dist)
        with pytest.raises(hs.InvalidError):
            store.write("y", [1, 2] if comm.rank == 0 else part(comm), dist)
        assert store.arrays() == ["x"]
        request.wait()
    with hs.open_raw(path / "s.raw", "w", comm=comm, durable=False) as file:
        request = file.iwrite({"x": part(comm)}, dist)
        with pytest.raises(hs.InvalidError):
            file.write({"y": [1, 2] if comm.rank == 0 else part(comm)}, dist)
        assert list(file) == ["x"]
        request.wait()


def a_section_that_one_rank_cannot_write(comm: Any, path: Path) -> None:
    """What looks at the array before is an agreement of its own, in which all ranks hear of it."""
    dist = spread(comm)
    with hs.open(path / "f.zarr", "w", comm=comm, durable=False, **LIMITS) as store:
        store.write("a", part(comm), dist)
        casting: Any = "as you like" if comm.rank == 0 else "same_kind"
        request = store.iwrite("a", part(comm), dist, section=(slice(0, 48), slice(0, 40)), casting=casting)
        with pytest.raises(hs.InvalidError, match="as you like"):
            request.wait()
        store.write("b", part(comm), dist)
        assert store.arrays() == ["a", "b"]


def an_array_that_is_made_twice(comm: Any, path: Path) -> None:
    """It is listed from the first time on, whichever request a rank has seen end."""
    dist = spread(comm)
    with hs.open(path / "w.zarr", "w", comm=comm, durable=False) as store:
        requests = [store.iwrite("x", part(comm, float(i)), dist, overwrite=True) for i in range(6)]
        requests[0].wait()
        assert store.arrays() == ["x"]
        hs.wait_all(requests)
        assert np.array_equal(store.read("x", dist), part(comm, 5.0))


def a_local_error_in_a_step(comm: Any, path: Path) -> None:
    """The others are told, since they cannot know."""
    dist = spread(comm)
    with hs.open(path / "e.zarr", "w", comm=comm, durable=False, **LIMITS) as store:

        def wrong() -> None:
            with store.step("s") as step:
                step.write("a", part(comm), dist)
                if comm.rank == 0:
                    step.read_local("missing")

        kind = hs.NotFoundError if comm.rank == 0 else hs.PeerError
        with pytest.raises(kind):
            wrong()
        assert store.groups() == []


def two_openings(comm: Any, path: Path) -> None:
    """Of one group in one communicator: each knows what requests of the other make."""
    dist = spread(comm)
    with (
        hs.open(path / "t.zarr", "w", comm=comm, durable=False) as one,
        hs.open(path / "t.zarr", "r+", comm=comm, durable=False) as two,
    ):
        one.write("old", part(comm), dist)
        assert two.arrays() == ["old"]
        request = one.iwrite("new", part(comm, 5.0), dist)
        assert np.array_equal(two.iread("new", dist).wait(), part(comm, 5.0))
        request.wait()
        assert two.arrays() == one.arrays() == ["new", "old"]


def types_that_a_rank_does_not_know(comm: Any, path: Path) -> None:
    """A rank without pieces reads what the others write, in their type."""
    boxes = [((0, 0), (4, 6))] if comm.rank == 0 else []
    held = hs.Boxes((4, 6), boxes)
    values = [np.full((4, 6), 2 + 3j)] if comm.rank == 0 else []
    with hs.open(path / "c.zarr", "w", comm=comm, durable=False) as store:
        request = store.iwrite("z", values, held)
        found = store.iread("z").wait()
        request.wait()
        assert found.dtype == np.complex128
        assert np.array_equal(found, np.full((4, 6), 2 + 3j))
        second = store.iwrite("z", [np.zeros((4, 6))] if comm.rank == 0 else [], held)
        again = store.iread("z")
        with pytest.raises(hs.ExistsError):
            second.wait()
        assert np.array_equal(again.wait(), found)


LOCAL_CASES: dict[str, Callable[[Any, Path], None]] = {
    each.__name__: each
    for each in (
        nobody_is_waited_for,
        a_rank_alone,
        a_rank_alone_in_a_file,
        any_mixture,
        a_failed_call_settles_all_ranks,
        a_local_error_in_a_step,
        a_section_that_one_rank_cannot_write,
        an_array_that_is_made_twice,
        two_openings,
        types_that_a_rank_does_not_know,
    )
}
