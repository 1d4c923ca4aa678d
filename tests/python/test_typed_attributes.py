"""Attributes keep type and value: in each format beside the library that owns it, and from any format to any other."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import netCDF4
import numpy as np
import pytest
import scipy.io
import xarray as xr
import zarr

import attribute_cases
from attribute_cases import FORMATS, NAMED, told
from mpi_launch import run_ranks

SEED = int(os.environ.get("HYPERSLAB_SEED", "20261129"))
TIMES = int(os.environ.get("HYPERSLAB_TIMES", "1"))
#: Cases on so many ranks, each of which writes some 20 files.
CASES = {1: 12, 3: 6, 4: 4}


@pytest.mark.parametrize("ranks", CASES)
def test_random_attributes_go_from_any_format_to_any_other(ranks: int, tmp_path: Path) -> None:
    cases = range(1000 * ranks, 1000 * ranks + CASES[ranks] * TIMES)
    hs.threads(ranks, lambda comm: attribute_cases.run(comm, tmp_path, SEED, cases))


@pytest.mark.mpi
def test_random_attributes_of_processes(tmp_path: Path) -> None:
    assert "3 cases" in run_ranks(3, "attributes", tmp_path, SEED + 1, 3)


# ---- what others have written --------------------------------------------------------------------------------------


def low(
    file: h5py.File, name: str, datatype: h5py.h5t.TypeID, content: Any, shape: tuple[int, ...] | None = ()
) -> None:
    """An attribute of a type that h5py itself would not choose."""
    space = h5py.h5s.create(h5py.h5s.NULL) if shape is None else h5py.h5s.create_simple(shape) if shape else None
    made = h5py.h5a.create(file.id, name.encode(), datatype, space or h5py.h5s.create(h5py.h5s.SCALAR))
    if content is not None:
        made.write(content, datatype)


def fixed(length: int, end: int, *, utf8: bool = False) -> h5py.h5t.TypeID:
    """Text of a fixed length."""
    made = h5py.h5t.C_S1.copy()
    made.set_size(length)
    made.set_strpad(end)
    made.set_cset(h5py.h5t.CSET_UTF8 if utf8 else h5py.h5t.CSET_ASCII)
    return made


def theirs(path: Path) -> None:
    """A file of h5py with attributes of all kinds."""
    given: dict[str, Any] = {
        "integer": 5,
        "float": float("inf"),
        "truth": True,
        "nan": np.frombuffer(b"\x01\x00\xc0\x7f", "f4")[0],
        "half": np.float16(1.5),
        "complex": np.complex64(1 - 2j),
        "text": "größe",
        "none": "",
        "not utf8": b"\xb5m",
        "bytes": np.bytes_(b"abc"),
        "latin": np.bytes_(b"\xb5m"),
        "list": [1, 2],
        "empty": np.zeros((0, 3), "f4"),
        "texts": ["a", "", "ü"],
        "byte strings": np.array([b"a", b"bb"]),
        "rows": np.arange(6, dtype=">i2").reshape(2, 3),
        "truths": np.array([True, False]),
        "raw": np.void(b"abc"),
        "record": np.array([(1, (0.5, 2.5), b"xy")], attribute_cases.RECORD)[0],
        "records": np.zeros(2, attribute_cases.RECORD),
        "named": np.array([0, -7, 1], NAMED),
        "nothing": h5py.Empty("f4"),
        "no text": h5py.Empty("S1"),
    }
    with h5py.File(path, "w") as file:
        for name, value in given.items():
            file.attrs[name] = value
        file.attrs.create("arrays", np.arange(6).reshape(2, 3), dtype=np.dtype(("i4", (3,))), shape=(2, 3))
        low(file, "bits", h5py.h5t.STD_B16LE.copy(), np.array(5, "u2"))


def test_values_of_h5py_are_those_that_it_reads(tmp_path: Path) -> None:
    theirs(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file, hs.open(tmp_path / "a.h5") as ours:
        assert {*ours.attrs} == {*file.attrs}
        for name in file.attrs:
            assert told(ours.attrs[name]) == told(file.attrs[name]), name
            if not name.startswith("no"):
                assert type(ours.attrs[name]) is type(file.attrs[name]), name
        assert ours.attrs["nothing"] == h5py.Empty("f4")
        assert ours.attrs["nothing"] == hs.Empty(np.dtype("f4")) != hs.Empty(np.dtype("f8"))


def test_text_ends_where_its_type_says(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        low(file, "c", fixed(6, h5py.h5t.STR_NULLTERM), np.array(b"ab\0cd", "S6"))
        low(file, "fortran", fixed(6, h5py.h5t.STR_SPACEPAD), np.array(b"ab    ", "S6"))
        low(file, "utf8", fixed(6, h5py.h5t.STR_NULLPAD, utf8=True), np.array("aü".encode(), "S6"))
        low(file, "latin", fixed(6, h5py.h5t.STR_NULLTERM), np.array(b"\xb5m\0x", "S6"))
        low(file, "several", fixed(2, h5py.h5t.STR_SPACEPAD), np.array([b"a ", b"bc"]), (2,))
    with hs.open(tmp_path / "a.h5") as file:
        found = dict(file.attrs)
        assert [found[name] for name in ("c", "fortran", "utf8")] == ["ab", "ab", "aü"]
        assert told(found["latin"]) == told(np.bytes_(b"\xb5m"))
        assert found["several"].tolist() == ["a", "bc"]


def test_what_is_not_understood_is_shown_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        data = file.create_dataset("d", data=np.arange(4))
        file.attrs["object"], file.attrs["region"] = file.ref, data.regionref[1:3]
        file.attrs["objects"] = np.array([file.ref, data.ref], h5py.ref_dtype)
        file.attrs["long"] = np.longdouble(1.5)
        file.attrs.create("lists", np.array([np.arange(2), np.arange(3)], object), dtype=h5py.vlen_dtype("i4"))
    kept = {
        "object": hs.Kept("references to objects", ()),
        "region": hs.Kept("references to regions of datasets", ()),
        "objects": hs.Kept("references to objects", (2,)),
        "lists": hs.Kept("lists of variable length", (2,)),
    }
    with hs.open(path, "r+") as file:
        assert {name: file.attrs[name] for name in kept} == kept
        assert "a float of 80 bits" in file.attrs["long"].what
        assert pickle.loads(pickle.dumps(kept)) == kept
        file.attrs["new"] = np.float32(0.5)
        with pytest.raises(hs.InvalidError, match=r"'copy'.*HDF5.*references to objects(.|\n)*hint: it can only stay"):
            file.attrs["copy"] = file.attrs["object"]
    for name in ("netcdf3", "netcdf4", "zarr"):
        hs.threads(1, lambda comm: attribute_cases.refused(tmp_path / "no", name, "object", kept["object"], comm))  # noqa: B023
    with h5py.File(path) as file:
        assert file[file.attrs["object"]] == file
        assert file["d"][file.attrs["region"]].tolist() == [1, 2]
        assert [one.tolist() for one in file.attrs["lists"]] == [[0, 1], [0, 1, 2]]
        assert told(file.attrs["new"]) == told(np.float32(0.5))


def test_enumerations_keep_their_names(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.attrs.create("one", -7, dtype=NAMED)
        file.attrs["several"] = np.array([1, 0], NAMED)
    with hs.open(tmp_path / "a.h5") as file:
        found = file.attrs.copy()
        assert (found["one"], found["one"].dtype, int(found["one"])) == (-7, np.dtype("i2"), -7)
        assert pickle.loads(pickle.dumps(found["one"])).members == {"OFF": 0, "ON": 1, "ODD": -7}
    with hs.open(tmp_path / "b.h5", "w", attributes=found):
        pass
    with h5py.File(tmp_path / "b.h5") as file:
        for name, value in (("one", -7), ("several", [1, 0])):
            assert np.array_equal(file.attrs[name], value)
            assert h5py.check_enum_dtype(file.attrs.get_id(name).dtype) == {"OFF": 0, "ON": 1, "ODD": -7}


@pytest.mark.parametrize("version", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA", "NETCDF4"])
def test_values_of_netcdf4_are_those_that_it_reads(version: Any, tmp_path: Path) -> None:
    numbers = (
        attribute_cases.NUMBERS if version in ("NETCDF3_64BIT_DATA", "NETCDF4") else ("i1", "i2", "i4", "f4", "f8")
    )
    given: dict[str, Any] = {"text": "größe", "none": "", "latin": b"\xb5m"}
    for code in numbers:
        given |= {code: np.dtype(code).type(7), f"{code}s": np.array([1, 2], code), f"{code} none": np.zeros(0, code)}
    given |= {"nan": np.float32("nan"), "inf": [np.inf, -np.inf, np.nan]}
    if version == "NETCDF4":
        given |= {"texts": ["a", "", "ü"]}
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w", format=version) as data:
        data.setncatts(given)
        data.createVariable("v", "f4").setncatts({**given, "missing_value": np.float64(-9)})
    with netCDF4.Dataset(path) as data, hs.open(path) as file:
        for where, found in ((data, dict(file.attrs)), (data["v"], dict(file["v"].attrs))):
            assert [*found] == where.ncattrs()
            for name in where.ncattrs():
                expected = np.bytes_(b"\xb5m") if name == "latin" else where.getncattr(name)
                assert told(found[name]) == told(expected), name
                assert isinstance(found[name], type(expected)), name
    if version in ("NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET"):
        attribute_cases.check(path, "netcdf3", {**given, "latin": np.bytes_(b"\xb5m"), "inf": np.array(given["inf"])})
        with scipy.io.netcdf_file(path, mmap=False) as file:
            assert file._attributes["latin"] == b"\xb5m"


# ---- what is written -----------------------------------------------------------------------------------------------


def test_a_typed_attribute_stays_what_it_is_beside_its_variable(tmp_path: Path) -> None:
    for kind in ("netcdf3", "netcdf4", "hdf5"):
        path = tmp_path / f"{kind}.nc"
        given = {"missing_value": np.float64(-9), "valid_min": np.int16(1), "valid_range": [0, 1], "_FillValue": -1}
        with hs.open(path, "w", format=kind) as file:
            file.write("v", np.zeros(2, "f4"), attributes=given)
        with hs.open(path, format=None if kind == "netcdf3" else kind) as file:
            found = dict(file["v"].attrs)
        assert [found[name].dtype for name in given] == [np.dtype(code) for code in ("f8", "i2", "f4", "f4")]
    with netCDF4.Dataset(tmp_path / "netcdf4.nc") as data:
        assert data["v"].getncattr("missing_value").dtype == np.float64
    for kind in ("netcdf3", "netcdf4"):
        with hs.open(tmp_path / "b.nc", "w", format=kind) as file:
            file.write("v", np.zeros(2, "i2"), attributes={"_FillValue": np.float64(-9)})
            with pytest.raises(hs.InvalidError, match=r"'_FillValue'.*0\.5"):
                file.write("w", np.zeros(2, "i2"), attributes={"_FillValue": np.float64(0.5)})
        with netCDF4.Dataset(tmp_path / "b.nc") as data:
            assert data["v"].getncattr("_FillValue").dtype == np.int16


def test_errors_name_attribute_value_and_format(tmp_path: Path) -> None:
    for kind, value, said in (
        ("hdf5", "a\0b", r"'bad'.*HDF5(.|\n)*first zero"),
        ("hdf5", b"ab\0", r"'bad'.*HDF5.*bytes of 3 B(.|\n)*np.void"),
        ("hdf5", {"b": 1}, r"'bad'.*HDF5.*\{'b': 1\}(.|\n)*no mappings"),
        ("hdf5", [1, "x"], r"'bad'.*HDF5.*\[1, 'x'\]"),
        ("hdf5", 2**64, r"'bad'.*HDF5.*18446744073709551616"),
        ("netcdf3", np.zeros((2, 2)), r"'bad'.*NetCDF.*float64 of shape \(2, 2\)(.|\n)*ravel"),
        ("netcdf3", True, r"'bad'.*NetCDF.*found True"),
        ("netcdf3", ["a", "b"], r"'bad'.*NetCDF.*\['a', 'b'\]"),
        ("netcdf4", np.float16(0.5), r"'bad'.*netCDF-4.*float16 0.5"),
        ("netcdf4", np.bool_(1), r"'bad'.*netCDF-4.*bool True"),
        ("netcdf4", 1j, r"'bad'.*netCDF-4.*complex128"),
        ("netcdf4", "a\0b", r"'bad'.*netCDF-4(.|\n)*first zero"),
        ("NETCDF3_64BIT_OFFSET", np.int64(5), r"NETCDF3_64BIT_OFFSET.*the attribute 'bad', int64 5"),
    ):
        with pytest.raises(hs.Error, match=said):
            hs.open(tmp_path / "a", "w", format=kind, attributes={"bad": value})
    with hs.open(tmp_path / "a.zarr", "w") as store:
        for value, said in ((b"\xb5", r"JSON.*b'\\xb5'"), (1j, "JSON.*complex128"), ("\udcb5", r"JSON.*b'\\xb5'")):
            with pytest.raises(hs.InvalidError, match=f"'bad'.*{said}"):
                store.attrs["bad"] = value
        assert dict(store.attrs) == {}


# ---- text of zarr.json ---------------------------------------------------------------------------------------------

#: Numbers and words as others write them.
TEXT = '{"nan": NaN, "s": "NaN", "more": [-Infinity, {"deep": Infinity}], "digits": 1.50e+3, "big": 10000000000000000}'


def written_by_others(path: Path) -> Path:
    """A store with an array, both with attributes that are not quite JSON."""
    group = zarr.create_group(path, zarr_format=3)
    array = group.create_array("a", shape=(4,), chunks=(2,), dtype="f4", attributes={"mark": 1})
    array[:] = 1
    group.attrs["mark"] = 1
    for document in (path / "zarr.json", path / "a/zarr.json"):
        text = document.read_text()
        at = text.index('"attributes": {')
        document.write_text(text[:at] + f'"attributes": {TEXT}' + text[text.index("}", at) + 1 :])
    return path


def test_words_of_others_stay_in_the_text(tmp_path: Path) -> None:
    path = written_by_others(tmp_path / "a.zarr")
    expected = attribute_cases.json_of(path / "zarr.json")["attributes"]
    for change in ("append", "resize", "attribute", "group attribute", "write", "consolidate", "rename"):
        with hs.open(path, "r+") as store:
            if change == "append":
                store.append("a", np.ones(3, "f4"))
            elif change == "resize":
                store["a"].resize((9,))
            elif change == "attribute":
                store["a"].attrs["added"] = 1
                del store["a"].attrs["added"]
            elif change == "group attribute":
                store.attrs["added"] = [np.nan, np.inf]
                assert told(store.attrs["added"]) == told([np.nan, np.inf])
                del store.attrs["added"]
            elif change == "write":
                store.write("a", np.zeros(1, "f4"), section=slice(0, 1))
                store.write("b", np.zeros(3))
            elif change == "consolidate":
                store.consolidate()
            else:
                store.rename("a", "c")
                store.rename("c", "a")
        for document in (path / "zarr.json", path / "a/zarr.json"):
            assert attribute_cases.json_of(document)["attributes"] == expected, change
        attributes = dict(zarr.open_group(path, mode="r", use_consolidated=False)["a"].attrs)
        with hs.open(path) as store:
            assert told(dict(store["a"].attrs)) == told(dict(store.attrs)) == told(attributes)
            assert told(store.attrs["nan"]) == told(np.nan)
            assert store.attrs["s"] == "NaN"
            assert store.attrs["big"] == 10**16
    with hs.open(path, "r+") as store:
        store.delete("a")
        store.delete("b")
    with xr.open_zarr(path, consolidated=False) as data:
        assert told(data.attrs["nan"]) == told(np.nan)


def test_new_numbers_are_written_as_zarr_python_writes_them(tmp_path: Path) -> None:
    given = {"nan": np.nan, "inf": [np.inf, -np.inf], "deep": {"x": [np.float32("nan")]}, "half": np.float16(0.1)}
    with hs.open(tmp_path / "a.zarr", "w") as store:
        store.attrs.update(given)
        store.write("a", np.zeros(3), attributes=given)
        with store.step("s", attributes=given) as step:
            step.write("a", np.zeros(3), attributes=given)
    plain = {"nan": np.nan, "inf": [np.inf, -np.inf], "deep": {"x": [np.nan]}, "half": float(np.float16(0.1))}
    zarr.create_group(tmp_path / "b.zarr", attributes=plain)
    expected = attribute_cases.json_of(tmp_path / "b.zarr/zarr.json")["attributes"]
    for node in (".", "a", "s", "s/a"):
        found = attribute_cases.json_of(tmp_path / "a.zarr" / node / "zarr.json")["attributes"]
        found.pop("hyperslab_step", None)
        assert found == expected
    with hs.open(tmp_path / "a.zarr") as store:
        assert told(dict(store["a"].attrs)) == told(plain)


def test_v2_attributes_are_numbers(tmp_path: Path) -> None:
    group = zarr.create_group(tmp_path / "a.zarr", zarr_format=2, attributes={"x": float("nan"), "s": "NaN"})
    group.create_array("a", shape=(3,), dtype="f4", attributes={"x": [float("inf")]})
    with hs.open(tmp_path / "a.zarr") as store:
        assert told(dict(store.attrs)) == told({"x": float("nan"), "s": "NaN"})
        assert told(dict(store["a"].attrs)) == told({"x": [float("inf")]})


# ---- large ones ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["hdf5", "netcdf4"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_large_attributes_are_written_and_changed_by_both(kind: str, ranks: int, tmp_path: Path) -> None:
    path, random = tmp_path / "a.nc", np.random.default_rng(SEED)
    model: dict[str, Any] = {f"n{number}": number for number in range(20)}
    model |= {"large": random.normal(size=50_000), "text": "ä" * 70_000}

    def make(comm: Any) -> None:
        with hs.open(path, "w", comm=comm, format=kind, attributes=model) as file:
            file.write("a", np.zeros(3), hs.Distribution.replicated((3,), comm.size), attributes=model)
            if kind == "hdf5":
                file.create_group("g", attributes=model)

    def look() -> None:
        with h5py.File(path) as data, hs.open(path, format=kind) as file:
            for theirs, ours in ((data.attrs, file.attrs), (data["a"].attrs, file["a"].attrs)):
                assert {*ours} == {*model}
                for name, value in model.items():
                    found = theirs[name]
                    text = found.decode() if isinstance(found, bytes) else found
                    assert np.array_equal(text, value)
                    assert np.array_equal(ours[name], value)
        with netCDF4.Dataset(path) as data:
            if kind == "netcdf4":
                assert np.array_equal(data.getncattr("large"), model["large"])
                assert data["a"].getncattr("text") == model["text"]

    hs.threads(ranks, make)
    look()
    for turn in range(3):
        values = {f"n{turn}": turn + 100, f"new{turn}": random.normal(size=9000 * (turn + 1)), f"few{turn}": "x" * turn}
        gone = f"n{turn + 5}"

        def change(comm: Any, values: dict[str, Any] = values, gone: str = gone) -> None:
            with hs.open(path, "r+", comm=comm, format=kind) as file:
                for attrs in (file.attrs, file["a"].attrs):
                    attrs.update(values)
                    del attrs[gone]

        hs.threads(ranks, change)
        model |= values
        del model[gone]
        look()
        with h5py.File(path, "r+") as data:
            for attrs in (data.attrs, data["a"].attrs):
                attrs[f"h{turn}"] = np.arange(20_000.0) + turn
                del attrs[f"n{turn + 10}"]
                attrs[f"n{turn}"] = turn
        model |= {f"h{turn}": np.arange(20_000.0) + turn, f"n{turn}": turn}
        del model[f"n{turn + 10}"]
        look()


def test_an_old_header_has_no_place_for_large_attributes(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w", libver="earliest") as file:
        file["d"] = np.arange(3)
    before = (tmp_path / "a.h5").read_bytes()
    with (
        hs.open(tmp_path / "a.h5", "r+") as file,
        pytest.raises(hs.UnsupportedError, match=r"at most 65528 B in a header of this form(.|\n)*hint: "),
    ):
        file["d"].attrs["large"] = np.zeros(9000)
    assert (tmp_path / "a.h5").read_bytes() == before


# ---- everyday use --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
def test_mappings_compare_print_and_cannot_be_changed(name: str, tmp_path: Path) -> None:
    given = {"n": np.array([1, 2], "i2"), "x": 0.5, "t": "text"}
    hs.threads(1, lambda comm: attribute_cases.make(tmp_path / "a", name, given, comm))
    with hs.open(tmp_path / "a", format=None if name == "zarr" else name) as file:
        attrs = file["a"].attrs
        assert attrs == file.attrs == dict(attrs)
        assert attrs == given or name == "zarr"
        assert attrs != {**given, "n": np.array([1, 3], "i2")}
        assert attrs != {"x": 0.5}
        assert "n" in repr(attrs)
        if name != "zarr":
            with pytest.raises(ValueError, match="read-only"):
                attrs["n"][0] = 7
            copy = attrs.copy()
            copy["n"][0] = 7
            assert attrs["n"][0] == 1
        assert file["a"]._look() == file["a"]._look()


def test_ranks_that_give_other_types_are_named(tmp_path: Path) -> None:
    def run(comm: Any) -> None:
        value = np.float32(0.5) if comm.rank == 1 else np.float64(0.5)
        with hs.open(tmp_path / "a.h5", "w", comm=comm) as file:
            with pytest.raises(hs.DisagreementError, match=r"attribute 'x'.*float(32|64) 0.5.*float(32|64) 0.5"):
                file.write("a", np.zeros(3), hs.Distribution.replicated((3,), comm.size), attributes={"x": value})
            bits = np.frombuffer(b"\x01\x00\xc0\x7f", "f4") if comm.rank == 1 else np.array([np.nan], "f4")
            with pytest.raises(hs.DisagreementError, match="attribute 'x'"):
                file.write("a", np.zeros(3), hs.Distribution.replicated((3,), comm.size), attributes={"x": bits})
            file.write("a", np.zeros(3), hs.Distribution.replicated((3,), comm.size), attributes={"x": np.float32(0.5)})

    hs.threads(3, run)
