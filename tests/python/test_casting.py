"""Which changes of the element type are allowed, through every door: as NumPy's ``same_kind`` says, or all.

What is refused is refused on all ranks by the same words, and nothing is published or changed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest

from casting_cases import DOORS, SHAPE, Door, floats, integers, part, spread
from mpi_launch import run_ranks

ml_dtypes = pytest.importorskip("ml_dtypes")

#: How often something hidden may go away while a directory is looked at.
LOOKS_MAX = 20
RANKS = 3
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
KINDS = tuple(map(np.dtype, ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")))


def numpy_allows(a: np.dtype[Any], b: np.dtype[Any]) -> bool:
    """What NumPy says, to whom bfloat16 shall be a float."""
    a, b = (np.dtype("f2") if kind == BFLOAT16 else kind for kind in (a, b))
    return np.can_cast(a, b, casting="same_kind")


def small(kind: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Values that all kinds but truth values hold."""
    return np.array([[0, 1, 2], [3, 4, 5]]).astype(kind)


def converted(local: np.ndarray[Any, Any], kind: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """What NumPy makes of them, without its warning that imaginary parts are lost."""
    with warnings.catch_warnings(action="ignore", category=np.exceptions.ComplexWarning):
        return local.astype(kind)


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(hs.InvalidError) as caught:
        call()
    return str(caught.value)


# ---- every pair of kinds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [*KINDS, BFLOAT16], ids=str)
def test_writes_allow_what_numpy_allows(source: np.dtype[Any]) -> None:
    local = small(source)
    with hs.open(hs.MemoryStore(), "w") as store:
        for kind in (*KINDS, BFLOAT16):
            name = f"from {source} to {kind}"
            if numpy_allows(source, kind):
                store.write(name, local, dtype=kind)
                np.testing.assert_array_equal(store.read(name), local.astype(kind))
            else:
                told = refused(lambda name=name, kind=kind: store.write(name, local, dtype=kind))
                assert f"'{name}'" in told
                assert f"from {source} to {kind}" in told.replace(f"'{name}'", "")
                assert 'casting="unsafe"' in told
                assert name not in store
            expected = converted(local, kind)
            store.write(name, local, dtype=kind, casting="unsafe", overwrite=True)
            np.testing.assert_array_equal(store.read(name), expected)


@pytest.mark.parametrize("kind", [*KINDS, BFLOAT16], ids=str)
def test_reads_allow_what_numpy_allows(kind: np.dtype[Any]) -> None:
    with hs.open(hs.MemoryStore(), "w") as store:
        for source in (*KINDS, BFLOAT16):
            name, local = str(source), small(source)
            store.write(name, local)
            out = np.empty_like(local, kind)
            if numpy_allows(source, kind):
                np.testing.assert_array_equal(store.read(name, dtype=kind), local.astype(kind))
                assert store.read(name, out=out) is out
                np.testing.assert_array_equal(out, local.astype(kind))
            else:
                for options in ({"dtype": kind}, {"out": out}):
                    told = refused(lambda name=name, options=options: store.read(name, **options))
                    assert f"'{name}'" in told
                    assert f"from {source} to {kind}" in told
            expected = converted(local, kind)
            np.testing.assert_array_equal(store.read(name, dtype=kind, casting="unsafe"), expected)


def test_the_order_of_bytes_is_no_change_of_the_type(tmp_path: Path) -> None:
    values = np.arange(6.0).reshape(2, 3)
    with hs.open_raw(tmp_path / "a.raw", "w", order="C") as file:
        file.write({"a": values.astype(">i4")}, dtype="<i4")
        file.write({"b": values.astype("<f8")}, dtype=">f4")
    arrays = {"a": ((2, 3), "<i4"), "b": ((2, 3), ">f4")}
    with hs.open_raw(tmp_path / "a.raw", order="C", arrays=arrays) as file:
        np.testing.assert_array_equal(file.read("a", dtype=">i4"), values)
        np.testing.assert_array_equal(file.read("b", dtype="<f8"), values)
        assert "from float32 to int32" in refused(lambda: file.read("b", dtype="i4"))


# ---- every door ------------------------------------------------------------------------------------------------


def contents(path: Path) -> dict[str, bytes]:
    """All that a directory holds, but for hidden things of open stores: of those, only markers of updates count."""
    for _ in range(LOOKS_MAX):
        try:
            return visible(path)
        except FileNotFoundError:
            # A thread of its own removes what a durable call left hidden.
            continue
    return visible(path)


def visible(path: Path) -> dict[str, bytes]:
    """The same in one look."""
    files = (file.relative_to(path) for file in path.rglob("*") if file.is_file())

    def counts(file: Path) -> bool:
        return all(not part.startswith(".") or "update" in part for part in file.parts)

    return {str(file): (path / file).read_bytes() for file in files if counts(file)}


def through(door: Door, path: Path, *, nan: bool = False, **rule: Any) -> list[Any]:
    """Go through a door with 3 threads: what each read, or the error that each got."""

    def one(comm: hs.ThreadComm) -> Any:
        try:
            return door.act(comm, path, rule, floats(nan=nan))
        except hs.Error as error:
            return error

    return hs.threads(RANKS, one)


def prepared(door: Door, path: Path, *, nan: bool = False) -> dict[str, bytes]:
    door.prepare(path, floats(nan=nan))
    return contents(path)


def same_error(found: list[Any]) -> str:
    """The words of the one error that all ranks got."""
    assert all(type(error) is hs.InvalidError for error in found), found
    (told,) = {str(error) for error in found}
    return told


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_what_loses_more_than_precision_is_refused(door: Door, tmp_path: Path) -> None:
    before = prepared(door, tmp_path)
    for rule in ({}, {"casting": "same_kind"}):
        told = same_error(through(door, tmp_path, **rule))
        assert f"'{door.name}'" in told
        assert "from float64 to int16" in told
        assert "fractions would be lost" in told
        assert "\n  hint: " in told
        assert 'or give casting="unsafe"' in told
        assert contents(tmp_path) == before


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_values_saturate_where_the_caller_says_so(door: Door, tmp_path: Path) -> None:
    prepared(door, tmp_path)
    found = through(door, tmp_path, casting="unsafe")
    assert not any(isinstance(part, Exception) for part in found), found
    whole = np.concatenate(found) if door.written is None else door.written(tmp_path)
    assert whole.dtype == integers().dtype
    np.testing.assert_array_equal(whole, integers())


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_a_nan_never_becomes_an_integer(door: Door, tmp_path: Path) -> None:
    before = prepared(door, tmp_path, nan=True)
    told = same_error(through(door, tmp_path, nan=True, casting="unsafe"))
    assert f"'{door.name}'" in told
    assert "NaN" in told
    assert "int16" in told
    assert "hint: " in told
    if door.written is not None:
        # Row 11 is the last of the four of rank 2; of two boxes side by side, the second begins at column 2.
        assert "(3, 3)" in told or "(3, 1) in local array 1" in told
        assert "rank 2" in told
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "door", [DOORS[name] for name in ("write", "append", "iwrite", "new_raw", "npy", "read", "load_npy")]
)
def test_a_rule_that_is_not_known_is_refused(door: Door, tmp_path: Path) -> None:
    before = prepared(door, tmp_path)
    for rule in ("safe", "equiv", "", None, True):
        told = same_error(through(door, tmp_path, casting=rule))
        assert f"casting must be 'same_kind' or 'unsafe', got '{rule}'" in told
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["write", "iwrite", "section", "append", "step", "raw_in_place", "read", "read_raw"])
def test_dedicated_servers_hold_to_it(name: str, tmp_path: Path) -> None:
    """Data pass through a rank that has no elements of its own."""
    door = DOORS[name]

    def one(comm: hs.ThreadComm, path: Path, rule: dict[str, Any], *, nan: bool) -> Any:
        with hs.dedicate(comm, 1) as io:
            if io.is_server:
                io.serve()
                return None
            try:
                return io.rank, door.act(io, path, rule, floats(nan=nan))
            except hs.InvalidError as error:
                return io.rank, error

    def served(where: str, *, nan: bool = False, **rule: Any) -> list[Any]:
        path = tmp_path / where
        path.mkdir()
        before = prepared(door, path, nan=nan)
        answers = hs.threads(RANKS + 1, lambda comm: one(comm, path, rule, nan=nan))
        found = [answer for _, answer in sorted(answer for answer in answers if answer is not None)]
        if any(isinstance(answer, Exception) for answer in found):
            assert contents(path) == before
        return found

    assert "from float64 to int16" in same_error(served("refused"))
    assert "NaN" in same_error(served("nan", nan=True, casting="unsafe"))
    found = served("done", casting="unsafe")
    whole = np.concatenate(found) if door.written is None else door.written(tmp_path / "done")
    np.testing.assert_array_equal(whole, integers())


