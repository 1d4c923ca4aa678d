"""A game of turns: a file that others make, and that others and we change in turns, read by both after each."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar

import hyperslab as hs
import numpy as np

import turns_changes as to
import turns_ours as ours
from attribute_cases import told
from turns_model import Tree, chance, one_of


class Game(ABC):
    """What differs from format to format."""

    #: How a refusal of ours reads that the pages describe, by what it is called.
    REFUSALS: ClassVar[dict[str, str]]
    #: Whether a group lists the arrays of all groups below, as groups of files do.
    DEEP = True
    #: Whether an object can have several names.
    HAS_ALIASES = False

    def __init__(self, folder: Path, seed: int) -> None:
        self.seed = seed
        self.folder = folder
        self.random = np.random.default_rng([seed, 60])
        self.tree = Tree()
        self.turns: list[to.Turn] = []
        #: What was done, by whom, and what was refused.
        self.counts: Counter[str] = Counter()
        #: Whether we make the file by the turn under way.
        self.makes = False
        #: How we open it.
        self.opening: dict[str, Any] = {"durable": False}

    @property
    @abstractmethod
    def path(self) -> Path:
        """Of the file or store."""

    @abstractmethod
    def make(self) -> None:
        """An owner makes the file, with nothing in it."""

    def we_can_make(self) -> bool:
        """Whether we can make the file in place of an owner."""
        return True

    def made_as(self, changes: list[to.Change]) -> dict[str, Any]:
        """How we open a new file that will be changed so."""
        return {}

    @abstractmethod
    def owners(self) -> list[str]:
        """Others that may change the file."""

    @abstractmethod
    def some_change(self, tree: Tree, side: str) -> to.Change | None:
        """A change that a side can make, if one is found."""

    @abstractmethod
    def carry_out(self, side: str, changes: list[to.Change]) -> None:
        """An owner makes changes in one opening."""

    @abstractmethod
    def check(self) -> None:
        """All owners read what the model has."""

    def play(self, turns: int) -> None:
        """Make a file, and change it in turns."""
        try:
            if chance(self.random, 0.3) and self.we_can_make():
                self.makes = True
                self.turn("hyperslab", changes=6)
                self.makes = False
            else:
                self.make()
                self.turn("owner", changes=6)
            for _ in range(turns):
                self.turn("hyperslab" if chance(self.random, 0.6) else "owner", changes=int(self.random.integers(1, 4)))
        except Exception as error:
            said = "\n".join(map(str, self.turns))
            error.add_note(f"{type(self).__name__}, seed {self.seed}, {self.path.name}:\n{said}")
            raise

    def turn(self, side: str, *, changes: int) -> None:
        """Some changes by a side, after which both sides read everything."""
        side = one_of(self.random, self.owners()) if side == "owner" else side
        turn = to.Turn(side, ours.some_ranks(self.random), self.planned(side, changes))
        self.turns.append(turn)
        if side == "hyperslab":
            done = self.carry_out_ours(turn)
        else:
            self.carry_out(side, turn.changes)
            done = turn.changes
        for change in done:
            change.apply(self.tree)
            self.counts[f"{side}: {'makes ' * self.makes}{type(change).__name__}"] += 1
        self.check()
        ranks = ours.some_ranks(self.random)
        opening = {name: value for name, value in self.opening.items() if name != "durable"}
        self.by_ranks(ranks, "r", opening, lambda file, comm, random: self.check_ours(file, random, comm))

    def planned(self, side: str, count: int) -> list[to.Change]:
        """Changes one after another, tried on a copy of the model."""
        copy, changes = deepcopy(self.tree), []
        for _ in range(count):
            for _ in range(9):
                change = self.some_change(copy, side)
                if change is None:
                    continue
                after = deepcopy(copy)
                change.apply(after)
                if after.is_sound():
                    copy = after
                    changes.append(change)
                    break
        return changes

    def carry_out_ours(self, turn: to.Turn) -> list[to.Change]:
        """Make changes by our ranks, up to the first that we refuse; those that were made."""
        before = deepcopy(self.tree)
        done: dict[int, int] = {}
        refused: list[str] = []

        def change(file: Any, comm: Any, random: np.random.Generator) -> None:
            tree = deepcopy(before)
            rank = ours.rank_of(comm)
            done[rank] = 0
            for number, each in enumerate(turn.changes):
                if number and self.HAS_ALIASES and not self.makes:
                    # What one name of an object gets, another one shows after that.
                    file.refresh()
                try:
                    ours.carry_out(file, each, tree, random, comm)
                except hs.Error as error:
                    if rank == 0:
                        refused.append(f"{type(each).__name__}: {self.refusal(error)}")
                    return
                each.apply(tree)
                done[rank] += 1

        try:
            made_as = self.made_as(turn.changes) if self.makes else {}
            self.by_ranks(turn.ranks, "w" if self.makes else "r+", {**self.opening, **made_as}, change)
        except hs.Error as error:
            refused.append(f"opening: {self.refusal(error)}")
            assert not any(done.values())
        assert len({*done.values()}) <= 1, done
        for each in refused:
            self.counts[f"refused: {each}"] += 1
        return turn.changes[: done.get(0, 0)]

    def refusal(self, error: hs.Error) -> str:
        """Which of the refusals an error is that the pages describe; any other is a failure."""
        for name, pattern in self.REFUSALS.items():
            if re.search(pattern, str(error), re.DOTALL):
                return name
        raise error

    def by_ranks(self, ranks: int, mode: Any, opening: dict[str, Any], run: Any) -> None:
        """Open the file on so many ranks."""
        seed = [self.seed, len(self.turns), ranks]

        def one(comm: Any) -> None:
            with hs.open(self.path, mode, comm=comm, **opening) as file:
                run(file, comm, np.random.default_rng(seed))

        if ranks == 1:
            one(None)
        else:
            hs.threads(ranks, one)

    def check_ours(self, file: Any, random: np.random.Generator, comm: Any) -> None:
        """What we read."""
        ours.check(file, self.tree, random, comm, deep=self.DEEP)


def same_attributes(found: dict[str, Any], expected: dict[str, Any], what: str) -> None:
    """What an owner reads."""
    assert sorted(found) == sorted(expected), f"{what}: attributes {sorted(found)}, expected {sorted(expected)}"
    for name, value in expected.items():
        assert told(found[name]) == told(value), f"{what}: attribute {name!r} is {found[name]!r}, expected {value!r}"
