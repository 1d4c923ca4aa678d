"""Everyday verbs of groups and arrays, on the ranks of an MPI program; each ends with what other tools see."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest
import zarr
from mpi4py import MPI

SHAPE = (9, 7)


def whole(shift: float = 0.0) -> np.ndarray:
    """The elements of the array that all cases have."""
    return np.arange(63.0).reshape(SHAPE) + shift


def spread(comm: Any, shape: tuple[int, ...] = SHAPE) -> hs.Distribution:
    return hs.Distribution.block(shape, comm.size)


def part(comm: Any, values: np.ndarray) -> np.ndarray:
    """What this rank holds."""
    return values[spread(comm, values.shape).slices(comm)].copy()


def theirs(path: Path, name: str) -> np.ndarray:
    return zarr.open(path, mode="r")[name][...]


def arrays_and_indices(comm: Any, path: Path) -> None:
    """What NumPy selects of an array in memory, each rank reads by itself."""
    with hs.open(path, "w", comm=comm, durable=False) as store:
        store.write("rho", part(comm, whole()), dist=spread(comm), chunks=(4, 3), dimension_names=("x", "y"))
        rho = store["rho"]
        assert (rho.shape, rho.dtype, rho.ndim, rho.size, rho.nbytes, len(rho)) == (
            SHAPE,
            np.dtype("f8"),
            2,
            63,
            504,
            9,
        )
        assert (rho.chunks, rho.shards, rho.dimension_names, rho.name) == ((4, 3), None, ("x", "y"), "rho")
        keys: list[Any] = [
            ...,
            3,
            -1,
            (2, -3),
            slice(2, 7),
            (slice(None, None, 2), 1),
            (slice(-3, None), slice(0, -1, 3)),
        ]
        keys += [
            (..., -2),
            (1, ...),
            (np.int64(4), slice(5, 2)),
            slice(50, 60),
            [3, 1, 1, -1],
            ([], slice(2)),
            (slice(2), [5, 0]),
        ]
        keys += [np.array([0, 2, 4, 5]), range(1, 8, 3), whole() > 3, ([3, 0], [1, 5])]
        for key in keys:
            if comm.rank != comm.size - 1:  # some ranks only, and in whatever order
                assert np.array_equal(rho[key], whole()[key]), key
        assert np.array_equal(np.asarray(rho), whole())
        assert np.asarray(rho, "f4").dtype == np.float32
        assert np.array_equal(list(rho)[2], whole()[2])
        for key, text in [
            (9, "index 9 is out of range for dimension 0"),
            ((0, 0, 0), "the section has 3 dimensions"),
            (slice(None, None, -1), "positive"),
            (whole()[:-1] > 3, "mask"),
            (([0, 1], [0, 1, 2]), "oindex"),
            ("x", "got 'x'"),
            (None, "got None"),
            ((..., ...), "'...'"),
            ([9], "index 9"),
        ]:
            with pytest.raises((hs.InvalidError, IndexError), match=re.escape(text)):
                rho[key]
        section = [[7, 0, 3], slice(1, 6, 2)]
        dist = spread(comm, (3, 3))
        found = rho.read(dist, section=section, dtype="f4")
        assert np.array_equal(found, whole()[[7, 0, 3], 1:6:2][dist.slices(comm)])
        out = np.zeros((3, 2 * 3), "f8")[:, ::2]
        rho.read(section=section, out=out)
        assert np.array_equal(out, whole()[[7, 0, 3], 1:6:2])
        assert np.array_equal(rho.read(section=(..., -1)), whole()[:, -1:])
        rho.write(part(comm, whole(1)), spread(comm))
        assert np.array_equal(rho[1], whole(1)[1]), "what was changed is seen"
    assert np.array_equal(theirs(path, "rho"), whole(1))


def mappings(comm: Any, path: Path) -> None:
    """Stores, steps and files have one and the same interface of a mapping."""
    values, dist = part(comm, whole()), spread(comm)
    opened: list[Callable[[str], hs.Group]] = [
        lambda mode: hs.open(path / "m.zarr", mode, comm=comm),
        lambda mode: hs.open(path / "m.nc", mode, comm=comm),
        lambda mode: hs.open_raw(
            path / "m.raw", mode, comm=comm, arrays=dict.fromkeys("ab", (SHAPE, "f8")) if mode == "r" else None
        ),
    ]
    for opening in opened:
        with opening("w") as group:
            assert (len(group), list(group), bool(group)) == (0, [], True)
            group.write({"a": values, "b": values}, dist)
            assert (len(group), list(group), list(group.keys()), "a" in group, "c" in group) == (
                2,
                ["a", "b"],
                ["a", "b"],
                True,
                False,
            )
        with opening("r") as group:
            assert {name: array.shape for name, array in group.items()} == {"a": SHAPE, "b": SHAPE}
            assert np.array_equal(group["b"][2:4, 1], whole()[2:4, 1])
            assert group.get("c") is None
            with pytest.raises(KeyError) as caught:
                group["c"]
            assert isinstance(caught.value, hs.NotFoundError)
            both = group.read(["a", "b"], {"a": dist})
            assert np.array_equal(both["a"], values)
            assert np.array_equal(both["b"], whole()), "every rank gets all of what no distribution is given for"


def everyday(comm: Any, path: Path) -> None:
    """Create, append several, rename, resize and delete; mode a; groups in groups; steps that are kept."""
    dist = spread(comm)
    with hs.open(path, "a", comm=comm) as store:
        mine = store.create_array("deep/er/a", SHAPE, "f4", chunks=(2, 7), fill_value=-1, attributes={"n": 1})
        assert not list((path / "deep/er/a").glob("c*")), "nothing is written"
        assert np.array_equal(mine[...], np.full(SHAPE, -1, "f4"))
        mine.write(part(comm, whole()[:3]), spread(comm, (3, 7)), section=slice(2, 5))
        group = store.create_group("deep/er", attributes={"by": "us"}, exist_ok=True)
        assert (group.attrs, list(group), store.groups(), "deep/er/a" in store) == ({"by": "us"}, ["a"], ["deep"], True)
        store.write("x", part(comm, whole()), dist, chunks=(4, 4), fill_value=5)
        store.write({"t": np.zeros(2) if comm.rank == 0 else np.zeros(0)}, dist=hs.Distribution((2,), (1,)))
    with hs.open(path, "a", comm=comm) as store:
        assert np.array_equal(theirs(path, "deep/er/a")[2:5], whole()[:3])
        both = {"x": part(comm, whole(100)), "t": np.ones(9) if comm.rank == 0 else np.zeros(0)}
        store.append(both, {"x": dist, "t": hs.Distribution((9,), (1,))})
        assert store["x"].shape == (18, 7)
        assert np.array_equal(theirs(path, "x"), np.concatenate([whole(), whole(100)]))
        assert theirs(path, "t").tolist() == [0, 0] + [1] * 9
        expected = np.concatenate([whole(), whole(100)])
        for shape in [(5, 7), (5, 3), (6, 9), (13, 9), (13, 0), (2, 2), (11, 11)]:
            store["x"].resize(shape)
            kept = expected[: shape[0], : shape[1]]
            expected = np.full(shape, 5.0)
            expected[: kept.shape[0], : kept.shape[1]] = kept
            assert np.array_equal(theirs(path, "x"), expected), shape
            assert np.array_equal(store["x"][...], expected), shape
        store.rename("x", "deep/y")
        store.rename("t", "time")
        assert (list(store), "x" in store, store["deep/y"].shape) == (["time"], False, (11, 11))
        store.delete("deep/y")
        del store["time"]
        assert (list(store), sorted(child.name for child in (path / "deep").iterdir())) == ([], ["er", "zarr.json"])
        for number in (2, 9, 10, 11):
            with store.step(f"step_{number}", attributes={"n": number}) as step:
                step.write("a", part(comm, whole()), dist)
                step.attrs["more"] = [number]
        store.create_group("step_99")
        assert list(store.steps) == ["step_2", "step_9", "step_10", "step_11"], "by number; a group is no step"
        assert store.steps.keep(3) == ["step_2"]
        assert (store.steps.latest(), len(store.steps), store.steps[0]) == ("step_11", 3, "step_9")
        assert store.group("step_10").attrs == {"n": 10, "more": [10]}
        assert store.groups() == ["deep", "step_10", "step_11", "step_9", "step_99"]
        store.consolidate()
        store.rename("step_11", "last")
        store["deep/er/a"].attrs["n"] = 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        root = zarr.open_group(path, mode="r", use_consolidated=False)
        assert sorted(root.group_keys()) == ["deep", "last", "step_10", "step_9", "step_99"]
        assert dict(root["deep/er/a"].attrs) == {"n": 2}
        assert zarr.open_group(path, mode="r").metadata.consolidated_metadata is None, "a stale one is gone"


def what_is_refused(comm: Any, path: Path) -> None:
    """Each is the same error on all ranks, and nothing changes."""
    dist, values = spread(comm), part(comm, whole())
    with hs.open(path, "w", comm=comm) as store:
        store.write({"a": values, "b": values}, dist)
        store.create_group("g")
        other = "a" if comm.rank else "b"
        one = comm.size == 1
        for call, kind, text in [
            (lambda: store.delete("none"), hs.NotFoundError, "there is no array or group 'none'"),
            (lambda: store.rename("a", "b"), hs.ExistsError, "exists already"),
            (lambda: store.rename("a", "none/b"), hs.NotFoundError, "there is no group"),
            (lambda: store.resize("a", (3,)), hs.InvalidError, "the number of dimensions stays"),
            (lambda: store.resize("g", (3,)), hs.NotFoundError, "is a group, not an array"),
            (lambda: store["a"].resize((3, -1)), hs.InvalidError, "(3, -1)"),
            (lambda: store.create_group("g"), hs.ExistsError, "there already"),
            (lambda: store.create_group("a/g"), hs.ExistsError, "is an array"),
            (lambda: store.write("c", values, dist, chunk=(3, 3)), hs.InvalidError, "did you mean chunks=?"),
            (
                lambda: store.write("c", values, distribution=dist),
                hs.InvalidError,
                "write() has no option distribution=",
            ),
            (lambda: store.append({"a": values, "b": values[:, :1]}, dist), hs.InvalidError, "'b'"),
            (lambda: store.append({"a": values, "none": values}, dist), hs.NotFoundError, "none"),
            (lambda: store.write({"c": values}, {"d": dist}), hs.InvalidError, "dist has 'd'"),
            (lambda: store.steps.keep(0), hs.InvalidError, "would delete all steps"),
            (lambda: store["a"].write(values, dist, section=([0], 1)), hs.InvalidError, "lists of indices"),
            (lambda: store.delete(other), hs.DisagreementError if not one else None, "ranks"),
        ]:
            if kind is None:
                continue
            with pytest.raises(kind, match=re.escape(text)):
                call()
        assert (list(store), store["a"].shape, store["b"].shape) == (["a", "b"], SHAPE, SHAPE)
        assert np.array_equal(store.read("a"), whole())
        with pytest.raises(TypeError, match=re.escape("all ranks write together")):
            store["a"][0] = 1
    with hs.open(path / "../f.nc", "w", comm=comm) as file:
        file.write("a", values, dist)
        for call in (
            lambda: file.delete("a"),
            lambda: file.resize("a", (3, 3)),
        ):
            with pytest.raises(hs.UnsupportedError, match=re.escape("would move what lies behind it")):
                call()


CASES = {case.__name__: case for case in (arrays_and_indices, mappings, everyday, what_is_refused)}


def main() -> None:
    """Run all cases below a directory."""
    comm, path = MPI.COMM_WORLD, Path(sys.argv[1])
    for name, case in CASES.items():
        if comm.rank == 0:
            (path / name).mkdir()
        comm.barrier()
        case(comm, path / name if case is mappings else path / name / "s.zarr")
    if comm.rank == 0:
        print("all", len(CASES))


if __name__ == "__main__":
    main()
