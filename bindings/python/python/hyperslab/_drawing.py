"""Pictures for notebooks of who holds what: SVG without scripts or fonts of its own, so that no network is needed."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hyperslab import _core
    from hyperslab.distribution import Distribution
    from hyperslab.pieces import Boxes

__all__ = ["draw_boxes", "draw_distribution", "draw_report"]

#: Most intervals along a dimension that are drawn, and most boxes.
INTERVALS_MAX = 16
BOXES_MAX = 64
#: Longest side, shortest side of a cell, and the narrowest cell that has room for a number [px].
SIDE = 320
CELL_MIN = 6
ROOM = (20, 11)
#: Ranks that are named in one cell.
NAMES_MAX = 4
#: Degrees between the hues of two ranks in turn: the golden angle, so that neighbours differ.
TURN = 137.5


def _colour(rank: int) -> str:
    return f"hsl({rank * TURN % 360:.0f},60%,{82 - 8 * (rank // 12 % 3)}%)"


def _figure(body: Iterable[str], size: tuple[float, float], caption: str) -> str:
    width, height = size
    return (
        f'<figure style="margin:0"><svg xmlns="http://www.w3.org/2000/svg" width="{width + 2:.0f}" '
        f'height="{height + 2:.0f}" viewBox="-1 -1 {width + 2:.0f} {height + 2:.0f}" font-family="sans-serif" '
        f'font-size="11" text-anchor="middle">{"".join(body)}</svg>'
        f'<figcaption style="font-size:smaller">{html.escape(caption)}</figcaption></figure>'
    )


def _cell(place: tuple[float, float, float, float], words: str, told: str, colour: str) -> str:
    x, y, width, height = place
    room = width >= ROOM[0] / 2 * max(2, len(words)) * 0.7 and height >= ROOM[1]
    text = f'<text x="{x + width / 2:.1f}" y="{y + height / 2 + 4:.1f}" fill="#222">{words}</text>' if room else ""
    return (
        f'<g><title>{html.escape(told)}</title><rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" fill="{colour}" stroke="#555" stroke-width="0.6"/>{text}</g>'
    )


def _intervals(dist: Distribution, dim: int) -> list[int]:
    """Where parts begin along a dimension, up to as many as are drawn, and where the last of them ends."""
    extent, mesh = dist.shape[dim], dist.mesh
    axis = dist._core.over[dim]
    starts = {0}
    if axis is not None:
        step = 1
        for ranks in mesh[axis + 1 :]:
            step *= ranks
        # Ranks are row-major, and the first along the axis have the first parts, whatever the kind.
        for rank in range(0, min(mesh[axis], INTERVALS_MAX + 1) * step, step):
            for start, _, stride, count in dist._core.runs(rank)[dim]:
                starts |= {start + stride * number for number in range(min(count, INTERVALS_MAX + 1))}
    kept = sorted(start for start in starts if start < extent)
    return [*kept[:INTERVALS_MAX], kept[INTERVALS_MAX] if len(kept) > INTERVALS_MAX else extent]


def _ranks(owners: Sequence[int]) -> str:
    """Ranks in few words: runs of them as from and to."""
    if len(owners) > 1 and owners[-1] - owners[0] == len(owners) - 1:
        return f"{owners[0]}-{owners[-1]}"
    more = f", … ({len(owners)})" if len(owners) > NAMES_MAX else ""
    return ", ".join(map(str, owners[:NAMES_MAX])) + more


def _scaled(edges: Sequence[int], side: float) -> list[float]:
    """Positions of edges along a side [px]; what is narrow is drawn wide enough to be seen."""
    extent = max(edges[-1] - edges[0], 1)
    at = [0.0]
    for low, high in pairwise(edges):
        at.append(at[-1] + max(side * (high - low) / extent, CELL_MIN))
    return at


def _sides(extents: tuple[int, int]) -> tuple[float, float]:
    """Height and width of a picture of so many rows and columns, not all too narrow [px]."""
    rows, columns = max(extents[0], 1), max(extents[1], 1)
    share = min(max(rows / columns, 0.25), 1.5)
    return (SIDE * share, SIDE) if share <= 1 else (SIDE, SIDE / share)


def draw_distribution(dist: Distribution) -> str:
    """Which rank holds what of the first two dimensions, at index 0 of the others."""
    shape = dist.shape
    if not dist.ndim or 0 in shape:
        return f"<code>{html.escape(repr(dist))}</code>"
    columns = _intervals(dist, min(dist.ndim, 2) - 1)
    rows = _intervals(dist, 0) if dist.ndim > 1 else [0, 1]
    height, width = _sides((rows[-1], columns[-1])) if dist.ndim > 1 else (2.0 * ROOM[1], SIDE)
    down, across = _scaled(rows, height), _scaled(columns, width)
    seen: set[int] = set()
    body = []
    for i, row in enumerate(rows[:-1]):
        for j, column in enumerate(columns[:-1]):
            index = [row, column, *[0] * (dist.ndim - 2)] if dist.ndim > 1 else [column]
            owners = dist._core.owners(index)
            seen.update(owners)
            bounds = [(row, rows[i + 1]), (column, columns[j + 1])][2 - min(dist.ndim, 2) :]
            where = ", ".join(f"{low}:{high}" for low, high in bounds)
            told = f"[{where}{', 0' * (dist.ndim - 2)}]: rank{'s' * (len(owners) > 1)} {_ranks(owners)}"
            place = (across[j], down[i], across[j + 1] - across[j], down[i + 1] - down[i])
            body.append(_cell(place, _ranks(owners), told, _colour(owners[0])))
    return _figure(body, (across[-1], down[-1]), _caption(dist, (rows[-1], columns[-1]), len(seen)))


def _caption(dist: Distribution, drawn: tuple[int, int], ranks: int) -> str:
    said = [f"{dist!r}"[1:-1]]
    if dist.ndim > 1:
        said.append("dimension 0 runs down, dimension 1 to the right")
    if dist.ndim > 2:
        said.append("at index 0 of the others")
    extents = drawn if dist.ndim > 1 else drawn[1:]
    if tuple(extents) != dist.shape[: len(extents)]:
        said.append(f"only [{', '.join(f'0:{extent}' for extent in extents)}] is drawn")
    if ranks < dist.size:
        said.append(f"{ranks} … of {dist.size} ranks")
    return "; ".join(said)


def draw_boxes(boxes: Boxes) -> str:
    """Where the boxes of a rank lie in the first two dimensions."""
    shape = boxes.shape
    if not boxes.ndim or 0 in shape:
        return f"<code>{html.escape(repr(boxes))}</code>"
    extents = (shape[0], shape[1]) if boxes.ndim > 1 else (1, shape[0])
    height, width = _sides(extents) if boxes.ndim > 1 else (2.0 * ROOM[1], SIDE)
    y, x = height / extents[0], width / extents[1]
    body = [f'<rect width="{width:.1f}" height="{height:.1f}" fill="none" stroke="#555" stroke-width="0.6"/>']
    for number in range(min(len(boxes), BOXES_MAX)):
        slices = boxes.slices(number)
        down, across = (slices[0], slices[1]) if boxes.ndim > 1 else (slice(0, 1), slices[0])
        place = (across.start * x, down.start * y, (across.stop - across.start) * x, (down.stop - down.start) * y)
        told = f"box {number}: [{', '.join(f'{one.start}:{one.stop}' for one in slices)}]"
        body.append(_cell(place, str(number), told, _colour(number)))
    said = [f"{boxes!r}"[1:-1]]
    if len(boxes) > BOXES_MAX:
        said.append(f"{BOXES_MAX} … of {len(boxes)} boxes")
    return _figure(body, (width, height), "; ".join(said))


def draw_report(report: _core.Report) -> str:
    """What a transfer did, as a table: each phase, predicted beside measured."""
    rows = [(name, predicted, measured) for name, predicted, measured in report.phases]
    rows.append(("all", report.predicted, report.seconds))
    cells = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{predicted * 1e3:.3g}</td><td>{measured * 1e3:.3g}</td></tr>"
        for name, predicted, measured in rows
    )
    return (
        f"<table><caption>{html.escape(str(report))}</caption><thead><tr><th>phase</th><th>predicted [ms]</th>"
        f"<th>measured [ms]</th></tr></thead><tbody>{cells}</tbody></table>"
    )
