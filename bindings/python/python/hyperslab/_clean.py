"""Removing what programs that ended have left."""

from __future__ import annotations

import os
from typing import NamedTuple

from hyperslab import _core
from hyperslab._paths import local_path


class Cleaned(NamedTuple):
    """One thing that is hidden or marked, and what is or would be done about it."""

    #: What it is.
    kind: str
    #: Where it is.
    path: str
    #: What is or would be done, and why.
    note: str


def clean(path: str | os.PathLike[str], *, dry_run: bool) -> list[Cleaned]:
    """Remove what dead or unknown owners left at a store or file: what was not published, and markers of updates.

    Parameters
    ----------
    path : path
        The store or file.
    dry_run : bool
        Whether nothing is removed, and it is only told what would be.

    Returns
    -------
    list of Cleaned
        What was found, also what was kept because its owner lives.
    """
    return [Cleaned(*each) for each in _core.clean(local_path(path), dry_run)]
