"""Ways of ``hyperslab bench peers`` with one row-major file: whole arrays, arrays of many shapes, sections, calls."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

import hyperslab as hs
from hyperslab.bench._limits import PlainFiles
from hyperslab.bench._mpiio import MpiIo, file_type
from hyperslab.bench._peers_libraries import found
from hyperslab.bench._peers_rows import shapes_between
from hyperslab.bench._peers_ways import LIMIT, OURS, PEER, STEPS, Setting, Way, each_in_turn

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["hint_ways", "raw", "raw_section", "raw_shapes"]

ARRAY = "field"
DEFAULT, BEST = "MPI-IO, default hints", "MPI-IO, best hints"


def hint_sets() -> list[dict[str, str]]:
    """Sets of hints of ROMIO among which the best is sought."""
    alone = {"romio_cb_write": "disable", "romio_cb_read": "disable"}
    together = {"romio_cb_write": "enable", "romio_cb_read": "enable"}
    return [
        alone,
        alone | {"romio_ds_write": "disable", "romio_ds_read": "disable"},
        together | {"cb_nodes": "1"},
        together | {"cb_nodes": "2", "cb_config_list": "*:*"},
        together | {"cb_nodes": "2", "cb_config_list": "*:*", "cb_buffer_size": str(1 << 20)},
    ]


def hint_ways(setting: Setting) -> list[tuple[str, dict[str, str], bool]]:
    """Name and hints of each way of MPI-IO, and whether it competes for the best ones."""
    if setting.best_hints is not None:
        return [(DEFAULT, {}, False), (BEST, dict(setting.best_hints), False)]
    numbered = enumerate(hint_sets())
    return [(DEFAULT, {}, False), *((f"{BEST} {number}", hints, True) for number, hints in numbered)]


class RawFile:
    """One array in a file of its own.

    Parameters
    ----------
    setting : Setting
        What all ways share.
    dist : Distribution
        Who holds what.
    name : str
        Begins the names of files.
    """

    def __init__(self, setting: Setting, dist: hs.Distribution, name: str = "") -> None:
        self._setting, self._comm, self._dist = setting, setting.comm, dist
        self._array = setting.part(dist)
        self._target = np.zeros_like(self._array)
        sizes = [math.prod(dist.local_shape(rank)) for rank in range(self._comm.size)]
        self._start = sum(sizes[: self._comm.rank])
        self._name, self._is_prepared = name, False
        self._input = setting.place / f"input{name}.raw"
        self._filetype = file_type(dist, self._comm.rank, MPI.DOUBLE)

    def _path(self, who: str, number: int) -> Path:
        return self._input if self._setting.reads else self._setting.place / f"{who}{self._name}-{number}"

    def _prepare(self) -> None:
        """Write what is read, by plain code: in large pieces, of which the kernel makes large pages of its cache.

        Of a file written page by page they are small, and reading takes twice as long (38, not 16 ms for 256 MiB).
        """
        if not self._setting.reads or self._setting.prepared or self._is_prepared:
            return
        self._is_prepared = True
        self._setting.meet()
        whole = self._gathered()
        if whole is not None:
            whole.tofile(self._input)
        self._setting.meet()

    def _check_file(self, who: str, number: int, _: int | None) -> None:
        stored = np.memmap(self._path(who, number), "f8", "r", shape=self._dist.shape)
        part = stored[np.ix_(*self._dist.indices(self._comm.rank))]
        assert np.array_equal(part, self._array), f"{who}: rank {self._comm.rank} wrote other bytes"

    def _check_target(self, who: str, expected: NDArray[Any]) -> None:
        right = np.array_equal(self._target, expected)
        assert right, f"{who}: rank {self._comm.rank} read other bytes"
        self._target.fill(-1)

    def way(self, who: str, role: str, write: Any, read: Any, **more: Any) -> Way:
        """A way that writes to a path, or reads from one."""
        call = read if self._setting.reads else write

        def check(number: int, places: int | None) -> None:
            if self._setting.reads:
                self._check_target(who, self._array)
            else:
                self._check_file(who, number, places)

        made = None if self._setting.reads else partial(self._path, who)
        given = {"check": check, "prepare": self._prepare} | ({"made": made} if made else {}) | more
        return Way(who, role, lambda number: call(self._path(who, number)), **given)

    def ours(self) -> Way:
        """By this package."""

        def write(path: Path) -> None:
            with hs.open_raw(path, "w", comm=self._comm, order="C", durable=self._setting.durable) as file:
                file.write({ARRAY: self._array}, self._dist)

        def read(path: Path) -> None:
            known = {ARRAY: (self._dist.shape, self._array.dtype)}
            with hs.open_raw(path, "r", comm=self._comm, order="C", arrays=known) as file:
                file.read(ARRAY, self._dist, out=self._target)

        return self.way("hyperslab", OURS, write, read)

    def mpiio(self, name: str, hints: Mapping[str, str], *, is_candidate: bool) -> Way:
        """By collective calls of MPI-IO."""
        rival = MpiIo(name, self._input, self._comm, MPI.DOUBLE, self._filetype, hints)
        return self.way(
            name,
            PEER,
            lambda path: rival.at(path).write(self._array, durable=self._setting.durable),
            lambda path: rival.at(path).read(self._target),
            hints=hints,
            is_candidate=is_candidate,
        )

    def limit(self) -> Way:
        """Contiguous parts of one file by plain code."""
        plain = PlainFiles(self._setting.place, self._comm.rank, 8 * self._start)
        content = self._start + np.arange(self._array.size, dtype="f8").reshape(self._array.shape)

        def check(number: int, _: int | None) -> None:
            if self._setting.reads:
                self._check_target("plain code", content)
                return
            path = self._path("limit", number)
            stored = np.fromfile(path, "f8", self._array.size, offset=8 * self._start)
            assert np.array_equal(stored, self._array.ravel()), "plain code wrote other bytes"

        def call(number: int) -> None:
            file = plain.at(self._path("limit", number))
            if self._setting.reads:
                file.read(self._target)
            else:
                file.write(self._array, durable=self._setting.durable)

        made: Any = {} if self._setting.reads else {"made": partial(self._path, "limit")}
        return Way("limit: plain code", LIMIT, call, check=check, prepare=self._prepare, **made)

    def h5py(self) -> list[Way]:
        """By serial h5py, which does not make files durable: rank 0 gathers and writes, each rank reads its part."""
        module, _ = found("h5py")
        if module is None or self._setting.durable:
            return []
        stored = self._setting.place / f"input{self._name}.h5"
        places = [place.tolist() for place in self._dist.indices(self._comm.rank)]
        steps = [place[1] - place[0] if len(place) > 1 else 1 for place in places]
        part = tuple(slice(place[0], place[-1] + 1, step) for place, step in zip(places, steps, strict=True))

        def write(path: Path) -> None:
            whole = self._gathered()
            if whole is not None:
                with module.File(path, "w") as file:
                    file.create_dataset(ARRAY, data=whole)
            self._setting.barrier()

        def prepare() -> None:
            if self._setting.reads and not self._setting.prepared:
                write(stored)

        def read(_: Path) -> None:
            with module.File(stored) as file:
                file[ARRAY].read_direct(self._target, part)

        def check_written(number: int, _: int | None) -> None:
            with module.File(self._path("h5py", number)) as file:
                assert np.array_equal(file[ARRAY][part], self._array), "h5py wrote other bytes"

        more: Any = {} if self._setting.reads else {"check": check_written}
        return [self.way("h5py", PEER, write, read, prepare=prepare, **more)]

    def _gathered(self) -> NDArray[Any] | None:
        """The whole array on rank 0."""
        if self._comm.rank > 0:
            self._comm.Send(self._array, 0)
            return None
        whole = np.empty(self._dist.shape)
        for rank in range(self._comm.size):
            part = self._array if rank == 0 else np.empty(self._dist.local_shape(rank))
            if rank > 0:
                self._comm.Recv(part, rank)
            whole[np.ix_(*self._dist.indices(rank))] = part
        return whole

    def ways(self) -> list[Way]:
        """All of them."""
        rivals = [self.mpiio(name, hints, is_candidate=one) for name, hints, one in hint_ways(self._setting)]
        return [self.ours(), *rivals, *self.h5py(), self.limit()]


def _spread(setting: Setting) -> hs.Distribution:
    size, ranks = setting.size, setting.comm.size
    spread = setting.options["spread"]
    if spread == "cyclic":
        return hs.Distribution((size.cyclic,), (ranks,), ("cyclic",))
    if spread == "rows":
        return hs.Distribution(size.whole, (ranks,), ("block", "*", "*"))
    return hs.Distribution.block(size.whole, ranks)


def raw(setting: Setting) -> tuple[list[Way], int]:
    """One large array, and its bytes."""
    dist = _spread(setting)
    return RawFile(setting, dist).ways(), 8 * math.prod(dist.shape)


def raw_shapes(setting: Setting) -> tuple[list[Way], int]:
    """Arrays of many shapes, one a call, and the bytes of the one in the middle."""
    ranks = setting.comm.size
    shapes = shapes_between(setting.size.shapes, setting.size.largest_bytes, ranks)
    dists = [hs.Distribution(shape, (ranks,), ("block", "*")) for shape in shapes]
    rounds = [RawFile(setting, dist, f"-{number}").ways() for number, dist in enumerate(dists)]
    return each_in_turn(rounds), 8 * math.prod(shapes[len(shapes) // 2])


class RawSection:
    """A section of one array changes in place; each call writes other values."""

    def __init__(self, setting: Setting) -> None:
        self._setting, self._comm, self._extent = setting, setting.comm, setting.size.extent
        self._low, self._high = self._extent // 8, self._extent - self._extent // 8
        side = self._high - self._low
        self.nbytes = 8 * side * side
        self._dist = hs.Distribution.block((side, side), self._comm.size)
        self._array = setting.part(self._dist)
        self._rows, self._columns = (slice(one.start, one.stop) for one in self._dist.slices(self._comm.rank))

    def _file(self, who: str) -> Path:
        # All ways of MPI-IO have one file: which of them is called best is not known from the beginning.
        return self._setting.place / f"{who.split(',')[0].split()[-1]}.raw"

    def _prepare(self, who: str) -> None:
        if self._comm.rank == 0 and not self._setting.prepared:
            np.zeros((self._extent, self._extent)).tofile(self._file(who))
        self._setting.meet()

    def _before(self, number: int) -> None:
        self._array += 1 + number % STEPS

    def _check(self, who: str, _: int, __: int | None) -> None:
        stored = np.memmap(self._file(who), "f8", "r", shape=(self._extent, self._extent))
        part = stored[self._low : self._high, self._low : self._high][self._rows, self._columns]
        assert np.array_equal(part, self._array), f"{who}: rank {self._comm.rank} wrote other bytes"
        edges = (stored[: self._low], stored[self._high :], stored[:, : self._low], stored[:, self._high :])
        assert not any(edge.any() for edge in edges), f"{who} wrote outside of the section"

    def _way(self, name: str, role: str, call: Any, **more: Any) -> Way:
        given: dict[str, Any] = {
            "prepare": partial(self._prepare, name),
            "before": self._before,
            "check": partial(self._check, name),
        }
        return Way(name, role, lambda _: call(self._file(name)), **given, **more)

    def ways(self) -> list[Way]:
        """All of them."""
        whole = (self._extent, self._extent)
        triplets = [(self._low, self._high, 1)] * 2
        filetype = file_type(self._dist, self._comm.rank, MPI.DOUBLE, shape=whole, section=triplets)
        durable = self._setting.durable

        def ours(path: Path) -> None:
            known = {ARRAY: (whole, "f8")}
            section = (slice(self._low, self._high),) * 2
            with hs.open_raw(path, "r+", comm=self._comm, order="C", durable=durable, arrays=known) as file:
                file.write({ARRAY: self._array}, self._dist, section=section)

        def mpiio(hints: Mapping[str, str], path: Path) -> None:
            rival = MpiIo("", path, self._comm, MPI.DOUBLE, filetype, hints)
            # ROMIO reads what it does not write, so the file is open for both.
            rival.write_memory([self._array, MPI.DOUBLE], MPI.MODE_RDWR, durable=durable)

        def plain(path: Path) -> None:
            descriptor = os.open(path, os.O_WRONLY)
            column = self._low + self._columns.start
            for row, content in enumerate(self._array, self._low + self._rows.start):
                os.pwrite(descriptor, content, 8 * (row * self._extent + column))
            if durable:
                os.fdatasync(descriptor)
            os.close(descriptor)

        rivals = [
            self._way(name, PEER, partial(mpiio, hints), hints=hints, is_candidate=one)
            for name, hints, one in hint_ways(self._setting)
        ]
        return [self._way("hyperslab", OURS, ours), *rivals, self._way("limit: plain code", LIMIT, plain)]


def raw_section(setting: Setting) -> tuple[list[Way], int]:
    """A section in place, and its bytes."""
    section = RawSection(setting)
    return section.ways(), section.nbytes
