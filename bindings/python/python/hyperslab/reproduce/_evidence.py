"""What rows of the papers' checklists are worth: each row has a class, which says whether it could have failed.

``evidence.json`` has a record for each row of each study: its number and statement, its class, why, and where the row
is read more softly than the paper says, the paper's words, what comes out if they are taken as they stand, and whether
they hold. It is written by hand, not measured.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

from hyperslab.errors import InvalidError
from hyperslab.reproduce._study import Evidence, Item

#: Classes of evidence, the strongest first, and what each says.
KINDS: Mapping[str, str] = {
    "predicted": "nothing was set from the row, so it could have failed",
    "chosen after": "a case, a rule, a wording or a tolerance was chosen after a result was seen",
    "fitted": "a number of the machine or of the program was set from the row, or from rows that it shares cases with",
    "arithmetic": "follows from counts, sizes and inputs, or compares two parts of this library: it could hardly fail",
}


@cache
def _records() -> Mapping[str, Mapping[tuple[str, str], Evidence]]:
    text = resources.files("hyperslab.reproduce").joinpath("evidence.json").read_text(encoding="utf-8")
    studies: dict[str, list[dict[str, Any]]] = json.loads(text)
    return {
        study: {(row.pop("number"), row.pop("statement")): Evidence(row.pop("evidence"), **row) for row in rows}
        for study, rows in studies.items()
    }


def known(study: str) -> Mapping[tuple[str, str], Evidence]:
    """The evidence of a study's rows, by number and statement."""
    return _records()[study]


def classed(study: str, items: Iterable[Item]) -> list[Item]:
    """A study's items with their evidence.

    Raises
    ------
    InvalidError
        When a row has no class.
    """
    told = []
    for item in items:
        evidence = known(study).get((item.number, item.statement))
        if evidence is None or evidence.kind not in KINDS:
            found = "none" if evidence is None else repr(evidence.kind)
            message = (
                f"{study}, item {item.number}, {item.statement!r}: expected a class of evidence ({', '.join(KINDS)}), "
                f"found {found}\n  hint: add the row to reproduce/evidence.json"
            )
            raise InvalidError(message)
        told.append(replace(item, evidence=evidence))
    return told


def by_kind(items: Iterable[Item]) -> dict[str, tuple[int, int]]:
    """By class, how many rows are within their tolerance, and how many there are."""
    counts = dict.fromkeys(KINDS, (0, 0))
    for item in items:
        if item.evidence is not None:
            within, rows = counts[item.evidence.kind]
            counts[item.evidence.kind] = (within + item.within, rows + 1)
    return counts


def in_words(items: Sequence[Item]) -> str:
    """How many rows are within tolerance, in all and by class."""
    parts = [f"{kind} {within} of {rows}" for kind, (within, rows) in by_kind(items).items() if rows]
    told = f"{sum(item.within for item in items)} of {len(items)} within tolerance"
    return f"{told} ({', '.join(parts)})" if parts else told


def softly(items: Iterable[Item]) -> list[tuple[Item, Evidence]]:
    """Rows that are within tolerance because they are read more softly than the paper says."""
    told = [(item, item.evidence) for item in items if item.evidence is not None]
    return [(item, evidence) for item, evidence in told if item.within and evidence.words]
