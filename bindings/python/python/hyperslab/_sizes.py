"""Sizes in bytes, as people give them."""

from __future__ import annotations

import re
from typing import Any

from hyperslab._values import unfit

__all__ = ["UNITS", "size_of"]

#: What sizes end with.
UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def size_of(given: Any, what: str) -> int:
    """A number of bytes, given as one or as a text.

    >>> size_of("1.5KiB", "memory"), size_of(64, "memory")
    (1536, 64)
    """
    if isinstance(given, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", given)
        if found and found[2] in UNITS:
            return int(float(found[1]) * UNITS[found[2]])
    elif hasattr(given, "__index__") and not isinstance(given, bool) and 0 <= given.__index__() < 1 << 63:
        return int(given.__index__())
    raise unfit(what, "a number of bytes, or a size such as '64MiB'", given)
