"""Zarr stores of version 2 and 3 that zarr-python, TensorStore, xarray and we change in turns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import numcodecs
import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec

import turns_changes as to
from attribute_cases import REFUSED, in_zarr, some_value
from turns_draw import Drawing
from turns_hdf5 import indices
from turns_model import Array, Group, Tree, chance, native, one_of, same, some_chunks, some_elements, some_shape
from turns_play import Game, same_attributes

ts = pytest.importorskip("tensorstore")

NUMBERS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", "?")
OTHERS = ("S4", "U3", "<M8[s]", "<m8[ns]", "O")
RECORD = np.dtype([("a", "<i4"), ("b", "<f8"), ("c", "S3")])
#: What others make of chunks, in version 2 and 3.
COMPRESSORS = {
    2: [
        *(None, numcodecs.Blosc("lz4"), numcodecs.Blosc("zstd", shuffle=2), numcodecs.Zlib(1), numcodecs.GZip(1)),
        *(numcodecs.Zstd(1), numcodecs.LZ4(), numcodecs.BZ2(1), numcodecs.LZMA()),
    ],
    3: [None, GzipCodec(level=1), ZstdCodec(), BloscCodec(cname="lz4"), [GzipCodec(level=1), Crc32cCodec()]],
}


class ZarrGame(Drawing, Game):
    """One store."""

    DEEP = False
    REFUSALS: ClassVar[dict[str, str]] = {
        "version 2": "is a store of Zarr v2, which can only be read",
        "codecs that are only read": "cannot be written|is only read",
        "text of variable length": "begins or ends within a chunk of texts|has texts of variable length",
    }
    KINDS = (
        *("new", "new", "new", "group", "write", "write", "write", "append", "append", "resize"),
        *("set", "set", "set", "drop", "rename", "delete"),
    )
    NOT_OURS = ()

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, seed)
        self.version: Any = 2 if seed % 3 == 2 else 3

    @property
    def path(self) -> Path:
        """Of the store."""
        return self.folder / "a.zarr"

    def make(self) -> None:
        """A store with nothing in it."""
        zarr.open_group(self.path, mode="w", zarr_format=self.version)

    def we_can_make(self) -> bool:
        """We do not write version 2."""
        return bool(self.version == 3)

    def owners(self) -> list[str]:
        """Others that may change the store."""
        return ["zarr-python"] * 4 + ["tensorstore", "xarray"]

    # ---- what is drawn ---------------------------------------------------------------------------------------------

    def some_array(self, side: str) -> Array:
        """A new array."""
        numbers = side in ("tensorstore", "xarray") or chance(self.random, 0.7)
        dtype = np.dtype(str(self.random.choice(NUMBERS if numbers else OTHERS)))
        if side == "xarray":
            dtype = np.dtype(str(self.random.choice(NUMBERS[:8])))
        elif not numbers and chance(self.random, 0.2):
            dtype = RECORD
        if dtype.kind == "O" and side == "hyperslab":
            dtype = np.dtype("f8")
        if self.version == 2 and numbers and side != "xarray" and chance(self.random, 0.3):
            dtype = dtype.newbyteorder(">")
        shape = some_shape(self.random)
        if side == "tensorstore" and self.version == 2 and dtype.kind == "c":
            dtype = np.dtype("f4")
        values = native(some_elements(self.random, dtype, shape))
        array = Array(values, dtype, self.some_attributes(side), fill=nothing(dtype, side), limits=(None,) * len(shape))
        if dtype.kind in "iuf" and chance(self.random, 0.5) and side != "xarray":
            array.fill, array.says_fill = values.dtype.type(self.random.integers(0, 100)), True
        if shape and self.version == 3 and side != "tensorstore" and chance(self.random, 0.5):
            array.dims = tuple(f"{name}{extent}" for name, extent in zip("xyz", shape, strict=False))
        if side == "xarray":
            array.dims = tuple(f"{name}{extent}" for name, extent in zip("xyz", shape, strict=False)) or None
        array.how = self.storage(dtype, shape, side)
        return array

    def storage(self, dtype: np.dtype[Any], shape: tuple[int, ...], side: str) -> dict[str, Any]:
        """Chunks, shards and codecs, in the words of zarr-python or ours."""
        how: dict[str, Any] = {"chunks": some_chunks(self.random, shape)} if shape else {}
        if side in ("xarray", "tensorstore"):
            return {**how, "compressors": None}
        if shape and self.version == 3 and dtype.names is None and chance(self.random, 0.3):
            # zarr-python 3.1 reads no shards of records.
            how["shards"] = tuple(each * int(self.random.integers(1, 3)) for each in how["chunks"])
        if side == "hyperslab":
            if chance(self.random, 0.4):
                how["compression"] = one_of(self.random, ["gzip", "zstd"])
            if chance(self.random, 0.3):
                how["checksum"] = False
            return how
        how["compressors"] = one_of(self.random, COMPRESSORS[self.version])
        if self.version == 2:
            how["order"] = one_of(self.random, "CF")
            if dtype.kind in "iu" and chance(self.random, 0.2):
                how["filters"] = [numcodecs.Delta(dtype)]
        elif len(shape) > 1 and dtype.kind != "O" and chance(self.random, 0.2):
            # Texts of variable length that it has turned itself zarr-python 3.1 gives back in another order.
            how["filters"] = [TransposeCodec(order=tuple(map(int, self.random.permutation(len(shape)))))]
        if not shape:
            how["chunks"] = ()
        return how

    def some_attribute(self, side: str) -> Any:
        """A value that JSON has."""
        while True:
            value = in_zarr(some_value(self.random))
            plain = value is None or isinstance(value, (str, bool, int))
            if value is not REFUSED and (side != "xarray" or (plain and value is not None)):
                return value

    def may_write(self, array: Array, side: str) -> bool:
        """TensorStore has numbers, and not all codecs."""
        return side != "tensorstore" or by_tensorstore_too(array)

    def some_change(self, tree: Tree, side: str) -> to.Change | None:
        """What TensorStore and xarray can make is little."""
        change = super().some_change(tree, side)
        if side == "xarray" and (not isinstance(change, to.New) or "/" in change.path or tree.root.attributes):
            # It would replace the attributes of the root.
            return None
        if side == "tensorstore" and not isinstance(change, to.New | to.Write | to.Resize):
            return None
        # zarr-python 3 cannot rename.
        return None if isinstance(change, to.Rename) and side != "hyperslab" else change

    def some_new(self, tree: Tree, side: str) -> to.Change | None:
        """A new array, to which xarray writes always."""
        change: Any = super().some_new(tree, side)
        return None if change is None or (side == "xarray" and not change.written) else change

    def some_resize(self, tree: Tree, side: str) -> to.Change | None:
        """Another shape.

        What is cut off stays in the last chunks. It comes back when others make the array larger, but not when we do.
        """
        change: Any = super().some_resize(tree, side)
        if change is None or side == "hyperslab":
            return change
        array = tree.array(change.path)
        if array.was_cut:
            return None
        grid = array.how.get("shards") or array.how.get("chunks") or array.values.shape
        cut = zip(change.shape, array.values.shape, grid, strict=True)
        return None if any(new < old and new % each for new, old, each in cut) else change

    def some_append(self, tree: Tree, side: str) -> to.Change | None:
        """Rows; what was cut off would come back beside them where others append."""
        change: Any = super().some_append(tree, side)
        is_cut = change is not None and tree.array(change.path).was_cut
        return None if is_cut and side != "hyperslab" else change

    # ---- the owners' side ------------------------------------------------------------------------------------------

    def carry_out(self, side: str, changes: list[to.Change]) -> None:
        """One after another."""
        tree = self.tree
        for change in changes:
            if side == "xarray":
                assert isinstance(change, to.New)
                by_xarray(self.path, change, self.version)
            elif side == "tensorstore":
                by_tensorstore(self.path, change, self.version)
            else:
                by_zarr(zarr.open_group(self.path, mode="r+", zarr_format=self.version, use_consolidated=False), change)
        assert tree is self.tree

    def check(self) -> None:
        """What zarr-python reads, and TensorStore of numbers."""
        root = zarr.open_group(self.path, mode="r", zarr_format=self.version, use_consolidated=False)
        check_group(root, self.tree.root, self.version)
        for path, array in self.tree.arrays().items():
            if by_tensorstore_too(array):
                found = opened(self.path, path, self.version).read().result()
                same(native(found), array.values, f"TensorStore: '{path}'")


def nothing(dtype: np.dtype[Any], side: str) -> Any:
    """What elements are that were never written, by who makes the array."""
    if dtype.kind in "mM":
        return np.array("NaT", dtype)[()]
    if dtype.names is not None and side != "hyperslab":
        # zarr-python makes a text of the number 0.
        return np.array((0, 0.0, b"0"), dtype)[()]
    return "" if dtype.kind == "O" else np.zeros((), dtype)[()]


def by_tensorstore_too(array: Array) -> bool:
    """Whether TensorStore reads it: not all codecs, and no NaN in metadata."""
    try:
        json.dumps(array.attributes, allow_nan=False)
    except ValueError:
        return False
    compressor = array.how.get("compressors")
    codecs = not isinstance(compressor, (numcodecs.LZ4, numcodecs.LZMA)) and "filters" not in array.how
    return array.stored.kind in "iufb" and codecs


def spec(store: Path, path: str, version: int) -> dict[str, Any]:
    """What TensorStore wants to know."""
    return {"driver": "zarr" if version == 2 else "zarr3", "kvstore": {"driver": "file", "path": f"{store}/{path}/"}}


def opened(store: Path, path: str, version: int) -> Any:
    """An array as TensorStore has it."""
    return ts.open(spec(store, path, version), open=True).result()


def by_tensorstore(store: Path, change: to.Change, version: int) -> None:
    """A change, as TensorStore makes it."""
    match change:
        case to.New():
            new_by_tensorstore(store, change, version)
        case to.Write():
            opened(store, change.path, version)[indices(change.section)].write(change.values).result()
        case to.Resize():
            opened(store, change.path, version).resize(exclusive_max=change.shape).result()
        case _:
            raise NotImplementedError(change)


def new_by_tensorstore(store: Path, change: to.New, version: int) -> None:
    """A new array; attributes are zarr-python's."""
    array = change.array
    chunks = array.how.get("chunks", ())
    if version == 2:
        metadata: dict[str, Any] = {"shape": array.values.shape, "chunks": chunks, "dtype": array.stored.str}
        metadata["compressor"] = None
    else:
        grid = {"name": "regular", "configuration": {"chunk_shape": chunks}}
        metadata = {"shape": array.values.shape, "chunk_grid": grid, "data_type": array.stored.name}
    # Without a value it is one that zarr-python does not have.
    metadata["fill_value"] = np.asarray(array.fill).tolist() if array.stored.kind != "c" else [0.0, 0.0]
    made = ts.open({**spec(store, change.path, version), "metadata": metadata}, create=True).result()
    if change.written:
        made.write(array.values).result()
    zarr.open_array(store / change.path, mode="r+", zarr_format=version).attrs.update(array.attributes)


