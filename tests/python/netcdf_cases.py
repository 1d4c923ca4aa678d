"""Random NetCDF classic files, made by us and read by other tools, and the reverse, on any ranks: threads or MPI."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hyperslab as hs
import netCDF4
import numpy as np
import scipy.io
import xarray as xr
from numpy.typing import NDArray

from global_arrays import Spread, replace, same, select
from random_cases import STRATEGIES, Random, as_user_says, some_memory, some_section, some_spread, some_values

#: Versions, as netCDF4-python calls them; `None` leaves the choice to us.
VERSIONS = (None, "NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA")
KINDS = ("i1", "i2", "i4", "f4", "f8")
KINDS_OF_DATA = (*KINDS, "u1", "u2", "u4", "i8", "u8")
ATTRIBUTES: dict[str, Any] = {
    "units": "kg m-3",
    "long name": "Dichte, größer als 0",
    "empty": "",
    "number": 7,
    "negative": -(2**31),
    "real": 0.25,
    "list": [1, 2, 3],
    "reals": [0.5, -1024.25],
}


@dataclass
class Variable:
    """A variable, as it should be."""

    name: str
    dimensions: tuple[str, ...]
    values: NDArray[Any]
    attributes: dict[str, Any]
    fill: Any
    grows: bool
    #: How many rows the opening has seen or written, behind which it appends.
    rows: int = 0


@dataclass
class Model:
    """A file, as it should be."""

    version: str | None
    attributes: dict[str, Any]
    variables: dict[str, Variable] = field(default_factory=dict)

    @property
    def growing(self) -> list[Variable]:
        """Those with the unlimited dimension."""
        return [variable for variable in self.variables.values() if variable.grows]

    def opens(self) -> None:
        """Another opening has seen all records."""
        for each in self.growing:
            each.rows = len(each.values)

    def lengthens(self, records: int) -> None:
        """What is new of the variables that grow is fill values."""
        for each in self.growing:
            new = np.full(
                (max(records - len(each.values), 0), *each.values.shape[1:]), fill_of(each), each.values.dtype
            )
            each.values = np.concatenate([each.values, new])

    def adds(self, variables: list[Variable]) -> None:
        """New variables, of which each has as many records as the longest."""
        for each in variables:
            each.rows = len(each.values) if each.grows else 0
            self.variables[each.name] = each
        self.lengthens(max((len(each.values) for each in self.growing), default=0))


def some_attributes(random: Random) -> dict[str, Any]:
    names = random.permutation(list(ATTRIBUTES))[: int(random.integers(0, 4))]
    return {str(name): ATTRIBUTES[str(name)] for name in names}


def some_variable(random: Random, model: Model, number: int, *, records: int | None) -> Variable:
    """A new variable; with as many records, if it grows."""
    kinds = KINDS_OF_DATA if model.version in (None, "NETCDF3_64BIT_DATA") else KINDS
    kind = str(random.choice(kinds))
    ndim = int(random.choice([0, 1, 1, 2, 2, 3]))
    shape = tuple(int(extent) for extent in random.integers(1, (1, 40, 9, 6)[ndim] + 1, ndim))
    # Dimensions of one extent are often shared, and now and then a variable's own.
    own = random.random() < 0.3
    dimensions = tuple(f"v{number}_{axis}" if own else f"d{extent}_{axis}" for axis, extent in enumerate(shape))
    if records is not None:
        shape, dimensions = (records, *shape), ("t", *dimensions)
    values = some_values(random, shape, kind, any_bits=True)
    fill = None if random.random() < 0.6 else np.dtype(kind).type(random.integers(0, 100))
    attributes = some_attributes(random)
    return Variable(f"v{number}", dimensions, values, attributes, fill, records is not None)


def some_model(random: Random) -> tuple[Model, list[list[Variable]]]:
    """A file, and which of its variables are written in one call after another."""
    model = Model(VERSIONS[int(random.integers(len(VERSIONS)))], some_attributes(random))
    calls: list[list[Variable]] = []
    for _ in range(int(random.integers(0, 3))):
        first = sum(map(len, calls))
        number = int(random.integers(1, 4))
        calls.append([some_variable(random, model, first + i, records=None) for i in range(number)])
    growing = int(random.integers(0, 4))
    if growing or not calls:
        records, first = int(random.integers(0, 4)), sum(map(len, calls))
        # Some fixed ones in the same call; and others may have more or fewer records.
        uneven = random.random() < 0.3
        kinds: list[int | None] = [int(random.integers(0, 4)) if uneven else records for _ in range(max(growing, 1))]
        kinds += [None] * int(random.integers(0, 2))
        calls.append([some_variable(random, model, first + i, records=each) for i, each in enumerate(kinds)])
    return model, calls


def fill_of(variable: Variable) -> Any:
    """What is read where nobody wrote."""
    return netCDF4.default_fillvals[variable.values.dtype.str[1:]] if variable.fill is None else variable.fill


class Program:
    """Calls on one file, which all ranks make alike."""

    def __init__(self, comm: Any, random: Random) -> None:
        self.comm = comm
        self.random = random

    def spread(self, shape: tuple[int, ...]) -> Spread:
        return some_spread(self.random, shape, self.comm.size)

    def parts(self, values: dict[str, NDArray[Any]]) -> tuple[dict[str, NDArray[Any]], dict[str, hs.Distribution], int]:
        """This rank's parts of some arrays, how they are held, and their halo."""
        spreads = {name: self.spread(each.shape) for name, each in values.items()}
        memory = some_memory(self.random, read_only=True)
        locals_ = {name: memory.hold(spreads[name].part(each, self.comm.rank)) for name, each in values.items()}
        return locals_, {name: spread.distribution() for name, spread in spreads.items()}, memory.halo

    def names(self, each: Variable) -> tuple[str, ...] | None:
        """Names of dimensions that the file keeps."""
        return each.dimensions

    def strategy(self) -> str | None:
        """One of those that can write parts of files that others have, too."""
        return STRATEGIES[int(self.random.integers(len(STRATEGIES)))]

    def write_new(self, file: Any, variables: list[Variable]) -> None:
        """Some new variables in one call, with fill values as attributes, or the one that all have as an option."""
        fills = {each.name: each.fill for each in variables}
        locals_, dists, halo = self.parts({each.name: each.values for each in variables})
        option = fills[variables[0].name] if len(variables) == 1 else None
        if option is not None:
            fills = {}
        attributes = {
            each.name: each.attributes | ({} if fills.get(each.name) is None else {"_FillValue": fills[each.name]})
            for each in variables
        }
        said = {each.name: (each.dimensions, locals_[each.name], attributes[each.name]) for each in variables}
        file.write(said, dists, halo=halo, fill_value=option)

    def append(self, file: Any, model: Model) -> None:
        """Some records of some variables, behind what the opening knows of each; the others get fill values."""
        by = int(self.random.integers(1, 3))
        named = [each for each in model.growing if self.random.random() < 0.8] or model.growing[:1]
        model.lengthens(max(each.rows + by for each in named))
        new: dict[str, NDArray[Any]] = {}
        for each in named:
            kind = each.values.dtype.str
            new[each.name] = some_values(self.random, (by, *each.values.shape[1:]), kind, any_bits=True)
            each.values[each.rows : each.rows + by] = new[each.name]
            each.rows += by
        locals_, dists, halo = self.parts(new)
        file.append(locals_, dists, halo=halo)

    def write_behind(self, file: Any, model: Model) -> None:
        """Rows of a variable behind its last one."""
        each = model.growing[int(self.random.integers(len(model.growing)))]
        first = len(each.values) + int(self.random.integers(0, 3))
        by = int(self.random.integers(1, 3))
        model.lengthens(first + by)
        new = some_values(self.random, (by, *each.values.shape[1:]), each.values.dtype.str, any_bits=True)
        each.values[first:] = new
        each.rows = first + by
        locals_, dists, halo = self.parts({each.name: new})
        file.write(each.name, locals_[each.name], dists[each.name], section=np.s_[first : first + by], halo=halo)

    def change(self, file: Any, model: Model) -> None:
        """Some appends, rows behind the last and sections."""
        for _ in range(int(self.random.integers(0, 3))):
            way = int(self.random.integers(4)) if model.growing else 0
            (self.update, self.append, self.append, self.write_behind)[way](file, model)

    def update(self, file: Any, model: Model) -> None:
        """A section of a variable, from another type in memory."""
        each = list(model.variables.values())[int(self.random.integers(len(model.variables)))]
        quads = some_section(self.random, each.values.shape)
        values = some_values(self.random, select(each.values, quads).shape, each.values.dtype.str, any_bits=True)
        replace(each.values, quads, values)
        locals_, dists, halo = self.parts({each.name: values})
        strategy = self.strategy()
        section = as_user_says(self.random, quads)
        file.write(each.name, locals_[each.name], dists[each.name], section=section, halo=halo, strategy=strategy)

    def check(self, file: Any, model: Model) -> None:
        """What we read, whole and in sections, spread otherwise."""
        assert sorted(file) == sorted(model.variables)
        assert_attributes(file.attrs, model.attributes, "the file")
        for name, each in model.variables.items():
            info = file[name]
            found = (info.shape, info.dimension_names)
            assert found == (each.values.shape, self.names(each)), (name, found, self.names(each))
            assert info.dtype.newbyteorder("=") == each.values.dtype
            assert_attributes({k: v for k, v in info.attrs.items() if k != "_FillValue"}, each.attributes, name)
            if self.random.random() < 0.5:
                quads = some_section(self.random, each.values.shape)
                expected, section = select(each.values, quads), as_user_says(self.random, quads)
            else:
                expected, section = each.values, None
            spread = self.spread(expected.shape)
            found = file.read(name, spread.distribution(), section=section, strategy=self.strategy())
            if spread.holds(self.comm.rank):
                same(found, spread.part(expected, self.comm.rank), name)


