"""Keys in brackets: an array in storage gives what NumPy selects of one in memory, and `oindex` what zarr selects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as some

SHAPE = (6, 5, 7)
WHOLE = np.arange(210, dtype="i4").reshape(SHAPE)
#: Formats, and how the array is stored there.
STORED: dict[str, dict[str, Any]] = {
    ".zarr": {"chunks": (4, 2, 3), "zstd": 1},
    ".h5": {},
    "-chunks.h5": {"chunks": (4, 2, 3), "compression": "gzip"},
    ".nc": {},
}


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, hs.Array]]:
    """The same array in several formats."""
    directory = tmp_path_factory.mktemp("selecting")
    stores = {}
    for suffix, how in STORED.items():
        path = directory / f"a{suffix}"
        with hs.open(path, "w", comm=None) as store:
            store.write("a", WHOLE, **how)
        stores[suffix] = hs.open(path, comm=None)
    yield {suffix: store["a"] for suffix, store in stores.items()}
    for store in stores.values():
        store.close()


def slices(extent: int) -> some.SearchStrategy[slice]:
    ends = some.none() | some.integers(-extent - 1, extent + 1)
    return some.builds(slice, ends, ends, some.none() | some.integers(1, 4))


def lists(extent: int) -> some.SearchStrategy[Any]:
    """Indices in any order, some of them twice, in one row or in several."""
    indices = some.integers(-extent, extent - 1)
    rows = some.lists(indices, min_size=0, max_size=4)
    tables = some.lists(some.lists(indices, min_size=2, max_size=2), min_size=1, max_size=3)
    return rows | rows.map(np.array).map(lambda row: row.astype(int)) | tables.map(np.array)


@some.composite
def keys(draw: some.DrawFn) -> tuple[Any, ...]:
    """Keys of some dimensions, with masks of one or two of them, and ``...`` in some places."""
    key: list[Any] = []
    dim = 0
    while dim < draw(some.integers(0, 3)):
        extent, kind = SHAPE[dim], draw(some.integers(0, 5))
        if kind == 0 and dim < 2:
            mask = draw(some.lists(some.booleans(), min_size=extent * SHAPE[dim + 1], max_size=extent * SHAPE[dim + 1]))
            key.append(np.array(mask).reshape(extent, SHAPE[dim + 1]))
            dim += 1
        elif kind == 1:
            key.append(np.array(draw(some.lists(some.booleans(), min_size=extent, max_size=extent))))
        else:
            one = (some.integers(-extent, extent - 1), slices(extent), lists(extent), lists(extent))[kind - 2]
            key.append(draw(one))
        dim += 1
    if dim == len(SHAPE) or draw(some.booleans()):
        return tuple(key)
    return (*key, ...)


@settings(max_examples=300, deadline=None)
@given(key=keys(), suffix=some.sampled_from([*STORED]))
def test_a_key_selects_what_numpy_selects(opened: dict[str, hs.Array], key: tuple[Any, ...], suffix: str) -> None:
    try:
        expected = WHOLE[tuple(np.array(one, int) if isinstance(one, list) and not one else one for one in key)]
    except IndexError:
        # Lists that do not fit together; NumPy and we say so.
        with pytest.raises(hs.InvalidError, match="cannot select element by element"):
            opened[suffix][key]
        return
    found = opened[suffix][key]
    assert np.shape(found) == expected.shape
    assert np.array_equal(found, expected)
    assert np.asarray(found).dtype == WHOLE.dtype


@settings(max_examples=100, deadline=None)
@given(data=some.data(), suffix=some.sampled_from([*STORED]))
def test_oindex_selects_along_each_dimension(opened: dict[str, hs.Array], data: some.DataObject, suffix: str) -> None:
    key: list[Any] = []
    for extent in SHAPE:
        row = some.lists(some.integers(-extent, extent - 1), min_size=1, max_size=4)
        mask = some.lists(some.booleans(), min_size=extent, max_size=extent).map(np.array)
        key.append(data.draw(row | mask | slices(extent) | some.integers(-extent, extent - 1)))
    expected = WHOLE
    for dim in reversed(range(len(SHAPE))):
        expected = expected[(slice(None),) * dim + (key[dim],)]
    assert np.array_equal(opened[suffix].oindex[tuple(key)], expected)


def test_oindex_is_zarrs(opened: dict[str, hs.Array]) -> None:
    theirs: Any = zarr.open_group(Path(opened[".zarr"].path).parent, mode="r")["a"]
    for key in [([2, 0], slice(1, 4), [6, 1, 1]), (np.arange(6) % 2 == 0, 3, [0])]:
        assert np.array_equal(opened[".zarr"].oindex[key], theirs.oindex[key])


def test_a_mask_of_all_dimensions(opened: dict[str, hs.Array]) -> None:
    for array in opened.values():
        for mask in (WHOLE % 3 == 1, WHOLE < 0, WHOLE >= 0):
            assert np.array_equal(array[mask], WHOLE[mask])


def test_what_is_named_often_is_read_once(opened: dict[str, hs.Array]) -> None:
    rows = np.resize([3, 0, 3, 5], 1000)
    for array in opened.values():
        for key in [(rows,), (rows, 2), (slice(None), rows % 5, -1), (rows.reshape(10, 100), slice(1, 3))]:
            assert np.array_equal(array[key], WHOLE[key]), key
        assert np.array_equal(array.oindex[rows, [1] * 70], WHOLE[rows][:, [1] * 70])


@pytest.mark.parametrize("shape", [(9, 5, 7), (6, 8, 7), (6, 5, 20), (8, 8, 8)])
def test_an_array_that_another_has_made_larger_is_read_as_it_was_known(shape: tuple[int, ...], tmp_path: Path) -> None:
    with hs.open(tmp_path / "a.zarr", "w", comm=None) as store:
        store.write("a", WHOLE, chunks=(4, 2, 3))
    with hs.open(tmp_path / "a.zarr", comm=None) as store:
        array = store["a"]
        with hs.open(tmp_path / "a.zarr", "r+", comm=None) as other:
            other["a"].resize(shape)
        keys: list[Any] = [[5, 0, -1], (slice(2, 4), [1, -1]), ([1, 2], [3, -1], [-1, 6]), WHOLE % 3 == 1]
        for key in [*keys, (2, WHOLE[2] > 80), ([0, 3], slice(None), slice(1, 6))]:
            assert np.array_equal(array[key], WHOLE[key]), key
        with hs.open(tmp_path / "a.zarr", "r+", comm=None) as other:
            other["a"].resize((6, 2, 7))
        with pytest.raises(hs.Error, match="expected shape"):
            array[[5, 0]]


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (([0, 1], [0, 1, 2]), "oindex selects along each dimension"),
        ((np.ones((6, 4), bool),), "the mask for dimensions 0 to 1 has shape (6, 4), but the array has (6, 5)"),
        ((slice(None), [True, False]), "the mask for dimension 1 has shape (2,)"),
        (([0.5],), "of whole numbers"),
        (([0, 6],), "index 6 is out of range for dimension 0"),
        ((np.ones(SHAPE, bool), 0), "the section has 4 dimensions"),
    ],
)
def test_what_cannot_be_selected(opened: dict[str, hs.Array], key: tuple[Any, ...], text: str) -> None:
    with pytest.raises(hs.InvalidError) as caught:
        opened[".zarr"][key]
    assert text in str(caught.value)
    with pytest.raises(hs.InvalidError, match="one row of indices"):
        opened[".h5"].oindex[np.zeros((2, 2), int)]
