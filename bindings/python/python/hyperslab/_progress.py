"""What commands that take long tell of themselves meanwhile, for whoever watches a terminal."""

from __future__ import annotations

import sys

from hyperslab._printing import say

__all__ = ["is_watched", "tell"]


def is_watched() -> bool:
    """Whether the error output is a terminal."""
    return sys.stderr.isatty()


def tell(line: str) -> None:
    """Tell a line on the error output, if that is a terminal."""
    if is_watched():
        say(line, error=True)
