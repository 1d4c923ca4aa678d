"""Texts: what the libraries that own the formats read and write, by value and type, on one rank and several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import netCDF4
import numpy as np
import pytest
import zarr

from mpi_launch import run_ranks
from text_cases import WORDS, read_all, same, texts_of_others

RANKS = (1, 3, 4)


def read_by(ranks: int, path: Path, expected: dict[str, np.ndarray[Any, Any]]) -> None:
    """All arrays, by so many ranks."""
    hs.threads(ranks, lambda comm: read_all(comm, path, expected))


def fixed(length: int, end: int, *, utf8: bool = False) -> h5py.h5t.TypeID:
    """Text of a fixed length, as the file has it."""
    made = h5py.h5t.C_S1.copy()
    made.set_size(length)
    made.set_strpad(end)
    made.set_cset(h5py.h5t.CSET_UTF8 if utf8 else h5py.h5t.CSET_ASCII)
    return made


def stored(file: h5py.File, name: str, kind: h5py.h5t.TypeID, shape: tuple[int, ...], content: bytes) -> None:
    """A dataset of a type that h5py itself would not choose, with these bytes as they are."""
    space = h5py.h5s.create_simple(shape) if shape else h5py.h5s.create(h5py.h5s.SCALAR)
    early = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    early.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    early.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    made = h5py.h5d.create(file.id, name.encode(), kind, space, early)
    file.flush()
    with Path(file.filename).open("r+b") as raw:
        raw.seek(made.get_offset())
        raw.write(content)


# ---- fixed length, HDF5 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", RANKS)
def test_texts_of_a_fixed_length_of_others(ranks: int, tmp_path: Path) -> None:
    """Filled up by zeros or spaces, or ended by a zero with rubbish behind it."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as data:
        texts = np.array([word.encode() for word in WORDS], "S12")
        data["scalar"] = np.bytes_(b"a title")
        data["plain"] = texts
        data.create_dataset("zipped", data=np.tile(texts, 20), chunks=(7,), compression="gzip")
        data.create_dataset("utf8", data=texts.astype(h5py.string_dtype("utf-8", 12)))
        data.create_dataset("wide", data=np.tile(texts, (3, 2)))
        rubbish = b"ab\0cdefg" + b"\0zzzzzzz" + b"abcdefgh"
        for end, content in (
            (h5py.h5t.STR_NULLTERM, rubbish),
            (h5py.h5t.STR_SPACEPAD, b"a b     " + b" " * 8 + b"abcdefgh"),
        ):
            for utf8 in (False, True):
                stored(data, f"end{end}{utf8}", fixed(8, end, utf8=utf8), (3,), content)
            stored(data, f"one{end}", fixed(8, end), (), content[:8])
    with h5py.File(path) as data:
        expected = {name: np.asarray(data[name][()], data[name].dtype) for name in data}
    assert expected["one0"] == b"ab"
    assert expected["end2False"].tolist() == [b"a b", b"", b"abcdefgh"]
    read_by(ranks, path, expected)


@pytest.mark.parametrize("ranks", RANKS)
def test_texts_in_records(ranks: int, tmp_path: Path) -> None:
    """Behind their values there is nothing, in arrays and records within, too."""
    path = tmp_path / "a.h5"
    inner = h5py.h5t.create(h5py.h5t.COMPOUND, 9)
    inner.insert(b"unit", 1, fixed(8, h5py.h5t.STR_SPACEPAD))
    inner.insert(b"flag", 0, h5py.h5t.STD_I8LE)
    outer = h5py.h5t.create(h5py.h5t.COMPOUND, 40)
    outer.insert(b"late", 22, h5py.h5t.array_create(inner, (2,)))
    outer.insert(b"name", 0, h5py.h5t.array_create(fixed(4, h5py.h5t.STR_NULLTERM), (3,)))
    outer.insert(b"value", 14, h5py.h5t.IEEE_F64LE)
    one = b"ab\0x\0yyyabcd" + b"\0\0" + np.float64(1.5).tobytes() + b"\1K m     " + b"\2        "
    with h5py.File(path, "w") as data:
        stored(data, "records", outer, (3,), one * 3)
        data.attrs.create("record", 0)
        del data.attrs["record"]
        attribute = h5py.h5a.create(data.id, b"record", outer, h5py.h5s.create(h5py.h5s.SCALAR))
        attribute.write(np.frombuffer(one, np.uint8), outer)
    with h5py.File(path) as data:
        expected = {"records": data["records"][()]}
        record = data.attrs["record"]
    assert expected["records"].dtype.names == ("late", "name", "value")
    assert expected["records"]["name"][0].tolist() == [b"ab", b"", b"abcd"]
    assert expected["records"]["late"]["unit"][0].tolist() == [b"K m", b""]

    def one_rank(comm: hs.ThreadComm) -> None:
        with hs.open(path, comm=comm) as file:
            assert file["records"].dtype == expected["records"].dtype
            found = file.read("records")
            assert all(np.array_equal(found[name], expected["records"][name]) for name in found.dtype.names)
            told = file.attrs["record"]
            assert all(np.array_equal(told[name], record[name]) for name in record.dtype.names)

    hs.threads(ranks, one_rank)


