"""Random expressions over arrays, as texts and as what NumPy makes of them."""

from __future__ import annotations

import random
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Types that expressions compute with.
KINDS = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]

BINARY = ["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<", "<=", ">", ">=", "==", "!="]

#: What names in the texts mean to Python's parser. `min` and `max` are NumPy's of two arrays.
FUNCTIONS: dict[str, Any] = {
    "abs": np.abs,
    "sqrt": np.sqrt,
    "isnan": np.isnan,
    "min": np.minimum,
    "max": np.maximum,
}


def values_of(kind: str, count: int, rng: np.random.Generator) -> NDArray[Any]:
    """Values of a type, among them those at its ends."""
    dtype = np.dtype(kind)
    if dtype.kind == "b":
        return rng.integers(0, 2, count).astype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        small = rng.integers(0 if dtype.kind == "u" else -9, 10, count).astype(dtype)
        ends = np.array([info.min, info.max, 0, 1, info.max - 1, 7], dtype)
        return np.where(rng.random(count) < 0.3, rng.choice(ends, count), small)
    ends = np.array(
        [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, np.finfo(dtype).max, np.finfo(dtype).tiny], dtype
    )
    near = (rng.integers(-40, 40, count) / 4).astype(dtype)
    return np.where(rng.random(count) < 0.3, rng.choice(ends, count), near)


def arrays_of(count: int, seed: int) -> dict[str, NDArray[Any]]:
    """An array of each type, by names that say which."""
    rng = np.random.default_rng(seed)
    return {f"a_{np.dtype(kind).name}": values_of(kind, count, rng) for kind in KINDS}


LITERALS = [
    "0",
    "1",
    "2",
    "3",
    "-1",
    "7",
    "100",
    "300",
    "0.1",
    "2.5",
    "-0.5",
    "1e10",
    "70000",
    "(2 * 3 - 1)",
    "(7 // 2.5)",
]


def text_of(rng: random.Random, names: list[str], depth: int, *, outer: bool = True) -> str:
    """An expression that Python can read, too. Each part of it but plain numbers is about arrays.

    Powers stand outside, since what is computed of one would tell more of it than its last bits.
    """
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(names)
    kind = rng.random()
    one = text_of(rng, names, depth - 1, outer=False)
    if kind < 0.1:
        return f"{rng.choice(['-', '~', '+'])}({one})"
    if kind < 0.2:
        return f"{rng.choice(['abs', 'sqrt', 'isnan'])}({one})"
    other = rng.choice(LITERALS) if rng.random() < 0.4 else text_of(rng, names, depth - 1, outer=False)
    if rng.random() < 0.3:
        one, other = other, one
    if kind < 0.3:
        return f"{rng.choice(['min', 'max'])}({one}, {other})"
    sign = rng.choice(BINARY)
    return f"({one}) {sign if outer or sign != '**' else '*'} ({other})"


def expected(text: str, arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any] | None:
    """What NumPy makes of it, or nothing where it refuses."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = eval(text, dict(FUNCTIONS), dict(arrays))
        except (TypeError, ValueError, OverflowError, ZeroDivisionError):
            return None
    shape = next(iter(arrays.values())).shape
    return np.broadcast_to(np.asarray(found), shape)


def alike(found: NDArray[Any], wanted: NDArray[Any], *, exact: bool) -> bool:
    """Whether values are the same, to the last bit. NaN is NaN, and powers may differ in the last bits."""
    if found.dtype != wanted.dtype:
        return False
    if found.dtype.kind != "f":
        return bool(np.array_equal(found, wanted))
    nan = np.isnan(wanted)
    if not np.array_equal(np.isnan(found), nan):
        return False
    if not exact:
        with np.errstate(all="ignore"):
            return bool(np.allclose(found[~nan], wanted[~nan], rtol=float(4 * np.finfo(wanted.dtype).eps), atol=0))
    return bool(
        np.array_equal(found[~nan], wanted[~nan]) and np.array_equal(np.signbit(found[~nan]), np.signbit(wanted[~nan]))
    )
