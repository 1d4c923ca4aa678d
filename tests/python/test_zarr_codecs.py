"""Filters, compressors and checksums of numcodecs, in v2 and v3: what zarr-python writes is read, by value and type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import hyperslab as hs
import numcodecs
import numpy as np
import pytest
import zarr
import zarr.codecs.numcodecs as v3
from zarr.codecs import GzipCodec, TransposeCodec

RANDOM = np.random.default_rng(3)
WALK = np.cumsum(RANDOM.integers(-50, 50, (23, 17)), axis=1)
FLOATS = np.round(WALK / 7.0, 3)

#: Filters and compressor of v2, and what is stored.
OF_V2: dict[str, tuple[list[Any], Any, np.ndarray[Any, Any]]] = {
    "shuffle": ([numcodecs.Shuffle(4)], numcodecs.Zlib(1), WALK.astype("<i4")),
    "shuffle odd": ([numcodecs.Shuffle(8)], None, WALK.astype("<i4")[:, :3]),
    "delta": ([numcodecs.Delta("<i8")], numcodecs.GZip(1), WALK.astype("<i8")),
    "delta small": ([numcodecs.Delta("<i4", "<i2")], None, WALK.astype("<i4")),
    "delta wraps": ([numcodecs.Delta("|u1")], None, WALK.astype("|u1")),
    "delta float": ([numcodecs.Delta("<f4")], numcodecs.LZ4(), FLOATS.astype("<f4")),
    "delta half": ([numcodecs.Delta("<f2")], None, FLOATS.astype("<f2")),
    "delta big": ([numcodecs.Delta(">i4", ">i2")], None, WALK.astype(">i4")),
    "scale": ([numcodecs.FixedScaleOffset(offset=10, scale=1000, dtype="<f8", astype="<i4")], None, FLOATS),
    "scale float": ([numcodecs.FixedScaleOffset(0.1, 3.7, "<f4", "<f4")], numcodecs.BZ2(), FLOATS.astype("<f4")),
    "scale to int": ([numcodecs.FixedScaleOffset(-2, 2, "<i4", "<i2")], numcodecs.BZ2(9), WALK.astype("<i4")),
    "quantize": ([numcodecs.Quantize(2, "<f8", "<f4")], numcodecs.LZMA(), FLOATS),
    "quantize half": ([numcodecs.Quantize(1, "<f4", "<f2")], None, FLOATS.astype("<f4")),
    "bitround": ([numcodecs.BitRound(7)], numcodecs.Zstd(), FLOATS.astype("<f4")),
    "astype": ([numcodecs.AsType("<i2", "<i8")], None, WALK),
    "astype float": ([numcodecs.AsType("<f4", "<f8")], None, FLOATS),
    "packbits": ([numcodecs.PackBits()], numcodecs.LZ4(), WALK > 0),
    "packbits few": ([numcodecs.PackBits()], None, WALK[:5, :3] > 0),
    "both": ([numcodecs.FixedScaleOffset(0, 100, "<f8", "<i4"), numcodecs.Delta("<i4", "<i4")], None, FLOATS),
    "lz4": ([], numcodecs.LZ4(acceleration=3), WALK),
    "bz2": ([], numcodecs.BZ2(level=5), WALK),
    "lzma": ([], numcodecs.LZMA(preset=9), WALK),
    "lzma alone": ([], numcodecs.LZMA(format=2), WALK),
    "lzma check": ([], numcodecs.LZMA(check=10), WALK),
    "fletcher32": ([numcodecs.Fletcher32()], numcodecs.LZ4(), WALK),
    "crc32": ([numcodecs.CRC32()], None, WALK),
    "crc32 end": ([numcodecs.CRC32(location="end")], numcodecs.Zlib(), WALK),
    "adler32": ([numcodecs.Adler32()], None, WALK),
    "adler32 last": ([], numcodecs.Adler32(), WALK),
    "crc32c": ([numcodecs.CRC32C()], None, WALK),
    "crc32c start": ([numcodecs.CRC32C(location="start")], None, WALK),
    "many": (
        [numcodecs.Delta("<i8"), numcodecs.Shuffle(8), numcodecs.LZ4(), numcodecs.CRC32()],
        numcodecs.LZMA(),
        WALK,
    ),
}

#: The same of v3: filters of numbers, and codecs of bytes.
OF_V3: dict[str, tuple[list[Any], list[Any], np.ndarray[Any, Any]]] = {
    "delta": ([v3.Delta(dtype="<i8", astype="<i2")], [GzipCodec()], WALK),
    "delta one byte": ([v3.Delta(dtype="<i4", astype="|i1")], [], (WALK % 50).astype("<i4")),
    "delta named": ([v3.Delta(dtype="uint32")], [v3.BZ2(level=5)], WALK.astype("<u4")),
    "scale": ([v3.FixedScaleOffset(offset=0, scale=1000, dtype="<f8", astype="<i4")], [], FLOATS),
    "quantize": ([v3.Quantize(digits=2, dtype="<f8")], [v3.LZ4()], FLOATS),
    "bitround": ([v3.BitRound(keepbits=5)], [v3.LZMA()], FLOATS.astype("<f4")),
    "astype": ([v3.AsType(encode_dtype="<f4", decode_dtype="<f8")], [], FLOATS),
    "packbits": ([v3.PackBits()], [v3.Zlib()], WALK > 0),
    "turned": ([TransposeCodec(order=(1, 0)), v3.Delta(dtype="<i8")], [], WALK),
    "lz4": ([], [v3.LZ4(acceleration=3)], WALK),
    "bz2": ([], [v3.BZ2()], WALK),
    "lzma": ([], [v3.LZMA(preset=1)], WALK),
    "zlib": ([], [v3.Zlib(level=3)], WALK),
    "gzip": ([], [v3.GZip(level=3)], WALK),
    "zstd": ([], [v3.Zstd(level=3)], WALK),
    "blosc": ([], [v3.Blosc(cname="zstd", clevel=3, shuffle=2)], WALK),
    "shuffle": ([], [v3.Shuffle(elementsize=8), v3.LZ4()], WALK),
    "crc32": ([], [v3.CRC32()], WALK),
    "crc32 end": ([], [v3.CRC32(location="end")], WALK),
    "crc32c": ([], [v3.CRC32C()], WALK),
    "adler32": ([], [v3.Adler32()], WALK),
    "fletcher32": ([], [v3.Fletcher32()], WALK),
}


def compared(path: Path, ranks: int) -> None:
    """All of a store, by this rank alone and by ranks, beside zarr-python."""
    group = zarr.open_group(path, mode="r")
    expected = {name: np.asarray(group[name][...]) for name in sorted(group)}

    def one(comm: hs.ThreadComm) -> None:
        with hs.open(path, comm=comm) as store:
            for name, values in expected.items():
                assert store[name].dtype == values.dtype.newbyteorder("="), name
                dist = hs.Distribution(values.shape, (comm.size, 1), ("block", "*"))
                found = store.read(name, dist)
                part = values[dist.slices(comm.rank)]
                assert found.dtype == part.dtype.newbyteorder("="), name
                assert found.tobytes() == part.astype(found.dtype).tobytes(), name
                assert np.array_equal(store[name][1:3, ::2], values[1:3, ::2], equal_nan=values.dtype.kind == "f"), name

    hs.threads(ranks, one)


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("order", ["C", "F"])
def test_codecs_of_v2(order: Any, ranks: int, tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    for name, (filters, compressor, values) in OF_V2.items():
        made = group.create_array(
            name,
            shape=values.shape,
            chunks=(5, 8),
            dtype=values.dtype,
            filters=filters or None,
            compressors=compressor,
            order=order,
            fill_value=0,
        )
        made[:20] = values[:20]
    compared(tmp_path / "a.zarr", ranks)


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3 specification")
def test_codecs_of_v3(ranks: int, tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=3)
    for name, (filters, compressors, values) in OF_V3.items():
        made = group.create_array(
            name, shape=values.shape, chunks=(5, 8), dtype=values.dtype, filters=filters, compressors=compressors
        )
        made[:20] = values[:20]
        if "turned" in name:
            continue
        inside = group.create_array(
            f"{name} sharded",
            shape=values.shape,
            chunks=(5, 8),
            shards=(10, 16),
            dtype=values.dtype,
            filters=filters,
            compressors=compressors,
        )
        inside[:20] = values[:20]
    compared(tmp_path / "a.zarr", ranks)


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3 specification")
def test_arrays_of_others_are_changed_where_codecs_are_written(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    group = zarr.open_group(path, mode="w", zarr_format=3)
    both = {"lz4": [v3.LZ4()], "crc32": [v3.CRC32()], "adler32": [v3.Adler32(location="end")], "bz2": [v3.BZ2()]}
    for name, compressors in both.items():
        group.create_array(name, data=WALK, chunks=(5, 8), compressors=compressors)
    group.create_array("delta", data=WALK, chunks=(5, 8), filters=[v3.Delta(dtype="<i8")])
    row = np.arange(17)[None]
    with hs.open(path, "r+") as store:
        for name in ("lz4", "crc32", "adler32"):
            store.write(name, row, section=(slice(2, 3),))
            store.append(name, row)
        for name in ("bz2", "delta"):
            for call in (
                lambda name=name: store.write(name, row, section=(slice(2, 3),)),
                lambda name=name: store.append(name, row),
            ):
                with pytest.raises(hs.UnsupportedError, match=f"'numcodecs.{name}', which is only read"):
                    call()
        for codec in ({"name": "numcodecs.bz2", "configuration": {"level": 1}}, {"name": "numcodecs.zfpy"}):
            with pytest.raises(hs.InvalidError, match=codec["name"][10:]):
                store.write("new", row, codecs=[codec])
        store.write("new", row, codecs=[{"name": "bytes"}, {"name": "numcodecs.lz4"}, {"name": "numcodecs.crc32"}])
        store["delta"].attrs["a"] = 1
    group = zarr.open_group(path, mode="r")
    for name in ("lz4", "crc32", "adler32"):
        assert np.array_equal(group[name][2], row[0])
        assert np.array_equal(group[name][23], row[0])
    assert np.array_equal(group["new"][...], row)
    assert np.array_equal(group["delta"][...], WALK)


def test_other_codecs_are_refused_by_name(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    group.create_array("a", data=WALK)
    told = json.loads((tmp_path / "a.zarr/a/.zarray").read_text())
    for change, said in (
        ({"compressor": {"id": "zfpy", "mode": 4}}, "codec 'zfpy'"),
        ({"filters": [{"id": "pcodec"}]}, "codec 'pcodec'"),
        ({"filters": [{"id": "jenkins_lookup3"}]}, "codec 'jenkins_lookup3'"),
        ({"filters": [{"id": "categorize", "labels": []}]}, "codec 'categorize'"),
        ({"filters": [{"id": "delta", "dtype": "<M8[s]"}]}, "delta of integers"),
        ({"compressor": {"id": "lzma", "format": 3}}, "format 3"),
        ({"filters": [{"id": "lz4"}, {"id": "delta", "dtype": "<i8"}]}, "filters of numbers before all other codecs"),
    ):
        (tmp_path / "a.zarr/a/.zarray").write_text(json.dumps(told | change))
        with hs.open(tmp_path / "a.zarr", comm=None) as store, pytest.raises(hs.UnsupportedError, match=said):
            store.read("a")


@pytest.mark.parametrize(
    "codec",
    [
        numcodecs.LZ4(),
        numcodecs.BZ2(),
        numcodecs.LZMA(),
        numcodecs.LZMA(format=2),
        numcodecs.CRC32(),
        numcodecs.Adler32(),
        numcodecs.Delta("<i8"),
        numcodecs.PackBits(),
    ],
)
def test_damage_and_bombs_are_errors(codec: Any, tmp_path: Path) -> None:
    """Chunks that are cut off, changed anywhere, or expand beyond their size: an error, or a value, and no crash."""
    values = WALK > 0 if codec.codec_id == "packbits" else WALK
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    group.create_array("a", data=values, filters=[codec], compressors=None)
    (chunk,) = [path for path in (tmp_path / "a.zarr/a").iterdir() if not path.name.startswith(".")]
    good = chunk.read_bytes()
    with hs.open(tmp_path / "a.zarr", comm=None) as store:
        for length in {0, 1, 3, 5, len(good) // 2, len(good) - 1}:
            chunk.write_bytes(good[:length])
            with pytest.raises(hs.CorruptError):
                store.read_local("a")
        for place in RANDOM.integers(0, len(good), 60):
            bad = bytearray(good)
            bad[place] ^= 1 << int(RANDOM.integers(8))
            chunk.write_bytes(bad)
            try:
                store.read_local("a")
            except hs.CorruptError:
                pass
            else:
                assert codec.codec_id not in ("crc32", "adler32")
        if codec.codec_id not in ("delta", "packbits"):
            chunk.write_bytes(codec.encode(bytes(20 << 20)))
            with pytest.raises(hs.CorruptError):
                store.read_local("a")


def test_metadata_as_others_take_them(tmp_path: Path) -> None:
    """Nulls for nothing, a byte order mark, orders by letter; what is nested too deeply is said to be so."""
    path = tmp_path / "a"
    zarr.create_array(path, data=WALK, chunks=(5, 8), compressors=None, filters=None)
    told = json.loads((path / "zarr.json").read_text())
    order = {"name": "transpose", "configuration": {"order": "F"}}
    for change, text in (
        ({"storage_transformers": None}, "{}"),
        ({"attributes": None}, "{}"),
        ({"dimension_names": None}, "{}"),
        ({}, "\ufeff{}"),
        ({"codecs": [{**order, "configuration": {"order": "C"}}, *told["codecs"]]}, "{}"),
    ):
        (path / "zarr.json").write_text(text.format(json.dumps(told | change)), encoding="utf-8")
        with hs.open(path, comm=None) as store:
            assert np.array_equal(store["/"][...], WALK)
            assert dict(store["/"].attrs) == {}
    zarr.create_array(
        path, data=WALK, chunks=(5, 8), compressors=None, filters=[TransposeCodec(order=(1, 0))], overwrite=True
    )
    told["codecs"] = [order, *told["codecs"]]
    (path / "zarr.json").write_text(json.dumps(told))
    with hs.open(path, comm=None) as store:
        assert np.array_equal(store["/"][...], WALK)
    deep = "[" * 300 + "]" * 300
    (path / "zarr.json").write_text(json.dumps(told | {"attributes": {"x": "@"}}).replace('"@"', deep))
    with pytest.raises(hs.UnsupportedError, match="at most 127 lists and objects in each other"):
        hs.open(path)


@pytest.mark.parametrize("ranks", [1, 3])
def test_fields_in_the_other_byte_order(ranks: int, tmp_path: Path) -> None:
    """v2 keeps the order of each field; v3 has none for fields, and an array with such is not made."""
    inner = np.dtype([("x", ">f4"), ("y", "<i2")])
    dtype = np.dtype([("a", ">i4"), ("b", "<f8"), ("c", "S3"), ("d", ">c16"), ("e", ">U2"), ("f", inner)])
    values = np.zeros(23, dtype)
    values["a"], values["b"], values["c"], values["e"] = range(23), 1.5, b"abc", "xy"
    values["f"]["x"], values["d"] = np.arange(23) / 3, 2 + 3j
    made = zarr.create_array(
        tmp_path / "a", shape=23, chunks=5, dtype=dtype, zarr_format=2, compressors=numcodecs.Blosc(), order="F"
    )
    made[:20] = values[:20]
    expected = made[...]

    def one(comm: hs.ThreadComm) -> None:
        with hs.open(tmp_path / "a", comm=comm) as store:
            found = store.read("/")
            assert found.dtype == expected.dtype == dtype
            assert found.tobytes() == expected.tobytes()
            assert store["/"][7] == expected[7]

    hs.threads(ranks, one)
    with hs.open(tmp_path / "b", "w") as store, pytest.raises(hs.UnsupportedError, match="big-endian field 'a'"):
        store.write("a", values)
