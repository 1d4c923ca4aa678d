"""What ``hyperslab bench peers`` measures: its rows, and how large they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "FAMILIES",
    "LARGE_BYTES",
    "LIMIT",
    "NOTHING",
    "OURS",
    "PEER",
    "ROWS",
    "SIZES",
    "Row",
    "Size",
    "ranks_of",
    "shapes_between",
]

#: What a way is in a row.
OURS, PEER, LIMIT, NOTHING = "ours", "peer", "limit", "nothing"

#: From here on the first call is held against a multiple of later ones, below against a time on top [B].
LARGE_BYTES = 64_000_000
#: Of the limit: how far from plain code a row may be, for raw files and for Zarr.
RAW_LIMIT, ZARR_LIMIT = 1.3, 1.5


@dataclass(frozen=True)
class Size:
    """How much is measured.

    Parameters
    ----------
    whole : tuple of int
        Shape of the large array of float64.
    cyclic : int
        Elements of the array whose elements are dealt out one by one.
    many : int
        Arrays of `each` elements in one call.
    each : int
        Elements of a small array.
    shapes : int
        Arrays of different sizes.
    largest_bytes : int
        The largest of them [B].
    extent, chunk : int
        Sides of the square array of which a section changes, and of its small chunks.
    calls : int
        Calls for one median.
    blocks : int
        Blocks of FLASH on each rank.
    """

    whole: tuple[int, int, int]
    cyclic: int
    many: int
    each: int
    shapes: int
    largest_bytes: int
    extent: int
    chunk: int
    calls: int
    blocks: int


SIZES = {
    "full": Size((512, 512, 256), 1 << 23, 2048, 8192, 300, 4 << 20, 4000, 200, 200, 80),
    "small": Size((256, 128, 128), 1 << 19, 256, 8192, 40, 1 << 20, 1200, 60, 50, 20),
    "tiny": Size((16, 16, 16), 1 << 12, 8, 1024, 4, 16 << 10, 80, 8, 4, 2),
}


@dataclass(frozen=True)
class Row:
    """One row of the table.

    Parameters
    ----------
    name : str
        What it is called.
    family : str
        With which others it is chosen.
    kind : str
        What builds its ways; see `_peers_ranks`.
    options : mapping
        What that is told.
    limit : float
        How much longer than plain code it may take.
    calls : {"one", "calls", "shapes"}
        Calls of a repetition: a single one; many, of which the median counts; or one for each of many shapes, of which
        the geometric mean counts.
    """

    name: str
    family: str
    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)
    limit: float = RAW_LIMIT
    calls: str = "one"


def _row(name: str, kind: str, *, calls: str = "one", zarr: bool = False, **options: Any) -> Row:
    family = name.partition(",")[0]
    return Row(name, family, kind, options, ZARR_LIMIT if zarr else RAW_LIMIT, calls)


def _both(name: str, kind: str, **options: Any) -> list[Row]:
    """As it stays in the page cache, and durable."""
    return [_row(name, kind, **options), _row(f"{name}, durable", kind, durable=True, **options)]


ROWS: Sequence[Row] = (
    _row("whole, raw, write", "raw", spread="block"),
    _row("whole, raw, read", "raw", spread="block", read=True),
    _row("whole, Zarr, write", "zarr", zarr=True),
    _row("whole, Zarr, read", "zarr", zarr=True, read=True),
    _row("reread, raw", "raw", spread="block", read=True),
    _row("reread, Zarr", "zarr", zarr=True, read=True, written_by_more=True),
    _row("contiguous, raw, durable", "raw", spread="rows", durable=True),
    _row("cyclic, raw, read", "raw", spread="cyclic", read=True),
    *_both("many, Zarr", "many", zarr=True),
    _row("shapes, raw, write", "raw shapes", calls="shapes"),
    _row("shapes, raw, read", "raw shapes", calls="shapes", read=True),
    _row("shapes, Zarr, write", "zarr shapes", calls="shapes", zarr=True),
    _row("shapes, Zarr, read", "zarr shapes", calls="shapes", zarr=True, read=True),
    *_both("section, small chunks", "section", zarr=True, chunks="small"),
    *_both("section, natural chunks", "section", zarr=True, chunks="natural"),
    *_both("section, raw", "raw section"),
    _row("calls, raw, write", "calls", calls="calls"),
    _row("calls, raw, read", "calls", calls="calls", read=True),
    *_both("new, Zarr", "new", calls="calls", zarr=True),
    _row("flash, raw checkpoint", "flash", form="raw"),
    _row("flash, raw plotfile", "flash", form="plotfile"),
    _row("flash, Zarr checkpoint", "flash", zarr=True, form="zarr"),
)
FAMILIES = tuple(dict.fromkeys(row.family for row in ROWS))


def ranks_of(row: Row, ranks: int) -> int | None:
    """On how many ranks a row is measured: fewer read what more wrote, 6 of 8; None where that is no whole number."""
    if row.family != "reread":
        return ranks
    return ranks * 3 // 4 if ranks % 4 == 0 else None


def shapes_between(count: int, largest_bytes: int, ranks: int) -> list[tuple[int, int]]:
    """Shapes of arrays of float64 from 1 KiB on, evenly on a logarithmic scale, as square as ranks divide the rows."""
    found = []
    for number in range(count):
        elements = 128 * (largest_bytes / 1024) ** (number / max(1, count - 1))
        rows = max(1, round(elements**0.5 / ranks)) * ranks
        found.append((rows, max(1, round(elements / rows))))
    return found
