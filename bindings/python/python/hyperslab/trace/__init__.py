"""What ranks did when: recording it, and saying what an application does between its calls.

``HYPERSLAB_TRACE=directory`` in the environment records all communicators, `recording` the calls of one that are made
in its context. ``hyperslab trace summary|view|export directory`` tells what was recorded; ``docs/trace.md`` describes
the files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hyperslab.comm import connect, existing

__all__ = ["recording", "span", "stop"]


@contextmanager
def recording(directory: str | os.PathLike[str], *, comm: Any = None) -> Iterator[None]:
    """Record calls of a communicator into files in a directory. Collective.

    Parameters
    ----------
    directory : path
        It is made if it is not there. All ranks must name the same, and be able to write to it.
    comm : communicator, optional
        As in `hyperslab.open`.

    Raises
    ------
    StorageError
        When a rank cannot write to the directory; at the end, when something could not be written meanwhile.

    Examples
    --------
    >>> import hyperslab as hs, numpy as np, tempfile
    >>> directory = tempfile.mkdtemp()
    >>> with hs.trace.recording(directory + "/trace"), hs.open(directory + "/run.zarr", "w") as store:
    ...     report = store.write("rho", np.ones((4, 4)))
    """
    member = connect(comm)
    member.record(os.fspath(directory))
    try:
        yield
    finally:
        # A membership that broke ends by itself, and whoever broke it must be heard.
        if not member.poisoned:
            member.record(None)


def stop(*, comm: Any = None) -> None:
    """End what the environment or an argument of `hyperslab.open` began, for a communicator. Collective.

    Raises
    ------
    StorageError
        When something could not be written meanwhile.
    """
    connect(comm).record(None)


@contextmanager
def span(name: str, *, comm: Any = None, bytes: int = 0) -> Iterator[None]:  # noqa: A002 (as it is called in the files)
    """Record what an application does, so that a trace can name it; costs nothing while nothing is recorded.

    Parameters
    ----------
    name : str
        What it does, such as ``"pack"``.
    comm : communicator, optional
        Whose trace it belongs to; it must have been used before. As in `hyperslab.open`.
    bytes : int
        What it moves [B].
    """
    member = existing(comm)
    if member is None or not member.recorded:
        yield
        return
    begin = time.monotonic_ns()
    try:
        yield
    finally:
        member.note(name, begin, time.monotonic_ns(), bytes)
