"""Makes HDF5 files by chance, and compares what the example `hdf5_dump` prints of them with h5py.

By hand:

pip install h5py==3.16.0 hdf5plugin numpy
cargo build -p hyperslab-format --example hdf5_dump
python compare.py target/debug/examples/hdf5_dump --files 500 --seed 1
python compare.py target/debug/examples/hdf5_dump found/*.h5
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np
from h5py import h5a, h5d, h5p, h5s, h5t

NUMBERS = [
    "i1",
    "u1",
    "<i2",
    ">i2",
    "<u4",
    ">u4",
    "<i8",
    ">i8",
    "<u8",
    "<f2",
    ">f2",
    "<f4",
    ">f4",
    "<f8",
    ">f8",
    "<c8",
    ">c16",
    "?",
    "V5",
    "S4",
]
TYPES = [
    *map(np.dtype, NUMBERS),
    np.dtype([("a", "<i4"), ("b", ">f8")]),
    np.dtype([("x", "<f4", (2, 3)), ("s", "S3"), ("n", [("p", "u1"), ("q", "<c8")])]),
    np.dtype([("a", "u1"), ("b", "<f8")], align=True),
    h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 42}, basetype="i2"),
    h5py.opaque_dtype(np.dtype("<M8[ns]")),
    h5py.opaque_dtype(np.dtype("m8[s]")),
]
VERSIONS = ["earliest", "latest", ("earliest", "v108"), ("v108", "v108"), ("v110", "v110"), ("v114", "v114")]
COMPRESSORS = [
    {"compression": "gzip", "compression_opts": 1},
    {"compression": "gzip", "compression_opts": 9},
    {"compression": "lzf"},
    hdf5plugin.Zstd(),
    hdf5plugin.LZ4(),
    hdf5plugin.Blosc(cname="zstd", shuffle=1),
    hdf5plugin.Blosc(cname="lz4", shuffle=2),
    hdf5plugin.Blosc(cname="blosclz"),
    hdf5plugin.Bitshuffle(cname="lz4"),
    hdf5plugin.Bitshuffle(cname="zstd"),
]
#: What h5py refuses to make is left out.
REFUSED = (OSError, RuntimeError, TypeError, ValueError)

# ---- files by chance ----------------------------------------------------------------------------------------------


def elements(chance: random.Random, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Elements of any type; about half of them compress well."""
    count = math.prod(shape)
    if dtype.names or h5py.check_enum_dtype(dtype):
        made = np.zeros(shape, dtype)
        for name in dtype.names or ():
            if dtype[name].kind in "iuf":
                made[name] = chance.randrange(100)
        return made
    noise = chance.randbytes(min(count * dtype.itemsize, 1 << 16) if chance.random() < 0.5 else 16)
    # No NaN, which is not equal to itself, and no truth value but 0 and 1.
    mask = 1 if dtype.kind == "b" else 0x3F
    raw = np.resize(np.frombuffer(noise, "u1") & mask, count * dtype.itemsize)
    return raw.view(dtype).reshape(shape).copy() if count else np.zeros(shape, dtype)


def add_attributes(chance: random.Random, thing: Any, file: h5py.File) -> None:
    """A few attributes, or many."""
    for number in range(chance.choice([0, 0, 1, 2, 5, 9, 20, 40])):
        name = f"a{number}" if chance.random() < 0.9 else f"é{number}"
        dtype = chance.choice(TYPES)
        lists = np.empty(3, object)
        for position in range(3):
            lists[position] = np.arange(chance.randrange(6), dtype="<i2")
        values: list[tuple[Any, Any]] = [
            ("text " + "é" * chance.randrange(5), None),
            (np.bytes_(b"fixed"), None),
            (np.array(["a", "", "d" * chance.randrange(99)], object), h5py.string_dtype()),
            (elements(chance, tuple(chance.randrange(1, 4) for _ in range(chance.randrange(3))), dtype), dtype),
            (h5py.Empty("f4"), None),
            (lists, h5py.vlen_dtype(np.dtype("<i2"))),
            (np.arange(chance.choice([10, 1000, 7000, 9000])), None),
            (np.zeros((0, 3), "i4"), None),
            (np.zeros(2, ">f4"), file.get("kind")),
        ]
        value, dtype = chance.choice(values)
        with suppress(*REFUSED):
            thing.attrs.create(name, value, dtype=dtype)


def limits(chance: random.Random, shape: tuple[int, ...]) -> tuple[int | None, ...] | None:
    """How far a dataset may grow."""
    unlimited = chance.randrange(len(shape))
    return chance.choice(
        [
            None,
            (None,) * len(shape),
            tuple(extent + chance.randrange(20) for extent in shape),
            tuple(None if at == unlimited else extent + chance.randrange(4) for at, extent in enumerate(shape)),
        ]
    )


