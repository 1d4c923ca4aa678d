"""A conversion holds what the source held, whatever both formats are, in bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import netCDF4
import numpy as np
import pytest
import zarr
from hyperslab.__main__ import main
from numpy.typing import NDArray

from peak import PEAK

ENDS = {"zarr": ".zarr", "hdf5": ".h5", "netcdf4": ".nc4", "netcdf3": ".nc"}
RNG = np.random.default_rng(3)
ARRAYS: dict[str, NDArray[Any]] = {
    "rho": RNG.normal(size=(37, 20, 9)),
    "count": RNG.integers(-100, 100, (37, 20), dtype="i4"),
    "level": RNG.integers(0, 100, 37, dtype="i1"),
    "time": np.float64(2.5).reshape(()),
}
NAMES = {"rho": ("z", "y", "x"), "count": ("z", "y"), "level": ("z",), "time": ()}


def made(path: Path) -> None:
    """A file of the format that its name says, with all that is kept."""
    with hs.open(path, "w") as store:
        store.attrs.update({"title": "a run", "version": 3, "range": np.array([0.5, 2.0])})
        for name, array in ARRAYS.items():
            chunked = path.suffix in (".zarr", ".h5", ".nc4") and array.ndim > 1
            store.write(
                name,
                array,
                chunks=tuple(-(-extent // 3) for extent in array.shape) if chunked else None,
                fill_value=-7 if name != "time" else None,
                dimension_names=NAMES[name],
                attributes={"units": "m", "order": 2.0},
            )


def seen_by_others(path: Path, name: str) -> NDArray[Any]:
    """An array as the library reads it that owns the format."""
    if path.suffix == ".zarr":
        return np.asarray(zarr.open_group(path, mode="r")[name][...])
    if path.suffix == ".h5":
        with h5py.File(path) as file:
            return np.asarray(file[name][()])
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        return np.asarray(file[name][...])


@pytest.mark.parametrize("target", ENDS)
@pytest.mark.parametrize("source", ENDS)
@pytest.mark.parametrize("ranks", [1, 3])
def test_formats_become_each_other(source: str, target: str, ranks: int, tmp_path: Path) -> None:
    start, end = tmp_path / f"from{ENDS[source]}", tmp_path / f"to{ENDS[target]}"
    made(start)
    done = hs.threads(ranks, lambda comm: hs.convert(start, end, comm=comm, memory="24KiB"))[0]
    assert sorted(done.arrays) == sorted(ARRAYS)
    assert done.bytes == sum(array.nbytes for array in ARRAYS.values())
    assert done.sections > len(ARRAYS)
    with hs.open(start) as origin, hs.open(end) as copy:
        assert {name: np.asarray(value).tolist() for name, value in copy.attrs.items()} == {
            name: np.asarray(value).tolist() for name, value in origin.attrs.items()
        }
        for name, array in ARRAYS.items():
            assert np.array_equal(seen_by_others(end, name), array), name
            assert copy[name].dtype.newbyteorder("=") == array.dtype
            # HDF5 has no labels where there are no dimensions.
            assert (copy[name].dimension_names or ()) == NAMES[name]
            kept = {key: value for key, value in copy[name].attrs.items() if key != "_FillValue"}
            assert kept == {"units": "m", "order": 2.0}
            if name != "time":
                assert copy[name].fill_value == -7
            chunks = origin[name].chunks
            if target != "netcdf3" and chunks != array.shape:
                assert copy[name].chunks == chunks


def test_groups_shards_and_what_is_asked_for(tmp_path: Path) -> None:
    with hs.open(tmp_path / "a.zarr", "w") as store:
        inner = store.create_group("input/mesh", attributes={"cells": 4})
        inner.write("x", np.arange(64.0), chunks=(8,), shards=(32,))
        store.write("y", np.arange(5))
        with store.step("0001") as step:
            step.write("rho", np.ones((4, 4)))
    done = hs.convert(tmp_path / "a.zarr", tmp_path / "b.h5", compression="gzip")
    assert sorted(done.arrays) == ["0001/rho", "input/mesh/x", "y"]
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["input/mesh"].attrs["cells"] == 4
        assert np.array_equal(file["input/mesh/x"][:], np.arange(64.0))
    hs.convert(tmp_path / "b.h5", tmp_path / "c.zarr", names=["input/mesh/x"])
    with hs.open(tmp_path / "c.zarr") as store:
        assert store.arrays() == []
        assert store.group("input/mesh").attrs["cells"] == 4
        assert np.array_equal(store.group("input/mesh")["x"][:], np.arange(64.0))
    hs.convert(tmp_path / "a.zarr", tmp_path / "d.zarr")
    with hs.open(tmp_path / "d.zarr") as store:
        assert store["input/mesh/x"].shards == (32,)
    with pytest.raises(hs.ExistsError):
        hs.convert(tmp_path / "a.zarr", tmp_path / "d.zarr")
    with pytest.raises(hs.InvalidError, match="no array 'z'"):
        hs.convert(tmp_path / "a.zarr", tmp_path / "e.h5", names=["z"])
    with pytest.raises(hs.InvalidError, match="memory must be at least"):
        hs.convert(tmp_path / "a.zarr", tmp_path / "e.zarr", memory=100)
    assert not (tmp_path / "e.h5").exists()


#: Converts a file and prints by how much the memory of the process grew at most [B].
FRUGAL = (
    PEAK
    + """
