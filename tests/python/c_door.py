"""Programs in C against the header and the library: how they are compiled, and random transfers for one of them."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from global_arrays import Spread
from random_cases import some_spread

ROOT = Path(__file__).parents[2]
HEADERS = ROOT / "bindings/c/include"
PROGRAMS = Path(__file__).parent / "c_programs"
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic")
#: Types of elements: their numbers in the header, and NumPy's codes.
TYPES = {"?": 1, "i1": 2, "i2": 3, "i4": 4, "i8": 5, "u1": 6, "u2": 7, "u4": 8, "u8": 9, "f4": 12, "f8": 13}
COMPLEX = {"c8": 14, "c16": 15}
#: Formats: how names end, whether what is there tells it, and the types that they hold.
FORMATS: dict[str, tuple[str, bool, tuple[str, ...]]] = {
    "zarr": (".zarr", True, (*TYPES, *COMPLEX)),
    "hdf5": (".h5", True, (*TYPES, *COMPLEX)),
    "netcdf4": (".nc4", True, ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")),
    "netcdf3": (".nc", True, ("i1", "i2", "i4", "f4", "f8", "u8", "i8")),
    "npy": (".npy", True, (*TYPES, *COMPLEX)),
    "raw": (".raw", False, (*TYPES, *COMPLEX)),
}
Random = np.random.Generator


def libraries() -> list[Path]:
    """The shared libraries that were built, the newest first."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    found = [target / profile / "libhyperslab.so" for profile in ("debug", "release")]
    return sorted((path for path in found if path.exists()), key=lambda path: -path.stat().st_mtime)


def library() -> Path:
    """The newest of them; without any, the test is skipped."""
    found = libraries()
    if not found:
        pytest.skip("libhyperslab.so is not built: cargo build -p hyperslab-c")
    return found[0]


def compiler(name: str = "cc") -> str:
    """A compiler; without it, the test is skipped."""
    if shutil.which(name) is None:
        pytest.skip(f"there is no {name} on the path")
    return name


def mpi_flags() -> list[str]:
    """Flags for the MPI of this Python; without its header, the test is skipped."""
    prefix = Path(sys.prefix)
    if not (prefix / "include/mpi.h").exists():
        pytest.skip("the MPI of this Python has no mpi.h")
    lib = prefix / "lib"
    return ["-isystem", str(prefix / "include"), f"-L{lib}", f"-Wl,-rpath,{lib}", "-lmpi"]


