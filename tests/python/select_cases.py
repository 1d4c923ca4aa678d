"""Random selections from random arrays, against NumPy: on any number of ranks, from any format."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
from numpy.typing import NDArray

#: How arrays of one shape are stored: by the end of the name, with what may be said of chunks.
FORMATS = (".zarr", ".h5", ".nc", ".raw")


def shape_of(rng: random.Random) -> tuple[int, ...]:
    """Extents of one to three dimensions, sometimes with nothing in them."""
    if rng.random() < 0.2:
        # Rows of several chunks, which a small budget looks at one by one.
        return rng.choice([(120, 900), (20, 30, 70), (9, 4000)])
    shape = tuple(rng.choice([1, 2, 5, 16, 37, 70]) for _ in range(rng.choice([1, 2, 2, 3])))
    if rng.random() < 0.06:
        return (0, *shape[1:])
    return (rng.choice([1, 300, 5000]),) if len(shape) == 1 else shape


def arrays_of(shape: tuple[int, ...], seed: int) -> dict[str, NDArray[Any]]:
    """Arrays of one grid, with values at the ends of their types."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape).astype("f4")
    if x.size:
        x.flat[rng.integers(0, x.size, 1 + x.size // 20)] = rng.choice(np.array([np.nan, np.inf, -0.0], "f4"))
    return {
        "rho": rng.random(shape),
        "x": x,
        "id": rng.integers(0, 2**31, shape, dtype="i4"),
        "level": rng.integers(0, 200, shape).astype("u1"),
    }


def written(comm: Any, folder: Path, rng: random.Random, arrays: dict[str, NDArray[Any]], number: int) -> Path:
    """The arrays in a file of some format, written by all ranks, which have all of them."""
    shape = arrays["rho"].shape
    spread = hs.Distribution.replicated(shape, comm.size)
    kind = rng.choice(FORMATS if 0 not in shape else (".zarr", ".h5"))
    path = folder / f"case{number}{kind}"
    if kind == ".raw":
        with hs.open_raw(path, "w", comm=comm) as file:
            file.write(arrays, spread)
        return path
    if kind == ".nc":
        # NetCDF classic has no unsigned integers; they are kept in a wider type.
        with hs.open(path, "w", comm=comm) as file:
            file.write({name: a.astype("i2") if a.dtype == "u1" else a for name, a in arrays.items()}, spread)
        return path
    chunks = tuple(max(1, rng.choice([1, 3, 8, extent // 2, extent // 3, extent, extent + 1])) for extent in shape)
    chunks = tuple(min(chunk, max(extent, 1)) for chunk, extent in zip(chunks, shape, strict=True))
    if np.prod(shape) > 20000 and np.prod(chunks) < 500:
        chunks = tuple(max(1, extent // 3) for extent in shape)
    options: dict[str, Any] = {"chunks": rng.choice([None, chunks, chunks, chunks])}
    if kind == ".zarr" and options["chunks"] is not None and rng.random() < 0.3:
        options["shards"] = tuple(chunk * 2 for chunk in chunks)
    if kind == ".h5" and options["chunks"] is not None and 0 not in shape:
        options["compression"] = rng.choice([None, "gzip"])
    with hs.open(path, "w", comm=comm) as store:
        store.write(arrays, spread, **options)
    return path


CONDITIONS = (
    "rho > 0.5",
    "(rho < limit) & ~isnan(x)",
    "rho > 2",
    "rho >= 0",
    "isnan(x) | (level in wanted)",
    "id % 7 == 3",
    "(x > 0) != (level > 100)",
    "i0 % 3 == 0 and rho < 0.2",
    "not (id // 1000 % 2 == 0) or level == 0",
    "abs(x) <= min(rho, 0.3)",
)


def condition_of(text: str, a: dict[str, NDArray[Any]], limit: float, wanted: list[int]) -> NDArray[np.bool_]:
    """What NumPy makes of a condition."""
    i0 = np.indices(a["rho"].shape)[0]
    rho, x, id_, level = a["rho"], a["x"], a["id"], a["level"]
    with np.errstate(all="ignore"):
        found: NDArray[np.bool_] = {
            CONDITIONS[0]: lambda: rho > 0.5,
            CONDITIONS[1]: lambda: (rho < limit) & ~np.isnan(x),
            CONDITIONS[2]: lambda: rho > 2,
            CONDITIONS[3]: lambda: rho >= 0,
            CONDITIONS[4]: lambda: np.isnan(x) | np.isin(level, wanted),
            CONDITIONS[5]: lambda: id_ % 7 == 3,
            CONDITIONS[6]: lambda: (x > 0) != (level > 100),
            CONDITIONS[7]: lambda: (i0 % 3 == 0) & (rho < 0.2),
            CONDITIONS[8]: lambda: ~(id_ // 1000 % 2 == 0) | (level == 0),
            CONDITIONS[9]: lambda: np.abs(x) <= np.minimum(rho, 0.3),
        }[text]()
    return found


def distribution_of(rng: random.Random, shape: tuple[int, ...], ranks: int) -> hs.Distribution:
    """A distribution that gives each element to one rank."""
    dims = ["*"] * len(shape)
    dims[rng.randrange(len(shape))] = rng.choice(["block", "cyclic", "cyclic(3)"])
    if len(shape) > 1 and ranks % 2 == 0 and rng.random() < 0.5:
        dims = ["block", "cyclic(2)", *["*"] * (len(shape) - 2)]
        return hs.Distribution(shape, (ranks // 2, 2), dims)
    return hs.Distribution(shape, (ranks,), dims)


def run_case(comm: Any, folder: Path, seed: int, number: int) -> int:
    """Select in one random case, and compare this rank's part; how many elements there were in all."""
    rng = random.Random(f"{seed} {number}")
    shape = shape_of(rng)
    arrays = arrays_of(shape, seed + number)
    rank, ranks = comm.rank, comm.size
    text, limit, wanted = rng.choice(CONDITIONS), rng.random(), [3, 77, 199]
    matches = condition_of(text, arrays, limit, wanted)
    columns = rng.choice([["rho"], ["rho", "id"], ["x", "level", "rho"], ["level"], []])
    way = rng.choice(["even", "even", "owner", "distribution"])
    options: dict[str, Any] = {"parameters": {"limit": limit, "wanted": wanted}, "positions": rng.random() < 0.6}
    memory = rng.choice(["64KiB", "200KiB", "64MiB"])
    where = np.flatnonzero(matches)
    if way == "even":
        mine = np.array_split(where, ranks)[rank]
    elif way == "owner":
        options["owner"] = f"id // 3 % {ranks}"
        mine = where[arrays["id"].ravel()[where] // 3 % ranks == rank]
    else:
        spread = distribution_of(rng, shape, ranks)
        options["distribution"] = spread
        held = np.zeros(shape, bool)
        held[np.ix_(*spread.indices(rank))] = True
        mine = where[held.ravel()[where]]
    path = written(comm, folder, rng, arrays, number)
    with opened(path, comm, arrays) as store:
        found = store.select(text, columns, memory=memory, **options)
        said = f"case {number} of seed {seed}: {path.name} {shape} {text} {way} on rank {rank} of {ranks}"
        assert found.matches == len(where), said
        assert found.count == len(mine), f"{said}: {found.count} and not {len(mine)}"
        assert list(found) == columns, said
        for name in columns:
            kind = store[name].dtype if path.suffix == ".nc" else arrays[name].dtype
            values = arrays[name].ravel()[mine].astype(kind)
            assert found[name].dtype == kind.newbyteorder("="), f"{said}: {name} is {found[name].dtype}"
            assert found[name].tobytes() == values.astype(kind.newbyteorder("=")).tobytes(), f"{said}: {name}"
        if options["positions"]:
            assert np.array_equal(found.positions, mine), said
            assert all(np.array_equal(a, b) for a, b in zip(found.indices, np.unravel_index(mine, shape), strict=True))
        if way != "even" and memory != "64MiB":
            assert found.report["buffer_bytes"] <= int(memory.removesuffix("KiB")) * 1024, said
    return len(where)


def opened(path: Path, comm: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """The file, for all ranks."""
    if path.suffix == ".raw":
        return hs.open_raw(path, comm=comm, arrays={n: (a.shape, a.dtype) for n, a in arrays.items()})
    return hs.open(path, comm=comm)
