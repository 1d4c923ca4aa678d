"""Colours on a terminal, for those who want them: nothing depends on them. `hyperslab._printing.say` shows them."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TextIO

from hyperslab._printing import MARK

__all__ = ["Style"]


@dataclass(frozen=True)
class Style:
    """How parts of a line are shown; plain text where there is no terminal, or where NO_COLOR is set (no-color.org)."""

    coloured: bool

    @classmethod
    def of_stdout(cls) -> Style:
        """That of the standard output."""
        return cls.of(sys.stdout)

    @classmethod
    def of(cls, stream: TextIO) -> Style:
        """That of a stream."""
        wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        return cls(wanted and stream.isatty())

    def _in(self, code: str, text: str) -> str:
        return f"{MARK}{code}m{text}{MARK}0m" if self.coloured else text

    def heading(self, text: str) -> str:
        """What a table or a tree begins with."""
        return self._in("1", text)

    def headings(self, text: str) -> str:
        """A text whose lines that are not indented begin tables or lists."""
        lines = text.split("\n")
        return "\n".join(self.heading(line) if line[:1].strip() else line for line in lines)

    def name(self, text: str) -> str:
        """The name of something."""
        return self._in("36", text)

    def good(self, text: str) -> str:
        """What is as it should be."""
        return self._in("32", text)

    def bad(self, text: str) -> str:
        """What is not."""
        return self._in("31", text)
