"""Which elements arrays may have, and what fill values and attributes are to Python."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import hyperslab as hs
import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import type_cases
from mpi_launch import run_ranks
from type_cases import KINDS, THEIRS, native, same, some_values

ml_dtypes = pytest.importorskip("ml_dtypes")

SHAPE = (6, 5)
NUMBERS = ("?", "i1", "i8", "u8", "f2", "f4", "f8", "c8", "c16")


def written(path: Path, array: Any, **options: Any) -> Path:
    with hs.open(path, "w") as store:
        store.write("a", array, **options)
    return path


# ---- what is no number --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_on_processes(ranks: int, tmp_path: Path) -> None:
    assert run_ranks(ranks, "elements", tmp_path) == "8 cases\n"


def test_on_threads(tmp_path: Path) -> None:
    hs.threads(4, lambda comm: type_cases.run(comm, tmp_path))


@pytest.mark.parametrize("name", THEIRS)
@pytest.mark.filterwarnings("ignore:.*:zarr.errors.UnstableSpecificationWarning")
def test_arrays_of_zarr_python_are_read_and_changed(name: str, tmp_path: Path) -> None:
    """Their compression and byte order, a fill value of theirs where nothing was written, their metadata after us."""
    dtype = KINDS[name]
    values, fill = some_values(dtype, SHAPE), some_values(dtype, (2,), 5)[1]
    serializer = {"serializer": zarr.codecs.BytesCodec(endian="big")} if dtype.kind in "mM" else {}
    path = tmp_path / "a.zarr"
    theirs: Any = zarr.open_group(path, mode="w").create_array(
        "a",
        shape=SHAPE,
        chunks=(2, 5),
        dtype=dtype,
        fill_value=fill,
        compressors=zarr.codecs.BloscCodec(),
        **serializer,
    )
    theirs[:2] = values[:2]
    expected = values.copy()
    expected[2:] = fill
    with hs.open(path, "r+") as store:
        assert store["a"].dtype == native(dtype)
        same(np.asarray(store["a"].fill_value)[None], np.array([fill], dtype))
        same(store.read("a"), expected)
        store.write("a", values[3:4], section=slice(3, 4))
        store.append("a", values[:1])
    expected[3] = values[3]
    again: Any = zarr.open_array(path / "a", mode="r")
    same(again[...], np.concatenate([expected, values[:1]]))
    assert again.fill_value == fill or np.isnat(fill)


@pytest.mark.filterwarnings("ignore:.*:zarr.errors.UnstableSpecificationWarning")
def test_metadata_are_those_of_zarr_python(tmp_path: Path) -> None:
    for name in THEIRS:
        values = some_values(KINDS[name], SHAPE)
        written(tmp_path / f"{name}.zarr", values, fill_value=values[1, 1])
        zarr.create_array(tmp_path / "b", shape=SHAPE, dtype=KINDS[name], fill_value=values[1, 1], overwrite=True)
        ours, theirs = (
            json.loads((folder / "zarr.json").read_text()) for folder in (tmp_path / f"{name}.zarr/a", tmp_path / "b")
        )
        assert (ours["data_type"], ours["fill_value"]) == (theirs["data_type"], theirs["fill_value"])


@pytest.mark.parametrize("dtype", ["<M8[s]", ">m8[ns]", "V3", [("a", "<i4"), ("b", "S2")]])
def test_arrays_of_zarr_v2_are_read(dtype: Any, tmp_path: Path) -> None:
    values = some_values(np.dtype(dtype), SHAPE)
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    theirs: Any = group.create_array("a", shape=SHAPE, chunks=(2, 5), dtype=np.dtype(dtype))
    theirs[...] = values
    with hs.open(tmp_path / "a.zarr") as store:
        same(store.read("a"), values)


def test_xarray_reads_times(tmp_path: Path) -> None:
    times = np.array(["2026-11-25", "NaT"], "M8[ns]")
    written(tmp_path / "a.zarr", times, dimension_names=["time"])
    with xr.open_zarr(tmp_path / "a.zarr", consolidated=False) as data:
        np.testing.assert_array_equal(data["a"].values, times)


@pytest.mark.parametrize(
    "dtype",
    [
        np.dtype([("a", "i1"), ("b", "f8")], align=True),
        np.dtype([("a", ">i4"), ("b", "f8")]),
        np.dtype([("a", "i4", (2, 3))]),
    ],
    ids=["gaps", "big-endian", "arrays"],
)
def test_fields_that_zarr_has_no_names_for(dtype: np.dtype[Any], tmp_path: Path) -> None:
    """Zarr refuses them, files of NumPy and raw files have them."""
    values = np.zeros(SHAPE, dtype)
    values["a"] = 3
    with pytest.raises(hs.Error, match=r"a type that Zarr has a name for(.|\n)*hint:"):
        written(tmp_path / "a.zarr", values)
    hs.save_npy(tmp_path / "a.npy", values)
    np.save(tmp_path / "theirs.npy", values)
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "theirs.npy").read_bytes()
    found = hs.load_npy(tmp_path / "theirs.npy")
    assert found.dtype == dtype
    assert (found == values).all()
    with hs.open_raw(tmp_path / "a.raw", "w") as file:
        file.write({"a": values})
    with hs.open_raw(tmp_path / "a.raw", arrays={"a": (SHAPE, dtype)}) as file:
        assert (file.read("a") == values).all()


def test_names_of_fields_are_as_numpy_writes_them(tmp_path: Path) -> None:
    names = ["it's", 'a "b"', "both ' and \"", "back\\slash", "größe", "时间"]
    values = np.zeros(3, [(name, "<f4") for name in names])
    values[names[-1]] = 2
    for chosen in (names, names[:5], names[:4]):
        part = np.zeros(3, [(name, "<f4") for name in chosen])
        hs.save_npy(tmp_path / "a.npy", part)
        assert np.load(tmp_path / "a.npy").dtype == part.dtype
        with warnings.catch_warnings():
            # It warns of a version that older ones do not read.
            warnings.simplefilter("ignore")
            np.save(tmp_path / "b.npy", part)
        assert hs.load_npy(tmp_path / "b.npy").dtype == part.dtype
        with hs.open(written(tmp_path / "a.zarr", part)) as store:
            assert store["a"].dtype == part.dtype


def test_netcdf_says_what_to_write_instead(tmp_path: Path) -> None:
    hints = {"dates": "int64", "fields": "each field", "bytes": "each field", "e5m2": "float32"}
    with hs.open(tmp_path / "a.nc", "w") as file:
        for name, hint in hints.items():
            with pytest.raises(hs.Error, match=rf"integers, float32, float64 or characters(.|\n)*hint:.*{hint}"):
                file.write({name: some_values(KINDS[name], SHAPE)})
        file.write({"a": np.zeros(3)})


REFUSED: list[tuple[Any, str]] = [
    (np.array([(1, None)], [("a", "i4"), ("b", "O")]), "'O'"),
    (np.zeros(2, np.longdouble), "longdouble|float128"),
    (np.zeros(2, ml_dtypes.int4), "int4"),
    (np.zeros(2, [("a", ml_dtypes.bfloat16)]), "'a'"),
    (np.zeros(2, np.dtype({"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [0, 2]})), "'a'"),
    (np.zeros(2, [(("title", "a"), "i4")]), "'a'"),
]


def test_objects_are_texts_or_refused(tmp_path: Path) -> None:
    array = np.array(["a", 1], object)
    with hs.open(tmp_path / "a.zarr", "w") as store:
        with pytest.raises(
            hs.InvalidError, match=r"texts of 'a' are expected, found 1 at \(1,\).*\n  hint: make texts of"
        ):
            store.write("a", array)
        with pytest.raises(hs.InvalidError, match="cannot change from float64 to text of variable length"):
            store.write("a", np.zeros(2), dtype=object)
        assert store.arrays() == []
    with pytest.raises(hs.InvalidError, match="elements of type object cannot be stored\n  hint: give texts a length"):
        hs.save_npy(tmp_path / "a.npy", array)


@pytest.mark.parametrize(("array", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_what_no_format_has_is_refused_by_name(array: Any, said: str, tmp_path: Path) -> None:
    pattern = rf"elements of type .*({said}).* cannot be stored\n  hint: "
    with hs.open(tmp_path / "a.zarr", "w") as store:
        with pytest.raises(hs.InvalidError, match=pattern):
            store.write("a", array)
        with pytest.raises(hs.InvalidError, match=pattern):
            store.write("a", np.zeros(2), dtype=array.dtype)
        assert store.arrays() == []
    with pytest.raises(hs.InvalidError, match=pattern):
        hs.save_npy(tmp_path / "a.npy", array)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("f4", "f4"),
        (">f8", "f8"),
        (float, "f8"),
        (np.float16, "f2"),
        (complex, "c16"),
        (np.dtype("i2"), "i2"),
        ("double", "f8"),
        (ml_dtypes.bfloat16, ml_dtypes.bfloat16),
        ("bfloat16", ml_dtypes.bfloat16),
        (np.dtype(ml_dtypes.bfloat16), ml_dtypes.bfloat16),
    ],
)
def test_dtype_is_what_numpy_takes(given: Any, expected: Any, tmp_path: Path) -> None:
    with hs.open(written(tmp_path / "a.zarr", np.arange(4, dtype="i1"), dtype=given)) as store:
        assert store["a"].dtype == np.dtype(expected)
        found = store.read("a", dtype=given)
        assert found.dtype == np.dtype(given if given != "bfloat16" else ml_dtypes.bfloat16)
        np.testing.assert_array_equal(found.real.astype(int), range(4))


@pytest.mark.parametrize("name", ["M8[ns]", "float8_e4m3fn", "float8_e8m0fnu", [("a", "i4"), ("b", "M8[D]")], "V7"])
def test_dtype_says_what_no_rank_zero_holds(name: Any, tmp_path: Path) -> None:
    """The type may also be known from the keyword alone."""
    dtype = hs.threads(1, lambda _: np.dtype(name))[0]
    values = some_values(dtype, (4,))

    def one(comm: hs.ThreadComm) -> None:
        pieces = hs.Boxes((4,), [(slice(0, 4),)] if comm.rank == 1 else [])
        with hs.open(tmp_path / "a.zarr", "w", comm=comm) as store:
            store.write("a", [values] if comm.rank == 1 else [], pieces, dtype=name)
            same(store.read("a"), values)

    hs.threads(3, one)


def test_texts_that_are_no_types(tmp_path: Path) -> None:
    for name in ("float9", "float8", "datetime64[fortnight]", 7, object()):
        with pytest.raises(hs.InvalidError, match=r"is not a type of elements\n  hint:"):
            written(tmp_path / "a.zarr", np.zeros(3), dtype=name)


# ---- fill values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NUMBERS)
def test_without_a_fill_value_it_is_zero(kind: str, tmp_path: Path) -> None:
    with hs.open(written(tmp_path / "a.zarr", np.zeros(3, kind))) as store:
        found = store["a"].fill_value
    assert (type(found), found) == (np.dtype(kind).type, 0)


def test_fill_values_are_scalars(tmp_path: Path) -> None:
    """One number for arrays of all types in one call; NaN, infinite, no date."""
    with hs.open(tmp_path / "a.zarr", "w") as store:
        store.write({kind: np.zeros(3, kind) for kind in NUMBERS}, fill_value=1)
        for kind in NUMBERS:
            found = store[kind].fill_value
            assert (type(found), found) == (np.dtype(kind).type, 1), kind
        for number, value in enumerate((np.nan, np.inf, -np.inf, complex(np.nan, -np.inf))):
            kinds = NUMBERS[-2:] if isinstance(value, complex) else NUMBERS[4:]
            store.write({f"{kind}{number}": np.zeros(3, kind) for kind in kinds}, fill_value=value)
            for kind in kinds:
                found = store[f"{kind}{number}"].fill_value
                assert type(found) is np.dtype(kind).type
                np.testing.assert_equal(found, np.dtype(kind).type(value))


def test_one_date_fits_arrays_of_all_units(tmp_path: Path) -> None:
    units = ("D", "h", "s", "10s", "ms", "ns")
    day = np.datetime64("2026-11-25")
    with hs.open(tmp_path / "a.zarr", "w") as store:
        for number, value in enumerate((day, day.item(), np.datetime64("2026-11-25", "ns"), np.datetime64("NaT"))):
            store.write({f"{unit}{number}": np.zeros(3, f"M8[{unit}]") for unit in units}, fill_value=value)
            for unit in units:
                found = store[f"{unit}{number}"].fill_value
                assert found.dtype == np.dtype(f"M8[{unit}]")
                assert found == day or (np.isnat(found) and np.isnat(value))
        with pytest.raises(hs.InvalidError, match="fill value"):
            store.write("odd", np.zeros(3, "M8[D]"), fill_value=np.datetime64("2026-11-25T01"))
        with pytest.raises(hs.InvalidError, match="fill value"):
            store.write("odd", np.zeros(3, "m8[D]"), fill_value=day)
        store.write("times", np.zeros(3, "m8[s]"), fill_value=np.timedelta64(3, "h"))
        assert store["times"].fill_value == np.timedelta64(3, "h")


def test_formats_without_fill_values_have_none(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros(3))
    with hs.open(tmp_path / "a.nc", "w") as file:
        file.write({"a": np.zeros(3, "f4"), "b": np.zeros(3, "i2")}, fill_value=7)
        file.write({"c": np.zeros(3, "f8")}, fill_value=np.nan)
    with hs.open(tmp_path / "a.nc") as file:
        assert [type(file[name].fill_value) for name in "abc"] == [np.float32, np.int16, np.float64]
        assert (file["a"].fill_value, file["b"].fill_value) == (7, 7)
        assert np.isnan(file["c"].fill_value)


def any_fill(dtype: np.dtype[Any]) -> st.SearchStrategy[Any]:
    """A scalar of any bits."""
    return st.binary(min_size=dtype.itemsize, max_size=dtype.itemsize).map(
        lambda content: np.frombuffer(bytes([content[0] & 1]) if dtype.kind == "b" else content, dtype)[0]
    )


PROPERTY_KINDS = [*map(np.dtype, NUMBERS), *(dtype for name, dtype in KINDS.items() if name != "fields")]
PROPERTY_KINDS += [np.dtype(ml_dtypes.bfloat16), np.dtype([("a", "<i2"), ("b", "<c8"), ("t", "<m8[s]")])]
FILLS = st.sampled_from(PROPERTY_KINDS).flatmap(lambda dtype: st.tuples(st.just(dtype), any_fill(dtype)))


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=FILLS)
@example(case=(np.dtype("u8"), np.uint64(2**64 - 1)))
@example(case=(np.dtype("f4"), np.float32(np.nan)))
def test_every_fill_value_comes_back(case: tuple[np.dtype[Any], Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Also as elements that nobody wrote; any NaN is as good as another."""
    dtype, fill = case
    path = tmp_path_factory.mktemp("fill") / "a.zarr"
    written(path, np.zeros((2, 2), dtype), fill_value=fill, chunks=(2, 2))
    metadata = path / "a/zarr.json"
    metadata.write_text(json.dumps(json.loads(metadata.read_text()) | {"shape": [4, 2]}))
    with hs.open(path) as store:
        found, read = store["a"].fill_value, store.read("a")[2:]
    assert np.dtype(type(found)) == dtype or found.dtype == native(dtype)
    expected = np.full((2, 2), fill).astype(native(dtype))
    if dtype.kind in "fc" or dtype.name.startswith(("float8", "bfloat16")):
        np.testing.assert_array_equal(read.astype("c16"), expected.astype("c16"))
        np.testing.assert_array_equal(np.asarray(found).astype("c16"), expected[0, 0].astype("c16"))
    else:
        same(read, expected)
        same(np.full((2, 2), found), expected)


