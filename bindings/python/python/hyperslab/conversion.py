"""Copies of stores and files in another format, in bounded memory."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from hyperslab import _options
from hyperslab._launch import LEFT_OUT
from hyperslab._sizes import size_of
from hyperslab.distribution import Distribution
from hyperslab.errors import InvalidError
from hyperslab.group import Group
from hyperslab.hdf5 import Hdf5File
from hyperslab.netcdf import FileGroup
from hyperslab.opening import open as opened

if TYPE_CHECKING:
    from typing import Literal, Unpack

    from hyperslab.array import Array
    from hyperslab.memory import Place

__all__ = ["Converted", "convert"]

#: What a transfer needs beside this rank's part of a section, as a multiple of it.
BESIDE = 3
#: What a text of variable length is taken to need, of which only its place is known beforehand [B].
TEXT_BYTES = 256


@dataclass(frozen=True)
class Converted:
    """What `convert` copied."""

    #: Names of the arrays, in the order in which they were copied.
    arrays: tuple[str, ...]
    #: Bytes of their elements, of all ranks together [B].
    bytes: int
    #: Calls that each rank made to copy them: reads, and as many writes.
    sections: int


@_options.keywords(_options.CreateOptions)
def convert(
    source: Place | Group,
    target: Place,
    mode: Literal["x", "w"] = "x",
    *,
    names: Sequence[str] | None = None,
    format: str | None = None,  # noqa: A002 (as of `open`)
    comm: Any = LEFT_OUT,
    memory: int | str = "64MiB",
    **options: Unpack[_options.CreateOptions],
) -> Converted:
    """Copy a store or file into another one, of the same format or of another. Collective.

    Elements, attributes, names of dimensions and fill values are kept, and chunks where both have them. Arrays are
    copied section by section: those of each rank, and what moving them takes, stay within `memory`. What the other
    format cannot hold is an error that names it. A file appears when all is in it; a Zarr store fills before the eyes
    of others. A conversion that was ended in the middle begins again: it does not go on where it was.

    Parameters
    ----------
    source : path, MemoryStore or Group
        What is copied; of a raw file, the open file.
    target : path or MemoryStore
        What is made; its name says the format, as for `open`.
    mode : {"x", "w"}
        ``w`` replaces what is there.
    names : sequence of str, optional
        Only these arrays, by their paths.
    format, comm : optional
        Those of the target, and of both; as for `open`.
    memory : int or str
        What each rank may use [B]. A chunk, or a shard, of the target must fit.
    chunks, shards, compression, zstd, codecs, ... : optional
        As for `Group.create_array`, of all arrays alike.

    Examples
    --------
    >>> import numpy as np, hyperslab as hs, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with hs.open(folder + "/run.h5", "w", attributes={"code": "jeans"}) as file:
    ...     report = file.write("rho", np.arange(6.0).reshape(2, 3), dimension_names=("x", "y"))
    >>> hs.convert(folder + "/run.h5", folder + "/run.zarr").arrays
    ('rho',)
    >>> with hs.open(folder + "/run.zarr") as store:
    ...     store.attrs["code"], store["rho"].dimension_names
    ('jeans', ('x', 'y'))
    """
    _options.check("convert", options, _options.CreateOptions)
    most = size_of(memory, "memory")
    if mode not in ("x", "w"):
        message = f"mode must be 'x' or 'w', got {mode!r}"
        raise InvalidError(message)
    if isinstance(source, Group):
        return _converted(source, (target, mode, format, comm), names, most, options)
    with opened(source, comm=comm) as origin:
        return _converted(origin, (target, mode, format, comm), names, most, options)


def _converted(
    origin: Group,
    to: tuple[Any, Any, Any, Any],
    names: Sequence[str] | None,
    most: int,
    options: _options.CreateOptions,
) -> Converted:
    target, mode, form, comm = to
    _check_apart(origin, target)
    groups, arrays = _walked(origin)
    if names is not None:
        missing = [name for name in names if name not in arrays]
        if missing:
            message = f"there is no array {missing[0]!r} in '{origin.path}'"
            raise InvalidError(message)
        arrays = {name: arrays[name] for name in names}
    with opened(target, mode, format=form, comm=comm) as made:
        if made._comm.size != origin._comm.size:
            message = (
                f"the source is open on {origin._comm.size} ranks, and the target on {made._comm.size}\n"
                "  hint: give the communicator of the source as comm="
            )
            raise InvalidError(message)
        made.attrs.update(_fit(made, origin.attrs))
        for path, attributes in groups.items():
            if names is None or any(name.startswith(f"{path}/") for name in names):
                made.create_group(path, attributes=_fit(made, attributes), exist_ok=True)
        total = sections = 0
        copies = [(name, array, _made(made, name, array, options)) for name, array in arrays.items()]
        for _, array, copy in copies:
            sections += _copied(array, copy, most, made._comm.size)
            total += array.nbytes
    return Converted(tuple(arrays), total, sections)


def _check_apart(origin: Group, target: Any) -> None:
    """Refuse to replace what is copied, or something that it lies in, and to copy something into itself."""
    if not isinstance(target, str | os.PathLike):
        return
    there, here = (os.path.realpath(os.fspath(path)) for path in (origin.path, target))
    if os.path.commonpath([there, here]) in (there, here):
        message = (
            f"cannot convert '{origin.path}' to '{here}': one is the other, or lies in it\n"
            "  hint: choose another target"
        )
        raise InvalidError(message)


def _walked(origin: Group) -> tuple[dict[str, Mapping[str, Any]], dict[str, Array]]:
    """Groups below, with their attributes, and all arrays, by their paths. Collective."""
    groups: dict[str, Mapping[str, Any]] = {}
    # Of a file, the arrays of all groups are known by their paths.
    arrays = {name: origin[name] for name in origin.arrays()}
    whole = isinstance(origin, FileGroup)
    for name in origin.groups():
        group = origin.group(name)
        groups[name] = dict(group.attrs)
        inner, found = _walked(group)
        groups |= {f"{name}/{path}": attributes for path, attributes in inner.items()}
        if not whole:
            arrays |= {f"{name}/{path}": array for path, array in found.items()}
    return groups, arrays


def _fit(made: Group, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as the format of the copy has them: NetCDF classic has no long integers where short ones do."""
    if isinstance(made, Hdf5File) or not isinstance(made, FileGroup):
        return dict(attributes)
    long = {name: np.asarray(value).dtype == np.int64 for name, value in attributes.items()}
    return {name: np.asarray(value).tolist() if long[name] else value for name, value in attributes.items()}


