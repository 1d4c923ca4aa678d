"""Sudden death at a chosen moment, for the demonstration: a rank kills itself as a crash or a power cut would.

``SIGKILL`` cannot be caught: no destructor, no ``finally``, no buffer flushed, no message to the others.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MOMENTS = {
    "before-first-byte": "when the dump is due, before it has written a byte",
    "inside-analysis": "in the middle of the transfer of the analysis file",
    "between-files": "between the second and the third visualization file",
    "inside-step": "in the middle of the transfer of the Zarr step",
    "before-rename": "after everything is written and synced, before the rename that publishes the step",
}
"""The moments at which a rank may die, in the order in which a dump passes through them."""

DEATH_NOTE = "death.txt"
"""The file in which the victim says, just before its death, where it stands."""


@dataclass
class Death:
    """The plan of one rank's death; without a moment nobody dies.

    Parameters
    ----------
    moment
        One of ``MOMENTS``, or None.
    dump
        Number of the dump in which to die.
    after
        For the moments inside a transfer: time from the beginning of the call [s].
    victim
        Whether this rank is the one to die.
    directory
        Where to leave the note.
    """

    moment: str | None
    dump: int
    after: float
    victim: bool
    directory: Path
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def at(self, moment: str, dump: int) -> None:
        """Die here and now, if this is the moment."""
        if self._is_due(moment, dump):
            self._die(f"at {moment}")

    @contextmanager
    def during(self, moment: str, dump: int) -> Iterator[None]:
        """Die some time after the beginning of the calls in the body, if this is the moment.

        A second thread does it, while the first one is inside the library. If the body ends earlier the rank dies at
        its end, and the note says so.
        """
        if not self._is_due(moment, dump):
            yield
            return
        timer = threading.Timer(self.after, self._die, [f"{self.after * 1e3:.0f} ms into the call, still inside"])
        timer.start()
        yield
        self._die("the call had already returned")

    def _is_due(self, moment: str, dump: int) -> bool:
        return self.victim and moment == self.moment and dump == self.dump

    def _die(self, circumstances: str) -> None:
        with self._lock:  # only the first of two threads leaves a note
            (self.directory / DEATH_NOTE).write_text(circumstances, encoding="utf-8")
            os.kill(os.getpid(), signal.SIGKILL)