def add_dataset(chance: random.Random, group: h5py.Group, name: str) -> h5py.Dataset | None:
    """A dataset of any layout, written as a whole, in part or not at all."""
    dtype, ndim = chance.choice(TYPES), chance.choice([0, 1, 1, 2, 2, 3, 4])
    shape = tuple(chance.randrange(1, [0, 300, 40, 12, 6][ndim]) for _ in range(ndim))
    options: dict[str, Any] = {}
    layout = h5p.create(h5p.DATASET_CREATE)
    if ndim and chance.random() < 0.7:
        options["chunks"] = tuple(chance.randrange(1, min(extent + 1, 9)) for extent in shape)
        options["maxshape"] = limits(chance, shape)
        if chance.random() < 0.5:
            options |= chance.choice(COMPRESSORS)
            options |= {"fletcher32": chance.random() < 0.3}
            if options.get("compression") in ("gzip", "lzf"):
                options["shuffle"] = chance.random() < 0.5
        elif chance.random() < 0.4:
            layout.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    elif chance.random() < 0.3:
        layout.set_layout(h5d.COMPACT)
    if dtype.kind in "iuf" and chance.random() < 0.3:
        options["fillvalue"] = 7
    try:
        made = group.create_dataset(name, shape, dtype, dcpl=layout, **options)
        write(chance, made, elements(chance, shape, dtype))
    except REFUSED:
        return None
    return made


def write(chance: random.Random, made: h5py.Dataset, values: np.ndarray) -> None:
    """Writes all, a part, a chunk without filters, or nothing."""
    how = chance.randrange(5)
    if how < 2 or not made.shape:
        made[...] = values
    elif how == 2:
        begin = [chance.randrange(extent) for extent in made.shape]
        part = tuple(slice(at, at + chance.randrange(1, 20)) for at in begin)
        made[part] = values[part]
    elif how == 3 and made.chunks and made.compression:
        made[...] = values
        made.id.write_direct_chunk((0,) * made.ndim, bytes(math.prod(made.chunks) * made.dtype.itemsize), 0xFF)
    elif made.chunks:
        made[...] = values
        made.resize(tuple(chance.randrange(1, extent + 1) for extent in made.shape))


def make_file(path: Path, seed: int) -> None:
    """A file with groups, members, links, types and attributes."""
    chance = random.Random(seed)
    options: dict[str, Any] = {"libver": chance.choice(VERSIONS), "track_order": chance.random() < 0.3}
    if chance.random() < 0.15:
        options["userblock_size"] = chance.choice([512, 1024, 4096])
    with h5py.File(path, "w", **options) as file:
        if chance.random() < 0.5:
            file["kind"] = np.dtype(">f4")
            add_attributes(chance, file["kind"], file)
        groups: list[h5py.Group] = [file]
        for number in range(chance.randrange(5)):
            group = chance.choice(groups).create_group(f"g{number}", track_order=chance.random() < 0.4)
            group[f"s{number}"] = h5py.SoftLink("/some/where" + "x" * chance.randrange(40))
            group[f"e{number}"] = h5py.ExternalLink("other.h5", "/p" + "x" * chance.randrange(40))
            groups.append(group)
        crowd = chance.choice(groups)
        for number in range(chance.choice([0, 0, 5, 9, 30, 400])):
            crowd.create_group(f"m{number * 7919 % 1009}_{'n' * chance.randrange(30)}")
        for number in range(chance.randrange(1, 8)):
            made = add_dataset(chance, chance.choice(groups), f"d{number}")
            if made is not None:
                add_attributes(chance, made, file)
        for group in groups:
            add_attributes(chance, group, file)


# ---- comparing ----------------------------------------------------------------------------------------------------


