"""Elements that are no numbers (dates, structured types, floats of 8 bits, bytes), on any ranks: threads or MPI."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import hyperslab as hs
import ml_dtypes
import numpy as np
import pytest
import zarr
from numpy.typing import NDArray

SHAPE = (7, 10)
FIELDS: list[tuple[Any, ...]] = [
    ("id", "<i4"),
    ("x", [("re", "<f4"), ("im", "<f8")]),
    ("name", "S3"),
    ("text", "<U2"),
    ("when", "<M8[s]"),
    ("raw", "V2"),
]

#: Types that Zarr has names for, by the names of their arrays.
KINDS: dict[str, np.dtype[Any]] = {
    "dates": np.dtype("<M8[ns]"),
    "big": np.dtype(">M8[25s]"),
    "times": np.dtype("<m8[us]"),
    "generic": np.dtype("<m8"),
    "bytes": np.dtype("V5"),
    "fields": np.dtype(FIELDS),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "powers": np.dtype(ml_dtypes.float8_e8m0fnu),
}
#: Of these, those that zarr-python 3.1 has as well.
THEIRS = ("dates", "big", "times", "bytes", "fields")


def native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """What an array of such elements is read as."""
    return dtype if dtype.names else dtype.newbyteorder("=")


def some_values(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int = 0) -> NDArray[Any]:
    """Any bits, of which texts are texts."""
    random = np.random.default_rng(seed)
    if dtype.names:
        values = np.empty(shape, dtype)
        for name in dtype.names:
            values[name] = some_values(dtype[name], shape, seed + 1)
        return values
    if dtype.kind in "SU":
        letters = random.choice([*"abc", ""], (*shape, 2))
        return np.char.add(letters[..., 0], letters[..., 1]).astype(dtype)
    content = random.integers(0, 256, (*shape, dtype.itemsize), np.uint8)
    values = content.view(f"V{dtype.itemsize}")[..., 0].view(dtype)
    if dtype.kind in "mM":
        values.flat[:1] = "NaT"
    return values


def same(found: Any, expected: NDArray[Any], what: str = "") -> None:
    """Equal bits of one type."""
    assert found.dtype == native(expected.dtype), (what, found.dtype, expected.dtype)
    expected = expected.astype(found.dtype)
    assert found.shape == expected.shape, what
    bits = f"V{found.dtype.itemsize}"
    np.testing.assert_array_equal(
        np.ascontiguousarray(found).view(bits), np.ascontiguousarray(expected).view(bits), what
    )


def part(whole: NDArray[Any], dist: hs.Distribution, rank: int, order: str = "C", halo: int = 0) -> NDArray[Any]:
    """A rank's part in memory of its own, with a halo of something else."""
    mine = whole[np.ix_(*dist.indices(rank))]
    held = np.zeros([extent + 2 * halo for extent in mine.shape], mine.dtype, order)
    held[(*[slice(halo, extent + halo) for extent in mine.shape],)] = mine
    return held


def run(comm: Any, folder: Path) -> int:
    """All cases in one folder that the ranks share; how many."""
    rank, size = comm.rank, comm.size
    wholes = {name: some_values(dtype, SHAPE, number) for number, (name, dtype) in enumerate(KINDS.items())}
    block, cyclic = (hs.Distribution(SHAPE, (size, 1), dims) for dims in (["BLOCK", "*"], ["CYCLIC", "*"]))
    written_and_read(comm, folder / "plain.zarr", wholes, block, cyclic)
    for number, options in enumerate(({"zstd": 1}, {"shards": (4, 10), "chunks": (2, 5)}, {"checksum": False})):
        written_and_read(comm, folder / f"{number}.zarr", wholes, cyclic, block, **options)
    sections_and_appends(comm, folder / "parts.zarr", wholes)
    files(comm, folder, wholes, block)
    one_rank_has_nothing(comm, folder / "few.zarr")
    refusals(comm, folder / "refused.zarr", wholes, block, rank)
    return 8


def written_and_read(
    comm: Any,
    path: Path,
    wholes: dict[str, NDArray[Any]],
    held: hs.Distribution,
    wanted: hs.Distribution,
    **options: Any,
) -> None:
    """Write all, read all in another distribution, and by zarr-python."""
    mine = {name: part(whole, held, comm.rank, "F", halo=1) for name, whole in wholes.items()}
    with hs.open(path, "w", comm=comm) as store:
        store.write(mine, held, halo=1, **options)
    with hs.open(path, comm=comm) as store:
        for name, whole in wholes.items():
            assert store[name].dtype == native(whole.dtype), name
        for name, found in store.read([*wholes], wanted).items():
            same(found, part(wholes[name], wanted, comm.rank), name)
        # Into memory in the other byte order, with gaps.
        out = np.zeros((*wanted.local_shape(comm.rank), 2), ">M8[ns]")[..., 0]
        assert store.read("dates", wanted, out=out) is out
        same(out.astype("<M8[ns]"), part(wholes["dates"], wanted, comm.rank))
    if comm.rank == 0:
        for name in THEIRS:
            if "shards" in options and KINDS[name].kind == "V":
                # zarr-python 3.1.6 reads no shards of these, nor does it write any: their fill values have no hash.
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theirs: Any = zarr.open_array(path / name, mode="r")
                same(theirs[...], wholes[name], name)


