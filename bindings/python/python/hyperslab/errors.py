"""Exceptions. Every collective call raises the same one, with the same text, on all ranks.

Each is an `Error`, and also the exception of Python's own that a reader would expect.
"""

from __future__ import annotations

import builtins

from hyperslab._printing import shown

__all__ = [
    "BusyError",
    "CorruptError",
    "DisagreementError",
    "Error",
    "ExistsError",
    "InterruptedError",
    "InvalidError",
    "NotFoundError",
    "OutdatedError",
    "PeerError",
    "PoisonedError",
    "StorageError",
    "TimeoutError",
    "UnsupportedError",
    "UnsyncedError",
]


class Error(Exception):
    """Base of all errors of this package. What its message says is also there by itself.

    Attributes
    ----------
    what : str
        What went wrong.
    doing : tuple of str
        What was being done, the outermost first.
    where : str or None
        The stored object that it is about: a path, or a name in a store.
    expected, found : str or None
        What was expected of it, and what was found instead.
    ranks : tuple of int
        The ranks that it befell, at most eight of them; none where that is not known, or there is one rank only.
    hint : str
        What may help; empty when there is nothing to say.
    """

    what: str = ""
    doing: tuple[str, ...] = ()
    where: str | None = None
    expected: str | None = None
    found: str | None = None
    ranks: tuple[int, ...] = ()
    hint: str = ""

    def __str__(self) -> str:
        """The message; what a terminal would obey is shown as text, since names in files may hold it."""
        return shown(super().__str__())


class InvalidError(Error, ValueError):
    """The caller asked for something impossible."""


class DisagreementError(Error, ValueError):
    """The ranks asked for different things."""


class TimeoutError(Error, builtins.TimeoutError):  # noqa: A001 (lives in this module's namespace)
    """A limit on waiting was reached."""


class NotFoundError(Error, FileNotFoundError, KeyError):
    """A named store, array or file does not exist; a `KeyError`, too, as of any mapping."""


class ExistsError(Error, FileExistsError):
    """Something exists that must not."""


class StorageError(Error, OSError):
    """The storage refused: no space, no permission, an input or output error."""


class UnsyncedError(StorageError):
    """What was asked is done and visible, but it is not known whether it survives a loss of power."""


class OutdatedError(StorageError):
    """An array has changed since all ranks looked at it, or somebody replaced, renamed or removed it meanwhile.

    Reads look again by themselves, some times.
    """


class BusyError(Error, builtins.BlockingIOError):
    """Another program, or another part of this one, changes the same array or file in place.

    Or it replaces one of several arrays that a call would replace together.
    """


class CorruptError(Error):
    """Stored bytes are not what was written."""


class InterruptedError(Error):  # noqa: A001
    """Another rank was interrupted by a signal, such as Ctrl-C."""


class UnsupportedError(Error, NotImplementedError):
    """A file uses something that this version cannot read or do."""


class PeerError(Error):
    """Another rank failed, or the link to it broke."""


class PoisonedError(Error):
    """An earlier failure left this handle unusable."""
