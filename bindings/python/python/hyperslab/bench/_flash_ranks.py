"""The ranks of ``hyperslab bench flash``; started by mpiexec with a task in JSON."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

import hyperslab as hs
from hyperslab.bench._launch import measure_task
from hyperslab.bench._pnetcdf import PnetCdf

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Cells of a block along each dimension, of its halo on each side, and variables (Ross et al. 2001, section 4).
CELLS, HALO, VARIABLES, PLOTTED = 8, 4, 24, 4
SUFFIXES = {"raw": ".raw", "netcdf": ".nc", "hdf5": ".h5", "zarr": ".zarr"}
PNETCDF = "PnetCDF"
AXES = ("blocks", "z", "y", "x")
#: Records about the tree: type, and extents of a block's part.
TREE = {
    "lrefine": ("i4", ()),
    "nodetype": ("i4", ()),
    "gid": ("i4", (15,)),
    "coordinates": ("f8", (3,)),
    "blocksize": ("f8", (3,)),
    "bndbox": ("f8", (3, 2)),
}


@dataclass(frozen=True)
class Kind:
    """One of the three files: how many variables, points along the edge of a block, and the type of reals."""

    name: str
    variables: int
    edge: int
    real: str


KINDS = (
    Kind("checkpoint", VARIABLES, CELLS, "f8"),
    Kind("plotfile", PLOTTED, CELLS, "f4"),
    Kind("corners", PLOTTED, CELLS + 1, "f4"),
)


class Bench:
    """One launch."""

    def __init__(self, comm: MPI.Intracomm, task: dict[str, Any]) -> None:
        self.comm, self.task, self.durable = comm, task, task["durable"]
        self.directory = Path(task["directory"])
        # As PnetCDF's program has it: not all ranks have as many.
        self.counts = [task["blocks"] + rank % 3 for rank in range(comm.size)]
        self.blocks, self.total = self.counts[comm.rank], sum(self.counts)
        self.first = sum(self.counts[: comm.rank])
        around = CELLS + 2 * HALO
        random = np.random.default_rng(comm.rank)
        # The variable is the fastest dimension.
        self.unknowns = random.random((self.blocks, around, around, around, VARIABLES))
        self.at_corners = random.random((PLOTTED, self.blocks, *(CELLS + 1,) * 3))
        self.tree = {
            name: (random.random((self.blocks, *each)) * 100).astype(kind) for name, (kind, each) in TREE.items()
        }

    def parts(self, kind: Kind) -> dict[str, NDArray[Any]]:
        """Give this rank's part of each variable: a view of all of them, or what was worked out at corners."""
        inner = (slice(None), *(slice(HALO, HALO + CELLS),) * 3)
        if kind.edge > CELLS:
            return {f"var{number:02}": self.at_corners[number] for number in range(kind.variables)}
        return {f"var{number:02}": self.unknowns[(*inner, number)] for number in range(kind.variables)}

    def stored(self, kind: Kind, array: NDArray[Any]) -> np.dtype[Any]:
        """The type of its stored elements."""
        return np.dtype(kind.real if array.dtype.kind == "f" else array.dtype)

    def spread(self, array: NDArray[Any]) -> hs.Distribution:
        """How ranks hold it: consecutive blocks."""
        each = array.shape[1:]
        return hs.Distribution((self.total, *each), (self.comm.size,), (self.counts, *["*"] * len(each)))

    # ---- hyperslab -------------------------------------------------------------------------------------------------

    def ours(self, kind: Kind, form: str, path: Path) -> None:
        """Write all of a file in one batch."""
        options: dict[str, Any] = {"comm": self.comm, "durable": self.durable}
        if form == "raw":
            with hs.open_raw(path, "w", order="C", **options) as raw:
                for name, array in self.tree.items():
                    raw.write({name: array}, self.spread(array), dtype=self.stored(kind, array))
                raw.write(parts := self.parts(kind), self.spread(parts["var00"]), dtype=kind.real)
            return
        with hs.open(path, "w", **options) as file, file.batch() as batch:
            for name, array in {**self.tree, **self.parts(kind)}.items():
                axes = AXES[: array.ndim] if name.startswith("var") else None
                batch.write(name, array, self.spread(array), dtype=self.stored(kind, array), dimension_names=axes)

    # ---- PnetCDF ---------------------------------------------------------------------------------------------------

    def by_pnetcdf(self, kind: Kind, path: Path) -> None:
        """The calls of its own program: a type of memory for the cells of a variable, nonblocking, one wait."""
        file = PnetCdf(Path(self.task["pnetcdf"]), self.comm, {})
        file.create(path)
        lengths = {"blocks": self.total, **dict.fromkeys(AXES[1:], kind.edge), "gids": 15, "three": 3, "two": 2}
        axes = {name: file.dimension(name, length) for name, length in lengths.items()}
        of_length = {15: axes["gids"], 3: axes["three"], 2: axes["two"]}
        parts, numbers = self.parts(kind), {}
        for name, array in {**self.tree, **parts}.items():
            inner = [axes[one] for one in AXES[1:]] if name in parts else [of_length[one] for one in array.shape[1:]]
            numbers[name] = file.variable(name, self.stored(kind, array), [axes["blocks"], *inner], {})
        file.declared()
        types = []
        for name, array in self.tree.items():
            file.begin_put_block(numbers[name], self.first, array)
        for at, (name, array) in enumerate(parts.items()):
            if kind.edge > CELLS:
                file.begin_put_block(numbers[name], self.first, array)
                continue
            start = [0, HALO, HALO, HALO, at]
            cells = file.part_of(self.unknowns.shape, [*array.shape, 1], start)
            types.append(cells)
            file.begin_put_block(numbers[name], self.first, array, (self.unknowns, cells))
        file.wait()
        if self.durable:
            file.sync()
        file.close()
        for one in types:
            one.Free()

    # ---- taking turns ----------------------------------------------------------------------------------------------

    def write(self, way: str, kind: Kind, path: Path) -> None:
        """Write one file in one way."""
        if way == PNETCDF:
            self.by_pnetcdf(kind, path)
        else:
            self.ours(kind, way, path)

    def path(self, way: str, kind: Kind, round_: int) -> Path:
        """Of a file of its own: nothing is removed between two that are timed."""
        return self.directory / f"{way.lower()}-{kind.name}-{round_}{SUFFIXES.get(way, '.nc')}"

    def check(self, way: str, kind: Kind, path: Path) -> None:
        """Refuse other values than were written."""
        arrays = {**self.tree, **self.parts(kind)}
        if way == "raw":
            known = {name: (self.spread(one).shape, self.stored(kind, one)) for name, one in arrays.items()}
            opened: Any = hs.open_raw(path, comm=self.comm, order="C", arrays=known)
        else:
            opened = hs.open(path, comm=self.comm)
        with opened as file:
            found = file.read(list(arrays), {name: self.spread(one) for name, one in arrays.items()})
        for name, array in arrays.items():
            same = np.array_equal(found[name], array.astype(self.stored(kind, array)))
            assert same, f"{way}, {kind.name}: rank {self.comm.rank} has other values of '{name}'"

    def run(self) -> dict[str, Any]:
        """All ways and files in turns; the first round has first calls."""
        ways = [*self.task["forms"], *([PNETCDF] if self.task["pnetcdf"] else [])]
        times: dict[str, dict[str, list[float]]] = {way: {} for way in ways}
        for round_ in range(self.task["repetitions"] + 1):
            for kind in KINDS:
                for way in ways[round_ % len(ways) :] + ways[: round_ % len(ways)]:
                    path = self.path(way, kind, round_)
                    self.comm.barrier()
                    begin = time.perf_counter()
                    self.write(way, kind, path)
                    self.comm.barrier()
                    times[way].setdefault(kind.name, []).append(time.perf_counter() - begin)
                    if round_ == 0:
                        self.check(way, kind, path)
        version = PnetCdf(Path(self.task["pnetcdf"]), self.comm, {}).version if self.task["pnetcdf"] else None
        return {"ranks": self.comm.size, "blocks": self.total, "peer": version, "seconds": times}


if __name__ == "__main__":
    measure_task(MPI.COMM_WORLD, lambda task: Bench(MPI.COMM_WORLD, task).run())
