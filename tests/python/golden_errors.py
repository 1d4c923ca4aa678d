"""Every error that people can meet at the doors of Python, made for real, in one file to read: `golden/errors.txt`.

    python tests/python/golden_errors.py          # shows what has changed
    python tests/python/golden_errors.py --write  # records it

A case is a title and a call that must fail, in a folder that the cases of an area share. Those of several ranks
are also the cases of `error_cases`, by threads. Paths, and what differs from run to run, are normalised.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np

from error_cases import ODD
from mpi_programs.failing import run_cases

RECORD = Path(__file__).parent / "golden" / "errors.txt"
RANKS = 3
#: A title, and the call that fails.
Case = tuple[str, Callable[[], Any]]
Area = Callable[[Path], Iterator[Case]]

ANY: Any = None
RHO = np.arange(12.0).reshape(3, 4)


def store_of(folder: Path, mode: Any = "r+") -> Any:
    """A store with a few things in it."""
    path = folder / "run.zarr"
    if not path.exists():
        with hs.open(path, "w", durable=False) as store:
            store.write("rho", RHO, chunks=(2, 2), dimension_names=("x", "y"))
            store.write("count", np.arange(4, dtype="i4"))
            with store.step("0001") as step:
                step.write("rho", RHO)
    return hs.open(path, mode, durable=False)


def raw_of(folder: Path, mode: Any = "r") -> Any:
    """A raw file with two arrays."""
    path = folder / "dump.raw"
    if not path.exists():
        with hs.open_raw(path, "w", header=b"12345678", durable=False) as file:
            file.write({"rho": RHO, "u": RHO})
    known = {"rho": ((3, 4), "<f8"), "u": ((3, 4), "<f8")}
    return hs.open_raw(path, mode, header=8, arrays=known, durable=False)


def netcdf_of(folder: Path, mode: Any = "r+") -> Any:
    """A NetCDF file with an array that grows and one that does not."""
    path = folder / "run.nc"
    if not path.exists():
        with hs.open(path, "w", unlimited="time", durable=False) as file:
            file.write({"time": (["time"], np.zeros(0)), "rho": (["time", "x"], np.zeros((0, 3)))})
            file.write("fixed", RHO, dimension_names=("y", "z"))
    return hs.open(path, mode, durable=False)


def closed(target: Any) -> Any:
    """The same, closed."""
    target.close()
    return target


# ---- areas --------------------------------------------------------------------------------------------------------


def opening(folder: Path) -> Iterator[Case]:
    """Paths, modes, formats, options."""
    (folder / "empty").mkdir()
    (folder / "full").mkdir()
    (folder / "full" / "notes.txt").write_text("x")
    (folder / "file.zarr").write_text("no store")
    (folder / "broken.zarr").mkdir()
    (folder / "broken.zarr" / "zarr.json").write_text("{")
    (folder / "cut.nc").write_bytes(b"CDF\x01\0\0")
    (folder / "text.nc").write_text("hello")
    (folder / "four.nc").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(64))
    store_of(folder).close()
    yield "a store that is not there", lambda: hs.open(folder / "nothing.zarr")
    yield "a store to change that is not there", lambda: hs.open(folder / "nothing.zarr", "r+")
    yield "an empty folder", lambda: hs.open(folder / "empty")
    yield "a folder of other things", lambda: hs.open(folder / "full", "w")
    yield "a file in the place of a store", lambda: hs.open(folder / "file.zarr")
    yield "a file in the place of a new store", lambda: hs.open(folder / "file.zarr", "w")
    yield "metadata that do not parse", lambda: hs.open(folder / "broken.zarr")
    yield "an array in the place of a store to change", lambda: hs.open(folder / "run.zarr/rho", "r+")
    yield "something new that is there", lambda: hs.open(folder / "run.zarr", "x")
    yield "a mode that is none", lambda: hs.open(folder / "run.zarr", ANY or "rw")
    yield "a mode of another type", lambda: hs.open(folder / "run.zarr", ANY or 5)
    yield "no path", lambda: hs.open(ANY)
    yield "an empty path", lambda: hs.open("", "w")
    yield "a path with a zero byte", lambda: hs.open("a\0b", "w")
    yield "a format that is none", lambda: hs.open(folder / "a.zarr", "w", format="hdf4")
    yield "an option of NetCDF for Zarr", lambda: hs.open(folder / "a.zarr", "w", unlimited="time")
    yield "an option that is none", lambda: hs.open(folder / "a.zarr", "w", chunks=(4,))  # type: ignore[call-arg]
    yield "a strategy that is none", lambda: hs.open(folder / "a.zarr", "w", strategy="fast")
    yield "an exchange that is none", lambda: hs.open(folder / "a.zarr", "w", exchange="some")
    yield "no servers", lambda: hs.open(folder / "a.zarr", "w", servers=0).write("a", RHO)
    yield "negative servers", lambda: hs.open(folder / "a.zarr", "w", servers=-1)
    yield "servers of another type", lambda: hs.open(folder / "a.zarr", "w", servers=ANY or "two")
    yield "buffers of another type", lambda: hs.open(folder / "a.zarr", "w", buffer_bytes=ANY or "1GiB")
    yield "buffers of nothing", lambda: hs.open(folder / "a.zarr", "w", buffer_bytes=0).write("a", RHO)
    yield "a limit below zero", lambda: hs.open(folder / "a.zarr", "w", arrival_seconds=-1)
    yield "a limit of another type", lambda: hs.open(folder / "a.zarr", "w", storage_seconds=ANY or "5s")
    yield "a limit that is no number", lambda: hs.open(folder / "a.zarr", "w", progress_seconds=float("nan"))
    yield "a communicator that is none", lambda: hs.open(folder / "a.zarr", "w", comm=4)
    yield "attributes of a Zarr store", lambda: hs.open(folder / "a.zarr", "w", attributes={"a": {1}})
    yield "a URL of an object store", lambda: hs.open("s3://bucket/run.zarr")
    yield "a URL of a file elsewhere", lambda: hs.open("file://host/run.zarr")
    yield "a user who is not there", lambda: hs.open("~nobody-has-this-name/run.zarr")
    yield "a zip file", lambda: hs.open("run.zip", "w")
    yield "an HDF5 file that is not there", lambda: hs.open(folder / "none.h5")
    yield "an HDF5 file that grows along a number", lambda: hs.open(folder / "a.h5", "w", unlimited=3)  # type: ignore[arg-type]
    yield "an npy file", lambda: hs.open("a.npy")
    yield "a raw file", lambda: hs.open("dump.raw")
    yield "a NetCDF file that is not there", lambda: hs.open(folder / "nothing.nc")
    yield "a NetCDF file that is cut off", lambda: hs.open(folder / "cut.nc")
    yield "a text in the place of a NetCDF file", lambda: hs.open(folder / "text.nc")
    yield "a NetCDF-4 file", lambda: hs.open(folder / "four.nc")
    yield "a NetCDF file of attributes that are none", lambda: hs.open(folder / "a.nc", "w", attributes={"a": {1}})
    yield "striped over one path", lambda: hs.open_raw(hs.Striped(str(folder), "a.raw"), "w")
    yield "striped over nothing", lambda: hs.open_raw(hs.Striped([], "a.raw"), "w")
    yield "striped by a unit of nothing", lambda: hs.open_raw(hs.Striped([folder], "a.raw", unit=0), "w")
    yield "a Zarr store striped", lambda: hs.open(hs.Striped([folder], "a.zarr"), "w")


def without_communicator(folder: Path) -> Iterator[Case]:
    """Programs of several ranks that give no communicator."""
    os.environ |= {"PMI_RANK": "0", "PMI_SIZE": "4"}
    try:
        yield "a store to write", lambda: hs.open(folder / "a.zarr", "w")
        yield "a raw file to write", lambda: hs.open_raw(folder / "a.raw", "w")
        yield "an npy file to write", lambda: hs.save_npy(folder / "a.npy", RHO)
    finally:
        del os.environ["PMI_RANK"], os.environ["PMI_SIZE"]


def writing(folder: Path) -> Iterator[Case]:
    """New arrays and sections."""
    store = store_of(folder)
    dist = hs.Distribution((3, 4), (1,), ("block", "*"))
    yield "to a store for reading", lambda: store_of(folder, "r").write("a", RHO)
    yield "an array that is there", lambda: store.write("rho", RHO)
    yield "an array in the place of a step", lambda: store.write("0001", RHO)
    yield "no array", lambda: store.write("a")
    yield "a mapping in the place of an array", lambda: store.write("a", {"b": 1})
    yield "a masked array", lambda: store.write("a", np.ma.masked_array([1.0, 2.0], [True, False]))
    yield "objects", lambda: store.write("a", np.array([object()]))
    yield "long floats", lambda: store.write("a", np.zeros(2, "longdouble"))
    yield "an option that is none", lambda: store.write("a", RHO, chunk=(2, 2))
    yield "a name that is no text", lambda: store.write(5, RHO)
    yield "an empty name", lambda: store.write("", RHO)
    yield "a name above", lambda: store.write("../a", RHO)
    yield "a hidden name", lambda: store.write(".a", RHO)
    yield "a name of metadata", lambda: store.write("zarr.json", RHO)
    yield "a distribution of another shape", lambda: store.write("a", np.ones((2, 4)), dist)
    yield "a distribution of another kind", lambda: store.write("a", RHO, (2, 2))
    yield "a distribution over more ranks", lambda: store.write("a", RHO, hs.Distribution((3, 4), (2,), ("block", "*")))
    yield "too large a halo", lambda: store.write("a", RHO, halo=2)
    yield "a negative halo", lambda: store.write("h", RHO, halo=-1)
    yield "chunks of too few dimensions", lambda: store.write("a", RHO, chunks=(2,))
    yield "chunks of nothing", lambda: store.write("a", RHO, chunks=(0, 2))
    yield "negative chunks", lambda: store.write("a", RHO, chunks=(-1, 2))
    yield "chunks of another type", lambda: store.write("a", RHO, chunks="auto")
    yield "chunks as a number", lambda: store.write("a", RHO, chunks=4)
    yield "chunks with a fraction", lambda: store.write("a", RHO, chunks=(2.5, 2))
    yield "chunks by servers of another shape", lambda: store.write("a", RHO, chunks=hs.Distribution((5, 4), (1, 1)))
    yield "shards that chunks do not divide", lambda: store.write("a", RHO, chunks=(2, 2), shards=(3, 4))
    yield "shards of another type", lambda: store.write("a", RHO, shards="yes")
    yield "shards that are true", lambda: store.write("a", RHO, shards=True)
    yield "a type that is none", lambda: store.write("a", RHO, dtype="f9")
    yield "a type that cannot be stored", lambda: store.write("a", RHO, dtype="O")
    yield "numbers as texts", lambda: store.write("a", RHO, dtype="U4")
    yield "a type that loses fractions", lambda: store.write("a", RHO, dtype="i4")
    yield "casting that is none", lambda: store.write("a", RHO, dtype="i4", casting="safe")
    yield "not a number as an integer", lambda: store.write("a", np.array([np.nan]), dtype="i4", casting="unsafe")
    yield "a fill value that does not fit", lambda: store.write("a", RHO, dtype="f4", fill_value="x")
    yield "a fill value with a fraction", lambda: store.write("a", RHO.astype("i4"), fill_value=0.5)
    yield "a fill value of another type", lambda: store.write("a", RHO, fill_value=[1, 2])
    yield "a fill value of an object", lambda: store.write("a", RHO, fill_value=object())
    yield "names of too few dimensions", lambda: store.write("a", RHO, dimension_names=("x",))
    yield "names of dimensions that are numbers", lambda: store.write("a", RHO, dimension_names=(1, 2))
    yield "attributes that are no JSON", lambda: store.write("a", RHO, attributes={"a": {1}})
    yield "attributes that JSON does not have", lambda: store.write("a", RHO, attributes={"a": 1j})
    yield "attributes that are no mapping", lambda: store.write("a", RHO, attributes=[1, 2])
    yield "a level that is none", lambda: store.write("a", RHO, zstd=99)
    yield "codecs that are none", lambda: store.write("a", RHO, codecs=[{"name": "lz77"}])
    yield "codecs and a level", lambda: store.write("d", RHO, codecs=[{"name": "gzip"}], zstd=3)
    yield "a strategy that is none", lambda: store.write("a", RHO, strategy="fast")
    yield "a section of an array that is not there", lambda: store.write("a", RHO, section=slice(0, 2))
    yield "a section beyond the end", lambda: store.write("rho", RHO, section=(slice(1, 4), slice(0, 4)))
    yield "a section of too many dimensions", lambda: store.write("rho", RHO, section=(0, 0, 0))
    yield "a section of another shape", lambda: store.write("rho", RHO, section=(slice(0, 2),))
    yield "chunks of an array that is there", lambda: store.write("rho", RHO, section=slice(0, 3), chunks=(1, 1))
    yield "a type of an array that is there", lambda: store.write("rho", RHO, section=slice(0, 3), dtype="f4")


def reading(folder: Path) -> Iterator[Case]:
    """Arrays and sections that are there, and not."""
    store = store_of(folder)
    frozen = np.zeros((3, 4))
    frozen.flags.writeable = False
    yield "an array that is not there", lambda: store.read("u")
    yield "a group in the place of an array", lambda: store.read("0001")
    yield "a name that is no text", lambda: store.read(5)
    yield "a name twice", lambda: store.read(["rho", "rho"])
    yield "arrays of two shapes by one distribution", lambda: store.read(["rho", "count"], hs.Distribution((4,), (1,)))
    yield "an option that is none", lambda: store.read("rho", sections=0)
    yield "all dots", lambda: store.read("rho", section=(..., 0, ..., 0))
    yield "a section beyond the end", lambda: store.read("rho", section=(slice(1, 9), 0))
    yield "an index beyond the end", lambda: store.read("rho", section=(7,))
    yield "a section of too many dimensions", lambda: store.read("rho", section=(0, 0, 0))
    yield "a section backwards", lambda: store.read("rho", section=slice(None, None, -1))
    yield "a section with a fraction", lambda: store.read("rho", section=1.5)
    yield "a section of another type", lambda: store.read("rho", section="ab")
    yield "a section of None", lambda: store.read("rho", section=(None,))
    yield "a section by a mask", lambda: store.read("rho", section=(RHO > 3,))
    yield "a section of three numbers", lambda: store.read("rho", section=((0, 1, 2),))
    yield "a section whose blocks overlap", lambda: store.read("rho", section=((0, 1, 2, 2), (0, 1, 4, 1)))
    yield "a distribution of another shape", lambda: store.read("rho", hs.Distribution((3, 5), (1,), ("block", "*")))
    yield "a distribution of another kind", lambda: store.read("rho", "block")
    yield "into a list", lambda: store.read("rho", out=[[0.0]])
    yield "into another shape", lambda: store.read("rho", out=np.zeros((3, 5)))
    yield "into what cannot be written", lambda: store.read("rho", out=frozen)
    yield "into integers", lambda: store.read("rho", out=np.zeros((3, 4), "i4"))
    yield "as integers", lambda: store.read("rho", dtype="i4")
    yield "as a type that is none", lambda: store.read("rho", dtype="f9")
    yield "in an order that is none", lambda: store.read("rho", order="Z")
    yield "with too large a halo into an array", lambda: store.read("rho", out=np.zeros((3, 4)), halo=1)
    yield "by a strategy that is none", lambda: store.read("rho", strategy="fast")
    yield "alone: an array that is not there", lambda: store.read_local("u")
    yield "alone: a section beyond the end", lambda: store.read_local("rho", section=slice(0, 9))
    yield "what an array is that is not there", lambda: store["u"]
    yield "what a group is", lambda: store["0001"]
    yield "what a number is", lambda: store[5]
    array = store["rho"]
    yield "an element beyond the end", lambda: array[9]
    yield "an element of too many dimensions", lambda: array[0, 0, 0]
    yield "elements backwards", lambda: array[::-1]
    yield "elements by a mask of another shape", lambda: array[RHO[:2] > 3]
    yield "elements by a text", lambda: array["x"]
    yield "elements by a list beyond the end", lambda: array[[0, 9]]
    yield "elements by two lists that do not fit", lambda: array[[0, 1], [0, 1, 2]]


def growing(folder: Path) -> Iterator[Case]:
    """Append, groups, steps."""
    store = store_of(folder)
    yield "append to what is not there", lambda: store.append("u", RHO)
    yield "append another shape", lambda: store.append("rho", np.zeros((1, 5)))
    yield "append too few dimensions", lambda: store.append("rho", np.zeros(4))
    yield "append along a dimension that is none", lambda: store.append("rho", RHO, axis=2)
    yield "append complex numbers to floats", lambda: store.append("rho", RHO.astype("c16"))
    yield "append to a store for reading", lambda: store_of(folder, "r").append("rho", RHO)
    yield "a group that is not there", lambda: store.group("0002")
    yield "an array in the place of a group", lambda: store.group("rho")
    yield "a group by a number", lambda: store.group(1)
    yield "a step that is there", lambda: store.step("0001")
    yield "a step in the place of an array", lambda: store.step("rho")
    yield "a step of an empty name", lambda: store.step("")
    yield "a step by a number", lambda: store.step(1)
    yield "a step of attributes that are none", lambda: store.step("0009", attributes={"a": {1}})
    yield "a step of a store for reading", lambda: store_of(folder, "r").step("0002")
    yield "consolidate a store for reading", lambda: store_of(folder, "r").consolidate()
    with store.step("0005") as step:
        yield "a step in a step", lambda: step.step("inner")
        yield "a group in a step", lambda: step.group("inner")
        step.write("rho", RHO)


def closing(folder: Path) -> Iterator[Case]:
    """What is closed."""
    store, raw, netcdf = closed(store_of(folder)), closed(raw_of(folder)), closed(netcdf_of(folder))
    open_store = store_of(folder)
    step = closed(open_store.step("0004"))
    yield "write to a store", lambda: store.write("a", RHO)
    yield "read from a store", lambda: store.read("rho")
    yield "iread from a store", lambda: store.iread("rho").wait()
    yield "list a store", lambda: store.arrays()
    yield "a step of a store", lambda: store.step("a")
    yield "flush a store", lambda: store.flush()
    yield "write to a step", lambda: step.write("a", RHO)
    yield "close a step again", lambda: closed(step).write("a", RHO)
    yield "read from a raw file", lambda: raw.read("rho")
    yield "the header of a raw file", lambda: raw.header
    yield "read from a NetCDF file", lambda: netcdf.read("rho")


def raw_files(folder: Path) -> Iterator[Case]:
    """Raw and npy files."""
    file = raw_of(folder)
    np.save(folder / "objects.npy", np.array([None]), allow_pickle=True)
    np.save(folder / "a.npy", RHO)
    (folder / "cut.npy").write_bytes((folder / "a.npy").read_bytes()[:-8])
    (folder / "text.npy").write_text("hello")
    known = {"rho": ((3, 4), "<f8")}
    yield "a file that is not there", lambda: hs.open_raw(folder / "nothing.raw", header=0, arrays=known)
    yield "a folder", lambda: hs.open_raw(folder, header=0, arrays=known)
    yield "below a folder that is not there", lambda: hs.open_raw(folder / "no/where/a.raw", "w")
    yield "a file that is too short", lambda: hs.open_raw(folder / "dump.raw", header=8, arrays={"a": ((99,), "f8")})
    yield "an order that is none", lambda: hs.open_raw(folder / "a.raw", "w", order=ANY or "Z")
    yield "a new file of so many bytes", lambda: hs.open_raw(folder / "a.raw", "w", header=8)
    yield "a new file of known arrays", lambda: hs.open_raw(folder / "a.raw", "w", arrays=known)
    yield "a negative header", lambda: hs.open_raw(folder / "dump.raw", header=-1, arrays=known)
    yield "an array without a type", lambda: hs.open_raw(folder / "dump.raw", header=0, arrays=ANY or {"a": (3, 4)})
    yield "an array of a type that is none", lambda: hs.open_raw(folder / "dump.raw", arrays={"a": ((3,), "f9")})
    yield "an array of a negative shape", lambda: hs.open_raw(folder / "dump.raw", arrays={"a": ((-3,), "f8")})
    yield "arrays that are no mapping", lambda: hs.open_raw(folder / "dump.raw", arrays=ANY or ["rho"])
    yield "read an array that is not there", lambda: file.read("v")
    yield "read alone an array that is not there", lambda: file.read_local("v")
    yield "write to a file for reading", lambda: file.write({"rho": RHO})
    yield "write an array that is not there", lambda: raw_of(folder, "r+").write({"v": RHO})
    yield "write no array", lambda: raw_of(folder, "r+").write({})
    yield "write another shape", lambda: raw_of(folder, "r+").write({"rho": np.zeros((3, 5))})
    yield "an npy file that is not there", lambda: hs.load_npy(folder / "nothing.npy")
    yield "an npy file of objects", lambda: hs.load_npy(folder / "objects.npy")
    yield "an npy file that is cut off", lambda: hs.load_npy(folder / "cut.npy")
    yield "a text in the place of an npy file", lambda: hs.load_npy(folder / "text.npy")
    yield "save a text as npy", lambda: hs.save_npy(folder / "b.npy", "text")
    yield "save npy in an order that is none", lambda: hs.save_npy(folder / "b.npy", RHO, order=ANY or "Z")


def netcdf_files(folder: Path) -> Iterator[Case]:
    """NetCDF classic files."""
    file = netcdf_of(folder)
    yield "a group", lambda: file.group("a")
    yield "a step", lambda: file.step("a")
    yield "consolidate", lambda: file.consolidate()
    yield "an option of Zarr", lambda: file.write("b", RHO, chunks=(2, 2))
    yield (
        "a new array with another length of a dimension",
        lambda: file.write("b", np.zeros((1, 7)), dimension_names=file["rho"].dimension_names),
    )
    yield "a section of an array that does not grow", lambda: file.write("fixed", np.zeros(3), section=9)
    yield "an array that is not there", lambda: file.read("u")
    yield "append to an array that does not grow", lambda: file.append("fixed", RHO)
    yield "append another shape", lambda: file.append("rho", np.zeros((1, 4)))
    yield "append along another dimension", lambda: file.append("rho", np.zeros((1, 3)), axis=1)
    yield "append no arrays", lambda: file.append({})


def hdf5_files(folder: Path) -> Iterator[Case]:
    """Changes of HDF5 files that exist."""
    for name in ("run.h5", "run.nc4"):
        with hs.open(folder / name, "w", durable=False) as new:
            new.write("fields/rho", RHO, dimension_names=("y", "x"))
            new.write("grows", RHO, dimension_names=("t", "x"), maxshape=(5, None)) if name == "run.h5" else None
    file, netcdf = hs.open(folder / "run.h5", "r+", durable=False), hs.open(folder / "run.nc4", "r+", durable=False)
    with file.step("0001") as step:
        step.write("rho", RHO)
        yield "an array in the place of a step that is under way", lambda: file.write("0001", RHO)
        yield "the same step twice", lambda: file.step("0001")
        yield "a step in a step", lambda: step.step("a")
        yield "read alone from a step that is under way", lambda: step["rho"][...]
    yield "a step that is there", lambda: file.step("0001")
    yield "a step of a name that is none", lambda: file.step("a/b")
    yield "a group that is not there", lambda: file.group("none")
    yield "a group in the place of an array", lambda: file.create_group("grows")
    yield "a group that is there", lambda: file.create_group("fields")
    yield "an array in the place of a group", lambda: file.write("fields", RHO)
    yield "an array in an array", lambda: file.write("grows/a", RHO)
    yield "new arrays and one that is there", lambda: file.write({"grows": RHO, "new": RHO})
    yield "a section of an array that is not there", lambda: file.write("new", RHO, section=slice(0, 3))
    yield "delete what is not there", lambda: file.delete("none")
    yield "rename what is not there", lambda: file.rename("none", "a")
    yield "rename to a name that is taken", lambda: file.rename("fields/rho", "grows")
    yield "rename into a group that is not there", lambda: file.rename("grows", "none/grows")
    yield "rename a group into itself", lambda: file.rename("fields", "fields/a")
    yield "resize beyond the limit", lambda: file.resize("grows", (6, 4))
    yield "resize to what is smaller", lambda: file.resize("grows", (2, 4))
    yield "resize an array that lies in one stretch", lambda: file.resize("fields/rho", (4, 4))
    yield "resize a group", lambda: file.resize("fields", (4, 4))
    yield "an attribute that is a mapping", lambda: file.attrs.update(a={"b": 1})
    yield "an attribute of a name that HDF5 keeps", lambda: file["grows"].attrs.update(CLASS="a")
    other = {"dimension_names": ("y", "x")}
    yield "an array of another length in a netCDF-4 file", lambda: netcdf.write("fields/new", RHO[:, :2], **other)
    yield "delete from a netCDF-4 file", lambda: netcdf.delete("fields/rho")

    def new(write: Callable[[Any], Any], **options: Any) -> Any:
        path = folder / "new.nc"
        with hs.open(path, "w", durable=False, **options) as one:
            return write(one)

    yield "a type that it does not have", lambda: new(lambda f: f.write("a", RHO.astype("c16")))
    yield (
        "a type that the version does not have",
        lambda: new(lambda f: f.write("a", RHO.astype("u8")), format="NETCDF3_CLASSIC"),
    )
    yield (
        "one dimension of two lengths",
        lambda: new(lambda f: f.write({"a": (["x"], np.zeros(3)), "b": (["x"], np.zeros(4))})),
    )
    yield "names of too few dimensions", lambda: new(lambda f: f.write("a", RHO, dimension_names=("x",)))
    yield "attributes that it does not have", lambda: new(lambda f: f.write("a", RHO, attributes={"a": {"b": 1}}))
    yield "an array that is no pair", lambda: new(lambda f: f.write({"a": (["x"], RHO, 3, 4)}))
    yield "a name that is none", lambda: new(lambda f: f.write("a/b", RHO))
    yield "an unlimited dimension of another type", lambda: new(lambda f: f.write("a", RHO), unlimited=5)


def requests(folder: Path) -> Iterator[Case]:
    """Calls that do not block."""
    store = store_of(folder)
    yield "write an array that is there", lambda: store.iwrite("rho", RHO).wait()
    yield "write a text", lambda: store.iwrite("a", "text").wait()
    yield "read an array that is not there", lambda: store.iread("u").wait()
    yield "read into another shape", lambda: store.iread("rho", out=np.zeros(3)).wait()

    def forgotten() -> None:
        store.iwrite("rho", RHO)
        store.flush()

    yield "flush what failed and was not waited for", forgotten


def distributions(folder: Path) -> Iterator[Case]:
    """Who holds what."""
    dist = hs.Distribution((10, 4), (3,), ("block", "*"))
    yield "too few kinds", lambda: hs.Distribution((10, 4), (2,), ("block",))
    yield "a kind that is none", lambda: hs.Distribution((10,), (2,), ("blok",))
    yield "blocks of nothing", lambda: hs.Distribution((10,), (2,), ("block(0)",))
    yield "blocks that are too small", lambda: hs.Distribution((10,), (2,), ("block(2)",))
    yield "uneven blocks of another sum", lambda: hs.Distribution((10,), (2,), ([3, 4],))
    yield "uneven blocks of too many ranks", lambda: hs.Distribution((10,), (2,), ([3, 4, 3],))
    yield "a mesh of too few dimensions", lambda: hs.Distribution((10, 4), (2,))
    yield "a mesh of nothing", lambda: hs.Distribution((10,), (0,))
    yield "a negative shape", lambda: hs.Distribution((-10,), (2,))
    yield "a shape of fractions", lambda: hs.Distribution((10.5,), (2,))
    yield "a shape that is a number", lambda: hs.Distribution(ANY or 10, (2,))
    yield "over a dimension that is none", lambda: hs.Distribution((10,), (2,), over=(3,))
    yield "over a dimension twice", lambda: hs.Distribution((10, 4), (2, 2), over=(0, 0))
    yield "blocks over no ranks", lambda: hs.Distribution.block((10,), 0)
    yield "blocks over a negative number", lambda: hs.Distribution.block((10,), -2)
    yield "a rank below zero", lambda: dist.local_shape(-1)
    yield "a rank of another type", lambda: dist.local_shape(ANY or "0")
    yield "slices of what is cyclic", lambda: hs.Distribution((10,), (3,), ("cyclic(2)",)).slices(0)
    yield "an element outside of a part", lambda: dist.to_global(0, (9, 9))
    yield "an index of too few dimensions", lambda: dist.to_global(0, (1,))
    yield "owners of an element outside", lambda: dist.owners((99, 0))
    yield "a box beyond the array", lambda: store_of(folder).write("a", [RHO], hs.Boxes((3, 3), [((0, 0), (3, 4))]))
    yield "a box that is none", lambda: hs.Boxes((3, 4), [(slice(0, 2, 2), slice(0, 4))])
    yield "boxes that are none", lambda: hs.Boxes((3, 4), ANY or 5)
    yield "boxes and too few arrays", lambda: store_of(folder).write("a", [], hs.Boxes((3, 4), [((0, 0), (3, 4))]))
    yield (
        "boxes that overlap",
        lambda: store_of(folder).write("a", [RHO, RHO], hs.Boxes((3, 4), [((0, 0), (3, 4)), ((0, 0), (3, 4))])),
    )
    yield "runs of too few lengths", lambda: hs.Runs((3, 4), [0, 5], [1])
    yield "runs of fractions", lambda: hs.Runs((3, 4), [0.5], [1])
    yield "a map beyond the array", lambda: store_of(folder).write("a", np.zeros(2), hs.ElementMap((3, 4), [0, 99]))
    yield "a map of two dimensions", lambda: hs.ElementMap((3, 4), [[0, 1]])
    yield (
        "a map and an array of another length",
        lambda: store_of(folder).write("a", np.zeros(3), hs.ElementMap((3, 4), [0, 1])),
    )
    yield "a typical request of too many dimensions", lambda: hs.TypicalRequest((1, 2, 3)).chunks((4, 4), "f8")
    yield "a typical request of a type that is none", lambda: hs.TypicalRequest((1,)).chunks((4,), "f9")
    yield "no threads", lambda: hs.threads(0, lambda comm: None)
    yield "servers of one rank", lambda: hs.threads(1, lambda comm: hs.dedicate(comm, 1))
    yield "servers of no communicator", lambda: hs.dedicate(None)


def memories(folder: Path) -> Iterator[Case]:
    """Stores in memory."""
    memory, objects = hs.MemoryStore(), hs.ObjectMemory()
    with hs.open(objects / "run.zarr", "w") as store:
        store.write("rho", RHO, chunks=(2, 2))
    yield "a store that is not there", lambda: hs.open(memory / "nothing.zarr")
    yield "a file that is not there", lambda: memory["nothing"]
    yield "remove what is not there", lambda: memory.pop("nothing")
    yield "a raw file in an object store", lambda: hs.open_raw(objects / "a.raw", "w")
    yield "an npy file in an object store", lambda: hs.save_npy(objects / "a.npy", RHO)
    yield "a NetCDF file in an object store", lambda: hs.open(objects / "a.nc", "w")
    yield (
        "change what readers see in an object store",
        lambda: hs.open(objects / "run.zarr", "r+").write("rho", RHO, section=slice(0, 3)),
    )
    yield (
        "replace an array in an object store",
        lambda: hs.open(objects / "run.zarr", "r+").write("rho", RHO, overwrite=True),
    )
    yield (
        "append a part of a chunk in an object store",
        lambda: hs.open(objects / "run.zarr", "r+").append("rho", RHO[:1]),
    )
    yield "verify a store in memory", lambda: hs.verify(memory)  # type: ignore[arg-type]


def damaged(folder: Path) -> Iterator[Case]:
    """What is stored is not what was written."""

    def with_text(name: str, old: str, new: str) -> Any:
        store_of(folder).close()
        path = folder / "run.zarr" / name / "zarr.json"
        text = path.read_text()
        path.write_text(text.replace(old, new))
        try:
            with hs.open(folder / "run.zarr") as store:
                return store.read(name)
        finally:
            path.write_text(text)

    def cut(keep: int) -> Any:
        store_of(folder).close()
        chunk = folder / "run.zarr/rho/c.0.0"
        content = chunk.read_bytes()
        chunk.write_bytes(content[:keep] if keep else bytes(len(content)))
        try:
            with hs.open(folder / "run.zarr") as store:
                return store.read("rho")
        finally:
            chunk.write_bytes(content)

    yield "a chunk that is cut off", lambda: cut(5)
    yield "a chunk of zeros", lambda: cut(0)
    yield "metadata that do not parse", lambda: with_text("rho", "{", "[")
    yield "a negative shape", lambda: with_text("count", "4", "-4")
    yield "a type of tomorrow", lambda: with_text("rho", "float64", "float512")
    yield "a codec of tomorrow", lambda: with_text("rho", "crc32c", "crc99")
    yield "a version of tomorrow", lambda: with_text("rho", '"zarr_format": 3', '"zarr_format": 4')
    yield "verify what is not there", lambda: hs.verify(folder / "nothing.zarr")
    yield "verify by no threads", lambda: hs.verify(folder / "run.zarr", jobs=0)


def laboratory(folder: Path) -> Iterator[Case]:
    """explain, plan, simulate, traces."""
    dist = hs.Distribution((10, 4), (2,), ("block", "*"))
    yield "explain a type that is none", lambda: hs.explain(dist, "f9")
    yield "explain a direction that is none", lambda: hs.explain(dist, "f8", direction=ANY or "up")
    yield "explain a layout that is none", lambda: hs.explain(dist, "f8", layout=ANY or "hdf5")
    yield "explain what is no distribution", lambda: hs.explain(ANY or (10, 4), "f8")
    yield "explain servers that are none", lambda: hs.explain(dist, "f8", servers=[5])
    yield "explain a section without a shape", lambda: hs.explain(dist, "f8", section=slice(0, 10))
    yield "plan for a machine that is none", lambda: hs.plan("cray-9", {"write": True, "arrays": []}, clients=2)
    yield "plan nothing", lambda: hs.plan("nas-sp2", {"write": True, "arrays": []}, clients=2)
    yield "simulate a machine that is none", lambda: hs.simulate("cray-9", [], clients=2)
    yield "simulate what is no stage", lambda: hs.simulate("nas-sp2", [{"fly": 1}], clients=2)


def disagreeing(folder: Path) -> Iterator[Case]:
    """What one rank of three asks for otherwise; the others that `error_cases` has come after these."""
    dist = hs.Distribution((12, 8), (RANKS,), ("block", "*"))

    def on_ranks(act: Callable[[Any, Any, bool], Any]) -> Callable[[], Any]:
        def run(comm: Any) -> Any:
            with hs.open(folder / "a.zarr", "w", comm=comm, durable=False) as store:
                return act(store, dist.zeros(comm), comm.rank == ODD)

        return lambda: hs.threads(RANKS, run)

    def of_write(options: Callable[[bool], dict[str, Any]]) -> Callable[[], Any]:
        return on_ranks(lambda store, part, odd: store.write("a", part, dist, **options(odd)))

    def of_open(options: Callable[[bool], dict[str, Any]]) -> Callable[[], Any]:
        return lambda: hs.threads(
            RANKS, lambda comm: hs.open_raw(folder / "a.raw", comm=comm, **options(comm.rank == ODD))
        )

    names = ("x", "y")
    yield "shards", of_write(lambda odd: {"chunks": (2, 2), "shards": (4, 4) if odd else (8, 8)})
    yield "shards or none", of_write(lambda odd: {"chunks": (2, 2), "shards": None if odd else "auto"})
    yield "codecs", of_write(lambda odd: {"codecs": [{"name": "gzip", "configuration": {"level": 1 + odd}}]})
    yield "a level", of_write(lambda odd: {"zstd": 3 if odd else None})
    yield "checksums", of_write(lambda odd: {"checksum": odd})
    yield "fill values", of_write(lambda odd: {"fill_value": 1 if odd else None})
    yield "names of dimensions", of_write(lambda odd: {"dimension_names": names if odd else ("x", None)})
    yield "the type", of_write(lambda odd: {"dtype": "f4" if odd else None})
    yield "a typical request", of_write(lambda odd: {"chunks": hs.TypicalRequest((1, 4 if odd else None))})
    yield "overwrite", of_write(lambda odd: {"overwrite": odd})
    yield "casting", of_write(lambda odd: {"dtype": "f4", "casting": "unsafe" if odd else "same_kind"})
    yield "how many arrays", on_ranks(lambda store, part, odd: store.write(dict.fromkeys("ab"[odd:], part), dist))
    yield "names of steps", on_ranks(lambda store, part, odd: store.step(f"{odd}"))
    yield "attributes of steps", on_ranks(lambda store, part, odd: store.step("s", attributes={"odd": odd}))
    yield "groups", on_ranks(lambda store, part, odd: store.group(f"{odd}"))
    yield "flush or write", on_ranks(lambda store, part, odd: store.flush() if odd else store.write("a", part, dist))
    yield "an error of the program in a step", on_ranks(in_a_step)
    yield "headers of new files", of_open(lambda odd: {"mode": "w", "header": b"odd" if odd else b"even"})
    yield "headers of files", of_open(lambda odd: {"header": 8 + odd, "arrays": {"a": ((3,), "f8")}})
    yield "arrays of files", of_open(lambda odd: {"header": 0, "arrays": {"a": ((3,), "f4" if odd else "f8")}})
    yield "orders of files", of_open(lambda odd: {"mode": "w", "order": "C" if odd else "F"})
    yield "buffers", of_open(lambda odd: {"mode": "w", "buffer_bytes": 1 << (24 + odd)})


def in_a_step(store: Any, part: Any, odd: bool) -> Any:  # noqa: FBT001
    """Write a step, of which one rank fails between two calls."""
    with store.step("0001") as step:
        if odd:
            message = "the physics went wrong"
            raise ZeroDivisionError(message)
        step.write("a", part, hs.Distribution((12, 8), (RANKS,), ("block", "*")))


AREAS: dict[str, Area] = {
    "opening": opening,
    "without a communicator on several ranks": without_communicator,
    "writing": writing,
    "reading": reading,
    "growing": growing,
    "closed": closing,
    "raw and npy files": raw_files,
    "NetCDF files": netcdf_files,
    "HDF5 files": hdf5_files,
    "requests": requests,
    "who holds what": distributions,
    "in memory": memories,
    "damaged": damaged,
    "laboratory": laboratory,
    f"{RANKS} ranks that ask for different things": disagreeing,
}


# ---- the file -----------------------------------------------------------------------------------------------------


def normalised(text: str, folder: Path) -> str:
    """A text without what differs from run to run."""
    text = text.replace(str(folder.resolve()), "DIR").replace(str(folder), "DIR").replace(str(Path.cwd()), "CWD")
    text = re.sub(r"0x[0-9a-f]{8,}", "0xHEX", text)
    text = re.sub(r"(memory|objects)://\d+", r"\1://N", text)
    text = "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
    text = re.sub(r"^(CorruptError: )on ranks? [0-9, ]+", r"\1on ranks N", text)
    return re.sub(r"within \d+\.\d+ s", "within N s", text)


def failed(call: Callable[[], Any]) -> str:
    """The error of a call, as Python shows it at the end of a traceback."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except Exception as error:  # noqa: BLE001 (any error is what is looked for)
        return f"{type(error).__name__}: {error}"
    return "NO ERROR"


