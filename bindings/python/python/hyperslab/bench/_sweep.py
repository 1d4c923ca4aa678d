"""The sweep of all that the library is for, and a seeded sample of it.

The sample is stratified. In each round every family occurs once, in an order of its own, and all nine combinations of
number of ranks and mode (write, write with fsync, read) occur; after nine rounds every family has met every
combination once. Sizes are log-uniform, and those of one family follow a sequence without clusters. The n-th case
depends on the seed and n alone, so that a smaller sample is the beginning of a larger one.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from hyperslab.bench._cases import Case, Direction
from hyperslab.bench._families import FAMILIES, LARGEST_BYTES, MOST_RUNS, SMALLEST_BYTES, Draw

__all__ = ["MODES", "RANKS", "sample", "sweep"]

RANKS = (2, 4, 8)
#: Direction, and whether writes are durable.
MODES: tuple[tuple[Direction, bool], ...] = (("write", False), ("write", True), ("read", False))
#: Steps of this part of an interval never come close to where they were.
GOLDEN = (math.sqrt(5) - 1) / 2


def sweep(seed: int, ranks: Sequence[int] = RANKS, largest_bytes: int = LARGEST_BYTES) -> Iterator[Case]:
    """Cases without end.

    Parameters
    ----------
    seed : int
        Another seed gives another sample.
    ranks : sequence of int
        Numbers of ranks.
    largest_bytes : int
        Most bytes that a case stores.
    """
    chance = random.Random(seed)
    combinations = list(itertools.product(ranks, MODES))
    chance.shuffle(combinations)
    families = list(FAMILIES)
    chance.shuffle(families)
    first_size = {family: chance.random() for family in families}
    numbers = itertools.count()
    for turn in itertools.count():
        for place in random.Random(f"{seed} {turn}").sample(range(len(families)), len(families)):
            family, number = families[place], next(numbers)
            count, (direction, durable) = combinations[(turn + place) % len(combinations)]
            share = (first_size[family] + turn * GOLDEN) % 1
            wanted = SMALLEST_BYTES * (largest_bytes / SMALLEST_BYTES) ** share
            # A chance of its own for each case, so that none depends on how much the ones before it drew.
            draw = Draw(random.Random(f"{seed} {number}"), number, family, count, direction, durable, int(wanted))
            yield _bounded(draw)


def _bounded(draw: Draw) -> Case:
    """The case, of fewer bytes where there would be more runs than a case may have."""
    while True:
        case = FAMILIES[draw.family](draw)
        if case.runs <= MOST_RUNS:
            return case
        draw = replace(draw, bytes=draw.bytes // 4)


def sample(seed: int, number: int, ranks: Sequence[int] = RANKS, largest_bytes: int = LARGEST_BYTES) -> list[Case]:
    """The first cases of the sweep."""
    return list(itertools.islice(sweep(seed, ranks, largest_bytes), number))
