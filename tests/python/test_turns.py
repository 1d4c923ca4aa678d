"""Files that owners' libraries and we change in turns; after each turn, both read what a model says.

The seeds are fixed. More of them, from ``TURNS_FIRST`` on: ``TURNS_SEEDS=1000 pytest tests/python/test_turns.py``. What
they have found lies in ``test_turns_found.py``.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import pytest

from turns_hdf5 import Hdf5Game
from turns_model import Array, Tree
from turns_netcdf import NetcdfGame
from turns_play import Game
from turns_zarr import ZarrGame

GAMES: dict[str, Callable[[Path, int], Game]] = {"hdf5": Hdf5Game, "netcdf": NetcdfGame, "zarr": ZarrGame}
SEEDS = int(os.environ.get("TURNS_SEEDS", "50"))
FIRST = int(os.environ.get("TURNS_FIRST", "0"))
TURNS = 6
#: What each side does, of what its calls have, in the games of the fixed seeds.
CHANGES: dict[str, dict[str, str]] = {
    "hdf5": {
        "h5py": "New NewGroup Write Append Resize SetAttributes DropAttribute Rename Delete Link",
        "hyperslab": "New NewGroup Write Append Resize SetAttributes DropAttribute Rename Delete",
    },
    "netcdf": {
        "netCDF4": "New NewDims Write Append SetAttributes DropAttribute RenameDim",
        "hyperslab": "New Write Append SetAttributes DropAttribute Rename",
        "h5netcdf": "New SetAttributes",
        "scipy": "SetAttributes",
        "xarray": "New",
    },
    "zarr": {
        "zarr-python": "New NewGroup Write Append Resize SetAttributes Delete",
        "hyperslab": "New NewGroup Write Append Resize SetAttributes Delete Rename",
        "tensorstore": "New Write",
        "xarray": "New",
    },
}


def play(kind: str, seeds: range, folder: Path) -> Counter[str]:
    """A game of each seed; what was done in all of them."""
    counts: Counter[str] = Counter()
    for seed in seeds:
        (folder / str(seed)).mkdir()
        game = GAMES[kind](folder / str(seed), seed)
        game.play(TURNS)
        counts += game.counts
    print("\n".join(f"{count:6} {name}" for name, count in sorted(counts.items())))
    return counts


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", GAMES)
def test_both_read_what_either_changed(kind: str, tmp_path: Path) -> None:
    counts = play(kind, range(FIRST, FIRST + SEEDS), tmp_path)
    if SEEDS >= 50:
        for side, changes in CHANGES[kind].items():
            for change in changes.split():
                assert counts[f"{side}: {change}"], f"{side} has made no {change}"
        assert any("makes" in name for name in counts), "no file was made by us"


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", GAMES)
def test_seeds_of_this_day(kind: str, tmp_path: Path) -> None:
    first = 1000 * int(time.time())
    play(kind, range(first, first + 300), tmp_path)


def other_element(tree: Tree) -> bool:
    """One number is another one."""
    for array in tree.arrays().values():
        if array.values.size and array.values.dtype.kind in "iu":
            array.values.flat[-1] ^= 1
            return True
    return False


def other_type(tree: Tree) -> bool:
    """An attribute of a number is a text."""
    for _, node in tree.walk():
        for name, value in node.attributes.items():
            if not isinstance(value, str) and name != "_FillValue":
                node.attributes[name] = str(value)
                return True
    return False


def missing_array(tree: Tree) -> bool:
    """An array is not there."""
    for name, member in tree.root.members.items():
        if isinstance(member, Array):
            del tree.root.members[name]
            return True
    return False


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fault", [other_element, other_type, missing_array])
@pytest.mark.parametrize("kind", GAMES)
def test_both_notice_a_fault(kind: str, fault: Callable[[Tree], bool], tmp_path: Path) -> None:
    """The model is made wrong, after which neither side may find what it says."""
    for seed in range(3, 40, 3):
        (tmp_path / str(seed)).mkdir()
        game = GAMES[kind](tmp_path / str(seed), seed)
        game.play(1)
        if not fault(game.tree):
            continue
        with pytest.raises(AssertionError, match=r"h5py|netCDF4|zarr-python"):
            game.check()
        for ranks in (1, 3):
            # A rank that notices it leaves the others, which say so.
            with pytest.raises((AssertionError, hs.PeerError), match="ours"):
                read_all(game, ranks)
        return
    pytest.fail("there was nothing to make wrong")


def read_all(game: Game, ranks: int) -> None:
    """What we read, often enough that each element is among it."""
    opening = {name: value for name, value in game.opening.items() if name != "durable"}

    def check(file: Any, comm: Any, random: Any) -> None:
        for _ in range(30):
            game.check_ours(file, random, comm)

    game.by_ranks(ranks, "r", opening, check)
