"""Values as people give them, and what is said of those that cannot be taken."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hyperslab.errors import InvalidError

__all__ = ["names_of", "whole_number", "whole_numbers"]


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
        message = f"{what} should be whole numbers of {least} or more, one for each dimension, but is {values!r}"
        raise InvalidError(message)
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
        message = f"{what} should be a whole number of {least} or more, but is {value!r}"
        raise InvalidError(message)
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
        message = f"a name should be a text, or several in a list, but is {name!r}"
        raise InvalidError(message)
    names = list(name)
    if len({*map(str, names)}) < len(names):
        twice = next(each for number, each in enumerate(names) if each in names[:number])
        message = f"{twice!r} is named twice in one call"
        raise InvalidError(message)
    return names