# ---- attributes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["f2", "f4", "f8"])
@pytest.mark.parametrize("value", [np.nan, -9999.0, np.float32(-1.5), -1, np.inf])
def test_xarray_masks_by_the_attribute(kind: str, value: Any, tmp_path: Path) -> None:
    values = np.array([1, value, 3], kind)
    written(tmp_path / "a.zarr", values, dimension_names=["x"], attributes={"_FillValue": value, "units": "K"})
    with xr.open_zarr(tmp_path / "a.zarr", consolidated=False) as data:
        np.testing.assert_array_equal(data["a"].values, np.array([1, np.nan, 3], kind))
        assert data["a"].attrs == {"units": "K"}
    with hs.open(tmp_path / "a.zarr") as store:
        found = store["a"].attrs["_FillValue"]
        assert isinstance(found, float)
        np.testing.assert_equal(found, float(np.dtype(kind).type(value)))


def test_of_complex_numbers_and_integers_too(tmp_path: Path) -> None:
    with hs.open(tmp_path / "a.zarr", "w") as store:
        store.write("c", np.ones(3, "c8"), dimension_names=["x"], attributes={"_FillValue": 1 + 2j})
        store.write("i", np.array([1, -1], "i2"), dimension_names=["y"], attributes={"_FillValue": np.int16(-1)})
        assert store["c"].attrs["_FillValue"] == 1 + 2j
        assert store["i"].attrs["_FillValue"] == -1
        with pytest.raises(hs.InvalidError, match="_FillValue"):
            store.write("bad", np.zeros(3, "i4"), attributes={"_FillValue": np.nan})
    with xr.open_zarr(tmp_path / "a.zarr", consolidated=False) as data:
        np.testing.assert_array_equal(data["i"].values, [1, np.nan])
        assert data["c"].encoding["_FillValue"] == 1 + 2j


