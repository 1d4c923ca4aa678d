"""Random transfers to storage and back, compared with the oracle and with what other tools read.

Usage: roundtrip DIRECTORY SEED CASES
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import zarr
from numpy.typing import NDArray

from global_arrays import Memory, Spread, replace, same, select
from random_cases import (
    OWN,
    Case,
    Random,
    as_user_says,
    section_shape,
    some_case,
    some_section,
    some_spread,
    some_values,
)

Values = dict[str, NDArray[Any]]
HEADER = b"seventeen bytes.."


class Runner:
    """One rank's run of cases."""

    def __init__(self, comm: Any, directory: Path) -> None:
        self.comm = comm
        self.directory = directory
        self.infeasible: Counter[str] = Counter()

    @property
    def rank(self) -> int:
        return int(self.comm.rank)

    def local(self, values: Values, spread: Spread, memory: Memory) -> Values:
        """This rank's parts, as they lie in memory."""
        return {name: memory.hold(spread.part(each, self.rank)) for name, each in values.items()}

    def check_part(
        self, found: NDArray[Any], expected: NDArray[Any], spread: Spread, memory: Memory, what: str
    ) -> None:
        """Compare what a rank has read with its part of the global array."""
        if spread.holds(self.rank):
            same(memory.inner(found), spread.part(expected, self.rank), f"{what}, rank {self.rank}")

    def forced(self, strategy: str | None, call: Any) -> Any:
        """Make a call with a strategy; where that one cannot do it, all ranks hear so, and any other is taken."""
        if strategy is None:
            return call(None)
        try:
            return call(strategy)
        except hs.InvalidError as error:
            if strategy not in OWN or "cannot share a chunk" not in str(error):
                raise
            self.infeasible[strategy] += 1
            return call(None)

    # ---- zarr --------------------------------------------------------------------------------------------------

    def zarr(self, store: hs.Group, case: Case, random: Random, values: Values) -> Values:
        """Write to a store, change a section, read all and a section; returns what other tools must find."""
        memory, names = case.memory, list(values)
        locals_ = self.local(values, case.wrote, memory)
        options: dict[str, Any] = {
            "chunks": case.chunks,
            "dtype": case.kinds[1],
            "casting": "unsafe",
            "checksum": case.checksum,
            "zstd": case.zstd,
            "halo": memory.halo,
            "attributes": {"number": case.number},
            "dimension_names": [f"d{dim}" for dim in range(len(case.shape))],
        }
        dist = case.wrote.distribution()
        if len(names) == 1:
            name, array = names[0], locals_[names[0]]
            self.forced(case.strategy, lambda strategy: store.write(name, array, dist, strategy=strategy, **options))
        else:
            self.forced(case.strategy, lambda strategy: store.write(locals_, dist, strategy=strategy, **options))
        stored = converted(values, case.kinds[1])
        if random.random() < 0.5:
            self.change(store, case, random, stored)
        if case.shape and random.random() < 0.25:
            self.grow(store, case, random, stored)
        self.read_back(store, case, random, stored)
        return stored

    def change(self, store: hs.Group, case: Case, random: Random, stored: Values) -> None:
        """Write a section of existing arrays."""
        quads = some_section(random, case.shape)
        spread = some_spread(random, section_shape(quads), self.comm.size)
        new = some_values(random, spread.shape, case.kinds[0], any_bits=case.any_bits)
        for name, array in stored.items():
            part = spread.part(new, self.rank)
            section = as_user_says(random, quads)
            dist = spread.distribution()
            self.forced(
                case.strategy,
                lambda strategy, name=name, part=part, section=section, dist=dist: store.write(
                    name, part, dist, section=section, strategy=strategy, casting="unsafe"
                ),
            )
            replace(array, quads, cast(new, array.dtype))

    def grow(self, store: hs.Group, case: Case, random: Random, stored: Values) -> None:
        """Append to the first array, along any dimension."""
        name = next(iter(stored))
        axis = int(random.integers(len(case.shape)))
        shape = list(case.shape)
        shape[axis] = int(random.integers(1, 5))
        spread = some_spread(random, tuple(shape), self.comm.size)
        new = some_values(random, spread.shape, case.kinds[0], any_bits=case.any_bits)
        store.append(
            name,
            case.memory.hold(spread.part(new, self.rank)),
            spread.distribution(),
            axis=axis,
            halo=case.memory.halo,
            casting="unsafe",
        )
        stored[name] = np.concatenate([stored[name], cast(new, stored[name].dtype)], axis)

    def read_back(self, store: hs.Group, case: Case, random: Random, stored: Values) -> None:
        """Read with another distribution and type: several arrays at once, into given memory, and a section."""
        alike = [name for name, each in stored.items() if each.shape == case.shape]
        kind, target = case.kinds[2], case.target
        expected = {name: cast(stored[name], kind) for name in alike}
        dist = case.reads.distribution()
        if alike and random.random() < 0.5:
            given = {name: target.hold(np.zeros_like(case.reads.part(expected[name], self.rank))) for name in alike}
            found = self.forced(
                case.strategy,
                lambda strategy: store.read(
                    alike, dist, out=given, halo=target.halo, strategy=strategy, casting="unsafe"
                ),
            )
            for name in alike:
                assert found[name] is given[name]
                self.check_part(found[name], expected[name], case.reads, target, f"'{name}' read into memory")
                assert target.gaps_are_whole(found[name]), f"'{name}': halo were written"
        elif alike:
            found = self.forced(
                case.strategy,
                lambda strategy: store.read(
                    alike,
                    dist,
                    dtype=kind,
                    order=target.order,
                    halo=target.halo,
                    strategy=strategy,
                    casting="unsafe",
                ),
            )
            for name in alike:
                self.check_part(found[name], expected[name], case.reads, target, f"'{name}' read")
        name, whole = next(iter(stored.items()))
        quads = some_section(random, whole.shape)
        spread = some_spread(random, section_shape(quads), self.comm.size)
        section = as_user_says(random, quads)
        part = store.read(name, spread.distribution(), section=section)
        self.check_part(part, select(whole, quads), spread, Memory(), f"section {section} of '{name}'")
        if random.random() < 0.2:
            same(store.read(name), whole, f"all of '{name}', rank {self.rank}")

    # ---- one file ----------------------------------------------------------------------------------------------

    def raw(self, path: Path, case: Case, random: Random, values: Values) -> Values:
        """Write a raw file, change a section in place, read all with another distribution."""
        memory = case.memory
        stored = converted(values, case.kinds[1])
        with hs.open_raw(
            path,
            "w",
            comm=self.comm,
            order=case.order,
            header=HEADER,
            durable=False,
            strategy=case.strategy,
        ) as file:
            for arrays in at_once(case, self.local(values, case.wrote, memory)):
                if case.number % 3 == 0 and self.rank == case.number % self.comm.size:
                    # How arrays lie in memory is each rank's own affair: here the last lies as no other does.
                    last = list(arrays)[-1]
                    other = replaced(memory, order="F" if memory.order == "C" else "C", step=2)
                    arrays[last] = other.hold(case.wrote.part(values[last], self.rank))
                dist = case.wrote.distribution()
                file.write(arrays, dist, dtype=case.kinds[1], halo=memory.halo, casting="unsafe")
        known = dict.fromkeys(values, (case.shape, case.kinds[1]))
        given: dict[str, Any] = {
            "comm": self.comm,
            "order": case.order,
            "header": len(HEADER),
            "arrays": known,
            "strategy": case.strategy,
        }
        if random.random() < 0.5:
            quads = some_section(random, case.shape)
            spread = some_spread(random, section_shape(quads), self.comm.size)
            new = some_values(random, spread.shape, case.kinds[0], any_bits=case.any_bits)
            with hs.open_raw(path, "r+", durable=False, **given) as file:
                for arrays in at_once(case, {name: spread.part(new, self.rank) for name in values}):
                    section = as_user_says(random, quads)
                    file.write(arrays, spread.distribution(), section=section, casting="unsafe")
                for name in values:
                    replace(stored[name], quads, cast(new, stored[name].dtype))
        with hs.open_raw(path, **given) as file:
            assert file.header == HEADER
            expected = {name: cast(whole, case.kinds[2]) for name, whole in stored.items()}
            for wholes in at_once(case, expected):
                empty = {name: np.zeros_like(case.reads.part(whole, self.rank)) for name, whole in wholes.items()}
                targets = {name: case.target.hold(part) for name, part in empty.items()}
                dist = case.reads.distribution()
                found = file.read(list(wholes), dist, out=targets, halo=case.target.halo, casting="unsafe")
                for name, whole in wholes.items():
                    self.check_part(found[name], whole, case.reads, case.target, f"'{name}' of a raw file")
                    assert case.target.gaps_are_whole(found[name]), f"'{name}': halo were written"
            name, whole = next(iter(stored.items()))
            quads = some_section(random, whole.shape)
            spread = some_spread(random, section_shape(quads), self.comm.size)
            section = as_user_says(random, quads)
            part = file.read(name, spread.distribution(), section=section if whole.ndim else None)
            native = cast(select(whole, quads), whole.dtype.newbyteorder("="))
            self.check_part(part, native, spread, Memory(), f"section {section} of a raw file's '{name}'")
        return stored

    def npy(self, path: Path, case: Case, random: Random, values: NDArray[Any]) -> NDArray[Any]:
        """Save and load an npy file."""
        array = case.memory.hold(case.wrote.part(values, self.rank))
        hs.save_npy(
            path,
            array,
            case.wrote.distribution(),
            comm=self.comm,
            order=case.order,
            dtype=case.kinds[1],
            halo=case.memory.halo,
            casting="unsafe",
            durable=False,
        )
        stored = cast(values, case.kinds[1])
        found = hs.load_npy(
            path,
            case.reads.distribution(),
            comm=self.comm,
            dtype=case.kinds[2],
            order=case.target.order,
            halo=case.target.halo,
            casting="unsafe",
        )
        self.check_part(found, cast(stored, case.kinds[2]), case.reads, case.target, "npy file")
        quads = some_section(random, case.shape)
        spread = some_spread(random, section_shape(quads), self.comm.size)
        part = hs.load_npy(path, spread.distribution(), comm=self.comm, section=list(quads) if quads else None)
        self.check_part(part, select(stored, quads).astype(part.dtype), spread, Memory(), f"section {quads}")
        return stored

    # ---- all ---------------------------------------------------------------------------------------------------

    def run(self, seed: int, cases: range) -> list[str]:
        """Run all cases; a line for each."""
        lines: list[str] = []
        expected: dict[str, Any] = {}
        steps: dict[str, hs.Step] = {}
        with hs.open(self.directory / "cases.zarr", "w", comm=self.comm, durable=False, arrival_seconds=60) as store:
            for number in cases:
                case, random = some_case(seed, number, self.comm.size)
                started = time.monotonic()
                try:
                    self.one(store, steps, case, random, expected)
                except Exception as error:
                    error.add_note(f"in case {number} of seed {seed} on {self.comm.size} ranks: {case}")
                    raise
                lines.append(f"case {number:3} {case.form:4} {time.monotonic() - started:6.3f} s")
        self.comm.barrier()
        if self.rank == 0:
            self.check_with_other_tools(expected)
        self.comm.barrier()
        return lines

    def one(
        self, store: hs.Group, steps: dict[str, hs.Step], case: Case, random: Random, expected: dict[str, Any]
    ) -> None:
        """Run one case."""
        names = [f"{chr(97 + i)}{case.number}" for i in range(case.arrays)]
        values = {name: some_values(random, case.shape, case.kinds[0], any_bits=case.any_bits) for name in names}
        if case.form == "zarr":
            if case.in_step:
                with store.step(f"step{case.number}", attributes={"number": case.number}) as step:
                    stored = self.zarr(step, case, random, values)
                expected |= {f"step{case.number}/{name}": each for name, each in stored.items()}
            else:
                expected |= self.zarr(store, case, random, values)
        elif case.form == "raw":
            path = self.directory / f"case{case.number}.raw"
            expected[path.name] = (self.raw(path, case, random, values), case.order)
        else:
            path = self.directory / f"case{case.number}.npy"
            expected[path.name] = self.npy(path, case, random, values[names[0]])

    def check_with_other_tools(self, expected: dict[str, Any]) -> None:
        """Compare the files with what zarr-python and NumPy find in them."""
        group = zarr.open_group(self.directory / "cases.zarr", mode="r")
        assert not (self.directory / "cases.zarr" / ".hyperslab").exists()
        for name, values in expected.items():
            if name.endswith(".raw"):
                arrays, order = values
                content = (self.directory / name).read_bytes()
                body = b"".join(each.tobytes(order) for each in arrays.values())
                assert content == HEADER + body, f"{name} has other bytes"
            elif name.endswith(".npy"):
                same(np.load(self.directory / name), values, name)
            else:
                found = np.asarray(group[name][...])
                same(found, values, f"zarr-python's '{name}'")


def cast(values: NDArray[Any], kind: Any) -> NDArray[Any]:
    """Values of another type, as NumPy converts them."""
    return values.astype(kind)


def at_once(case: Case, arrays: Values) -> list[Values]:
    """What goes into each call: all arrays, or one of them."""
    return [arrays] if case.number % 2 == 0 else [{name: array} for name, array in arrays.items()]


def converted(values: Values, kind: Any) -> Values:
    """All arrays with another type."""
    return {name: cast(each, kind) for name, each in values.items()}


def run_cases(comm: Any, directory: Path, seed: int, cases: int) -> str:
    """Run cases on the ranks of a communicator; the summary."""
    runner = Runner(comm, directory)
    lines = runner.run(seed, range(cases))
    lines.append(f"{cases} cases on {comm.size} ranks, {sum(runner.infeasible.values())} not possible as forced")
    return "\n".join(lines)


def main() -> None:
    """Run under MPI."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    summary = run_cases(comm, Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    if comm.rank == 0:
        print(summary)


if __name__ == "__main__":
    main()
