"""A bar on the terminal while checking takes long."""

from __future__ import annotations

import sys
import time
from typing import Any

from hyperslab import _calls


class Bar:
    """Counts bytes; shown on the error output if that is a terminal, once it has taken some time. A context manager."""

    def __init__(self, what: str, total: int) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._bar: Any = None
        self._started = time.monotonic()
        self._wanted = sys.stderr.isatty()

    def add(self, nbytes: int) -> None:
        """So many more bytes are done."""
        self._done += nbytes
        if not self._wanted:
            return
        if self._bar is None and time.monotonic() - self._started > _calls.BAR_SECONDS:
            from tqdm import tqdm

            self._bar = tqdm(
                total=self._total, desc=self._what, unit="B", unit_scale=True, leave=False, file=sys.stderr
            )
        if self._bar is not None:
            self._bar.update(self._done - self._bar.n)

    def __enter__(self) -> Bar:
        """Use it as a context."""
        return self

    def __exit__(self, *_: object) -> None:
        """Take it off the terminal."""
        if self._bar is not None:
            self._bar.close()
