"""Makes the files of HDF5 and netCDF-4 that the tests of the reader read.

    pip install h5py==3.16.0 h5netcdf netCDF4 numpy
    python make_fixtures.py fixtures

Elements are `7 * i + 3` for the i-th of a dataset in row-major order, as numbers of its type, so that tests can
compute them. The files are compressed with gzip, since they are mostly empty.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from pathlib import Path

import h5netcdf
import h5py
import netCDF4
import numpy as np
from h5py import h5d, h5p, h5s, h5t

VERSIONS = {"earliest": "earliest", "v108": ("v108", "v108"), "latest": "latest"}


def numbers(shape: tuple[int, ...], dtype: str = "<i4") -> np.ndarray:
    """What a dataset holds."""
    return (7 * np.arange(int(np.prod(shape))) + 3).astype(dtype).reshape(shape)


def kinds(folder: Path) -> None:
    """Types of elements, layouts and attributes."""
    for name, version in VERSIONS.items():
        with h5py.File(folder / f"types_{name}.h5", "w", libver=version) as file:
            for code in ("i1", "<u2", ">i4", "<i8", "<f2", ">f4", "<f8", "<c8"):
                file[f"n_{np.dtype(code).name}"] = numbers((2, 3), code)
            file["truth"] = np.array([True, False, True])
            file["fields"] = np.zeros(2, np.dtype([("a", "u1"), ("b", ">f8", (2,)), ("s", "S3")], align=True))
            date = h5py.opaque_dtype(np.dtype("<M8[ns]"))
            file["date"] = numbers((3,), "<i8").view("<M8[ns]").astype(date)
            file["texts"] = ["one", "two"]
            file["null"] = h5py.Empty("f4")
            file["scalar"] = np.float32(2.5)
            file.create_dataset("nothing", (4,), "<f8", fillvalue=2.5)
            compact = h5p.create(h5p.DATASET_CREATE)
            compact.set_layout(h5d.COMPACT)
            made = h5d.create(file.id, b"compact", h5t.STD_I32LE, h5s.create_simple((2, 3)), dcpl=compact)
            h5py.Dataset(made)[...] = numbers((2, 3))


def attributes(folder: Path) -> None:
    """Attributes of all sorts, few and many."""
    for name, version in VERSIONS.items():
        with h5py.File(folder / f"attributes_{name}.h5", "w", libver=version) as file:
            file["kind"] = np.dtype("<i4")
            few = file.create_group("few")
            few.attrs["text"] = "größe"
            few.attrs["fixed"] = np.bytes_(b"abc")
            few.attrs["texts"] = ["one", "", "three"]
            few.attrs["fixed_texts"] = np.array([b"ab", b"cde"])
            few.attrs["null"] = h5py.Empty("f4")
            few.attrs["numbers"] = numbers((2, 2), ">i2")
            few.attrs.create("named", np.arange(2), dtype=file["kind"])
            lists = np.empty(2, object)
            lists[:] = [np.array([1, 2, 3], "<i2"), np.array([], "<i2")]
            few.attrs.create("lists", lists, dtype=h5py.vlen_dtype(np.dtype("<i2")))
            few.attrs.create("mixed", np.array([(1, "x")], [("a", "i4"), ("s", h5py.string_dtype())]))
            many = file.create_group("many", track_order=name == "latest")
            for number in reversed(range(20)):
                many.attrs[f"a{number:02}"] = np.int32(number)


def groups(folder: Path) -> None:
    """Groups with many members."""
    for name, version in VERSIONS.items():
        with h5py.File(folder / f"groups_{name}.h5", "w", libver=version) as file:
            target = file.create_group("few/target")
            file["few/soft"] = h5py.SoftLink("/few/target")
            file["few/external"] = h5py.ExternalLink("other.h5", "/x")
            many = file.create_group("many")
            for number in range(100):
                many[f"m{number * 37 % 100:02}"] = target
            ordered = file.create_group("ordered", track_order=True)
            for member in "zay":
                ordered[member] = target


def indexes(folder: Path) -> None:
    """Chunk indexes, whole and in part."""
    for name, version in VERSIONS.items():
        with h5py.File(folder / f"chunks_{name}.h5", "w", libver=version) as file:
            cases = {
                "one": ((4, 5), (4, 5), None),
                "fixed": ((7, 9), (3, 4), None),
                "growing": ((7, 9), (3, 4), (10, None)),
                "free": ((7, 9), (3, 4), (None, None)),
            }
            for case, (shape, chunk, limits) in cases.items():
                for filters in ({}, {"compression": "gzip", "shuffle": True, "fletcher32": True}):
                    made = file.create_dataset(
                        case + "_z" * bool(filters),
                        shape,
                        "<i4",
                        chunks=chunk,
                        maxshape=limits,
                        fillvalue=-1,
                        **filters,
                    )
                    made[...] = numbers(shape)
            part = file.create_dataset("part", (7, 9), "<i4", chunks=(2, 2), maxshape=(None, 9), fillvalue=-1)
            part[2:4, 4:8] = numbers((7, 9))[2:4, 4:8]
            early = h5p.create(h5p.DATASET_CREATE)
            early.set_chunk((3, 4))
            early.set_alloc_time(h5d.ALLOC_TIME_EARLY)
            space = h5s.create_simple((7, 9))
            h5py.Dataset(h5d.create(file.id, b"early", h5t.STD_I32LE, space, dcpl=early))[...] = numbers((7, 9))
            lacking = file.create_dataset("lacking", (4,), "<i4", chunks=(2,), shuffle=True, compression="gzip")
            lacking[:2] = numbers((4,))[:2]
            lacking.id.write_direct_chunk((2,), numbers((4,))[2:].tobytes(), filter_mask=3)


def large_indexes(folder: Path) -> None:
    """Indexes with pages, super blocks and trees of several levels, almost empty."""
    with h5py.File(folder / "paged_fixed.h5", "w", libver="latest") as file:
        made = file.create_dataset("d", (300, 10), "i1", chunks=(1, 1), maxshape=(300, 10))
        made[250:252, 3:5] = 9
        made[299, 9] = 5
    with h5py.File(folder / "paged_extensible.h5", "w", libver="latest") as file:
        # Data blocks are cut into pages from element 131,056 on.
        made = file.create_dataset("d", (2, 66000), "i1", chunks=(1, 1), maxshape=(2, None))
        made[1, 5:8] = 9
        made[0, 4000:4003] = 7
        made[1, 65990:66000] = 5
    for name, version in VERSIONS.items():
        with h5py.File(folder / f"tree_{name}.h5", "w", libver=version) as file:
            made = file.create_dataset("d", (90, 2), "i1", chunks=(1, 1), maxshape=(None, None))
            made[...] = numbers((90, 2), "i1")


def others(folder: Path) -> None:
    """User blocks, old heaps, netCDF-4, complex numbers of HDF5 2.0, virtual datasets."""
    for name, version in VERSIONS.items():
        with h5py.File(folder / f"user_block_{name}.h5", "w", libver=version, userblock_size=512) as file:
            file.create_dataset("d", data=numbers((5,)), chunks=(2,))
            file.attrs["text"] = "behind a user block"
    with h5py.File(folder / "complex.h5", "w", libver="latest") as file:
        made = h5d.create(file.id, b"c", h5t.COMPLEX_IEEE_F64LE, h5s.create_simple((2,)))
        made.write(h5s.ALL, h5s.ALL, np.array([1 + 2j, 3 - 4j]))
    with h5py.File(folder / "virtual.h5", "w", libver="latest") as file:
        layout = h5py.VirtualLayout((2,), "<i4")
        layout[:] = h5py.VirtualSource("other.h5", "d", (2,))
        file.create_virtual_dataset("v", layout)
    with netCDF4.Dataset(folder / "netcdf4_python.nc", "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", 3)
        made = file.createVariable("t", "f4", ("time", "x"), zlib=True)
        made.units = "K"
        made[:2] = numbers((2, 3), "f4")
        file.title = "netCDF-4"
    with h5netcdf.File(folder / "h5netcdf.nc", "w") as file:
        file.dimensions = {"y": 2, "x": 3}
        made = file.create_variable("t", ("y", "x"), data=numbers((2, 3), "f4"))
        made.attrs["units"] = "K"


def main() -> None:
    """Makes all, in the folder that is named."""
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        for make in (kinds, attributes, groups, indexes, large_indexes, others):
            make(Path(made))
        for path in Path(made).iterdir():
            (folder / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))


if __name__ == "__main__":
    main()