def by_zarr(root: Any, change: to.Change) -> None:
    """A change, as zarr-python makes it."""
    match change:
        case to.New():
            new_by_zarr(root, change)
        case to.NewGroup():
            root.create_group(change.path, attributes=change.attributes)
        case to.Write():
            root[change.path][indices(change.section)] = change.values
        case to.Append():
            root[change.path].append(change.values, axis=change.axis)
        case to.Resize():
            root[change.path].resize(change.shape)
        case to.SetAttributes():
            (root[change.path] if change.path else root).attrs.update(change.values)
        case to.DropAttribute():
            del (root[change.path] if change.path else root).attrs[change.name]
        case to.Delete():
            del root[change.path]
        case _:
            raise NotImplementedError(change)


def new_by_zarr(root: Any, change: to.New) -> None:
    """A new array."""
    array, how = change.array, dict(change.array.how)
    if array.dims is not None:
        how["dimension_names"] = array.dims
    if array.says_fill:
        how["fill_value"] = array.fill
    dtype: Any = str if array.stored.kind == "O" else array.stored
    how.setdefault("compressors", None)
    made = root.create_array(change.path, shape=array.values.shape, dtype=dtype, attributes=array.attributes, **how)
    if change.written:
        made[...] = array.values


def by_xarray(store: Path, change: to.New, version: Any) -> None:
    """A new array in the root, with its dimensions."""
    array = change.array
    named = xr.Dataset({change.path: (array.dims or (), array.values, dict(array.attributes))})
    encoding: dict[str, Any] = {"compressors": None}
    if array.how.get("chunks"):
        encoding["chunks"] = array.how["chunks"]
    named.to_zarr(store, mode="a", zarr_format=version, consolidated=False, encoding={change.path: encoding})


