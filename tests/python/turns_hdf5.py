"""HDF5 files that h5py and we change in turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import h5py
import hyperslab as hs
import numpy as np
from numpy.typing import NDArray

import turns_changes as to
from attribute_cases import REFUSED, in_hdf5, some_value
from hdf5_cases import LIBVERS
from turns_draw import Drawing
from turns_model import (
    Array,
    Attributes,
    Group,
    Soft,
    Tree,
    chance,
    native,
    one_of,
    same,
    some_chunks,
    some_elements,
    some_shape,
)
from turns_play import Game, same_attributes

NUMBERS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
RECORD = np.dtype([("a", "<i4"), ("größe", "<f8", (2,)), ("s", "S3"), ("in", [("x", "<u2"), ("y", "?")])])
ENUM = h5py.enum_dtype({"OFF": 0, "ON": 1, "ODD": -7}, "i2")
TEXT = h5py.string_dtype()
ASCII = h5py.string_dtype("ascii")


class Hdf5Game(Drawing, Game):
    """One file of h5py."""

    HAS_ALIASES = True
    REFUSALS: ClassVar[dict[str, str]] = {
        "append along another axis": "arrays of a file cannot grow along dimension",
        "shrinking": "hint: .*h5py makes one smaller, on one rank",
        "filters that are only read": "expected filters that are written here, found lzf",
        "user block": "cannot change HDF5 file .*a user block",
        "soft link": "expected a hard link .*, found a soft link",
        "compact": "lies in the header of its dataset",
        "late allocation": "has no place in the file",
        "text of variable length": "has texts of variable length, which are not|texts of .* are expected, found",
    }

    @property
    def path(self) -> Path:
        """Of the file."""
        return self.folder / "a.h5"

    def make(self) -> None:
        """A file of any version, with or without order of members, behind a block of the user's own or not."""
        options: dict[str, Any] = {"libver": one_of(self.random, LIBVERS), "track_order": chance(self.random, 0.3)}
        if chance(self.random, 0.1):
            options["userblock_size"] = 512
        h5py.File(self.path, "w", **options).close()

    def owners(self) -> list[str]:
        """Others that may change the file."""
        return ["h5py"]

    # ---- what is drawn ---------------------------------------------------------------------------------------------

    def some_dtype(self, side: str) -> np.dtype[Any]:
        """A type that a side can store; text of variable length and enumerations are h5py's."""
        dtype = np.dtype(str(self.random.choice(NUMBERS)))
        if chance(self.random, 0.2):
            dtype = dtype.newbyteorder(">")
        others: list[Any] = [bool, "S5", "S1", RECORD, "V4"]
        others += [] if side == "hyperslab" else [ENUM, TEXT, ASCII, TEXT]
        return np.dtype(one_of(self.random, others)) if chance(self.random, 0.4) else dtype

    def some_array(self, side: str) -> Array:
        """A new array."""
        dtype, shape = self.some_dtype(side), some_shape(self.random)
        values = elements(self.random, dtype, shape)
        array = Array(values, dtype, limits=shape, fill=zero_of(dtype))
        if dtype.kind in "iufc" and chance(self.random, 0.3):
            array.fill, array.says_fill = native(some_elements(self.random, dtype, ()))[()], True
            if array.fill != array.fill:
                array.fill = array.values.dtype.type(-2)
        if shape and chance(self.random, 0.6):
            self.in_chunks(array, side)
        elif side != "hyperslab" and dtype.kind != "O" and chance(self.random, 0.2) and values.size:
            array.how["compact"] = True
        if chance(self.random, 0.3) and shape:
            array.dims = tuple(one_of(self.random, ["x", "y", None]) for _ in shape)
            if not any(array.dims):
                array.dims = None
        array.attributes = self.some_attributes(side)
        return array

    def some_new(self, tree: Tree, side: str) -> to.Change | None:
        """A new array; of a stretch without a fill value, parts of which are written, HDF5 gives anything."""
        change: Any = super().some_new(tree, side)
        if change is not None and side == "h5py" and not change.array.says_fill and "chunks" not in change.array.how:
            change.written = True
        return change

    def in_chunks(self, array: Array, side: str) -> None:
        """Chunks, filters, and how far it may grow."""
        shape, how = array.values.shape, array.how
        if not array.values.size:
            array.limits = how["maxshape"] = (None,) * len(shape)
        how["chunks"] = some_chunks(self.random, shape)
        if array.values.size and chance(self.random, 0.6):
            array.limits = tuple(one_of(self.random, [None, None, extent, extent + 3]) for extent in shape)
            how["maxshape"] = array.limits
        # h5py has no chunks larger than what cannot grow.
        how["chunks"] = tuple(
            each if most is None else max(min(each, most), 1)
            for each, most in zip(how["chunks"], array.limits, strict=True)
        )
        if chance(self.random, 0.3):
            how["compression"] = one_of(self.random, ["gzip"] if side == "hyperslab" else ["gzip", "lzf"])
        if chance(self.random, 0.3) and array.stored.kind != "O":
            how["shuffle"] = True
        if chance(self.random, 0.3) and array.stored.kind != "O":
            how["fletcher32"] = True

    def some_attribute(self, side: str) -> Any:
        """A value that the format has."""
        while True:
            value = in_hdf5(some_value(self.random))
            # h5py reads bytes that are no UTF-8 as surrogates, but does not write these.
            if value is not REFUSED and (side == "hyperslab" or not isinstance(value, str) or value.isprintable()):
                return value

    def elements(self, array: Array, shape: tuple[int, ...]) -> NDArray[Any]:
        """New elements of an array."""
        return elements(self.random, array.stored, shape)

    # ---- h5py's side -----------------------------------------------------------------------------------------------

    def carry_out(self, side: str, changes: list[to.Change]) -> None:
        """In one opening, perhaps with what newer libraries write."""
        with h5py.File(self.path, "r+", libver=one_of(self.random, LIBVERS)) as file:
            for change in changes:
                by_h5py(file, change)

    def check(self) -> None:
        """What h5py reads, and which names lead to the same object."""
        known: dict[int, Any] = {}
        with h5py.File(self.path) as file:
            check_group(file, file["/"], self.tree.root, known)
        assert len({id(node) for node in known.values()}) == len(known)


