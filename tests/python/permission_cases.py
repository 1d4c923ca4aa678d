"""Operations that replace something of each format, on any number of ranks: for `test_permissions`.

``python permission_cases.py [--as=USER,GROUP] DIRECTORY [OPERATION...]`` carries them out by threads or by the ranks of
MPI, which may become another user in one more group.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np

VALUES = np.arange(24.0).reshape(6, 4)
ROWS = (slice(0, 6), slice(0, 4))


def given(comm: Any, values: np.ndarray) -> tuple[Any, ...]:
    """This rank's rows, and who holds which."""
    if comm is None:
        return (values,)
    dist = hs.Distribution(values.shape, (comm.size,), ("block", "*"))
    return values[dist.slices(comm.rank)], dist


def zarr_store(path: Path, comm: Any) -> None:
    """A store with arrays and attributes."""
    with hs.open(path, "w", comm=comm) as group:
        for name in ("rho", "old", "p"):
            group.write(name, *given(comm, VALUES), chunks=(4, 4))


def file(path: Path, comm: Any) -> None:
    """A file of a format."""
    if path.suffix == ".raw":
        with hs.open_raw(path, "w", comm=comm) as group:
            group.write("rho", *given(comm, VALUES))
    elif path.suffix == ".npy":
        hs.save_npy(path, *given(comm, VALUES), comm=comm)
    else:
        with hs.open(path, "w", comm=comm) as group:
            group.write("rho", *given(comm, VALUES))


def in_store(change: Callable[[Any, Any], None], **more: Any) -> Callable[[Path, Any], None]:
    """A change of a store."""

    def run(place: Path, comm: Any) -> None:
        with hs.open(place / "s.zarr", "r+", comm=comm, **more) as group:
            change(group, comm)

    return run


def again(name: str) -> Callable[[Path, Any], None]:
    """The same file once more."""
    return lambda place, comm: file(place / name, comm)


#: What is replaced, and how; and with ``durable=False``.
OPERATIONS: dict[str, Callable[[Path, Any], None]] = {
    "section": in_store(lambda group, comm: group.write("rho", *given(comm, VALUES + 1), section=ROWS)),
    "section, not durable": in_store(
        lambda group, comm: group.write("rho", *given(comm, VALUES + 2), section=ROWS), durable=False
    ),
    "append": in_store(lambda group, comm: group.append("p", *given(comm, VALUES))),
    "attributes": in_store(lambda group, comm: group.attrs.update({"b": 2})),
    "attributes of an array": in_store(lambda group, comm: group["rho"].attrs.update({"b": 2})),
    "overwrite": in_store(
        lambda group, comm: group.write("old", *given(comm, VALUES + 3), overwrite=True, chunks=(4, 4))
    ),
    # Of another store, since nothing is left of what is looked at in this one.
    "store": lambda place, comm: hs.open(place / "t.zarr", "w", comm=comm).close(),
    **{f"w {name}": again(name) for name in ("f.raw", "f.npy", "f.h5", "f.nc")},
}


def made(place: Path, comm: Any) -> None:
    """All that is replaced afterwards."""
    for name in ("s.zarr", "t.zarr"):
        zarr_store(place / name, comm)
    for name in ("f.raw", "f.npy", "f.h5", "f.nc"):
        file(place / name, comm)


def become(user: int, group: int) -> None:
    """Be another user, when all is loaded: he may not read what root's Python is made of."""
    with tempfile.TemporaryDirectory() as other:
        made(Path(other), None)
        for operation in OPERATIONS.values():
            operation(Path(other), None)
    os.umask(0o022)
    if user != 0:
        os.setgroups([group])
        os.setgid(user)
        os.setuid(user)


def main() -> None:
    """As ranks of MPI, where this is one of several."""
    given = sys.argv[1:]
    identity = given.pop(0).removeprefix("--as=") if given[0].startswith("--as=") else ""
    place, names = Path(given[0]), given[1:]
    comm = None
    if "PMI_RANK" in os.environ or "OMPI_COMM_WORLD_RANK" in os.environ:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
    if identity:
        become(*map(int, identity.split(",")))
    for name in names:
        OPERATIONS[name](place, comm)


if __name__ == "__main__":
    main()
