"""HDF5 files, and those of netCDF-4, which are HDF5."""

from __future__ import annotations

import os
from collections.abc import Callable

from hyperslab import _core
from hyperslab.group import Group
from hyperslab.netcdf import FileGroup
from hyperslab.steps import Step

__all__ = ["Hdf5File", "Hdf5Group"]

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


class InHdf5File(FileGroup):
    """What a file and groups of it have alike."""

    def _others(self) -> list[tuple[str, str, bool]]:
        """Datasets that cannot be read as arrays: name, why, and whether it is damaged. Local."""
        return self._core.others()

    def _inner(self, core: _core.Target) -> Group:
        return Hdf5Group(core, self._comm, self._changes)

    def _inner_step(self, core: _core.Target, before_publish: Callable[[], None] | None) -> Step:
        return Hdf5Step(core, self._comm, before_publish)


class Hdf5Group(InHdf5File):
    """An open group of an HDF5 file; made by `Group.group` and `Group.create_group` of the file.

    Its arrays are called by their names in it. To close it ends its requests; the file stays open.
    """

    def _exit(self, error: BaseException | None) -> None:
        """Close it at the end of its context; after an exception, without waiting for ranks that may not come."""
        if error is None:
            self.close()

    def _give_up(self, error: BaseException) -> None:
        self._core.discard()


class Hdf5Step(Step, InHdf5File):
    """A step of an HDF5 file that is being written; made by `Group.step`."""


class Hdf5File(InHdf5File):
    """An open HDF5 file; made by `open`.

    Its arrays are datasets, and their names are paths such as ``fields/rho``. Methods are those of `Group`. A new file
    becomes visible with its first step or `flush`, or when it is closed. Of one that exists, all datasets of numbers
    are read; with ``r+``, sections of them are changed, those that may grow are appended to, and new arrays, groups and
    steps are added. Nobody else may have the file open then: HDF5's own lock is honoured.

    Examples
    --------
    >>> import numpy as np, hyperslab as hs, tempfile
    >>> path = tempfile.mkdtemp() + "/run.h5"
    >>> with hs.open(path, "w", attributes={"title": "a trial"}) as file:
    ...     report = file.write("fields/rho", np.arange(6.0).reshape(2, 3), attributes={"units": "kg m-3"})
    >>> with hs.open(path, "r+") as file:
    ...     file["fields/rho"].attrs["source"] = "a model"
    ...     with file.step("0001", attributes={"time": 0.5}) as step:
    ...         report = step.write({"rho": np.ones(4), "u": np.zeros(4)})
    ...     list(file), list(file.steps), dict(file.group("0001").attrs)
    (['fields/rho', '0001/rho', '0001/u'], ['0001'], {'time': 0.5})
    """

    def _is_netcdf4(self) -> bool:
        """Whether it is one of netCDF-4: a library of that made it, or its name says so. Local."""
        return self._core.is_netcdf4() or self.path.endswith((".nc", *ENDS_OF_NETCDF4))