class Comparison:
    """What was compared, and what differs."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.differences = 0

    def same(self, where: str, what: str, expected: object, found: object) -> None:
        """Counts it, and prints what differs."""
        self.counts[what] += 1
        if expected != found:
            self.differences += 1
            print(f"{where}: {what}: h5py has {expected!r:.200}, found {found!r:.200}")

    def file(self, path: str, told: dict[str, Any]) -> None:
        """All objects of a file."""
        if "error" in told:
            self.same(path, "file", "no error", told["error"])
            return
        with h5py.File(path) as file:
            objects = dict(told["objects"])
            waiting: list[tuple[str, Any]] = [("/", file["/"])]
            while waiting:
                name, thing = waiting.pop()
                found = objects.pop(name, {"error": "nothing"})
                if "error" in found:
                    self.same(f"{path}:{name}", "object", "no error", found["error"])
                    continue
                self.attributes(f"{path}:{name}", thing, found["attributes"])
                if isinstance(thing, h5py.Group):
                    self.same(f"{path}:{name}", "links", [*map(link, [thing] * len(thing), thing)], found["links"])
                    hard = [key for key in thing if isinstance(thing.get(key, getlink=True), h5py.HardLink)]
                    waiting += [(f"{name.rstrip('/')}/{key}", thing[key]) for key in hard]
                elif isinstance(thing, h5py.Dataset):
                    self.dataset(f"{path}:{name}", thing, found)
            self.same(path, "objects that h5py does not have", {}, objects)

    def attributes(self, where: str, thing: Any, told: list[dict[str, Any]]) -> None:
        """Names in their order, shapes and values."""
        self.same(where, "names of attributes", list(thing.attrs), [one["name"] for one in told])
        for one in told:
            stored = h5a.open(thing.id, one["name"].encode())
            if "error" in one or stored.get_type().get_class() == h5t.REFERENCE:
                self.counts["attributes that are not compared"] += 1
                continue
            is_null = stored.get_space().get_simple_extent_type() == h5s.NULL
            self.same(where, "shape of an attribute", None if is_null else list(stored.shape), one["shape"])
            if not is_null:
                self.value(where, thing, one, stored)

    def value(self, where: str, thing: Any, told: dict[str, Any], stored: Any) -> None:
        """The value of an attribute."""
        kind, found = next(iter(told["value"].items()))
        if kind == "bytes":
            raw = np.zeros(stored.shape, stored.dtype)
            stored.read(raw, mtype=stored.get_type())
            self.same(where, "bytes of an attribute", list(raw.tobytes()), found)
            return
        values = np.asarray(thing.attrs[told["name"]], dtype=object).ravel()
        if kind == "texts":
            self.same(where, "texts of an attribute", list(values), found)
        elif stored.get_type().get_super().get_class() != h5t.REFERENCE:
            self.same(where, "lists of an attribute", [list(np.asarray(one).tobytes()) for one in values], found)

    def dataset(self, where: str, thing: h5py.Dataset, told: dict[str, Any]) -> None:
        """Shape, layout, chunks and elements."""
        self.same(where, "shape", None if thing.shape is None else list(thing.shape), told["shape"])
        self.same(where, "limits", list(thing.maxshape or ()), told["limits"])
        self.same(where, "shape of chunks", thing.chunks and list(thing.chunks), told["chunk"])
        if thing.chunks:
            self.chunks(where, thing, told)
        if told["crc"] is None:
            self.counts[f"not decoded: {told['why'].splitlines()[0][-60:]}"] += 1
            return
        never = thing.id.get_create_plist().get_fill_time() == h5d.FILL_TIME_NEVER
        gaps = (
            thing.dtype.names and sum(thing.dtype[name].itemsize for name in thing.dtype.names) < thing.dtype.itemsize
        )
        if thing.shape is None or never or gaps or thing.dtype.kind == "O":
            self.counts["elements that are not compared"] += 1
            return
        if thing.dtype.kind in "iufcbmM" and not h5py.check_enum_dtype(thing.dtype):
            self.same(where, "type", thing.dtype.str, told["type"])
        values = np.ascontiguousarray(thing[()], dtype=thing.dtype)
        self.same(where, f"elements, {index_of(told)}", zlib.crc32(values.tobytes()), told["crc"])

    def chunks(self, where: str, thing: h5py.Dataset, told: dict[str, Any]) -> None:
        """Where chunks lie. HDF5 2.0 tells wrong coordinates of those whose unlimited dimension is not the first."""
        found: list[list[Any]] = []

        def one(chunk: Any) -> None:
            place = [at // extent for at, extent in zip(chunk.chunk_offset, thing.chunks, strict=True)]
            found.append([place, chunk.byte_offset, chunk.size, chunk.filter_mask])

        thing.id.chunk_iter(one)
        exchanged = index_of(told) == "ExtensibleArray" and thing.maxshape[0] is not None
        if exchanged:
            self.same(where, "number of chunks", len(found), len(told["chunks"]))
        else:
            self.same(where, f"chunks, {index_of(told)}", sorted(found), told["chunks"])


def index_of(told: dict[str, Any]) -> str:
    """The kind of index, or of layout."""
    return told["index"].split()[0] if told["index"] else told["layout"]


def link(group: h5py.Group, name: str) -> list[str]:
    """A link as the example prints it."""
    found = group.get(name, getlink=True)
    if isinstance(found, h5py.SoftLink):
        return [name, "soft", found.path]
    return [name, "external", found.filename, found.path] if isinstance(found, h5py.ExternalLink) else [name, "hard"]


def compare(dump: str, paths: Iterable[str], comparison: Comparison) -> None:
    """Compares these files."""
    printed = subprocess.run([dump, *paths], capture_output=True, text=True, check=True).stdout
    for line in printed.splitlines():
        told = json.loads(line)
        comparison.file(told["path"], told["content"])


def main() -> None:
    """Compares files that are named, or that are made now."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump")
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--files", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    comparison = Comparison()
    if options.paths:
        compare(options.dump, options.paths, comparison)
    for begin in range(0, options.files, 50):
        with tempfile.TemporaryDirectory() as folder:
            made = [Path(folder) / f"{number}.h5" for number in range(begin, min(begin + 50, options.files))]
            for path in made:
                make_file(path, options.seed * 1_000_000 + int(path.stem))
            compare(options.dump, map(str, made), comparison)
    for what, count in sorted(comparison.counts.items()):
        print(f"{count:9} {what}")
    print(f"{comparison.differences} differences")
    raise SystemExit(comparison.differences > 0)


if __name__ == "__main__":
    main()
