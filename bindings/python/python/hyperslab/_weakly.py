"""Objects that are known as long as others have them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from itertools import count
from typing import Generic, TypeVar

__all__ = ["Weakly"]

T = TypeVar("T")


class Weakly(Generic[T]):
    """A set of objects, each as long as others have it.

    No code of Python's runs when one goes, as it does in `weakref.WeakSet`. A handler of signals could run in that, and
    Python drops what is raised there. Nothing is locked either, which a handler, or a fork, could leave locked: each
    step is one that Python does whole, and no number is given twice.
    """

    def __init__(self) -> None:
        self._numbers = count()
        self._all: dict[int, weakref.ref[T]] = {}

    def add(self, one: T) -> None:
        """Know it, too."""
        self.discard(one)
        self._all[next(self._numbers)] = weakref.ref(one)

    def discard(self, one: T) -> None:
        """Know it no more, nor what has gone."""
        for number, known in list(self._all.items()):
            found = known()
            if found is None or found is one:
                self._all.pop(number, None)

    def clear(self) -> None:
        """Know none."""
        self._all = {}

    def __iter__(self) -> Iterator[T]:
        """Those that are left, the oldest first."""
        return iter([one for known in list(self._all.values()) if (one := known()) is not None])