def test_records_come_in_the_order_in_which_they_are_declared(tmp_path: Path) -> None:
    inner = np.dtype({"names": ["y", "x"], "formats": ["<i2", "<i4"], "offsets": [4, 0], "itemsize": 8})
    dtype = np.dtype(
        {"names": ["z", "in", "a"], "formats": ["<f8", inner, "S3"], "offsets": [16, 4, 0], "itemsize": 24}
    )
    values = np.zeros(4, dtype)
    values["z"], values["a"], values["in"]["x"], values["in"]["y"] = range(4), b"abc", range(4), 7
    with h5py.File(tmp_path / "a.h5", "w") as data:
        data["a"] = values
        expected = data["a"].dtype
    with hs.open(tmp_path / "a.h5") as file:
        found = file.read("a")
    assert found.dtype == expected == dtype
    assert np.array_equal(found, values)
    with hs.open(tmp_path / "b.h5", "w") as file:
        file.write("a", values)
    with h5py.File(tmp_path / "b.h5") as data:
        assert data["a"].dtype == dtype
        assert np.array_equal(data["a"][()], values)
    with hs.open(tmp_path / "a.zarr", "w") as store, pytest.raises(hs.UnsupportedError, match="another order"):
        store.write("a", values)
    with pytest.raises(hs.UnsupportedError, match="another order"):
        hs.save_npy(tmp_path / "a.npy", values)


