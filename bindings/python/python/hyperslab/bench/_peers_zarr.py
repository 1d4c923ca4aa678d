"""Ways of ``hyperslab bench peers`` with Zarr: whole arrays, many at once, one after another, sections in place."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import hyperslab as hs
from hyperslab.bench._checks import check_chunks
from hyperslab.bench._peers_libraries import Library, libraries
from hyperslab.bench._peers_rows import shapes_between
from hyperslab.bench._peers_ways import OURS, STEPS, Setting, Way, each_in_turn

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["check_array", "finish_array", "many", "new", "section", "zarr", "zarr_shapes"]

ARRAY = "field"
#: Up to here peers gather an array on rank 0 and write one chunk, as small files cost more than messages [B].
GATHERED_BYTES = 256 << 10
#: What is around a section; not 0, since libraries leave out chunks that hold nothing but the fill value.
AROUND = -1.0


def check_array(setting: Setting, path: Path, shape: Sequence[int], base: float, places: int | None) -> None:
    """On one rank: compare chunks in storage with what should be there."""
    check_chunks(path, shape, lambda at: setting.numbers(at, shape, base), chunks=places)


def cells(shape: Sequence[int], chunks: Sequence[int]) -> list[tuple[slice, ...]]:
    """Parts of an array in its chunks."""
    spans = [
        [slice(start, min(start + size, extent)) for start in range(0, extent, size)]
        for extent, size in zip(shape, chunks, strict=True)
    ]
    return list(itertools.product(*spans))


def unpublished(library: Library, path: Path) -> Path:
    """Where a library writes an array: plain code renames it when it is complete, as this package does."""
    return path.with_name(f".{path.name}") if library.role == "limit" else path


def finish_array(setting: Setting, library: Library, paths: Sequence[Path]) -> None:
    """After the last write of all ranks: make it durable and visible."""
    if library.leaves_sync:
        setting.sync()
    else:
        setting.barrier()
    if library.role == "limit":
        if setting.comm.rank == 0:
            for path in paths:
                unpublished(library, path).rename(path)
        if setting.durable:
            setting.sync()


class Store:
    """A store of this package that stays open for all calls of a row, opened before the first."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._open: hs.Group | None = None

    def prepare(self) -> None:
        """Make and open it."""
        if self._open is None:
            number = self._setting.comm.bcast(len(list(self._setting.place.glob("store-*"))))
            path = self._setting.place / f"store-{number}.zarr"
            self._open = hs.open(path, "w", comm=self._setting.comm, durable=self._setting.durable)

    @property
    def path(self) -> Path:
        """Where it is."""
        return Path(str(self.group.path))

    @property
    def group(self) -> hs.Group:
        """It, open."""
        assert self._open is not None
        return self._open

    def finish(self) -> None:
        """Close it."""
        if self._open is not None:
            self._open.close()
            self._open = None


