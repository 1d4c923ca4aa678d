"""netCDF files, classic and netCDF-4, that netCDF4-python, SciPy, h5netcdf, xarray and we change in turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import h5netcdf
import netCDF4
import numpy as np
import scipy.io

import turns_changes as to
from attribute_cases import REFUSED, in_netcdf, some_value
from turns_draw import Drawing
from turns_model import Array, Attributes, Tree, chance, native, one_of, some_chunks, some_elements
from turns_netcdf_owners import by_h5netcdf, by_netcdf4, by_scipy, by_xarray, check_dims, check_group
from turns_play import Game

SMALL = ("i1", "i2", "i4", "f4", "f8")
WIDE = (*SMALL, "u1", "u2", "u4", "i8", "u8")
VERSIONS = ("NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA", "NETCDF4", "NETCDF4", "NETCDF4_CLASSIC")
RECORD = np.dtype([("a", "<i8"), ("b", "<f4"), ("c", "<i2", (2,))])


class NetcdfGame(Drawing, Game):
    """One file of netCDF."""

    REFUSALS: ClassVar[dict[str, str]] = {
        "text of variable length": "has texts of variable length, which are not written so",
        "late allocation": "has no place in the file",
        "coordinates of several dimensions": "one dimension for a variable that is called like a dimension",
        "names of netCDF-4": "in a netCDF-4 file that exists is not supported",
    }
    KINDS = (
        *("new", "new", "new", "group", "write", "write", "write", "append", "append", "append"),
        *("set", "set", "set", "drop", "rename", "dims", "redim"),
    )
    NOT_OURS = ("dims", "redim")

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, seed)
        self.version: Any = VERSIONS[seed % len(VERSIONS)]
        self.hdf5 = self.version.startswith("NETCDF4")
        #: What the opening under way has seen: lengths of dimensions, and how many rows it has written of arrays.
        self.seen: dict[str, int] = {}
        self.rows: dict[str, int] = {}
        #: Paths and names of the attributes that it has set.
        self.set_now: set[tuple[str, str]] = set()

    @property
    def path(self) -> Path:
        """Of the file."""
        return self.folder / "a.nc"

    def make(self) -> None:
        """A file of a version, with some dimensions."""
        dims = to.NewDims({"t": None} if chance(self.random, 0.7) else {"x": 3})
        with netCDF4.Dataset(self.path, "w", format=self.version) as data:
            by_netcdf4(data, dims)
        dims.apply(self.tree)

    def made_as(self, changes: list[to.Change]) -> dict[str, Any]:
        """With the dimensions that will be unlimited."""
        dims = [each for new in changes if isinstance(new, to.New) for each in new.dims.items()]
        unlimited = [name for name, most in dims if most is None]
        of = unlimited if self.hdf5 else next(iter(unlimited), None)
        return {"format": self.version, "unlimited": of}

    def owners(self) -> list[str]:
        """Others that may change the file as it is."""
        tools = ["netCDF4", "netCDF4"]
        if self.version == "NETCDF4":
            tools.append("h5netcdf")
        arrays = self.tree.arrays().values()
        records = sum(
            each.dims is not None and each.dims[:1] != () and each.dims[0] in self.tree.unlimited for each in arrays
        )
        # SciPy's files without records have no number of them, a single variable of records has other gaps, variables
        # without dimensions lie in others, and a character of zero takes no room in a record when it writes it again.
        plain = all(each.values.size and each.dims and each.stored.kind != "S" for each in arrays)
        if self.version in VERSIONS[:2] and records != 1 and plain:
            tools.append("scipy")
        return tools * 3 + ["xarray"]

    def planned(self, side: str, count: int) -> list[to.Change]:
        """As an opening finds it."""
        self.seen, self.rows, self.set_now = dict(self.tree.lengths), {}, set()
        return super().planned(side, count)

    # ---- what is drawn ---------------------------------------------------------------------------------------------

    def some_name(self) -> str:
        """A name of something, now and then that of a dimension."""
        return str(one_of(self.random, "txyz")) if chance(self.random, 0.2) else super().some_name()

    def numbers(self) -> tuple[str, ...]:
        """Types of numbers that the version has."""
        return WIDE if self.version in ("NETCDF3_64BIT_DATA", "NETCDF4") else SMALL

    def dims_of_new(self, tree: Tree, side: str) -> dict[str, int | None]:
        """Dimensions of a new array, some of them new; at most the first is unlimited."""
        dims: dict[str, int | None] = {}
        # Which are unlimited we are told when we make a file.
        more = (self.version == "NETCDF4" or not tree.unlimited) and (side != "hyperslab" or self.makes)
        for axis in range(int(one_of(self.random, [0, 1, 1, 2, 2, 3]))):
            fits = [name for name in tree.lengths if name not in dims and (axis == 0 or name not in tree.unlimited)]
            if fits and chance(self.random, 0.7):
                name = one_of(self.random, fits)
                dims[name] = None if name in tree.unlimited else tree.lengths[name]
                continue
            name = f"{one_of(self.random, ['x', 'y', 'z', 'länge'])}{int(self.random.integers(9))}"
            if name not in tree.lengths and name not in dims:
                dims[name] = int(self.random.integers(1, 6))
                if axis == 0 and more and chance(self.random, 0.3):
                    dims[name] = None
        return dims

    def some_new(self, tree: Tree, side: str) -> to.Change | None:
        """A new variable."""
        path, dims = self.free(tree), self.dims_of_new(tree, side)
        if path is None:
            return None
        written = chance(self.random, 0.8) or side not in ("netCDF4", "hyperslab")
        shape = tuple(tree.lengths.get(name, length or 0) for name, length in dims.items())
        if written and side in ("netCDF4", "hyperslab"):
            shape = tuple(int(self.random.integers(0, 4)) if length is None else length for length in dims.values())
        elif None in dims.values() and side in ("h5netcdf", "scipy"):
            # h5netcdf says no fill value to HDF5, and netCDF-C means zero by that or its own default, by who wrote
            # last. SciPy takes several variables of records for one, or the reverse, when it reads its own file.
            return None
        if side == "xarray" and "/" in path:
            # It makes dimensions in the group that are there above.
            return None
        if side == "scipy" and (not shape or 0 in shape or not all(map(str.isascii, [path, *dims]))):
            return None
        array = self.some_array(side, dims, shape)
        written = written or array.stored.names is not None
        if not written:
            array.values[...] = array.fill
        new = {name: length for name, length in dims.items() if name not in tree.lengths}
        if new and side == "hyperslab" and "/" in path:
            # Dimensions that we make are those of the group of the variable, and here all are those of the file.
            return None
        if shape and side == "hyperslab":
            self.rows[path] = shape[0]
        return to.New(path, array, written, new)

    def some_array(self, side: str, dims: Any = None, shape: tuple[int, ...] = ()) -> Array:
        """A new array."""
        dtype = np.dtype(str(self.random.choice([*self.numbers(), "S1"])))
        if side == "xarray":
            # It makes a dimension for the letters of a text, and has no larger integers in classic files.
            dtype = np.dtype(str(self.random.choice(SMALL)))
        if side == "h5netcdf":
            dtype = np.dtype(str(self.random.choice(WIDE)))
        if self.version == "NETCDF4" and side == "netCDF4" and chance(self.random, 0.2):
            dtype = np.dtype(one_of(self.random, [RECORD, "O"]))
        elif self.hdf5 and side == "netCDF4" and chance(self.random, 0.1) and dtype.kind != "S":
            dtype = dtype.newbyteorder(">")
        values = native(some_elements(self.random, dtype, shape))
        if side == "xarray" and dtype.kind == "f":
            # A NaN is to it what is missing.
            values = np.asarray(np.nan_to_num(values))
        array = Array(
            values, dtype, self.some_attributes(side), tuple(dims), fill_of(dtype), limits=(None,) * len(shape)
        )
        if dtype.kind in "iuf" and chance(self.random, 0.3):
            array.fill, array.says_fill = values.dtype.type(self.random.integers(0, 100)), True
            array.attributes["_FillValue"] = array.fill
        if self.hdf5 and side in ("netCDF4", "h5netcdf") and shape and chance(self.random, 0.5):
            array.how = self.in_chunks(dtype, dims, shape)
        return array

    def in_chunks(self, dtype: np.dtype[Any], dims: dict[str, int | None], shape: tuple[int, ...]) -> dict[str, Any]:
        """Chunks and filters, as netCDF4-python calls them."""
        chunks = some_chunks(self.random, shape)
        fixed = zip(chunks, dims.values(), strict=True)
        how: dict[str, Any] = {"chunksizes": tuple(each if most is None else min(each, most) for each, most in fixed)}
        if dtype.kind != "O":
            how |= {"zlib": chance(self.random, 0.4), "shuffle": chance(self.random, 0.4)}
            how["fletcher32"] = chance(self.random, 0.4)
        return how

    def some_attributes(self, side: str, most: int = 3) -> Attributes:
        """Attributes; SciPy's names are Latin-1, which are no names to the others."""
        drawn = super().some_attributes(side, most)
        return {name: value for name, value in drawn.items() if side != "scipy" or name.isascii()}

    def some_attribute(self, side: str) -> Any:
        """A value that the version has."""
        while True:
            value = in_netcdf(some_value(self.random), 4 if self.version == "NETCDF4" else 3)
            if value is REFUSED or isinstance(value, bytes):
                continue
            if isinstance(value, (np.ndarray, np.generic)) and value.dtype.str[1:] not in self.numbers():
                continue
            if side == "scipy" and not (isinstance(value, str) and value.isascii() and value):
                continue
            # xarray writes texts as lists, and empty ones not at all; h5netcdf has its own way with empty ones.
            if side in ("xarray", "h5netcdf") and not (isinstance(value, str) and value.strip()):
                continue
            return value

    def some_group(self, tree: Tree, side: str) -> to.Change | None:
        """Groups are netCDF-4's."""
        change: Any = super().some_group(tree, side) if self.version == "NETCDF4" and side == "netCDF4" else None
        # Dimensions without a variable are datasets, whose names netCDF-C forgets here.
        return None if change is None or change.path.rpartition("/")[2] in {*tree.lengths, *"txyz"} else change

    def some_set(self, tree: Tree, side: str) -> to.Change | None:
        """Attributes, but for fill values, which never change."""
        change: Any = super().some_set(tree, side)
        if side == "xarray" or change is None:
            return None
        change.values.pop("_FillValue", None)
        if side == "scipy" and not all(map(str.isascii, change.values)):
            return None
        if side == "netCDF4":
            self.set_now |= {(change.path, name) for name in change.values}
        return change if change.values else None

    def some_drop(self, tree: Tree, side: str) -> to.Change | None:
        """An attribute goes, but no fill value."""
        change: Any = super().some_drop(tree, side)
        if change is not None and self.hdf5 and (change.path, change.name) in self.set_now:
            # netCDF-C keeps in the file what was set and goes in one opening.
            return None
        return None if change is None or change.name == "_FillValue" or side in ("xarray", "scipy") else change

    def some_rename(self, tree: Tree, side: str) -> to.Change | None:
        """Another name in the same group.

        netCDF-C cannot rename coordinate variables of netCDF-4, nor in files that h5netcdf has changed, nor where a
        variable is called like a dimension.
        """
        alike = self.hdf5 and not tree.lengths.keys().isdisjoint(tree.arrays())
        can = self.version != "NETCDF4" and not alike
        arrays = tree.arrays() if can or side == "hyperslab" else {}
        if side not in ("netCDF4", "hyperslab") or not arrays:
            return None
        old = one_of(self.random, arrays)
        within, _, name = old.rpartition("/")
        new = self.some_name()
        if new in tree.group(within).members or (self.hdf5 and {name, new} & {*tree.lengths, *"txyz"}):
            return None
        path = f"{within}/{new}".removeprefix("/")
        if side == "hyperslab" and old in self.rows:
            self.rows[path] = self.rows.pop(old)
        return to.Rename(old, path)

    def some_dims(self, tree: Tree, side: str) -> to.Change | None:
        """A dimension that no variable has yet."""
        if side != "netCDF4":
            return None
        name = f"d{int(self.random.integers(99))}"
        several = self.version == "NETCDF4"
        length = None if several and chance(self.random, 0.4) else int(self.random.integers(1, 5))
        return None if name in tree.lengths else to.NewDims({name: length})

    def some_redim(self, tree: Tree, side: str) -> to.Change | None:
        """A dimension gets another name; netCDF-C cannot always do that in netCDF-4."""
        if self.hdf5 or side != "netCDF4" or not tree.lengths:
            return None
        old, new = one_of(self.random, tree.lengths), f"r{int(self.random.integers(99))}"
        return None if new in tree.lengths else to.RenameDim(old, new)

    def some_append(self, tree: Tree, side: str) -> to.Change | None:
        """Records of a variable, behind what the opening knows of it."""
        known = [(path, each) for path, each in tree.arrays().items() if each.dims and each.dims[0] in tree.unlimited]
        if not known or side not in ("netCDF4", "hyperslab"):
            return None
        path, array = one_of(self.random, known)
        behind = array.values.shape[0]
        if side == "hyperslab":
            behind = self.rows.get(path, self.seen.get(str(array.dims and array.dims[0]), 0))
        values = self.elements(array, (int(self.random.integers(1, 4)), *array.values.shape[1:]))
        if behind > 20:
            return None
        self.rows[path] = behind + len(values)
        return to.Append(path, 0, values, behind)

    def some_write(self, tree: Tree, side: str) -> to.Change | None:
        """A section, now and then behind the last record."""
        change: Any = super().some_write(tree, side)
        if change is None or side == "xarray":
            return None
        array = tree.array(change.path)
        dim = array.dims[0] if array.dims else None
        if (
            dim not in tree.unlimited
            or side in ("scipy", "h5netcdf")
            or chance(self.random, 0.6)
            or array.values.shape[0] > 20
        ):
            return change
        _, stride, count, block = change.section[0]
        start = int(self.random.integers(0, array.values.shape[0] + 3))
        reach = start + (max(count, 1) - 1) * stride + block
        section = ((start, stride, max(count, 1), block), *change.section[1:])
        shape = (max(count, 1) * block, *change.values.shape[1:])
        if side == "hyperslab":
            self.rows[change.path] = max(reach, self.rows.get(change.path, self.seen.get(str(dim), 0)))
        return to.Write(change.path, section, self.elements(array, shape))

    def may_write(self, array: Array, side: str) -> bool:
        """SciPy and h5netcdf write what has elements, the latter nothing that may be shorter than its dimension.

        h5py makes of a character a text of no length, and its zero.
        """
        fixed = not any(name in self.tree.unlimited for name in array.dims or ())
        whole = array.values.size and array.stored.kind not in "OS" and (fixed or side == "scipy")
        return bool(side not in ("scipy", "h5netcdf") or whole)

    # ---- the owners' side ------------------------------------------------------------------------------------------

    def carry_out(self, side: str, changes: list[to.Change]) -> None:
        """In one opening, but for xarray, which opens the file for each array."""
        if side == "xarray":
            for change in changes:
                by_xarray(self.path, change, self.tree)
        elif side == "scipy":
            with scipy.io.netcdf_file(self.path, "a", mmap=False) as data:
                for change in changes:
                    by_scipy(data, change)
        elif side == "h5netcdf":
            with h5netcdf.File(self.path, "r+") as data:
                for change in changes:
                    by_h5netcdf(data, change)
        else:
            with netCDF4.Dataset(self.path, "r+") as data:
                for change in changes:
                    by_netcdf4(data, change)

    def check(self) -> None:
        """What netCDF4-python and, of what they can read, the others read."""
        with netCDF4.Dataset(self.path) as data:
            assert data.data_model == self.version
            check_dims(data, self.tree)
            check_group(data, self.tree.root, self.tree)


def fill_of(dtype: np.dtype[Any]) -> Any:
    """What elements are that were never written."""
    if dtype.names is not None:
        return np.zeros((), dtype)[()]
    return "" if dtype.kind == "O" else b"\0" if dtype.kind == "S" else netCDF4.default_fillvals[dtype.str[1:]]
