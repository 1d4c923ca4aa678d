"""Random collective calls on a store and a file that other programs use, too, while calls of the system fail.

Usage: soaking DIRECTORY WHO SECONDS SEED

What a program has made is in its own names; what each holds is known from ``WHO.json``, which says before a call what
holds before and after it. So a program that was killed goes on from there: each array is the old or the new one. A
failed call leaves the same.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from fault_library import Fault, Faults
from telling import tell

COMM = MPI.COMM_WORLD
CHUNK = 16
#: Extents of arrays, and how many of them there are at most in each place.
EXTENTS = (5, 48, 1000)
ARRAYS = 4
#: One call in so many has a fault of the system in it.
FAULT_EVERY = 6
CLASSES = ("open", "read", "write", "sync", "rename", "mkdir", "unlink")
EIO, ENOSPC = 5, 28
PLACES = ("store", "file")

#: Extent and value of each array by place and name; values rise by one from element to element.
Known = dict[str, tuple[int, float]]


class Soaking:
    """One rank of a program."""

    def __init__(self, directory: Path, who: str, seed: int) -> None:
        self.directory, self.who = directory, who
        self.random = np.random.default_rng(seed)
        self.known: Known = {}
        self.faults = Faults()
        self.turn = 0
        self.counts = {"calls": 0, "failed": 0, "faults": 0}
        self.stores: dict[str, hs.Group] = {}

    # ---- what is known

    def note(self, after: Known) -> None:
        """Rank 0 writes down what may be from now on; the others go on when it is there."""
        if COMM.rank == 0:
            path = self.directory / f"{self.who}.json"
            tell(path, {"turn": self.turn, "before": self.known, "after": after})
        COMM.Barrier()

    def resume(self) -> None:
        """Take over what a program of this name that was killed has left."""
        path = self.directory / f"{self.who}.json"
        noted = json.loads(path.read_text()) if COMM.rank == 0 and path.exists() else None
        noted = COMM.bcast(noted)
        for place in PLACES:
            self.opened(place, "a").close()
            self.stores[place] = self.opened(place, "r+")
        if noted:
            self.turn = noted["turn"]
            self.settle(*({name: tuple(held) for name, held in noted[when].items()} for when in ("before", "after")))

    def opened(self, place: str, mode: Any) -> hs.Group:
        """Open one: the store is everybody's, the file this program's own."""
        path = self.directory / ("run.zarr" if place == "store" else f"{self.who}.h5")
        while True:
            try:
                return hs.open(path, mode, comm=COMM, arrival_seconds=60, progress_seconds=30, storage_seconds=30)
            except hs.BusyError:
                # Of a program that was killed, the system has not yet ended all.
                time.sleep(0.05)

    def settle(self, before: Known, after: Known) -> None:
        """Find out which holds of what a call that failed, or a program that was killed, would have changed."""
        self.known = {}
        for key in sorted(before | after):
            place, name = key.split(":")
            store = self.stores[place]
            found = self.values(store, name)
            fits = [held for held in (before.get(key), after.get(key)) if same(found, held)]
            torn = found is not None and self.is_marked(place, name)
            assert fits or torn, f"{self.who}: {key} is {found}, not {before.get(key)} or {after.get(key)}"
            held = fits[0] if fits else None
            if not fits and "/" not in name:
                # An update in place did not end, and is named: all of it is written again.
                self.faults.disarm()
                held = (len(found), float(self.turn))  # type: ignore[arg-type]
                self.write(store, name, held)
            if held is not None:
                self.known[key] = held

    def is_marked(self, place: str, name: str) -> bool:
        """Whether a marker says that an update has not ended."""
        marker = f"run.zarr/{name}/.hyperslab-update" if place == "store" else f".{self.who}.h5.hyperslab-update"
        return bool(COMM.bcast((self.directory / marker).exists()))

    def values(self, store: hs.Group, name: str) -> NDArray[np.float64] | None:
        """The elements of an array as all ranks see them, if it is there."""
        store.refresh()
        step, _, last = name.rpartition("/")
        group = store if not step else (store.group(step) if step in store.groups() else None)
        return None if group is None or last not in group else group.read(last)

    # ---- what is done

    def part(self, extent: int, value: float, base: int = 0) -> dict[str, Any]:
        """What this rank holds of an array."""
        spread = hs.Distribution.block((extent,), COMM.size)
        (mine,) = spread.indices(COMM.rank)
        return {"array": value + base + np.asarray(mine, dtype=float), "distribution": spread}

    def write(self, store: hs.Group, name: str, held: tuple[int, float]) -> None:
        """Write a whole array that is there."""
        store.write(name, *self.part(*held).values(), section=(slice(0, held[0]),))

    def change(self) -> None:
        """Do something random, and check that it, or nothing, has happened."""
        self.turn += 1
        place = PLACES[self.random.integers(2)]
        store, value = self.stores[place], float(self.turn)
        mine = [key for key in self.known if key.startswith(place) and "/" not in key]
        steps = [key for key in self.known if key.startswith(place) and "/" in key]
        new = f"{self.who}{self.turn}"
        kinds = ["new", "step", "reopen", *(["section", "append", "delete", "attributes", "read"] if mine else [])]
        kind = kinds[self.random.integers(len(kinds))]
        if len(mine) >= ARRAYS and kind in ("new", "step"):
            kind = "delete"
        key = mine[self.random.integers(len(mine))] if mine else ""
        name = key.partition(":")[2]
        # To look at it is each rank's own business, which no fault shall hit.
        array = store[name] if mine else None
        after, extent = dict(self.known), int(self.random.choice(EXTENTS))
        given = self.part(extent, value)
        options: dict[str, Any] = {"chunks": (CHUNK,)} | ({"maxshape": (None,)} if place == "file" else {})

        def step() -> None:
            with store.step(f"s{new}") as group:
                group.write("x", *given.values(), **options)

        def again() -> None:
            store.close()
            self.stores[place] = self.opened(place, "r+")

        calls: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
            "new": (
                lambda: store.write(new, *given.values(), **options),
                lambda: after.update({f"{place}:{new}": (extent, value)}),
            ),
            "step": (step, lambda: after.update({f"{place}:s{new}/x": (extent, value)})),
            "section": (
                lambda: self.write(store, name, (after[key][0], value)),
                lambda: after.update({key: (after[key][0], value)}),
            ),
            "append": (
                lambda: store.append(name, *self.part(extent, self.known[key][1], self.known[key][0]).values()),
                lambda: after.update({key: (after[key][0] + extent, after[key][1])}),
            ),
            "delete": (lambda: store.delete(name), lambda: after.pop(key)),
            "attributes": (lambda: array.attrs.update(turn=self.turn), lambda: None),
            "read": (lambda: store.read(name), lambda: None),
            "reopen": (again, lambda: None),
        }
        if len(steps) >= ARRAYS:
            old = steps[0].partition(":")[2].partition("/")[0]
            calls[kind] = (lambda: store.delete(old), lambda: after.pop(steps[0]))
        call, changes = calls[kind]
        changes()
        self.note(after)
        self.carry_out(call, after, kind)

    def carry_out(self, call: Callable[[], object], after: Known, kind: str) -> None:
        """Make a call, perhaps with a fault in it."""
        suffers = bool(self.random.integers(FAULT_EVERY) == 0) and kind != "reopen"
        fault = Fault(
            str(self.random.choice(CLASSES)),
            int(self.random.integers(1, 6)),
            "fail",
            int(self.random.choice((EIO, ENOSPC))),
        )
        rank = int(self.random.integers(COMM.size))
        self.faults.watch(self.directory)
        if suffers and rank == COMM.rank:
            self.faults.arm(fault)
        failed = ""
        try:
            call()
        except hs.Error as error:
            failed = f"{type(error).__name__}: {error}"
        self.faults.disarm()
        hits = COMM.allreduce(self.faults.hits())
        self.faults.rest()
        self.counts["calls"] += 1
        self.counts["faults"] += hits > 0
        all_failed = COMM.allgather(bool(failed))
        assert len(set(all_failed)) == 1, f"{self.who}: {kind} failed on some ranks only: {all_failed}"
        if failed:
            assert hits or "BusyError" in failed or "OutdatedError" in failed, f"{self.who}: {kind}: {failed}"
            self.counts["failed"] += 1
            self.settle(self.known, after)
        else:
            self.known = after

    def check_all(self) -> None:
        """All that is known is there, whole."""
        for key, held in self.known.items():
            place, name = key.split(":")
            assert same(self.values(self.stores[place], name), held), f"{self.who}: {key} is not {held}"


def same(found: NDArray[np.float64] | None, held: tuple[int, float] | None) -> bool:
    """Whether an array holds this, or nothing is there that should not be."""
    if found is None or held is None:
        return found is None and held is None
    return bool(np.array_equal(found, held[1] + np.arange(held[0])))


def resources() -> tuple[int, int, int]:
    """Resident memory [KiB], open files and threads of this process."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]), len(list(Path("/proc/self/fd").iterdir())), int(status["Threads"])


def main() -> None:
    """Go on until the time is over, and check that nothing has grown."""
    directory, who, seconds, seed = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
    soaking = Soaking(directory, who, seed)
    soaking.resume()
    until, measured = time.monotonic() + seconds, []
    while COMM.bcast(time.monotonic() < until):
        soaking.change()
        if soaking.turn % 25 == 0:
            soaking.check_all()
            measured.append(resources())
    soaking.check_all()
    for store in soaking.stores.values():
        store.close()
    told = COMM.gather((soaking.counts, measured))
    if COMM.rank == 0:
        print(json.dumps({"counts": told[0][0], "measured": [each for _, each in told]}), flush=True)


if __name__ == "__main__":
    main()
