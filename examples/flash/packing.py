"""Packing a variable element by element, as libraries once did for FLASH; hyperslab needs none of it.

HDF5 of 2001 gathered the selected elements of ``unk`` by code that recursed over dimensions down to single elements,
60 us for each, and the gaps between writes were 60 times as long as the writes (Ross et al., SC2001, section 4.2.1).
Here the application does the same, in Python, so that a trace can show such gaps and say where they come from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def element_by_element(selected: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a dense copy of a view, made one element at a time, dimension within dimension."""
    packed = np.empty(selected.shape)
    _gather(selected, packed)
    return packed


def _gather(selected: NDArray[np.float64], packed: NDArray[np.float64]) -> None:
    if selected.ndim == 1:
        for place in range(len(selected)):
            packed[place] = selected[place]
        return
    for part, into in zip(selected, packed, strict=True):
        _gather(part, into)
