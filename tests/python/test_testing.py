"""The strategies of `hyperslab.testing`: what they say of themselves holds, and they find what matters."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import hyperslab as hs
import numpy as np
import pytest
from hyperslab import testing
from hypothesis import find, given, settings
from hypothesis import strategies as st

RANKS = 3
FEW = settings(max_examples=25, database=None)


def held(pieces: hs.Pieces, array: np.ndarray) -> Any:
    """The local arrays of pieces of an array."""
    if isinstance(pieces, hs.Boxes):
        return [np.asarray(array[pieces.slices(number)]) for number in range(len(pieces))]
    assert isinstance(pieces, hs.Runs)
    return array.ravel()[pieces.indices()]


@FEW
@given(testing.pieces(size=RANKS), st.data())
def test_pieces_are_written_and_read(each: list[hs.Pieces], data: st.DataObject) -> None:
    shape = each[0].shape
    array = data.draw(testing.arrays(shape, "i4"))
    memory = hs.MemoryStore()

    def program(comm: hs.ThreadComm) -> Any:
        mine = each[comm.rank]
        with hs.open(memory, "w", comm=comm) as store:
            store.write("a", held(mine, array), mine, dtype="i4", fill_value=7)
            back = store.read("a", mine)
            pairs = (
                zip(back, held(mine, array), strict=True) if isinstance(mine, hs.Boxes) else [(back, held(mine, array))]
            )
            assert all(np.array_equal(one, other) for one, other in pairs)
            return store.read("a")

    expected = np.full(shape, 7, "i4")
    for mine in each:
        if isinstance(mine, hs.Boxes):
            for number in range(len(mine)):
                expected[mine.slices(number)] = array[mine.slices(number)]
        elif expected.size:
            expected.ravel()[mine.indices()] = array.ravel()[mine.indices()]
    for whole in hs.threads(RANKS, program):
        assert np.array_equal(whole, expected)


@FEW
@given(testing.arrays(), st.data())
def test_sections_are_read_as_numpy_has_them(array: np.ndarray, data: st.DataObject) -> None:
    section = data.draw(testing.sections(array.shape))
    with hs.open(hs.MemoryStore(), "w") as store:
        store.write("a", array)
        found = store.read("a", section=section)
    assert found.dtype == array.dtype
    assert np.array_equal(found, array[section])


@pytest.mark.parametrize("kind", ["block", "block(", "cyclic", "cyclic(", "gen_block", "*"])
def test_all_kinds_of_distributions_are_found(kind: str) -> None:
    found = find(testing.distributions(size=4), lambda dist: any(dim.startswith(kind) for dim in dist.dims))
    assert found.size == 4


def test_distributions_replicate_and_take_dimensions_in_any_order() -> None:
    found = find(testing.distributions(), lambda dist: 1 < dist.replication < dist.size)
    assert found.shape
    crossed = find(testing.distributions(size=6), lambda dist: [*dist._core.over] in ([1, 0], [2, 0]))
    assert len(crossed.mesh) >= 2


@pytest.mark.parametrize("kind", [hs.Boxes, hs.Runs, hs.ElementMap])
def test_all_kinds_of_pieces_are_found(kind: type) -> None:
    assert find(testing.pieces((3, 4), size=2), lambda each: type(each[1]) is kind and each[1] != each[0])


def test_importing_the_package_does_not_import_hypothesis() -> None:
    code = "import sys, hyperslab; print('hypothesis' in sys.modules, 'hyperslab.testing' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == ["False", "False"]


def test_without_hypothesis_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['hypothesis'] = None; import hyperslab.testing"
    failed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "hyperslab.testing needs the package hypothesis: pip install hyperslab[testing]" in failed.stderr