@pytest.mark.mpi
def test_ranks_of_an_mpi_job(tmp_path: Path) -> None:
    """All doors again, where data cross between processes."""
    assert f"{len(DOORS)} doors" in run_ranks(3, "casting", tmp_path)


# ---- what else -------------------------------------------------------------------------------------------------


def test_a_refused_call_leaves_a_store_that_works(tmp_path: Path) -> None:
    def one(comm: hs.ThreadComm) -> None:
        mine, dist = part(comm, floats()), spread(comm)
        with hs.open(tmp_path / "run.zarr", "w", comm=comm) as store:
            for rule in ({}, {"casting": "unsafe"}):
                broken = part(comm, floats(nan=True)) if rule else mine
                refused(lambda broken=broken, rule=rule: store.write("rho", broken, dist, dtype="i2", **rule))
                assert store.arrays() == []
            store.write("rho", mine, dist)
            refused(lambda: store.read("rho", dist, dtype="i2"))
            np.testing.assert_array_equal(store.read("rho", dist), mine)

    hs.threads(RANKS, one)


def test_ranks_that_give_different_rules_are_told_so(tmp_path: Path) -> None:
    def one(comm: hs.ThreadComm) -> list[str]:
        rule = "unsafe" if comm.rank == 1 else "same_kind"
        mine, dist = part(comm, floats()), spread(comm)
        found = []
        with hs.open(tmp_path / "run.zarr", "w", comm=comm) as store:
            store.write("rho", mine, dist)
            for call in (
                lambda: store.write("u", mine, dist, dtype="f4", casting=rule),
                lambda: store.read("rho", dist, dtype="f4", casting=rule),
            ):
                with pytest.raises(hs.DisagreementError) as caught:
                    call()
                found.append(str(caught.value))
            assert store.arrays() == ["rho"]
        return found

    for words in zip(*hs.threads(RANKS, one), strict=True):
        (told,) = set(words)
        assert "same_kind" in told or "SameKind" in told
        assert "unsafe" in told.lower()


