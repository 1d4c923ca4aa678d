"""The picture of ``hyperslab bench peers``: for each row, first and later calls of each way on a logarithmic scale."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from hyperslab._quantities import said_seconds
from hyperslab.bench._peers_tables import Measured, Times

__all__ = ["draw"]

WIDTH, MARGIN, LINE = 980, 20, 15
LEFT, RIGHT = 250, WIDTH - 90
#: Colours that stay apart for eyes that see few of them, by role.
COLOURS = {"ours": "hsl(210 65% 45%)", "peer": "hsl(28 75% 50%)", "limit": "hsl(0 0% 45%)"}


def _text(x: float, y: float, words: str, *, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{html.escape(words)}</text>'


class _Scale:
    """From seconds to places, by powers of ten."""

    def __init__(self, spreads: Sequence[Times]) -> None:
        lows = [one.low for one in spreads if one.low > 0] or [1e-3]
        self.low = math.floor(math.log10(min(lows)))
        self.high = max(self.low + 1, math.ceil(math.log10(max([one.high for one in spreads] or [1.0]))))

    def at(self, seconds: float) -> float:
        """Where a time is."""
        share = (math.log10(max(seconds, 10.0**self.low)) - self.low) / (self.high - self.low)
        return LEFT + share * (RIGHT - LEFT)

    def lines(self, top: float, bottom: float) -> list[str]:
        """A thin line and its time for each power of ten."""
        found = []
        for power in range(self.low, self.high + 1):
            x = self.at(10.0**power)
            found.append(f'<path d="M{x:.1f},{top:.1f} V{bottom:.1f}" stroke="#dde" stroke-width="1"/>')
            found.append(_text(x, top - 4, said_seconds(10.0**power), kind="small", anchor="middle"))
        return found


def _mark(scale: _Scale, y: float, spread: Times, colour: str, told: str, *, is_first: bool) -> list[str]:
    """A dot with the spread of its times: hollow for the first call."""
    fill = "#fff" if is_first else colour
    low, high, x = scale.at(spread.low), scale.at(spread.high), scale.at(spread.median)
    words = f"{told}: {said_seconds(spread.median)} [{said_seconds(spread.low)}, {said_seconds(spread.high)}]"
    return [
        f'<path d="M{low:.1f},{y:.1f} H{high:.1f}" stroke="{colour}" stroke-width="1.5"/>',
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{fill}" stroke="{colour}" stroke-width="1.5">'
        f"<title>{html.escape(words)}</title></circle>",
    ]


def _row(one: Measured, scale: _Scale, top: float) -> list[str]:
    fast = "fast" if one.is_fast else "not fast"
    at_once = "" if one.is_fast_at_once else ", slow first call"
    lines = [_text(MARGIN, top, f"{one.row.name}, {one.ranks} ranks: {fast}{at_once}", kind="head")]
    y = top + LINE
    for way in one.later["ways"]:
        colour = COLOURS.get(way["role"])
        if colour is None:
            continue
        lines.append(_text(LEFT - 12, y + 4, way["name"], anchor="end"))
        first = one.first(way["name"])
        if first is not None:
            lines += _mark(scale, y, first, colour, f"{way['name']}, first call", is_first=True)
        lines += _mark(scale, y, one.times(way["name"]), colour, f"{way['name']}, later calls", is_first=False)
        y += LINE
    return lines


def draw(found: Sequence[Measured]) -> str:
    """All rows, as SVG."""
    names = [(one, way["name"]) for one in found for way in one.later["ways"] if way["role"] in COLOURS]
    spreads = [one.times(name) for one, name in names]
    spreads += [first for one, name in names if (first := one.first(name)) is not None]
    scale = _Scale(spreads)
    top = 70.0
    body, y = [], top + 20
    for one in found:
        body += _row(one, scale, y)
        y += LINE * (2.2 + sum(way["role"] in COLOURS for way in one.later["ways"]))
    heading = "First calls (hollow) and later calls (filled), with fastest and slowest"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y:.0f}" width="{WIDTH}" height="{y:.0f}" '
            f'role="img" aria-label="{heading}">',
            "<style>text{font:12px system-ui,sans-serif;fill:#223}.small{font-size:11px;fill:#556}"
            ".head{font-weight:600}</style>",
            f'<rect width="{WIDTH}" height="{y:.0f}" fill="#fbfbfd"/>',
            _text(MARGIN, 28, heading, kind="head"),
            _text(MARGIN, 46, "blue: hyperslab; orange: peers; grey: plain code", kind="small"),
            *scale.lines(top, y - 8),
            *body,
            "</svg>\n",
        ]
    )
