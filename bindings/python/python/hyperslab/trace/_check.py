"""Whether a block of a trace says what ``docs/trace.md`` says that it does, so that its readers can rely on it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperslab.errors import CorruptError

__all__ = ["check_header", "check_same_run", "check_spans"]

#: Most ranks: MPI counts them in 32 bits with a sign.
RANKS_MAX = 2**31
#: Times and numbers of calls fit into 64 bits with a sign.
NUMBER_MAX = 2**63


def _is_text(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_number(value: Any, below: int = NUMBER_MAX) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below


def _is_quantity(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf


def _is_list(value: Any, of: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(of(item) for item in value)


def _is_phase(value: Any) -> bool:
    return isinstance(value, dict) and _is_text(value.get("phase")) and _is_quantity(value.get("seconds"))


_Rule = tuple[str, Callable[[Any], bool]]
_TEXT: _Rule = ("a text", _is_text)
_NUMBER: _Rule = ("an integer of 0 or more", _is_number)
_RANK: _Rule = ("a number of a rank", lambda value: _is_number(value, RANKS_MAX))

#: What each block says, and how.
_REQUIRED: dict[str, _Rule] = {
    "run": _TEXT,
    "simulated": ("true or false", lambda value: isinstance(value, bool)),
    "host": _TEXT,
    "rank": _RANK,
    "size": _RANK,
    "clients": _RANK,
    "call": ("an integer of 0 or more, or null", lambda value: value is None or _is_number(value)),
    "what": _TEXT,
    "begin_ns": _NUMBER,
    "end_ns": _NUMBER,
    "span_ns": ("a number of 0 or more", _is_quantity),
    "dropped": _NUMBER,
    "objects": ("a list of texts", lambda value: _is_list(value, _is_text)),
}
#: What some blocks say.
_OPTIONAL: dict[str, _Rule] = {
    "encoding_ns": _NUMBER,
    "failed": ("a text, or null", lambda value: value is None or _is_text(value)),
    "strategy": _TEXT,
    "bytes": _NUMBER,
    "servers": ("a list of ranks", lambda value: _is_list(value, _RANK[1])),
    "predicted": ('a list of {"phase", "seconds"}', lambda value: _is_list(value, _is_phase)),
}


def check_header(header: Any, where: str) -> dict[str, Any]:
    """The header of a block, which `where` names.

    Raises
    ------
    CorruptError
        When it is no object, when something is missing, of another type or out of its range.
    """

    def fail(what: str, expected: str, found: Any) -> CorruptError:
        text = repr(found)
        text = text if len(text) <= 80 else f"{text[:80]}..."
        return CorruptError(f"{where}: {what} should be {expected}, but is {text}")

    if not isinstance(header, dict):
        what = "the header"
        raise fail(what, "a JSON object", header)
    for name, (expected, holds) in (_REQUIRED | _OPTIONAL).items():
        if name not in header:
            if name in _OPTIONAL:
                continue
            message = f"{where}: the header has no {name!r}, which should be {expected}"
            raise CorruptError(message)
        if not holds(header[name]):
            what = f"{name!r} of the header"
            raise fail(what, expected, header[name])
    size, clients, rank = header["size"], header["clients"], header["rank"]
    if not (0 < clients <= size and rank < size):
        message = f"{where}: rank {rank} of {size} ranks, of which {clients} are clients, cannot be"
        raise CorruptError(message)
    if header["end_ns"] < header["begin_ns"]:
        message = f"{where}: it ends at {header['end_ns']} ns, before it begins, at {header['begin_ns']} ns"
        raise CorruptError(message)
    return header


def check_spans(spans: NDArray[Any], size: int, kinds: int, none: int, where: str) -> None:
    """Spans of a block of a run of so many ranks, of which there are so many kinds.

    Raises
    ------
    CorruptError
        When one is of an unknown kind, ends before it begins, or names a rank that is none.
    """
    peer = spans["peer"]
    wrong = {
        "is of no kind that there is": (spans["kind"] >= kinds) | (spans["of"] >= kinds),
        "ends before it begins": spans["end"] < spans["begin"],
        "is at no time that there is": spans["end"] >= np.uint64(NUMBER_MAX),
        f"names a rank of which there are {size} only": (peer != none) & (peer >= size),
    }
    for what, of in wrong.items():
        if of.any():
            message = f"{where}: span {int(np.argmax(of))} {what}"
            raise CorruptError(message)


def check_same_run(first: dict[str, Any], header: dict[str, Any]) -> None:
    """Two blocks of a run.

    Raises
    ------
    CorruptError
        When they differ in what is the same for all blocks of a run.
    """
    for name in ("size", "clients", "simulated"):
        if first[name] != header[name]:
            message = (
                f"two blocks of run '{first['run']}' differ in {name!r}: {first[name]!r} and {header[name]!r}\n"
                "  hint: one of its files is damaged, or of another run"
            )
            raise CorruptError(message)