def test_one_rank_that_reads_into_another_type_is_an_error_of_all(tmp_path: Path) -> None:
    """Memories may be of several types, and each is looked at by its own rank."""
    with hs.open(tmp_path / "run.zarr", "w") as store:
        store.write("rho", floats())

    def one(comm: hs.ThreadComm) -> str:
        with hs.open(tmp_path / "run.zarr", comm=comm) as store:
            out = spread(comm).empty(comm.rank, "i4" if comm.rank == 1 else "f4")
            told = refused(lambda: store.read("rho", spread(comm), out=out))
            store.read("rho", spread(comm), out=out, casting="unsafe")
        return told

    (told,) = set(hs.threads(RANKS, one))
    assert "on rank 1" in told
    assert "from float64 to int32" in told


@pytest.mark.parametrize("odd", [0, 1])
def test_each_box_is_looked_at(odd: int, tmp_path: Path) -> None:
    """Local arrays of one rank may be of several types; one of them decides as any other."""
    np.save(tmp_path / "a.npy", floats())
    (tmp_path / "a.raw").write_bytes(floats().tobytes())
    with hs.open(tmp_path / "run.zarr", "w") as store:
        store.write("rho", floats())
        store.write("whole", integers())

    def one(comm: hs.ThreadComm) -> list[str]:
        rows = spread(comm).slices(comm.rank)[0]
        boxes = hs.Boxes(SHAPE, [(rows, slice(0, 2)), (rows, slice(2, 5))])
        shapes = boxes.local_shapes
        # Only on one rank, and only one of its two.
        kinds = ["i4" if comm.rank == 1 and number == odd else "f4" for number in range(2)]
        out = [np.zeros(shape, kind) for shape, kind in zip(shapes, kinds, strict=True)]
        parts = [np.zeros(shape, "f8" if kind == "i4" else "i1") for shape, kind in zip(shapes, kinds, strict=True)]
        told = []
        with hs.open(tmp_path / "run.zarr", "r+", comm=comm) as store:
            told.append(refused(lambda: store.read("rho", boxes, out=out)))
            told.append(refused(lambda: store.write("new", parts, boxes, dtype="i2")))
            told.append(refused(lambda: store.write("whole", parts, boxes, section=(slice(0, 12), slice(0, 5)))))
            told.append(refused(lambda: store.append("whole", parts, boxes)))
            assert store.arrays() == ["rho", "whole"]
            np.testing.assert_array_equal(store.read("whole"), integers())
        with hs.open_raw(tmp_path / "a.raw", comm=comm, order="C", arrays={"rho": (SHAPE, "f8")}) as file:
            told.append(refused(lambda: file.read("rho", boxes, out=out)))
        told.append(refused(lambda: hs.load_npy(tmp_path / "a.npy", boxes, comm=comm, out=out)))
        return told

    for words in zip(*hs.threads(RANKS, one), strict=True):
        (told,) = set(words)
        assert "on rank 1" in told
        assert "fractions would be lost" in told