import sys
import hyperslab as hs

hs.convert(sys.argv[1], sys.argv[2], names=["small"], memory="1MiB")
before = peak_bytes()
hs.convert(sys.argv[1], sys.argv[3], memory="16MiB")
print(peak_bytes() - before)
"""
)


def test_a_file_of_many_budgets(tmp_path: Path) -> None:
    with hs.open(tmp_path / "a.h5", "w") as file:
        file.write("small", np.arange(9.0))
        large = file.create_array("large", (256, 1 << 16), "f8", chunks=(8, 1 << 13))
        for row in range(0, 256, 64):
            large.write(np.random.default_rng(row).random((64, 1 << 16)), section=(slice(row, row + 64), ...))
    given = [str(tmp_path / name) for name in ("a.h5", "b.zarr", "c.zarr")]
    done = subprocess.run([sys.executable, "-c", FRUGAL, *given], check=True, capture_output=True, text=True)
    # 8 times the budget, and buffers of the library.
    assert int(done.stdout) < 64 << 20
    with h5py.File(tmp_path / "a.h5") as file:
        assert np.array_equal(zarr.open_group(tmp_path / "c.zarr")["large"][100:120], file["large"][100:120])


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path / "a.h5")
    given = ["convert", str(tmp_path / "a.h5"), str(tmp_path / "b.zarr"), "--names", "rho", "level"]
    assert main([*given, "--memory", "1MiB"]) == 0
    assert "of rho, level" in capsys.readouterr().out
    assert main(given) == 2
    assert "hyperslab:" in capsys.readouterr().err
    assert main([*given, "--overwrite", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["arrays"] == ["rho", "level"]


@pytest.mark.parametrize("suffix", [".zarr", ".h5"])
def test_what_is_copied_is_not_replaced_by_its_copy(suffix: str, tmp_path: Path) -> None:
    path, link = tmp_path / f"run{suffix}", tmp_path / f"link{suffix}"
    with hs.open(path, "w") as made:
        made.create_group("inner").write("rho", np.arange(6.0))
    link.symlink_to(path)
    targets = [path, link, *([path / "inner", path / "copy.zarr"] if suffix == ".zarr" else [])]
    for target in targets:
        with pytest.raises(hs.InvalidError, match="one is the other, or lies in it"):
            hs.convert(path, target, "w")
    with hs.open(path) as there:
        np.testing.assert_array_equal(there["inner/rho"][...], np.arange(6.0))
