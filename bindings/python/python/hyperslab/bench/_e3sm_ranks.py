"""The ranks of ``hyperslab bench e3sm``; started by mpiexec with a task in JSON."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

import hyperslab as hs
from hyperslab.bench._e3sm_case import Variable, load, map_of, small
from hyperslab.bench._launch import measure_task
from hyperslab.bench._mpiio import hint_sets
from hyperslab.bench._pnetcdf import Pieces, PnetCdf

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Formats, the ends of names of their files, and how they are opened.
FORMATS: dict[str, tuple[str, dict[str, Any]]] = {
    "netcdf": (".nc", {"format": "NETCDF3_64BIT_DATA"}),
    "netcdf4": (".nc4", {"format": "netcdf4"}),
    "zarr": (".zarr", {}),
}
PNETCDF = "PnetCDF"
#: Numbers that all types can tell apart.
DISTINCT = 120


class Bench:
    """One launch."""

    def __init__(self, comm: MPI.Intracomm, task: dict[str, Any]) -> None:
        self.comm, self.task, self.records = comm, task, task["records"]
        self.directory = Path(task["directory"])
        self.header, self.maps = load(Path(task["map"]), Path(task["header"])) if task["map"] else small()
        self.header.dims.update(task["dims"])
        self.variables = {one.name: one for one in self.header.variables}
        self.map_of = {name: map_of(self.header, one, self.maps) for name, one in self.variables.items()}
        self.mine = [one.of(comm.rank, comm.size) for one in self.maps]
        self.pieces = [Pieces.of(mine, one.shape) for mine, one in zip(self.mine, self.maps, strict=True)]
        self.values = [
            {name: self._values(number, one, record) for number, (name, one) in enumerate(self.variables.items())}
            for record in range(self.records)
        ]

    # ---- values ----------------------------------------------------------------------------------------------------

    def _whole(self, number: int, variable: Variable, record: int) -> NDArray[Any]:
        """All elements of a variable in one record."""
        shape = self.header.shape(variable)
        whole = (np.arange(int(np.prod(shape))) * 7 + number + 13 * record) % DISTINCT + 1
        if variable.dtype.kind == "S":
            return whole.astype(np.uint8).view("S1").reshape(shape)
        return whole.astype(variable.dtype).reshape(shape)

    def _values(self, number: int, variable: Variable, record: int) -> NDArray[Any]:
        whole, which = self._whole(number, variable, record), self.map_of[variable.name]
        return whole if which is None else whole.ravel()[self.mine[which]]

    @property
    def nbytes(self) -> int:
        """Of all variables and records."""
        one = [int(np.prod(self.header.shape(each))) * each.dtype.itemsize for each in self.variables.values()]
        return sum(
            size * (self.records if self.header.is_record(each) else 1)
            for size, each in zip(one, self.variables.values(), strict=True)
        )

    # ---- hyperslab -------------------------------------------------------------------------------------------------

    def spread(self) -> dict[str, Any]:
        """How ranks hold each variable, with a map object for each map and kind of variable."""
        made: dict[Any, Any] = {}
        result = {}
        for name, one in self.variables.items():
            which, shape = self.map_of[name], self.header.shape(one)
            shape = (1, *shape) if self.header.is_record(one) else shape
            if (which, shape) not in made:
                every = hs.Distribution.replicated(shape, self.comm.size)
                made[which, shape] = every if which is None else hs.ElementMap(shape, self.mine[which])
            result[name] = made[which, shape]
        return result

    def part(self, name: str, record: int) -> NDArray[Any]:
        """What this rank holds of a variable, with an axis for records where all hold everything."""
        values = self.values[record][name]
        is_whole = self.map_of[name] is None and self.header.is_record(self.variables[name])
        return values[None] if is_whole else values

    def options(self, name: str) -> dict[str, Any]:
        """What a variable is made with."""
        one = self.variables[name]
        return (
            {"dimension_names": one.dims, "attributes": one.attributes} if one.dims else {"attributes": one.attributes}
        )

    def opened(self, form: str, path: Path) -> Any:
        """A new file."""
        more = FORMATS[form][1] | ({} if form == "zarr" else {"unlimited": self.header.unlimited})
        return hs.open(path, "w", comm=self.comm, durable=False, **more)

    def ours(self, form: str, spread: dict[str, Any], path: Path, *, in_batch: bool) -> None:
        """Write all records."""
        with self.opened(form, path) as file:
            if in_batch:
                with file.batch() as batch:
                    for name in self.variables:
                        batch.write(name, self.part(name, 0), spread[name], **self.options(name))
            else:
                fixed = [name for name, one in self.variables.items() if not self.header.is_record(one)]
                for name in [*fixed, *(name for name in self.variables if name not in fixed)]:
                    file.write(name, self.part(name, 0), spread[name], **self.options(name))
            for record in range(1, self.records):
                growing = [name for name, one in self.variables.items() if self.header.is_record(one)]
                if in_batch:
                    with file.batch() as batch:
                        for name in growing:
                            batch.append(name, self.part(name, record), spread[name])
                else:
                    for name in growing:
                        file.append(name, self.part(name, record), spread[name])

    def read(self, path: Path) -> dict[str, NDArray[Any]]:
        """Read all in blocks."""
        with hs.open(path, comm=self.comm) as file:
            names = list(self.variables)
            dists = {name: self.blocks(file[name].shape) for name in names}
            return dict(file.read(names, dists))

    def blocks(self, shape: tuple[int, ...]) -> hs.Distribution:
        """The last dimension in blocks, and no other."""
        if not shape:
            return hs.Distribution.replicated((), self.comm.size)
        return hs.Distribution(shape, (self.comm.size,), [*["*"] * (len(shape) - 1), "block"])

    # ---- PnetCDF ---------------------------------------------------------------------------------------------------

    def all_of(self, one: Variable) -> Pieces:
        """A variable as one part, which rank 0 writes; others have none."""
        shape = self.header.shape(one)
        count = int(self.comm.rank == 0)
        counts = np.tile(np.array(shape, np.int64), (count, 1))
        return Pieces(np.zeros((count, len(shape)), np.int64), counts)

    def by_pnetcdf(self, hints: dict[str, str], pieces: list[dict[str, Pieces]], path: Path, *, in_batch: bool) -> None:
        """Write all records by nonblocking calls, or by one call for each variable."""
        file = PnetCdf(Path(self.task["pnetcdf"]), self.comm, hints)
        file.create(path)
        axes = {
            name: file.dimension(name, 0 if name == self.header.unlimited else length)
            for name, length in self.header.dims.items()
        }
        numbers = {
            name: file.variable(name, one.dtype, [axes[dim] for dim in one.dims], one.attributes)
            for name, one in self.variables.items()
        }
        file.declared()
        put = file.begin_put if in_batch else file.put
        for record in range(self.records):
            for name, one in self.variables.items():
                if record == 0 or self.header.is_record(one):
                    put(numbers[name], pieces[record][name], self.values[record][name])
            if in_batch:
                file.wait()
        file.close()

    def pnetcdf_pieces(self) -> list[dict[str, Pieces]]:
        """Starts and counts of each variable in each record, which a program keeps."""
        result = []
        for record in range(self.records):
            made = [one.in_record(record) for one in self.pieces]
            row = {}
            for name, one in self.variables.items():
                which = self.map_of[name]
                if which is None:
                    whole = self.all_of(one)
                    row[name] = whole.in_record(record) if self.header.is_record(one) else whole
                else:
                    row[name] = made[which] if self.header.is_record(one) else self.pieces[which]
            result.append(row)
        return result

    def read_by_pnetcdf(self, path: Path) -> None:
        """Read all in blocks by nonblocking calls."""
        file = PnetCdf(Path(self.task["pnetcdf"]), self.comm, {})
        file.open(path)
        for name, one in self.variables.items():
            shape = self.header.shape(one)
            shape = (self.records, *shape) if self.header.is_record(one) else shape
            start, count = np.zeros(len(shape), np.int64), np.array(shape, np.int64)
            if shape:
                share = -(-shape[-1] // self.comm.size)
                start[-1] = min(share * self.comm.rank, shape[-1])
                count[-1] = min(share, shape[-1] - start[-1])
            found = np.empty(count, one.dtype)
            self._kept.append(found)
            file.begin_get(file.number(name), start, found)
        file.wait()
        file.close()

    # ---- taking turns ----------------------------------------------------------------------------------------------

    def timed(self, call: Callable[[], Any]) -> tuple[float, Any]:
        """How long a call takes all ranks [s], and what it gives."""
        self.comm.barrier()
        begin = time.perf_counter()
        result = call()
        self.comm.barrier()
        return time.perf_counter() - begin, result

    def fresh(self, name: str) -> Path:
        """The path of a file that is not there."""
        path = self.directory / name
        if self.comm.rank == 0:
            shutil.rmtree(path, ignore_errors=True)
            path.unlink(missing_ok=True)
        self.comm.barrier()
        return path

    def check(self, way: str, found: dict[str, NDArray[Any]]) -> None:
        """Refuse other values than were written. Elements that no rank holds may be anything."""
        held = [np.zeros(int(np.prod(one.shape)), np.bool_) for one in self.maps]
        for map_, mask in zip(self.maps, held, strict=True):
            mask[np.concatenate(map_.processes)] = True
        for number, (name, one) in enumerate(self.variables.items()):
            wholes = [self._whole(number, one, record) for record in range(self.records)]
            whole = np.stack(wholes) if self.header.is_record(one) else wholes[0]
            known = np.ones(self.header.shape(one), np.bool_)
            if (which := self.map_of[name]) is not None:
                known = held[which].reshape(known.shape)
            mine = self.blocks(whole.shape).slices(self.comm.rank)
            same = whole[mine] == found[name]
            assert (same | ~np.broadcast_to(known, whole.shape)[mine]).all(), f"{way}: '{name}' has other values"

    def run(self) -> dict[str, Any]:
        """All ways in turns; the first round warms up, and is the first call of each."""
        hints: dict[str, dict[str, str]] = {}
        if self.task["pnetcdf"]:
            sets = {
                f"{PNETCDF} hints {n}": one for n, one in enumerate(hint_sets(self.comm.size)[: self.task["hints"]])
            }
            hints = {PNETCDF: {}, **sets}
        times: dict[str, dict[str, list[float]]] = {}
        pieces = self.pnetcdf_pieces() if hints else []
        self._kept: list[NDArray[Any]] = []
        for round_ in range(self.task["repetitions"] + 1):
            for form in self.task["formats"]:
                for in_batch in (True, False):
                    path, spread = self.fresh(f"e3sm{FORMATS[form][0]}"), self.spread()
                    call = partial(self.ours, form, spread, path, in_batch=in_batch)
                    self.note(times, form, in_batch, self.timed(call)[0])
                    seconds, found = self.timed(partial(self.read, path))
                    if in_batch:
                        times[form].setdefault("read", []).append(seconds)
                    if round_ == 0:
                        self.check(form, found)
            for name, one in hints.items():
                for in_batch in (True, False):
                    path = self.fresh("peer.nc")
                    call = partial(self.by_pnetcdf, one, pieces, path, in_batch=in_batch)
                    self.note(times, name, in_batch, self.timed(call)[0])
                    if round_ == 0:
                        self.check(name, self.read(path))
                    if name == PNETCDF and in_batch:
                        self._kept.clear()
                        times[name].setdefault("read", []).append(self.timed(partial(self.read_by_pnetcdf, path))[0])
        version = PnetCdf(Path(self.task["pnetcdf"]), self.comm, {}).version if hints else None
        about = {"ranks": self.comm.size, "bytes": self.nbytes, "variables": len(self.variables), "peer": version}
        return {**about, "records": self.records, "hints": hints, "seconds": times}

    @staticmethod
    def note(times: dict[str, dict[str, list[float]]], way: str, in_batch: bool, seconds: float) -> None:  # noqa: FBT001
        """Keep a time."""
        times.setdefault(way, {}).setdefault("batch" if in_batch else "one by one", []).append(seconds)


if __name__ == "__main__":
    measure_task(MPI.COMM_WORLD, lambda task: Bench(MPI.COMM_WORLD, task).run())