def test_arrays_that_are_taken_together_are_named_by_themselves(tmp_path: Path) -> None:
    """Arrays of a raw file that are alike move as one."""
    (tmp_path / "a.raw").write_bytes(np.ones((4, 6)).tobytes())
    arrays = {f"a{number}": ((6,), "f8") for number in range(4)}
    with hs.open_raw(tmp_path / "a.raw", order="C", arrays=arrays) as file:
        out = {name: np.zeros(6, "i4" if name == "a2" else "f8") for name in arrays}
        told = refused(lambda: file.read(list(arrays), out=out))
        assert "elements of 'a2' cannot change from float64 to int32" in told
        file.read(list(arrays), out=out, casting="unsafe")
        assert all((part == 1).all() for part in out.values())
    with hs.open_raw(tmp_path / "a.raw", "r+", order="C", arrays=arrays) as file:
        mine = {name: np.full(6, 2 if name != "a1" else 2 + 1j) for name in arrays}
        assert "elements of 'a1' cannot change from complex128 to float64" in refused(lambda: file.write(mine))
    assert np.fromfile(tmp_path / "a.raw").tolist() == [1.0] * 24


def test_imaginary_parts_are_dropped_only_on_demand(tmp_path: Path) -> None:
    values = np.array([1 + 2j, -3.5j, 4, complex(0, np.nan)])
    with hs.open(tmp_path / "run.zarr", "w") as store:
        assert "imaginary parts would be lost" in refused(lambda: store.write("a", values, dtype="f8"))
        store.write("a", values, dtype="f8", casting="unsafe")
        np.testing.assert_array_equal(store.read("a"), values.real)
        assert "imaginary parts would be lost" in refused(lambda: store.write("b", values[:3], dtype="i4"))
        store.write("b", values[:3], dtype="i4", casting="unsafe")
        np.testing.assert_array_equal(store.read("b"), [1, 0, 4])
        # NumPy calls a complex number NaN if one of its parts is.
        assert "NaN" in refused(lambda: store.write("c", values, dtype="i4", casting="unsafe"))


