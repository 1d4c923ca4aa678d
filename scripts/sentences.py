"""Prints how long sentences of our pages are: the median of each page, and the longest sentences.

python scripts/sentences.py [PAGES...]
"""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Pages of people's prose; what scripts make is not.
PAGES = ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "docs/*.md", "examples/*/README.md")


@dataclass(frozen=True)
class Measured:
    """Words of a sentence, in the median: of all pages, and of each."""

    median: float
    pages: dict[str, float]


def prose(text: str) -> str:
    """A page without code, tables, headings, lists of links and markup."""
    text = re.sub(r"^```.*?^```$", "\n\n", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    lines = ["" if re.match(r"\s*(\||#|    \S|>)", line) else line for line in text.splitlines()]
    text = "\n".join(lines)
    text = re.sub(r"^\s*(?:[-*]|\d+\.)\s+", "\n\n", text, flags=re.MULTILINE)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    # Dots in code do not end sentences; emphasis is no part of a word.
    return re.sub(r"(?<!\w)\*{1,2}(?=\S)|(?<=\S)\*{1,2}(?!\w)", "", re.sub(r"`[^`]*`", "code", text))


def sentences(text: str) -> Iterator[str]:
    """The sentences of a page's prose."""
    for paragraph in re.split(r"\n\s*\n", prose(text)):
        flat = " ".join(paragraph.split())
        for sentence in re.split(r"(?<=[.!?:;])\s+(?=[\"'(A-Z0-9])|(?<=[.!?])\s+(?=code\b)", flat):
            if len(sentence.split()) > 2:
                yield sentence


def files() -> list[Path]:
    """The pages."""
    return sorted(path for pattern in PAGES for path in ROOT.glob(pattern))


def measure(chosen: Sequence[Path] | None = None) -> Measured:
    """Measure pages; all of them by default."""
    every: list[int] = []
    pages = {}
    for path in chosen or files():
        lengths = [len(sentence.split()) for sentence in sentences(path.read_text(encoding="utf-8"))]
        if lengths:
            pages[str(path.relative_to(ROOT))] = statistics.median(lengths)
            every += lengths
    return Measured(statistics.median(every), pages)


def main() -> None:
    """Print medians and the longest sentences."""
    chosen = [Path(name).resolve() for name in sys.argv[1:]] or files()
    measured = measure(chosen)
    for page, median in sorted(measured.pages.items(), key=lambda item: -item[1]):
        print(f"{median:5.1f}  {page}")
    print(f"{measured.median:5.1f}  all\n\nthe longest:")
    every = [(len(s.split()), path.name, s) for path in chosen for s in sentences(path.read_text(encoding="utf-8"))]
    for length, name, sentence in sorted(every, reverse=True)[:10]:
        print(f"{length:5}  {name}: {sentence[:160]}")


if __name__ == "__main__":
    main()
