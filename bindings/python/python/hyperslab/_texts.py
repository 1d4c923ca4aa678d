"""Texts of variable length: arrays of objects, of which what moves says where they lie."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hyperslab import _core

__all__ = ["filled", "places_of"]

#: Bytes that say where a text lies.
PLACE = np.dtype("V16")
#: What is no place of a text: where that is left, nothing was read.
UNREAD = np.frombuffer(b"\xff" * PLACE.itemsize, PLACE)[0]


def places_of(targets: Mapping[str, Any]) -> dict[str, Any]:
    """Of those that are arrays of objects, arrays for where their texts lie."""
    found: dict[str, Any] = {}
    for name, target in targets.items():
        each = target if isinstance(target, list) else [target]
        if each and all(isinstance(one, np.ndarray) and one.dtype.kind == "O" for one in each):
            made = [np.full(one.shape, UNREAD, PLACE) for one in each]
            found[name] = made if isinstance(target, list) else made[0]
    return found


def filled(
    core: _core.Target, read: tuple[Mapping[str, Any], Mapping[str, Any]], name: Any, *, together: bool = False
) -> Any:
    """What was read, with the texts themselves in arrays of objects; collective where ranks do so together."""
    targets, places = read
    if places:
        _fill(core, targets, places, together=together)
    return targets[name] if isinstance(name, str) else targets


def _fill(core: _core.Target, targets: Mapping[str, Any], places: Mapping[str, Any], *, together: bool) -> None:
    each = [
        (name, *pair)
        for name, place in places.items()
        for pair in (zip(targets[name], place, strict=True) if isinstance(place, list) else [(targets[name], place)])
    ]
    read = [np.array(place != UNREAD) for _, _, place in each]
    content = [(name, place[which].tobytes()) for (name, _, place), which in zip(each, read, strict=True)]
    shown: list[Any] = _core.texts(core, content, together)
    at = 0
    for (_, target, _), which in zip(each, read, strict=True):
        count = int(which.sum())
        objects = np.empty(count, object)
        objects[:] = shown[at : at + count]
        target[which] = objects
        at += count
