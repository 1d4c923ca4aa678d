"""The one place that prints, and that makes texts fit to be shown: no terminal obeys what a file says.

Names, attributes and paths may hold escape sequences, control characters, and marks that turn the direction of text.
They are shown as text. Colours are ours: `hyperslab._style` marks them so that nothing in a file can.
"""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from typing import Any

__all__ = ["MARK", "legible", "say", "say_json", "shown", "valid", "warn"]

#: What colours begin with, until they are printed: no file can know it.
MARK = f"\x1b{os.urandom(8).hex()}["
_MARKED = re.compile(re.escape(MARK) + r"([0-9]+)m")


def valid(text: str) -> str:
    r"""A path or text in valid Unicode, for JSON: bytes of names that are not UTF-8 as ``\x80``.

    >>> valid("a\x1b\udc80")
    'a\x1b\\x80'
    """
    encoded = text.encode("utf-8", "surrogateescape" if _escaped(text) else "backslashreplace")
    return encoded.decode("utf-8", "backslashreplace")


def legible(text: str) -> str:
    r"""A path or text on one line, in valid Unicode, without what a terminal would obey.

    >>> legible("a\nb\udc80\x1b[2J")
    'a\\nb\\x80\\x1b[2J'
    """
    found = valid(text)
    if found.isprintable():
        return found
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in found)


def shown(text: str) -> str:
    r"""A text of several lines, each of them `legible`.

    >>> shown("no array 'a\x9b2J'\n  hint: none")
    "no array 'a\\x9b2J'\n  hint: none"
    """
    return text if text.isprintable() else "\n".join(map(legible, text.split("\n")))


def say(text: str = "", *, end: str = "\n", error: bool = False) -> None:
    """Print a text of one or several lines, on the error output if it is an error."""
    # Between the marks of colours, every other part is text.
    parts = _MARKED.split(text)
    parts[::2] = map(shown, parts[::2])
    parts[1::2] = [f"\x1b[{code}m" for code in parts[1::2]]
    print("".join(parts), end=end, file=sys.stderr if error else sys.stdout, flush=error)


def say_json(value: Any, *, allow_nan: bool = True, flush: bool = False) -> None:
    """Print a JSON document in ASCII, in which nothing is lost and nothing is a control character."""
    print(json.dumps(value, allow_nan=allow_nan).replace("\x7f", "\\u007f"), flush=flush)


def warn(text: str, stacklevel: int = 1) -> None:
    """Warn of something, as `warnings.warn` does."""
    warnings.warn(shown(text), stacklevel=stacklevel + 1)


def _escaped(text: str) -> bool:
    """Whether the surrogates in a text are only those that stand for bytes of a path."""
    return all("\udc80" <= c <= "\udcff" for c in text if "\ud800" <= c <= "\udfff")
