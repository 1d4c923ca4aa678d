"""Values on command lines, and what is said of those that cannot be read."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

from hyperslab._sizes import UNITS


def integers(text: str) -> list[int]:
    """Numbers with commas or an ``x`` between them.

    >>> integers("128,128,64"), integers("4x2")
    ([128, 128, 64], [4, 2])
    """
    try:
        return [int(part) for part in text.replace("x", ",").split(",") if part]
    except ValueError:
        message = f"'{text}' is not a list of numbers such as 128,128,64"
        raise argparse.ArgumentTypeError(message) from None


def stored_array(text: str) -> tuple[str, tuple[list[int], str]]:
    """Name, shape and type of an array in a raw file; the shape of a scalar is empty.

    >>> stored_array("rho:128,64:<f8")
    ('rho', ([128, 64], '<f8'))
    """
    parts = text.rsplit(":", 2)
    if len(parts) != 3 or not parts[0] or not parts[2]:
        message = f"'{text}' is not NAME:SHAPE:DTYPE, such as rho:128,128,64:<f8"
        raise argparse.ArgumentTypeError(message)
    name, shape, dtype = parts
    return name, (integers(shape), dtype)


def dims(text: str) -> list[str]:
    """How dimensions are spread; commas in parentheses part nothing.

    >>> dims("block,gen_block(3,4),*")
    ['block', 'gen_block(3,4)', '*']
    """
    return re.split(r",(?![^(]*\))", text)


def factor(text: str) -> tuple[str, float]:
    """A name and what it is multiplied by.

    >>> factor("messages.send=1.2")
    ('messages.send', 1.2)
    """
    key, _, times = text.partition("=")
    try:
        return key, float(times)
    except ValueError:
        message = f"'{text}' is not key=factor, such as messages.send=1.2"
        raise argparse.ArgumentTypeError(message) from None


def section(text: str) -> tuple[slice, ...]:
    """A section as it is written in Python.

    >>> section("0:64:2,3:9")
    (slice(0, 64, 2), slice(3, 9, None))
    """
    return tuple(map(_slice, text.split(",")))


def _slice(part: str) -> slice:
    try:
        bounds = [int(bound) if bound else None for bound in part.split(":")]
    except ValueError:
        bounds = []
    if len(bounds) not in (2, 3):
        message = f"'{part}' is not low:high or low:high:step"
        raise argparse.ArgumentTypeError(message)
    return slice(*bounds)


def output_file(text: str) -> Path:
    """A file that can be written, which is found out before any time is spent on what goes into it.

    >>> output_file("page.md")
    PosixPath('page.md')
    """
    path = Path(text)
    if path.is_dir():
        message = f"'{text}' is a directory, not a file"
        raise argparse.ArgumentTypeError(message)
    if not path.parent.is_dir():
        message = f"'{text}' cannot be written: there is no directory '{path.parent}'"
        raise argparse.ArgumentTypeError(message)
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        message = f"'{text}' cannot be written: permission denied"
        raise argparse.ArgumentTypeError(message)
    return path


def cores_here() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def byte_count(text: str) -> int:
    """A number of bytes.

    >>> byte_count("64MiB"), byte_count("512")
    (67108864, 512)
    """
    digits = text.rstrip("BKMGTi")
    unit = text[len(digits) :]
    if not (digits.isascii() and digits.isdigit()) or unit not in UNITS:
        message = f"{text!r} is no size such as 64MiB or 1GiB"
        raise argparse.ArgumentTypeError(message)
    return int(digits) * UNITS[unit]
