"""Makes the golden files next to it with zarr-python and NumPy.

Run: python make.py        (zarr 3.1.6, numpy 2; the files in the repository came from these)

Each array holds 1, 2, 3, ... in row-major order, cast to its type. Next to the files, expected.json says for each
zarr array its attributes as Python sees them, the key of one stored chunk and, in hexadecimal, the bytes of that chunk
decoded, in row-major order and little-endian.
"""

import json
import pathlib
import shutil
import struct

import numcodecs
import numpy as np
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec

HERE = pathlib.Path(__file__).parent

ARRAYS = {
    "defaults": dict(shape=(5, 4), chunks=(2, 3), dtype="float64"),
    "crc32c": dict(shape=(5, 4), chunks=(2, 3), dtype="int32", compressors=[Crc32cCodec()], fill_value=-7),
    "plain": dict(shape=(6,), chunks=(4,), dtype="uint16", compressors=None),
    "big_endian": dict(
        shape=(3, 4), chunks=(2, 2), dtype="float32", serializer=BytesCodec(endian="big"), compressors=None, fill_value=1.5
    ),
    "transposed": dict(
        shape=(2, 3, 4),
        chunks=(2, 3, 4),
        dtype="int16",
        filters=[TransposeCodec(order=(2, 0, 1))],
        compressors=[ZstdCodec(level=7, checksum=True), Crc32cCodec()],
    ),
    "scalar": dict(shape=(), dtype="int64", fill_value=-(2**63), compressors=[Crc32cCodec()]),
    "empty": dict(shape=(0, 5), chunks=(0, 5), dtype="int8"),
    "nan": dict(shape=(3,), dtype="float32", fill_value=float("nan"), attributes={"bad": float("nan"), "big": 10**30}),
    "infinite": dict(shape=(3,), dtype="float16", fill_value=float("-inf")),
    "complex": dict(shape=(3,), dtype="complex64", fill_value=complex(float("nan"), float("-inf"))),
    "bool": dict(shape=(3,), dtype="bool", fill_value=True),
    "named": dict(shape=(2, 2), dtype="uint64", fill_value=2**64 - 1, dimension_names=["y", None]),
    "v2_keys": dict(shape=(4, 4), chunks=(2, 2), dtype="uint8", chunk_key_encoding={"name": "v2", "separator": "."}),
    "dotted": dict(shape=(4,), chunks=(2,), dtype="float64", chunk_key_encoding={"name": "default", "separator": "."}),
    "gzip": dict(shape=(50,), dtype="int32", compressors=[GzipCodec(level=5)]),
    "attributes": dict(shape=(1,), dtype="int8", attributes={"a": {"b": [1, 2.5, None, True, "é\n"]}, "z": [], "c": {}}),
    "blosc": dict(shape=(8,), dtype="int32", compressors=[BloscCodec()]),
    "blosc_bits": dict(
        shape=(900,), dtype="float64", compressors=[BloscCodec(cname="lz4", shuffle="bitshuffle"), Crc32cCodec()]
    ),
    "sharded": dict(shape=(8,), chunks=(2,), shards=(4,), dtype="int32"),
    "sharded_first": dict(
        shape=(6, 9),
        chunks=(2, 3),
        shards={"shape": (4, 6), "index_location": "start"},
        dtype="int16",
        filters=[TransposeCodec(order=(1, 0))],
        serializer=BytesCodec(endian="big"),
        compressors=[GzipCodec(level=2), Crc32cCodec()],
    ),
    "datetime": dict(shape=(2,), dtype="datetime64[s]"),
    "structured": dict(shape=(2,), dtype=[("a", "i4")]),
}


def little_endian(array: np.ndarray) -> bytes:
    return np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()


