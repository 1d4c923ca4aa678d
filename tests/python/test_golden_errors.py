"""All errors that people can meet, as they were last read and recorded; none of them shows what only we know."""

from __future__ import annotations

import difflib
import re

import pytest

from golden_errors import RECORD, text_of_errors

#: What is of the inside: names of our functions, Rust's way to write things down, what Python says of types at random.
INSIDE = {
    "a function of ours": r"\b_[a-z_]+\(\)",
    "Rust's Some and None": r"\bSome\(|\bOk\(|\bErr\(",
    "a struct of Rust": r"\b[A-Z][A-Za-z]+ \{ ",
    "an escape of Rust": r"\\u\{",
    "an array by its number in a list of ours": r"(?<!name of )\barray \d+ is '",
    "an attribute that a type does not have": r"object (has no attribute|is not (iterable|an instance))",
    "a conversion of numbers": r"convert negative int|integral type conversion|cannot be interpreted as",
    "a bare error": r"^    (RuntimeError|AttributeError|OverflowError|SystemError|PanicException)",
    "no error at all": r"NO ERROR",
    "an old word": r"guard cells|makes no sense",
}


@pytest.fixture(scope="module")
def found() -> str:
    return text_of_errors()


def test_errors_are_as_recorded(found: str) -> None:
    recorded = RECORD.read_text(encoding="utf-8")
    lines = list(difflib.unified_diff(recorded.splitlines(), found.splitlines(), "recorded", "now", lineterm=""))
    assert not lines, "read them, then: python tests/python/golden_errors.py --write\n" + "\n".join(lines)


@pytest.mark.parametrize("what", INSIDE)
def test_errors_show_nothing_of_the_inside(what: str, found: str) -> None:
    shown = [line for line in found.splitlines() if line.startswith("    ") and re.search(INSIDE[what], line)]
    assert shown == []