def test_bit_fields_are_unsigned_integers(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as data:
        for kind in (h5py.h5t.STD_B8LE, h5py.h5t.STD_B16BE, h5py.h5t.STD_B32LE, h5py.h5t.STD_B64BE):
            stored(data, f"b{kind.get_size()}{kind.get_order()}", kind, (2,), bytes(range(1, 1 + 2 * kind.get_size())))
        expected = {name: data[name][()] for name in data}
    read_by(3, tmp_path / "a.h5", expected)


@pytest.mark.parametrize("ranks", RANKS)
def test_texts_of_a_fixed_length_are_stored_as_h5py_stores_them(ranks: int, tmp_path: Path) -> None:
    texts = np.array([word.encode() for word in WORDS * 3], "S12")
    path = tmp_path / "a.h5"

    def one(comm: hs.ThreadComm) -> None:
        dist = hs.Distribution(texts.shape, (comm.size,), ("block",))
        with hs.open(path, "w", comm=comm) as file:
            file.write("plain", texts[dist.slices(comm.rank)], dist)
            file.write("zipped", texts[dist.slices(comm.rank)], dist, chunks=(4,), compression="gzip")
            file.write("scalar", np.array(b"a title"), hs.Distribution.replicated((), comm.size))
            options: Any = {"chunks": (4,), "maxshape": (None,), "fill_value": b"none"}
            file.write("filled", texts, hs.Distribution.replicated(texts.shape, comm.size), **options)
            with pytest.raises(hs.UnsupportedError, match=r"NumPy's type U[^\n]*\n  hint:.*utf-8"):
                file.write("wide", np.array(WORDS), hs.Distribution.replicated((5,), comm.size))
        with hs.open(path, "r+", comm=comm) as file:
            one = hs.Distribution.replicated((1,), comm.size)
            file.write("plain", np.array([b"new"], "S12"), one, section=slice(2, 3))

    hs.threads(ranks, one)
    with h5py.File(path) as data, h5py.File(tmp_path / "own.h5", "w") as own:
        own["plain"], own["scalar"] = texts, np.array(b"a title")
        for name in own:
            assert data[name].id.get_type() == own[name].id.get_type(), name
        expected = texts.copy()
        assert np.array_equal(data["zipped"][()], expected)
        assert data["filled"].fillvalue == b"none"
        assert data["scalar"][()] == b"a title"
        expected[2] = b"new"
        assert np.array_equal(data["plain"][()], expected)


def test_texts_that_end_otherwise_are_not_changed(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as data:
        stored(data, "a", fixed(4, h5py.h5t.STR_SPACEPAD), (2,), b"a   b   ")
    match = "'a' has texts that end with a zero or with spaces"
    with hs.open(tmp_path / "a.h5", "r+") as file, pytest.raises(hs.UnsupportedError, match=match):
        file.write("a", np.array([b"c"], "S4"), section=slice(0, 1))


# ---- characters of netCDF -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA", "NETCDF4"])
@pytest.mark.parametrize("ranks", RANKS)
def test_characters_of_netcdf(ranks: int, model: str, tmp_path: Path) -> None:
    characters = np.array([list("abc "), list("d\0 f")], "S1")
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format=model) as data:
        data.createDimension("t", None)
        data.createDimension("n", 4)
        data.createVariable("fixed", "S1", ("n",))[:] = characters[0]
        data.createVariable("records", "S1", ("t", "n"))[:] = characters
        data.createVariable("filled", "S1", ("n",), fill_value=b"x")
        data.set_auto_mask(False)
        data.set_auto_chartostring(False)
        expected = {name: data[name][...] for name in data.variables}
    read_by(ranks, tmp_path / "a.nc", expected)
    with hs.open(tmp_path / "a.nc") as file:
        assert (file["filled"].fill_value, file["fixed"].fill_value) == (b"x", b"")

    def one(comm: hs.ThreadComm) -> None:
        dist = hs.Distribution((2, 4), (comm.size,), ("block", "*"))
        options: Any = {"format": "netcdf4" if model == "NETCDF4" else model}
        with hs.open(tmp_path / "b.nc", "w", comm=comm, unlimited="t", **options) as file:
            local = characters[dist.slices(comm.rank)]
            file.write("records", local, dist, dimension_names=["t", "n"], fill_value=b"x")
            file.append("records", characters[:1], hs.Distribution.replicated((1, 4), comm.size))
            with pytest.raises(hs.UnsupportedError, match=r"characters.*\n  hint: split it"):
                file.write("words", np.array([b"word"]), hs.Distribution.replicated((1,), comm.size))

    hs.threads(ranks, one)
    with netCDF4.Dataset(tmp_path / "b.nc") as data:
        data.set_auto_mask(False)
        data.set_auto_chartostring(False)
        assert data.data_model == model
        assert data["records"].dtype == np.dtype("S1")
        assert data["records"]._FillValue in (b"x", "x")
        assert np.array_equal(data["records"][...], np.concatenate([characters, characters[:1]]))


# ---- fixed length, Zarr ---------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*data type.*")
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("ranks", RANKS)
def test_texts_of_zarr_python(ranks: int, version: int, tmp_path: Path) -> None:
    words = np.array(WORDS * 3)
    arrays = {"U": words, "S": np.array([word.encode() for word in WORDS * 3])}
    arrays["bigU"] = words.astype(words.dtype.newbyteorder(">"))
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=version)
    for name, values in arrays.items():
        made = group.create_array(name, shape=values.shape, dtype=values.dtype, chunks=(4,), fill_value=values[1])
        made[:-4] = values[:-4]
    expected = {name: np.asarray(group[name][...]) for name in arrays}
    expected = {name: values.astype(values.dtype.newbyteorder("=")) for name, values in expected.items()}

    def one(comm: hs.ThreadComm) -> None:
        with hs.open(tmp_path / "a.zarr", comm=comm) as store:
            for name, values in expected.items():
                dist = hs.Distribution(values.shape, (comm.size,), ("block",))
                same(store.read(name, dist), values[dist.slices(comm.rank)], name)
                same(store[name][2:9], values[2:9], name)
                assert store.read(name).dtype == values.dtype
                assert store[name].fill_value == values[1]

    hs.threads(ranks, one)


@pytest.mark.filterwarnings("ignore:.*data type.*")
@pytest.mark.parametrize("ranks", RANKS)
def test_texts_for_zarr_python(ranks: int, tmp_path: Path) -> None:
    arrays = {"U": np.array(WORDS * 3), "S": np.array([word.encode() for word in WORDS * 3])}

    def one(comm: hs.ThreadComm) -> None:
        with hs.open(tmp_path / "a.zarr", "w", comm=comm) as store:
            for name, values in arrays.items():
                dist = hs.Distribution(values.shape, (comm.size,), ("block",))
                fill = values[1]
                store.create_array(name, (20,), values.dtype, chunks=(4,), fill_value=fill)
                store.write(name, values[dist.slices(comm.rank)], dist, section=slice(0, 15))
                store.write(f"{name}0", np.array(values[2]), hs.Distribution.replicated((), comm.size))

    hs.threads(ranks, one)
    group = zarr.open_group(tmp_path / "a.zarr", mode="r")
    for name, values in arrays.items():
        assert group[name].dtype == values.dtype
        assert group[name].fill_value == values[1]
        assert np.array_equal(group[name][...], np.concatenate([values, np.full(5, values[1])]))
        assert group[f"{name}0"][()] == values[2]


