"""The papers' checklists, in their reduced form."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hyperslab.reproduce import Item, Runner, check_absolute
from hyperslab.reproduce._command import STUDIES, load, markdown, table
from hyperslab.reproduce._evidence import classed, known
from hyperslab.reproduce._figures import draw
from hyperslab.reproduce._sensitivity import sensitivity

from test_command import run

#: Least number of items within tolerance, and the numbers that a checklist must have.
LEAST = {
    "kotz97": (20, [str(number) for number in range(1, 27)]),
    "chen96": (13, [str(number) for number in range(1, 14)]),
    "chen97": (12, [str(number) for number in range(1, 16)]),
    "ross01": (34, [str(number) for number in range(1, 10)]),
    "thakur96": (65, [str(number) for number in range(1, 10)]),
}

RUNNER = Runner(trials=1, quick=True)


def items(name: str) -> list[Item]:
    return list(load(name).items(RUNNER))


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_runs_every_item_of_its_checklist(name: str) -> None:
    told = classed(name, items(name))
    assert {(item.number, item.statement) for item in told} == set(known(name))
    least, numbers = LEAST[name]
    found = {re.sub(r"[a-z]$", "", item.number) for item in told}
    assert set(numbers) <= found
    off = [f"{item.number}: {item.found}, not {item.expected}" for item in told if not item.within]
    assert sum(item.within for item in told) >= least, off
    for item in told:
        assert item.statement
        assert item.expected
        assert item.found
        assert item.within or item.reason, f"item {item.number} is off, and nothing says why"
    assert all(item.number in table("title", told, 0.0) for item in told)
    rows = markdown("title", told, ["a note"]).split("Read more softly")[0]
    assert rows.count("\n| ") == len(told) + 2


def test_what_the_program_decides_is_exact() -> None:
    exact = [item for item in items("thakur96") if item.tolerance == "exact"]
    assert len(exact) >= 30
    assert all(item.within for item in exact)


def test_figures_are_drawn(tmp_path: Path) -> None:
    figures = load("chen96").figures(RUNNER)
    assert {f"chen96-figure-{number}" for number in (2, 3, 4, 7)} <= {figure.name for figure in figures}
    first, second = (draw(figures, tmp_path / folder, "svg") for folder in "ab")
    for a, b in zip(first, second, strict=True):
        assert a.read_bytes() == b.read_bytes()
        assert b"<svg" in a.read_bytes()
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in draw(figures[:1], tmp_path, "png"))


@pytest.mark.long
def test_a_number_that_matters_moves_items() -> None:
    keys = ("storage.metadata.query_manager", "processor.code_rate")
    page = sensitivity({"ross01": load("ross01").items}, quick=True, only=keys)
    rows = {line.split("`")[1]: line.split("|")[4:6] for line in page.splitlines() if line.startswith("| `")}
    assert sorted(rows) == sorted(keys)
    assert all("%" in cell for cell in rows["storage.metadata.query_manager"])
    assert all(cell.strip() == "nothing" for cell in rows["processor.code_rate"])


def test_verdicts() -> None:
    assert check_absolute("1", "a", 10.0, 10.9, 0.1).within
    assert not check_absolute("1", "a", 10.0, 11.1, 0.1).within
    assert check_absolute("1", "a", 10.0, 11.1, 0.1).deviation == pytest.approx(0.11)


def test_the_command(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    text = run("reproduce", "ross01", "--quick", "--markdown", page, "--figures", tmp_path).stdout
    assert re.search(r"\d+ of \d+ within tolerance \(predicted \d+ of \d+, ", text)
    assert "| item |" in page.read_text()
    assert (tmp_path / "ross01-figure-4.svg").is_file()
    told = json.loads(run("reproduce", "ross01", "--quick", "--json").stdout)
    assert {"number", "expected", "found", "within"} <= told["ross01"][0].keys()
    assert all(item["evidence"]["kind"] and item["evidence"]["why"] for item in told["ross01"])
