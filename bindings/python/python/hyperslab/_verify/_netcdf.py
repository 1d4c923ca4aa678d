"""NetCDF classic files: headers, lengths, and whether all can be read."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from hyperslab._findings import Finding, VerifiedArray
from hyperslab._verify._flat import opened, unreadable
from hyperslab._verify._store import Found
from hyperslab.errors import CorruptError, UnsupportedError
from hyperslab.netcdf import ENDS
from hyperslab.opening import open as open_any

#: What files of the three versions begin with.
MAGIC = (b"CDF\x01", b"CDF\x02", b"CDF\x05")


def is_netcdf(path: Path) -> bool:
    """Whether a file is a NetCDF classic file, by its beginning or else its name."""
    descriptor = opened(path)
    try:
        return os.pread(descriptor, 4, 0) in MAGIC or path.name.endswith(ENDS)
    except OSError:
        return path.name.endswith(ENDS)
    finally:
        os.close(descriptor)


def verify_netcdf(path: Path) -> Found:
    """Check a NetCDF classic file: its header, its length, and that all of it can be read.

    What an update left unfinished is found beside it, as for other files.
    """
    found = Found()
    try:
        with warnings.catch_warnings(action="ignore"), open_any(path, format="netcdf3") as file:
            infos = {name: file[name] for name in file}
    except CorruptError as error:
        kind = "length" if "cut short" in str(error) else "metadata"
        found.findings.append(Finding("damage", kind, str(path), str(error).partition("\n")[0]))
        return found
    except UnsupportedError as error:
        found.findings.append(Finding("unchecked", "unsupported", str(path), str(error).partition("\n")[0]))
        return found
    descriptor = opened(path)
    try:
        for low, high, why in unreadable(descriptor, os.fstat(descriptor).st_size, found):
            text = f"bytes {low} to {high} cannot be read: {why}"
            found.findings.append(Finding("damage", "unreadable", str(path), text))
    finally:
        os.close(descriptor)
    bad = int(bool(found.findings))
    found.arrays += [
        VerifiedArray(name, info.shape, info.dtype.str, chunks=1, checked=1 - bad, damaged=bad)
        for name, info in infos.items()
    ]
    return found
