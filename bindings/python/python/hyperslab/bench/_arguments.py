"""What the benchmarks are given on the command line: sizes and counts."""

from __future__ import annotations

import argparse

__all__ = ["byte_count", "counts", "positive"]

UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def byte_count(text: str) -> int:
    """A number of bytes, such as ``64MiB``."""
    digits = text.rstrip("BKMGi")
    unit = text[len(digits) :]
    if not digits.isdigit() or unit not in UNITS:
        message = f"{text!r} is no size such as 64MiB or 1GiB"
        raise argparse.ArgumentTypeError(message)
    return int(digits) * UNITS[unit]


def positive(text: str) -> int:
    """A whole number of 1 or more."""
    if not text.isdigit() or int(text) == 0:
        message = f"{text!r} is not 1 or more"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def counts(text: str) -> list[int]:
    """Whole numbers of 1 or more, such as ``2,8``."""
    return [positive(part) for part in text.split(",")]
