"""Known programs, on any number of ranks, as arrays of one collective call of a simulation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hyperslab import _core
from hyperslab.errors import InvalidError

#: An array as simulations take it.
Array = dict[str, Any]


def _blocks(shape: list[int], mesh: list[int], **more: Any) -> Array:
    return {"shape": shape, "mesh": mesh, "dims": ["block"] * len(shape), **more}


def _entire(ranks: int) -> list[Array]:
    mesh = _core.balanced_mesh(ranks, 3)
    return [_blocks([128 * extent for extent in mesh], mesh)]


def _cyclic(ranks: int) -> list[Array]:
    return [{"shape": [ranks << 20], "mesh": [ranks], "dims": ["cyclic"]}]


def _flash(ranks: int) -> list[Array]:
    sizes = [80 + rank % 3 for rank in range(ranks)]
    each = sum(sizes) * 8**3 * 8
    return [
        {
            "name": f"variable{number}",
            "shape": [sum(sizes), 8, 8, 8],
            "mesh": [ranks],
            "dims": [sizes, "*", "*", "*"],
            "store": {"file": {"object": "checkpoint", "offset": number * each}},
            "local": {"halo": [0, 4, 4, 4], "interleave": 24},
        }
        for number in range(24)
    ]


def _jeans(ranks: int) -> list[Array]:
    mesh = _core.balanced_mesh(ranks, 3)
    shape = [64 * extent for extent in mesh]
    each = 64**3 * 4 * ranks
    return [
        _blocks(
            shape,
            mesh,
            name=f"field{number}",
            dtype="f4",
            memory_dtype="f8",
            order="F",
            store={"file": {"object": "analysis", "offset": 24 + number * each}},
        )
        for number in range(6)
    ]


def _blackhole(ranks: int) -> list[Array]:
    mesh = _core.balanced_mesh(ranks, 3)
    return [_blocks([16, 16, 32], mesh, count=2048, store={"chunks": [2, 16, 32]})]


#: By name: what it is, and its arrays for a number of ranks.
BENCHMARKS: dict[str, tuple[str, Callable[[int], list[Array]]]] = {
    "entire": ("one array of doubles in blocks, 16 MiB a rank", _entire),
    "cyclic": ("one vector of doubles, dealt out one by one, 8 MiB a rank (Kotz 1997)", _cyclic),
    "blackhole": ("2,048 arrays of 64 KiB in chunks of 8 KiB (Chen et al. 1996)", _blackhole),
    "flash": ("a FLASH checkpoint, 24 variables of 80 to 82 blocks a rank (Ross et al. 2001)", _flash),
    "jeans": ("a dump of 6 fields, doubles stored as singles, column-major (Thakur et al. 1996)", _jeans),
}


def arrays(name: str, ranks: int) -> list[Array]:
    """The arrays of a benchmark.

    Raises
    ------
    InvalidError
        When there is none of this name.
    """
    if name not in BENCHMARKS:
        message = f"there is no benchmark '{name}'\n  hint: benchmarks are {', '.join(BENCHMARKS)}"
        raise InvalidError(message)
    return BENCHMARKS[name][1](ranks)
