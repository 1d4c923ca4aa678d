"""Ways of ``hyperslab bench peers`` with small arrays one after another in a raw file that stays open."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import hyperslab as hs
from hyperslab.bench._peers_raw import hint_ways
from hyperslab.bench._peers_ways import LIMIT, OURS, PEER, Setting, Way

__all__ = ["calls"]


class Calls:
    """Arrays of 64 KiB, one a call, contiguous parts on all ranks.

    Files of the ways are alike: after `number` arrays, the next begins. Opening is not timed. What was written is
    compared once it is closed, since readers do not see a new file of this package before.
    """

    def __init__(self, setting: Setting) -> None:
        self._setting, self._comm = setting, setting.comm
        self._elements = setting.size.each
        self.nbytes = 8 * self._elements
        self._dist = hs.Distribution((self._elements,), (self._comm.size,))
        self._first = self._elements * self._comm.rank // self._comm.size
        self._array = setting.part(self._dist)
        self._target = np.zeros_like(self._array)
        self._input = setting.place / "input.raw"
        self._done: dict[str, list[int]] = {}

    def _values(self, number: int) -> Any:
        return self._first + np.arange(self._array.size, dtype="f8") + number % 1000

    def _offset(self, place: int) -> int:
        return 8 * (place * self._elements + self._first)

    def _before(self, number: int) -> None:
        self._array[...] = self._values(number)
        self._target.fill(-1)

    def _place_of(self, number: int) -> int:
        """Which array of the input a call reads."""
        return number % self._setting.size.calls

    def _prepare_input(self) -> None:
        if self._setting.reads and not self._setting.prepared and self._comm.rank == 0:
            numbers = np.arange(self._setting.size.calls)[:, None]
            (np.arange(self._elements, dtype="f8") + numbers % 1000).tofile(self._input)
        self._setting.meet()

    def _check_read(self, number: int, _: int | None) -> None:
        assert np.array_equal(self._target, self._values(self._place_of(number))), "a call read other bytes"

    def _finish(self, path: Path, done: list[int], close: Any) -> None:
        close()
        self._setting.meet()
        for place, number in enumerate(done if not self._setting.reads else []):
            stored = np.fromfile(path, "f8", self._array.size, offset=self._offset(place))
            assert np.array_equal(stored, self._values(number)), f"{path}: call {place} wrote other bytes"

    def _way(self, name: str, role: str, opened: Any, call: Any, close: Any, hints: Any = None) -> Way:
        """A way whose file is opened before the first call, named after it, and closed after the last."""
        done: list[int] = []
        held: dict[str, Any] = {}
        path = self._input if self._setting.reads else self._setting.place / f"{name}-{os.urandom(4).hex()}"
        path = Path(self._comm.bcast(str(path)))

        def prepare() -> None:
            self._prepare_input()
            held["file"] = opened(path)

        def one(number: int) -> None:
            call(held["file"], self._place_of(number) if self._setting.reads else len(done))
            done.append(number)

        way = Way(name, role, one, prepare=prepare, before=self._before, hints=hints)
        way.finish = lambda: self._finish(path, done, lambda: close(held["file"]))
        if self._setting.reads:
            way.check = self._check_read
        return way

    def ours(self) -> Way:
        """By this package."""
        names = [f"a{number}" for number in range(self._setting.size.calls)]

        def opened(path: Path) -> hs.RawFile:
            if self._setting.reads:
                known = dict.fromkeys(names, ((self._elements,), "f8"))
                return hs.open_raw(path, "r", comm=self._comm, order="C", arrays=known)
            return hs.open_raw(path, "w", comm=self._comm, order="C", durable=False)

        def call(file: hs.RawFile, place: int) -> None:
            if self._setting.reads:
                file.read(names[place], self._dist, out=self._target)
            else:
                file.write({f"a{place}": self._array}, self._dist)

        return self._way("hyperslab", OURS, opened, call, lambda file: file.close())

    def mpiio(self, name: str, hints: Mapping[str, str], *, is_candidate: bool) -> Way:
        """By ``Write_at_all`` and ``Read_at_all``."""

        def opened(path: Path) -> MPI.File:
            info = MPI.Info.Create()
            for key, value in hints.items():
                info.Set(key, value)
            mode = MPI.MODE_RDONLY if self._setting.reads else MPI.MODE_CREATE | MPI.MODE_WRONLY
            return MPI.File.Open(self._comm, str(path), mode, info)

        def call(file: MPI.File, place: int) -> None:
            if self._setting.reads:
                file.Read_at_all(self._offset(place), self._target)
            else:
                file.Write_at_all(self._offset(place), self._array)

        way = self._way(name, PEER, opened, call, lambda file: file.Close(), hints)
        way.is_candidate = is_candidate
        return way

    def limit(self) -> Way:
        """By ``pwrite`` and ``preadv``."""
        flags = os.O_RDONLY if self._setting.reads else os.O_WRONLY | os.O_CREAT

        def call(file: int, place: int) -> None:
            if self._setting.reads:
                os.preadv(file, [self._target.data.cast("B")], self._offset(place))
            else:
                os.pwrite(file, self._array.data, self._offset(place))

        return self._way("limit: plain code", LIMIT, lambda path: os.open(path, flags), call, os.close)


def calls(setting: Setting) -> tuple[list[Way], int]:
    """One small array a call, and its bytes."""
    one = Calls(setting)
    rivals = [one.mpiio(name, hints, is_candidate=many) for name, hints, many in hint_ways(setting)]
    return [one.ours(), *rivals, one.limit()], one.nbytes
