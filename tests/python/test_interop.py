"""What zarr-python writes is read here, and what is written here is read by zarr-python, xarray and NumPy."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest
import zarr
import zarr.codecs
from numpy.typing import NDArray

from global_arrays import same

xarray = pytest.importorskip("xarray")

RANKS = 3
KINDS = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
SHAPES = ((), (0,), (7,), (5, 0, 3), (6, 5), (3, 4, 5))


def ramp(shape: tuple[int, ...], kind: str) -> NDArray[Any]:
    """Values of any type."""
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(kind)


def read(path: Path, name: str, **options: Any) -> NDArray[Any]:
    """A whole array, read by several ranks that all get the same."""

    def body(comm: hs.ThreadComm) -> NDArray[Any]:
        with hs.open(path, comm=comm) as store:
            whole = store.read(name, **options)
            dist = hs.Distribution.block(whole.shape, comm.size)
            part = store.read(name, dist, **options)
            if whole.ndim:
                same(part, whole[np.ix_(*dist.indices(comm))], name)
            return whole

    parts = hs.threads(RANKS, body)
    for part in parts:
        same(part, parts[0], name)
    return parts[0]


# ---- from zarr-python ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_defaults_of_zarr_python_are_read(kind: str, tmp_path: Path) -> None:
    root = zarr.open_group(tmp_path / "a.zarr", mode="w")
    for shape in SHAPES:
        root.create_array(f"a{len(shape)}_{sum(shape)}", data=ramp(shape, kind))
    for shape in SHAPES:
        same(read(tmp_path / "a.zarr", f"a{len(shape)}_{sum(shape)}"), ramp(shape, kind), str(shape))


CODECS: dict[str, dict[str, Any]] = {
    "plain": {"compressors": None},
    "zstd with checksum": {"compressors": zarr.codecs.ZstdCodec(level=3, checksum=True)},
    "gzip": {"compressors": zarr.codecs.GzipCodec(level=1)},
    "checksum after zstd": {"compressors": [zarr.codecs.ZstdCodec(), zarr.codecs.Crc32cCodec()]},
    "transposed": {"filters": zarr.codecs.TransposeCodec(order=(2, 0, 1))},
    "big endian": {"serializer": zarr.codecs.BytesCodec(endian="big")},
    "keys of version 2": {"chunk_key_encoding": {"name": "v2", "separator": "."}},
    "keys with dots": {"chunk_key_encoding": {"name": "default", "separator": "."}},
}


@pytest.mark.parametrize("name", CODECS)
def test_codecs_and_keys_of_zarr_python(name: str, tmp_path: Path) -> None:
    """Read, change a section in place, and zarr-python reads the change."""
    values = ramp((9, 8, 7), "f4")
    root = zarr.open_group(tmp_path / "a.zarr", mode="w")
    root.create_array("a", shape=values.shape, dtype="f4", chunks=(4, 3, 5), **CODECS[name])[...] = values
    same(read(tmp_path / "a.zarr", "a"), values, name)
    section = (slice(1, 8, 3), slice(2, 5), 6)
    values[section[0], section[1], 6:7] = -1.5
    with hs.open(tmp_path / "a.zarr", "r+") as store:
        store.write("a", np.full((3, 3, 1), -1.5), section=section)
    same(zarr.open_array(tmp_path / "a.zarr" / "a", mode="r")[...], values, name)


@pytest.mark.parametrize(
    ("kind", "fill"),
    [
        ("f8", np.nan),
        ("f4", np.inf),
        ("f4", -np.inf),
        ("f2", 1.5),
        ("i2", -3),
        ("u8", 2**64 - 1),
        ("?", True),
        ("c8", complex(1.5, -2)),
        ("c16", complex(np.nan, np.inf)),
        ("f8", -0.0),
    ],
)
def test_what_was_never_written_is_the_fill_value(kind: str, fill: Any, tmp_path: Path) -> None:
    """In arrays of either side."""
    expected = np.full((7, 5), fill, kind)
    part = ramp((2, 3), kind)
    array = zarr.open_group(tmp_path / "a.zarr", mode="w").create_array(
        "a", shape=(7, 5), dtype=kind, chunks=(2, 3), fill_value=fill
    )
    array[4:6, 0:3] = part
    expected[4:6, 0:3] = part
    same(read(tmp_path / "a.zarr", "a"), expected, "theirs")
    with hs.open(tmp_path / "b.zarr", "w") as store:
        store.write("b", expected[:1], chunks=(1, 3), fill_value=fill)
        store.append("b", expected[1:])
    found = zarr.open_array(tmp_path / "b.zarr" / "b", mode="r")
    same(np.asarray(found.fill_value, kind)[()], np.asarray(fill, kind)[()], "fill value")
    same(found[...], expected, "ours")


def test_names_of_dimensions_and_attributes_are_read(tmp_path: Path) -> None:
    root = zarr.open_group(tmp_path / "a.zarr", mode="w", attributes={"title": "of the group"})
    root.create_array("a", data=ramp((2, 3), "i4"), dimension_names=["x", None], attributes={"unit": "m", "n": [1]})
    root.create_group("inner", attributes={"time": 0.5}).create_array("b", data=ramp((4,), "f4"))
    with hs.open(tmp_path / "a.zarr") as store:
        assert (store.attrs, store.arrays(), store.groups()) == ({"title": "of the group"}, ["a"], ["inner"])
        assert store["a"].dimension_names == ("x", None)
        assert store["a"].attrs == {"unit": "m", "n": [1]}
        inner = store.group("inner")
        assert inner.attrs == {"time": 0.5}
        same(inner.read("b"), ramp((4,), "f4"), "b")


def test_an_array_in_shards_is_read(tmp_path: Path) -> None:
    root = zarr.open_group(tmp_path / "a.zarr", mode="w")
    root.create_array("a", data=ramp((8, 8), "f4"), chunks=(2, 2), shards=(4, 4))
    with hs.open(tmp_path / "a.zarr") as store:
        same(store.read("a"), ramp((8, 8), "f4"), "a")


# ---- to other tools --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_all_types_and_shapes_are_read_by_zarr_python(kind: str, tmp_path: Path) -> None:
    def body(comm: hs.ThreadComm) -> None:
        with hs.open(tmp_path / "a.zarr", "w", comm=comm, durable=False) as store:
            for shape in SHAPES:
                dist = hs.Distribution.block(shape, comm.size)
                values = ramp(shape, kind)
                store.write(
                    f"a{len(shape)}_{sum(shape)}", values[np.ix_(*dist.indices(comm))] if shape else values, dist
                )

    hs.threads(RANKS, body)
    root = zarr.open_group(tmp_path / "a.zarr", mode="r")
    for shape in SHAPES:
        name = f"a{len(shape)}_{sum(shape)}"
        same(np.asarray(root[name][...]), ramp(shape, kind), name)
        same(read(tmp_path / "a.zarr", name), ramp(shape, kind), name)


def test_xarray_opens_a_store(tmp_path: Path) -> None:
    rho = ramp((4, 6), "f4")
    with hs.open(tmp_path / "a.zarr", "w") as store:
        store.write("rho", rho, dimension_names=("x", "y"), attributes={"units": "kg m-3"}, fill_value=np.nan)
        store.write("x", np.linspace(0, 1, 4), dimension_names=("x",))
        store.write("flag", np.array([True, False] * 3), dimension_names=("y",), fill_value=False)
        with store.step("0001", attributes={"time": 0.25}) as step:
            step.write("rho", rho + 1, dimension_names=("x", "y"))
    data = xarray.open_zarr(tmp_path / "a.zarr", consolidated=False)
    assert set(data.variables) == {"rho", "x", "flag"}
    assert data["rho"].dims == ("x", "y")
    assert data["rho"].attrs["units"] == "kg m-3"
    same(data["rho"].values, rho, "rho")
    assert np.array_equal(data["rho"].sel(x=1.0).values, rho[3])
    step_data = xarray.open_zarr(tmp_path / "a.zarr", group="0001", consolidated=False)
    assert step_data.attrs == {"time": 0.25, "hyperslab_step": 1}
    assert np.array_equal(step_data["rho"].values, rho + 1)


def test_a_step_is_invisible_to_other_tools_until_it_is_published(tmp_path: Path) -> None:
    """Also without a warning: what is unfinished does not lie where they look."""
    path = tmp_path / "a.zarr"
    values = ramp((4, 6), "f4")

    def seen() -> tuple[list[str], list[str], list[str]]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # zarr-python and xarray say that a store has no consolidated metadata only when they are asked for them.
            root = zarr.open_group(path, mode="r", use_consolidated=False)
            names = sorted(name for name, _ in root.members(max_depth=None))
            data = xarray.open_zarr(path, consolidated=False)
            return names, sorted(root.keys()), sorted(map(str, data.variables))

    with hs.open(path, "w") as store:
        store.write("a", values, dimension_names=("x", "y"))
        before = seen()
        assert before == (["a"], ["a"], ["a"])
        with store.step("0001") as step:
            step.write("b", values)
            assert seen() == before
        assert seen() == (["0001", "0001/b", "a"], ["0001", "a"], ["a"])
    assert sorted(found.name for found in path.iterdir()) == ["0001", "a", "zarr.json"]
    assert [found.name for found in tmp_path.iterdir()] == ["a.zarr"]


def test_zarr_python_goes_on_where_we_stopped(tmp_path: Path) -> None:
    """It resizes, writes and adds arrays and attributes; all of it is read here."""
    with hs.open(tmp_path / "a.zarr", "w") as store:
        store.write("a", ramp((4, 6), "f4"), chunks=(2, 4), attributes={"unit": "m"})
    root = zarr.open_group(tmp_path / "a.zarr", mode="r+")
    array = root["a"]
    array.resize((5, 6))
    array[4] = 7
    array.attrs["by"] = "zarr-python"
    root.create_array("b", data=ramp((3,), "i8"))
    with hs.open(tmp_path / "a.zarr") as store:
        assert store["a"].attrs == {"unit": "m", "by": "zarr-python"}
        same(store.read("a"), np.concatenate([ramp((4, 6), "f4"), np.full((1, 6), 7, "f4")]), "a")
        same(store.read("b"), ramp((3,), "i8"), "b")


@pytest.mark.parametrize("kind", ["<f4", ">f8", "<i2", ">u8", "|b1", "<c16"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_files_of_either_side(kind: str, order: Any, tmp_path: Path) -> None:
    for shape in SHAPES:
        values = np.asarray(ramp(shape, "f8").astype(kind), order=order)
        np.save(tmp_path / "theirs.npy", values)
        assert np.array_equal(hs.load_npy(tmp_path / "theirs.npy"), values)
        hs.save_npy(tmp_path / "ours.npy", values, order=order, dtype=kind)
        same(np.load(tmp_path / "ours.npy"), values, str(shape))