def _made(made: Group, name: str, array: Array, options: _options.CreateOptions) -> Array:
    """A new array that is to become a copy."""
    new: dict[str, Any] = {"dimension_names": array.dimension_names, **options}
    chunked = isinstance(made, Hdf5File) or not isinstance(made, FileGroup)
    if chunked and array.chunks != array.shape and 0 not in array.chunks:
        new.setdefault("chunks", array.chunks)
        if array.shards is not None and not isinstance(made, Hdf5File):
            new.setdefault("shards", array.shards)
    attributes = dict(array.attrs)
    said = attributes.pop("_FillValue", None)
    fill = array.fill_value
    # Formats without one say zero, and readers of NetCDF would hide zeros.
    of_text = isinstance(fill, str) and fill and not isinstance(made, FileGroup)
    is_told = fill is not None and np.asarray(fill).dtype.kind in "biufc" and fill != 0
    if said is not None or is_told or of_text:
        new.setdefault("fill_value", fill)
    new.setdefault("attributes", _fit(made, attributes))
    dtype: Any = array.dtype.newbyteorder("=") if array.dtype.kind in "biufc" else array.dtype
    if array.dtype.kind == "O":
        dtype = str
    return made.create_array(name, array.shape, dtype, **new)


def _copied(array: Array, copy: Array, most: int, ranks: int) -> int:
    """Copy all elements; gives the number of sections."""
    if 0 in array.shape:
        return 0
    unit = copy.shards or copy.chunks
    each = TEXT_BYTES if array.dtype.kind == "O" else array.itemsize
    elements = most * ranks // (BESIDE * each)
    shape = _section_shape(array, unit, elements)
    count = 0
    for section in _sections(array.shape, shape):
        extents = tuple(part.stop - part.start for part in section)
        spread = Distribution.block(extents, ranks)
        part = array.read(spread, section=section)
        copy.write(part, spread, section=section)
        count += 1
    return count


def _section_shape(array: Array, unit: Sequence[int], elements: int) -> tuple[int, ...]:
    """Extents of sections of whole units of the copy, as long as possible in the last dimensions."""
    free = tuple(unit) == tuple(array.shape)
    shape = [1] * array.ndim if free else [min(one, extent) for one, extent in zip(unit, array.shape, strict=True)]
    if math.prod(shape) > elements:
        needed = math.prod(shape) * array.itemsize * BESIDE
        message = (
            f"a chunk {tuple(shape)} of '{array.name}' does not fit: memory must be at least {needed} B, of all ranks\n"
            "  hint: give more memory, or smaller chunks"
        )
        raise InvalidError(message)
    for dim in reversed(range(array.ndim)):
        times = max(1, elements // math.prod(shape))
        shape[dim] = min(shape[dim] * times, array.shape[dim])
        if shape[dim] < array.shape[dim]:
            break
    return tuple(shape)


def _sections(extents: Sequence[int], shape: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    starts = [range(0, extent, step) for extent, step in zip(extents, shape, strict=True)]
    for at in product(*starts):
        ends = (min(low + step, extent) for low, step, extent in zip(at, shape, extents, strict=True))
        yield tuple(slice(low, end) for low, end in zip(at, ends, strict=True))
