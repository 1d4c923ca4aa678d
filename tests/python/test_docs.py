"""Pages: every block of code runs, sentences are short, and what is made from code is current."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from doc_blocks import ROOT, blocks, pages, run_page

#: Median number of words of a sentence, on all pages together and on one page.
MEDIAN, MEDIAN_OF_A_PAGE = 16, 20


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_code_of_pages_runs(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path)


def test_most_blocks_run_and_the_others_say_why_not() -> None:
    every = [block for page in pages() for block in blocks(page) if block.language != "text"]
    skipped = [block for block in every if block.reason is not None]
    assert len(every) > 25
    assert len(skipped) <= 0.4 * len(every), [block.reason for block in skipped]
    assert all(len(block.reason or "") > 10 for block in skipped)


def test_sentences_are_short() -> None:
    told = script("sentences").measure()
    long = {page: median for page, median in told.pages.items() if median > MEDIAN_OF_A_PAGE}
    assert told.median <= MEDIAN, told
    assert not long, long


def test_sentences_are_found_in_prose() -> None:
    page = "# A title\n\nOne two three. `a.b` is four words. *Why:* it is.\n\n| not | prose |\n\n- five: six (as 7)\n"
    found = list(script("sentences").sentences(page))
    assert found == ["One two three.", "code is four words.", "Why: it is.", "five: six (as 7)"]


def test_the_reference_is_made_from_the_docstrings() -> None:
    made = script("make_reference").pages()
    folder = ROOT / "docs/reference"
    assert {path.name for path in folder.glob("*.md")} == set(made)
    stale = [name for name, text in made.items() if (folder / name).read_text(encoding="utf-8") != text]
    assert not stale, f"make them anew: {sys.executable} scripts/make_reference.py"


def test_links_between_pages_lead_somewhere() -> None:
    import re

    for page in [*pages(), *(ROOT / "docs/reference").glob("*.md"), ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]:
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_scripts_run() -> None:
    done = subprocess.run([sys.executable, ROOT / "scripts/sentences.py"], capture_output=True, text=True, check=True)
    assert "README.md" in done.stdout
