"""What studies share: items with a verdict, figures, and a runner that simulates each case once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hyperslab.simulation import Machine, Simulated, Stage, simulate


@dataclass(frozen=True)
class Evidence:
    """What a row is worth.

    Attributes
    ----------
    kind : str
        Its class: whether it could have failed.
    why : str
        Why it has this class.
    words : str
        The paper's words, where the row is read more softly.
    read_so : str
        What comes out if they are taken as they stand.
    holds : bool
        Whether they hold then.
    """

    kind: str
    why: str
    words: str = ""
    read_so: str = ""
    holds: bool = True


@dataclass(frozen=True)
class Item:
    """One result of a paper and what came out here.

    Attributes
    ----------
    number : str
        Its number in the checklist.
    statement : str
        What the paper says, with its section or table.
    expected : str
        The paper's figure.
    found : str
        Ours.
    deviation : float or None
        Ours over the paper's, less 1; ``None`` where a statement is about order or shape.
    within : bool
        Whether it is within its tolerance.
    tolerance : str
        The tolerance.
    reason : str
        Why it is not, or what there is to know.
    values : tuple of float
        The numbers behind it, so that two runs can be compared.
    evidence : Evidence or None
        What it is worth; ``None`` until it is looked up.
    """

    number: str
    statement: str
    expected: str
    found: str
    deviation: float | None
    within: bool
    tolerance: str
    reason: str = ""
    values: tuple[float, ...] = ()
    evidence: Evidence | None = None


def check_absolute(
    number: str, statement: str, expected: float, found: float, tolerance: float, unit: str = "", reason: str = ""
) -> Item:
    """An item whose figure may be off by a fraction of it."""
    deviation = found / expected - 1
    return Item(
        number,
        statement,
        f"{expected:g} {unit}".strip(),
        f"{found:.4g} {unit}".strip(),
        deviation,
        abs(deviation) <= tolerance,
        f"{100 * tolerance:g} %",
        reason,
        (found,),
    )


def check_ratio(
    number: str, statement: str, expected: float, found: float, tolerance: float = 0.15, reason: str = ""
) -> Item:
    """An item that says how many times as fast something is."""
    return check_absolute(number, statement, expected, found, tolerance, "x", reason)


def check_true(
    number: str,
    statement: str,
    expected: str,
    found: str,
    within: bool,  # noqa: FBT001 - the verdict is what the call is about
    reason: str = "",
    values: Sequence[float] = (),
    tolerance: str = "order",
) -> Item:
    """An item about order, limits or shape."""
    return Item(number, statement, expected, found, None, within, tolerance, reason, tuple(values))


@dataclass(frozen=True)
class Figure:
    """A figure of a paper: named series over positions.

    Attributes
    ----------
    name : str
        Such as ``kotz97-figure-4``.
    title : str
        What it shows.
    x_label, y_label : str
        With units.
    series : mapping
        By name: positions (numbers, or texts for bars) and values.
    bars : bool
        Whether it has bars, else lines.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    series: Mapping[str, Sequence[tuple[float | str, float]]]
    bars: bool = False


def _whole(stage: Stage) -> Stage:
    """A stage whose transfer is a whole call."""
    if isinstance(stage, str) or "transfer" not in stage:
        return stage
    return {"transfer": {name: value for name, value in stage["transfer"].items() if name != "alone"}}


@dataclass
class Runner:
    """Simulates each case once, however many items ask for it.

    Attributes
    ----------
    trials : int
        How many seeds stand for one case.
    quick : bool
        Whether long cases are left out or made smaller, as in tests.
    scale : mapping
        Factors for numbers of the machines: by name of the machine, then by dotted key.
    whole_calls : bool
        Whether transfers that papers time alone are whole calls of this library instead.
    """

    trials: int = 5
    quick: bool = False
    scale: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    whole_calls: bool = False
    known: dict[str, Simulated] = field(default_factory=dict, repr=False)

    def simulate(self, machine: str, stages: Sequence[Stage], **options: Any) -> Simulated:
        """As :func:`hyperslab.simulate`, with this runner's factors."""
        if self.whole_calls:
            stages = [_whole(stage) for stage in stages]
        scale = {**self.scale.get(machine, {}), **options.pop("scale", {})}
        key = json.dumps([machine, stages, options, scale], sort_keys=True)
        if key not in self.known:
            self.known[key] = simulate(Machine.load(machine), stages, scale=scale, **options)
        return self.known[key]
