"""Attributes that were read compare, print and travel as dicts do, and refuse changes, which would vanish."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest

TOLD: dict[str, Any] = {"unit": "m", "n": [1, 2.5, [3]], "of": {"a": {"b": [None, True]}}, "x": 0.5}

#: Each way to change a dict, and one in each way to change a list.
CHANGES: tuple[Callable[[Any], Any], ...] = (
    lambda a: a.__setitem__("unit", "s"),
    lambda a: a.__setitem__("new", 1),
    lambda a: a.__delitem__("unit"),
    lambda a: a.update(unit="s"),
    lambda a: a.update({"unit": "s"}),
    lambda a: a.setdefault("new", 1),
    lambda a: a.pop("unit"),
    lambda a: a.popitem(),
    lambda a: a.clear(),
    lambda a: a.__ior__({"unit": "s"}),
    lambda a: a["of"].__setitem__("a", 1),
    lambda a: a["of"]["a"]["b"].append(1),
    lambda a: a["n"].__setitem__(0, 2),
    lambda a: a["n"].__setitem__(slice(None), []),
    lambda a: a["n"].__delitem__(0),
    lambda a: a["n"].append(1),
    lambda a: a["n"].extend([1]),
    lambda a: a["n"].insert(0, 1),
    lambda a: a["n"].remove(1),
    lambda a: a["n"].pop(),
    lambda a: a["n"].clear(),
    lambda a: a["n"].sort(key=str),
    lambda a: a["n"].reverse(),
    lambda a: a["n"].__iadd__([1]),
    lambda a: a["n"].__imul__(2),
    lambda a: a["n"][2].append(4),
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[hs.Store]:
    with hs.open(tmp_path / "run.zarr", "w") as made:
        made.write("rho", np.ones(3), attributes=TOLD)
        with made.step("s", attributes=TOLD) as step:
            step.write("rho", np.ones(3, complex), fill_value=1 + 2j)
        yield made


def readers(store: hs.Store) -> dict[str, Callable[[], Any]]:
    group = store.group("s")
    return {"array": lambda: store["rho"].attributes, "group": lambda: group.attributes}


def test_a_change_is_an_error_that_changes_nothing(store: hs.Store) -> None:
    for what, read in readers(store).items():
        for number, change in enumerate(CHANGES):
            attributes = read()
            with pytest.raises(TypeError, match="read from a store"):
                change(attributes)
            assert attributes == TOLD, (what, number)
            assert read() == TOLD


def test_assignments_are_refused_with_a_hint(store: hs.Store) -> None:
    for read in readers(store).values():
        with pytest.raises(TypeError, match=r"hint: its copy\(\) is an ordinary one"):
            read()["unit"] = "s"
        with pytest.raises(TypeError):
            read()["n"][0] += 1
        with pytest.raises(TypeError):
            del read()["of"]["a"]


def test_they_compare_print_and_travel_as_dicts_do(store: hs.Store) -> None:
    for read in readers(store).values():
        attributes = read()
        assert attributes == TOLD
        assert TOLD == attributes  # noqa: SIM300 (either side may ask)
        assert attributes != {**TOLD, "x": 1}
        assert attributes["n"] == [1, 2.5, [3]]
        assert isinstance(attributes, dict)
        assert isinstance(attributes["n"], list)
        assert repr(attributes) == repr(TOLD)
        assert list(attributes) == list(TOLD)
        assert json.dumps(attributes) == json.dumps(TOLD)
        assert attributes | {"x": 1} == TOLD | {"x": 1}
        assert {**attributes} == TOLD


def test_copies_can_be_changed_all_through(store: hs.Store) -> None:
    for read in readers(store).values():
        for make in (
            lambda a: a.copy(),
            copy.copy,
            copy.deepcopy,
            lambda a: pickle.loads(pickle.dumps(a)),
            lambda a: json.loads(json.dumps(a)),
        ):
            made = make(read())
            assert made == TOLD
            made["new"] = made["n"].pop()
            made["of"]["a"]["b"].append(made["new"])
            made["new"] += [4]
            assert made["of"]["a"]["b"] == [None, True, [3, 4]]
            assert read() == TOLD
        alone = copy.copy(read()["n"])
        alone[2].append(4)
        assert alone == [1, 2.5, [3, 4]]


def test_they_can_be_given_to_another_array(store: hs.Store) -> None:
    store.write("u", np.ones(3), attributes=store["rho"].attributes)
    assert store["u"].attributes == TOLD
    with store.step("t", attributes=store.group("s").attributes) as step:
        step.set_attributes(store["rho"].attributes | {"n": store["rho"].attributes["n"]})
    assert store.group("t").attributes == TOLD


def test_a_fill_value_of_two_numbers_cannot_be_changed_either(store: hs.Store) -> None:
    fill = store.group("s")["rho"].fill_value
    assert fill == [1.0, 2.0]
    with pytest.raises(TypeError):
        fill[0] = 3.0
