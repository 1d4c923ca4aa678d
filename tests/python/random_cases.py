"""Random transfers, from a seed, alike on all ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from global_arrays import Memory, Quads, Spread

KINDS = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
STRATEGIES = (
    None,
    None,
    None,
    "server-directed",
    "root-gather",
    "independent",
    "data-sieving",
    "two-phase",
    "disk-directed",
)
#: Those whose writers cannot share a chunk.
OWN = ("independent", "data-sieving")
Random = np.random.Generator


def some_shape(random: Random) -> tuple[int, ...]:
    """A small global shape of 0 to 4 dimensions; now and then one has extent 0."""
    ndim = int(random.choice([0, 1, 1, 2, 2, 2, 3, 3, 4]))
    largest = {0: 1, 1: 60, 2: 17, 3: 11, 4: 6}[ndim]
    shape = tuple(int(extent) for extent in random.integers(1, largest + 1, ndim))
    if ndim and random.random() < 0.05:
        return (0, *shape[1:])
    return shape


def some_mesh(random: Random, ranks: int) -> tuple[int, ...]:
    """A mesh of at most `ranks` ranks, mostly of all."""
    left = ranks if random.random() < 0.8 else int(random.integers(1, ranks + 1))
    mesh = []
    for _ in range(int(random.integers(0, 3))):
        factor = int(random.choice([f for f in range(1, left + 1) if left % f == 0]))
        mesh.append(factor)
        left //= factor
    return (*mesh, left)


def some_spread(random: Random, shape: tuple[int, ...], ranks: int) -> Spread:
    """A distribution of an index space."""
    mesh = some_mesh(random, ranks)
    number = int(random.integers(0, min(len(shape), len(mesh)) + 1))
    if random.random() < 0.7:
        number = min(len(shape), len(mesh))
    chosen = sorted(random.permutation(len(shape))[:number].tolist())
    over = tuple(random.permutation(len(mesh))[:number].tolist())
    dims = ["*"] * len(shape)
    for dim, axis in zip(chosen, over, strict=True):
        enough = max(-(-shape[dim] // mesh[axis]), 1) + int(random.integers(0, 3))
        cuts = np.sort(random.integers(0, shape[dim] + 1, mesh[axis] - 1))
        sizes = np.diff(np.concatenate(([0], cuts, [shape[dim]]))).tolist()
        blocks = f"uneven({', '.join(map(str, sizes))})"
        kinds = ("block", f"block({enough})", blocks, "cyclic", f"cyclic({random.integers(1, 5)})")
        dims[dim] = str(random.choice(kinds))
    return Spread(shape, mesh, tuple(dims), over)


def some_section(random: Random, shape: tuple[int, ...]) -> Quads:
    """A section that lies in a shape."""
    quads = []
    for extent in shape:
        if extent == 0:
            quads.append((0, 1, 0, 1))
            continue
        start = int(random.integers(0, extent))
        block = int(random.integers(1, min(extent - start, 3) + 1))
        stride = block + int(random.integers(0, 3))
        most = (extent - start - block) // stride + 1
        quads.append((start, stride, int(random.integers(1, most + 1)), block))
    return tuple(quads)


def section_shape(quads: Quads) -> tuple[int, ...]:
    """Shape of a section's own index space."""
    return tuple(count * block for _, _, count, block in quads)


def as_user_says(random: Random, quads: Quads) -> list[Any]:
    """A section with slices and integers where they say the same."""

    def one(quad: tuple[int, int, int, int]) -> Any:
        start, stride, count, block = quad
        ways: list[Any] = [quad]
        if block == 1 and count == 1:
            ways.append(start)
        if block == 1:
            ways.append(slice(start, start + (count - 1) * stride + 1 if count else start, stride))
        if count == 1:
            ways.append(slice(start, start + block))
        return ways[int(random.integers(len(ways)))]

    return [one(quad) for quad in quads]


def some_memory(random: Random, *, read_only: bool) -> Memory:
    """A layout in memory; read-only now and then, where that is asked for."""
    halo, step = int(random.choice([0, 0, 1, 2])), int(random.choice([1, 1, 2, -1, -3]))
    return Memory("C" if random.random() < 0.5 else "F", halo, step, read_only and random.random() < 0.3)


def some_kind(random: Random) -> str:
    """A type in memory, sometimes of foreign byte order."""
    kind = str(random.choice(KINDS))
    return np.dtype(kind).newbyteorder(">" if random.random() < 0.15 else "<").str


def other_kind(random: Random, kind: str) -> str:
    """A type to which values of a type may be converted: the same, or another that can hold them or cut them off."""
    if random.random() < 0.5:
        return np.dtype(kind).newbyteorder("<").str
    targets = {"b": "?", "c": "c8 c16"}.get(np.dtype(kind).kind, "i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16")
    return np.dtype(str(random.choice(targets.split()))).newbyteorder("<").str


def some_values(random: Random, shape: tuple[int, ...], kind: str, *, any_bits: bool) -> NDArray[Any]:
    """Values of a type: any bits at all, or numbers from 0 to 100 that each numeric type can hold."""
    dtype = np.dtype(kind)
    count = int(np.prod(shape, dtype=int))
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(dtype)
    if any_bits:
        return np.frombuffer(random.bytes(count * dtype.itemsize), dtype).reshape(shape).copy()
    return random.integers(0, 101, shape).astype(dtype)


@dataclass(frozen=True)
class Case:
    """A transfer there and back."""

    number: int
    #: zarr, raw or npy.
    form: str
    shape: tuple[int, ...]
    #: Types in memory when writing, in storage, in memory when reading.
    kinds: tuple[str, str, str]
    wrote: Spread
    reads: Spread
    memory: Memory
    target: Memory
    strategy: str | None
    chunks: tuple[int, ...] | None
    checksum: bool
    zstd: int | None
    #: Order of elements in raw and npy files.
    order: Literal["C", "F"]
    #: How many arrays move in one call.
    arrays: int
    #: Write to a step, which is published later.
    in_step: bool

    @property
    def any_bits(self) -> bool:
        """Whether values are never converted, so that they may be any bits at all."""
        return len({kind[1:] for kind in self.kinds}) == 1

    def __str__(self) -> str:
        """One line that tells all."""
        return ", ".join(f"{name}={value!r}" for name, value in vars(self).items())


def some_case(seed: int, number: int, ranks: int) -> tuple[Case, Random]:
    """Case `number` of a seed, and the random numbers that its values come from."""
    random = np.random.default_rng([seed, number, ranks])
    shape = some_shape(random)
    memory_kind = some_kind(random)
    stored = other_kind(random, memory_kind)
    kinds = (memory_kind, stored, other_kind(random, stored))
    chunks = None
    if random.random() < 0.7:
        chunks = tuple(int(random.integers(1, max(extent, 1) + 2)) for extent in shape)
    case = Case(
        number,
        str(random.choice(["zarr", "zarr", "zarr", "raw", "npy"])),
        shape,
        kinds,
        some_spread(random, shape, ranks),
        some_spread(random, shape, ranks),
        some_memory(random, read_only=True),
        some_memory(random, read_only=False),
        STRATEGIES[int(random.integers(len(STRATEGIES)))],
        chunks,
        bool(random.random() < 0.6),
        int(random.integers(1, 6)) if random.random() < 0.3 else None,
        "C" if random.random() < 0.5 else "F",
        int(random.choice([1, 1, 2, 3])),
        bool(random.random() < 0.2),
    )
    return case, random
