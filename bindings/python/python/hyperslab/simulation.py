"""Machines that you do not have: what a transfer would cost there.

Ranks agree, plan and walk with the code of real transfers; processors, wires, file servers and disks are imagined, and
time is virtual. The same request gives the same result, byte for byte.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from hyperslab import _core
from hyperslab._quantities import said_bytes, said_seconds, times
from hyperslab._text import read_text
from hyperslab.errors import InvalidError, NotFoundError

__all__ = ["Constant", "Machine", "Simulated", "machines", "simulate"]

#: A stage of a simulation: ``"agree"``, or one key (``transfer``, ``work``, ``open``, ``close``, ``query``, ``call``)
#: and what belongs to it.
Stage: TypeAlias = str | Mapping[str, Any]


@dataclass(frozen=True)
class Constant:
    """A number of a machine and where it comes from.

    Attributes
    ----------
    key : str
        Dotted key, such as ``network.latency``.
    value : str
        As it is written, such as ``45 us``.
    origin : str
        ``paper``, ``public``, ``measured``, ``fitted`` or ``guess``.
    source : str
        The source itself.
    """

    key: str
    value: str
    origin: str
    source: str


@dataclass(frozen=True)
class Machine:
    """A machine profile: its TOML text, and the name that messages call it by."""

    text: str
    file: str

    @classmethod
    def load(cls, which: str | Path | Machine) -> Machine:
        """A machine by the name of one that comes with hyperslab, a file, or ``here``: the profile of this machine.

        Raises
        ------
        NotFoundError
            When there is neither such a machine nor such a file.
        InvalidError
            When the file is not a text in UTF-8.
        """
        if isinstance(which, Machine):
            return which
        if str(which) == "here":
            return cls._at_hand()
        known = dict(_core.machines())
        if str(which) in known:
            return cls(known[str(which)], f"machines/{which}.toml")
        path = Path(which)
        if not path.is_file():
            message = (
                f"'{which}' is neither a machine that comes with hyperslab nor a file\n"
                f"  hint: choose among {', '.join(known)}; read about them with 'hyperslab simulate --list'"
                "; 'here' is this one"
            )
            raise NotFoundError(message)
        # The name of a file may be no text.
        return cls(read_text(path, "a machine profile"), os.fsencode(path).decode(errors="replace"))

    @classmethod
    def _at_hand(cls) -> Machine:
        """The profile that transfers of this process are priced with."""
        return cls(_core.profile_in_use(), "here.toml")

    def constants(self) -> list[Constant]:
        """All its numbers, with their sources."""
        return [Constant(**entry) for entry in json.loads(_core.profile_constants(self.file, self.text))]


def machines() -> list[str]:
    """Names of the machines that come with hyperslab."""
    return [name for name, _ in _core.machines()]


class Simulated(dict[str, Any]):
    """What came out of a simulation.

    A mapping with, among others, ``seconds`` (until the last rank was through), ``settled_seconds`` (until all is on
    the disks, with what caches still held), ``transfers`` (each with ``bytes``, ``seconds``, ``rate`` [B/s],
    ``moving_seconds`` while data moved, ``strategy``), ``stages``, ``calls`` to the file system by kind, ``messages``,
    and ``busiest`` (what was at work for longest, and its share of the time).
    """

    @property
    def text(self) -> str:
        """A summary for people."""
        lines = [f"what goes wrong: {fault}" for fault in self.get("faults", [])]
        lines += [f"rank {rank}: {end}" for rank, end in enumerate(self.get("ends", []))]
        for transfer in self["transfers"]:
            servers = transfer["servers"]
            lines.append(
                f"{said_bytes(transfer['bytes'])} in {said_seconds(transfer['seconds'])}: "
                f"{said_bytes(transfer['rate'])}/s, {transfer['strategy']}, {servers} server{'s'[: servers != 1]}, "
                f"subchunks of {said_bytes(transfer['subchunk_bytes'])}"
            )
            lines.append(f"  because {transfer['why']}")
        lines.append(f"all on the disks after {said_seconds(self['settled_seconds'])}")
        lines.append("phases:")
        stages = self["stages"]
        ends = iter(times([stage[key] for stage in stages for key in ("begin", "end", "mean")]))
        lines += [f"  {stage['what']:<9} {next(ends):>12} to {next(ends):>12}, {next(ends)} a rank" for stage in stages]
        lines.append("busiest:")
        spans = times([busy["seconds"] for busy in self["busiest"]])
        lines += [
            f"  {busy['name']:<28} {span:>12}  {100 * busy['share']:5.1f} %"
            for busy, span in zip(self["busiest"], spans, strict=True)
        ]
        spent = {kind: seconds for kind, seconds in self["busiest_processor"].items() if seconds > 0}
        if spent:
            parts = zip(spent, times(list(spent.values())), strict=True)
            lines.append(f"the busiest processor: {', '.join(f'{kind} {span}' for kind, span in parts)}")
        calls = ", ".join(f"{entry['count']} {kind}" for kind, entry in self["calls"].items())
        lines.append(f"{self['messages']} messages, {self['questions']} questions, {calls or 'no'} calls")
        return "\n".join(lines)


def simulate(
    machine: str | Path | Machine,
    stages: Sequence[Stage],
    *,
    clients: int,
    servers: int = 0,
    seed: int = 0,
    disk_layout: str = "contiguous",
    what_if: Mapping[str, bool] | None = None,
    period: Mapping[str, Any] | None = None,
    scale: Mapping[str, float] | None = None,
    log: bool = False,
    trace: str | Path | None = None,
    faults: int | Mapping[str, float] | None = None,
) -> Simulated:
    """Run stages on an imagined machine.

    Parameters
    ----------
    machine : str, Path or Machine
        A machine that comes with hyperslab, or a file.
    stages : sequence
        What ranks live through, one after another. ``{"transfer": {"write": True, "arrays": [...], ...}}`` is a
        collective call; an array has ``shape``, ``mesh``, ``dims`` and perhaps ``dtype``, ``count``, ``section``,
        ``store``, ``order``, ``local``. Others are ``"agree"``, ``{"work": {"seconds": s}}``, ``{"open": {}}``,
        ``{"close": {}}``, ``{"query": {}}`` and ``{"call": {"object": ..., "bytes": ..., "write": ...}}``.
        ``{"begin": {"store": "run.zarr"}}`` opens a store by the library, a ``transfer`` with ``"store"`` writes into
        it, ``step``, ``publish`` and ``end`` are what a program does besides. See docs/simulator.md.
    clients, servers : int
        Ranks that hold arrays, and ranks behind them that only serve.
    seed : int
        Decides what is left to chance.
    disk_layout : {"contiguous", "random-blocks", "random-tracks"}
        How files lie on disks.
    what_if : mapping, optional
        ``instant_disk`` and ``instant_network``.
    period : mapping, optional
        How systems of the 1990s behaved: ``blocking_sends``, ``linear_start``, ``look_ahead``.
    scale : mapping, optional
        Factors for numbers of the machine, by dotted key.
    log : bool
        Whether to tell what happens, a line each, under ``log``.
    trace : path, optional
        A directory into which spans of all ranks are recorded; see `hyperslab.trace`.
    faults : int or mapping, optional
        A seed that draws what goes wrong, or a mapping with ``seed`` and limits on waiting (``arrival_seconds``,
        ``progress_seconds``, ``storage_seconds``). What went wrong is told under ``faults``, how the life of each rank
        ended under ``ends``; a call that fails is no error then.

    Raises
    ------
    InvalidError
        When the machine or the request is not valid.
    """
    known = Machine.load(machine)
    spec = {
        "machine": known.text,
        "file": known.file,
        "scale": dict(scale or {}),
        "clients": clients,
        "servers": servers,
        "what_if": dict(what_if or {}),
        "disk_layout": disk_layout,
        "seed": seed,
        "period": dict(period or {}),
        "log": log,
        "trace": None if trace is None else str(trace),
        "faults": {"seed": faults} if isinstance(faults, int) else faults,
        "stages": list(stages),
    }
    try:
        text = json.dumps(spec)
    except (TypeError, ValueError) as error:
        message = f"what is to be simulated cannot be understood: {error}"
        raise InvalidError(message) from error
    return Simulated(json.loads(_core.simulate_json(text)))
