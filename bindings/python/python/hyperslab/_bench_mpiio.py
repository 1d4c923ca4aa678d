"""MPI-IO as people use it: a subarray filetype and the collective calls of `mpi4py.MPI.File`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from hyperslab.distribution import Distribution

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MpiIo", "hint_sets"]


def hint_sets(ranks: int) -> list[dict[str, str]]:
    """Sets of hints among which the best is sought. Implementations ignore hints that they do not know."""

    def two_phase(aggregators: int, buffer_bytes: int, **more: str) -> dict[str, str]:
        both = {"romio_cb_write": "enable", "romio_cb_read": "enable", "cb_config_list": "*:*"}
        return both | {"cb_nodes": str(aggregators), "cb_buffer_size": str(buffer_bytes)} | more

    sieving = {"romio_cb_write": "disable", "romio_cb_read": "disable"}
    sieving |= {"romio_ds_write": "enable", "romio_ds_read": "enable"}
    sets = [
        two_phase(ranks, 4 << 20),
        two_phase(ranks, 4 << 20, romio_ds_write="disable", romio_ds_read="disable"),
        two_phase(ranks, 1 << 20),
        two_phase(ranks, 16 << 20),
        two_phase(2, 4 << 20),
        sieving,
        sieving | {"romio_ds_write": "disable", "romio_ds_read": "disable"},
    ]
    return [hints for number, hints in enumerate(sets) if hints not in sets[:number]]


class MpiIo:
    """One row-major file through ``Write_all`` and ``Read_all``.

    Parameters
    ----------
    name : str
        What it is called in results.
    path : Path
        The file.
    comm : mpi4py.MPI.Intracomm
        The ranks.
    dist : Distribution
        Who holds what; each rank a box.
    hints : mapping
        Hints for MPI-IO.
    """

    def __init__(
        self, name: str, path: Path, comm: MPI.Intracomm, dist: Distribution, hints: Mapping[str, str]
    ) -> None:
        self.name = name
        self.hints = dict(hints)
        self._path = path
        self._comm = comm
        starts = [part.start for part in dist.slices(comm.rank)]
        self._filetype = MPI.DOUBLE.Create_subarray(list(dist.shape), list(dist.local_shape(comm.rank)), starts)
        self._filetype.Commit()

    def _open(self, mode: int) -> MPI.File:
        info = MPI.Info.Create()
        for key, value in self.hints.items():
            info.Set(key, value)
        file = MPI.File.Open(self._comm, str(self._path), mode, info)
        file.Set_view(0, MPI.DOUBLE, self._filetype, "native", info)
        info.Free()
        return file

    def write(self, array: NDArray[Any], *, durable: bool) -> None:
        """Write the array to a new file."""
        file = self._open(MPI.MODE_CREATE | MPI.MODE_WRONLY)
        file.Write_all([array, MPI.DOUBLE])
        if durable:
            file.Sync()
        file.Close()

    def read(self, array: NDArray[Any]) -> None:
        """Read this rank's part."""
        file = self._open(MPI.MODE_RDONLY)
        file.Read_all([array, MPI.DOUBLE])
        file.Close()

    def remove(self) -> None:
        """Remove the file."""
        if self._comm.rank == 0:
            self._path.unlink(missing_ok=True)
