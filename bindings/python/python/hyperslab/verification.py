"""Whether what is stored is whole: checksums, lengths, metadata, leftovers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, SupportsIndex

from hyperslab._findings import Finding, Verification, VerifiedArray

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["Finding", "Verification", "VerifiedArray", "verify"]


def verify(
    path: str | os.PathLike[str],
    *,
    header: int = 0,
    arrays: Mapping[str, tuple[Sequence[SupportsIndex], DTypeLike]] | None = None,
    order: Literal["C", "F"] = "F",
    jobs: int | None = None,
    buffer_bytes: int | None = None,
    storage_seconds: float = 600.0,
) -> Verification:
    """Check that what is stored is whole. Not collective; needs no MPI and changes nothing.

    A Zarr v3 store or array and the datasets of an HDF5 file are read chunk by chunk, so that checksums are compared;
    of npy, NetCDF classic and raw files, lengths are compared and all bytes are read. Also found: what programs that
    were killed have left, updates in place that did not end, metadata that do not parse, files that do not belong
    there, and consolidated metadata that are stale.

    Parameters
    ----------
    path : path
        A Zarr v3 store, a group or array in it, an HDF5 or netCDF-4 file, a NetCDF classic file, an npy file, or a raw
        file.
    header : int
        Of a raw file: bytes before the first array.
    arrays : mapping of names to (shape, dtype), optional
        Of a raw file: its arrays, in their order. Without them, its length is not checked.
    order : {"F", "C"}
        Of a raw file: order of the elements, as for `open_raw`.
    jobs : int, optional
        Threads that read; by default one for each core, at most 2.
    buffer_bytes : int, optional
        Most bytes of buffers of one thread, as for `open`; chunks that need more are not checked. 256 MiB by default.
    storage_seconds : float
        How long to wait for a chunk from storage that does not answer [s].

    Returns
    -------
    Verification
        Its `damaged` says whether there is damage; `text` and `to_dict` tell what was found.

    Raises
    ------
    NotFoundError
        If there is nothing at the path.
    InvalidError
        If what is there is neither a store nor a regular file, or the arguments are not valid.
    TimeoutError
        If storage does not answer.

    Examples
    --------
    >>> import numpy as np, hyperslab as hs, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.zarr"
    >>> with hs.open(path, "w") as store:
    ...     report = store.write("rho", np.ones((4, 6)), chunks=(2, 3))
    >>> hs.verify(path).damaged
    False
    >>> chunk = path / "rho" / "c.1.0"
    >>> n = chunk.write_bytes(b"x" + chunk.read_bytes()[1:])
    >>> [(finding.kind, finding.array, finding.section) for finding in hs.verify(path).findings]
    [('chunk', 'rho', ((2, 4), (0, 3)))]
    """
    from hyperslab._verify import verify_path

    return verify_path(
        path,
        header=header,
        arrays=arrays,
        order=order,
        jobs=jobs,
        buffer_bytes=buffer_bytes,
        storage_seconds=storage_seconds,
    )
