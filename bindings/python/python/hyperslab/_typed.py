"""Attributes between Python and the compiled module: those without a NumPy type as JSON, others as bytes."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from hyperslab import _core
from hyperslab._types import type_code, type_of
from hyperslab._values import unfit
from hyperslab.attributes import Empty, Kept
from hyperslab.errors import InvalidError

__all__ = ["Raw", "attributes_of", "raw_of"]

#: Name; NumPy's code, ``text`` or ``kept``; shape; the bytes of all elements, or of each text; names of values.
RawValue: TypeAlias = "tuple[str, str, list[int] | None, list[bytes], list[tuple[str, bytes]]]"
#: JSON of all attributes, in which those are null that follow.
Raw: TypeAlias = "tuple[str, list[RawValue]]"

NOTHING: Raw = ("{}", [])


# ---- to the compiled module ----------------------------------------------------------------------------------------


def raw_of(attributes: Mapping[str, Any] | None) -> Raw:
    """Attributes as the compiled module takes them, scalars and arrays of NumPy included."""
    if not attributes:
        if attributes is None or isinstance(attributes, Mapping):
            return NOTHING
        raise unfit("attributes", "a mapping of names to values", attributes)
    if not isinstance(attributes, Mapping):
        raise unfit("attributes", "a mapping of names to values", attributes)
    plain: dict[str, Any] = {}
    typed: list[RawValue] = []
    for name, value in attributes.items():
        if not isinstance(name, str):
            raise _unfit(f"a name of an attribute is {name!r}", "names are texts")
        try:
            given = _given(value, f"attribute {name!r}")
        except RecursionError:
            hint = "store lists and mappings that end"
            raise _unfit(f"attribute {name!r} contains itself, or is nested too deeply", hint) from None
        if isinstance(given, _Typed):
            plain[name] = None
            typed.append((name, given.code, given.shape, given.content, given.members))
        else:
            plain[name] = given
    return json.dumps(plain), typed


class _Typed:
    """A value that JSON does not have, or that has a type of NumPy."""

    __slots__ = ("code", "content", "members", "shape")

    def __init__(
        self,
        code: str,
        shape: Iterable[int] | None,
        content: list[bytes],
        members: Iterable[tuple[str, bytes]] = (),
    ) -> None:
        self.code = code
        self.shape = None if shape is None else [*shape]
        self.content = content
        self.members = [*members]


def _given(value: Any, where: str) -> Any:
    """A value as JSON has it, or a `_Typed`."""
    if isinstance(value, str):
        return _text(str(value))
    if isinstance(value, (np.ndarray, np.generic)):
        return _array(value, where)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        # One zero is how no bytes at all are stored; a zero at the end is for the format to refuse.
        content = b"\0\0" if bytes(value) == b"\0" else bytes(value) or b"\0"
        return _Typed(f"|S{len(content)}", (), [content])
    if isinstance(value, complex):
        return _array(np.complex128(value), where)
    if isinstance(value, Mapping):
        return {_key(key, where): _nested(each, f"{where}[{key!r}]") for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return _list(value, where)
    return _other(value, where)


def _other(value: Any, where: str) -> Any:
    """A value of other types, some of which packages have."""
    if isinstance(value, Kept):
        return _Typed("kept", value.shape, [value.what.encode()])
    if isinstance(value, Empty) or (type(value).__name__ == "Empty" and hasattr(value, "dtype")):
        dtype = value.dtype
        text = dtype is None or np.dtype(dtype).kind == "O"
        return _Typed("text", None, []) if text else _Typed(_code(np.dtype(dtype), where), None, [b""])
    if isinstance(value, (datetime.date, datetime.timedelta)):
        raise _dated(where, value)
    if hasattr(value, "__array__"):
        return _array(np.asarray(value), where)
    if hasattr(value, "__float__") and getattr(value, "ndim", None) == 0:
        return float(value)
    hint = "store numbers, texts, bytes, lists and arrays of them, and mappings where the format has any"
    raise _unfit(f"{where} is of type {type(value).__name__}", hint)


def _text(text: str) -> Any:
    """A text; what was not UTF-8 when it was read goes back as it came."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _Typed("text", (), [text.encode("utf-8", "surrogateescape")])
    return text


def _array(value: Any, where: str) -> Any:
    dtype: np.dtype[Any] = value.dtype
    if dtype.kind in "UTO":
        return _texts(np.asarray(value), where)
    if dtype.kind in "mM":
        raise _dated(where, value)
    # Scalars of packages lie in arrays, too, and what enumerations say of themselves is with their type.
    metadata: Mapping[str, Any] = dtype.metadata or {}
    members: Mapping[str, Any] = getattr(value, "members", None) or metadata.get("enum") or {}
    base = dtype.newbyteorder("=") if isinstance(value, np.generic) and dtype.names is None else dtype
    named = [(str(name), np.asarray(one).astype(base).tobytes()) for name, one in members.items()]
    code = f"|S{max(dtype.itemsize, 1)}" if dtype.kind == "S" else _code(dtype, where)
    content = np.ascontiguousarray(value).tobytes()
    if dtype.kind == "S" and dtype.itemsize == 0:
        content = bytes(value.size)
    return _Typed(code, value.shape, [content], named)


