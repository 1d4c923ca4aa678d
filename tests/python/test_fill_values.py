"""One fill value for arrays of several types in one call: each array has it as a number of its own type."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest
import zarr

#: An array of each kind of number, and what of 0, 1, 100, -3 and 0.5 it can hold.
KINDS: dict[str, tuple[Any, ...]] = {
    "bool": (0, 1),
    "int8": (0, 1, 100, -3),
    "uint16": (0, 1, 100),
    "int64": (0, 1, 100, -3),
    "float16": (0, 1, 100, -3, 0.5),
    "float64": (0, 1, 100, -3, 0.5),
    "complex64": (0, 1, 100, -3, 0.5),
    "complex128": (0, 1, 100, -3, 0.5),
}


def forms(value: float) -> list[Any]:
    """The ways to write a number."""
    made = [value, float(value), complex(value), np.float32(value), np.complex64(value), np.array(float(value))]
    if value == int(value):
        made += [int(value), np.int8(value)]
    if value in (0, 1):
        made += [bool(value), np.bool_(value)]
    return made


@pytest.mark.parametrize("value", [0, 1, 100, -3, 0.5])
def test_each_array_has_it_as_its_own_type(value: float, tmp_path: Path) -> None:
    arrays = {kind: np.ones(3, kind) for kind, values in KINDS.items() if value in values}
    assert len(arrays) >= 4
    for number, fill in enumerate(forms(value)):
        path = tmp_path / f"{number}.zarr"
        # The order must not matter.
        turned = dict(list(arrays.items())[number % len(arrays) :] + list(arrays.items())[: number % len(arrays)])
        with hs.open(path, "w") as store:
            store.write(turned, fill_value=fill)
        for kind in arrays:
            found = zarr.open_array(path / kind, mode="r").fill_value
            assert (found, found.dtype) == (np.dtype(kind).type(value), np.dtype(kind)), repr(fill)


@pytest.mark.parametrize(("value", "held"), [(np.nan, "fc"), (-np.inf, "fc"), (2 + 1j, "c"), (complex(np.nan, 1), "c")])
def test_what_only_some_kinds_can_hold(value: Any, held: str, tmp_path: Path) -> None:
    arrays = {kind: np.ones(3, kind) for kind in KINDS}
    fit = {kind: array for kind, array in arrays.items() if array.dtype.kind in held}
    with hs.open(tmp_path / "fit.zarr", "w") as store:
        store.write(fit, fill_value=value)
        for kind, array in fit.items():
            found = zarr.open_array(tmp_path / "fit.zarr" / kind, mode="r").fill_value
            np.testing.assert_equal(np.asarray(found), np.asarray(value, array.dtype))
    with hs.open(tmp_path / "unfit.zarr", "w") as store:
        for kind in arrays.keys() - fit.keys():
            with pytest.raises(hs.InvalidError, match=f"fill value of '{kind}'"):
                store.write({**fit, kind: arrays[kind]}, fill_value=value)
            assert store.arrays() == []


@pytest.mark.parametrize("value", [256, -1, 1.5, "one", [1], {}, object(), 2**64, 1e300])
def test_what_an_array_cannot_hold_is_refused_on_all_ranks(value: Any, tmp_path: Path) -> None:
    def one(comm: hs.ThreadComm) -> str:
        dist = hs.Distribution.block((6,), comm.size)
        mine = {"a": np.ones(2), "b": np.ones(2, np.uint8)}
        with hs.open(tmp_path / "run.zarr", "w", comm=comm) as store:
            with pytest.raises(hs.InvalidError) as caught:
                store.write(mine, dist, fill_value=value)
            assert store.arrays() == []
        return str(caught.value)

    (told,) = set(hs.threads(3, one))
    assert re.search("fill.value", told)


def test_what_was_not_written_reads_as_it(tmp_path: Path) -> None:
    """An array grows along its first dimension; chunks of which nothing is there are filled."""
    path = tmp_path / "run.zarr"
    kinds = ("bool", "int8", "float32", "complex128")
    with hs.open(path, "w") as store:
        store.write({kind: np.zeros((2, 2), kind) for kind in kinds}, chunks=(2, 2), fill_value=1)
    for kind in kinds:
        file = path / kind / "zarr.json"
        metadata = json.loads(file.read_text())
        file.write_text(json.dumps(metadata | {"shape": [6, 2]}))
    with hs.open(path) as store:
        for kind, found in store.read(kinds).items():
            expected = np.concatenate([np.zeros((2, 2), kind), np.ones((4, 2), kind)])
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == expected.dtype


#: Types and fill values as other programs have written them in metadata.
WRITTEN: list[tuple[str, Any]] = [
    ("int32", 0.0),
    ("int32", "3"),
    ("uint8", -1),
    ("int32", 1.5),
    ("int32", ""),
    ("int16", True),
    ("float16", 1e6),
    ("float16", -1e6),
    ("float32", 1e40),
    ("float32", "1.5"),
    ("float32", "nan"),
    ("float64", 3),
    ("float64", "-inf"),
    ("float32", ""),
    ("float32", True),
    ("bool", 0),
    ("complex64", [1e40, 0]),
]


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize(("kind", "fill"), WRITTEN, ids=[f"{kind}-{fill}" for kind, fill in WRITTEN])
@pytest.mark.parametrize("version", [2, 3])
def test_fill_values_mean_what_they_mean_to_zarr_python(version: int, kind: str, fill: Any, tmp_path: Path) -> None:
    name, key, value = (".zarray", "dtype", np.dtype(kind).str) if version == 2 else ("zarr.json", "data_type", kind)
    zarr.create_array(tmp_path / "a.zarr", shape=(3,), dtype="f4", chunks=(3,), zarr_format=version)
    path = tmp_path / "a.zarr" / name
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value, "fill_value": fill}))
    try:
        expected = zarr.open_array(tmp_path / "a.zarr", mode="r")[:]
    except (TypeError, ValueError, OverflowError):
        with pytest.raises(hs.CorruptError, match="fill value"), hs.open(tmp_path / "a.zarr") as store:
            store.read("/")
        return
    with hs.open(tmp_path / "a.zarr") as store:
        found = store.read("/")
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
