"""Each promise of the pages on durability, reliability and starting names a test that shows it."""

from __future__ import annotations

import pytest

from doc_blocks import ROOT
from promises import PAGES, PROMISES, SHOWN_BY, complaints


@pytest.mark.parametrize("page", PAGES)
def test_each_promise_names_a_test(page: str) -> None:
    assert complaints((ROOT / page).read_text(encoding="utf-8")) == []


def test_a_promise_without_a_test_is_found() -> None:
    promised = f"{PROMISES}\n| # | promise |\n| --- | --- |\n| 1 | a |\n| 2b | `x\\|y` |\n\n"
    shown = f"{SHOWN_BY}\n| promise | tests |\n| --- | --- |\n"
    here = "`test_promises.py::test_each_promise_names_a_test`"
    assert complaints(f"{promised}{shown}| 1, 2b | so: {here} |\n") == []
    assert complaints(f"{promised}{shown}| 1 | {here} |\n") == ["no test shows '2b'"]
    assert complaints(f"{promised}{shown}| 1, 2b | by thought |\n") == ["no test shows '1'", "no test shows '2b'"]
    nothing = "`test_promises.py::test_of_nothing`"
    assert complaints(f"{promised}{shown}| 1, 2b | {nothing} |\n") == [f"there is no test {nothing}"]
    case = "`test_crashes.py::test_a_crash_leaves_the_old_or_the_new[no such]`"
    assert complaints(f"{promised}{shown}| 1, 2b | {case} |\n") == [f"there is no test {case}"]
    assert complaints(f"{promised}{shown}| 1, 2b | {here} |\n| 3 | {here} |\n") == ["'3' is shown, but not promised"]
    assert complaints("nothing") == ["it promises nothing"]
