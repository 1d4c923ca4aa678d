"""Fill values and attributes: between Python and the JSON that the compiled module has of them."""

from __future__ import annotations

import base64
import datetime
import json
import math
import struct
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from hyperslab._values import unfit
from hyperslab.errors import InvalidError

__all__ = ["attributes_of", "fill_json", "fill_of", "json_of"]

#: What JSON has for floats that are no numbers.
WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

#: Attributes that have the type of their array, by convention.
TYPED = ("_FillValue", "missing_value", "valid_min", "valid_max", "valid_range")

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


# ---- attributes ---------------------------------------------------------------------------------------------------


def json_of(value: Mapping[str, Any] | None, words: tuple[str, ...] = ("_FillValue",)) -> str:
    """Attributes as JSON, scalars and arrays of NumPy included.

    Floats that are no numbers are words where the attribute has one of these names, which the type of the array tells
    from texts; elsewhere JSON has nothing for them.
    """
    if value is not None and not isinstance(value, Mapping):
        raise unfit("attributes", "a mapping of names to values", value)
    given = dict(value or {})
    plain = {key: _plain(item, f"attribute {key!r}", worded=key in words) for key, item in given.items()}
    return json.dumps(plain, allow_nan=False)


def _plain(item: Any, where: str, *, worded: bool = False) -> Any:
    """A value as JSON has it, or an error that names it."""
    if isinstance(item, np.ndarray) and item.dtype.kind not in "OV":
        item = item[()] if item.ndim == 0 else item if item.dtype.kind in "mM" else item.tolist()
    if isinstance(item, np.generic) and item.dtype.kind not in "mMV":
        item = item.item()
    if isinstance(item, complex) and worded:
        return [_float_json(item.real), _float_json(item.imag)]
    if item is None or isinstance(item, (str, bool, int)):
        return item
    if isinstance(item, float):
        if math.isfinite(item) or worded:
            return _float_json(item)
        raise _no_json(f"{where} is {item}, for which JSON has no number", "leave it out, or give the text 'NaN'")
    if isinstance(item, Mapping):
        return {_key(key, where): _plain(each, f"{where}[{key!r}]") for key, each in item.items()}
    if isinstance(item, (list, tuple)):
        return [_plain(each, where, worded=worded) for each in item]
    dates = (np.datetime64, np.timedelta64, datetime.date, datetime.timedelta)
    if isinstance(item, dates) or (isinstance(item, np.ndarray) and item.dtype.kind in "mM"):
        hint = "give str(value), or a number with its unit, such as 'seconds since 1970-01-01'"
        raise _no_json(f"{where} is a date or a time, {item!s:.40}", hint)
    if hasattr(item, "__float__") and getattr(item, "ndim", None) == 0:
        return _plain(float(item), where, worded=worded)
    raise _no_json(f"{where} is of type {type(item).__name__}", "store numbers, strings, lists and mappings")


def _key(key: Any, where: str) -> str:
    if not isinstance(key, str):
        raise _no_json(f"{where} has the key {key!r}", "keys of mappings are texts")
    return key


def _no_json(what: str, hint: str) -> InvalidError:
    return InvalidError(f"attributes must be JSON: {what}\n  hint: {hint}")


def attributes_of(text: str, dtype: np.dtype[Any] | None = None) -> dict[str, Any]:
    """Attributes that this JSON is; those that have the type of an array of floats by convention are numbers again.

    xarray has ``_FillValue`` of floats in Zarr as the bytes of a float64 in base64.
    """
    attributes: dict[str, Any] = json.loads(text)
    if dtype is not None and _is_float(dtype):
        for name in TYPED:
            if name in attributes:
                attributes[name] = _number_of(attributes[name], name, dtype)
    return attributes


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "fc" or dtype.name.startswith(("bfloat", "float8"))


def _number_of(value: Any, name: str, dtype: np.dtype[Any]) -> Any:
    if isinstance(value, str):
        return WORDS[value] if value in WORDS else _decoded(value) if name == "_FillValue" else value
    if isinstance(value, list):
        parts = [_number_of(part, name, dtype) for part in value]
        numbers = all(isinstance(part, (int, float)) for part in parts)
        pair = dtype.kind == "c" and name == "_FillValue" and numbers and len(parts) == 2
        return complex(*parts) if pair else parts
    return value


def _decoded(text: str) -> Any:
    try:
        return struct.unpack("<d", base64.b64decode(text, validate=True))[0]
    except (ValueError, struct.error):
        return text
