"""A new file is seen from its first step or flush on, and what was published stays, however the program ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import numpy as np
import pytest

import new_file_cases
from mpi_launch import printed, running
from new_file_cases import CASES, KEPT, RAW, WAYS, prepare

HERE = Path(__file__).parent
#: Readers look while writers keep HDF5's lock.
UNLOCKED = {"HDF5_USE_FILE_LOCKING": "FALSE"}


def check(directory: Path) -> None:
    """What was published is there as readers see it; the next opening removes only what never was."""
    for way in WAYS:
        for name, case in CASES.items():
            place = directory / way
            case.check(place / case.path)
            if case.opens is hs.open_raw:
                continue
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                with hs.open(case.place(place), "r+", comm=None) as file:
                    # What never was published: of one file all of it, of another what came after a flush.
                    hidden = {case.path} if way == "left" and name in ("none", "fixed") else set()
                    assert set(file.removed) <= hidden, (way, name)
                    assert tuple(file.unfinished) == (), (way, name)
            assert len(told) <= len(hidden), [str(each.message) for each in told]
            case.check(place / case.path)
        known = dict.fromkeys("ab", ((12, new_file_cases.COLUMNS), "f8"))
        for name in ("raw", "striped"):
            file = hs.open_raw(CASES[name].place(place), "r+", comm=None, header=8, arrays=known, order="C")
            with file, warnings.catch_warnings():
                assert np.array_equal(file.read("b"), new_file_cases.whole(1))
        left = [path.name for path in place.rglob("*") if "hyperslab" in path.name]
        assert left == []


@pytest.mark.filterwarnings("ignore:.*removed what an earlier run left unfinished")
@pytest.mark.parametrize(("ranks", "ending"), [(1, "kill"), (3, "exit"), (4, "kill")])
def test_what_threads_published_stays(ranks: int, ending: str, tmp_path: Path) -> None:
    prepare(tmp_path)
    command = [sys.executable, str(HERE / "new_file_cases.py"), str(tmp_path), str(ranks), ending]
    ended = subprocess.run(command, env=os.environ | UNLOCKED, capture_output=True, text=True, timeout=120, check=False)
    # What was left undone is told, and the status says so.
    assert ended.returncode == (-signal.SIGKILL if ending == "kill" else 1), ended.stderr
    check(tmp_path)


@pytest.mark.mpi
@pytest.mark.filterwarnings("ignore:.*removed what an earlier run left unfinished")
@pytest.mark.parametrize(("ranks", "ending"), [(3, "kill"), (4, "exit")])
def test_what_ranks_published_stays(ranks: int, ending: str, tmp_path: Path) -> None:
    prepare(tmp_path)
    with running(ranks, "new_files", tmp_path, ending, extra_environment=UNLOCKED) as (process, output):
        process.wait(120)
        assert "all cases of new files" in printed(output), printed(output)
    check(tmp_path)


def ranks_of(count: int, run: Callable[[Any], None]) -> None:
    """Run on thread ranks, each with a communicator."""
    hs.threads(count, run)


OPENS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "a.h5": (hs.open, {}),
    "a.nc4": (hs.open, {}),
    "a.nc": (hs.open, {}),
    "a.raw": (hs.open_raw, RAW),
}


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("name", OPENS)
def test_a_new_file_is_opened_once_in_a_program(name: str, ranks: int, tmp_path: Path) -> None:
    opens, options = OPENS[name]
    modes = ("w", "x", "a", "r+") if opens is hs.open else ("w", "x")
    link = tmp_path / "link"
    link.symlink_to(tmp_path)

    def rank(comm: Any) -> None:
        dist = hs.Distribution.replicated((4,), comm.size)

        def refused() -> None:
            for again in modes:
                for path in (tmp_path / name, link / name):
                    with pytest.raises(hs.BusyError, match="has open for writing already"):
                        opens(path, again, comm=comm, **options).close()

        for mode in ("w", "w", "x"):
            if mode == "x" and comm.rank == 0:
                (tmp_path / name).unlink()
            comm.barrier()
            with opens(tmp_path / name, mode, comm=comm, **options) as file:
                refused()
                file.write({"a": np.arange(4.0)}, dist)
                file.flush()
                refused()
                file.write({"b": np.arange(4.0)}, dist)
        # One that was given up is not in the way.
        with pytest.raises(ZeroDivisionError), opens(tmp_path / name, "w", comm=comm, **options):
            raise ZeroDivisionError
        file = opens(tmp_path / name, "w", comm=comm, **options)
        file.write({"c": np.arange(4.0)}, dist)
        file.close()

    ranks_of(ranks, rank)
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, "link"]


def test_in_memory_too() -> None:
    memory = hs.MemoryStore()
    with hs.open(memory / "a.h5", "w", comm=None) as file:
        with pytest.raises(hs.BusyError):
            hs.open(memory / "a.h5", "a", comm=None)
        with file.step("0") as step:
            step.write("a", np.arange(3.0))
        file.write("b", np.arange(4.0))
    with hs.open(hs.MemoryStore() / "a.h5", "w", comm=None), hs.open(memory / "a.h5", "r+", comm=None) as file:
        assert (set(file), list(file.steps)) == ({"0/a", "b"}, ["0"])


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_publication_that_is_refused_loses_nothing(ranks: int, tmp_path: Path) -> None:
    """The name is taken when the first step ends; it is free again for the second."""
    path = tmp_path / "a.h5"

    def rank(comm: Any) -> None:
        dist = hs.Distribution.replicated((4,), comm.size)
        with hs.open(path, "x", comm=comm) as file:
            file.write("a", np.arange(4.0), dist)
            if comm.rank == 0:
                path.write_bytes(b"taken")
            comm.barrier()
            with pytest.raises(hs.ExistsError, match="another program made it"), file.step("1") as step:
                step.write("b", np.ones(4), dist)
            with pytest.raises(hs.ExistsError, match="another program made it"):
                file.flush()
            comm.barrier()
            if comm.rank == 0:
                assert path.read_bytes() == b"taken"
                path.unlink()
            comm.barrier()
            # Nobody writes some of it: what was there of the failed publication must not be seen in its place.
            file.write("holes", [], hs.Boxes((600,), []), dtype="f8")
            with file.step("2") as step:
                step.write("c", np.arange(4.0), dist, compression="gzip")

    ranks_of(ranks, rank)
    with h5py.File(path) as data:
        assert (set(data), set(data["2"])) == ({"a", "holes", "2"}, {"c"})
        assert (data["a"][:].tolist(), data["2/c"][:].tolist()) == ([0, 1, 2, 3], [0, 1, 2, 3])
        assert not data["holes"][...].any()
    assert [each.name for each in tmp_path.iterdir()] == ["a.h5"]


@pytest.mark.parametrize("durable", [True, False])
def test_what_was_published_is_replaced_by_another_program(tmp_path: Path, *, durable: bool) -> None:
    """Then the first one is told, and takes nothing away."""
    path = tmp_path / "a.h5"
    told = pytest.raises(hs.Error, match="not the one that was opened any more")
    with told, hs.open(path, "w", comm=None, durable=durable) as file:
        with file.step("1") as step:
            step.write("a", np.arange(3.0))
        other = (
            "import sys, numpy as np, hyperslab as hs\nwith hs.open(sys.argv[1], 'w') as f: f.write('b', np.ones(3))"
        )
        subprocess.run([sys.executable, "-c", other, str(path)], check=True, timeout=60)
        with file.step("2") as step:
            step.write("a", np.arange(3.0))
    with h5py.File(path) as data:
        assert list(data) == ["b"]
    assert [each.name for each in tmp_path.iterdir()] == ["a.h5"]


def test_a_copy_does_not_undo_what_others_wrote(tmp_path: Path) -> None:
    """A NetCDF file that was seen gets an array by a copy; another program has changed the file since."""
    path = tmp_path / "a.nc"
    told = pytest.raises(hs.BusyError, match="was changed by another program")
    with told, hs.open(path, "w", comm=None) as file:
        file.write("a", np.arange(3.0))
        file.flush()
        file.write("b", np.arange(3.0))
        other = (
            "import sys, numpy as np, hyperslab as hs\nwith hs.open(sys.argv[1], 'r+') as f: f.write('a', np.ones(3))"
        )
        subprocess.run([sys.executable, "-c", other, str(path)], check=True, timeout=60)
        file.flush()
    with hs.open(path, comm=None) as file:
        assert (list(file), file.read("a").tolist()) == (["a"], [1, 1, 1])
    assert [each.name for each in tmp_path.iterdir()] == ["a.nc"]


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("name", ["a.h5", "a.nc4"])
def test_a_step_that_is_open_when_the_file_is_published(name: str, ranks: int, tmp_path: Path) -> None:
    """What was written to it before and after lies in it when it ends; what is given up is nowhere."""
    path = tmp_path / name

    def rank(comm: Any) -> None:
        dist = hs.Distribution((12, 5), (comm.size, 1))
        mine = np.ascontiguousarray(new_file_cases.whole(1)[dist.indices(comm.rank)[0]])
        with hs.open(path, "w", comm=comm) as file:
            file.write("a", mine, dist)
            gone = pytest.raises(ZeroDivisionError)
            with file.step("1") as step, gone, file.step("2") as other:
                for each, inner in ((step, "in/x"), (other, "in/x")):
                    each.write(inner, mine, dist, compression="gzip")
                file.flush()
                comm.barrier()
                if comm.rank == 0:
                    with h5py.File(path, "r", locking=False) as data:
                        assert {member for member in data if not member.startswith("phony")} == {"a"}
                comm.barrier()
                for each in (step, other):
                    each.write("in/y", mine, dist)
                raise ZeroDivisionError

    hs.threads(ranks, rank)
    with h5py.File(path) as data:
        assert "2" not in data
        assert set(data["1/in"]) >= {"x", "y"}
        for array in (data["a"], data["1/in/x"], data["1/in/y"]):
            assert np.array_equal(array, new_file_cases.whole(1))


def test_an_empty_batch_publishes_nothing(tmp_path: Path) -> None:
    with hs.open(tmp_path / "a.h5", "w", comm=None) as file:
        with file.batch():
            pass
        file.group("g") if "g" in file.groups() else file.create_group("g").close()
        assert not (tmp_path / "a.h5").exists()
        step = file.step("1")
        step.flush()
        assert not (tmp_path / "a.h5").exists(), "in a step nothing is whole before it ends"
        step.close()
        assert (tmp_path / "a.h5").exists()
    assert KEPT == []
