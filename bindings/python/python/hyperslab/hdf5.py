"""HDF5 files, and those of netCDF-4, which are HDF5."""

from __future__ import annotations

import os

from hyperslab.netcdf import FileGroup

__all__ = ["Hdf5File"]

#: How names of such files end, and how those of netCDF-4 do.
ENDS = (".h5", ".hdf5", ".hdf", ".he5")
ENDS_OF_NETCDF4 = (".nc4",)
#: What such files begin with, perhaps behind a block of the user's own.
SIGNATURE = b"\x89HDF\r\n\x1a\n"


def has_signature(descriptor: int) -> bool:
    """Whether a file that is open has the signature at its start, or behind a user block of 512 B, 1024 B and so on."""
    at, length = 0, os.fstat(descriptor).st_size
    while at + len(SIGNATURE) <= length:
        if os.pread(descriptor, len(SIGNATURE), at) == SIGNATURE:
            return True
        at = max(512, 2 * at)
    return False


class Hdf5File(FileGroup):
    """An open HDF5 file; made by `open`.

    Its arrays are datasets, and their names are paths such as ``fields/rho``. Methods are those of `Group`, but for
    groups and steps. A new file becomes visible whole when it is closed. Of one that exists, all datasets of numbers
    are read, and sections of them changed (``r+``); those that may grow are appended to. Nobody else may have the file
    open then: HDF5's own lock is honoured.

    Examples
    --------
    >>> import numpy as np, hyperslab as hs, tempfile
    >>> path = tempfile.mkdtemp() + "/run.h5"
    >>> with hs.open(path, "w", attributes={"title": "a trial"}) as file:
    ...     report = file.write("fields/rho", np.arange(6.0).reshape(2, 3), attributes={"units": "kg m-3"})
    >>> with hs.open(path) as file:
    ...     list(file), file["fields/rho"].shape, file["fields/rho"].attrs["units"]
    (['fields/rho'], (2, 3), 'kg m-3')
    """

    def _others(self) -> list[tuple[str, str, bool]]:
        """Datasets that cannot be read as arrays: name, why, and whether it is damaged. Local."""
        return self._core.others()

    def _is_netcdf4(self) -> bool:
        """Whether it is one of netCDF-4: a library of that made it, or its name says so. Local."""
        return self._core.is_netcdf4() or self.path.endswith((".nc", *ENDS_OF_NETCDF4))
