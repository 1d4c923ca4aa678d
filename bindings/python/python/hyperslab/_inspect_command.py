"""``hyperslab inspect``: what a store or file holds, as a tree."""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import hyperslab as hs
from hyperslab import _core
from hyperslab._printing import legible, say, say_json, shown
from hyperslab._quantities import said_bytes
from hyperslab._style import Style
from hyperslab.array import Array
from hyperslab.comm import connect
from hyperslab.files import RawFile
from hyperslab.hdf5 import ENDS, ENDS_OF_NETCDF4, Hdf5File, InHdf5File, has_signature
from hyperslab.memory import place_of

#: Most letters of the value of an attribute.
VALUE_MAX = 100


class _Verbs(Protocol):
    def add_parser(self, name: str, **options: Any) -> argparse.ArgumentParser: ...


def add_verb(verbs: _Verbs) -> None:
    """Add the command to the others."""
    command = verbs.add_parser(
        "inspect",
        help="show what a store or file holds",
        description="Show the groups and arrays of a Zarr store, or the arrays of an HDF5, NetCDF or npy file, as a "
        "tree. What cannot be read is shown with the reason, and the exit code is 1 then.",
    )
    command.add_argument("path", help="a Zarr store, a group or array in it, or an HDF5, NetCDF or npy file")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command; the status is 1 if something cannot be read."""
    path = Path(args.path)
    kind, group = _opened(args.path)
    with group:
        found = {"path": group.path, "kind": kind} | _group(group, path if path.is_dir() else None)
    if args.json:
        say_json(_plain(found), allow_nan=False)
    else:
        style = Style.of_stdout()
        say(style.heading(legible(found["path"])) + f"  {_KINDS[kind]}")
        for line in _lines(found, style):
            say(line)
    return int(_has_error(found))


_KINDS = {"zarr": "Zarr", "netcdf": "NetCDF classic", "hdf5": "HDF5", "netcdf4": "netCDF-4", "npy": "npy"}


def _opened(path: str) -> tuple[str, hs.Group]:
    """What is at a path, and opened by whom."""
    if Path(path).is_file():
        with Path(path).open("rb") as file:
            magic, is_hdf5 = file.read(6), has_signature(file.fileno())
        if magic == b"\x93NUMPY":
            member = connect(None)
            core = _core.Target()
            core.open_npy(member, place_of(path), {"durable": False})
            return "npy", RawFile(core, member)
        if magic[:3] == b"CDF":
            return "netcdf", hs.open(path, format="netcdf3", comm=None)
        # Of a file that is damaged, its name says what it should be.
        if is_hdf5 or path.endswith((*ENDS, *ENDS_OF_NETCDF4)):
            opened = hs.open(path, format="hdf5", comm=None)
            assert isinstance(opened, Hdf5File)
            return "netcdf4" if opened._is_netcdf4() else "hdf5", opened
        message = (
            f"'{path}' is a file that is neither npy nor NetCDF nor HDF5\n"
            "  hint: of a raw file nobody knows what it holds; hyperslab verify --array checks it"
        )
        raise hs.UnsupportedError(message)
    return "zarr", hs.open(path, format="zarr", comm=None)


#: How deep groups of a file are shown as such; below that, arrays by their paths.
_DEPTH_MAX = 40


def _group(group: hs.Group, folder: Path | None, depth: int = 0) -> dict[str, Any]:
    """What is in a group; `folder` is where it lies, if it is a directory."""
    arrays: dict[str, Any] = {}
    in_file, goes_on = isinstance(group, InHdf5File), depth < _DEPTH_MAX
    # Names of arrays in a file are paths.
    for name in (name for name in group if not (in_file and goes_on and "/" in name)):
        try:
            arrays[name] = _array(group[name], None if folder is None else folder / name.strip("/"))
        except hs.Error as error:
            arrays[name] = {"error": str(error)}
    if isinstance(group, InHdf5File):
        arrays |= {name: {"error": why} for name, why, _ in group._others() if not (goes_on and "/" in name)}
    groups: dict[str, Any] = {}
    steps = set(group.steps)
    for name in group.groups() if goes_on else ():
        try:
            inner = _group(group.group(name), None if folder is None else folder / name, depth + 1)
            groups[name] = ({"step": True} if name in steps else {}) | inner
        except hs.Error as error:
            groups[name] = {"error": str(error)}
    return {"attributes": dict(group.attrs), "arrays": arrays, "groups": groups}


def _array(array: Array, folder: Path | None) -> dict[str, Any]:
    units = math.prod(
        -(-extent // chunk) for extent, chunk in zip(array.shape, array.shards or array.chunks, strict=True)
    )
    told: dict[str, Any] = {
        "shape": array.shape,
        "dtype": str(array.dtype),
        "dimension_names": array.dimension_names,
        "chunks": array.chunks,
        "shards": array.shards,
        "codecs": list(array.codecs),
        "fill_value": array.fill_value,
        "bytes": array.nbytes,
        "attributes": dict(array.attrs),
    }
    if folder is not None:
        sizes = list(_sizes(folder))
        told |= {"objects": units, "objects_stored": len(sizes), "bytes_stored": sum(sizes)}
    return told


def _sizes(folder: Path) -> Iterator[int]:
    """Sizes of the chunks or shards in an array's folder."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith((".", "zarr.json")):
                continue
            if entry.is_dir():
                yield from _sizes(Path(entry.path))
            else:
                yield entry.stat().st_size


