"""What handlers of signals raise: it is no failure of the call that it meets, and travels as it is."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

from hyperslab import _core

__all__ = ["behind", "is_raised", "quietly", "travels"]


def _code(handler: Any) -> CodeType | None:
    """What a handler runs, if it is written in Python."""
    handler = getattr(handler, "func", handler)
    handler = getattr(handler, "__func__", handler)
    called = handler if hasattr(handler, "__code__") else getattr(type(handler), "__call__", None)  # noqa: B004
    code = getattr(called, "__code__", None)
    return code if isinstance(code, CodeType) else None


def is_raised(error: BaseException) -> bool:
    """Whether a handler of this program raised it, by what it came through."""
    trace = error.__traceback__
    if trace is None:
        return False
    codes = {_code(signal.getsignal(number)) for number in signal.valid_signals()}
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


def travels(error: BaseException) -> bool:
    """Whether a handler of signals raised it: in the last call of this thread, or between two lines of Python."""
    return _core.is_of_a_signal(error) or is_raised(error)


def behind(error: BaseException) -> BaseException:
    """What a handler of signals raised, where the standard library failed in clearing up after it; else the error.

    `threading.Thread.start` forgets a thread twice, by a `KeyError`, if the handler raises when the thread has begun.
    """
    first = error.__context__
    return first if isinstance(error, KeyError) and first is not None and is_raised(first) else error


@contextmanager
def quietly() -> Iterator[None]:
    """Leave out what goes wrong here, since the error that the program has already is the one to show."""
    try:
        yield
    except Exception as error:
        if travels(error):
            raise