def check_group(found: Any, expected: Group, version: int) -> None:
    """Names and attributes of a group, and what is in it."""
    what = f"zarr-python: group '{found.path}'"
    same_attributes(dict(found.attrs), expected.attributes, what)
    assert sorted(found) == sorted(expected.members), f"{what}: {sorted(found)}, expected {sorted(expected.members)}"
    for name, member in expected.members.items():
        if isinstance(member, Array):
            check_array(found[name], member)
        else:
            assert isinstance(member, Group)
            check_group(found[name], member, version)


def check_array(found: Any, expected: Array) -> None:
    """All that an array is."""
    what = f"zarr-python: '{found.path}'"
    values = np.asarray(found[...], None if found.ndim else expected.values.dtype)
    same(values.astype(object) if expected.stored.kind == "O" else native(values), expected.values, what)
    dims = getattr(found.metadata, "dimension_names", None)
    assert dims is None or (dims or None) == expected.dims, f"{what}: dimensions {dims}, expected {expected.dims}"
    if expected.says_fill:
        same(
            np.asarray(found.fill_value, expected.values.dtype), np.asarray(expected.fill, expected.values.dtype), what
        )
    attributes = {name: value for name, value in found.attrs.items() if name != "_ARRAY_DIMENSIONS"}
    same_attributes(attributes, expected.attributes, what)
