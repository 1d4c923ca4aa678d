"""What is deleted in an HDF5 file leaves its room to what comes, and to nothing that would show what was there."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import numpy as np
import pytest

RANKS = (1, 3, 4)
SHAPE = (24, 1000)
BYTES = 24 * 1000 * 12

#: Dumps again and again, two of which stay.
WRITER = f"""
import sys, numpy as np, hyperslab as hs
with hs.open(sys.argv[1], "a", comm=None, durable=sys.argv[2] == "durable") as file:
    for number in range(100_000):
        with file.step(f"{{number:06}}") as step:
            step.write("rho", np.full({SHAPE}, float(number)))
            step.write("u", np.full({SHAPE}, number, "i4"))
        file.steps.keep(2)
        if number == 3:
            print("now", flush=True)
"""


def dump(file: Any, number: int, comm: Any) -> None:
    dist = hs.Distribution(SHAPE, (comm.size, 1), ("block", "block"))
    whole = np.full(SHAPE, float(number))[dist.slices(comm.rank)]
    with file.step(f"{number:04}") as step:
        step.write("rho", whole, dist)
        step.write("u", whole.astype("i4"), dist)
    file.steps.keep(2)


def numbers_in(path: Path) -> list[int]:
    """The steps that h5py finds, each of which is whole."""
    with h5py.File(path) as file:
        for name, group in file.items():
            assert (group["rho"][()] == float(name)).all()
            assert (group["u"][()] == int(name)).all()
        return sorted(int(name) for name in file)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("durable", [False, True])
def test_steps_that_go_leave_room_for_steps_that_come(ranks: int, tmp_path: Path, *, durable: bool) -> None:
    path = tmp_path / "run.h5"

    def program(comm: Any) -> None:
        with hs.open(path, "a", comm=comm, durable=durable) as file:
            for number in range(20):
                dump(file, number, comm)
        with hs.open(path, "r+", comm=comm, durable=durable) as file:
            for number in range(20, 40):
                dump(file, number, comm)

    hs.threads(ranks, program)
    assert numbers_in(path) == [38, 39]
    # Of each of two openings three dumps, and their metadata.
    assert path.stat().st_size < 6 * BYTES + 120_000
    assert hs.verify(path).findings == ()


def test_what_no_rank_writes_shows_nothing_of_before(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with hs.open(path, "w") as file:
        file.write("a", np.arange(5000.0))
        file.flush()
        file.delete("a")
        file.create_array("empty", (1000,), "f8")
        box = hs.Boxes((1000,), [(slice(10, 20),)])
        file.write("box", [np.ones(10)], box)
        file.write("whole", np.full(1000, 2.0))
    with h5py.File(path) as found:
        assert (found["empty"][()] == 0).all()
        assert found["box"][()].sum() == 10
        assert (found["whole"][()] == 2).all()
        assert found["whole"].id.get_offset() < 5000 * 8


def test_a_write_that_fails_gives_room_back(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with hs.open(path, "w") as file:
        file.write("a", np.arange(5000.0))
        file.flush()
        end = path.stat().st_size
        file.delete("a")
        for _ in range(3):
            with pytest.raises(hs.Error):
                file.write({"b": np.zeros(5000), "x/../y": np.zeros(3)})
        file.write("c", np.full(5000, 3.0))
    with h5py.File(path) as found:
        assert list(found) == ["c"]
        assert (found["c"][()] == 3).all()
        assert found["c"].id.get_offset() < end


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_what_another_name_leads_to_keeps_its_room(kind: str, ranks: int, tmp_path: Path) -> None:
    path, values = tmp_path / "a.h5", np.arange(5000.0)
    with h5py.File(path, "w") as made:
        group = made.create_group("g")
        made["same"] = group if kind == "hard" else h5py.SoftLink("/g")
    # The other name is one of the group, or the link itself.
    written, gone, stays = ("g/x", "g", "same/x") if kind == "hard" else ("same/x", "same", "g/x")

    def program(comm: Any) -> None:
        whole = hs.Distribution.replicated((5000,), comm.size)
        with hs.open(path, "r+", comm=comm) as file:
            file.write(written, values, whole)
            file.delete(gone)
            file.write("other", np.full(5000, -1.0), whole)

    hs.threads(ranks, program)
    with h5py.File(path) as found:
        assert np.array_equal(found[stays][()], values)
        assert (found["other"][()] == -1).all()


def test_without_its_lock_room_stays_as_others_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with hs.open(path, "w") as file:
        file.write("seed", np.arange(3.0))
    for locking, reuses in ((True, True), (False, False)):
        with hs.open(path, "r+", locking=locking) as file:
            file.write("a", np.arange(5000.0))
            file.delete("a")
            before = path.stat().st_size
            file.write("b", np.full(5000, 3.0))
            assert (path.stat().st_size < before + 20_000) == reuses
            file.delete("b")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("durable", ["durable", "soon"])
def test_a_program_that_is_killed_leaves_whole_steps(durable: str, seed: int, tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    command = [sys.executable, "-c", WRITER, str(path), durable]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "now\n"
        time.sleep(float(np.random.default_rng(seed).uniform(0, 0.1)))
        writer.send_signal(signal.SIGKILL)
    numbers = numbers_in(path)
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert len(numbers) in (2, 3)
    assert path.stat().st_size < 4 * BYTES + 2_000_000
