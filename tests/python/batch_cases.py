"""Batches, as a collection of cases for any ranks: threads or MPI."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest
import zarr

#: Of several types and of several extents, one of them empty.
SHAPES: dict[str, tuple[tuple[int, ...], str]] = {
    "rho": ((12, 10), "f8"),
    "steps": ((7,), "i4"),
    "u": ((3, 5, 8), "f4"),
    "none": ((0, 4), "f8"),
    "time": ((1,), "f8"),
}


def spread(comm: Any, shape: tuple[int, ...]) -> hs.Distribution:
    """Rows dealt out, which some ranks may have none of."""
    return hs.Distribution(shape, (comm.size,), ("cyclic", *("*",) * (len(shape) - 1)))


def whole(name: str, start: float = 0.0) -> np.ndarray:
    """A global array in which all elements differ."""
    shape, dtype = SHAPES[name]
    return (start + np.arange(np.prod(shape))).reshape(shape).astype(dtype)


def part(comm: Any, name: str, start: float = 0.0) -> np.ndarray:
    """This rank's part of it."""
    return whole(name, start)[spread(comm, SHAPES[name][0]).indices(comm)[0]].copy()


def gather(comm: Any, batch: hs.Batch, start: float = 0.0, *, empty: bool = True, **options: Any) -> None:
    """Gather all of them, or all but the empty one."""
    for name, (shape, dtype) in SHAPES.items():
        if name == "none" and not empty:
            continue
        batch.write(name, part(comm, name, start), spread(comm, shape), dtype=dtype, **options)


def written_in_one_call(comm: Any, path: Path) -> None:
    """Each array has its own shape, type and options, also in a group, a step, and files."""
    with hs.open(path / "a.zarr", "w", comm=comm, durable=False) as store:
        with store.batch() as batch:
            gather(comm, batch)
            shape = (12, 10)
            given = {"tiny": (("x", "y"), part(comm, "rho"), {"unit": "g"}), "zeros": part(comm, "rho", 5.0)}
            batch.write(given, spread(comm, shape), chunks=(4, 5), zstd=3, fill_value=5.0)
            assert store.arrays() == [], "nothing is written before the end"
        assert batch.report is not None
        assert sorted(store.arrays()) == sorted([*SHAPES, "tiny", "zeros"])
        for name in SHAPES:
            assert np.array_equal(store.read(name), whole(name)), name
        group = store.create_group("below")
        with group.batch() as batch:
            gather(comm, batch, 7.0)
        with store.step("1") as step, step.batch() as batch:
            gather(comm, batch, 9.0)
        assert np.array_equal(store.read("below/u"), whole("u", 7.0))
        assert np.array_equal(store.read("1/u"), whole("u", 9.0))
    if comm.rank == 0:
        root = zarr.open_group(path / "a.zarr", mode="r")
        assert root["tiny"].metadata.dimension_names == ("x", "y")
        assert (root["tiny"].attrs.asdict(), root["zeros"].fill_value) == ({"unit": "g"}, 5.0)
        assert root["tiny"].chunks == (4, 5)
        assert "Zstd" in str(root["tiny"].metadata.codecs)
        assert "Zstd" not in str(root["rho"].metadata.codecs)
        for name, start in (("rho", 0.0), ("below/rho", 7.0), ("1/rho", 9.0)):
            assert np.array_equal(root[name][...], whole("rho", start))
        assert [each.name for each in (path / "a.zarr").rglob(".*")] == []
    for name in ("b.nc", "b.h5", "b.raw"):
        new: Any = hs.open_raw if name.endswith("raw") else hs.open
        with new(path / name, "w", comm=comm, durable=False) as file, file.batch() as batch:
            gather(comm, batch, empty=False)
        if not name.endswith("raw"):
            with hs.open(path / name, comm=comm) as file:
                assert all(np.array_equal(file.read(each), whole(each)) for each in SHAPES if each != "none")


def changes(comm: Any, path: Path) -> None:
    """Sections of arrays that are there, and arrays that take the place of others."""
    with hs.open(path / "c.zarr", "w", comm=comm, durable=False) as store:
        with store.batch() as batch:
            gather(comm, batch)
        with store.batch() as batch:
            for name in ("rho", "u"):
                shape = (2, *SHAPES[name][0][1:])
                rows = np.full(spread(comm, shape).local_shape(comm), -1.0)
                batch.write(name, rows, spread(comm, shape), section=(slice(1, 3), ...))
        for name in ("rho", "u"):
            expected = whole(name)
            expected[1:3] = -1
            assert np.array_equal(store.read(name), expected)
        with store.batch() as batch:
            gather(comm, batch, 3.0, overwrite=True)
        assert np.array_equal(store.read("rho"), whole("rho", 3.0))


def refused(comm: Any, path: Path) -> None:
    """What is wrong is an error on all ranks, nothing is written, and the store can be used."""
    with hs.open(path / "d.zarr", "w", comm=comm, durable=False) as store:
        rho = part(comm, "rho")
        dist = spread(comm, (12, 10))

        def batch_of(*writes: tuple[str, Any, dict[str, Any]]) -> None:
            with store.batch() as batch:
                for name, array, options in writes:
                    batch.write(name, array, dist, **options)

        last = comm.rank == comm.size - 1
        with pytest.raises(hs.InvalidError, match="differ in overwrite"):
            batch_of(("a", rho, {}), ("b", rho, {"overwrite": True}))
        with pytest.raises(hs.InvalidError, match="differ in casting"):
            batch_of(("a", rho, {}), ("b", rho, {"casting": "unsafe"}))
        with pytest.raises(hs.InvalidError, match="'a' is named twice"):
            batch_of(("a", rho, {}), ("a", rho, {}))
        with pytest.raises(hs.InvalidError, match="the local part of 'b' does not fit"):
            batch_of(("a", rho, {}), ("b", rho[:, 1:] if last else rho, {}))
        with pytest.raises(hs.InvalidError, match="must be an array"):
            batch_of(("a", rho, {}), ("b", "nothing" if last else rho, {}))
        if comm.size > 1:
            with pytest.raises(hs.DisagreementError, match="chunks"):
                batch_of(("a", rho, {"chunks": (2, 2)}), ("b", rho, {"chunks": (3, 3) if last else (4, 4)}))
            with pytest.raises(hs.DisagreementError):
                batch_of(*[("a", rho, {})] * (0 if last else 1))

            def fail_between_writes() -> None:
                with store.batch() as batch:
                    batch.write("a", rho, dist)
                    assert comm.size / (0 if last else 1)

            with pytest.raises(ZeroDivisionError if last else hs.PeerError, match="division by zero"):
                fail_between_writes()
        store.refresh()
        assert store.arrays() == []
        batch_of(("a", rho, {}))
        with store.batch():
            pass
        batch = store.batch()
        batch.close()
        with pytest.raises(RuntimeError, match="the batch is over"):
            batch.write("z", rho, dist)
        assert store.arrays() == ["a"]


CASES: dict[str, Callable[[Any, Path], None]] = {
    case.__name__: case for case in (written_in_one_call, changes, refused)
}
