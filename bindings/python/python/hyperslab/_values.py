"""Values as people give them, and what is said of those that cannot be taken."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from hyperslab.errors import InvalidError

__all__ = ["names_of", "shown", "unfit", "whole_number", "whole_numbers"]

#: Longest value that is shown as it is.
SHOWN_MAX = 60


def shown(value: Any) -> str:
    """A value as it was given, where that is short; else its type.

    >>> shown((0, 2)), shown({1, 2})
    ('(0, 2)', 'an object of type set')
    """
    plain = value is None or isinstance(value, (bool, int, float, str, tuple, list, slice, np.ndarray))
    text = repr(value) if plain else ""
    return text if 0 < len(text) <= SHOWN_MAX else f"an object of type {type(value).__qualname__}"


def unfit(what: str, expected: str, value: Any, hint: str = "") -> InvalidError:
    """That an argument has a value that it cannot have."""
    return InvalidError(f"{what} must be {expected}, got {shown(value)}" + (f"\n  hint: {hint}" if hint else ""))


def whole_numbers(values: Any, what: str, least: int = 0) -> list[int]:
    """Whole numbers, one for each dimension.

    Raises
    ------
    InvalidError
        When they are something else, or less than allowed.
    """
    try:
        numbers = [value.__index__() for value in values]
    except (TypeError, AttributeError):
        numbers = None
    if numbers is None or (numbers and min(numbers) < least):
        raise unfit(what, f"whole numbers of {least} or more, one for each dimension", values)
    return numbers


def whole_number(value: Any, what: str, least: int = 0) -> int:
    """A whole number.

    Raises
    ------
    InvalidError
        When it is something else, or less than allowed.
    """
    number: int | None = value.__index__() if hasattr(value, "__index__") else None
    if number is None or number < least:
        raise unfit(what, f"a whole number of {least} or more", value)
    return number


def names_of(name: Any) -> list[str]:
    """Names of arrays, of which one or several are given, each of them once.

    Raises
    ------
    InvalidError
        When they are something else, or one is named twice.
    """
    if isinstance(name, str):
        return [name]
    if not isinstance(name, Iterable):
        raise unfit("a name", "a string, or several in a list", name)
    names = list(name)
    if len({*map(str, names)}) < len(names):
        twice = next(each for number, each in enumerate(names) if each in names[:number])
        message = f"{twice!r} is named twice in one call"
        raise InvalidError(message)
    return names