def test_what_xarray_wrote_is_read_as_a_number(tmp_path: Path) -> None:
    data = xr.Dataset({"a": ("x", np.array([1, np.nan], "f4"))})
    data.to_zarr(tmp_path / "a.zarr", encoding={"a": {"_FillValue": -5.0}}, zarr_format=3, consolidated=False)
    with hs.open(tmp_path / "a.zarr") as store:
        assert store["a"].attrs["_FillValue"] == -5.0
        assert store.read("a").tolist() == [1.0, -5.0]


def test_netcdf_has_them_as_numbers(tmp_path: Path) -> None:
    attributes = {"_FillValue": np.nan, "missing_value": np.float32(np.nan), "valid_range": [0.0, np.inf]}
    with hs.open(tmp_path / "a.nc", "w") as file:
        file.write({"a": np.array([1, np.nan], "f4")}, attributes=attributes)
    with netCDF4.Dataset(tmp_path / "a.nc") as data:
        assert np.isnan(data["a"].getncattr("_FillValue"))
        assert data["a"].getncattr("valid_range").tolist() == [0.0, np.inf]
        assert data["a"][:].mask.tolist() == [False, True]
    with hs.open(tmp_path / "a.nc") as file:
        found = file["a"].attrs
        assert np.isnan([found["_FillValue"], found["missing_value"]]).all()
        assert found["valid_range"].dtype == np.float32
        assert found["valid_range"].tolist() == [0.0, np.inf]


