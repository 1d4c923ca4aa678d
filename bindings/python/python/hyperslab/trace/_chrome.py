"""A trace as JSON that Perfetto and chrome://tracing load: every span, and arrows between the two ends of messages."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from hyperslab.trace._causes import rank_name
from hyperslab.trace._form import KINDS, NONE, Kind
from hyperslab.trace._run import Run

__all__ = ["events", "write"]

#: Rows of a rank, from above: which kinds they hold. Spans of a row that overlap get further rows.
ROWS = (
    ("calls", ()),
    ("walker", (Kind.PLAN, Kind.WAIT, Kind.AGREE)),
    ("rank 0 decides", (Kind.COMMIT,)),
    ("processor", (Kind.PACK, Kind.CODE)),
    ("storage", (Kind.READ, Kind.WRITE, Kind.SYNC, Kind.METADATA)),
    ("messages", (Kind.SEND, Kind.RECEIVE)),
    ("application", (Kind.APPLICATION,)),
)
#: Numbers of rows of one kind.
PITCH = 100


def _lines(begin: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.int64]:
    """For each span, in the order of their beginnings, the first line in which nothing else is at the time."""
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    lines = np.zeros(len(begin), np.int64)
    used = 0
    for i in np.argsort(begin, kind="stable"):
        while busy and busy[0][0] <= begin[i]:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            line = heapq.heappop(free)
        else:
            line, used = used, used + 1
        lines[i] = line
        heapq.heappush(busy, (float(end[i]), line))
    return lines


def _complete(rank: int, row: int, name: str, begin: float, end: float, args: dict[str, Any]) -> dict[str, Any]:
    """A span; times in us."""
    return {
        "ph": "X",
        "pid": rank,
        "tid": row,
        "name": name,
        "cat": name,
        "ts": begin / 1e3,
        "dur": max(end - begin, 0) / 1e3,
        "args": args,
    }


def events(run: Run) -> Iterator[dict[str, Any]]:
    """Events of a run: names of ranks and rows, spans, and messages as flows."""
    for rank in run.ranks:
        yield {"ph": "M", "pid": rank, "tid": 0, "name": "process_name", "args": {"name": rank_name(run, rank)}}
        yield {"ph": "M", "pid": rank, "tid": 0, "name": "process_sort_index", "args": {"sort_index": rank}}
        for call, begin, end in run.extents(rank):
            yield _complete(rank, 0, call.what or "call", begin - run.begin, end - run.begin, {"call": call.number})
        yield from _spans_of(run, rank)


def _spans_of(run: Run, rank: int) -> Iterator[dict[str, Any]]:
    spans, begin, end, calls = run.spans(rank)
    begin, end = begin - run.begin, end - run.begin
    objects = run.objects(rank)
    sequence: dict[tuple[int, int, int], int] = {}
    for number, (title, kinds) in enumerate(ROWS):
        found = np.flatnonzero(np.isin(spans["kind"], kinds)) if kinds else np.empty(0, np.int64)
        lines = _lines(begin[found], end[found])
        for line in range(int(lines.max(initial=-1)) + 1 if kinds else 1):
            name = title if line == 0 else f"{title} {line + 1}"
            tid = number * PITCH + line
            yield {"ph": "M", "pid": rank, "tid": tid, "name": "thread_name", "args": {"name": name}}
        # Messages meet in the order of their steps.
        order = np.lexsort((spans["step"][found], spans["lane"][found], calls[found]))
        for i, line in zip(found[order], lines[order], strict=True):
            span, tid = spans[i], number * PITCH + int(line)
            kind = int(span["kind"])
            name = f"wait for {KINDS[int(span['of'])]}" if kind == Kind.WAIT else KINDS[kind]
            if kind == Kind.APPLICATION:
                name = objects[i] or name
            yield _complete(rank, tid, name, begin[i], end[i], _args(span, int(calls[i]), objects[i]))
            if kind in (Kind.SEND, Kind.RECEIVE):
                sends = kind == Kind.SEND
                peer = int(span["peer"])
                pair = (int(calls[i]), *((rank, peer) if sends else (peer, rank)))
                k = sequence.get((pair[0], peer, int(sends)), 0)
                sequence[pair[0], peer, int(sends)] = k + 1
                flow = {"id": f"{run.name}/{pair[0]}/{pair[1]}/{pair[2]}/{k}", "name": "message", "cat": "message"}
                at = begin[i] if sends else end[i]
                more: dict[str, Any] = {"ph": "s"} if sends else {"ph": "f", "bp": "e"}
                yield {**more, "pid": rank, "tid": tid, "ts": float(at) / 1e3, **flow}


def _args(span: Any, call: int, name: str) -> dict[str, Any]:
    args: dict[str, Any] = {"call": call} if call >= 0 else {}
    if span["bytes"]:
        args["bytes"] = int(span["bytes"])
    if span["peer"] != NONE:
        args["peer"] = int(span["peer"])
    if span["pieces"]:
        args["pieces"] = int(span["pieces"])
    if span["step"] != NONE:
        ready = (float(span["begin"]) - float(span["ready"])) / 1e3
        args |= {"step": int(span["step"]), "lane": int(span["lane"]), "round": int(span["round"])}
        args |= {"ready_us_before": ready, "after": None if span["after"] == NONE else int(span["after"])}
    if name:
        args["object"] = name
    if span["failed"]:
        args["failed"] = True
    return args


def write(run: Run, file: TextIO) -> int:
    """Write the JSON of a run, event by event; returns how many there are."""
    count = 0
    file.write('{"displayTimeUnit":"ns","traceEvents":[')
    for event in events(run):
        file.write(",\n" if count else "\n")
        json.dump(event, file, separators=(",", ":"))
        count += 1
    about = {"run": run.name, "simulated": run.simulated, "ns per span": run.span_ns}
    file.write(f'\n],"otherData":{json.dumps(about)}}}\n')
    return count
