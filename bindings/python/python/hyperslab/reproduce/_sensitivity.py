"""What a fifth more or less of each number that is in no paper does to each item."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

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

#: Changes of a figure below this are not told.
_TOLD = 0.01


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
        "Each was made a fifth larger and a fifth smaller, with one seed a case"
        + (" and without the longest cases" if quick else "")
        + ". Told are items whose figures changed by at least 1 %, by how much at most, and whether their verdict did.",
        "",
    ]
    for name, items in studies.items():
        base = list(items(Runner(trials=1, quick=quick)))
        for machine in MACHINES[name]:
            lines += [f"## {name} on {machine}", "", "| number | value | source | 20 % more | 20 % less |"]
            lines.append("| --- | --- | --- | --- | --- |")
            for constant in Machine.load(machine).constants():
                if constant.origin != "paper" and (only is None or constant.key in only):
                    lines.append(_row(constant, machine, items, base, quick=quick))
            lines.append("")
    return "\n".join(lines)


def _row(constant: Constant, machine: str, items: Items, base: Sequence[Item], *, quick: bool) -> str:
    effects = [_effect(items, base, machine, constant.key, factor, quick=quick) for factor in (1.2, 0.8)]
    source = f"{constant.origin}: {constant.source}".replace("|", "/")
    return "| " + " | ".join([f"`{constant.key}`", constant.value, source, *effects]) + " |"


def _effect(items: Items, base: Sequence[Item], machine: str, key: str, factor: float, *, quick: bool) -> str:
    try:
        varied = list(items(Runner(trials=1, quick=quick, scale={machine: {key: factor}})))
    except InvalidError:
        return "makes no sense"
    told = []
    for before, after in zip(base, varied, strict=False):
        pairs = zip(before.values, after.values, strict=False)
        changes = [b / a - 1 for a, b in pairs if a]
        most = max(changes, key=abs, default=0.0)
        turned = before.within != after.within
        if abs(most) >= _TOLD or turned:
            verdict = f" ({'now' if after.within else 'no longer'} within)" if turned else ""
            told.append(f"{before.number}: {100 * most:+.0f} %{verdict}")
    return ", ".join(told) or "nothing"
