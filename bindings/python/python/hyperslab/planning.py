"""What a transfer would cost on a machine that you do not have, before anything runs, and what would make it cheaper.

The model prices what is asked, and what is asked with one thing changed: another number of servers, another mesh of
servers, other chunks, another number of ranks. The best may then be rehearsed in the simulator, which is slower and
knows more.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperslab import _core
from hyperslab._quantities import said_bytes, said_seconds, times
from hyperslab.errors import Error, InvalidError
from hyperslab.simulation import Machine, Stage, simulate

__all__ = ["Plan", "plan"]

#: By how much something must be cheaper to be advised, and how much dearer it may be to count as cheap, as shares.
BETTER = 0.05
ALIKE = 0.10
#: Most servers of which all smaller numbers are tried; of more, powers of two and what divides the mesh.
ALL_SERVERS_MAX = 16
#: Chunks larger than this are not advised [B].
CHUNK_BYTES_MAX = 64 << 20
#: As Panda 2.0.5 did: one buffer, and each chunk a round of its own, since it does not batch.
PANDA = {"strategy": "server-directed", "slots": 1, "subchunk_bytes": 1}


@dataclass(frozen=True)
class Question:
    """A transfer on a machine: of arrays alike, in one call."""

    machine: Machine
    transfer: dict[str, Any]
    clients: int
    servers: int
    disk_mesh: tuple[int, ...] | None = None
    scale: tuple[tuple[str, float], ...] = ()

    @property
    def array(self) -> dict[str, Any]:
        """The first array."""
        array: dict[str, Any] = self.transfer["arrays"][0]
        return array

    def placed(self) -> dict[str, Any]:
        """The transfer, whose chunks are those that a mesh of servers has."""
        if self.disk_mesh is None:
            return self.transfer
        arrays = [
            {**array, "store": {"chunks": [-(-n // p) for n, p in zip(array["shape"], self.disk_mesh, strict=True)]}}
            for array in self.transfer["arrays"]
        ]
        return {**self.transfer, "arrays": arrays}

    def stages(self) -> list[Stage]:
        """What ranks live through."""
        return [{"transfer": self.placed()}]

    def priced(self) -> dict[str, Any]:
        """What the planner says of it."""
        spec = {
            "machine": self.machine.text,
            "file": self.machine.file,
            "scale": dict(self.scale),
            "clients": self.clients,
            "servers": self.servers,
            "stages": self.stages(),
        }
        planned: list[dict[str, Any]] = json.loads(_core.plan_json(json.dumps(spec)))
        return planned[0]

    def rehearsed(self, period: Mapping[str, Any] | None) -> float:
        """Seconds in the simulator [s]."""
        done = simulate(
            self.machine,
            self.stages(),
            clients=self.clients,
            servers=self.servers,
            scale=dict(self.scale),
            period=period,
        )
        return float(done["transfers"][0]["seconds"])


@dataclass
class Variant:
    """What is asked, with one thing changed."""

    kind: str
    text: str
    question: Question
    seconds: float
    bound_by: str
    rehearsed: float | None = None


class Plan(dict[str, Any]):
    """What the planner says of a transfer on a machine.

    A mapping with ``machine``, ``bytes`` [B], ``strategy`` and its parameters, ``why``, ``predicted`` (``seconds``,
    ``phases`` and ``busy`` [s], ``bound_by``), ``candidates`` (the same of those that were compared, the cheapest
    first, at most 64; ``more_candidates`` counts the rest), ``rehearsed`` (what was asked, in the simulator [s], or
    None), ``variants`` (what changing one thing would do: ``kind``, ``text``, ``seconds``, ``bound_by``, and
    ``rehearsed`` [s] or None) and ``advice`` (lines for people).
    """

    @property
    def text(self) -> str:
        """For people."""
        predicted = self["predicted"]
        shown, servers = self["candidates"][:8], self["servers"]
        busy = {name: seconds for name, seconds in predicted["busy"].items() if seconds}
        lines = [
            f"{said_bytes(self['bytes'])} on {self['machine']}: {said_seconds(predicted['seconds'])} predicted, "
            f"{self['strategy']}, {servers} server{'s'[: servers != 1]}, "
            f"subchunks of {said_bytes(self['subchunk_bytes'])}",
            f"  because {self['why']}",
            "  " + " + ".join(_named_times(predicted["phases"], predicted["seconds"])),
            "  busy: " + ", ".join(_named_times(busy, predicted["seconds"])),
            f"{'candidates':<24} {'servers':>7} {'subchunk':>10} {'slots':>5} {'predicted':>12}  bound by",
        ]
        spans = times([one["predicted"]["seconds"] for one in shown])
        for one, span in zip(shown, spans, strict=True):
            name = one["strategy"] + (" (sharers)" if one["exchange"] == "sharers" else "")
            lines.append(
                f"  {name:<22} {one['servers']:>7} {said_bytes(one['subchunk_bytes']):>10} {one['slots']:>5} "
                f"{span:>12}  {one['predicted']['bound_by']}"
            )
        if self["variants"]:
            widest = max(len(variant["text"]) for variant in self["variants"])
            lines.append(f"{'what if':<{widest + 2}} {'predicted':>12} {'rehearsed':>12}  bound by")
            asked = {"text": "as asked", "rehearsed": self.get("rehearsed"), **predicted}
            lines += _rows(([asked] if asked["rehearsed"] is not None else []) + self["variants"], widest)
        lines += [f"advice: {line}" for line in self["advice"]]
        return "\n".join(lines)


def _named_times(seconds: Mapping[str, float], whole: float) -> list[str]:
    """Times with what they are of, in one unit, in which the whole is told, too."""
    return [f"{name} {span}" for name, span in zip(seconds, times(list(seconds.values()), whole), strict=True)]


def _rows(variants: Sequence[Mapping[str, Any]], widest: int) -> list[str]:
    """What would be if something were otherwise, a line each."""
    ran = [variant["rehearsed"] for variant in variants]
    spans = times([variant["seconds"] for variant in variants] + [span for span in ran if span is not None])
    rehearsed = iter(spans[len(variants) :])
    return [
        f"  {variant['text']:<{widest}} {spans[number]:>12} {'' if ran[number] is None else next(rehearsed):>12}  "
        f"{variant['bound_by']}"
        for number, variant in enumerate(variants)
    ]


def plan(
    machine: str | Path | Machine,
    transfer: Mapping[str, Any],
    *,
    clients: int,
    servers: int = 0,
    disk_mesh: Sequence[int] | None = None,
    rehearse: int = 0,
    scale: Mapping[str, float] | None = None,
    period: Mapping[str, Any] | None = None,
    ranks_max: int | None = None,
) -> Plan:
    """Price a transfer on a machine, and what would make it cheaper.

    Parameters
    ----------
    machine : str, Path or Machine
        A machine that comes with hyperslab, or a file.
    transfer : mapping
        A collective call, as `simulate` takes it: ``arrays``, ``write``, and perhaps ``strategy`` and the like.
    clients, servers : int
        Ranks that hold arrays, and ranks behind them that only serve.
    disk_mesh : sequence of int, optional
        A mesh of servers over the dimensions of the arrays: each has one chunk of each array (a disk schema of Panda;
        (BLOCK,*,*) on 8 servers is 8, 1, 1).
    rehearse : int
        How many of what is found to be best are run in the simulator, and what is asked beside them.
    scale, period : mapping, optional
        As for `simulate`.
    ranks_max : int, optional
        Most ranks that may be advised.

    Returns
    -------
    Plan
        Data; its ``text`` is for people.

    Raises
    ------
    InvalidError
        When the machine or the request is not valid, or no strategy can do it.

    Examples
    --------
    >>> import hyperslab as hs
    >>> array = {"shape": (64, 8, 16), "mesh": (3, 4, 2), "dims": ["block"] * 3, "count": 64}
    >>> panda = {"strategy": "server-directed", "slots": 1, "subchunk_bytes": 1}
    >>> call = {"write": True, "sync": True, "arrays": [array], **panda}
    >>> planned = hs.plan("nas-sp2", call, clients=24, servers=8, disk_mesh=(8, 1, 1))
    >>> "6 servers (6 x 1 x 1)" in [line.partition(":")[0] for line in planned["advice"]]
    True
    """
    mesh = None if disk_mesh is None else tuple(int(extent) for extent in disk_mesh)
    known = Machine.load(machine)
    asked = Question(known, dict(transfer), clients, servers, mesh, tuple((scale or {}).items()))
    _check(asked)
    planned = asked.priced()
    fits = [one for one in _variants(asked) if ranks_max is None or one[2].clients + one[2].servers <= ranks_max]
    variants = [variant for variant in map(_priced, fits) if variant is not None]
    variants.sort(key=lambda variant: variant.seconds)
    for variant in variants[:rehearse]:
        variant.rehearsed = variant.question.rehearsed(period)
    found = Plan(planned)
    found["machine"] = Path(known.file).stem
    found["rehearsed"] = asked.rehearsed(period) if rehearse else None
    told = ("kind", "text", "seconds", "bound_by", "rehearsed")
    found["variants"] = [{name: getattr(variant, name) for name in told} for variant in variants]
    found["advice"] = list(_advice(asked, planned["predicted"]["seconds"], variants, found["rehearsed"]))
    return found


def _check(asked: Question) -> None:
    if not asked.transfer.get("arrays"):
        message = "no array is to move\n  hint: give a list of arrays with shape, mesh and dims as transfer['arrays']"
        raise InvalidError(message)
    mesh, shape = asked.disk_mesh, asked.array.get("shape", ())
    if mesh is not None and (len(mesh) != len(shape) or min(mesh, default=1) < 1):
        message = f"a mesh of servers {mesh} for arrays of shape {tuple(shape)}\n  hint: it has an extent a dimension"
        raise InvalidError(message)


def _priced(made: tuple[str, str, Question]) -> Variant | None:
    """The price of a variant; None when it cannot be."""
    kind, text, question = made
    try:
        predicted = question.priced()["predicted"]
    except Error:
        return None
    return Variant(kind, text, question, predicted["seconds"], predicted["bound_by"])


def _variants(asked: Question) -> Iterator[tuple[str, str, Question]]:
    yield from _other_servers(asked)
    yield from _other_meshes(asked)
    yield from _other_chunks(asked)
    yield from _other_ranks(asked)


def _times(extents: Sequence[int]) -> str:
    return " x ".join(str(extent) for extent in extents)


def _with(asked: Question, **changes: Any) -> Question:
    return Question(**{**asked.__dict__, **changes})


def _other_servers(asked: Question) -> Iterator[tuple[str, str, Question]]:
    """Other numbers of dedicated servers, along the dimension that their mesh cuts."""
    if asked.servers == 0:
        return
    most = 2 * asked.servers
    counts = set(range(1, most + 1)) if most <= ALL_SERVERS_MAX else {2**i for i in range(most.bit_length())}
    counts |= {extent for extent in asked.array["mesh"] if extent <= most}
    counts |= {asked.clients // d for d in range(1, asked.clients + 1) if asked.clients % d == 0}
    for count in sorted(count for count in counts if 1 <= count <= most and count != asked.servers):
        # What needs no more than is there comes first.
        kind = "servers" if count < asked.servers else "more servers"
        if asked.disk_mesh is None:
            yield kind, f"{count} servers", _with(asked, servers=count)
            continue
        cut = [d for d, extent in enumerate(asked.disk_mesh) if extent > 1]
        if len(cut) == 1 and count <= asked.array["shape"][cut[0]]:
            mesh = tuple(count if d == cut[0] else 1 for d in range(len(asked.disk_mesh)))
            yield kind, f"{count} servers ({_times(mesh)})", _with(asked, servers=count, disk_mesh=mesh)


def _meshes(count: int, ndim: int) -> Iterator[tuple[int, ...]]:
    """All meshes of so many servers."""
    if ndim == 1:
        yield (count,)
        return
    for first in range(1, count + 1):
        if count % first == 0:
            for rest in _meshes(count // first, ndim - 1):
                yield (first, *rest)


def _other_meshes(asked: Question) -> Iterator[tuple[str, str, Question]]:
    if asked.disk_mesh is None:
        return
    shape = asked.array["shape"]
    for mesh in _meshes(math.prod(asked.disk_mesh), len(asked.disk_mesh)):
        if mesh != asked.disk_mesh and all(p <= n for p, n in zip(mesh, shape, strict=True)):
            yield "mesh", f"a mesh of servers {_times(mesh)}", _with(asked, disk_mesh=mesh)


def _other_chunks(asked: Question) -> Iterator[tuple[str, str, Question]]:
    """Chunks that are parts of ranks, and one file."""
    if asked.disk_mesh is not None or "section" in asked.array:
        return
    array = asked.array
    part = [-(-n // p) for n, p in zip(array["shape"], array["mesh"], strict=False)]
    if len(array["mesh"]) == len(array["shape"]):
        while math.prod(part) * 16 > CHUNK_BYTES_MAX:
            longest = part.index(max(part))
            part[longest] = -(-part[longest] // 2)
        if array.get("store") != {"chunks": part}:
            yield "chunks", f"chunks of {_times(part)}, which one rank holds", _stored(asked, {"chunks": part})
    if "chunks" in array.get("store", {}):
        yield "chunks", "one file", _stored(asked, {"file": {}})


def _stored(asked: Question, store: dict[str, Any]) -> Question:
    arrays = [{**array, "store": store} for array in asked.transfer["arrays"]]
    return _with(asked, transfer={**asked.transfer, "arrays": arrays})


def _other_ranks(asked: Question) -> Iterator[tuple[str, str, Question]]:
    """Twice and half as many ranks, along the dimension in which their parts are longest or shortest."""
    array = asked.array
    mesh, shape = list(array["mesh"]), array["shape"]
    if len(mesh) != len(shape) or asked.clients != math.prod(mesh):
        return
    longest = max(range(len(mesh)), key=lambda d: shape[d] / mesh[d])
    twice = [extent * (2 if d == longest else 1) for d, extent in enumerate(mesh)]
    even = [d for d, extent in enumerate(mesh) if extent % 2 == 0]
    halves = []
    if even:
        shortest = min(even, key=lambda d: shape[d] / mesh[d])
        halves = [[extent // (2 if d == shortest else 1) for d, extent in enumerate(mesh)]]
    for other in [twice, *halves]:
        ranks = math.prod(other)
        if asked.clients == ranks or any(p > n for p, n in zip(other, shape, strict=True)):
            continue
        arrays = [{**one, "mesh": other} for one in asked.transfer["arrays"]]
        changed = _with(asked, clients=ranks, transfer={**asked.transfer, "arrays": arrays})
        yield "ranks", f"{ranks} ranks ({_times(other)})", changed


def _advice(asked: Question, seconds: float, variants: Sequence[Variant], rehearsed: float | None) -> Iterator[str]:
    """What is clearly cheaper, the best first, one of each kind; and fewer servers that do as well.

    Of what was rehearsed, nothing that turned out not to be.
    """
    told: set[str] = set()
    for variant in variants:
        if variant.rehearsed is not None and rehearsed is not None and variant.rehearsed > rehearsed * (1.0 - BETTER):
            continue
        if variant.seconds < seconds * (1.0 - BETTER) and variant.kind not in told:
            told.add(variant.kind)
            limit = variant.seconds * (1 + BETTER)
            others = [other for other in variants if other.kind == variant.kind and other is not variant]
            alike = [other.text.removeprefix("a mesh of servers ") for other in others if other.seconds < limit]
            also = f" (so do {', '.join(alike[:8])})" if alike else ""
            cheaper, now = times([variant.seconds, seconds])
            yield f"{variant.text}: {cheaper} instead of {now}{also}"
    limit = seconds * (1.0 + ALIKE)
    fewer = [variant for variant in variants if variant.kind == "servers" and variant.seconds < limit]
    if fewer:
        least = min(fewer, key=lambda variant: variant.question.servers)
        share = 100 * (least.seconds / seconds - 1)
        yield f"{least.text} do nearly as well as {asked.servers}: {said_seconds(least.seconds)}, {share:+.0f} %"
