"""Random HDF5 and netCDF-4 files, made by us and read by other tools, and the reverse, on any ranks: threads or MPI."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import hyperslab as hs
import netCDF4
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from global_arrays import same
from netcdf_cases import KINDS_OF_DATA, Model, Program, Variable, assert_attributes, native, some_attributes
from random_cases import Random, some_values

KINDS = (*KINDS_OF_DATA, "f2", "c8", "c16", "b1")
GROUPS = ("", "", "fields/", "fields/deep er/", "größe/")
#: Libraries of HDF5 are used by one thread at a time.
LIBRARY = threading.RLock()
LIBVERS = (("earliest", "latest"), ("latest", "latest"), ("v108", "v108"), ("v110", "latest"))


@dataclass
class Dataset(Variable):
    """A dataset, as it should be, and how it is stored."""

    #: Options of the write that makes it.
    how: dict[str, Any] = field(default_factory=dict)


def some_storage(random: Random, shape: tuple[int, ...], *, grows: bool) -> dict[str, Any]:
    """Options that say how a new dataset is stored."""
    how: dict[str, Any] = {}
    if shape and random.random() < 0.5:
        how["chunks"] = tuple(int(random.integers(1, extent + 3)) for extent in shape)
    if random.random() < 0.4:
        how["compression"] = "gzip"
        how["compression_opts"] = int(random.integers(0, 10))
        how["checksum"] = bool(random.random() < 0.5)
    how["shuffle"] = bool(random.random() < 0.3)
    how["fletcher32"] = bool(random.random() < 0.2)
    if not grows and random.random() < 0.3:
        return {}
    return how


class Program5(Program):
    """Calls on one HDF5 file."""

    def __init__(self, comm: Any, random: Random, *, netcdf: bool, named: bool) -> None:
        super().__init__(comm, random)
        self.netcdf = netcdf
        self.named = named

    def names(self, each: Variable) -> tuple[str, ...] | None:
        """NetCDF-4 has names of all, and what we write labels, where there are dimensions."""
        return each.dimensions if self.netcdf or (self.named and each.dimensions) else None

    def strategy(self) -> str | None:
        """One of those by which ranks may share chunks."""
        every = (None, "root-gather", "two-phase", "server-directed", "disk-directed")
        return every[int(self.random.integers(len(every)))]

    def write_new(self, file: Any, variables: list[Any]) -> None:
        """Some new arrays, each in a call of its own or all in one."""
        calls = [variables] if self.random.random() < 0.5 else [[each] for each in variables]
        for call in calls:
            locals_, dists, halo = self.parts({each.name: each.values for each in call})
            alone, how = len(call) == 1, dict(call[0].how)
            fill = call[0].fill if alone else None
            for each in call if fill is None else ():
                each.fill = None
            if not alone:
                how.pop("chunks", None)
            elif call[0].grows and not self.netcdf:
                how["maxshape"] = (None, *call[0].values.shape[1:])
            for each in () if alone or self.netcdf else call:
                each.grows = False
            said = {each.name: (each.dimensions, locals_[each.name], each.attributes) for each in call}
            file.write(said, dists, halo=halo, fill_value=fill, **how)

    def append(self, file: Any, model: Model) -> None:
        """Some rows of some arrays."""
        by = int(self.random.integers(1, 9))
        named = [each for each in model.growing if self.random.random() < 0.6] or model.growing[:1]
        new: dict[str, NDArray[Any]] = {}
        for each in named:
            shape = (by, *each.values.shape[1:])
            new[each.name] = some_values(self.random, shape, each.values.dtype.str, any_bits=each.values.dtype != bool)
            each.values = np.concatenate([each.values, new[each.name]])
        locals_, dists, halo = self.parts(new)
        file.append(locals_, dists, halo=halo)

    def change(self, file: Any, model: Model) -> None:
        """Some appends and updates."""
        for _ in range(int(self.random.integers(0, 4))):
            if model.growing and self.random.random() < 0.6:
                self.append(file, model)
            elif model.variables:
                self.update(file, model)


def some_array(random: Random, number: int, *, netcdf: bool) -> Dataset:
    """A new array somewhere in a file."""
    kind = str(random.choice(KINDS_OF_DATA if netcdf else KINDS))
    ndim = int(random.choice([0, 1, 1, 2, 2, 3]))
    shape = tuple(
        int(extent) for extent in random.integers(0 if random.random() < 0.1 else 1, (1, 40, 9, 6)[ndim] + 1, ndim)
    )
    dimensions = tuple(f"d{extent}_{axis}" for axis, extent in enumerate(shape))
    values = some_values(random, shape, kind, any_bits=kind != "b1")
    fill = (
        None if random.random() < 0.6 or kind in ("b1", "c8", "c16") else np.dtype(kind).type(random.integers(1, 100))
    )
    name = f"{random.choice(GROUPS)}v{number}"
    grows = bool(shape) and random.random() < 0.3
    if grows and netcdf:
        # Along its own dimension: netCDF fills up what is shorter than others.
        dimensions = (f"t{number}", *dimensions[1:])
    how = some_storage(random, shape, grows=grows)
    return Dataset(name, dimensions, values, some_attributes(random), fill, grows, how)


def some_file(random: Random, *, netcdf: bool) -> tuple[Model, list[list[Variable]]]:
    """A file, and which of its arrays are written in one call after another."""
    calls: list[list[Variable]] = []
    for _ in range(int(random.integers(1, 4))):
        first, many = sum(map(len, calls)), int(random.integers(1, 4))
        calls.append([some_array(random, first + i, netcdf=netcdf) for i in range(many)])
    return Model(None, some_attributes(random)), calls


def check_by_others(path: Path, model: Model, *, netcdf: bool) -> None:
    """What h5py reads; and of netCDF-4 h5netcdf, netCDF4-python and xarray."""
    with h5py.File(path) as data:
        found: list[str] = []
        data.visititems(lambda name, one: found.append(name) if isinstance(one, h5py.Dataset) else None)
        assert netcdf or sorted(found) == sorted(model.variables)
        for name, each in model.variables.items():
            same(native(data[name][...]), each.values, f"h5py: {name}")
            if not netcdf:
                own = {key: value for key, value in data[name].attrs.items() if key != "DIMENSION_LABELS"}
                assert_attributes(own, each.attributes, name)
                labels = [each.label for each in data[name].dims]
                assert labels in ([*each.dimensions], [""] * len(labels)), (name, labels)
                assert data[name].fillvalue == (each.values.dtype.type(0) if each.fill is None else each.fill)
    if not netcdf:
        return
    with netCDF4.Dataset(path) as data:
        data.set_auto_maskandscale(False)
        data.set_auto_chartostring(False)
        assert data.data_model == "NETCDF4"
        assert_attributes(data.__dict__, model.attributes, "the file")
        for name, each in model.variables.items():
            variable = data[name]
            assert variable.dimensions == each.dimensions, name
            same(native(variable[...]), each.values, f"netCDF4: {name}")
            own = {key: value for key, value in variable.__dict__.items() if key != "_FillValue"}
            assert_attributes(own, each.attributes, name)
            assert ("_FillValue" in variable.__dict__) == (each.fill is not None)
    with h5netcdf.File(path) as data:
        for name, each in model.variables.items():
            same(native(data[name][...]), each.values, f"h5netcdf: {name}")
            assert data[name].dimensions == each.dimensions
    for engine in ("netcdf4", "h5netcdf"):
        for name, each in model.variables.items():
            group, _, last = name.rpartition("/")
            with (
                warnings.catch_warnings(action="ignore"),
                xr.open_dataset(path, engine=engine, group=group or None, decode_cf=False) as data,  # type: ignore[arg-type]
            ):
                same(native(data[last].values), each.values, f"xarray by {engine}: {name}")


def ours(comm: Any, path: Path, random: Random) -> None:
    """A file that we make and change, as others read it."""
    netcdf = bool(random.random() < 0.5)
    program = Program5(comm, random, netcdf=netcdf, named=True)
    model, calls = some_file(random, netcdf=netcdf)
    form = "netcdf4" if netcdf else "hdf5"
    given: dict[str, Any] = {"format": form, "attributes": model.attributes}
    if netcdf:
        given["unlimited"] = [each.dimensions[0] for call in calls for each in call if each.grows]
    with hs.open(path, "w", comm=comm, durable=False, **given) as file:
        for call in calls:
            model.variables.update({each.name: each for each in call})
            program.write_new(file, call)
            if model.growing and random.random() < 0.5:
                program.append(file, model)
        if comm.rank == 0:
            assert not path.exists(), "a new file is visible when it is closed"
    with hs.open(path, "r+", comm=comm, durable=False, format="hdf5") as file:
        program.change(file, model)
        program.check(file, model)
        program.change(file, model)
    with hs.open(path, comm=comm, format="netcdf3" if netcdf else "hdf5") as file:
        program.check(file, model)
    if comm.rank == 0:
        with LIBRARY:
            check_by_others(path, model, netcdf=netcdf)


def write_by_h5py(path: Path, model: Model, random: Random) -> list[str]:
    """The same file by h5py, with what it can do; gives the names of arrays that can be changed."""
    plain: list[str] = []
    libver = LIBVERS[int(random.integers(len(LIBVERS)))]
    with h5py.File(path, "w", libver=libver, track_order=bool(random.random() < 0.5)) as data:
        data.attrs.update(model.attributes)
        for each in model.variables.values():
            shape = each.values.shape
            given: dict[str, Any] = {"fillvalue": each.fill}
            chunked = bool(shape) and 0 not in shape and random.random() < 0.7
            if chunked:
                given["chunks"] = tuple(int(random.integers(1, extent + 1)) for extent in shape)
                if random.random() < 0.6:
                    given["maxshape"] = tuple(None if random.random() < 0.5 else extent for extent in shape)
                    each.grows = given["maxshape"][0] is None
                given["compression"] = [None, "gzip", "lzf"][int(random.integers(3))]
                each.grows &= given["compression"] != "lzf"
                given["shuffle"] = bool(random.random() < 0.5)
                given["fletcher32"] = bool(random.random() < 0.3) and each.values.dtype.kind != "b"
            dataset = data.create_dataset(each.name, shape, each.values.dtype, **given)
            dataset.attrs.update(each.attributes)
            if random.random() < 0.8 or not shape:
                dataset[...] = each.values
            else:
                # Nobody writes the rest.
                part = tuple(slice(0, int(random.integers(0, extent + 1))) for extent in shape)
                values = np.full(
                    shape, each.values.dtype.type(0) if each.fill is None else each.fill, each.values.dtype
                )
                values[part] = each.values[part]
                if values[part].size:
                    dataset[part] = values[part]
                each.values = values
            changeable = given.get("compression") != "lzf"
            if changeable if chunked else dataset.id.get_offset() is not None:
                plain.append(each.name)
    return plain


def write_by_netcdf4(path: Path, model: Model, random: Random) -> list[str]:
    """The same as a netCDF-4 file by netCDF4-python; all that grows is in chunks."""
    plain: list[str] = []
    with netCDF4.Dataset(path, "w", format="NETCDF4") as data:
        data.setncatts(model.attributes)
        for each in model.variables.values():
            group, _, name = each.name.rpartition("/")
            place = data.createGroup(group) if group else data
            for axis, (dimension, extent) in enumerate(zip(each.dimensions, each.values.shape, strict=True)):
                if dimension not in place.dimensions:
                    place.createDimension(dimension, None if each.grows and axis == 0 else extent)
            zipped = bool(each.dimensions) and random.random() < 0.5
            variable = place.createVariable(
                name,
                each.values.dtype,
                each.dimensions,
                fill_value=each.fill,
                zlib=zipped,
                shuffle=random.random() < 0.5,
            )
            variable.set_auto_maskandscale(False)
            variable.setncatts(each.attributes)
            variable[...] = each.values
            if each.values.size:
                plain.append(each.name)
    return plain


def theirs(comm: Any, path: Path, random: Random) -> None:
    """A file that others make, as we read it and change what lies in one stretch."""
    netcdf = bool(random.random() < 0.4)
    program = Program5(comm, random, netcdf=netcdf, named=False)
    model, calls = some_file(random, netcdf=netcdf)
    model.variables = {each.name: each for call in calls for each in call}
    for each in model.variables.values():
        each.grows &= netcdf
    if netcdf:
        # NetCDF takes an extent of 0 for one that grows.
        model.variables = {name: each for name, each in model.variables.items() if each.values.size}
    # Every rank draws the same numbers; rank 0 makes the file.
    own = path if comm.rank == 0 else path.with_name(f"{comm.rank}-{path.name}")
    with LIBRARY:
        plain = (write_by_netcdf4 if netcdf else write_by_h5py)(own, model, random)
    comm.barrier()
    with hs.open(path, comm=comm, format="hdf5") as file:
        program.check(file, model)
    with hs.open(path, "r+", comm=comm, durable=False, format="hdf5") as file:
        program.change(file, Model(None, {}, {name: model.variables[name] for name in plain}))
        program.check(file, model)
    if comm.rank == 0:
        with LIBRARY:
            check_by_others(path, model, netcdf=netcdf)


def grown_by_others(comm: Any, folder: Path) -> None:
    """Another program makes a file longer that all ranks have open, and of which some have read nothing yet."""
    path = folder / "grown.h5"
    dist = hs.Distribution((30_000,), (comm.size,))
    mine = np.arange(30_000.0)[dist.indices(comm.rank)[0]]
    with hs.open(path, "w", comm=comm, durable=False) as file:
        file.write("a", mine, dist)
    for turn, reads_before in enumerate((False, True)):
        with hs.open(path, comm=comm) as file:
            if reads_before:
                file.read("a", dist, strategy="independent")
            comm.barrier()
            if comm.rank == 0:
                with LIBRARY, h5py.File(path, "r+") as data:
                    data[f"b{turn}"] = np.arange(30_000.0)
            comm.barrier()
            file.refresh()
            same(file.read(f"b{turn}", dist, strategy="independent"), mine, f"turn {turn}")


def run(comm: Any, folder: Path, seed: int, numbers: Iterable[int]) -> int:
    """Cases of a seed; says how many."""
    done = 0
    for number in numbers:
        for way in (ours, theirs):
            try:
                way(comm, folder / f"{way.__name__}{number}.h5", np.random.default_rng([seed, number, comm.size]))
            except Exception as error:
                error.add_note(f"{way.__name__}, seed {seed}, case {number}, {comm.size} ranks")
                raise
            done += 1
    return done
