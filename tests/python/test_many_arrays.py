"""What Python does for each array of a call with many: a number of function calls, which is small and does not grow."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hyperslab as hs
import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

#: Extent of the arrays.
EXTENT = 7
#: Function calls for each array, at most: today there are 1 to 26.
CALLS_MAX = 40

DIST = hs.Distribution((EXTENT,), (1,))


def opened(path: Path, suffix: str, arrays: dict[str, Any]) -> Any:
    """A new file or store with these arrays, open for reading."""
    if suffix != ".raw":
        with hs.open(path, "w") as new:
            new.write(arrays)
        return hs.open(path)
    with hs.open_raw(path, "w", order="C") as raw:
        raw.write(arrays)
    return hs.open_raw(path, order="C", arrays=dict.fromkeys(arrays, ((EXTENT,), "f8")))


def calls_of(do: Callable[[], Any]) -> int:
    """Function calls of Python and of C that something makes in this thread, once it has been done."""
    do()
    count = 0

    def see(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(see)
    try:
        do()
    finally:
        sys.setprofile(None)
    return count


DOINGS: dict[str, Callable[[Any, list[str]], Any]] = {
    "read": lambda file, names: file.read(names),
    "read with a distribution": lambda file, names: file.read(names, DIST),
    "read with a distribution for each": lambda file, names: file.read(names, dict.fromkeys(names, DIST)),
    "read into": lambda file, names: file.read(names, DIST, out={name: np.zeros(EXTENT) for name in names}),
    "read of a section": lambda file, names: file.read(names, section=slice(2, 5)),
    "iread": lambda file, names: file.iread(names, DIST).wait(),
    "shapes": lambda file, names: [file[name].shape for name in names],
}


@pytest.mark.parametrize("suffix", [".zarr", ".nc", ".h5", ".raw"])
def test_each_of_many_arrays_costs_little(tmp_path: Path, suffix: str) -> None:
    arrays = {f"a{number}": np.full(EXTENT, float(number)) for number in range(100)}
    names = list(arrays)
    with opened(tmp_path / f"many{suffix}", suffix, arrays) as file:
        for read in file.read(names, DIST), file.read(names):
            assert all((read[name] == arrays[name]).all() for name in names)
        for what, do in DOINGS.items():
            few, many = (calls_of(lambda: do(file, names[:count])) for count in (50, 100))  # noqa: B023
            assert (many - few) / 50 <= CALLS_MAX, what


def test_arrays_that_are_alike_are_told_apart_by_what_differs(tmp_path: Path) -> None:
    with hs.open(tmp_path / "a.zarr", "w") as store:
        for number, fill in enumerate((0.0, -0.0, float("nan"), 1.0)):
            store.write(f"a{number}", np.zeros(EXTENT), fill_value=fill, attributes={"number": number})
        store.write("long", np.zeros(EXTENT), attributes={"text": "x" * 10_000})
    with hs.open(tmp_path / "a.zarr") as store:
        assert [store[f"a{number}"].attrs["number"] for number in range(4)] == [0, 1, 2, 3]
        fills = np.array([store[f"a{number}"].fill_value for number in range(4)])
        assert np.isnan(fills[2])
        assert np.signbit(fills).tolist()[:2] == [False, True]
        assert len(store["long"].attrs["text"]) == 10_000


def test_threads_that_share_a_distribution_have_each_its_own_part() -> None:
    dist = hs.Distribution((10,), (4,))

    def mine(comm: hs.ThreadComm) -> None:
        for _ in range(2000):
            assert dist.local_shape(comm) == ((3,) if comm.rank < 3 else (1,))

    hs.threads(4, mine)


@pytest.mark.parametrize("suffix", [".zarr", ".nc", ".h5"])
def test_names_of_what_failed_are_free(tmp_path: Path, suffix: str) -> None:
    with hs.open(tmp_path / f"a{suffix}", "w") as file:
        file.write("a", np.zeros(EXTENT))
        assert "a" in file
        with pytest.raises(hs.Error, match="casting"):
            file.write("b", np.zeros(EXTENT), dtype="i4")
        assert "b" not in file
        assert "\udcff" not in file
        with pytest.raises(KeyError):
            file["b"].shape  # noqa: B018
        file.write({"c": np.ones(EXTENT), "b": np.full(EXTENT, 2.0)})
        assert [name in file for name in ("a", "b", "c", "d")] == [True, True, True, False]
    with hs.open(tmp_path / f"a{suffix}") as file:
        assert (file.read("b") == 2).all()


def test_a_closed_raw_file_tells_nothing(tmp_path: Path) -> None:
    with opened(tmp_path / "a.raw", ".raw", {"a": np.zeros(EXTENT)}) as file:
        assert file["a"].shape == (EXTENT,)
    with pytest.raises(hs.Error, match="closed"):
        file["a"].shape  # noqa: B018


def test_small_arrays_of_hdf5_lie_without_gaps(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    kinds = {"a": "f4", "b": "f4", "c": "u1", "d": "f8", "e": "c16"}
    with hs.open(tmp_path / "a.h5", "w") as file:
        file.write({name: np.ones(37, kind) for name, kind in kinds.items()})
    with h5py.File(tmp_path / "a.h5") as file:
        at = {name: file[name].id.get_offset() for name in kinds}
        assert all((file[name][...] == 1).all() for name in kinds)
    assert (at["b"] - at["a"], at["c"] - at["b"]) == (148, 148)
    assert all(at[name] % np.dtype(kind).itemsize == 0 for name, kind in kinds.items())
    assert at["d"] - at["c"] in range(37, 45)