class ZarrArray:
    """One Zarr array, of which each rank holds a block.

    Parameters
    ----------
    setting : Setting
        What all ways share.
    dist : Distribution
        Who holds what.
    chunks : sequence of int, optional
        Chunks of peers, and of what is read; blocks of the first rank by default.
    name : str
        Ends the names of files.
    store : Store, optional
        An open store for this package's arrays; without it, opening and closing are part of the call.
    """

    def __init__(
        self,
        setting: Setting,
        dist: hs.Distribution,
        chunks: Sequence[int] | None = None,
        *,
        name: str = "",
        store: Store | None = None,
    ) -> None:
        self._setting, self._comm, self._dist, self._store, self._name = setting, setting.comm, dist, store, name
        self._array = setting.part(dist)
        self._target = np.zeros_like(self._array)
        self._nbytes = 8 * math.prod(dist.shape)
        self._is_gathered = store is not None and self._nbytes <= GATHERED_BYTES
        self._chunks = list(dist.shape if self._is_gathered else chunks or dist.local_shape(0))
        self._given_chunks = chunks
        self._part = dist.slices(self._comm.rank)
        # Plain code only writes: what all hold is there from the beginning.
        self._whole = setting.numbers(np.ix_(*map(np.arange, dist.shape)), dist.shape) if self._is_gathered else None
        self._is_prepared = False

    # ---- this package --------------------------------------------------------------------------------------------

    def _our_path(self, number: int) -> Path:
        if self._setting.reads:
            return self._setting.place / f"input{self._name}.zarr"
        if self._store is not None:
            return self._store.path / f"a{self._name}-{number}"
        return self._setting.place / f"ours{self._name}-{number}.zarr"

    def _write_ours(self, number: int) -> None:
        if self._store is not None and not self._setting.reads:
            self._store.group.write(f"a{self._name}-{number}", self._array, self._dist)
            return
        options: dict[str, Any] = {} if self._given_chunks is None else {"chunks": self._given_chunks}
        durable = self._setting.durable
        with hs.open(self._our_path(number), "w", comm=self._comm, durable=durable) as group:
            group.write(ARRAY, self._array, self._dist, **options)

    def _read_ours(self, number: int) -> None:
        with hs.open(self._our_path(number), comm=self._comm) as group:
            group.read(ARRAY, self._dist, out=self._target)

    def _prepare_ours(self) -> None:
        if self._store is not None and not self._setting.reads:
            self._store.prepare()
        if self._setting.reads and not self._setting.prepared:
            self._write_ours(0)

    def ours(self) -> Way:
        """By this package."""
        inside = self._store is not None and not self._setting.reads

        def check(number: int, places: int | None) -> None:
            path = self._our_path(number)
            self._check(path if inside else path / ARRAY, places)

        call = self._read_ours if self._setting.reads else self._write_ours
        way = Way("hyperslab", OURS, call, check=check, prepare=self._prepare_ours)
        if not self._setting.reads:
            way.made = self._our_path
        if inside and self._store is not None:
            way.finish = self._store.finish
        return way

    def _check(self, path: Path, places: int | None) -> None:
        if self._setting.reads:
            assert np.array_equal(self._target, self._array), f"rank {self._comm.rank} read other bytes from {path}"
            self._target.fill(-1)
        elif self._comm.rank == 0:
            check_array(self._setting, path, self._dist.shape, 0, places)

    # ---- libraries -----------------------------------------------------------------------------------------------

    def _path(self, library: Library, number: int) -> Path:
        which = "input" if self._setting.reads else f"{number}"
        return self._setting.place / f"{library.name.split()[-1]}{self._name}-{which}"

    def _write(self, library: Library, number: int) -> None:
        path = self._path(library, number)
        at = unpublished(library, path)
        if self._is_gathered:
            whole = self._whole if library.role == "limit" else self._gathered()
            if self._comm.rank == 0 and whole is not None:
                library.create_all([at], [whole])
        else:
            handle = library.create(at, self._dist.shape, self._chunks) if self._comm.rank == 0 else None
            self._setting.barrier()
            library.put(library.open(at) if handle is None else handle, self._part, self._array)
        finish_array(self._setting, library, [path])

    def _write_input(self, library: Library) -> None:
        """What is read later: each rank writes whole chunks, whatever part of them it reads."""
        shape, path = self._dist.shape, self._path(library, 0)
        self._setting.meet()
        if self._comm.rank == 0:
            library.create(path, shape, self._chunks)
        self._setting.meet()
        handle = library.open(path)
        for cell in cells(shape, self._chunks)[self._comm.rank :: self._comm.size]:
            places = np.ix_(*(np.arange(one.start, one.stop) for one in cell))
            library.put(handle, cell, self._setting.numbers(places, shape))
        self._setting.meet()

    def _gathered(self) -> NDArray[Any] | None:
        parts = self._comm.gather(self._array)
        if parts is None:
            return None
        whole = np.empty(self._dist.shape)
        for rank, part in enumerate(parts):
            whole[self._dist.slices(rank)] = part
        return whole

    def by(self, library: Library) -> Way:
        """By a library."""

        def call(number: int) -> None:
            if self._setting.reads:
                library.get(library.open(self._path(library, number)), self._part, self._target)
            else:
                self._write(library, number)

        def prepare() -> None:
            if self._setting.reads and not self._setting.prepared:
                self._write_input(library)

        way = Way(library.name, library.role, call, prepare=prepare)
        way.check = lambda number, places: self._check(self._path(library, number), places)
        if not self._setting.reads:
            way.made = partial(self._path, library)
        return way

    def ways(self) -> list[Way]:
        """All of them."""
        return [self.ours(), *map(self.by, libraries(durable=self._setting.durable))]


