"""Random pieces to storage and back, under every strategy, compared with NumPy and with what other tools read.

Usage: pieces DIRECTORY SEED CASES
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import zarr
from numpy.typing import NDArray

from global_arrays import Memory, replace, same, select
from random_cases import (
    OWN,
    as_user_says,
    other_kind,
    section_shape,
    some_kind,
    some_memory,
    some_section,
    some_shape,
    some_values,
)
from random_pieces import Boxed, Held, Random, some_readers, some_writers

HEADER = b"eleven byte"
ALL = ("root-gather", "independent", "data-sieving", "two-phase", "server-directed", "disk-directed")


def many_elements(random: Random) -> tuple[int, ...]:
    """A shape of which ranks hold so many runs that they are moved as lists."""
    ndim = int(random.integers(1, 4))
    side = int(3000 ** (1 / ndim))
    return tuple(int(random.integers(max(side // 3, 1), side + 1)) for _ in range(ndim))


class Runner:
    """One rank's run of cases."""

    def __init__(self, comm: Any, directory: Path) -> None:
        self.comm = comm
        self.directory = directory
        self.strategies: Counter[str] = Counter()

    def local(self, held: Held, values: NDArray[Any], memory: Memory) -> Any:
        """This rank's local arrays, as they lie in memory."""
        arrays = [memory.hold(part) for part in held.take(values, self.comm.rank)]
        return arrays if isinstance(held, Boxed) else arrays[0]

    def check(self, found: Any, held: Held, values: NDArray[Any], memory: Memory, what: str) -> None:
        """Compare what a rank has read with the same elements of the global array."""
        arrays = found if isinstance(held, Boxed) else [found]
        for number, (array, part) in enumerate(zip(arrays, held.take(values, self.comm.rank), strict=True)):
            same(memory.inner(array), part, f"{what}, local array {number} of rank {self.comm.rank}")

    def target(self, held: Held, values: NDArray[Any], memory: Memory) -> Any:
        """Local arrays to read into, of other values."""
        return self.local(held, np.zeros_like(values), memory)

    def gaps_are_whole(self, found: Any, memory: Memory) -> bool:
        """Whether nothing but the elements was written."""
        return all(memory.gaps_are_whole(array) for array in (found if isinstance(found, list) else [found]))

    def forced(self, strategy: str | None, call: Any, *, may_fail: bool = True) -> Any:
        """Make a call with a strategy, or without where it cannot do it, as all ranks hear alike."""
        try:
            result = call(strategy)
        except hs.InvalidError as error:
            if not (may_fail and strategy in OWN and "cannot share a chunk" in str(error)):
                raise
            return call(None)
        self.strategies[str(strategy)] += 1
        return result

    # ---- zarr --------------------------------------------------------------------------------------------------

    def zarr(self, store: hs.Group, name: str, shape: tuple[int, ...], random: Random) -> dict[str, NDArray[Any]]:
        """Write, change and append in pieces, read pieces; returns what other tools must find of each array."""
        ranks, kind = self.comm.size, some_kind(random)
        stored_kind = other_kind(random, kind)
        read_kind = other_kind(random, stored_kind)
        any_bits = len({each[1:] for each in (kind, stored_kind, read_kind)}) == 1
        strategy = [None, *ALL][int(random.integers(7))]
        memory = some_memory(random, read_only=True)
        held, values = some_writers(random, shape, ranks), some_values(random, shape, kind, any_bits=any_bits)
        fill = int(random.integers(0, 2))
        options: dict[str, Any] = {
            "chunks": [int(random.integers(1, max(extent, 1) + 2)) for extent in shape]
            if random.random() < 0.8
            else None,
            "dtype": stored_kind,
            "casting": "unsafe",
            "zstd": 1 if random.random() < 0.3 else None,
            "checksum": bool(random.random() < 0.7),
            "fill_value": bool(fill) if stored_kind[1] == "b" else fill,
            "halo": memory.halo,
        }
        twice = bool(random.random() < 0.3)
        arrays = {each: self.local(held, values, memory) for each in ([name, f"{name}b"] if twice else [name])}
        pieces = held.pieces(self.comm.rank)
        self.forced(strategy, lambda forced: store.write(arrays, pieces, strategy=forced, **options))
        expected = np.where(held.covered(), values.astype(stored_kind), np.array(fill).astype(stored_kind))
        expected = np.asarray(expected).astype(stored_kind)
        if twice:
            both = store.read(list(arrays), held.pieces(self.comm.rank), strategy=strategy)
            for each in arrays:
                self.check(both[each], held, expected, Memory(), f"'{each}' as it was written")
        if shape and random.random() < 0.6:
            quads = some_section(random, shape)
            changing = some_writers(random, section_shape(quads), ranks)
            new = some_values(random, changing.shape, kind, any_bits=any_bits)
            section = as_user_says(random, quads)
            parts, among = dict.fromkeys(arrays, self.local(changing, new, Memory())), changing.pieces(self.comm.rank)
            self.forced(
                strategy,
                lambda forced: store.write(parts, among, section=section, strategy=forced, casting="unsafe"),
            )
            old = select(expected, quads)
            replace(expected, quads, np.where(changing.covered(), new.astype(stored_kind), old))
        all_expected = dict.fromkeys(arrays, expected)
        if shape and random.random() < 0.4:
            all_expected[name] = self.grow(store, name, random, expected, (kind, any_bits, fill))
        self.read_back(store, name, random, (all_expected[name], read_kind), strategy)
        return all_expected

    def grow(
        self, store: hs.Group, name: str, random: Random, expected: NDArray[Any], how: tuple[str, bool, int]
    ) -> NDArray[Any]:
        """Append pieces; what is left out of what is appended has the fill value."""
        kind, any_bits, fill = how
        axis = int(random.integers(expected.ndim))
        shape = list(expected.shape)
        shape[axis] = int(random.integers(1, 5))
        held = some_writers(random, tuple(shape), self.comm.size)
        new = some_values(random, held.shape, kind, any_bits=any_bits)
        local = self.local(held, new, Memory())
        store.append(name, local, held.pieces(self.comm.rank), axis=axis, casting="unsafe")
        more = np.where(held.covered(), new.astype(expected.dtype), np.array(fill).astype(expected.dtype))
        return np.concatenate([expected, more.astype(expected.dtype)], axis)

    def read_back(
        self, store: hs.Group, name: str, random: Random, what: tuple[NDArray[Any], str], strategy: str | None
    ) -> None:
        """Read pieces of all, with conversion and into given memory, and pieces of a section."""
        expected, kind = what
        held, memory = some_readers(random, expected.shape, self.comm.size), some_memory(random, read_only=False)
        pieces, converted = held.pieces(self.comm.rank), expected.astype(kind)
        out = self.target(held, converted, memory) if random.random() < 0.5 else None
        found = self.forced(
            strategy,
            lambda forced: store.read(
                name,
                pieces,
                out=out,
                halo=memory.halo,
                strategy=forced,
                casting="unsafe",
                **({} if out is not None else {"dtype": kind, "order": memory.order}),
            ),
            may_fail=False,
        )
        self.check(found, held, converted, memory, f"'{name}' read")
        if out is not None:
            assert found is out
            assert self.gaps_are_whole(found, memory), f"'{name}': halo were written"
        quads = some_section(random, expected.shape)
        among = some_readers(random, section_shape(quads), self.comm.size)
        part = store.read(name, among.pieces(self.comm.rank), section=as_user_says(random, quads), strategy=strategy)
        self.check(part, among, select(expected, quads), Memory(), f"section {quads} of '{name}'")

    # ---- one file ----------------------------------------------------------------------------------------------

    def raw(self, path: Path, shape: tuple[int, ...], random: Random) -> tuple[NDArray[Any], str]:
        """Write pieces behind a header, change a section in place, read pieces."""
        kind, order = some_kind(random), "CF"[int(random.integers(2))]
        stored_kind = other_kind(random, kind)
        if random.random() < 0.3:
            stored_kind = np.dtype(stored_kind).newbyteorder(">").str
        any_bits = kind[1:] == stored_kind[1:]
        strategy = [None, *ALL][int(random.integers(7))]
        given: dict[str, Any] = {"comm": self.comm, "order": order, "strategy": strategy, "durable": False}
        memory, held = some_memory(random, read_only=True), some_writers(random, shape, self.comm.size)
        values = some_values(random, shape, kind, any_bits=any_bits)
        with hs.open_raw(path, "w", header=HEADER, **given) as file:
            local = dict.fromkeys(("a", "b"), self.local(held, values, memory))
            pieces = held.pieces(self.comm.rank)
            file.write(local, pieces, dtype=stored_kind, halo=memory.halo, casting="unsafe")
        expected = np.where(held.covered(), values.astype(stored_kind), np.zeros((), stored_kind)).astype(stored_kind)
        given |= {"header": len(HEADER), "arrays": dict.fromkeys(("a", "b"), (shape, stored_kind))}
        if shape and random.random() < 0.6:
            quads = some_section(random, shape)
            changing = some_writers(random, section_shape(quads), self.comm.size)
            new = some_values(random, changing.shape, kind, any_bits=any_bits)
            with hs.open_raw(path, "r+", **given) as file:
                part = dict.fromkeys(("b", "a"), self.local(changing, new, Memory()))
                section = as_user_says(random, quads)
                file.write(part, changing.pieces(self.comm.rank), section=section, casting="unsafe")
            old = select(expected, quads)
            replace(expected, quads, np.where(changing.covered(), new.astype(stored_kind), old))
        with hs.open_raw(path, **given) as file:
            among, target = some_readers(random, shape, self.comm.size), some_memory(random, read_only=False)
            out = self.target(among, expected, target)
            found = file.read("a", among.pieces(self.comm.rank), out=out, halo=target.halo)
            self.check(found, among, expected, target, "raw file")
            assert self.gaps_are_whole(found, target), "halo were written"
            several = file.read(["b", "a"], among.pieces(self.comm.rank), dtype=stored_kind)
            for name, each in several.items():
                self.check(each, among, expected, Memory(), f"'{name}' of a raw file")
        self.strategies[str(strategy)] += 1
        return expected, order

    def npy(self, path: Path, shape: tuple[int, ...], random: Random) -> NDArray[Any]:
        """Save and load pieces."""
        kind = some_kind(random)
        held, values = some_writers(random, shape, self.comm.size), some_values(random, shape, kind, any_bits=True)
        order: Any = "CF"[int(random.integers(2))]
        local, pieces = self.local(held, values, Memory()), held.pieces(self.comm.rank)
        hs.save_npy(path, local, pieces, comm=self.comm, order=order, dtype=kind, durable=False)
        expected = np.where(held.covered(), values, np.zeros((), kind)).astype(kind)
        among = some_readers(random, shape, self.comm.size)
        found = hs.load_npy(path, among.pieces(self.comm.rank), comm=self.comm, dtype=kind)
        self.check(found, among, expected, Memory(), "npy file")
        return expected

    # ---- all ---------------------------------------------------------------------------------------------------

    def run(self, seed: int, cases: int) -> None:
        """Run all cases."""
        arrays: dict[str, NDArray[Any]] = {}
        files: dict[str, Any] = {}
        with hs.open(self.directory / "cases.zarr", "w", comm=self.comm, durable=False, arrival_seconds=60) as store:
            for number in range(cases):
                random = np.random.default_rng([seed, number, self.comm.size])
                shape = many_elements(random) if number % 3 == 2 else some_shape(random)
                form = random.integers(4)
                try:
                    if form == 0:
                        files[f"{number}.raw"] = self.raw(self.directory / f"{number}.raw", shape, random)
                    elif form == 1:
                        files[f"{number}.npy"] = self.npy(self.directory / f"{number}.npy", shape, random)
                    else:
                        arrays |= self.zarr(store, f"a{number}", shape, random)
                except Exception as error:
                    error.add_note(f"in case {number} of seed {seed} on {self.comm.size} ranks: form {form}, {shape}")
                    raise
        self.comm.barrier()
        if self.comm.rank == 0:
            self.check_with_other_tools(arrays, files)
        self.comm.barrier()

    def check_with_other_tools(self, arrays: dict[str, NDArray[Any]], files: dict[str, Any]) -> None:
        """Compare the files with what zarr-python and NumPy find in them."""
        group = zarr.open_group(self.directory / "cases.zarr", mode="r")
        for name, expected in arrays.items():
            same(np.asarray(group[name][...]), expected.astype(expected.dtype.newbyteorder("=")), f"zarr's '{name}'")
        for name, expected in files.items():
            if name.endswith(".npy"):
                same(np.load(self.directory / name), expected, name)
            else:
                content = (self.directory / name).read_bytes()
                assert content == HEADER + 2 * expected[0].tobytes(expected[1]), f"{name} has other bytes"


def run_cases(comm: Any, directory: Path, seed: int, cases: int) -> dict[str, int]:
    """Run cases on the ranks of a communicator; how often each strategy did it."""
    runner = Runner(comm, directory)
    runner.run(seed, cases)
    return dict(runner.strategies)


def main() -> None:
    """Run under MPI."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    done = run_cases(comm, Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    if comm.rank == 0:
        print(f"all cases on {comm.size} ranks: {done}")


if __name__ == "__main__":
    main()
