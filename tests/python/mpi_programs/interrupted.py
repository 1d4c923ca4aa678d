"""Signals at random moments of all operations, on one of several ranks."""

from __future__ import annotations

import json
import random
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import hyperslab as hs
from hyperslab.comm import connect, existing
from mpi4py import MPI

from interrupt_cases import ENDED, ENDS_SECONDS, Case, Strike, Templates, carry_out, contents, follow, random_case
from interrupt_cases import MPI as BY_MPI

WORLD = MPI.COMM_WORLD


def one(case: Case, templates: Templates | None, directory: Path, seconds: float, before: Any) -> list[str]:
    """One case; returns what this rank finds wrong."""
    comm = WORLD.Dup()
    # Who ends before its first call on a communicator can tell nobody there.
    connect(comm)
    wrong: list[str] = []
    error: BaseException | None = None
    strike = Strike(case.moment * seconds, case.kind)
    WORLD.Barrier()
    began = time.monotonic()
    if case.victim == WORLD.rank:
        strike.during(lambda: carry_out(case, directory, comm))
        wrong += strike.complaints()
        member = existing(comm)
        if strike.reached is not None and member is not None:
            # As a program does that ends by it.
            member.leave(f"{type(strike.reached).__name__}: {strike.reached}")
    else:
        try:
            carry_out(case, directory, comm)
        except BaseException as raised:  # noqa: BLE001 (that is what is asked)
            error = raised
    took = time.monotonic() - began
    fired = case.fired = WORLD.bcast(strike.fired, case.victim)
    if took > ENDS_SECONDS:
        wrong.append(f"rank {WORLD.rank}: it took {took:.1f} s")
    if error is not None and not (fired and isinstance(error, ENDED)):
        wrong.append(f"rank {WORLD.rank} ended with {error!r}")
    WORLD.Barrier()
    found: Any = None
    if templates is not None:
        found, told = contents(case.made, directory, before, 1)
        wrong += told
        again = follow(case, directory, found, lambda number, turn: carry_out(case, directory, None, number, turn))
        wrong += again
    WORLD.Barrier()
    comm.Free()
    return [text for texts in WORLD.allgather(wrong) for text in texts]


def main() -> None:
    """Run under MPI."""
    directory, count, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    chance = random.Random(seed)
    templates = Templates(directory) if WORLD.rank == 0 else None
    times: dict[tuple[str, str], float] = {}
    wrong: list[Any] = []
    came = 0
    for number in range(count):
        case = random_case(chance, [BY_MPI], WORLD.size)
        key = (case.made.name, str(case.strategy))
        made = templates.of(case, lambda _directory: None) if templates is not None else None
        place, before, _ = WORLD.bcast(made)
        if key not in times:
            usual = WORLD.bcast(templates.copy(place) if templates is not None else None)
            WORLD.Barrier()
            began = time.monotonic()
            comm = WORLD.Dup()
            carry_out(case, usual, comm)
            comm.Free()
            times[key] = WORLD.bcast(time.monotonic() - began)
        found = one(case, templates, place, times[key], before)
        came += case.fired
        if found:
            wrong.append([str(case), *found])
            if WORLD.rank == 0:
                print(f"case {number} of seed {seed}: {case}: {found}", file=sys.stderr, flush=True)
        elif WORLD.rank == 0:
            shutil.rmtree(place)
    if WORLD.rank == 0:
        (directory / "told.json").write_text(json.dumps({"cases": count, "fired": came, "wrong": wrong}))
    # What the operations left when they were struck is told, and is no fault here.
    hs.finalize()


if __name__ == "__main__":
    main()
