"""Elements that nobody wrote: the user's fill value or that of the format, as the owners' libraries read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import netCDF4
import numpy as np
import pytest

RANKS = (1, 3, 4)
KINDS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "S1")


def pieces(shape: tuple[int, ...], comm: hs.ThreadComm) -> hs.Boxes:
    """Part of an array by the last rank, nothing by the others."""
    box = tuple(slice(1, extent - 1) for extent in shape)
    return hs.Boxes(shape, [box] if comm.rank == comm.size - 1 else [])


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("given", [False, True])
def test_what_nobody_wrote_in_netcdf4(ranks: int, given: bool, tmp_path: Path) -> None:  # noqa: FBT001
    path, shape = tmp_path / "a.nc", (5, 4)
    fills: dict[str, Any] = {}
    for kind in KINDS:
        usual = b"\0" if kind == "S1" else netCDF4.default_fillvals[kind]
        fills[kind] = (b"x" if kind == "S1" else np.dtype(kind).type(7)) if given else np.array(usual).astype(kind)[()]

    def one(comm: hs.ThreadComm) -> None:
        boxes = pieces(shape, comm)
        with hs.open(path, "w", comm=comm, format="netcdf4", unlimited="t") as file:
            for kind in KINDS:
                options: Any = {"fill_value": fills[kind]} if given else {}
                values = np.arange(6).reshape(3, 2).astype(kind)
                local = [values] if comm.rank == comm.size - 1 else []
                file.write(f"part_{kind}", local, boxes, dtype=kind, dimension_names=["y", "x"], **options)
                file.write(
                    f"zip_{kind}", local, boxes, dimension_names=["y", "x"], compression="gzip", dtype=kind, **options
                )
                file.create_array(f"none_{kind}", shape, kind, dimension_names=["y", "x"], **options)
                whole = hs.Distribution(shape, (comm.size,), ("block", "*"))
                all_of_it = np.arange(20).reshape(shape).astype(kind)
                local_all = all_of_it[whole.slices(comm.rank)]
                file.write(f"all_{kind}", local_all, whole, dimension_names=["y", "x"], **options)
                file.create_array(f"grow_{kind}", (0, 4), kind, dimension_names=["t", "x"], **options)
                record = hs.Boxes((2, 4), [(slice(0, 1), slice(0, 4))] if comm.rank == 0 else [])
                file.append(f"grow_{kind}", [np.ones((1, 4), kind)] if comm.rank == 0 else [], record)

    hs.threads(ranks, one)
    with netCDF4.Dataset(path) as data, h5py.File(path) as raw:
        data.set_auto_mask(False)
        data.set_auto_chartostring(False)
        for kind in KINDS:
            part = np.full(shape, fills[kind], kind)
            part[1:4, 1:3] = np.arange(6).reshape(3, 2).astype(kind)
            grown = np.full((2, 4), fills[kind], kind)
            grown[0] = 1
            for name, expected in {
                f"part_{kind}": part,
                f"zip_{kind}": part,
                f"none_{kind}": np.full(shape, fills[kind], kind),
                f"all_{kind}": np.arange(20).reshape(shape).astype(kind),
                f"grow_{kind}": grown,
            }.items():
                assert np.array_equal(data[name][...], expected), (name, data[name][...])
                assert np.array_equal(raw[name][...], expected), name
                assert ("_FillValue" in data[name].ncattrs()) == given, name
                assert data[name].dtype == np.dtype(kind)
    with netCDF4.Dataset(path, "a") as data:
        data["grow_f8"][3] = 2.0
        assert data["grow_f8"][2].tolist() == [fills["f8"]] * 4 or np.ma.is_masked(data["grow_f8"][2])

    def again(comm: hs.ThreadComm) -> None:
        with hs.open(path, comm=comm) as file:
            for kind in KINDS:
                assert np.array_equal(file.read(f"none_{kind}"), np.full(shape, fills[kind], kind))
                assert file[f"none_{kind}"].fill_value == fills[kind]
            assert file.read("grow_f8")[2].tolist() == [fills["f8"]] * 4

    hs.threads(ranks, again)


@pytest.mark.parametrize("ranks", RANKS)
def test_what_nobody_wrote_in_hdf5(ranks: int, tmp_path: Path) -> None:
    """Of datasets that are not in chunks, too."""
    shape = (6, 5)

    def one(comm: hs.ThreadComm) -> None:
        boxes = pieces(shape, comm)
        with hs.open(tmp_path / "a.h5", "w", comm=comm) as file:
            local = [np.ones((4, 3))] if comm.rank == comm.size - 1 else []
            file.write("part", local, boxes, dtype="f8", fill_value=-1.5)
            file.create_array("none", shape, "i4", fill_value=9)
            file.create_array("zero", shape, "i4")
        with hs.open(tmp_path / "a.h5", "r+", comm=comm) as file:
            file.create_array("later", shape, "f4", fill_value=np.nan)
            whole = hs.Distribution.replicated((1, 5), comm.size)
            file.write("none", np.ones((1, 5), "i4"), whole, section=slice(2, 3))

    hs.threads(ranks, one)
    part = np.full(shape, -1.5)
    part[1:5, 1:4] = 1
    none = np.full(shape, 9, "i4")
    none[2] = 1
    with h5py.File(tmp_path / "a.h5") as data, hs.open(tmp_path / "a.h5") as file:
        for name, expected in {
            "part": part,
            "none": none,
            "zero": np.zeros(shape, "i4"),
            "later": np.full(shape, np.nan, "f4"),
        }.items():
            assert np.array_equal(data[name][...], expected, equal_nan=True), name
            assert np.array_equal(file.read(name), expected, equal_nan=True), name


@pytest.mark.parametrize("ranks", RANKS)
def test_types_that_netcdf4_lacks_are_refused(ranks: int, tmp_path: Path) -> None:
    """Its library crashes on some of them, and does not see others."""
    refused: dict[str, tuple[Any, str]] = {
        "half": (np.zeros(2, "f2"), 'array.astype\\("float32"\\)'),
        "truth": (np.zeros(2, "?"), 'array.astype\\("int8"\\)'),
        "complex": (np.zeros(2, "c8"), "as numbers"),
        "date": (np.zeros(2, "M8[s]"), 'view\\("int64"\\)'),
        "opaque": (np.zeros(2, "V3"), "as numbers"),
        "words": (np.zeros(2, "S3"), "characters"),
        "dates": (np.zeros(2, [("a", "M8[s]")]), "each field"),
        "nested": (np.zeros(2, [("a", [("b", "i4")])]), "each field"),
    }

    def one(comm: hs.ThreadComm) -> None:
        whole = hs.Distribution.replicated((2,), comm.size)
        with hs.open(tmp_path / "a.nc", "w", comm=comm, format="netcdf4") as file:
            for name, (values, hint) in refused.items():
                with pytest.raises(hs.UnsupportedError, match=rf"netCDF-4 variable '{name}'(.|\n)*hint: .*{hint}"):
                    file.write(name, values, whole, dimension_names=["x"])
            file.write("numbers", np.arange(2), whole, dimension_names=["x"])

    hs.threads(ranks, one)
    with netCDF4.Dataset(tmp_path / "a.nc") as data:
        assert list(data.variables) == ["numbers"]
        assert data["numbers"][:].tolist() == [0, 1]


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("given", [False, True])
def test_what_nobody_wrote_in_classic_files(ranks: int, given: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """Of fixed arrays and of records, in a new file and in one that readers see."""
    path, shape, kinds = tmp_path / "a.nc", (5, 4), ("i1", "i2", "i4", "f4", "f8")
    fills = {kind: np.dtype(kind).type(7 if given else netCDF4.default_fillvals[kind]) for kind in kinds}

    def record(comm: hs.ThreadComm) -> hs.Boxes:
        return hs.Boxes((2, 4), [(slice(0, 1), slice(0, 4))] if comm.rank == 0 else [])

    def one(comm: hs.ThreadComm) -> None:
        boxes = pieces(shape, comm)
        with hs.open(path, "w", comm=comm, format="netcdf3", unlimited="t") as file:
            for kind in kinds:
                options: Any = {"fill_value": fills[kind]} if given else {}
                local = [np.arange(6).reshape(3, 2).astype(kind)] if comm.rank == comm.size - 1 else []
                file.write(f"part_{kind}", local, boxes, dtype=kind, dimension_names=["y", "x"], **options)
                file.create_array(f"none_{kind}", shape, kind, dimension_names=["y", "x"], **options)
                file.write(f"grow_{kind}", local, boxes, dtype=kind, dimension_names=["t", "x"], **options)
                file.append(f"grow_{kind}", [np.ones((1, 4), kind)] if comm.rank == 0 else [], record(comm))
        with hs.open(path, "r+", comm=comm) as file:
            for kind in kinds:
                file.append(f"grow_{kind}", [np.full((1, 4), 2, kind)] if comm.rank == 0 else [], record(comm))

    hs.threads(ranks, one)
    with netCDF4.Dataset(path) as data:
        data.set_auto_mask(False)
        for kind in kinds:
            part = np.full(shape, fills[kind], kind)
            part[1:4, 1:3] = np.arange(6).reshape(3, 2).astype(kind)
            grown = np.full((9, 4), fills[kind], kind)
            grown[:5] = part
            grown[5], grown[7] = 1, 2
            expected = {"part": part, "none": np.full(shape, fills[kind], kind), "grow": grown}
            for name, each in expected.items():
                assert np.array_equal(data[f"{name}_{kind}"][...], each), (name, kind, data[f"{name}_{kind}"][...])


def written_bytes() -> int:
    """What this process has written so far [B]."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