def sections_and_appends(comm: Any, path: Path, wholes: dict[str, NDArray[Any]]) -> None:
    """Change a part in place, make arrays longer, and read a part."""
    added, changed = (2, SHAPE[1]), (3, 4)
    whole, more, new = ({n: some_values(d, s, 9) for n, d in KINDS.items()} for s in (SHAPE, added, changed))
    spread, behind, inside = (hs.Distribution.block(s, comm.size) for s in (SHAPE, added, changed))
    section = (slice(2, 5), (1, 2, 4, 1))
    with hs.open(path, "w", comm=comm) as store:
        store.write({n: part(v, spread, comm.rank) for n, v in whole.items()}, spread, chunks=(3, 4))
        store.write({n: part(v, inside, comm.rank) for n, v in new.items()}, inside, section=section)
        for name, values in more.items():
            store.append(name, part(values, behind, comm.rank), behind)
    with hs.open(path, comm=comm) as store:
        for name in KINDS:
            expected = np.concatenate([whole[name], more[name]])
            expected[2:5, 1:8:2] = new[name]
            same(store.read(name), expected, name)
            same(store.read(name, section=(slice(1, 9, 3), 3)), expected[1:9:3, 3:4], name)


def files(comm: Any, folder: Path, wholes: dict[str, NDArray[Any]], dist: hs.Distribution) -> None:
    """Files of NumPy and raw files."""
    for name, whole in wholes.items():
        if not name.startswith(("e", "p")):
            mine = part(whole, dist, comm.rank)
            hs.save_npy(folder / f"{name}.npy", mine, dist, comm=comm)
            same(hs.load_npy(folder / f"{name}.npy", dist, comm=comm), mine, name)
            if comm.rank == 0:
                np.save(folder / "theirs.npy", whole)
                assert (folder / "theirs.npy").read_bytes() == (folder / f"{name}.npy").read_bytes(), name
    known = {name: (SHAPE, whole.dtype) for name, whole in wholes.items()}
    with hs.open_raw(folder / "all.raw", "w", comm=comm, order="C") as file:
        file.write({name: part(whole, dist, comm.rank) for name, whole in wholes.items()}, dist)
    with hs.open_raw(folder / "all.raw", comm=comm, order="C", arrays=known) as file:
        for name, found in file.read([*known], dist).items():
            same(found, part(wholes[name], dist, comm.rank), name)
    if comm.rank == 0:
        content = b"".join(whole.tobytes() for whole in wholes.values())
        assert (folder / "all.raw").read_bytes() == content


def one_rank_has_nothing(comm: Any, path: Path) -> None:
    """All of it is on the first rank: the others do not know the type, and need no more than that."""
    pieces = hs.Boxes((4,), [(slice(0, 4),)] if comm.rank == 0 else [])
    values = some_values(KINDS["fields"], (4,))
    nan = {"_FillValue": np.nan}
    with hs.open(path, "w", comm=comm) as store:
        store.write("a", [values] if comm.rank == 0 else [], pieces, fill_value=np.zeros((), values.dtype))
        store.write("b", [values["id"] + 0.5] if comm.rank == 0 else [], pieces, attributes=nan)
        store.write("c", [values["when"]] if comm.rank == 0 else [], pieces, fill_value=np.datetime64("2000-01-01"))
        same(store.read("a"), values)
        assert store["c"].fill_value == np.datetime64("2000-01-01")


def refusals(comm: Any, path: Path, wholes: dict[str, NDArray[Any]], dist: hs.Distribution, rank: int) -> None:
    """What is no number becomes nothing else, on any rank, and all ranks say so."""
    odd = rank == comm.size - 1

    def refused(call: Any, *words: str) -> None:
        with pytest.raises((hs.InvalidError, hs.DisagreementError)) as caught:
            call()
        assert all(word in str(caught.value) for word in words), str(caught.value)

    with hs.open(path, "w", comm=comm) as store:
        mine = {name: part(whole, dist, rank) for name, whole in wholes.items()}
        store.write({**mine, "numbers": np.zeros(dist.local_shape(rank))}, dist)
        refused(lambda: store.read("dates", dist, dtype="i8"), "datetime64[ns]", "int64", "hint:")
        refused(lambda: store.read("dates", dist, dtype="M8[s]"), "datetime64[ns]", "datetime64[s]")
        refused(lambda: store.read("fields", dist, dtype="V42"), "structured elements", "opaque elements of 42 B")
        refused(lambda: store.read("e4m3", dist, dtype="f4", casting="unsafe"), "float8_e4m3fn", "float32")
        refused(lambda: store.read("numbers", dist, out=mine["dates"]), "float64", "datetime64[ns]")
        refused(lambda: store.append("dates", mine["times"], dist), "timedelta64[us]", "datetime64[ns]")
        if comm.size > 1:
            other = mine["dates"].view("i8") if odd else mine["dates"]
            refused(lambda: store.write("new", other, dist), "int64", "datetime64[ns]")
