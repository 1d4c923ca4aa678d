"""How netCDF4-python, SciPy, h5netcdf and xarray make changes of netCDF files, and what the first reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import turns_changes as to
from turns_hdf5 import indices
from turns_model import Array, Group, Tree, native, same
from turns_play import same_attributes


def by_netcdf4(data: Any, change: to.Change) -> None:
    """A change, as netCDF4-python makes it."""
    match change:
        case to.New():
            new_by_netcdf4(data, change)
        case to.NewGroup():
            data.createGroup("/" + change.path).setncatts(change.attributes)
        case to.NewDims():
            for name, length in change.lengths.items():
                data.createDimension(name, length)
        case to.Write():
            bare(data["/" + change.path])[indices(change.section) or ...] = change.values
        case to.Append():
            assert change.behind is not None
            bare(data["/" + change.path])[change.behind : change.behind + len(change.values)] = change.values
        case to.SetAttributes():
            node_of(data, change.path).setncatts(change.values)
        case to.DropAttribute():
            node_of(data, change.path).delncattr(change.name)
        case to.Rename():
            within, _, name = change.old.rpartition("/")
            node_of(data, within).renameVariable(name, change.new.rpartition("/")[2])
        case to.RenameDim():
            data.renameDimension(change.old, change.new)
        case _:
            raise NotImplementedError(change)


def node_of(data: Any, path: str) -> Any:
    """The variable or group of a path."""
    return data["/" + path] if path else data


def bare(variable: Any) -> Any:
    """A variable whose elements come and go as they are."""
    variable.set_auto_maskandscale(False)
    variable.set_auto_chartostring(False)
    return variable


def new_by_netcdf4(data: Any, change: to.New) -> None:
    """A new variable, with the dimensions that are not there."""
    by_netcdf4(data, to.NewDims(change.dims))
    array = change.array
    within, _, name = change.path.rpartition("/")
    group = node_of(data, within)
    dtype: Any = str if array.stored.kind == "O" else array.stored
    if array.stored.names is not None:
        known = group.cmptypes.get("record")
        dtype = known if known is not None else group.createCompoundType(array.stored, "record")
    endian = "big" if array.stored.byteorder == ">" else "native"
    fill = array.fill if array.says_fill else None
    variable = bare(group.createVariable(name, dtype, array.dims, fill_value=fill, endian=endian, **array.how))
    variable.setncatts({key: value for key, value in array.attributes.items() if key != "_FillValue"})
    if change.written and array.values.size:
        everything = tuple(slice(0, extent) for extent in array.values.shape)
        variable[everything or ...] = array.values if array.values.ndim else array.values[()]


def by_scipy(data: Any, change: to.Change) -> None:
    """A change, as SciPy makes it."""
    match change:
        case to.New():
            array = change.array
            for name, length in change.dims.items():
                data.createDimension(name, length)
            variable = data.createVariable(change.path, array.stored, array.dims)
            variable[tuple(map(slice, array.values.shape))] = array.values
            for name, value in array.attributes.items():
                setattr(variable, name, value)
        case to.Write():
            data.variables[latin(change.path)][indices(change.section)] = change.values
        case to.SetAttributes():
            for name, value in change.values.items():
                setattr(data.variables[latin(change.path)] if change.path else data, name, value)
        case _:
            raise NotImplementedError(change)


def latin(name: str) -> str:
    """A name as SciPy reads it, which takes all for Latin-1."""
    return name.encode().decode("latin-1")


def by_h5netcdf(data: Any, change: to.Change) -> None:
    """A change, as h5netcdf makes it."""
    match change:
        case to.New():
            array, how = change.array, {**change.array.how}
            for name, length in change.dims.items():
                data.dimensions[name] = length
            fill = array.fill if array.says_fill else None
            if "chunksizes" in how:
                how = {
                    "chunks": how.pop("chunksizes"),
                    "compression": "gzip" if how.pop("zlib", False) else None,
                    **how,
                }
            variable = data.create_variable("/" + change.path, array.dims, array.stored, fillvalue=fill, **how)
            if array.values.size:
                variable[...] = array.values
            for name, value in array.attributes.items():
                if name != "_FillValue":
                    variable.attrs[name] = value
        case to.Write():
            data["/" + change.path][indices(change.section)] = change.values
        case to.SetAttributes():
            node = data["/" + change.path] if change.path else data
            for name, value in change.values.items():
                node.attrs[name] = value
        case to.DropAttribute():
            del (data["/" + change.path] if change.path else data).attrs[change.name]
        case _:
            raise NotImplementedError(change)


def by_xarray(path: Path, change: to.Change, tree: Tree) -> None:
    """A new array, which is all that xarray adds to a file; attributes of the file go with it."""
    assert isinstance(change, to.New)
    array = change.array
    name, attributes = change.path, dict(array.attributes)
    encoding = {"_FillValue": attributes.pop("_FillValue", None), "dtype": array.stored}
    if name in (array.dims or ()):
        # Those are indices, which xarray would look into.
        variable: Any = xr.Dataset(coords={name: (array.dims, array.values, attributes)})
    else:
        variable = xr.Dataset({name: (array.dims, array.values, attributes)})
    variable[name].encoding = encoding
    fresh = [dim for dim, length in change.dims.items() if length is None]
    known = [dim for dim in array.dims or () if dim in tree.unlimited]
    variable.to_netcdf(path, "a", engine="netcdf4", unlimited_dims=[*fresh, *known])


def check_dims(data: Any, tree: Tree) -> None:
    """Names, lengths and kinds of dimensions."""
    found = {name: (len(dim), dim.isunlimited()) for name, dim in data.dimensions.items()}
    expected = {name: (length, name in tree.unlimited) for name, length in tree.lengths.items()}
    assert found == expected, f"netCDF4: dimensions {found}, expected {expected}"


def check_group(data: Any, expected: Group, tree: Tree) -> None:
    """Variables, groups and attributes of a group."""
    what = f"netCDF4: group '{data.path}'"
    same_attributes({name: data.getncattr(name) for name in data.ncattrs()}, expected.attributes, what)
    members = {*data.variables, *data.groups}
    assert sorted(members) == sorted(expected.members), f"{what}: {members}, expected {sorted(expected.members)}"
    for name, member in expected.members.items():
        if isinstance(member, Array):
            check_variable(data.variables[name], member, f"netCDF4: '{data.path}/{name}'")
        else:
            assert isinstance(member, Group)
            check_group(data.groups[name], member, tree)


def check_variable(found: Any, expected: Array, what: str) -> None:
    """All that a variable is."""
    assert found.dimensions == expected.dims, f"{what}: dimensions {found.dimensions}, expected {expected.dims}"
    values = np.asarray(bare(found)[...], expected.values.dtype if expected.stored.kind == "O" else None)
    same(native(values), expected.values, what)
    attributes = {name: found.getncattr(name) for name in found.ncattrs()}
    same_attributes(attributes, expected.attributes, what)
