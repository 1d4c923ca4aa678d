"""``hyperslab bench alone``: sections of one array by one process, beside the libraries for its format."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import hyperslab as hs
from hyperslab._printing import say, say_json
from hyperslab._progress import tell
from hyperslab._quantities import number
from hyperslab._scratch import scratch
from hyperslab.bench._alone_ways import FILES, Way, ways_for
from hyperslab.bench._arguments import counts, positive
from hyperslab.bench._launch import about

__all__ = ["add_verb"]

DESCRIPTION = """\
Reads sections of one array of float32, and writes it whole, as a process alone does, by this package and by the
libraries for the format that are installed: h5py, zarr-python, TensorStore. Each opens the file, then reads all
sections of a row one after another; in "again" rows it reads them a second time without opening the file again, and
only the second time counts. All take turns; every result is compared. Files are warm.
"""

SEED = 20261130

#: One section, as NumPy writes it.
Key = tuple[Any, ...]


def add_verb(which: Any) -> None:
    """Add ``alone`` to the benchmarks."""
    verb = which.add_parser(
        "alone",
        help="sections by one process, beside h5py, zarr-python and TensorStore",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("--shape", type=counts, default=[320, 320, 320], help="of the array; 320,320,320 by default")
    verb.add_argument("--chunk", type=counts, default=[64, 64, 64], help="of the array; 64,64,64 by default")
    verb.add_argument("--files", nargs="+", choices=FILES, default=list(FILES), help="which kinds of files")
    verb.add_argument("--rows", nargs="+", help="only rows whose names begin so")
    verb.add_argument("--directory", type=Path, default=Path(), help="where scratch files go; here by default")
    verb.add_argument("--repetitions", type=positive, default=5, help="rounds that count; 5 by default")
    verb.add_argument("--json", action="store_true", help="print all times as JSON")
    verb.set_defaults(run=run)


def field(shape: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Values that compress about as those of a simulation do: waves, with noise in the low bits."""
    values = np.zeros(shape, np.float32)
    for axis, length in enumerate(shape):
        wave = np.sin(np.arange(length, dtype=np.float32) * (0.05 + 0.02 * axis))
        values += wave.reshape([-1 if one == axis else 1 for one in range(len(shape))])
    values += np.random.default_rng(SEED).random(shape, np.float32) * np.float32(1e-3)
    return values


def rows(shape: tuple[int, ...]) -> dict[str, list[Key]]:
    """What is read: names, and the sections of each."""
    random = np.random.default_rng(SEED)
    full = (slice(None),) * len(shape)

    def across(axis: int) -> list[Key]:
        return [(*full[:axis], int(at), *full[axis + 1 :]) for at in random.integers(0, shape[axis], 8)]

    def boxes(edge: int, count: int) -> list[Key]:
        low = [random.integers(0, max(length - edge, 0) + 1, count) for length in shape]
        return [tuple(slice(int(at), int(at) + edge) for at in corner) for corner in zip(*low, strict=True)]

    places = [
        tuple(int(at) for at in place) for place in zip(*(random.integers(0, n, 500) for n in shape), strict=True)
    ]
    columns = [(*place[:-1], slice(None)) for place in places[:200]]
    every = [(*(slice(None, None, step) for step in (7, 5, 3)[-len(shape) :]),)]
    return {
        "whole": [full],
        "8 planes across the first": across(0),
        "8 planes across the last": across(len(shape) - 1),
        "200 boxes of 16": boxes(16, 200),
        "200 columns": columns,
        "200 columns again": columns,
        "500 elements": places,
        "500 elements again": places,
        "every 7th, 5th, 3rd": every,
    }


@contextmanager
def timed(taken: list[float]) -> Iterator[None]:
    """Add how long it takes [s]."""
    begin = time.perf_counter()
    yield
    taken.append(time.perf_counter() - begin)


def read_once(way: Way, path: Path, keys: list[Key], *, again: bool, expected: list[Any]) -> float:
    """How long a library takes for a row [s]."""
    taken: list[float] = []
    with timed(taken) as _, way.reading(path) as array:
        found = [array(key) for key in keys]
        if again:
            with timed(taken):
                found = [array(key) for key in keys]
    if not all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True)):
        message = f"{way.name} gave other values"
        raise hs.CorruptError(message)
    # The inner time ends first.
    return taken[0]


def write_once(way: Way, path: Path, values: Any) -> float:
    """How long a library takes to write the array [s]."""
    way.forget(path)
    taken: list[float] = []
    with timed(taken):
        way.write(path, values)
    return taken[0]


def measure(kind: str, args: argparse.Namespace, place: Path) -> dict[str, dict[str, list[float]]]:
    """Times of all rows for one kind of file, by library."""
    values = field(tuple(args.shape))
    ways = ways_for(kind, tuple(args.chunk))
    path = place / f"read{FILES[kind].suffix}"
    # All read the same file, which is written by the library that its format is known by.
    ways[-1].write(path, values)
    found: dict[str, dict[str, list[float]]] = {}
    for row, keys in {**rows(values.shape), "written whole": []}.items():
        if args.rows and not row.startswith(tuple(args.rows)):
            continue
        tell(f"measuring {kind}: {row} ...")
        expected = [values[key] for key in keys]
        calls: dict[str, Callable[[], float]] = {}
        for way in ways:
            own = place / f"{way.name}{FILES[kind].suffix}"
            if keys:
                calls[way.name] = partial(read_once, way, path, keys, again=row.endswith("again"), expected=expected)
            else:
                calls[way.name] = partial(write_once, way, own, values)
        found[row] = {name: [] for name in calls}
        for round_ in range(args.repetitions + 1):
            for name, call in calls.items():
                taken = call()
                # The first round warms up.
                if round_ > 0:
                    found[row][name].append(taken)
    return found


def table(kind: str, found: dict[str, dict[str, list[float]]]) -> str:
    """Medians, and how ours compares with the best of the others."""
    names = list(next(iter(found.values())))
    lines = [f"{kind}, ms", f"{'':28}" + "".join(f"{name:>14}" for name in names) + f"{'best/ours':>11}"]
    for row, times in found.items():
        middle = [statistics.median(times[name]) * 1e3 for name in names]
        ratio = min(middle[1:]) / middle[0] if len(middle) > 1 else float("nan")
        lines.append(f"{row:28}" + "".join(f"{number(one):>14}" for one in middle) + f"{ratio:>11.2f}")
    return "\n".join(lines)


def run(args: argparse.Namespace) -> int:
    """Measure for each kind of file, and print."""
    args.directory.mkdir(parents=True, exist_ok=True)
    facts, found = about(args.directory), {}
    for kind in args.files:
        with scratch("hyperslab-bench-", args.directory) as place:
            found[kind] = measure(kind, args, place)
    if args.json:
        say_json({"about": facts, "seconds": found})
        return 0
    for name, text in facts.items():
        say(f"{name + ':':9}{text}")
    for kind, result in found.items():
        say()
        say(table(kind, result))
    return 0