def test_numbers_and_lists_of_numpy_are_attributes(tmp_path: Path) -> None:
    attributes = {
        "one": np.float32(0.5),
        "flag": np.bool_(1),
        "count": np.int64(2**53 + 1),
        "pair": (1, 2),
        "row": np.arange(3),
        "alone": np.array(2.0),
        "texts": np.array(["a", "b"]),
        "inside": {"list": [np.int8(1), {"deep": np.zeros(2)}], "none": None},
        "brain": ml_dtypes.bfloat16(1.5),
    }
    expected = {
        "one": 0.5,
        "flag": True,
        "count": 2**53 + 1,
        "pair": [1, 2],
        "row": [0, 1, 2],
        "alone": 2.0,
        "texts": ["a", "b"],
        "inside": {"list": [1, {"deep": [0.0, 0.0]}], "none": None},
        "brain": 1.5,
    }
    with hs.open(written(tmp_path / "a.zarr", np.zeros(3), attributes=attributes)) as store:
        assert store["a"].attrs == expected


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (np.datetime64("2026-11-25"), r"attribute 'bad' is a date or a time, 2026-11-25"),
        (np.array(["2026-11-25"], "M8[D]"), r"attribute 'bad' is a date or a time"),
        (1 + 2j, r"attribute 'bad'.*JSON.*found complex128"),
        (b"text", r"attribute 'bad'.*JSON.*found bytes of 4 B 'text'"),
        ([1, "x", 2j], r"attribute 'bad' is a list of unlike values"),
        ({1, 2}, r"attribute 'bad' is of type set"),
        ({1: 2}, r"attribute 'bad' has the key 1"),
        ({"deep": 1j}, r"attribute 'bad'\['deep'\] is of type complex"),
    ],
)
def test_other_attributes_are_refused_by_name(value: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(hs.InvalidError, match=rf"{said}(.|\n)*hint: "):
        written(tmp_path / "a.zarr", np.zeros(3), attributes={"good": 1, "bad": value})


def test_arrays_without_a_shape_of_all_types(tmp_path: Path) -> None:
    with hs.open(tmp_path / "a.zarr", "w") as store:
        for name, dtype in KINDS.items():
            values: NDArray[Any] = some_values(dtype, (1,)).reshape(())
            store.write(name, values)
            same(store.read(name), values, name)
