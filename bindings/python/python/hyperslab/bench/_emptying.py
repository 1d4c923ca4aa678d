"""Giving room back without deleting anything.

ext4 without a journal passes over inodes that were freed in the last minutes, one by one, and making files then takes
five to forty times as long. So ``hyperslab bench peers`` and ``regret`` delete nothing while they measure: what a call
made is emptied, and all goes at the end.
"""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path

__all__ = ["Aside", "empty"]


def empty(path: Path) -> None:
    """Empty a file, or all files below a directory; their names stay."""
    for place in path.rglob("*") if path.is_dir() else [path]:
        if place.is_file():
            os.truncate(place, 0)


#: One part in so many of a file system stays free.
LEAST_FREE = 8
#: Of what one process puts aside.
_numbers = itertools.count()


class Aside:
    """Where what is not needed any more waits for the end, emptied. Of one process.

    Parameters
    ----------
    directory : Path
        Where it is made, on the file system of all that goes there. Whoever made that removes it.
    """

    def __init__(self, directory: Path) -> None:
        self._place = directory / f"aside-{os.getpid()}"
        self._place.mkdir(exist_ok=True)

    def _fills_up(self) -> bool:
        """Whether little is left of the file system: directories keep their blocks, and all keep their inodes."""
        known = os.statvfs(self._place)
        return known.f_bavail < known.f_blocks // LEAST_FREE or known.f_favail < known.f_files // LEAST_FREE

    def put(self, path: Path) -> None:
        """Put a file or directory there; nothing there is fine."""
        aside = self._place / str(next(_numbers))
        try:
            path.rename(aside)
        except FileNotFoundError:
            return
        empty(aside)
        if self._fills_up():
            shutil.rmtree(self._place)
            self._place.mkdir()
