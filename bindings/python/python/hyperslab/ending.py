"""The end of the program: what it has left undone is finished, or told."""

from __future__ import annotations

import atexit
import os
import sys

from hyperslab import _core, requests
from hyperslab.batch import gathering

__all__ = ["finalize"]


def finalize() -> bool:
    """Finish what this program has left undone, and tell on the error output what cannot be finished. Local.

    It waits for all requests. New files, steps and batches that were never closed are closed where one rank has opened
    them by itself, unless an exception ends the program or a call on them has failed. What stays is told, each thing
    once a process: requests that failed and that nobody waited for, and new files, steps and batches that were never
    closed, with the place where their data lie.

    It is called at the end of the program, which then ends with status 1 if there was something to tell and it would
    end with 0. A program that calls it by itself decides by what it returns.

    Returns
    -------
    bool
        Whether nothing was left undone.

    Examples
    --------
    >>> import hyperslab as hs
    >>> nothing_was_left = hs.finalize()
    """
    # Python notes there what nobody caught.
    well = getattr(sys, "last_value", None) is None
    for batch in list(gathering) if well else []:
        batch.end_alone()
    return not _core.finalize(requests.EXIT_SECONDS, well)


def _finish() -> None:
    if not finalize():
        # No hook of Python's can change the exit status.
        _core.fail_at_exit()


def _after_fork() -> None:
    _core.forget()
    gathering.clear()


# Registered last, and so called first.
atexit.register(_finish)
os.register_at_fork(after_in_child=_after_fork)
