"""Fill values: between Python and the JSON that the compiled module has of them."""

from __future__ import annotations

import base64
import datetime
import json
import math
import struct
from contextlib import suppress
from typing import Any

import numpy as np

from hyperslab._values import unfit

__all__ = ["fill_json", "fill_of"]

#: What JSON has for floats that are no numbers.
WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

#: Units of dates and times in NumPy.
UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")


# ---- fill values --------------------------------------------------------------------------------------------------


def fill_json(value: Any) -> str | None:
    """A fill value in JSON, as Zarr has numbers of its kind; the core makes it fit the type of each array."""
    if value is None:
        return None
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (datetime.datetime, datetime.date)):
        value = np.datetime64(value)
    elif isinstance(value, datetime.timedelta):
        value = np.timedelta64(value)
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return json.dumps(_ticks(value))
    if isinstance(value, (np.void, bytes)):
        return json.dumps(base64.b64encode(value if isinstance(value, bytes) else value.tobytes()).decode())
    item = value.item() if isinstance(value, np.generic) and type(value).__module__ == "numpy" else value
    if isinstance(item, complex):
        return json.dumps([_float_json(item.real), _float_json(item.imag)])
    number = not isinstance(item, (int, str, np.ndarray)) and hasattr(item, "__float__")
    if isinstance(item, float) or number:
        return json.dumps(_float_json(float(item)))
    if isinstance(item, (int, str)):
        return json.dumps(item)
    hint = "for a structured type, give np.array(value, dtype)[()]" if isinstance(value, tuple) else ""
    raise unfit("fill_value", "a number", value, hint)


def _ticks(value: Any) -> Any:
    """A date or a time as a number of each unit in which it is a whole one: arrays may have several."""
    if np.isnat(value):
        return "NaT"
    code = np.dtype(value.dtype).char
    unit, count = np.datetime_data(value.dtype)
    own = "" if unit == "generic" else unit if count == 1 else f"{count}{unit}"
    found = {own: int(value.astype(np.int64))}
    for other in UNITS if own else ():
        with suppress(OverflowError, TypeError):
            turned = value.astype(f"{code}8[{other}]")
            if turned == value and turned.astype(value.dtype) == value and not np.isnat(turned):
                found[other] = int(turned.astype(np.int64))
    return {code: found}


def fill_of(text: str, dtype: np.dtype[Any]) -> Any:
    """The fill value that this JSON is for elements of a type, as a scalar of it; `None` where there is none."""
    value = json.loads(text)
    if value is None:
        return None
    if dtype.kind in "mM":
        ticks = np.iinfo(np.int64).min if value == "NaT" else value
        return np.int64(ticks).view(dtype.newbyteorder("="))
    if dtype.type is np.void:
        return _void(value, dtype)
    if dtype.kind == "O":
        return value
    if dtype.kind in "SU":
        content: Any = base64.b64decode(value) if dtype.kind == "S" else value
        return np.array(content, dtype.newbyteorder("="))[()]
    if dtype.kind == "c":
        parts = [_float_of(part, dtype.itemsize // 2) for part in value]
        return np.array(parts, f"f{dtype.itemsize // 2}").view(dtype.newbyteorder("="))[0]
    if dtype.kind in "biu" and not isinstance(value, str):
        return dtype.type(value)
    if isinstance(value, str) and value not in WORDS:
        return _of_bits(value, dtype)
    return np.asarray(_float_of(value, dtype.itemsize)).astype(dtype.newbyteorder("="))[()]


def _void(value: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(value, str) and not value.startswith("0x") and value not in WORDS:
        content = base64.b64decode(value)
    elif isinstance(value, str) and value not in WORDS:
        content = int(value, 16).to_bytes(dtype.itemsize, "little")
    else:
        # What is bfloat16 in storage, where the package ml_dtypes is not there.
        content = struct.pack("<f", _float_of(value, 4))[2:]
    return np.frombuffer(content.ljust(dtype.itemsize, b"\0"), dtype, 1)[0]


def _of_bits(value: str, dtype: np.dtype[Any]) -> Any:
    size = dtype.itemsize
    bits = np.array(int(value, 16), f"u{size}")
    return bits.view(dtype.newbyteorder("="))[()]


def _float_of(value: Any, size: int) -> float:
    if not isinstance(value, str):
        return float(value)
    if value in WORDS:
        return WORDS[value]
    return float(np.array(int(value, 16), f"u{size}").view(f"f{size}")[()])


def _float_json(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value