def errors(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Area, title and text of every error."""
    for number, (area, cases) in enumerate(AREAS.items()):
        own = folder / f"{number}"
        own.mkdir()
        for title, call in cases(own):
            yield area, title, normalised(failed(call), own)
    several = folder / "ranks"
    several.mkdir()
    for name, (kind, text) in hs.threads(RANKS, lambda comm: run_cases(comm, several))[0].items():
        title = name.replace("_", " ")
        yield f"{RANKS} ranks, of which rank {ODD} may differ", title, normalised(f"{kind}: {text}", several / name)


def text_of_errors() -> str:
    """All of them, as they stand in the file."""
    lines = ["Made by tests/python/golden_errors.py --write: what people are told, to be read by people.\n"]
    last = ""
    with tempfile.TemporaryDirectory() as folder:
        for area, title, text in errors(Path(folder)):
            if area != last:
                lines.append(f"\n==== {area} ====\n")
                last = area
            lines.append(f"\n{title}\n" + "".join(f"    {line}\n" for line in text.splitlines()))
    return "".join(lines)


def main() -> int:
    """Show what has changed, or record it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="record the errors as they are now")
    args = parser.parse_args()
    found = text_of_errors()
    if args.write:
        RECORD.parent.mkdir(exist_ok=True)
        RECORD.write_text(found, encoding="utf-8")
        return 0
    recorded = RECORD.read_text(encoding="utf-8") if RECORD.exists() else ""
    lines = difflib.unified_diff(recorded.splitlines(), found.splitlines(), str(RECORD), "now", lineterm="")
    shown = "\n".join(lines)
    print(shown or "nothing has changed")
    return int(bool(shown))


if __name__ == "__main__":
    sys.exit(main())