def assert_attributes(found: Any, expected: dict[str, Any], what: str) -> None:
    assert sorted(found) == sorted(expected), what
    for name, value in expected.items():
        assert np.array_equal(found[name], value), (what, name, found[name])


def check_by_others(path: Path, model: Model) -> None:
    """What netCDF4-python, SciPy and xarray read."""
    with netCDF4.Dataset(path) as data:
        data.set_auto_maskandscale(False)
        data.set_auto_chartostring(False)
        assert model.version in (None, data.data_model), data.data_model
        version = data.data_model
        assert_attributes(data.__dict__, model.attributes, "the file")
        assert sorted(data.variables) == sorted(model.variables)
        for name, each in model.variables.items():
            found = data[name]
            assert found.dimensions == each.dimensions
            same(native(found[...]), each.values, f"netCDF4: {name}")
            own = {key: value for key, value in found.__dict__.items() if key != "_FillValue"}
            assert_attributes(own, each.attributes, name)
            assert ("_FillValue" in found.__dict__) == (each.fill is not None)
    if version != "NETCDF3_64BIT_DATA":
        with scipy.io.netcdf_file(path, mmap=False) as data:
            for name, each in model.variables.items():
                same(native(data.variables[name][...]), each.values, f"scipy: {name}")
    with warnings.catch_warnings(action="ignore"), xr.open_dataset(path, engine="netcdf4", decode_cf=False) as data:
        for name, each in model.variables.items():
            same(native(data[name].values), each.values, f"xarray: {name}")


