"""Types of elements: NumPy's, and the codes by which the compiled module has them."""

from __future__ import annotations

import ast
import functools
import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from hyperslab.errors import InvalidError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["native", "type_code", "type_of"]

#: Types of the package ml_dtypes that are stored, by their names. NumPy has no codes for them.
NAMED = {
    "bfloat16": 2,
    "float8_e3m4": 1,
    "float8_e4m3": 1,
    "float8_e4m3b11fnuz": 1,
    "float8_e4m3fn": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2": 1,
    "float8_e5m2fnuz": 1,
    "float8_e8m0fnu": 1,
}

_TEXT = 'store text in attributes, or as uint8: array.astype("S8").view("uint8"), or in fields of a structured type'

#: What to do about types that no format has, by NumPy's letter for their kind.
HINTS = {
    "O": 'make numbers of the objects, as with array.astype("float64")',
    "S": _TEXT,
    "U": _TEXT,
    "T": _TEXT,
    "f": 'convert them first, with array.astype("float64")',
    "c": 'convert them first, with array.astype("complex128")',
}


def type_code(dtype: DTypeLike) -> str:
    """How the compiled module calls a type of elements.

    NumPy's code; the name of types of ml_dtypes, also where that package is not there; and of structured types
    ``V``, their size and their fields.
    """
    try:
        return _code_of_text(dtype) if isinstance(dtype, str) else code_of(np.dtype(dtype))
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidError):
            raise
        message = f"dtype={dtype!r} is not a type of elements\n  hint: give one such as 'float64', '<f4' or 'bfloat16'"
        raise InvalidError(message) from None


# Making a type of a text, and asking for its name, take longer than all else that is asked of an array.
@functools.lru_cache(maxsize=256)
def _code_of_text(text: str) -> str:
    return text if text in NAMED else code_of(np.dtype(text))


@functools.lru_cache(maxsize=256)
def code_of(dtype: np.dtype[Any]) -> str:
    """The code of a type, or an error where no format has it."""
    if dtype.names is not None:
        return _structured_code(dtype)
    if dtype.name in NAMED and dtype.itemsize == NAMED[dtype.name]:
        return dtype.name
    # Packages have floats and integers of their own, which NumPy shows as its own.
    own = dtype.type.__module__ == "numpy"
    smallest, largest = {"f": (2, 8), "c": (8, 16), "V": (1, 1 << 31)}.get(dtype.kind, (1, 8))
    if own and dtype.kind in "biufcMmV" and smallest <= dtype.itemsize <= largest and dtype.subdtype is None:
        return dtype.str
    message = f"elements of type {dtype} cannot be stored\n  hint: {HINTS.get(dtype.kind, _LITTLE)}"
    raise InvalidError(message)


_LITTLE = "store bool, integers, floats, complex numbers, dates or structured types"


def _structured_code(dtype: np.dtype[Any]) -> str:
    try:
        code = f"|V{dtype.itemsize}{_described(dtype.descr)}"
    except (ValueError, TypeError):
        code = ""
    # Fields that overlap, have titles or hold objects, and types of packages, are described as something else, or not.
    if dtype.hasobject or not code or _type_of_code(code) != dtype:
        message = (
            f"elements of type {dtype} cannot be stored\n"
            "  hint: fields can be numbers, dates and texts of a fixed length, one after another and without titles"
        )
        raise InvalidError(message)
    return code


def _described(fields: Any) -> str:
    """Fields as the compiled module has them, which is as Python shows them."""
    if not all(isinstance(name, str) for name, *_ in fields):
        message = "fields with titles"
        raise ValueError(message)
    parts = [
        f"({name!r}, {_described(of) if isinstance(of, list) else repr(of)}{''.join(f', {shape!r}' for shape in more)})"
        for name, of, *more in fields
    ]
    return f"[{', '.join(parts)}]"


def type_of(code: str) -> np.dtype[Any]:
    """The type that the compiled module calls so.

    That of ml_dtypes for ``bfloat16`` and floats of 8 bits; where this package is not there, as many bytes without a
    meaning (``V2``, ``V1``).
    """
    name = code.lstrip("<>=|")
    if name not in NAMED:
        return _type_of_code(code)
    try:
        ml_dtypes = importlib.import_module("ml_dtypes")
    except ImportError:
        return np.dtype(f"V{NAMED[name]}")
    named: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return named


@functools.lru_cache(maxsize=256)
def _type_of_code(code: str) -> np.dtype[Any]:
    fields = code.find("[(")
    if fields < 0:
        return np.dtype(code)
    return np.lib.format.descr_to_dtype(ast.literal_eval(code[fields:]))


def native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type with which an array of stored elements is read: in the byte order of this machine.

    Structured types stay as they are stored, since their bytes are never changed.
    """
    return dtype if dtype.isnative or dtype.names is not None else dtype.newbyteorder("=")
