"""What the benchmarks are given on the command line: sizes and counts."""

from __future__ import annotations

import argparse

from hyperslab._arguments import byte_count

__all__ = ["byte_count", "counts", "positive"]


def positive(text: str) -> int:
    """A whole number of 1 or more."""
    if not text.isdigit() or int(text) == 0:
        message = f"{text!r} is not 1 or more"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def counts(text: str) -> list[int]:
    """Whole numbers of 1 or more, such as ``2,8``."""
    return [positive(part) for part in text.split(",")]
