"""What says who holds what pickles, copies, compares and draws itself."""

from __future__ import annotations

import copy
import pickle
import xml.etree.ElementTree as ET
from typing import Any

import hyperslab as hs
import numpy as np
import pytest
from hyperslab import testing
from hypothesis import given

DISTRIBUTIONS = [
    hs.Distribution((10, 6), (4,), ("block", "*")),
    hs.Distribution((10, 6, 3), (2, 2), ("cyclic(2)", "*", [1, 2])),
    hs.Distribution((10, 6), (2, 2, 2), ("block", "block(3)"), over=(2, 0)),
    hs.Distribution((10,), (3,), ("cyclic",)),
    hs.Distribution.replicated((4, 4), 3),
    hs.Distribution((), (3,), ()),
    hs.Distribution((0, 4), (2,), ("block", "*")),
    hs.Distribution((5000, 7000), (1000,), ("cyclic", "*")),
    hs.Distribution.block((4096, 4096, 4096), 100_000),
]
PIECES: list[hs.Pieces] = [
    hs.Boxes((4, 6), [(slice(0, 2), slice(0, 3)), ((2, 3), (4, 6))]),
    hs.Boxes((4, 6), []),
    hs.Boxes((4,), [((1,), (3,))]),
    hs.Boxes((), [((), ())]),
    hs.Runs((4, 6), [12, 3], [2, 1]),
    hs.Runs((4, 6), [], []),
    hs.ElementMap((2, 3), [5, 3, 1, 0, 2, 4]),
]
ALL: list[Any] = [*DISTRIBUTIONS, *PIECES]


def again(thing: Any) -> list[Any]:
    """The same, by all ways that Python has."""
    protocols = [pickle.loads(pickle.dumps(thing, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)]
    return [*protocols, copy.copy(thing), copy.deepcopy(thing)]


@pytest.mark.parametrize("thing", ALL, ids=repr)
def test_what_is_kept_is_the_same(thing: Any) -> None:
    for other in again(thing):
        assert type(other) is type(thing)
        assert other == thing
        assert hash(other) == hash(thing)
        assert repr(other) == repr(thing)
        assert {other: 1}[thing] == 1
    assert len(pickle.dumps(thing)) < 1000


@given(testing.distributions())
def test_any_distribution_is_kept(dist: hs.Distribution) -> None:
    for other in again(dist):
        assert other == dist
        for rank in range(dist.size):
            assert all(np.array_equal(a, b) for a, b in zip(other.indices(rank), dist.indices(rank), strict=True))


def test_things_that_differ_are_not_the_same() -> None:
    for i, one in enumerate(ALL):
        for j, other in enumerate(ALL):
            assert (one == other) == (i == j), (one, other)
    assert DISTRIBUTIONS[0] != "rho"
    assert PIECES[0] != 5


def test_runs_are_the_same_that_hold_the_same() -> None:
    assert hs.Runs((4, 6), [0, 1, 9], [1, 2, 0]) == hs.Runs((4, 6), [0], [3]) == hs.ElementMap((4, 6), [0, 1, 2])
    assert hs.Runs((4, 6), [3, 0], [1, 3]) != hs.Runs((4, 6), [0], [4])
    assert hs.Runs((4, 6), [0], [3]) != hs.Runs((6, 4), [0], [3])
    assert hash(hs.Runs((4, 6), [0, 1], [1, 2])) == hash(hs.Runs((4, 6), [0], [3]))


def cells(thing: Any) -> dict[str, str]:
    """What the cells of a picture say, by what they are."""
    picture = thing._repr_html_()
    assert "http" not in picture.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "<script" not in picture
    figure = ET.fromstring(picture)
    told = [title.text or "" for title in figure.iter("{http://www.w3.org/2000/svg}title")]
    return dict(text.split(": ", 1) for text in told)


def test_a_picture_says_who_holds_what() -> None:
    assert cells(hs.Distribution((10, 6), (2, 2))) == {
        "[0:5, 0:3]": "rank 0",
        "[0:5, 3:6]": "rank 1",
        "[5:10, 0:3]": "rank 2",
        "[5:10, 3:6]": "rank 3",
    }
    assert cells(hs.Distribution((6,), (2,), ("cyclic(2)",))) == {
        "[0:2]": "rank 0",
        "[2:4]": "rank 1",
        "[4:6]": "rank 0",
    }
    assert cells(hs.Distribution((4, 4, 4), (2,), ("*", "*", "block"))) == {"[0:4, 0:4, 0]": "rank 0"}
    assert cells(hs.Distribution.replicated((4, 4), 3)) == {"[0:4, 0:4]": "ranks 0-2"}
    assert cells(hs.Distribution((4,), (2, 2), ("block",))) == {"[0:2]": "ranks 0-1", "[2:4]": "ranks 2-3"}
    assert cells(hs.Distribution((4,), (2, 2), ("block",), over=(1,))) == {"[0:2]": "ranks 0, 2", "[2:4]": "ranks 1, 3"}
    assert cells(PIECES[0]) == {"box 0": "[0:2, 0:3]", "box 1": "[2:4, 3:6]"}


@pytest.mark.parametrize("thing", [each for each in ALL if hasattr(each, "_repr_html_")], ids=repr)
def test_pictures_are_small(thing: Any) -> None:
    picture = thing._repr_html_()
    assert len(picture) < 100_000
    if isinstance(thing, hs.Distribution) and thing.size > 300:
        assert f" … of {thing.size} ranks" in picture
        assert "is drawn" in picture


@given(testing.distributions(ndim_max=3))
def test_cells_are_held_by_whom_they_say(dist: hs.Distribution) -> None:
    if dist.ndim == 0 or 0 in dist.shape:
        return
    for where, told in cells(dist).items():
        low = [int(bound.split(":")[0]) for bound in where.strip("[]").split(", ")]
        high = [int(bound.split(":")[-1]) - (":" in bound) for bound in where.strip("[]").split(", ")]
        first = told.split(" ")[1].split("-")[0].strip(",")
        assert dist.owners(low) == dist.owners(high)
        assert dist.owners(low)[0] == int(first)


def test_reports_and_explanations_are_tables_and_pictures() -> None:
    with hs.open(hs.MemoryStore(), "w") as store:
        report = store.write("rho", np.ones(8))
    table = ET.fromstring(report._repr_html_())
    phases = [row[0].text for row in table.iter("tr")]
    assert phases == ["phase", *[name for name, _, _ in report.phases], "all"]
    told = hs.explain(hs.Distribution((8, 8), (2,), ("block", "*")), "f8")
    assert "<svg" in told._repr_html_()
    assert "<pre>" in told._repr_html_()
