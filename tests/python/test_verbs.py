"""Every verb is collective or local, and its page says which."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import hyperslab as hs
import numpy as np
import pytest

CLASSES = [hs.Group, hs.Step, hs.RawFile, hs.Request]
VERBS = [
    (each, name)
    for each in CLASSES
    for name, member in vars(each).items()
    if inspect.isfunction(member) and (not name.startswith("_") or name in {"__contains__", "__iter__", "__getitem__"})
]


@pytest.mark.parametrize(("owner", "name"), VERBS, ids=lambda value: getattr(value, "__name__", value))
def test_a_page_says_whether_its_verb_is_collective_or_local(owner: type, name: str) -> None:
    page = inspect.getdoc(getattr(owner, name)) or ""
    first = page.partition("\n\n")[0]
    said = re.findall(r"\b(Collective|Local)\b", first)
    assert len(said) == 1, f"{owner.__name__}.{name}: {first!r}"


def test_overwriting_an_array_removes_no_step(tmp_path: Path) -> None:
    with hs.open(tmp_path / "a.zarr", "w") as store:
        with store.step("s") as step:
            step.write({"rho": np.ones(4), "u": np.ones(3)})
        for arrays in ({"s": np.zeros(2)}, {"n": np.zeros(2), "s": np.zeros(2)}):
            with pytest.raises(hs.ExistsError, match=r"'s' in .* is a group, or a step"):
                store.write(arrays, overwrite=True)
        assert (store.arrays(), store.groups()) == ([], ["s"])
        assert store.group("s").read("rho").tolist() == [1.0] * 4
