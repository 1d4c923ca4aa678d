"""Promises on pages, and the tests that show them.

A table below ``<!-- promises -->`` has a promise in each row, known by what its first cell says: a number, or words.
A table below ``<!-- shown by -->`` has in each row such a first cell, or several numbers with commas between, and then
tests in backticks: ``test_x.py::test_y``, perhaps with one of its cases in brackets, or ``x.rs::y``.
"""

from __future__ import annotations

import re
from pathlib import Path

from doc_blocks import ROOT
from fault_operations import OPERATIONS

PAGES = ("docs/durability.md", "docs/reliability.md", "docs/starting.md")
PROMISES, SHOWN_BY = "<!-- promises -->", "<!-- shown by -->"
TEST = re.compile(r"`(?P<file>\w+\.(?:py|rs))::(?P<name>\w+)(?:\[(?P<case>[^\]]*)\])?`")


def rows(text: str, mark: str) -> list[list[str]]:
    """Cells of all tables below a mark, without their heads."""
    found: list[list[str]] = []
    lines = text.splitlines()
    for at in (number for number, line in enumerate(lines) if line.strip() == mark):
        table = lines[at + 1 :]
        length = next((i for i, line in enumerate(table) if not line.startswith("|")), len(table))
        # A bar in code is none of the table.
        cells = (re.split(r" *(?<!\\)\| *", line.strip().strip("|").strip()) for line in table[2:length])
        found.extend(cells)
    return found


def exists(test: re.Match[str], root: Path = ROOT) -> bool:
    """Whether there is such a test."""
    name = test["file"]
    files = [root / "tests/python" / name] if name.endswith(".py") else root.glob(f"crates/*/tests/**/{name}")
    keyword = "def" if name.endswith(".py") else "fn"
    has = any(re.search(rf"\b{keyword} {test['name']}\(", file.read_text()) for file in files if file.exists())
    return has and (test["case"] is None or test["case"] in OPERATIONS)


def complaints(text: str) -> list[str]:
    """Promises of a page that no test shows, tests that are not there, and tests of what is not promised."""
    promised = [cells[0] for cells in rows(text, PROMISES)]
    wrong = [] if promised else ["it promises nothing"]
    shown: set[str] = set()
    for first, tests in ((cells[0], cells[-1]) for cells in rows(text, SHOWN_BY)):
        named = list(TEST.finditer(tests))
        wrong += [f"there is no test {test[0]}" for test in named if not exists(test)]
        of = [first] if first in promised else first.split(", ")
        wrong += [f"'{promise}' is shown, but not promised" for promise in of if promise not in promised]
        if named:
            shown.update(of)
    return wrong + [f"no test shows '{promise}'" for promise in promised if promise not in shown]
