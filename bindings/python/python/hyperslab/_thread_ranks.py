"""Ranks that are threads: where they meet, how each ends, and how all stop for who waits for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from hyperslab import _core
from hyperslab.errors import PeerError

__all__ = ["Meeting", "join", "stop"]

#: Seconds that ranks have to end when no call of theirs is under way; who computes for longer is not waited for.
GRACE_SECONDS = 1.0
#: Seconds between two looks whether they have ended.
LOOK_SECONDS = 0.02
#: Seconds after which a thread that waits for one lets Python run handlers of signals, if nothing else did.
HANDLERS_SECONDS = 0.2


class Meeting:
    """Where ranks wait for each other, unless one of them has ended."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._change = threading.Condition()
        self._here = 0
        self._turn = 0
        self._ended: str | None = None
        self._broken: list[PeerError] = []

    def wait(self) -> None:
        """Wait for all ranks."""
        with self._change:
            turn = self._turn
            self._here += 1
            if self._here == self._size:
                self._here, self._turn = 0, turn + 1
                self._change.notify_all()
                return
            self._change.wait_for(lambda: self._turn > turn or self._ended is not None)
            if self._turn == turn:
                message = f"barrier: {self._ended}\n  hint: make the call on every rank of the communicator"
                self._broken.append(PeerError(message))
                raise self._broken[-1]

    def leave(self, why: str) -> None:
        """Let nobody wait for a rank that has ended."""
        with self._change:
            if self._ended is None:
                self._ended = why
            self._change.notify_all()

    def broke(self, error: BaseException) -> bool:
        """Whether it was raised here."""
        return any(error is one for one in self._broken)


def join(worker: threading.Thread) -> None:
    """Wait for its end, and run handlers of signals meanwhile.

    A signal that comes when Python has looked for signals and does not wait yet ends no wait: a wait without a limit
    would then hold back the handler until the thread ends.
    """
    while worker.is_alive():
        worker.join(HANDLERS_SECONDS)


def stop(crew: _core.Crew, meeting: Meeting, workers: Sequence[threading.Thread]) -> None:
    """End the calls of all ranks, since a signal stopped the thread that waits for them.

    That thread goes on when no call and no request of theirs is under way. Calls that they come to fail.
    """
    until: float | None = None
    while True:
        # Another signal changes nothing: the first one is what the program is told of.
        try:
            crew.stop()
            meeting.leave("a signal stopped the thread that waits for the ranks")
            while any(worker.is_alive() for worker in workers):
                if crew.at_work:
                    until = None
                elif until is None:
                    until = time.monotonic() + GRACE_SECONDS
                elif time.monotonic() > until:
                    return
                time.sleep(LOOK_SECONDS)
            while crew.at_work:
                time.sleep(LOOK_SECONDS)
        except BaseException:  # noqa: BLE001 (as above)
            continue
        else:
            return
