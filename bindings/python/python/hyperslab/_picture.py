"""A picture of a transfer: ranks, servers, and what moves between them."""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from hyperslab._quantities import said_bytes, said_seconds

__all__ = ["draw"]

WIDTH, MARGIN, ROW, BAR = 760, 24, 34, 22
LEFT, RIGHT = 150, WIDTH - 190
#: Hues that stay apart for eyes that see few colours; further ranks take them again, lighter.
HUES = (210, 28, 150, 330, 60, 270, 0, 185)
#: Narrowest and widest band.
BANDS = (1.0, 20.0)
CELL = 18
CELLS_MAX = 32


def _colour(rank: int) -> str:
    return f"hsl({HUES[rank % len(HUES)]} 55% {45 + 12 * (rank // len(HUES) % 3)}%)"


def _text(x: float, y: float, words: str, *, anchor: str = "start", kind: str = "") -> str:
    told = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{told}>{html.escape(words)}</text>'


def _flows(rounds: Sequence[Mapping[str, Any]]) -> dict[tuple[int, int], int]:
    """Bytes between ranks and servers, in the rounds that are shown."""
    flows: defaultdict[tuple[int, int], int] = defaultdict(int)
    for table in rounds:
        for row in table["ranks"]:
            flows[row["rank"], table["server"]] += row["bytes"]
    return dict(flows)


def _bands(flows: Mapping[tuple[int, int], int], ranks: Sequence[int], servers: Sequence[int], top: float) -> list[str]:
    most = max(flows.values(), default=1) or 1
    lines = []
    for (rank, server), moved in sorted(flows.items(), key=lambda flow: -flow[1]):
        a, b = top + ranks.index(rank) * ROW + BAR / 2, top + servers.index(server) * ROW + BAR / 2
        width = BANDS[0] + (BANDS[1] - BANDS[0]) * moved / most
        middle = (LEFT + RIGHT) / 2
        lines.append(
            f'<path d="M{LEFT},{a:.1f} C{middle},{a:.1f} {middle},{b:.1f} {RIGHT},{b:.1f}" stroke="{_colour(rank)}" '
            f'stroke-width="{width:.1f}" fill="none" opacity="0.55">'
            f"<title>rank {rank}, server {server}: {said_bytes(moved)}</title></path>"
        )
    return lines


def _cells(rounds: Sequence[Mapping[str, Any]], servers: Sequence[int], top: float) -> list[str]:
    """What each server moves in which round: a cell each, striped by ranks."""
    numbers = sorted({table["round"] for table in rounds})[:CELLS_MAX]
    lines = [_text(MARGIN, top - 8, "rounds, from left to right", kind="small")]
    for server in servers:
        y = top + servers.index(server) * (CELL + 4)
        lines.append(_text(MARGIN, y + CELL - 5, f"server {server}", kind="small"))
        for table in rounds:
            if table["server"] != server or table["round"] not in numbers:
                continue
            x = float(LEFT + numbers.index(table["round"]) * (CELL + 2))
            whole = sum(row["bytes"] for row in table["ranks"]) or 1
            for row in table["ranks"]:
                width = CELL * row["bytes"] / whole
                told = f"round {table['round']}, server {server}, rank {row['rank']}: {said_bytes(row['bytes'])}"
                lines.append(
                    f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{CELL}" fill="{_colour(row["rank"])}">'
                    f"<title>{told}</title></rect>"
                )
                x += width
    return lines


def draw(told: Mapping[str, Any]) -> str:
    """The picture of an explanation's data, as SVG."""
    rounds = told["rounds"]
    flows = _flows(rounds)
    ranks, servers = sorted({rank for rank, _ in flows}), sorted({server for _, server in flows})
    top = 84.0
    below = top + max(len(ranks), len(servers), 1) * ROW + 40
    height = below + len(servers) * (CELL + 4) + MARGIN
    writes = told["direction"] == "write"
    seconds = told["predicted"]["seconds"]
    heading = f"{told['direction']} of {said_bytes(told['bytes'])} by {told['size']} ranks: {told['strategy']}"
    subtitle = f"{said_seconds(seconds)} predicted, bound by the {told['predicted']['bound_by']}"
    if len(ranks) < told["size"]:
        subtitle += f"; {len(ranks)} of {told['size']} ranks move what is shown"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
        f'height="{height:.0f}" role="img" aria-label="{html.escape(heading)}">',
        "<style>text{font:13px system-ui,sans-serif;fill:#223}.small{font-size:11px;fill:#556}.head{font-size:16px;"
        "font-weight:600}</style>",
        f'<rect width="{WIDTH}" height="{height:.0f}" fill="#fbfbfd"/>',
        _text(MARGIN, 30, heading, kind="head"),
        _text(MARGIN, 50, subtitle, kind="small"),
        _text(LEFT, 74, "memories of ranks" + ("" if writes else " (to)"), anchor="end", kind="small"),
        _text(RIGHT, 74, "servers" + (" (to)" if writes else ""), kind="small"),
        *_bands(flows, ranks, servers, top),
    ]
    for rank in ranks:
        y = top + ranks.index(rank) * ROW
        moved = sum(count for (one, _), count in flows.items() if one == rank)
        lines.append(f'<rect x="{LEFT - 8}" y="{y:.1f}" width="8" height="{BAR}" fill="{_colour(rank)}"/>')
        lines.append(_text(LEFT - 14, y + 15, f"rank {rank}, {said_bytes(moved)}", anchor="end"))
    for server in servers:
        y = top + servers.index(server) * ROW
        asked = next((row for row in told["servers"] if row["rank"] == server), None)
        requests = f", {asked['reads'] + asked['writes']} requests" if asked else ""
        moved = sum(count for (_, one), count in flows.items() if one == server)
        lines.append(f'<rect x="{RIGHT}" y="{y:.1f}" width="8" height="{BAR}" fill="#445"/>')
        lines.append(_text(RIGHT + 14, y + 15, f"rank {server}, {said_bytes(moved)}{requests}"))
    lines += _cells(rounds, servers, below)
    more = [f"{told[key]} more {what}" for key, what in (("more_rounds", "rounds"), ("more_servers", "servers"))]
    more = [words for words in more if not words.startswith("0 ")]
    if more:
        lines.append(_text(WIDTH - MARGIN, height - 8, "not shown: " + ", ".join(more), anchor="end", kind="small"))
    return "\n".join([*lines, "</svg>"]) + "\n"