def test_signs_are_lost_only_on_demand(tmp_path: Path) -> None:
    values = np.array([-1, 2, 300], "i2")
    with hs.open(tmp_path / "run.zarr", "w") as store:
        assert "signs would be lost" in refused(lambda: store.write("a", values, dtype="u4"))
        store.write("a", values, dtype="u4", casting="unsafe")
        np.testing.assert_array_equal(store.read("a"), values.astype("u4"))
        # Of one kind, size may be lost: integers wrap as in NumPy.
        store.write("b", values, dtype="i1")
        np.testing.assert_array_equal(store.read("b"), values.astype("i1"))


def test_a_nan_may_be_true(tmp_path: Path) -> None:
    with hs.open(tmp_path / "run.zarr", "w") as store:
        store.write("a", np.array([np.nan, 0.0, 2.0]), dtype="?", casting="unsafe")
        np.testing.assert_array_equal(store.read("a"), [True, False, True])


def test_chunks_that_were_never_written_count(tmp_path: Path) -> None:
    """What they read as is a value like any other."""
    with hs.open(tmp_path / "run.zarr", "w") as store:
        store.write("a", np.ones((4, 4)), chunks=(2, 2), fill_value=np.nan)
        store.write("b", np.ones((4, 4)), chunks=(2, 2), fill_value=1e30)
    for name in "ab":
        (next(file for file in (tmp_path / "run.zarr" / name).rglob("*") if file.name.endswith("1"))).unlink()

    def one(comm: hs.ThreadComm) -> str:
        with hs.open(tmp_path / "run.zarr", comm=comm) as store:
            found = store.read("b", dtype="i2", casting="unsafe")
            assert set(np.unique(found)) == {1, 32_767}
            return refused(lambda: store.read("a", dtype="i2", casting="unsafe"))

    (told,) = set(hs.threads(RANKS, one))
    assert "'a'" in told
    assert "NaN" in told


def test_half_precision_and_bfloat16_have_nan_too(tmp_path: Path) -> None:
    with hs.open(tmp_path / "run.zarr", "w") as store:
        for kind in ("f2", BFLOAT16, "f4", "c8"):
            values = np.array([1, np.nan, 3]).astype(kind)
            for stored in ("i1", "u8"):
                told = refused(lambda v=values, s=stored: store.write("a", v, dtype=s, casting="unsafe"))
                assert "local index (1,)" in told
            store.write(f"as {np.dtype(kind)}", values)
            told = refused(lambda kind=kind: store.read(f"as {np.dtype(kind)}", dtype="u2", casting="unsafe"))
            assert "NaN" in told


def test_a_nan_outside_of_what_is_written_does_not_matter(tmp_path: Path) -> None:
    """Strides leave elements out; only what is in the array counts."""
    backing = np.full((8, 6), np.nan)
    view = backing[::2, ::-3]
    view[...] = np.arange(8.0).reshape(4, 2)
    with hs.open(tmp_path / "run.zarr", "w") as store:
        store.write("a", view, dtype="i4", casting="unsafe")
        np.testing.assert_array_equal(store.read("a"), np.arange(8).reshape(4, 2))


def test_a_large_array_says_where_the_first_nan_is(tmp_path: Path) -> None:
    values = np.zeros((300, 200, 50))
    values[123, 45, 6] = values[200, 0, 0] = np.nan
    for local in (values, np.asfortranarray(values)):
        with hs.open(tmp_path / "run.zarr", "w") as store:
            told = refused(lambda local=local: store.write("a", local, dtype="i4", casting="unsafe"))
        assert "local index (123, 45, 6)" in told
