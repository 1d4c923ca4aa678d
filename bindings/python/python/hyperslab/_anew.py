"""What is open for reading is opened anew where it lands: in another process by pickling, or in a forked child."""

from __future__ import annotations

import os
import weakref
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hyperslab._paths import local_path

if TYPE_CHECKING:
    from hyperslab import _core as core
    from hyperslab.group import Group

__all__ = ["OpenedAnew", "Origin", "origin_of"]


@dataclass(frozen=True)
class Origin:
    """Where something lies that is open for reading, in words that mean the same in another process."""

    place: Any
    format: str | None
    #: Which lock it honours, and how long a call waits for storage [s].
    locking: Any
    storage_seconds: float
    group: str = ""

    def below(self, name: str) -> Origin:
        """That of a group."""
        return replace(self, group="/".join(part for part in (self.group, name.strip("/")) if part))

    def open(self) -> Group:
        """Open it, by this rank alone."""
        from hyperslab.opening import open as opened

        options: dict[str, Any] = {"locking": self.locking, "storage_seconds": self.storage_seconds}
        store = opened(self.place, format=self.format, comm=None, **options)
        return store.group(self.group) if self.group else store


def origin_of(place: Any, form: str | None, locking: Any, storage_seconds: float) -> Origin | None:
    """That of a place, if other processes reach it."""
    from hyperslab.striped import Striped

    if isinstance(place, (str, os.PathLike)):
        place = os.path.abspath(local_path(place))  # noqa: PTH100 (a text may be a URL's path, with no `Path`)
    elif not isinstance(place, Striped):
        return None
    return Origin(place, form, locking, storage_seconds)


class OpenedAnew:
    """What opens itself anew in a child of the process that opened it alone for reading, and where it is unpickled."""

    _origin: Origin | None = None
    _core: core.Target
    _comm: core.Comm

    def _comes_from(self, origin: Origin | None, *, alone: bool) -> None:
        """Remember where it lies; only what one rank opened alone may be used by children without the others."""
        self._origin = origin
        if origin is not None and alone:
            _opened_alone.add(self)

    def __getattr__(self, name: str) -> Any:
        origin = self._origin
        if name != "_core" or origin is None:
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(message)
        anew = origin.open()
        self._core, self._comm = anew._core, anew._comm
        return self._core

    def __reduce__(self) -> tuple[Any, ...]:
        if self._origin is None:
            message = (
                f"{type(self).__name__} cannot be pickled: only what open() opened for reading can, at a place that "
                "other processes reach\n  hint: pickle its path, and open it where it lands"
            )
            raise TypeError(message)
        return Origin.open, (self._origin,)


#: What one rank opened alone for reading.
_opened_alone: weakref.WeakSet[OpenedAnew] = weakref.WeakSet()


def _forget() -> None:
    """In a forked child, nothing of the parent's is used, nor ended: threads of the parent may hold locks."""
    for opened in list(_opened_alone):
        kept = opened.__dict__.pop("_core", None)
        if kept is not None:
            opened.__dict__.setdefault("_of_parent", kept)


os.register_at_fork(after_in_child=_forget)