def _texts(value: np.ndarray[Any, Any], where: str) -> Any:
    """An array of texts; one of other objects is a list."""
    each = value.ravel().tolist()
    if all(isinstance(one, str) for one in each) and (each or value.dtype.kind != "O"):
        texts = [one.encode("utf-8", "surrogateescape") for one in each]
        return _Typed("text", value.shape, texts)
    return _given(value.tolist(), where)


def _list(value: list[Any] | tuple[Any, ...], where: str) -> Any:
    """A list: of plain values as it is, of others an array if it makes one."""
    if any(isinstance(each, Mapping) for each in _leaves(value)):
        return _nested(value, where)
    plain = [_given(each, where) for each in value]
    if not any(map(_has_typed, plain)):
        return plain
    try:
        array = np.array(value)
    except ValueError:
        array = np.empty(0, object)
    if array.dtype.kind in "biufcSU" and len({_sort(each) for each in _leaves(value)}) == 1:
        return _array(array, where)
    raise _unfit(f"{where} is a list of unlike values, {value!s:.60}", "give an array, or values of one type")


def _has_typed(value: Any) -> bool:
    return isinstance(value, _Typed) or (isinstance(value, list) and any(map(_has_typed, value)))


def _leaves(value: Any) -> Iterable[Any]:
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim):
        for each in value:
            yield from _leaves(each)
    else:
        yield value


def _sort(value: Any) -> str:
    """Which values may lie in one array, which NumPy would make texts of if they were unlike."""
    kind = np.asarray(value).dtype.kind
    return "number" if kind in "iufc" else kind


def _nested(item: Any, where: str) -> Any:
    """A value in a mapping, which only JSON has: nothing in it has a type."""
    if isinstance(item, (np.ndarray, np.generic)) and item.dtype.kind in "biufUT":
        return item.tolist()
    if isinstance(item, (list, tuple)):
        return [_nested(each, where) for each in item]
    given = _given(item, where)
    if not isinstance(given, _Typed):
        return given
    raise _unfit(f"{where} is of type {type(item).__name__}", "mappings hold numbers, texts, lists and mappings")


def _code(dtype: np.dtype[Any], where: str) -> str:
    if dtype.kind == "S":
        return f"|S{max(dtype.itemsize, 1)}"
    try:
        return type_code(dtype)
    except InvalidError as error:
        raise InvalidError(f"{where}: {error}") from None


def _key(key: Any, where: str) -> str:
    if not isinstance(key, str):
        raise _unfit(f"{where} has the key {key!r}", "keys of mappings are texts")
    return key


def _dated(where: str, value: Any) -> InvalidError:
    hint = "give str(value), or a number with its unit, such as 'seconds since 1970-01-01'"
    return _unfit(f"{where} is a date or a time, {value!s:.40}", hint)


def _unfit(what: str, hint: str) -> InvalidError:
    return InvalidError(f"attributes cannot have such a value: {what}\n  hint: {hint}")


# ---- from the compiled module --------------------------------------------------------------------------------------


def attributes_of(told: bytes) -> dict[str, Any]:
    """Attributes that the compiled module tells of."""
    text, typed = _core.attributes_in(told)
    attributes: dict[str, Any] = json.loads(text)
    for name, code, shape, content, members in typed:
        attributes[name] = _value(code, shape, content, members)
    return attributes


def _value(code: str, shape: list[int] | None, content: list[bytes], members: list[tuple[str, bytes]]) -> Any:
    if code == "kept":
        return Kept(content[0].decode(), None if shape is None else tuple(shape))
    if code == "text":
        texts = [text.decode("utf-8", "surrogateescape") for text in content]
        if shape is None:
            return Empty(None)
        objects = np.empty(len(texts), object)
        objects[:] = texts
        objects.flags.writeable = False
        return objects.reshape(shape) if shape else texts[0]
    dtype = type_of(code)
    if shape is None:
        return Empty(dtype)
    if members:
        named = {name: np.frombuffer(value, dtype)[0].item() for name, value in members}
        dtype = np.dtype(dtype, metadata={"enum": named})
    array: Any = np.ndarray(tuple(shape), dtype, content[0])
    if shape:
        return array
    return _enumerated(dtype.str)(array[()], named) if members else array[()]


@cache
def _enumerated(code: str) -> Any:
    """A scalar of this type that knows the names of its values, as the types of arrays do."""
    of: Any = np.dtype(code).type

    def __new__(cls: Any, value: Any, members: dict[str, int]) -> Any:  # noqa: N807
        made = of.__new__(cls, value)
        made.members = members
        return made

    def __reduce__(self: Any) -> Any:  # noqa: N807
        return _of_enumeration, (code, int(self), self.members)

    return type(f"enumerated_{of.__name__}", (of,), {"__new__": __new__, "__reduce__": __reduce__})


def _of_enumeration(code: str, value: int, members: dict[str, int]) -> Any:
    return _enumerated(code)(value, members)