def compiled(source: Path, folder: Path, *, static: bool = False) -> Path:
    """The program that a source file becomes, linked to the library and to MPI."""
    shared, program = library(), folder / source.stem
    # Programs look for the library by its soname.
    (folder / "libhyperslab.so.0").unlink(missing_ok=True)
    (folder / "libhyperslab.so.0").symlink_to(shared)
    ours = [str(shared.with_suffix(".a")), "-lm", "-ldl"] if static else [str(folder / "libhyperslab.so.0")]
    source_flags = ["-std=c99", *STRICT, "-g", "-I", str(HEADERS), "-pthread", str(source)]
    command = [compiler(), *source_flags, *ours, f"-Wl,-rpath,{folder}", *mpi_flags(), "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


# ---- random transfers ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stored:
    """An array that was written, and what it must be."""

    path: Path
    format: str
    name: str
    values: NDArray[Any]


def spread_tokens(spread: Spread) -> list[Any]:
    """A distribution in the words of the script."""
    axes, tokens = iter(spread.over), ["hpf", len(spread.mesh), *spread.mesh]
    for dim in spread.dims:
        name, _, arguments = dim.rstrip(")").partition("(")
        numbers = [int(number) for number in arguments.split(",")] if arguments else []
        kind = {"block": 1, "cyclic": 2, "*": 3, "uneven": 4}[name]
        axis = 0 if name == "*" else next(axes) + 1
        sizes = numbers if name == "uneven" else []
        tokens += [kind, axis, 0 if name == "uneven" or not numbers else numbers[0], len(sizes), *sizes]
    return tokens


def box_tokens(random: Random, shape: tuple[int, ...], ranks: int) -> list[Any]:
    """Slabs of the first dimension, dealt to ranks by chance."""
    cuts = sorted({0, shape[0], *random.integers(0, shape[0] + 1, 5).tolist()})
    owners = random.integers(0, ranks, len(cuts) - 1)
    tokens: list[Any] = ["boxes"]
    for rank in range(ranks):
        mine = [(a, b) for (a, b), owner in zip(itertools.pairwise(cuts), owners, strict=True) if owner == rank]
        tokens.append(len(mine))
        for low, high in mine:
            tokens += [low, *[0] * (len(shape) - 1), high - low, *shape[1:]]
    return tokens


def map_tokens(random: Random, shape: tuple[int, ...], ranks: int) -> list[Any]:
    """Runs of all elements, dealt to ranks by chance, in any order."""
    count = int(np.prod(shape, dtype=int))
    cuts = sorted({0, count, *random.integers(0, count + 1, 6).tolist()})
    runs = [(a, b - a) for a, b in itertools.pairwise(cuts)]
    owners = random.integers(0, ranks, len(runs))
    tokens: list[Any] = ["map"]
    for rank in range(ranks):
        mine = [runs[at] for at in random.permutation(len(runs)) if owners[at] == rank]
        tokens += [len(mine), *[number for run in mine for number in run]]
    return tokens


def dist_tokens(random: Random, shape: tuple[int, ...], ranks: int) -> list[Any]:
    """Some distribution of an array, of which each element is held."""
    kind = random.choice(["hpf", "hpf", "hpf", "block", "whole", "boxes", "map"]) if shape else "whole"
    if kind == "hpf":
        return spread_tokens(some_spread(random, shape, ranks))
    made = {"boxes": box_tokens, "map": map_tokens}.get(str(kind))
    return [kind] if made is None else made(random, shape, ranks)


class Script:
    """Transfers in the words of `transfers.c`, and what files hold afterwards."""

    def __init__(self, folder: Path, ranks: int, seed: int) -> None:
        self.folder, self.ranks, self.random = folder, ranks, np.random.default_rng(seed)
        self.lines: list[str] = []
        self.stored: list[Stored] = []

    def add(self, number: int) -> None:
        """Write an array of some format and shape, perhaps a section of it, and read it."""
        random = self.random
        format = str(random.choice(list(FORMATS)))  # noqa: A001 (as the product has it)
        ends, tells, kinds = FORMATS[format]
        kind = str(random.choice(kinds))
        shape = tuple(int(extent) for extent in random.integers(1, 9, int(random.integers(1, 4))))
        says = random.random() < 0.5 and format != "npy"
        path = self.folder / f"case_{number}{'' if says else ends}"
        # What is made is named, or its name tells; what is there tells by its first bytes.
        new = format if says or not tells else "-"
        old = "-" if tells else format
        values = self._values(shape, kind)
        of = (path, format, kind, shape)
        name = "array" if format == "npy" else "rho"
        self._line("npy" if format == "npy" else "write", of, ("w", new, name), None, values)
        if format != "npy" and random.random() < 0.6:
            start, count, step = self._section(shape)
            at = tuple(slice(a, a + (n - 1) * s + 1, s) for a, n, s in zip(start, count, step, strict=True))
            values[at] = self._values(shape, kind)[at]
            self._line("write", of, ("r+", old, name), (start, count, step), values)
        for section in (None, self._section(shape)):
            self._line("read", of, ("r", old, name), section, values)
        stored = (values - 1j * values if kind in COMPLEX else values).astype(kind)
        self.stored.append(Stored(path, format, name, stored))

    def _values(self, shape: tuple[int, ...], kind: str) -> NDArray[np.int64]:
        numbers = (np.arange(np.prod(shape, dtype=int)) * 7 + int(self.random.integers(0, 97))) % 97
        return (numbers % 2 if kind == "?" else numbers).reshape(shape)

    def _section(self, shape: tuple[int, ...]) -> tuple[list[int], list[int], list[int]]:
        start = [int(self.random.integers(0, extent)) for extent in shape]
        step = [int(self.random.integers(1, 4)) for _ in shape]
        most = [(extent - a - 1) // s + 1 for extent, a, s in zip(shape, start, step, strict=True)]
        return start, [int(self.random.integers(1, n + 1)) for n in most], step

    def _line(
        self,
        operation: str,
        of: tuple[Path, str, str, tuple[int, ...]],
        how: tuple[str, str, str],
        section: tuple[list[int], list[int], list[int]] | None,
        values: NDArray[np.int64],
    ) -> None:
        (path, _, kind, shape), (mode, format, name), random = of, how, self.random  # noqa: A001
        # What a raw file holds is said with the type that it is read as.
        if operation == "read" and kind in TYPES and format != "raw" and random.random() < 0.3:
            kind = "f8"
        expected = self.folder / f"values_{len(self.lines)}"
        values.astype(np.int64).tofile(expected)
        parts = [0] if section is None else [1, *section[0], *section[1], *section[2]]
        dist = dist_tokens(random, shape if section is None else tuple(section[1]), self.ranks)
        layout = random.choice(["C", "C", "F", "R"])
        number = (TYPES | COMPLEX)[kind]
        tokens = [operation, path, mode, format, name, number, layout, int(random.integers(0, 3))]
        self.lines.append(" ".join(map(str, [*tokens, len(shape), *shape, *parts, *dist, expected])))

    def written(self) -> Path:
        """The script as a file."""
        path = self.folder / "script"
        path.write_text("\n".join(self.lines) + "\n")
        return path
