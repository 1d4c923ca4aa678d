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

__all__ = ["is_texts", "native", "type_code", "type_of", "type_to_read"]

#: What texts of variable length are called where a type is asked for, beside NumPy's StringDType and `object`.
TEXTS = ("str", "string", "T", "O", "object")

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

#: What to do about types that no format has, by NumPy's letter for their kind.
HINTS = {
    "O": 'give texts a length, as with array.astype("U8"), and make numbers of other objects',
    "S": 'give texts a length, as with dtype="S8"',
    "U": 'give texts a length, as with dtype="U8"',
    "T": 'give texts a length, as with array.astype("U8")',
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


def is_texts(dtype: Any) -> bool:
    """Whether a type that is given stands for texts of variable length."""
    if isinstance(dtype, str):
        return dtype in TEXTS
    return dtype is str or dtype is object or (isinstance(dtype, np.dtype) and dtype.kind in "OT")


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
    smallest, largest = {"f": (2, 8), "c": (8, 16), **dict.fromkeys("VSU", (1, 1 << 31))}.get(dtype.kind, (1, 8))
    if own and dtype.kind in "biufcMmVSU" and smallest <= dtype.itemsize <= largest and dtype.subdtype is None:
        return dtype.str
    message = f"elements of type {dtype} cannot be stored\n  hint: {HINTS.get(dtype.kind, _LITTLE)}"
    raise InvalidError(message)


_LITTLE = "store bool, integers, floats, complex numbers, dates, texts of a fixed length or structured types"


def _structured_code(dtype: np.dtype[Any]) -> str:
    try:
        code = f"|V{dtype.itemsize}{_described(dtype)}"
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


def _described(dtype: np.dtype[Any]) -> str:
    """Fields as the compiled module has them: as they lie, gaps included, and then in which order they are shown."""
    names: tuple[str, ...] = dtype.names or ()
    fields: Any = dtype.fields or {}
    lying = sorted(names, key=lambda name: fields[name][1])
    parts, end = [], 0
    for name in lying:
        base, offset, *titles = fields[name]
        if titles or offset < end:
            message = "fields with titles, or that lie in each other"
            raise ValueError(message)
        if offset > end:
            parts.append(f"('', '|V{offset - end}')")
        of, shape = base.subdtype or (base, ())
        inner = _described(of) if of.names is not None else repr(of.str)
        parts.append(f"({name!r}, {inner}{f', {shape!r}' if shape else ''})")
        end = offset + base.itemsize
    if dtype.itemsize > end:
        parts.append(f"('', '|V{dtype.itemsize - end}')")
    order = [lying.index(name) for name in names]
    parts += [repr(order)] if order != sorted(order) else []
    return f"[{', '.join(parts)}]"


def type_of(code: str) -> np.dtype[Any]:
    """The type that the compiled module calls so.

    That of ml_dtypes for ``bfloat16`` and floats of 8 bits; where this package is not there, as many bytes without a
    meaning (``V2``, ``V1``).
    """
    name = code.lstrip("<>=|")
    if name.startswith(("O", "T")):
        return np.dtype(object)
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
    return _structured(ast.literal_eval(code[fields:]))


def _structured(described: list[Any]) -> np.dtype[Any]:
    """The type that has these fields, as `_described` describes them."""
    numbers = isinstance(described[-1], list)
    fields, order = (described[:-1], described[-1]) if numbers else (described, None)
    names, formats, offsets, end = [], [], [], 0
    for name, of, *shape in fields:
        kind: Any = (_structured(of) if isinstance(of, list) else of, *(shape or [()]))
        one = np.dtype(kind)
        if name:
            names.append(name)
            formats.append(one)
            offsets.append(end)
        end += one.itemsize
    shown = range(len(names)) if order is None else order
    each = [[of[number] for number in shown] for of in (names, formats, offsets)]
    layout: Any = dict(zip(("names", "formats", "offsets"), each, strict=True)) | {"itemsize": end}
    made: np.dtype[Any] = np.dtype(layout)
    return made


def native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type with which an array of stored elements is read: in the byte order of this machine.

    Structured types stay as they are stored, since their bytes are never changed.
    """
    return dtype if dtype.isnative or dtype.names is not None else dtype.newbyteorder("=")


def type_to_read(stored: np.dtype[Any], asked: DTypeLike | None) -> np.dtype[Any]:
    """The type of a fresh array: that which is asked for, or that of the elements; of texts, objects."""
    if asked is None or (stored.kind == "O" and np.dtype(asked).kind == "O"):
        return native(stored)
    return type_of(type_code(asked))
