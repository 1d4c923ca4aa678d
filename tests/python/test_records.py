"""Records of measurements: pages show what the data say, and the data fit the studies of today."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType

import pytest
from hyperslab.reproduce import Figure, Item, Runner
from hyperslab.reproduce._command import STUDIES, load
from hyperslab.reproduce._sensitivity import MACHINES, Effect, Variations, Varied
from hyperslab.simulation import Machine

from doc_blocks import ROOT
from test_docs import script

DATA = ROOT / "docs/data"


@pytest.fixture(scope="module")
def records() -> ModuleType:
    return script("records")


def test_pages_show_what_the_records_say(records: ModuleType) -> None:
    made = records.pages()
    stale = [page for page, text in made.items() if (ROOT / "docs" / page).read_text(encoding="utf-8") != text]
    assert not stale, "make them anew: python scripts/records.py"
    assert {f"{name}.json" for name, _ in records.PAGES.values()} == {path.name for path in DATA.iterdir()}


def test_a_changed_record_changes_its_page(records: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    before = records.pages()
    changed = records.read("regret")
    changed["losses"][0]["ours_ms"] = 3.25
    monkeypatch.setattr(records, "read", lambda name: changed if name == "regret" else json.loads(read(name)))
    after = records.pages()
    assert [page for page in before if before[page] != after[page]] == ["benchmarks.md"]
    assert "| 3.25 |" in after["benchmarks.md"]


def read(name: str) -> str:
    return (DATA / f"{name}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(path.stem for path in DATA.glob("*.json")))
def test_records_are_written_as_they_are_read(records: ModuleType, name: str) -> None:
    assert records.text(json.loads(read(name))) + "\n" == read(name)
    # A line for each record: nobody can review a change of one long line.
    assert len(read(name).splitlines()) > 20


def test_each_study_has_a_record_with_its_items_and_figures(records: ModuleType) -> None:
    studies = {study["name"]: study for study in records.read("reproduced")["studies"]}
    assert list(studies) == list(STUDIES)
    for name, study in studies.items():
        assert study["title"] == load(name).TITLE
        assert all(item["within"] or item["reason"] for item in study["items"])
        drawn = {path.stem for path in (ROOT / "docs/figures").glob(f"{name}-*.svg")}
        assert {figure["name"] for figure in study["figures"]} == drawn
    # One study runs in a second: its record has the items that it has today.
    told = [(item.number, item.statement) for item in load("ross01").items(Runner(trials=1, quick=True))]
    assert [(item["number"], item["statement"]) for item in studies["ross01"]["items"]] == told


def test_the_record_of_constants_has_the_numbers_of_the_machines(records: ModuleType) -> None:
    tables = records.read("constants")["tables"]
    assert [(table["study"], table["machine"]) for table in tables] == [(s, m) for s in STUDIES for m in MACHINES[s]]
    for table in tables:
        unsure = [number.key for number in Machine.load(table["machine"]).constants() if number.origin != "paper"]
        assert [number["key"] for number in table["numbers"]] == unsure


def test_what_is_measured_comes_back_from_its_record(records: ModuleType) -> None:
    item = Item("1", "a | b", "2 s", "2.1 s", 0.0512, within=False, tolerance="1 %", reason="why", values=(2.1,))
    assert Item(**records.item_data(item)).deviation == pytest.approx(0.051)
    figure = Figure("f", "t", "x", "y", {"a": [(1, 2.34567), ("b", 3.0)]}, bars=True)
    assert Figure(**records.figure_data(figure)).series == {"a": [[1, 2.346], ["b", 3.0]]}
    effects = [Effect("7", -0.0, within=False), Effect("8", 0.21)]
    found = Variations("s", "m", [Varied("k", "1 us", "guess: it", effects, None)])
    row = records.varied_data(found)["numbers"][0]
    back = Varied("k", row["value"], row["source"], records.effects(row["larger"]), records.effects(row["smaller"]))
    assert back == found.numbers[0]
    assert "| 7: -0 % (no longer within), 8: +21 % | not possible |" in found.table()


def test_pages_without_their_marks_are_refused(
    records: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "reproduced.md").write_text("no marks")
    monkeypatch.setattr(records, "DOCS", tmp_path)
    with pytest.raises(ValueError, match=re.escape("docs/reproduced.md: expected the comments")):
        records.pages()
