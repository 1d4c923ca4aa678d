"""Quantities for people: three significant digits, and one unit for all numbers that stand in one table or column."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

__all__ = ["bytes_unit", "number", "rates", "said_bytes", "said_rate", "said_seconds", "seconds_unit", "times"]

#: Units and what one of each is, the largest first.
_BYTES = (("TiB", 2.0**40), ("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10), ("B", 1.0))
_SECONDS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))

#: A unit and what one of it is.
Unit = tuple[str, float]


def _unit(values: Iterable[float], units: Sequence[Unit]) -> Unit:
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    # What would be told as 1000 of a unit is told as 1 of the next; of bytes 1023 stay what they are.
    return next((unit for unit in units if largest >= 0.9995 * unit[1]), units[-1] if largest else units[0])


def bytes_unit(values: Iterable[float]) -> Unit:
    """The unit in which such numbers of bytes are told together: that of the largest."""
    return _unit(values, _BYTES)


def seconds_unit(values: Iterable[float]) -> Unit:
    """The unit in which such times are told together: that of the longest."""
    return _unit(values, _SECONDS)


def number(value: float, digits: int = 3) -> str:
    """A number with three significant digits, without an exponent as far as that can be read.

    >>> [number(value) for value in (0, 1, 1234, 12.345, 0.00123456, 205.9, 1e-9)]
    ['0', '1', '1230', '12.3', '0.00123', '206', '1e-09']
    """
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    power = math.floor(math.log10(abs(float(f"{value:.{digits - 1}e}"))))
    if not -5 <= power < 9:
        return f"{value:.{digits}g}"
    if value == int(value) and power < digits:
        return str(int(value))
    rounded = round(value, digits - 1 - power)
    return str(int(rounded)) if power >= digits - 1 else f"{rounded:.{digits - 1 - power}f}"


def said_bytes(value: float) -> str:
    """A number of bytes by itself.

    >>> said_bytes(0), said_bytes(1000), said_bytes(1536), said_bytes(512 * 2**20)
    ('0 B', '1000 B', '1.50 KiB', '512 MiB')
    """
    unit, one = bytes_unit([value]) if value else ("B", 1.0)
    return f"{int(value)} B" if unit == "B" else f"{number(value / one)} {unit}"


def said_seconds(value: float) -> str:
    """A time by itself.

    >>> said_seconds(0.2059), said_seconds(0.3219), said_seconds(72.5), said_seconds(0)
    ('206 ms', '322 ms', '72.5 s', '0 s')
    """
    unit, one = seconds_unit([value])
    return f"{number(value / one)} {unit}"


def said_rate(value: float) -> str:
    """Bytes per second by themselves.

    >>> said_rate(3 * 2**29)
    '1.50 GiB/s'
    """
    return f"{said_bytes(value)}/s"


def times(values: Sequence[float], beside: float = 0.0) -> list[str]:
    """Times of one column, in the unit of the longest, or of one that stands beside them if that is longer.

    >>> times([0.2059, 1.25, 0.0004]), times([0.0009], beside=0.0011)
    (['0.206 s', '1.25 s', '0.000400 s'], ['0.900 ms'])
    """
    unit, one = seconds_unit([*values, beside])
    return [f"{number(value / one)} {unit}" for value in values]


def rates(values: Sequence[float]) -> list[str]:
    """Bytes per second of one column, in the unit of the largest.

    >>> rates([3 * 2**30, 2**29])
    ['3 GiB/s', '0.500 GiB/s']
    """
    unit, one = bytes_unit(values)
    return [f"{number(value / one)} {unit}/s" for value in values]
