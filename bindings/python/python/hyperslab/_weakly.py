"""Objects that are known as long as others have them."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from typing import Generic, TypeVar

__all__ = ["Weakly"]

T = TypeVar("T")


class Weakly(Generic[T]):
    """A set of objects, each as long as others have it.

    No code of Python's runs when one goes, as it does in `weakref.WeakSet`. A handler of signals could run in that, and
    Python drops what is raised there.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._all: list[weakref.ref[T]] = []

    def add(self, one: T) -> None:
        """Know it, too."""
        with self._lock:
            self._all = [*self._without(one), weakref.ref(one)]

    def discard(self, one: T) -> None:
        """Know it no more."""
        with self._lock:
            self._all = self._without(one)

    def _without(self, one: T) -> list[weakref.ref[T]]:
        return [known for known in self._all if known() is not None and known() is not one]

    def clear(self) -> None:
        """Know none: in a child of a fork, whose parent may have had the lock."""
        self._lock, self._all = threading.RLock(), []

    def __iter__(self) -> Iterator[T]:
        """Those that are left, the oldest first."""
        return iter([one for known in self._all if (one := known()) is not None])
