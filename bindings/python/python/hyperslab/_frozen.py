"""What was read from metadata: dicts and lists that print as others do, compare whole, and cannot be changed.

A change would reach neither the store nor the next reader, so it is an error instead of nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

__all__ = ["frozen", "same"]


def _refuse(self: Any, *_arguments: Any, **_named: Any) -> NoReturn:
    what = "dict" if isinstance(self, dict) else "list"
    message = (
        f"this {what} was read from a store: a change of it would change nothing there\n"
        "  hint: its copy() is an ordinary one"
    )
    raise TypeError(message)


class _Dict(dict[str, Any]):
    """A dict that cannot be changed; its copies can."""

    __slots__ = ()

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dict) and same(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def copy(self) -> dict[str, Any]:
        """An ordinary dict, with ordinary dicts and lists in it."""
        return {key: _thawed(value) for key, value in self.items()}

    def __copy__(self) -> dict[str, Any]:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self.copy(),)


class _List(list[Any]):
    """A list that cannot be changed; its copies can."""

    __slots__ = ()

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def copy(self) -> list[Any]:
        """An ordinary list, with ordinary dicts and lists in it."""
        return [_thawed(value) for value in self]

    def __copy__(self) -> list[Any]:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (self.copy(),)


def frozen(value: Any) -> Any:
    """The same value, whose dicts and lists cannot be changed; its arrays cannot be, either."""
    if isinstance(value, dict):
        return _Dict({key: frozen(item) for key, item in value.items()})
    if isinstance(value, list):
        return _List([frozen(item) for item in value])
    return value


def _thawed(value: Any) -> Any:
    return value.copy() if isinstance(value, (_Dict, _List, np.ndarray)) else value


def same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two mappings have the same values; arrays are the same if all of their elements are."""
    return one.keys() == other.keys() and all(_equal(value, other[name]) for name, value in one.items())


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        one, other = np.asarray(one), np.asarray(other)
        return one is other or (one.shape == other.shape and bool((one == other).all()))
    return one is other or bool(one == other)
