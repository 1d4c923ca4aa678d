"""What rows of the papers' checklists are worth, and whether sources of numbers say what is so."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hyperslab.errors import InvalidError
from hyperslab.reproduce import Evidence, Item, check_true
from hyperslab.reproduce import _evidence as evidence
from hyperslab.reproduce._chen97_cases import MIB, SMALL, half, traffic
from hyperslab.reproduce._command import STUDIES, markdown
from hyperslab.reproduce.chen97 import NATURAL, distributed

from doc_blocks import ROOT
from test_docs import script


def recorded() -> list[tuple[str, Item]]:
    """All rows of the record, by study."""
    studies = script("records").read("reproduced")["studies"]
    return [(study["name"], Item(**item)) for study in studies for item in study["items"]]


def test_each_row_has_a_class_and_each_class_a_row() -> None:
    rows = recorded()
    for name in STUDIES:
        mine = [item for study, item in rows if study == name]
        told = evidence.classed(name, mine)
        assert {(item.number, item.statement) for item in mine} == set(evidence.known(name))
        assert all(item.evidence and item.evidence.why for item in told)
    assert sum(len(evidence.known(name)) for name in STUDIES) == len(rows)


def test_a_row_without_a_class_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    item = check_true("1", "a new row", "a", "a", within=True)
    with pytest.raises(InvalidError, match=r"kotz97, item 1, 'a new row': .* found none\n  hint: .*evidence.json"):
        evidence.classed("kotz97", [item])
    monkeypatch.setattr(evidence, "known", lambda _: {("1", "a new row"): Evidence("guessed", "why")})
    with pytest.raises(InvalidError, match=r"expected a class of evidence .predicted, .* found 'guessed'"):
        evidence.classed("kotz97", [item])


def test_rows_that_are_read_softly_have_the_papers_words() -> None:
    told = [found for name in STUDIES for found in evidence.known(name).values() if found.words or found.read_so]
    assert len(told) > 10
    assert all(found.words and found.read_so for found in told)
    # A row that is off is off; only what is within tolerance can be so by a soft reading.
    for study, item in recorded():
        assert item.within or not evidence.known(study)[item.number, item.statement].words


def test_a_page_has_class_reason_and_words() -> None:
    one = check_true("1", "a", "x", "y", within=True, reason="there is more to know")
    rows = [
        replace(one, evidence=Evidence("predicted", "why so", "the paper's | words", "not quite", holds=False)),
        replace(one, number="2", within=False, evidence=Evidence("fitted", "it was set")),
        replace(one, number="3", evidence=Evidence("fitted", "it was set")),
    ]
    page = markdown("title", rows, [])
    assert "| 1 | a | x | y |  | order | yes | predicted |" in page
    assert "| 1 | the paper's / words | not quite | **no** |" in page
    assert "- Item 1, predicted: why so. There is more to know" in page
    assert "- Items 2, 3, fitted: it was set. There is more to know" in page
    assert "2 of 3 within tolerance (predicted 1 of 1, fitted 1 of 2)." in page


def test_the_front_page_and_the_head_count_by_class(monkeypatch: pytest.MonkeyPatch) -> None:
    records = script("records")
    before = records.pages()
    known = evidence.known
    changed = {**known("kotz97")}
    first = next(key for key, found in changed.items() if found.kind == "fitted")
    changed[first] = Evidence("predicted", "changed")
    monkeypatch.setattr(evidence, "known", lambda study: changed if study == "kotz97" else known(study))
    after = records.pages()
    assert sorted(page for page in before if before[page] != after[page]) == ["../README.md", "reproduced.md"]


def test_reading_back_decides_where_a_section_cuts_subchunks() -> None:
    written, read = zip(*(traffic(distributed(NATURAL, n, half(SMALL))) for n in (6, 7, 8)), strict=True)
    assert [round(max(each) / MIB, 1) for each in written] == [19.3, 19.3, 19.3]
    assert [round(max(each) / MIB, 1) for each in read] == [7.3, 10.1, 19.3]
    assert written[2].count(0) == 2
    whole, none = traffic(distributed(NATURAL, 4))
    assert sum(whole) == 8 * SMALL**2
    assert not any(none)


# ---- sources of numbers ---------------------------------------------------------------------------------------------

MACHINES = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "machines").glob("*.toml")}
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "KiB": 1024, "MB/s": 1e6, "": 1}
PARTS = {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "ninth": 9, "tenth": 10}


def numbers(table: dict[str, Any], key: str = "") -> Iterator[tuple[str, Any, str]]:
    """Dotted key, value and source of each number of a machine."""
    for name, inner in table.items():
        if isinstance(inner, dict) and "from" in inner:
            yield f"{key}{name}", inner["is"], inner["from"]
        elif isinstance(inner, dict):
            yield from numbers(inner, f"{key}{name}.")


def quantity(value: Any) -> float:
    """A value as a number."""
    figure, _, unit = str(value).partition(" ")
    return float(figure) * UNITS[unit]


def false_references(machines: dict[str, dict[str, Any]]) -> list[str]:
    """Numbers whose source says of another machine what is not so there."""
    values = {name: {key: value for key, value, _ in numbers(table)} for name, table in machines.items()}
    names = "|".join(sorted(values, key=len, reverse=True))
    found = []
    for name, table in machines.items():
        for key, value, source in numbers(table):
            claims = [(there, value, 1) for there in re.findall(rf"as on ({names})\b", source)]
            claims += [(there, value, PARTS[part]) for part, there in re.findall(rf"\ba (\w+) of ({names})\b", source)]
            has = rf"\b({names})(?:, which)? has ([\d.]+ [a-zA-Z/]+)"
            claims += [(there, said, 1) for there, said in re.findall(has, source)]
            for there, said, part in claims:
                if abs(quantity(values[there][key]) / part - quantity(said)) > 1e-9 * quantity(said):
                    found.append(f"{name}: {key}: {source!r}, but {there} has {values[there][key]}")
    return found


def test_sources_say_of_other_machines_what_is_so() -> None:
    assert sum("nas-sp2" in source for table in MACHINES.values() for _, _, source in numbers(table)) >= 8
    assert not false_references(MACHINES)


@pytest.mark.parametrize(
    "source", ["guess: as on nas-sp2", "guess: a ninth of nas-sp2", "guess: nas-sp2 has 90 us now"]
)
def test_a_false_reference_is_found(source: str) -> None:
    machines = json.loads(json.dumps(MACHINES))
    machines["chiba-city"]["processor"]["piece"]["from"] = source
    assert [line.split(":")[0] for line in false_references(machines)] == ["chiba-city"]