def elements(random: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Elements of a type; of texts bytes, as h5py gives them and we do in HDF5."""
    values = native(some_elements(random, dtype, shape))
    if dtype.kind == "O":
        texts = [
            each.encode("ascii" if dtype.metadata == ASCII.metadata else "utf-8", "ignore") for each in values.ravel()
        ]
        values = np.array(texts, object).reshape(shape)
    return values


def zero_of(dtype: np.dtype[Any]) -> Any:
    """What elements are that were never written."""
    return b"" if dtype.kind in "OS" else np.zeros((), dtype)[()]


def by_h5py(file: h5py.File, change: to.Change) -> None:
    """A change, as h5py makes it."""
    match change:
        case to.New():
            make(file, change)
        case to.NewGroup():
            set_attributes(file.create_group(change.path), change.attributes)
        case to.Write():
            file[change.path][indices(change.section)] = change.values
        case to.Append():
            data = file[change.path]
            first = data.shape[change.axis]
            data.resize(first + change.values.shape[change.axis], change.axis)
            data[(slice(None),) * change.axis + (slice(first, None),)] = change.values
        case to.Resize():
            file[change.path].resize(change.shape)
        case to.SetAttributes():
            set_attributes(file[change.path or "/"], change.values)
        case to.DropAttribute():
            del file[change.path or "/"].attrs[change.name]
        case to.Rename():
            file.move(change.old, change.new)
        case to.Delete():
            del file[change.path]
        case to.Link():
            file[change.path] = h5py.SoftLink("/" + change.to) if change.soft else file[change.to]
        case _:
            raise NotImplementedError(change)


def indices(section: Any) -> Any:
    """A section as h5py takes it: slices, since lists of indices may be given along one dimension only."""
    if not section:
        return ()
    return tuple(
        slice(start, start + (count - 1) * stride + 1 if count else start, stride)
        for start, stride, count, _ in section
    )


def make(file: h5py.File, change: to.New) -> None:
    """A new dataset."""
    array, how = change.array, dict(change.array.how)
    if array.says_fill:
        how["fillvalue"] = array.fill
    if how.pop("compact", False):
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        how["dcpl"] = plist
    data = file.create_dataset(change.path, array.values.shape, array.stored, **how)
    if change.written:
        data[...] = array.values
    for axis, name in enumerate(array.dims or ()):
        if name is not None:
            data.dims[axis].label = name
    set_attributes(data, array.attributes)


def set_attributes(one: Any, values: Attributes) -> None:
    """Attributes, of which texts in several dimensions need a type."""
    for name, value in values.items():
        is_text = isinstance(value, np.ndarray) and value.dtype.kind == "O"
        given = h5py.Empty(value.dtype) if isinstance(value, hs.Empty) else value
        one.attrs.create(name, given, dtype=TEXT if is_text else None)


def check_group(file: h5py.File, found: h5py.Group, expected: Group, known: dict[int, Any]) -> None:
    """Names, links and attributes of a group, and what is in it."""
    what = f"h5py: group '{found.name}'"
    same_attributes(attributes_of(found), expected.attributes, what)
    assert sorted(found) == sorted(expected.members), f"{what}: {sorted(found)}, expected {sorted(expected.members)}"
    for name, member in expected.members.items():
        link = found.get(name, getlink=True)
        assert isinstance(link, h5py.SoftLink) == isinstance(member, Soft), f"{what}: link '{name}' is {link}"
        if isinstance(member, Soft):
            assert link.path == "/" + member.to, f"{what}: link '{name}' leads to {link.path}"
            continue
        one = found[name]
        address = h5py.h5o.get_info(one.id).addr
        if address in known:
            assert known[address] is member, f"{what}: '{name}' is one object with another"
            continue
        known[address] = member
        if isinstance(member, Array):
            check_array(one, member)
        else:
            check_group(file, one, member, known)


def check_array(found: h5py.Dataset, expected: Array) -> None:
    """All that a dataset is."""
    what = f"h5py: '{found.name}'"
    stored = expected.stored
    assert found.dtype == stored, f"{what}: type {found.dtype}, expected {stored}"
    assert h5py.check_enum_dtype(found.dtype) == h5py.check_enum_dtype(stored), what
    assert h5py.check_string_dtype(found.dtype) == h5py.check_string_dtype(stored), what
    assert found.shape == expected.values.shape, f"{what}: shape {found.shape}, expected {expected.values.shape}"
    limits = expected.limits
    assert found.maxshape == limits, f"{what}: may grow to {found.maxshape}, expected {limits}"
    # One text comes as bytes, which do not say what type they have.
    same(
        native(
            np.asarray(found[()], expected.values.dtype.newbyteorder(found.dtype.byteorder))
            if not found.shape
            else found[()]
        ),
        expected.values,
        what,
    )
    if expected.says_fill:
        same(native(found.fillvalue), native(expected.fill), f"{what}: fill value")
    labels = tuple(each.label or None for each in found.dims)
    assert labels == (expected.dims or (None,) * len(labels)), f"{what}: labels {labels}, expected {expected.dims}"
    same_attributes(attributes_of(found), expected.attributes, what)


def attributes_of(one: Any) -> dict[str, Any]:
    """Attributes, without the labels of dimensions and the mark of a step."""
    return {name: value for name, value in one.attrs.items() if name not in ("DIMENSION_LABELS", "hyperslab_step")}
