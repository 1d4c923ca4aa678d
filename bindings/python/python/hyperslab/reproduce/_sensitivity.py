"""What a fifth more or less of each number that is in no paper does to each item."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hyperslab.errors import InvalidError
from hyperslab.reproduce._study import Item, Runner
from hyperslab.simulation import Constant, Machine

#: A study's items.
Items = Callable[[Runner], Iterator[Item]]

#: Machines that each study runs on.
MACHINES: Mapping[str, Sequence[str]] = {
    "kotz97": ("starfish",),
    "chen96": ("nas-sp2",),
    "chen97": ("nas-sp2", "anl-sp-piofs", "caltech-paragon-pfs"),
    "ross01": ("chiba-city",),
    "thakur96": ("anl-sp-piofs", "caltech-paragon-pfs-1995"),
}

#: Changes of a figure below this are left out.
_CHANGE_MIN = 0.01

#: By how much numbers are made larger, and smaller.
_FACTORS = (1.2, 0.8)


@dataclass(frozen=True)
class Effect:
    """What a changed number does to an item: the largest change of its figures, and its verdict where that changed."""

    item: str
    change: float
    within: bool | None = None

    def __str__(self) -> str:
        verdict = "" if self.within is None else f" ({'now' if self.within else 'no longer'} within)"
        return f"{self.item}: {100 * self.change:+.0f} %{verdict}"


@dataclass(frozen=True)
class Varied:
    """A number of a machine, and what it does when larger or smaller; ``None`` where the machine cannot have it."""

    key: str
    value: str
    source: str
    larger: Sequence[Effect] | None
    smaller: Sequence[Effect] | None

    def row(self) -> str:
        """It as a row of a table."""
        effects = (self.larger, self.smaller)
        told = ["not possible" if some is None else ", ".join(map(str, some)) or "nothing" for some in effects]
        return "| " + " | ".join([f"`{self.key}`", self.value, self.source.replace("|", "/"), *told]) + " |"


@dataclass(frozen=True)
class Variations:
    """What the numbers of one machine do to the items of one study."""

    study: str
    machine: str
    numbers: Sequence[Varied]

    def table(self) -> str:
        """It as a section of a page."""
        lines = [f"## {self.study} on {self.machine}", "", "| number | value | source | 20 % more | 20 % less |"]
        return "\n".join([*lines, "| --- | --- | --- | --- | --- |", *(number.row() for number in self.numbers), ""])


def variations(studies: Mapping[str, Items], *, quick: bool, only: Sequence[str] | None = None) -> Iterator[Variations]:
    """Vary each number that is not from a paper, or those with these keys, on each machine of each study."""
    for name, items in studies.items():
        base = list(items(Runner(trials=1, quick=quick)))
        for machine in MACHINES[name]:
            numbers = [
                _varied(constant, machine, items, base, quick=quick)
                for constant in Machine.load(machine).constants()
                if constant.origin != "paper" and (only is None or constant.key in only)
            ]
            yield Variations(name, machine, numbers)


def sensitivity(
    studies: Mapping[str, Items], *, quick: bool, only: Sequence[str] | None = None, recorded: str = ""
) -> str:
    """A page: for each number that is not from a paper (or for these keys), its source and the items that it moves.

    `recorded` says when and how it was made.
    """
    lines = [
        "# Numbers that are in no paper",
        "",
        *([recorded, ""] if recorded else []),
        "Each number was made a fifth larger and a fifth smaller, with one seed a case"
        + (" and without the longest cases" if quick else "")
        + ". The tables list items whose figures changed by at least 1 %, with the largest change.",
        "They also say where the verdict of an item changed.",
        "",
    ]
    return "\n".join([*lines, *(found.table() for found in variations(studies, quick=quick, only=only))])


def _varied(constant: Constant, machine: str, items: Items, base: Sequence[Item], *, quick: bool) -> Varied:
    larger, smaller = (_effects(items, base, machine, constant.key, factor, quick=quick) for factor in _FACTORS)
    return Varied(constant.key, constant.value, f"{constant.origin}: {constant.source}", larger, smaller)


def _effects(
    items: Items, base: Sequence[Item], machine: str, key: str, factor: float, *, quick: bool
) -> list[Effect] | None:
    try:
        varied = list(items(Runner(trials=1, quick=quick, scale={machine: {key: factor}})))
    except InvalidError:
        return None
    found = []
    for before, after in zip(base, varied, strict=False):
        pairs = zip(before.values, after.values, strict=False)
        changes = [b / a - 1 for a, b in pairs if a]
        most = max(changes, key=abs, default=0.0)
        turned = before.within != after.within
        if abs(most) >= _CHANGE_MIN or turned:
            found.append(Effect(before.number, round(most, 2), after.within if turned else None))
    return found
