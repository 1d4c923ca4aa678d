"""Checking what is stored; `hyperslab.verify` is the way in.

Walks directories by itself, with bounds and without opening special files, and reads chunks by the library's own
reader.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, SupportsIndex

from hyperslab._calls import type_code
from hyperslab._findings import Finding, Kind, Verification
from hyperslab._paths import local_path
from hyperslab._printing import legible
from hyperslab._values import whole_number
from hyperslab._verify import _flat, _hdf5, _leftovers, _netcdf
from hyperslab._verify._files import Damaged, Denied, follow, kind_of
from hyperslab._verify._store import Found, verify_store
from hyperslab.errors import InvalidError, NotFoundError, StorageError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

#: Threads that read, unless a number is given.
JOBS_MAX = 2


def verify_path(
    path: str | os.PathLike[str],
    *,
    header: int,
    arrays: Mapping[str, tuple[Sequence[SupportsIndex], DTypeLike]] | None,
    order: str,
    jobs: int | None,
    buffer_bytes: int | None,
    storage_seconds: float,
) -> Verification:
    """Check a store or a file; see `hyperslab.verify`."""
    if not isinstance(path, (str, os.PathLike)):
        message = (
            f"only paths can be verified, but this is {type(path).__name__}\n"
            "  hint: write the files() of a store in memory to a directory, and verify that"
        )
        raise InvalidError(message)
    place = Path(local_path(path))
    threads = min(JOBS_MAX, os.cpu_count() or 1) if jobs is None else jobs
    whole_number(threads, "jobs", 1)
    whole_number(header, "header")
    if not storage_seconds > 0:
        message = f"storage_seconds must be > 0, got {storage_seconds}"
        raise InvalidError(message)
    if order not in ("C", "F"):
        message = f"order must be 'C' or 'F', got {order!r}"
        raise InvalidError(message)
    known = _known(arrays or {})
    kind: Kind
    mode = _mode(place)
    raw = bool(known or header)
    if stat.S_ISDIR(mode) and not raw:
        kind, found = "zarr", verify_store(place, threads, buffer_bytes, storage_seconds)
    elif not stat.S_ISREG(mode):
        expected = "a raw file" if raw else "a Zarr store or a regular file"
        message = f"'{legible(str(place))}': expected {expected}, found {kind_of(mode)}"
        raise InvalidError(message)
    elif place.name == "zarr.json" and not raw:
        message = f"'{legible(str(place))}' is the metadata of a store\n  hint: name the directory that it is in"
        raise InvalidError(message)
    elif _flat.is_npy(place) and not raw:
        kind, found = "npy", _flat.verify_npy(place)
    elif _hdf5.is_hdf5(place) and not raw:
        kind, found = "hdf5", _hdf5.verify_hdf5(place, threads, buffer_bytes, storage_seconds)
    elif _netcdf.is_netcdf(place) and not raw:
        kind, found = "netcdf", _netcdf.verify_netcdf(place)
    else:
        kind, found = "raw", _flat.verify_raw(place, header, known, order)
    found.findings += _leftovers.beside(place)
    return Verification(
        path=str(place),
        kind=kind,
        groups=found.groups,
        arrays=tuple(found.arrays),
        findings=_sorted(found),
        nbytes=found.nbytes,
    )


def _known(arrays: Mapping[str, tuple[Sequence[SupportsIndex], DTypeLike]]) -> list[tuple[str, list[int], str]]:
    """The arrays of a raw file, as given."""
    known = []
    for name, (shape, dtype) in arrays.items():
        extents = [extent.__index__() for extent in shape]
        if any(extent < 0 for extent in extents):
            message = f"array '{name}' has shape {tuple(extents)}: extents of 0 or more are needed"
            raise InvalidError(message)
        try:
            known.append((name, extents, type_code(dtype)))
        except InvalidError as error:
            message = f"array '{name}': '{dtype}' is not a type of elements\n  hint: give one such as <f8, or bfloat16"
            raise InvalidError(message) from error
    return known


def _mode(path: Path) -> int:
    """What is at the path."""
    shown = legible(str(path))
    try:
        return follow(path).st_mode
    except FileNotFoundError as error:
        left = [each.path for each in _leftovers.beside(path)]
        hint = f"\n  hint: beside it lies what was not published: {legible(left[0])}" if left else ""
        message = f"'{shown}' does not exist{hint}"
        raise NotFoundError(message) from error
    except Damaged as error:
        message = f"'{shown}' is {error}"
        raise NotFoundError(message) from error
    except Denied as error:
        message = f"'{shown}' cannot be looked at: {error}"
        raise StorageError(message) from error


def _sorted(found: Found) -> tuple[Finding, ...]:
    severities = ("damage", "warning", "unchecked")
    return tuple(
        sorted(
            found.findings,
            key=lambda each: (severities.index(each.severity), each.array or "", each.section or (), each.path),
        )
    )