def native(values: Any) -> NDArray[Any]:
    array = np.asarray(values)
    return array.astype(array.dtype.newbyteorder("="))


def ours(comm: Any, path: Path, random: Random) -> None:
    """A file that we make, append to and change, as others read it."""
    program = Program(comm, random)
    model, calls = some_model(random)
    given = {"format": model.version or "netcdf3", "unlimited": "t", "attributes": model.attributes}
    if not any(each.grows for call in calls for each in call):
        del given["unlimited"]
    with hs.open(path, "w", comm=comm, durable=False, **given) as file:
        shown = False
        for call in calls:
            # One after another, and what was written before changes and grows.
            parts = [call] if random.random() < 0.5 else [[each] for each in call]
            for part in parts:
                program.write_new(file, part)
                model.adds(part)
                if random.random() < 0.3:
                    program.change(file, model)
                if random.random() < 0.1:
                    file.flush()
                    shown = True
        program.change(file, model)
        if comm.rank == 0:
            assert shown == path.exists(), "a new file is visible when it is closed or flushed"
    for _ in range(int(random.integers(1, 3))):
        model.opens()
        with hs.open(path, "r+", comm=comm, durable=False, format="netcdf3") as file:
            program.change(file, model)
            if random.random() < 0.5:
                records = int(random.integers(0, 6)) if model.growing else None
                new = [some_variable(random, model, len(model.variables), records=records)]
                program.write_new(file, new)
                model.adds(new)
                program.change(file, model)
            program.check(file, model)
    with hs.open(path, comm=comm, format="netcdf3") as file:
        program.check(file, model)
    if comm.rank == 0:
        check_by_others(path, model)


