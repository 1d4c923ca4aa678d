"""One page with all of a trace: timelines, previews, causes. It needs no network and no other file."""

from __future__ import annotations

import base64
import html
import json
import zlib
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperslab.trace._awaits import HELD_UP, STATES
from hyperslab.trace._causes import shares
from hyperslab.trace._form import NONE, Kind
from hyperslab.trace._path import Stretch, critical_path
from hyperslab.trace._previews import BINS_MIN, previews
from hyperslab.trace._run import Run
from hyperslab.trace._summary import notes, short, summarize

__all__ = ["PAGE_BYTES_MAX", "page"]

#: A page is never larger [B].
PAGE_BYTES_MAX = 20_000_000
#: Spans that are shown one by one; of a larger trace, those of some ranks.
SPANS_MAX = 250_000
#: Ranks that are shown so, at least, if their spans are not too many.
RANKS_SHOWN = 64
PATH_MAX = 20_000


class _Pile:
    """Arrays in one heap of bytes, and where each lies."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    def add(self, values: NDArray[Any]) -> dict[str, Any]:
        """Put an array on it."""
        contents = np.ascontiguousarray(values).tobytes()
        place = {"at": self.size, "type": values.dtype.str[1:], "length": int(values.size)}
        self.parts.append(contents + bytes(-len(contents) % 8))
        self.size += len(self.parts[-1])
        return place


def page(run: Run, beside: Run | None = None, title: str = "") -> str:
    """The page, as HTML."""
    path = critical_path(run)
    told = summarize(run, beside, path)
    bins, budget = None, SPANS_MAX
    while True:
        made = _page(run, path, told, title, bins, budget)
        if len(made) <= PAGE_BYTES_MAX or (bins == BINS_MIN // 4 and budget < 1000):
            return made
        # What cannot be squeezed is shown more coarsely.
        bins = max((bins or 2 * BINS_MIN) // 2, BINS_MIN // 4)
        budget //= 4


def _page(run: Run, path: list[Stretch], told: dict[str, Any], title: str, bins: int | None, budget: int) -> str:
    pile = _Pile()
    tick = max(1.0, np.ceil((run.end - run.begin) / 2**32))
    data: dict[str, Any] = {
        "title": title or f"trace of run {run.name}",
        "summary": told,
        "notes": notes(told),
        "states": STATES,
        "ranks": len(run.ranks),
        "numbers": run.ranks if run.ranks != list(range(len(run.ranks))) else None,
        "servers": sorted(run.servers),
        "tick": tick / 1e9,
        "seconds": run.seconds,
        "calls": [
            {"what": short(c.what), "begin": (c.begin - run.begin) / 1e9, "end": (c.end - run.begin) / 1e9}
            for c in run.calls
        ],
        "predicted": told["predicted"],
    }
    made = previews(run, bins)
    data["levels"] = [
        {
            "group": level.group,
            "rows": level.cells.shape[0],
            "bins": level.cells.shape[1],
            "cells": pile.add(level.cells),
        }
        for level in made.levels
    ]
    data["histogram"] = {"bins": made.histogram.shape[0], "parts": pile.add(made.histogram)}
    data["path"] = _path(run, path, tick, pile)
    data |= _details(run, path, tick, budget, pile)
    text = json.dumps(data, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    heap = len(text).to_bytes(8, "little") + text + b"".join(pile.parts)
    packed = base64.b64encode(zlib.compress(heap, 9)).decode()
    files = resources.files("hyperslab.trace")
    template = files.joinpath("_page.html").read_text(encoding="utf-8")
    for mark, contents in (
        ("{{title}}", html.escape(data["title"])),
        ("{{style}}", files.joinpath("_page.css").read_text(encoding="utf-8")),
        ("{{script}}", files.joinpath("_page.js").read_text(encoding="utf-8")),
        ("{{data}}", packed),
    ):
        template = template.replace(mark, contents)
    return template


def _ticks(run: Run, times: NDArray[np.float64], tick: float) -> NDArray[np.uint32]:
    return np.clip(np.rint((times - run.begin) / tick), 0, 2**32 - 1).astype(np.uint32)


def _path(run: Run, path: list[Stretch], tick: float, pile: _Pile) -> dict[str, Any]:
    row = {rank: number for number, rank in enumerate(run.ranks)}
    if len(path) > PATH_MAX:
        least = sorted(stretch.end - stretch.begin for stretch in path)[-PATH_MAX]
        path = [stretch for stretch in path if stretch.end - stretch.begin >= least]
    return {
        "row": pile.add(np.array([row[stretch.rank] for stretch in path], np.uint32)),
        "begin": pile.add(_ticks(run, np.array([stretch.begin for stretch in path], np.float64), tick)),
        "end": pile.add(_ticks(run, np.array([stretch.end for stretch in path], np.float64), tick)),
        "state": pile.add(np.array([stretch.state for stretch in path], np.uint8)),
    }


def _chosen(run: Run, path: list[Stretch], budget: int) -> list[int]:
    """Ranks that are shown span by span: all, or those of the critical path, servers, and those held up most."""
    if 2 * run.count <= budget:
        return run.ranks
    mean = run.count / len(run.ranks)
    number = max(1, min(RANKS_SHOWN, int(budget / (2 * mean))))
    on_path: dict[int, float] = {}
    for stretch in path:
        on_path[stretch.rank] = on_path.get(stretch.rank, 0.0) + stretch.end - stretch.begin
    held = shares(run)[:, list(HELD_UP)].sum(axis=1)
    wanted = sorted(on_path, key=lambda rank: -on_path[rank])[: number // 2]
    wanted += sorted(run.servers & run.present)[: number // 4]
    wanted += [run.ranks[row] for row in np.argsort(held, kind="stable")[::-1][:number]]
    return sorted(dict.fromkeys(wanted[: 2 * number]))[:number]


def _details(run: Run, path: list[Stretch], tick: float, budget: int, pile: _Pile) -> dict[str, Any]:
    names: dict[str, int] = {"": 0}
    tables: dict[str, dict[str, list[NDArray[Any]]]] = {"segments": {}, "steps": {}}
    chosen = _chosen(run, path, budget)
    for rank in chosen:
        spans, begin, end, calls = run.spans(rank)
        names_of = [names.setdefault(name, len(names)) for name in run.objects(rank)]
        named = np.array([*names_of, 0], np.uint32)
        moved = np.append(spans["bytes"].astype(np.float64), 0)
        of = run.segments(rank)
        part: dict[str, NDArray[Any]] = {
            "begin": _ticks(run, of.begin, tick),
            "end": _ticks(run, of.end, tick),
            "state": of.state,
            "peer": of.peer.astype(np.int32),
            "name": named[of.span],
            "bytes": moved[of.span],
        }
        _extend(tables["segments"], part)
        steps = np.flatnonzero((spans["step"] != NONE) & (spans["kind"] != Kind.WAIT))
        steps = steps[np.argsort(begin[steps], kind="stable")]
        peer = np.where(spans["peer"] == NONE, -1, spans["peer"].astype(np.int64)).astype(np.int32)
        part = {
            "begin": _ticks(run, begin[steps], tick),
            "end": _ticks(run, end[steps], tick),
            "state": spans["kind"][steps],
            "peer": peer[steps],
            "name": named[steps],
            "bytes": moved[steps],
            "round": spans["round"][steps],
            "call": calls[steps].astype(np.int32),
            "step": spans["step"][steps],
            "lane": spans["lane"][steps],
        }
        _extend(tables["steps"], part)
    row = {rank: number for number, rank in enumerate(run.ranks)}
    made: dict[str, Any] = {"shown": [row[rank] for rank in chosen], "names": list(names)}
    for table, columns in tables.items():
        first = next(iter(columns.values()), [])
        made[table] = {name: pile.add(np.concatenate(parts)) for name, parts in columns.items()}
        made[table]["starts"] = pile.add(np.cumsum([0, *(len(part) for part in first)]).astype(np.uint32))
    return made


def _extend(columns: dict[str, list[NDArray[Any]]], part: dict[str, NDArray[Any]]) -> None:
    for name, values in part.items():
        columns.setdefault(name, []).append(values)
