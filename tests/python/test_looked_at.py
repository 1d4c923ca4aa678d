"""What ranks saw of an array before is never taken for what it is now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest
import zarr

RANKS = 3
SHAPE = (12, 5)


def changed(path: Path, how: str) -> np.ndarray[Any, Any]:
    """Changes the array as another program does; gives what it is then."""
    with hs.open(path, "r+", durable=False) as other:
        if how == "replaced":
            other.write("a", np.full((7, 3), 2, dtype=np.int32), overwrite=True)
        elif how == "appended":
            other.append("a", np.full((4, 5), 2.0))
        elif how == "updated":
            other.write("a", np.full(SHAPE, 2.0), section=(slice(None), slice(None)))
    if how == "resized by zarr":
        array: Any = zarr.open_group(path, mode="r+")["a"]
        array.resize((20, 5))
    now: Any = zarr.open_group(path, mode="r")["a"]
    return np.asarray(now[:])


@pytest.mark.parametrize("ranks", [1, RANKS])
@pytest.mark.parametrize("how", ["replaced", "appended", "updated", "resized by zarr"])
def test_what_another_program_changed_is_read(how: str, ranks: int, tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"

    def program(comm: hs.Comm) -> None:
        with hs.open(path, "w", comm=comm, durable=False) as store:
            block = hs.Distribution(SHAPE, (comm.size,), ("block", "*"))
            store.write("a", np.ones(block.local_shape(comm)), block)
            for _ in range(3):
                assert np.array_equal(store.read("a"), np.ones(SHAPE))
            expected = changed(path, how) if comm.rank == 0 else None
            expected = gathered(store, comm, expected)
            for _ in range(3):
                found = store.read("a")
                assert found.dtype == expected.dtype
                assert np.array_equal(found, expected)
            spread = hs.Distribution(expected.shape, (comm.size,), ("cyclic", "*"))
            assert np.array_equal(store.read("a", spread), expected[comm.rank :: comm.size])
            out = np.zeros(expected.shape, expected.dtype)
            assert np.array_equal(store.read("a", out=out), expected)
            assert np.array_equal(store.read("a", section=(slice(1, None), slice(0, 2))), expected[1:, :2])

    hs.threads(ranks, program)


def gathered(store: hs.Group, comm: hs.Comm, found: np.ndarray[Any, Any] | None) -> np.ndarray[Any, Any]:
    """What rank 0 has, on all ranks, by another array."""
    if found is not None:
        with hs.open(Path(store.path).parent / "told.zarr", "w", durable=False) as other:
            other.write("told", found)
    store.flush()
    with hs.open(Path(store.path).parent / "told.zarr", comm=comm) as other:
        return np.asarray(other.read("told"))


def test_what_is_gone_is_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"

    def program(comm: hs.Comm) -> None:
        with hs.open(path, "w", comm=comm, durable=False) as store:
            store.write("a", np.ones(SHAPE), hs.Distribution.replicated(SHAPE, comm.size))
            assert store.read("a").shape == SHAPE
            if comm.rank == 0:
                (path / "a").rename(path / "b")
            store.flush()
            with pytest.raises(hs.NotFoundError, match="there is no array 'a'"):
                store.read("a")
            assert store.read("b").shape == SHAPE

    hs.threads(RANKS, program)


def test_what_requests_under_way_change_is_read(tmp_path: Path) -> None:
    def program(comm: hs.Comm) -> None:
        with hs.open(tmp_path / "a.zarr", "w", comm=comm, durable=False) as store:
            store.write("a", np.ones(SHAPE), hs.Distribution.replicated(SHAPE, comm.size))
            assert store.read("a").shape == SHAPE
            for extent in range(1, 20):
                shape = (extent, 2)
                whole = hs.Distribution.replicated(shape, comm.size)
                request = store.iwrite("a", np.full(shape, extent), whole, overwrite=True)
                assert np.array_equal(store.read("a"), np.full(shape, extent))
                request.wait()

    hs.threads(RANKS, program)