def write_by_other(path: Path, model: Model, tool: str) -> None:
    """The same file, as another tool makes it."""
    if tool == "scipy":
        version = 1 if model.version == "NETCDF3_CLASSIC" else 2
        made: Any = scipy.io.netcdf_file(path, "w", version=version)
    else:
        made = netCDF4.Dataset(path, "w", format=model.version)
    with made as data:
        for name, value in model.attributes.items():
            setattr(data, name, value)
        if model.growing:
            data.createDimension("t", None)
        for each in model.variables.values():
            for dimension, extent in zip(each.dimensions, each.values.shape, strict=True):
                if dimension not in data.dimensions:
                    data.createDimension(dimension, extent)
            if tool == "scipy":
                variable = data.createVariable(each.name, each.values.dtype, each.dimensions)
            else:
                variable = data.createVariable(each.name, each.values.dtype, each.dimensions, fill_value=each.fill)
                variable.set_auto_maskandscale(False)
            for name, value in each.attributes.items():
                setattr(variable, name, value)
        for each in model.variables.values():
            if each.values.size:
                data.variables[each.name][slice(None) if each.grows else ...] = each.values


def theirs(comm: Any, path: Path, random: Random) -> None:
    """A file that others make, as we read it, append to it and change it."""
    program = Program(comm, random)
    model, calls = some_model(random)
    tool = str(random.choice(["netCDF4", "scipy"]))
    model.version = model.version or "NETCDF3_64BIT_OFFSET"
    model.adds([each for call in calls for each in call])
    if any(not each.values.size or not each.values.ndim for each in model.variables.values()):
        # SciPy's files without records have no number of them, and variables without dimensions lie in others.
        tool = "netCDF4"
    allowed = KINDS_OF_DATA if model.version == "NETCDF3_64BIT_DATA" else KINDS
    if model.version == "NETCDF3_64BIT_DATA":
        tool = "netCDF4"
    for each in model.variables.values():
        each.attributes.pop("long name", None)
        if tool == "scipy":
            each.fill = None
            each.attributes.pop("empty", None)
        if each.values.dtype.str[1:] not in allowed:
            each.values = some_values(random, each.values.shape, "i2", any_bits=True)
            each.fill = None
    model.attributes.pop("long name", None)
    if tool == "scipy":
        model.attributes.pop("empty", None)
    if comm.rank == 0:
        write_by_other(path, model, tool)
    with hs.open(path, comm=comm, format="netcdf3") as file:
        program.check(file, model)
    model.opens()
    with hs.open(path, "r+", comm=comm, durable=False, format="netcdf3") as file:
        program.change(file, model)
        if random.random() < 0.5:
            new = [some_variable(random, model, len(model.variables), records=None)]
            program.write_new(file, new)
            model.adds(new)
        if model.growing:
            program.append(file, model)
        program.check(file, model)
    if comm.rank == 0:
        check_by_others(path, model)


def run(comm: Any, folder: Path, seed: int, numbers: Iterable[int]) -> int:
    """Cases of a seed; says how many."""
    done = 0
    for number in numbers:
        for way in (ours, theirs):
            try:
                way(comm, folder / f"{way.__name__}{number}.nc", np.random.default_rng([seed, number, comm.size]))
            except Exception as error:
                error.add_note(f"{way.__name__}, seed {seed}, case {number}, {comm.size} ranks")
                raise
            done += 1
    return done