@pytest.mark.parametrize("ranks", [1, 3, 4])
@pytest.mark.parametrize("form", ["NETCDF3_64BIT_OFFSET", "netcdf4"])
def test_what_pieces_hold_all_of_is_written_once(form: str, ranks: int, tmp_path: Path) -> None:
    """What ranks leave out gets fill values, before the rest is written; where they hold all, nothing does."""
    elements, path = 100_000, tmp_path / "a.nc"
    order = np.random.default_rng(7).permutation(elements)

    def write(comm: hs.ThreadComm, left: int) -> None:
        mine = order[left:][comm.rank :: comm.size]
        dist = hs.ElementMap((1, elements), mine)
        with hs.open(path, "w", format=form, unlimited="t", comm=comm, durable=False) as file:
            file.write("a", mine.astype(float), dist, dimension_names=["t", "x"])
            file.append("a", mine + 0.5, dist)

    for left in (0, 1):
        before = written_bytes()
        hs.threads(ranks, lambda comm, left=left: write(comm, left))
        times = (written_bytes() - before) / (2 * 8 * elements)
        # In netCDF-4 the library reads fill values where nothing was written.
        assert times < 1.3 if left == 0 or form == "netcdf4" else times > 1.9
        with netCDF4.Dataset(path) as file:
            expected = np.ma.arange(elements, dtype=float)
            expected[order[:left]] = np.ma.masked
            for record, values in enumerate((expected, expected + 0.5)):
                found = file["a"][record]
                assert np.array_equal(np.ma.getmaskarray(found), np.ma.getmaskarray(values))
                assert np.array_equal(found.compressed(), values.compressed())


def test_ranks_that_hold_pieces_and_others_that_do_not_are_told_so(tmp_path: Path) -> None:
    def write(comm: hs.ThreadComm) -> None:
        mine = np.arange(8)[comm.rank :: 2]
        dist = hs.ElementMap((8,), mine) if comm.rank == 1 else hs.Distribution((8,), (2,), ("cyclic",))
        with (
            hs.open(tmp_path / "a.nc", "w", comm=comm) as file,
            pytest.raises(hs.DisagreementError, match="operation is write on rank 0, but write of arrays in pieces"),
        ):
            file.write("a", mine.astype(float), dist)

    hs.threads(2, write)