def zarr(setting: Setting) -> tuple[list[Way], int]:
    """One large array; where more ranks wrote it, in their chunks."""
    shape, ranks = setting.size.whole, setting.comm.size
    chunks = None
    if setting.options.get("written_by_more"):
        chunks = hs.Distribution.block(shape, ranks * 4 // 3).local_shape(0)
    return ZarrArray(setting, hs.Distribution.block(shape, ranks), chunks).ways(), 8 * math.prod(shape)


def zarr_shapes(setting: Setting) -> tuple[list[Way], int]:
    """Arrays of many shapes, one a call, into a store that is open."""
    ranks, store = setting.comm.size, Store(setting)
    shapes = shapes_between(setting.size.shapes, setting.size.largest_bytes, ranks)
    rounds = [
        ZarrArray(setting, hs.Distribution(shape, (ranks,), ("block", "*")), name=f"-{number}", store=store).ways()
        for number, shape in enumerate(shapes)
    ]
    return each_in_turn(rounds), 8 * math.prod(shapes[len(shapes) // 2])


def new(setting: Setting) -> tuple[list[Way], int]:
    """One new small array a call, into a store that is open."""
    dist = hs.Distribution((setting.size.each,), (setting.comm.size,))
    return ZarrArray(setting, dist, store=Store(setting)).ways(), 8 * setting.size.each


# ---- many arrays ---------------------------------------------------------------------------------------------------


def many(setting: Setting) -> tuple[list[Way], int]:
    """Many small arrays in one call; peers write whole ones, dealt out to the ranks."""
    comm, size = setting.comm, setting.size
    shape = (size.each,)
    dist = hs.Distribution(shape, (comm.size,))
    names = [f"a{number:04}" for number in range(size.many)]
    held = {name: setting.part(dist, 7 * number) for number, name in enumerate(names)}
    mine = list(range(comm.rank, size.many, comm.size))
    whole = [setting.numbers([np.arange(size.each)], shape, 7 * number) for number in mine]

    def path(who: str, number: int) -> Path:
        return setting.place / f"{who.split()[-1]}-{number}.zarr"

    def check(who: str, number: int, places: int | None) -> None:
        for one in mine if places is None else mine[:: max(1, len(mine) // places)]:
            check_array(setting, path(who, number) / names[one], shape, 7 * one, None)

    def ours(number: int) -> None:
        with hs.open(path("hyperslab", number), "w", comm=comm, durable=setting.durable) as group:
            group.write(held, dist)

    def by(library: Library, number: int) -> None:
        root = path(library.name, number)
        if comm.rank == 0:
            root.mkdir()
            (root / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group", "attributes": {}}')
        setting.barrier()
        library.create_all([unpublished(library, root / names[one]) for one in mine], whole)
        finish_array(setting, library, [root / name for name in names])

    def way(name: str, role: str, call: Callable[[int], None]) -> Way:
        return Way(name, role, call, partial(path, name), partial(check, name))

    ways = [way(one.name, one.role, partial(by, one)) for one in libraries(durable=setting.durable)]
    return [way("hyperslab", OURS, ours), *ways], 8 * size.each * size.many


# ---- sections in place ---------------------------------------------------------------------------------------------


class Section:
    """A section of a Zarr array changes in place; each call writes other values.

    Peers cannot write one chunk by several ranks, so each rank of theirs has whole cells of the grid of chunks.
    """

    def __init__(self, setting: Setting) -> None:
        self._setting, self._comm, extent = setting, setting.comm, setting.size.extent
        self._shape = (extent, extent)
        self._low, self._high = extent // 8, extent - extent // 8
        side = self._high - self._low
        self.nbytes = 8 * side * side
        ranks = self._comm.size
        small = setting.options["chunks"] == "small"
        natural = hs.Distribution.block(self._shape, ranks).local_shape(0)
        self._chunks = (setting.size.chunk, setting.size.chunk) if small else natural
        self._dist = hs.Distribution.block((side, side), ranks)
        self._array, self._turn = setting.part(self._dist), 0
        self._cells = self._own_cells()
        self._pieces = [np.ascontiguousarray(self._expected(self._indices(cell))) for cell in self._cells]

    def _own_cells(self) -> list[tuple[slice, slice]]:
        spans = [range(self._low // size, -(-self._high // size)) for size in self._chunks]
        cells = []
        for at in itertools.product(*spans):
            starts = [place * size for place, size in zip(at, self._chunks, strict=True)]
            ends = [start + size for start, size in zip(starts, self._chunks, strict=True)]
            cell = [slice(max(a, self._low), min(b, self._high)) for a, b in zip(starts, ends, strict=True)]
            cells.append((cell[0], cell[1]))
        return cells[self._comm.rank :: self._comm.size]

    def _indices(self, cell: tuple[slice, slice]) -> tuple[NDArray[np.int64], ...]:
        return np.ix_(*(np.arange(one.start, one.stop) for one in cell))

    def _expected(self, places: Sequence[NDArray[np.int64]]) -> NDArray[Any]:
        """The array after a call: values inside of the section, what was there around it."""
        side = (self._high - self._low,) * 2
        rows, columns = (place - self._low for place in places)
        inside = (rows >= 0) & (rows < side[0]) & (columns >= 0) & (columns < side[1])
        return np.where(inside, self._setting.numbers([rows, columns], side, self._turn), AROUND)

    def _before(self, number: int) -> None:
        step = 1 + number % STEPS
        self._turn += step
        for piece in (self._array, *self._pieces):
            piece += step

    def _path(self, who: str) -> Path:
        return self._setting.place / f"{who.split()[-1]}.zarr" / ARRAY

    def _prepare(self, library: Library | None) -> None:
        """One value everywhere, by the library itself, but for the first call of a process."""
        if self._setting.prepared:
            return
        if library is None:
            whole = hs.Distribution.block(self._shape, self._comm.size)
            with hs.open(self._path("hyperslab").parent, "w", comm=self._comm, durable=False) as group:
                before = np.full(whole.local_shape(self._comm.rank), AROUND)
                group.write(ARRAY, before, whole, chunks=self._chunks)
        elif self._comm.rank == 0:
            self._path(library.name).parent.mkdir()
            handle = library.create(self._path(library.name), self._shape, self._chunks)
            library.put(handle, (slice(0, self._shape[0]), slice(0, self._shape[1])), np.full(self._shape, AROUND))
        self._setting.meet()

    def _ours(self, _: int) -> None:
        section = (slice(self._low, self._high),) * 2
        with hs.open(self._path("hyperslab").parent, "r+", comm=self._comm, durable=self._setting.durable) as group:
            group.write(ARRAY, self._array, self._dist, section=section)

    def _by(self, library: Library, _: int) -> None:
        handle = library.open(self._path(library.name))
        for cell, piece in zip(self._cells, self._pieces, strict=True):
            library.put(handle, cell, piece)
        if library.leaves_sync:
            self._setting.sync()
        else:
            self._setting.barrier()

    def _check(self, who: str, _: int, places: int | None) -> None:
        if self._comm.rank == 0:
            check_chunks(self._path(who), self._shape, self._expected, chunks=places)

    def ways(self) -> list[Way]:
        """All of them."""
        found = [Way("hyperslab", OURS, self._ours, prepare=partial(self._prepare, None))]
        for library in libraries(durable=self._setting.durable):
            prepare = partial(self._prepare, library)
            found.append(Way(library.name, library.role, partial(self._by, library), prepare=prepare))
        for way in found:
            way.before, way.check = self._before, partial(self._check, way.name)
        return found


def section(setting: Setting) -> tuple[list[Way], int]:
    """A section in place, and its bytes."""
    one = Section(setting)
    return one.ways(), one.nbytes