def _plain(value: Any) -> Any:
    """A value as JSON has it: complex numbers are lists of two, and what is no number at all is a text, as in Zarr."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist() if value.dtype.names is None else [str(each) for each in value.ravel()])
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, np.generic):
        # Dates have no numbers that people know, and structured values have fields.
        return str(value) if value.dtype.kind in "mMV" else _plain(value.item())
    if isinstance(value, complex):
        return [_plain(value.real), _plain(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' * (value < 0)}Infinity"
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _is_usual(fill: Any) -> bool:
    """Whether a fill value is not worth telling: there is none, or it is zero."""
    return fill is None or not np.asarray(fill).tobytes().strip(b"\0")


def _has_error(found: Mapping[str, Any]) -> bool:
    below = [*found.get("arrays", {}).values(), *found.get("groups", {}).values()]
    return "error" in found or any(map(_has_error, below))


def _lines(found: Mapping[str, Any], style: Style, indent: str = "  ") -> Iterator[str]:
    """A group for people, a line for each attribute, array and group."""
    for name, value in found["attributes"].items():
        yield indent + _attribute(name, value)
    for name, told in found["arrays"].items():
        if "error" in told:
            yield f"{indent}{style.bad(legible(name))}  cannot be read: {_indented(told['error'], indent)}"
            continue
        yield f"{indent}{style.name(legible(name))}  {_shown(told)}"
        for attribute, value in told["attributes"].items():
            yield f"{indent}    {_attribute(attribute, value)}"
    for name, told in found["groups"].items():
        if "error" in told:
            yield f"{indent}{style.bad(legible(name) + '/')}  cannot be read: {_indented(told['error'], indent)}"
            continue
        yield f"{indent}{style.name(legible(name) + '/')}{'  step' if told.get('step') else ''}"
        yield from _lines(told, style, indent + "  ")


def _indented(error: str, indent: str) -> str:
    return shown(error).replace("\n", f"\n{indent}  ")


def _shown(told: Mapping[str, Any]) -> str:
    names = told["dimension_names"] or [None] * len(told["shape"])
    extents = ", ".join(
        f"{legible(name)}: {extent}" if name else str(extent) for name, extent in zip(names, told["shape"], strict=True)
    )
    parts = [f"{told['dtype']} ({extents})", said_bytes(told["bytes"])]
    if tuple(told["chunks"]) != tuple(told["shape"]) or "objects" in told:
        parts.append(f"chunks {tuple(told['chunks'])}")
    if told["shards"]:
        parts.append(f"shards {tuple(told['shards'])}")
    if "objects" in told:
        many = "shards" if told["shards"] else "chunks"
        parts.append(f"{told['objects_stored']} of {told['objects']} {many} stored, {said_bytes(told['bytes_stored'])}")
    # Those of Zarr have a configuration, filters of HDF5 are names alone.
    names = [codec if isinstance(codec, str) else codec["name"] for codec in told["codecs"]]
    if codecs := [name for name in names if name not in ("bytes", "sharding_indexed")]:
        parts.append(legible("+".join(codecs)))
    if not _is_usual(told["fill_value"]):
        parts.append(legible(f"fill {told['fill_value']}"))
    return ", ".join(parts)


def _attribute(name: str, value: Any) -> str:
    text = legible(json.dumps(_plain(value), ensure_ascii=False))
    return f"{legible(name)} = {text if len(text) <= VALUE_MAX else text[: VALUE_MAX - 1] + '…'}"
