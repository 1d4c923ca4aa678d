"""Attributes are changed by assignments; values that were read refuse changes, which would vanish."""

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

#: Ways to change a value that was read, of which nobody would hear.
CHANGES: tuple[Callable[[Any], Any], ...] = (
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
def store(tmp_path: Path) -> Iterator[hs.Group]:
    with hs.open(tmp_path / "run.zarr", "w") as made:
        made.write("rho", np.ones(3), attributes=TOLD)
        with made.step("s", attributes=TOLD) as step:
            step.write("rho", np.ones(3, complex), fill_value=1 + 2j)
        yield made


def readers(store: hs.Group) -> dict[str, Callable[[], Any]]:
    group = store.group("s")
    return {"array": lambda: store["rho"].attrs, "group": lambda: group.attrs}


def test_a_change_is_an_error_that_changes_nothing(store: hs.Group) -> None:
    for what, read in readers(store).items():
        for number, change in enumerate(CHANGES):
            attributes = read()
            with pytest.raises(TypeError, match="read from a store"):
                change(attributes)
            assert attributes == TOLD, (what, number)
            assert read() == TOLD


def test_assignments_to_values_are_refused_with_a_hint(store: hs.Group) -> None:
    for read in readers(store).values():
        with pytest.raises(TypeError, match=r"hint: its copy\(\) is an ordinary one"):
            read()["n"][0] += 1
        with pytest.raises(TypeError):
            del read()["of"]["a"]


def test_they_are_changed_in_the_store_and_all_else_stays(store: hs.Group) -> None:
    import zarr

    group = store.group("s")
    for what, attrs, path in (
        ("array", store["rho"].attrs, "rho"),
        ("step", group.attrs, "s"),
        ("root", store.attrs, ""),
    ):
        attrs.replace(TOLD)
        attrs["unit"] = "s"
        attrs.update({"new": np.arange(2)}, x=np.float32(0.25))
        del attrs["of"]
        expected = {"unit": "s", "n": [1, 2.5, [3]], "x": 0.25, "new": [0, 1]}
        assert attrs == expected, what
        with pytest.raises(KeyError):
            del attrs["none"]
        with hs.open(store.path) as again:
            found = {
                "array": lambda: again["rho"].attrs,
                "step": lambda: again.group("s").attrs,
                "root": lambda: again.attrs,
            }
            assert found[what]() == expected
        seen = dict(zarr.open(f"{store.path}/{path}", mode="r").attrs)
        assert {name: value for name, value in seen.items() if name != "hyperslab_step"} == expected
    assert store.steps[:] == ["s"], "a step whose attributes change stays one"
    assert store.read("rho").tolist() == [1, 1, 1]
    group.attrs.clear()
    assert (dict(group.attrs), store.steps.latest()) == ({}, "s")


def test_nobody_may_change_attributes_of_what_is_open_for_reading(store: hs.Group) -> None:
    with hs.open(store.path) as reader, pytest.raises(hs.InvalidError, match="reading only"):
        reader["rho"].attrs["unit"] = "s"
    with pytest.raises(hs.InvalidError, match="'unit' is of type object"):
        store["rho"].attrs["unit"] = object()
    assert store["rho"].attrs == TOLD


def test_they_compare_print_and_travel_as_dicts_do(store: hs.Group) -> None:
    for read in readers(store).values():
        attributes = read()
        assert attributes == TOLD
        assert TOLD == attributes  # noqa: SIM300 (either side may ask)
        assert attributes != {**TOLD, "x": 1}
        assert attributes["n"] == [1, 2.5, [3]]
        assert isinstance(attributes["n"], list)
        assert repr(attributes) == repr(TOLD)
        assert list(attributes) == list(TOLD)
        assert json.dumps(dict(attributes)) == json.dumps(TOLD)
        assert attributes | {"x": 1} == TOLD | {"x": 1}
        assert {**attributes} == TOLD


def test_copies_can_be_changed_all_through(store: hs.Group) -> None:
    for read in readers(store).values():
        for make in (
            lambda a: a.copy(),
            copy.copy,
            copy.deepcopy,
            lambda a: pickle.loads(pickle.dumps(a)),
            lambda a: json.loads(json.dumps(dict(a))),
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


def test_they_can_be_given_to_another_array(store: hs.Group) -> None:
    store.write("u", np.ones(3), attributes=store["rho"].attrs)
    assert store["u"].attrs == TOLD
    with store.step("t", attributes=store.group("s").attrs) as step:
        step.attrs.replace(store["rho"].attrs | {"n": store["rho"].attrs["n"]})
    assert store.group("t").attrs == TOLD


def test_a_fill_value_of_two_numbers_is_one_complex_number(store: hs.Group) -> None:
    fill = store.group("s")["rho"].fill_value
    assert fill == 1 + 2j
    assert fill.dtype == store.group("s")["rho"].dtype
