"""What the package tells `logging`, under the name ``hyperslab``: nothing, until a program loads that module.

======= ===================================================================================================
DEBUG   what was opened, and how; each transfer, with what was chosen and what it took (by rank 0)
INFO    waiting for more than a second for other ranks or requests; reading again what has changed meanwhile
======= ===================================================================================================

Nothing is configured here. What is wrong, but no error, is a warning of `warnings`;
``logging.captureWarnings(True)`` brings those into the log, too.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from hyperslab import _core

if TYPE_CHECKING:
    from logging import Logger

__all__ = ["again", "called", "listener", "noted"]

#: Waiting for less is not told [s].
WAIT_SECONDS = 1.0

_loggers: list[Logger] = []


def listener() -> Logger | None:
    """The logger, where somebody may listen to what it is told; others need not find out what to tell."""
    logging: Any = sys.modules.get("logging")
    if logging is None:
        return None
    if not _loggers:
        logger: Logger = logging.getLogger("hyperslab")
        logger.addHandler(logging.NullHandler())
        _loggers.append(logger)
    return _loggers[0] if _loggers[0].isEnabledFor(logging.INFO) else None


def noted(comm: _core.Comm, text: str, *values: object) -> None:
    """Tell what happened, by rank 0."""
    log = listener()
    if log is not None and comm.rank == 0:
        log.debug(text, *values)


def called(comm: _core.Comm, what: str, result: object, seconds: float) -> None:
    """Tell of a call that is over: by each rank, that it waited; by rank 0, what was done."""
    log = listener()
    if log is None or not isinstance(result, _core.Report):
        return
    # Before it begins, a call waits for requests; opening it ends when all ranks have come.
    opening = sum(measured for phase, _, measured in result.phases if phase == "open")
    waited = max(seconds - result.seconds, 0.0) + opening
    if waited > WAIT_SECONDS:
        log.info("rank %d: %s waited %.1f s for other ranks or requests", comm.rank, what, waited)
    if comm.rank == 0:
        log.debug("%s", result)


def again(error: Exception) -> None:
    """Tell that a call is made again, and why."""
    log = listener()
    if log is not None:
        log.info("once more: %s", error)
