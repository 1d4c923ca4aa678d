"""A trace in words."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from hyperslab._quantities import said_rate, said_seconds, times
from hyperslab.trace._causes import chain, phrase, rank_name, shares, slowest, state_name
from hyperslab.trace._form import Kind
from hyperslab.trace._path import Stretch, critical_path, ranks_of, states_of
from hyperslab.trace._run import OUTSIDE, STATES, Call, Run

__all__ = ["notes", "short", "summarize", "text"]

#: Calls that are told of one by one.
CALLS_TOLD = 12


def summarize(run: Run, beside: Run | None = None, path: list[Stretch] | None = None) -> dict[str, Any]:
    """All that is said of a run: where the time went, the causes, the critical path, each call.

    Parameters
    ----------
    run : Run
        What was recorded.
    beside : Run, optional
        What was predicted, such as the trace of a simulation.
    path : list of Stretch, optional
        The critical path, if it is known already.
    """
    path = critical_path(run) if path is None else path
    table = shares(run)
    mean = table.mean(axis=0)
    clients = table[[row for row, rank in enumerate(run.ranks) if rank < run.clients]]
    told = sorted(run.calls, key=lambda call: -call.seconds)[:CALLS_TOLD]
    spent = states_of(path)
    return {
        "run": run.name,
        "simulated": run.simulated,
        "ranks": run.size,
        "dedicated_servers": run.size - run.clients,
        "seconds": run.seconds,
        "cause": headline(run, path),
        "states": {STATES[state]: float(seconds) for state, seconds in enumerate(mean) if seconds > 0},
        # Of a run of which only servers left a trace there are none.
        "clients": {
            STATES[state]: float(s) for state, s in enumerate(clients.sum(axis=0) / max(len(clients), 1)) if s > 0
        },
        "critical_path": {STATES[state]: seconds for state, seconds in spent.items()},
        "calls": [_call(run, call) for call in sorted(told, key=lambda call: call.begin)],
        "calls_in_all": len(run.calls),
        "predicted": predicted(run, beside),
        "spans": run.count,
        "dropped": run.dropped,
        "span_ns": run.span_ns,
        "overhead_seconds": (run.span_ns * run.count + run.encoding_ns) / max(len(run.ranks), 1) / 1e9,
        "ranks_missing": run.size - len(run.ranks),
        "cut_off": run.cut_off,
        "clock_uncertainty_seconds": max(run.uncertainty.values()) / 1e9,
    }


def headline(run: Run, path: list[Stretch]) -> str:
    """The cause in one sentence: what most of the critical path is."""
    spent = states_of(path)
    whole = sum(spent.values())
    if not whole:
        return "nothing took any time"
    state, seconds = next(iter(spent.items()))
    names: dict[str, float] = {}
    for stretch in path:
        if stretch.state == state and stretch.span >= 0 and state == Kind.APPLICATION:
            name = run.objects(stretch.rank)[stretch.span]
            names[name] = names.get(name, 0.0) + stretch.end - stretch.begin
    what = max(names, key=lambda name: names[name], default="")
    part, all_of_it = times([seconds, whole])
    ranks = ranks_of(path, state)
    where = f"on {rank_name(run, ranks[0][0])}" if ranks[0][1] > 0.5 * seconds else f"on {len(ranks)} ranks in turn"
    return (
        f"{100 * seconds / whole:.0f} % of the critical path ({part} of {all_of_it}) is "
        f"{state_name(state, what)}, {where}"
    )


def short(what: str) -> str:
    """What a call does, without the directories of paths."""
    return re.sub(r"'[^']*/([^'/]+)'", r"'\1'", what)


def _call(run: Run, call: Call) -> dict[str, Any]:
    window = (call.begin, call.end)
    mean = shares(run, window).mean(axis=0)
    cause = chain(run, slowest(run, call), window)
    return {
        "call": call.number,
        "what": short(call.what),
        "begin": (call.begin - run.begin) / 1e9,
        "seconds": call.seconds,
        "strategy": call.about.get("strategy"),
        "bytes": call.about.get("bytes"),
        "servers": call.about.get("servers"),
        "failed": call.failed,
        "states": {STATES[state]: float(seconds) for state, seconds in enumerate(mean) if seconds > 0},
        "cause": phrase(run, cause),
    }


def predicted(run: Run, beside: Run | None) -> list[dict[str, Any]]:
    """Phases, what they were predicted to take and what they took, as means of all ranks [s].

    Predictions come from what rank 0 recorded with a call, or from another run beside this one.
    """
    said: dict[str, float] = {}
    for call in run.calls:
        for phase in call.about.get("predicted", ()):
            said[phase["phase"]] = said.get(phase["phase"], 0.0) + float(phase["seconds"])
    inside = _in_calls(run)
    if beside is not None:
        said |= _in_calls(beside)
        said["from first to last"] = beside.seconds
        inside["from first to last"] = run.seconds
    if not said:
        return []
    rows = [] if beside is not None else _phases(said, inside)
    names = [name for name in (*STATES, "from first to last") if said.get(name, 0) or inside.get(name, 0)]
    names += [name for name in said if name not in names and name not in STATES]
    rows += [{"phase": name, "predicted": said.get(name), "measured": inside.get(name, 0.0)} for name in names]
    return rows


#: Phases of the model, and the states that ranks are in meanwhile.
_PHASES = {
    "agreements": (("open", "close"), ("agree", "commit", "metadata", "await plan", "await commit", "await metadata")),
    "exchange": (("exchange",), ("plan", "pack", "code", "send", "receive", "wait")),
    "storage": (("storage",), ("read", "write")),
    "sync": (("sync",), ("sync", "await sync")),
}


def _phases(said: dict[str, float], inside: dict[str, float]) -> list[dict[str, Any]]:
    """Rows of the phases that the model knows, whose parts are taken out of what was said and what was measured."""
    rows = []
    for phase, (parts, states) in _PHASES.items():
        if not any(part in said for part in parts):
            continue
        foreseen = sum(said.pop(part, 0.0) for part in parts)
        measured = sum(inside.pop(state, 0.0) for state in states)
        if foreseen or measured:
            rows.append({"phase": phase, "predicted": foreseen, "measured": measured})
    return rows


def _in_calls(run: Run) -> dict[str, float]:
    """Seconds in each state inside of calls, as means of all ranks."""
    mean = shares(run).mean(axis=0)
    return {
        STATES[state]: float(mean[state]) for state in range(OUTSIDE) if state != Kind.APPLICATION and mean[state] > 0
    }


def text(told: dict[str, Any]) -> str:
    """A summary for people."""
    servers = f", {told['dedicated_servers']} of them dedicated servers" if told["dedicated_servers"] else ""
    kind = "simulated" if told["simulated"] else "measured"
    lines = [
        f"run {told['run']} ({kind}): {told['ranks']} ranks{servers}, {told['calls_in_all']} calls, "
        f"{said_seconds(told['seconds'])} from first to last",
        f"cause: {told['cause']}",
        "",
        "where ranks spent their time, on average:",
    ]
    spent = {state: s for state, s in told["states"].items() if s >= 0.001 * told["seconds"]}
    spent = dict(sorted(spent.items(), key=lambda item: -item[1]))
    for (state, seconds), span in zip(spent.items(), times(list(spent.values())), strict=True):
        lines.append(f"  {state:<14} {100 * seconds / told['seconds']:5.1f} %  {span:>11}")
    lines += ["", "calls:"]
    for call, span in zip(told["calls"], times([call["seconds"] for call in told["calls"]]), strict=True):
        rate = f", {said_rate(call['bytes'] / max(call['seconds'], 1e-9))}" if call["bytes"] else ""
        how = f", {call['strategy']}" if call["strategy"] else ""
        lines.append(f"  {call['what']}: {span}{rate}{how}")
        if call["cause"]:
            lines.append(f"    {call['cause']}")
        if call["failed"]:
            lines.append(f"    failed: {call['failed'].splitlines()[0]}")
    if told["calls_in_all"] > len(told["calls"]):
        lines.append(f"  and {told['calls_in_all'] - len(told['calls'])} shorter ones")
    if told["predicted"]:
        lines += ["", f"{'phase':<20} {'predicted':>11} {'measured':>11}"]
        foreseen = [row["predicted"] or 0.0 for row in told["predicted"]]
        spans = times(foreseen + [row["measured"] for row in told["predicted"]])
        for row, said, was in zip(told["predicted"], spans, spans[len(foreseen) :], strict=False):
            lines.append(f"{row['phase']:<20} {'-' if row['predicted'] is None else said:>11} {was:>11}")
    lines += ["", *notes(told)]
    return "\n".join(lines)


def notes(told: dict[str, Any]) -> list[str]:
    """What recording cost, and what is missing."""
    lines = [
        "recording cost no virtual time"
        if told["simulated"]
        else f"recording cost {said_seconds(told['span_ns'] / 1e9)} a span, with writing it down about "
        f"{said_seconds(told['overhead_seconds'])} on each rank ({told['spans']} spans in all)"
    ]
    if told["dropped"]:
        lines.append(f"{told['dropped']} spans were too many and are not there")
    if told["ranks_missing"]:
        lines.append(f"{told['ranks_missing']} ranks left no trace")
    if told["cut_off"]:
        lines.append(f"the last block is cut off on ranks {', '.join(map(str, np.asarray(told['cut_off'][:8])))}")
    if told["clock_uncertainty_seconds"]:
        lines.append(f"clocks of different hosts agree within {said_seconds(told['clock_uncertainty_seconds'])}")
    return lines
