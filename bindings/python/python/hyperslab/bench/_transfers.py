"""One case in storage: how it is made ready, done in each way, checked, and removed. All calls are collective."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

import hyperslab as hs
from hyperslab.bench._cases import Case
from hyperslab.bench._checks import Expected, check_chunks, check_file
from hyperslab.bench._emptying import Aside
from hyperslab.bench._grid import Way, why_not_mpiio
from hyperslab.bench._memory import Held, values
from hyperslab.bench._mpiio import MpiIo, element_type, file_type, memory_type

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Transfer"]

#: Of many arrays about so many are compared; of each large one so many chunks or windows of a file, fewer of many.
PLACES = 24
#: Arrays of an existing file hold the values of this array before its section is written.
BEFORE = 101


class Transfer:
    """A case in a directory of its own.

    Parameters
    ----------
    case : Case
        The case.
    directory : Path
        An existing directory, the same for all ranks.
    comm : mpi4py.MPI.Intracomm
        The ranks.
    meet : callable
        A barrier.
    """

    def __init__(self, case: Case, directory: Path, comm: MPI.Intracomm, meet: Callable[[], None]) -> None:
        self.case, self._comm, self._meet = case, comm, meet
        self._aside = Aside(directory) if comm.rank == 0 else None
        self._path = directory / f"case-{case.number}.{case.target}"
        self._header = bytes(range(1, case.header_bytes + 1))
        self._held = Held(case, case.spread, comm.rank)
        # As a program has them, and as the types of MPI-IO are made before the clock runs.
        self._names = case.names
        self._known = dict.fromkeys(self._names, (case.shape, case.dtype))
        self._turn = 0
        self._mpiio: tuple[MPI.Datatype, MPI.Datatype, MPI.Datatype] | None = None
        if case.direction == "write":
            self._held.fill()
        if why_not_mpiio(case) is None:
            self._mpiio = self._make_types()

    def _make_types(self) -> tuple[MPI.Datatype, MPI.Datatype, MPI.Datatype]:
        """An element, this rank's part of the file, and of its memory."""
        case, dist = self.case, self._held.held
        assert isinstance(dist, hs.Distribution)
        element = element_type(case.dtype)
        inside = [view for views in self._held.inside.values() for view in views]
        part = file_type(
            dist,
            self._comm.rank,
            element,
            shape=case.shape,
            section=case.section,
            order=case.order,
            arrays=case.arrays,
        )
        return element, part, memory_type(inside, element, case.order)

    # ---- making ready --------------------------------------------------------------------------------------------

    def make_ready(self) -> None:
        """Bring storage to where the transfer begins: nothing there, or what is read or changed."""
        self.put_aside()
        case = self.case
        if case.direction == "write" and case.section is None:
            return
        before = Held(case, case.written or case.spread, self._comm.rank, section=False)
        if case.direction == "write":
            before.fill_with(BEFORE)
        else:
            before.fill()
        self._write_new(before, {}, durable=True)

    @property
    def changes_in_place(self) -> bool:
        """Whether a write changes what is there."""
        return self.case.section is not None and self.case.direction == "write"

    def put_aside(self) -> None:
        """Put all files aside."""
        self._meet()
        if self._aside is not None:
            self._aside.put(self._path)
        self._meet()

    # ---- what is measured ----------------------------------------------------------------------------------------

    def run(self, way: Way) -> Any:
        """Do it; returns the report, where it is this package that does it."""
        case = self.case
        if way.hints is not None:
            return self._run_mpiio(way)
        if case.direction == "read":
            return self._read(way.options)
        if self.changes_in_place:
            return self._write_section(way.options)
        return self._write_new(self._held, way.options, durable=case.durable)

    def _run_mpiio(self, way: Way) -> None:
        assert self._mpiio is not None
        assert way.hints is not None
        element, part, memory = self._mpiio
        header = self.case.header_bytes
        file = MpiIo(way.name, self._path, self._comm, element, part, way.hints, header_bytes=header)
        if self.case.direction == "read":
            file.read_memory([MPI.BOTTOM, 1, memory])
            return
        mode = MPI.MODE_WRONLY | (0 if self.changes_in_place else MPI.MODE_CREATE)
        file.write_memory([MPI.BOTTOM, 1, memory], mode, durable=self.case.durable)

    def _write_new(self, held: Held, options: dict[str, Any], *, durable: bool) -> Any:
        case = self.case
        opened: dict[str, Any] = {"comm": self._comm, "durable": durable, **options}
        about = held.about
        # A rank without a box does not know the type, so programs say it on all.
        if np.dtype(case.memory_dtype) != np.dtype(case.dtype) or isinstance(held.held, hs.Boxes):
            about["dtype"] = case.dtype
        if case.target == "raw":
            with hs.open_raw(self._path, "w", order=case.order, header=self._header, **opened) as file:
                return file.write(held.given, held.held, **about)
        with hs.open(self._path, "w", **opened) as store:
            return store.write(held.given, held.held, chunks=case.chunks, **about)

    def _slices(self) -> tuple[slice, ...] | None:
        return None if self.case.section is None else tuple(slice(*part) for part in self.case.section)

    def _write_section(self, options: dict[str, Any]) -> Any:
        case, held = self.case, self._held
        opened: dict[str, Any] = {"comm": self._comm, "durable": case.durable, **options}
        about = {"section": self._slices(), **held.about}
        if case.target == "raw":
            layout: dict[str, Any] = {"order": case.order, "header": case.header_bytes, "arrays": self._known}
            with hs.open_raw(self._path, "r+", **layout, **opened) as file:
                return file.write(held.given, held.held, **about)
        with hs.open(self._path, "r+", **opened) as store:
            return store.write(held.given, held.held, **about)

    def _read(self, options: dict[str, Any]) -> Any:
        # As Group.read does, which return arrays and keep the report for themselves.
        case = self.case
        part, opened = self._slices(), {"comm": self._comm, **options}
        if case.target == "raw":
            layout: dict[str, Any] = {"order": case.order, "header": case.header_bytes, "arrays": self._known}
            with hs.open_raw(self._path, **layout, **opened) as file:
                return self._read_from(file, part)
        with hs.open(self._path, **opened) as store:
            return self._read_from(store, part)

    def _read_from(self, group: hs.Group, part: tuple[slice, ...] | None) -> Any:
        held = self._held
        report = None if held.halo else group._core.read_plain(self._names, held.held, held.given, part)
        if report is not None:
            return report
        _, asked, _ = group._prepare_read(self._names, held.held, held.given, {"section": part, "halo": held.halo})
        return group._core.read(self._names, asked)

    # ---- checking ------------------------------------------------------------------------------------------------

    def renew(self) -> None:
        """Before a way is checked: what another one left must not pass for its work.

        New files are removed anyway. Where a section is changed, this rank's part gets other values each time, which
        takes much less time than making the whole array anew.
        """
        if self.case.direction == "read":
            self._held.clear()
        elif self.changes_in_place:
            self._turn += 1
            self._held.fill(self._turn)

    def check(self) -> None:
        """Whether what was asked for is where it should be.

        Raises
        ------
        AssertionError
            When it is not.
        """
        if self.case.direction == "read":
            assert self._held.is_right(), f"case {self.case.number}: rank {self._comm.rank} read other numbers"
        elif self._comm.rank == 0:
            self._check_storage()

    def _check_storage(self) -> None:
        case = self.case
        each = case.stored_bytes // case.arrays
        numbers = range(0, case.arrays, max(1, case.arrays // PLACES))
        places = max(2, PLACES // len(numbers))
        for number in numbers:
            expected = self._expected(number)
            if case.target == "zarr":
                check_chunks(self._path / self._names[number], case.shape, expected, chunks=places)
            else:
                at = case.header_bytes + number * each
                check_file(self._path, case.shape, case.dtype, expected, order=case.order, offset=at, windows=places)
        if case.target == "raw":
            assert self._path.stat().st_size == case.header_bytes + case.stored_bytes, f"{self._path} has another size"

    def _expected(self, number: int) -> Expected:
        section = self.case.section

        def whole(places: Sequence[NDArray[np.int64]]) -> NDArray[Any]:
            return values(places, number + self._turn)

        def changed(places: Sequence[NDArray[np.int64]]) -> NDArray[Any]:
            assert section is not None
            inside = np.ones((1,) * places[0].ndim, bool)
            for place, (start, stop, step) in zip(places, section, strict=True):
                inside = inside & (place >= start) & (place < stop) & ((place - start) % step == 0)
            return np.where(inside, values(places, number + self._turn), values(places, BEFORE))

        return changed if self.changes_in_place else whole

    def close(self) -> None:
        """Put all files aside and free what MPI holds."""
        self.put_aside()
        for made in self._mpiio or ():
            made.Free()
        self._mpiio = None