def make_zarr() -> None:
    expected = {}
    root = zarr.create_group(HERE / "zarr", overwrite=True, attributes={"title": "golden"})
    for name, options in ARRAYS.items():
        array = root.create_array(name, **options)
        if name in ("datetime", "structured"):
            continue
        values = np.arange(1, array.size + 1).reshape(array.shape).astype(array.dtype)
        if array.size:
            array[...] = values
        entry = {"attributes": json.loads(json.dumps(dict(array.attrs)).replace("NaN", '"NaN"'))}
        keys = sorted(p.relative_to(HERE / "zarr" / name) for p in (HERE / "zarr" / name).rglob("*") if p.name != "zarr.json")
        keys = [key for key in keys if (HERE / "zarr" / name / key).is_file()]
        # One chunk of each is enough: the first, which no edge cuts.
        for key in keys[1:]:
            (HERE / "zarr" / name / key).unlink()
        if keys:
            first = values[tuple(slice(0, n) for n in array.shards or array.chunks)]
            entry |= {"key": str(keys[0]), "chunk": little_endian(first).hex()}
        expected[name] = entry
    zarr.consolidate_metadata(HERE / "zarr")
    for folder in sorted((p for p in (HERE / "zarr").rglob("*") if p.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()
    (HERE / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


def make_blosc() -> None:
    """Chunks of c-blosc, of every compressor and order, each with the size of its elements and of the chunk before it.

    Byte k of the chunk is (k // 9 + k % 5 * 40) % 256, or for the noise (k * k * 2654435761 >> 13) % 256.
    """
    with open(HERE / "blosc.bin", "wb") as file:
        for cname in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
            for shuffle in (0, 1, 2):
                for element, count in ((1, 3), (1, 900), (2, 17), (4, 1000), (8, 17), (8, 1000), (16, 101), (3, 3000)):
                    for noise in (False, True):
                        k = np.arange(element * count, dtype="uint64")
                        raw = (k * k * 2654435761 >> 13) if noise else (k // 9 + k % 5 * 40)
                        if noise and raw.size > 1000:
                            continue
                        array = (raw % 256).astype("u1").view(f"V{element}")
                        blosc = numcodecs.Blosc(cname=cname, clevel=5, shuffle=shuffle, blocksize=0 if count < 1000 else 1 << 12)
                        stored = bytes(blosc.encode(array.view(f"i{element}") if element in (1, 2, 4, 8) else array))
                        file.write(struct.pack("<IIII", element, raw.size, noise, len(stored)) + stored)


def make_nested() -> None:
    """Groups in groups, with consolidated metadata; no values."""
    root = zarr.create_group(HERE / "nested", overwrite=True, attributes={"title": "é", "nothing": None})
    root.create_array("b", shape=(2,), dtype="float64", attributes={"list": [1, 2.5]})
    step = root.create_group("a", attributes={"time": 0.5})
    step.create_array("u", shape=(3,), dtype="complex64", fill_value=complex(1, float("nan")))
    step.create_group("deep").create_array("v", shape=(2, 2), dtype="int8", dimension_names=["x", None])
    root.create_group("a-1").create_array("u", shape=(), dtype="bool")
    root.create_group("empty")
    zarr.consolidate_metadata(HERE / "nested")


def make_npy() -> None:
    folder = HERE / "npy"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    np.save(folder / "c_f8.npy", np.arange(6, dtype="<f8").reshape(2, 3))
    np.save(folder / "f_i4_big.npy", np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3)))
    np.save(folder / "scalar_c16.npy", np.array(1 + 2j, dtype="complex128"))
    np.save(folder / "empty_bool.npy", np.zeros((0, 4), dtype="bool"))
    np.save(folder / "one_u1.npy", np.arange(3, dtype="u1"))
    with open(folder / "version3.npy", "wb") as file:
        np.lib.format.write_array(file, np.arange(4, dtype="<f2"), version=(3, 0))
    np.save(folder / "object.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save(folder / "structured.npy", np.zeros(2, dtype=[("a", "i4"), ("b", "f8")]))


if __name__ == "__main__":
    shutil.rmtree(HERE / "zarr", ignore_errors=True)
    make_zarr()
    shutil.rmtree(HERE / "nested", ignore_errors=True)
    make_nested()
    make_blosc()
    make_npy()
