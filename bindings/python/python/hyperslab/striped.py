"""Files that are spread over several directories."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from operator import index

from hyperslab._paths import local_path
from hyperslab._values import unfit
from hyperslab.errors import InvalidError

__all__ = ["Striped"]


@dataclass(frozen=True)
class Striped:
    """A file whose bytes are spread over several directories, unit by unit in turn.

    With ``n`` directories, byte ``o`` lies in directory ``(o // unit) % n``, in the file of that name, at
    ``o // (unit * n) * unit + o % unit``, as in the parallel file system of the Paragon. Directories on disks of their
    own write and read side by side.

    Parameters
    ----------
    directories : sequence of paths
        Where the parts lie, in order. They exist already and are seen by all ranks.
    name : str
        Name of the file, and so of its part in each directory.
    unit : int
        Bytes that lie together.

    Notes
    -----
    A new file is published by one rename in each directory. The first decides: after a crash before it the older file
    is whole; after a crash between it and the last one, opening the file again completes them, until which programs
    that read the parts by themselves find some old and some new. The same holds for programs that have the file open
    while another replaces it.

    Examples
    --------
    >>> import numpy as np, hyperslab as hs, os, tempfile
    >>> disks = [tempfile.mkdtemp() for _ in range(3)]
    >>> with hs.open_raw(hs.Striped(disks, "dump.raw", unit=16), "w") as file:
    ...     report = file.write({"rho": np.arange(8.0)})
    >>> [os.path.getsize(disk + "/dump.raw") for disk in disks]
    [32, 16, 16]
    >>> with hs.open_raw(hs.Striped(disks, "dump.raw", unit=16), arrays={"rho": ((8,), "f8")}) as file:
    ...     file.read("rho")
    array([0., 1., 2., 3., 4., 5., 6., 7.])
    """

    directories: Sequence[str | os.PathLike[str]]
    name: str
    unit: int = 65536

    def _parts(self) -> tuple[list[str], str, int]:
        """As the core takes it, where it can."""
        if isinstance(self.directories, (str, bytes, os.PathLike)):
            message = (
                f"a striped file needs several directories, but {os.fspath(self.directories)!r} is one path\n"
                "  hint: give a list of paths, in the order in which they take turns"
            )
            raise InvalidError(message)
        if not isinstance(self.name, str):
            raise unfit("the name of a striped file", "a string", self.name)
        self.name.encode()
        unit = index(self.unit)
        if not 1 <= unit < 1 << 63:
            message = f"unit must be 1 B or more, and below 2**63 B, got {unit} B"
            raise InvalidError(message)
        return ([local_path(directory) for directory in self.directories], self.name, unit)

    def __str__(self) -> str:
        """Name, directories and unit, in words."""
        # Also what is no valid name has to be shown.
        name = str(self.name).encode(errors="backslashreplace").decode()
        one = isinstance(self.directories, (str, bytes, os.PathLike))
        directories = self.directories if one else ", ".join(f"'{directory}'" for directory in self.directories)
        return f"{name} striped over {directories} by {self.unit} B"
