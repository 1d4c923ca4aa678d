"""Calls at the edge of what is asked: names that others give, groups into themselves, orders of attributes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import netCDF4
import numpy as np
import pytest
import zarr

BLOCK = np.arange(24).reshape(2, 3, 4)
#: Names that shells hide, or Python keeps.
ODD = (".hidden", "..x", "__dunder", "__", ".zgroups")


def of_zarr(path: Path) -> None:
    group = zarr.open_group(path, mode="w")
    for name in (*ODD, "plain"):
        group.create_array(name, data=BLOCK)
    group.create_group(".group").create_array("__x", data=BLOCK)


def of_h5py(path: Path) -> None:
    with h5py.File(path, "w") as file:
        for name in (*ODD, "plain", ".group/__x"):
            file[name] = BLOCK


def of_netcdf(path: Path) -> None:
    with netCDF4.Dataset(path, "w") as data:
        for number, extent in enumerate(BLOCK.shape):
            data.createDimension(f"d{number}", extent)
        for name in ("__dunder", "__", "plain"):
            data.createVariable(name, "i8", ("d0", "d1", "d2"))[:] = BLOCK


@pytest.mark.parametrize("ranks", [1, 3])
def test_names_of_others_are_read(ranks: int, tmp_path: Path) -> None:
    of_zarr(tmp_path / "a.zarr")
    (tmp_path / "a.zarr" / ".DS_Store").write_bytes(b"no node")
    (tmp_path / "a.zarr" / ".hyperslab").mkdir()
    of_h5py(tmp_path / "a.h5")
    of_netcdf(tmp_path / "a.nc")

    def one(comm: hs.ThreadComm) -> None:
        for path in (tmp_path / "a.zarr", tmp_path / "a.h5", tmp_path / "a.nc"):
            with hs.open(path, comm=comm) as opened:
                names = ("__dunder", "__", "plain") if path.suffix == ".nc" else (*ODD, "plain")
                assert sorted(name for name in opened if "/" not in name) == sorted(names)
                for name in names:
                    assert name in opened
                    assert np.array_equal(opened.read(name), BLOCK)
                    assert np.array_equal(opened[name][1, :, 2], BLOCK[1, :, 2])
                if path.suffix != ".nc":
                    assert opened.groups() == [".group"]
                    assert np.array_equal(opened.read(".group/__x"), BLOCK)
                    assert opened.group(".group").arrays() == ["__x"]
        with hs.open(tmp_path / "a.zarr", comm=comm) as store:
            for name in ("../a.h5", ".hyperslab", ".", "plain/..", ""):
                with pytest.raises(hs.InvalidError, match="cannot be the name"):
                    store.read(name)

    hs.threads(ranks, one)
    with hs.open(tmp_path / "a.zarr", "r+") as store:
        with pytest.raises(hs.InvalidError, match="hidden"):
            store.write(".new", BLOCK)
        store.consolidate()
    members = zarr.open_consolidated(tmp_path / "a.zarr")
    assert {*ODD, "plain", ".group"} <= {*members}


@pytest.mark.parametrize("name", ["a.zarr", "a.h5"])
def test_nothing_is_moved_into_itself(name: str, tmp_path: Path) -> None:
    with hs.open(tmp_path / name, "w") as opened:
        opened.write("g/x", BLOCK)
    with hs.open(tmp_path / name, "r+") as opened:
        for old, new in (("g", "g/y"), ("g", "g/h/y")):
            with pytest.raises(hs.InvalidError, match=f"'{old}' cannot be moved into itself\n  hint: choose"):
                opened.rename(old, new)
        with pytest.raises(hs.ExistsError, match="g' exists already"):
            opened.rename("g", "g")
        assert np.array_equal(opened.read("g/x"), BLOCK)


@pytest.mark.parametrize("mode", ["r", "r+", "a", "w", "x"])
def test_a_file_is_no_store(mode: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    path.write_bytes(b"something else")
    with pytest.raises(
        (hs.NotFoundError, hs.ExistsError), match=r"'.*a.zarr' is not a Zarr store: expected a directory, found a file"
    ):
        hs.open(path, mode)
    assert path.read_bytes() == b"something else"


def test_what_contains_itself_is_no_attribute(tmp_path: Path) -> None:
    mapping: dict[str, Any] = {"x": 1}
    mapping["me"] = mapping
    items: list[Any] = [1]
    items.append(items)
    for name in ("a.zarr", "a.h5"):
        with hs.open(tmp_path / name, "w") as opened:
            opened.write("a", BLOCK)
            for value in (mapping, items, {"deep": [mapping]}):
                with pytest.raises(hs.InvalidError, match="'v' contains itself, or is nested too deeply\n  hint"):
                    opened["a"].attrs["v"] = value
                with pytest.raises(hs.InvalidError, match="'v' contains itself"):
                    opened.write("b", BLOCK, attributes={"v": value})
            assert opened.arrays() == ["a"]


@pytest.mark.parametrize("name", ["a.zarr", "a.h5", "a.nc", "b.nc"])
def test_ranks_give_attributes_in_any_order(name: str, tmp_path: Path) -> None:
    def one(comm: hs.ThreadComm) -> None:
        given = {"a": 1, "b": 2.5, "c": "text"}
        turned = dict(reversed(given.items())) if comm.rank == 1 else given
        dist = hs.Distribution((6,), (comm.size,), ("block",))
        local = np.arange(6.0)[dist.slices(comm.rank)]
        options: dict[str, Any] = {} if name == "a.zarr" else {"attributes": turned}
        if name == "b.nc":
            options["format"] = "netcdf4"
        with hs.open(tmp_path / name, "w", comm=comm, **options) as opened:
            opened.write("x", local, dist, attributes=turned)
            if name == "a.zarr":
                nested = {"n": turned, "m": [turned]}
                opened.attrs.update(turned)
                opened["x"].attrs.update(nested)
                opened.create_group("g", attributes=turned)
        with hs.open(tmp_path / name, comm=comm) as opened:
            assert {**opened.attrs} == given
            assert {**opened["x"].attrs}.items() >= given.items()
        with (
            hs.open(tmp_path / name, "r+", comm=comm) as opened,
            pytest.raises(hs.DisagreementError, match="attribute"),
        ):
            opened.attrs.update({"a": comm.rank})

    hs.threads(3, one)


def test_requests_take_paths_where_they_can(tmp_path: Path) -> None:
    with hs.open(tmp_path / "a.h5", "w") as file:
        file.iwrite("s/a", BLOCK).wait()
    with h5py.File(tmp_path / "a.h5") as data:
        assert np.array_equal(data["s/a"][...], BLOCK)
    with hs.open(tmp_path / "a.zarr", "w") as store:
        with pytest.raises(hs.UnsupportedError, match=r"'s/a' is a path.*\n.*open its group with group\(\)"):
            store.iwrite("s/a", BLOCK).wait()
        store.create_group("s").iwrite("a", BLOCK).wait()
        assert np.array_equal(store.iread("s/a").wait(), BLOCK)


def test_indices_and_lists_select_as_in_numpy(tmp_path: Path) -> None:
    with hs.open(tmp_path / "a.zarr", "w") as store:
        store.write("a", BLOCK)
        array = store["a"]
        keys: list[Any] = [(0, slice(None), [0, 1]), (0, [0, 1]), ([0, 1], slice(None), 0), (slice(None), 0, [1, 2])]
        keys += [(slice(None, None, 2**70), slice(1, 2**80)), (..., slice(-(2**70), None, 2))]
        keys += [([0], 0, slice(None)), (0, 0, [1, 2]), (1, ..., [0]), ([1, 0], ..., [3, 2])]
        for key in keys:
            assert np.array_equal(array[key], BLOCK[key]), key


def test_a_list_of_names_is_no_mapping(tmp_path: Path) -> None:
    with hs.open(tmp_path / "a.zarr", "w") as store:
        for call in (store.write, store.append):
            with pytest.raises(
                hs.InvalidError, match=r"name must be a name, or a mapping.*\n.*write\({'a': a, 'b': b}\)"
            ):
                call(["a", "b"], [BLOCK, BLOCK])  # type: ignore[arg-type]
