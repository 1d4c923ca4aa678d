"""NetCDF classic files: CDF-1, CDF-2 and CDF-5."""

from __future__ import annotations

from hyperslab._calls import end
from hyperslab.group import Group

__all__ = ["NetcdfFile"]

#: How names of such files end.
ENDS = (".nc", ".nc3", ".cdf")


class FileGroup(Group):
    """What files have alike that are groups: no steps, and an end that publishes a new one."""

    _unfinished_means = "its bytes may be old or new"
    _knows_types = True

    def _consolidated_above(self) -> list[str]:
        return []

    def close(self) -> None:
        """Finish the file, when all its requests are over; a new one becomes durable and visible whole. Collective."""
        self._core.close(None)

    def _exit(self, error: BaseException | None) -> None:
        """Close the file; after an exception on this rank, give up on all ranks what was not published."""
        end(self._core, self._comm, error)


class NetcdfFile(FileGroup):
    """An open NetCDF classic file, or one of netCDF-4 that exists; made by `open`.

    Its arrays are what NetCDF calls variables. Methods are those of `Group`, but for groups and steps, which such files
    do not have. A new file becomes visible with its first `flush`, or when it is closed; one that exists is changed in
    place (``r+``), and arrays along its unlimited dimension may be appended to.

    Examples
    --------
    >>> import numpy as np, hyperslab as hs, tempfile
    >>> path = tempfile.mkdtemp() + "/run.nc"
    >>> with hs.open(path, "w", unlimited="time") as file:
    ...     report = file.write({"time": (["time"], np.zeros(0)), "rho": (["time", "x"], np.zeros((0, 3)))})
    >>> with hs.open(path, "r+") as file:
    ...     for time in (0.5, 1.0):
    ...         report = file.append({"time": np.array([time]), "rho": np.full((1, 3), time)})
    ...     file["rho"].shape
    (2, 3)
    """