def test_texts_in_npy(tmp_path: Path) -> None:
    for name, values in {
        "U": np.array(WORDS),
        "S": np.array([b"a", b"bcd"]),
        "big": np.array(WORDS).astype(">U12"),
    }.items():
        np.save(tmp_path / f"{name}.npy", values)
        assert np.array_equal(hs.load_npy(tmp_path / f"{name}.npy"), values)
        hs.save_npy(tmp_path / f"our{name}.npy", values)
        found = np.load(tmp_path / f"our{name}.npy")
        assert found.dtype == values.dtype
        assert np.array_equal(found, values)


# ---- variable length, HDF5 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("ranks", RANKS)
def test_texts_of_variable_length_of_h5py(ranks: int, libver: str, tmp_path: Path) -> None:
    texts_of_others(tmp_path / "a.h5", libver)
    with h5py.File(tmp_path / "a.h5") as data:
        expected = {name: data[name][...] for name in data}
    assert expected["scalar"][()] == b"a title"
    read_by(ranks, tmp_path / "a.h5", expected)
    with hs.open(tmp_path / "a.h5") as file:
        assert file["zipped"][[5, 3, 5]].tolist() == expected["zipped"][[5, 3, 5]].tolist()
        assert file["plain"][-1] == b"the end"
        into = np.full(5, "kept", object)
        file.read("plain", hs.Boxes((5,), [(slice(1, 3),)]), out=[into[2:4]])
        assert into.tolist() == ["kept", "kept", b"a", b"twelve bytes", "kept"]
        assert file.iread("plain").wait().tolist() == expected["plain"].tolist()
        with pytest.raises(hs.InvalidError, match="cannot change from text of variable length to float64"):
            file.read("plain", dtype="f8")
    with hs.open(tmp_path / "a.h5", "r+") as file:
        file.write("new", np.arange(3))
        with pytest.raises(hs.InvalidError, match=r"'plain'.*cannot change from float64 to text of variable length"):
            file.write("plain", np.zeros(1), section=slice(0, 1))
        file.write("zipped", np.array([b"a"], "S1"), section=slice(1, 2))
        expected["zipped"][1] = b"a"
    with h5py.File(tmp_path / "a.h5") as data:
        assert all(np.array_equal(data[name][...], values) for name, values in expected.items())


@pytest.mark.parametrize("ranks", RANKS)
def test_texts_of_variable_length_of_netcdf4(ranks: int, tmp_path: Path) -> None:
    words = np.array(WORDS, object)
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as data:
        data.createDimension("t", None)
        data.createDimension("n", 5)
        data.createVariable("words", str, ("n",))[:] = words
        data.createVariable("records", str, ("t", "n"))[:2] = np.array([words, words[::-1]])
        data.createVariable("title", str, ())[...] = "größer"
        expected = {"words": data["words"][:], "records": data["records"][:], "title": np.array("größer", object)}
        assert data["title"][...] == "größer"
    read_by(ranks, tmp_path / "a.nc", expected)


def test_a_damaged_heap_is_an_error_on_all_ranks(tmp_path: Path) -> None:
    texts_of_others(tmp_path / "a.h5", "latest")
    content = (tmp_path / "a.h5").read_bytes()
    (tmp_path / "a.h5").write_bytes(content.replace(b"GCOL", b"GCXX"))

    def one(comm: hs.ThreadComm) -> str:
        with hs.open(tmp_path / "a.h5", comm=comm) as file:
            dist = hs.Distribution((5,), (3,), ("block",))
            with pytest.raises(hs.CorruptError, match="GCOL") as caught:
                file.read("plain", dist)
            assert file.read("never").tolist() == [b""] * 4
            return str(caught.value)

    assert len({*hs.threads(3, one)}) == 1


@pytest.mark.mpi
def test_texts_by_processes(tmp_path: Path) -> None:
    assert "texts are right" in run_ranks(3, "texts", tmp_path)


def test_one_long_text_that_many_elements_name_takes_no_memory(tmp_path: Path) -> None:
    """Libraries give each element a text of its own; memory stays within the length of the file."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        made = file.create_dataset("a", data=["x" * 60_000] + ["y"] * 999, dtype=h5py.string_dtype())
        first = made.id.get_offset()
    content = bytearray(path.read_bytes())
    content[first : first + 16_000] = content[first : first + 16] * 1000
    path.write_bytes(content)
    with hs.open(path, comm=None) as file:
        assert file["a"][:1].tolist() == [b"x" * 60_000]
        with pytest.raises(hs.CorruptError, match="as long as the file"):
            file["a"][:]
