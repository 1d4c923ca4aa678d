"""Texts of variable length: arrays of objects, of which what moves says where they lie."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hyperslab import _core
from hyperslab._types import is_texts
from hyperslab._values import shown
from hyperslab.errors import InvalidError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SLOTS", "Slots", "all_in_slots", "filled", "places_of"]

#: How the compiled module calls slots of texts that are not known yet: of one byte.
SLOTS = "|T1"
#: What follows a text in its slot, behind which are zeros only.
END = b"\xff"


#: Types of elements that pandas and xarray say texts to be.
TEXTS_OF_OTHERS = {"object", "str", "string", "StringDType()"}


class Slots:
    """Texts of any length of this rank, as they move: in slots of as many bytes as the longest one needs."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.array.shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.array.ndim


def all_in_slots(parts: Mapping[Any, Any], dtype: Any, infos: Mapping[str, Any]) -> dict[Any, Any]:
    """Local arrays, of which those of texts of any length are in slots.

    Others of texts become such where that is asked for, or where the array that is there has them.
    """
    wanted = is_texts(dtype)
    there = {name for name, info in infos.items() if info.dtype.kind == "O"}
    return {name: _in_slots(name, local, texts=wanted or str(name) in there) for name, local in parts.items()}


def _in_slots(name: str, local: Any, *, texts: bool) -> Any:
    """A local array in slots, or several, if they are texts of any length; else as they were.

    Those are arrays of objects and of NumPy's StringDType; where `texts` are asked for, also others of texts. Bytes are
    texts as files have them: what was read from an HDF5 file can be written as it is.

    Raises
    ------
    InvalidError
        When an element is no text.
    """
    kinds = "OTUS" if texts else "OT"
    if type(local) is np.ndarray and local.dtype.kind not in kinds:
        return local
    if isinstance(local, (list, tuple)):
        if not local or not all(isinstance(one, str | bytes) for one in local):
            return [_in_slots(name, one, texts=texts) for one in local]
        if texts:
            local = np.array(local, object)
    elif str(getattr(local, "dtype", "")) in TEXTS_OF_OTHERS and not isinstance(local, np.ndarray):
        local = np.asarray(local, object)
    if not isinstance(local, np.ndarray) or _is_masked(local):
        return local
    if local.dtype.kind not in kinds:
        return local
    each: list[Any] = local.astype(object).ravel().tolist()
    for number, one in enumerate(each):
        if not isinstance(one, str | bytes):
            place = tuple(map(int, np.unravel_index(number, local.shape)))
            message = (
                f"texts of '{name}' are expected, found {shown(one)} at {place} of this rank's part\n"
                "  hint: make texts of all elements, as with str(), or numbers of all, as with array.astype(float)"
            )
            raise InvalidError(message)
    try:
        made = [(one.encode() if isinstance(one, str) else one) + END for one in each]
    except UnicodeEncodeError as error:
        message = f"a text of '{name}' cannot be UTF-8: {error}\n  hint: replace lone surrogates"
        raise InvalidError(message) from None
    slots = np.array(made, f"S{max(map(len, made), default=1)}").reshape(local.shape)
    return Slots(slots)


def _is_masked(array: NDArray[Any]) -> bool:
    """Whether it is one of NumPy's masked arrays. Their module takes long to import, which few programs do."""
    return "numpy.ma" in sys.modules and isinstance(array, np.ma.MaskedArray)


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
