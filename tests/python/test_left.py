"""What a program leaves undone is finished or told: once a process, and by its exit status."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import hyperslab as hs
import numpy as np
import pytest

from mpi_launch import environment, mpiexec, session

#: How something is begun that is never closed, and how it is called then.
BEGUN = {
    "hdf5": ('f = hs.open(p + "/a.h5", "w", comm=comm); f.write("rho", values, dist)', "a.h5'"),
    "netcdf": (
        'f = hs.open(p + "/a.nc", "w", comm=comm); f.write("rho", values, dist, dimension_names=("x",))',
        "a.nc'",
    ),
    "raw": ('f = hs.open_raw(p + "/a.raw", "w", comm=comm); f.write({"rho": values}, dist)', "a.raw'"),
    "step": (
        's = hs.open(p + "/a.zarr", "a", comm=comm); f = s.step("1"); f.write("rho", values, dist)',
        "step '",
    ),
    "file step": (
        's = hs.open(p + "/b.h5", "r+", comm=comm); f = s.step("1"); f.write("rho", values, dist)',
        "step '",
    ),
    "batch": (
        's = hs.open(p + "/a.zarr", "a", comm=comm); f = s.batch(); f.write("rho", values, dist)',
        "batch of 'rho'",
    ),
}
ALONE = "comm, dist, values = None, hs.Distribution.block((8,), 1), np.arange(8.0)\n"
#: One of each sort in the ordinary tests.
ORDINARY = ("hdf5", "step", "batch")
FORMATS = pytest.mark.parametrize(
    "kind", [kind if kind in ORDINARY else pytest.param(kind, marks=pytest.mark.long) for kind in BEGUN]
)


def ran(text: str, directory: Path, *, ranks: int = 1) -> tuple[int, str, list[str]]:
    """Run a program; gives its exit status, what it prints, and what is told of what it left."""
    with hs.open(directory / "b.h5", "w", comm=None) as file:
        file.write("a", np.zeros(2))
    begin = "import os, sys, numpy as np\n" + ("from mpi4py import MPI\n" if ranks > 1 else "")
    program = f"{begin}import hyperslab as hs\np = sys.argv[1]\n{text}"
    before = [mpiexec(), "-n", str(ranks)] if ranks > 1 else []
    with session() as own:
        done = subprocess.run(
            [*before, sys.executable, "-c", program, str(directory)],
            env=environment(own.variables) if ranks > 1 else os.environ,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    told = [line for line in done.stderr.splitlines() if line.startswith("hyperslab: ")]
    return done.returncode, done.stdout + done.stderr, told


def published(kind: str, directory: Path) -> bool:
    """Whether readers see all of it."""
    place = {"hdf5": "a.h5", "netcdf": "a.nc", "raw": "a.raw", "file step": "b.h5"}.get(kind, "a.zarr")
    if not (directory / place).exists():
        return False
    if kind == "raw":
        return np.fromfile(directory / place).tolist() == list(range(8))
    name = "1/rho" if "step" in kind else "rho"
    with hs.open(directory / place, comm=None) as store:
        return name in store and store[name][...].tolist() == list(range(8))


@FORMATS
def test_one_rank_finishes_at_the_end_of_the_program(kind: str, tmp_path: Path) -> None:
    begun, name = BEGUN[kind]
    status, output, told = ran(ALONE + begun, tmp_path)
    assert (status, len(told)) == (1, 1), output
    assert name in told[0]
    assert "was never closed" in told[0]
    assert published(kind, tmp_path)


@FORMATS
@pytest.mark.parametrize("how", ["raises", "is dropped", "a call failed"])
def test_what_may_be_half_of_what_was_meant_is_not_published(kind: str, how: str, tmp_path: Path) -> None:
    """After an exception, after a call that failed, and where nobody has it any more: who knows why."""
    begun, name = BEGUN[kind]
    if how == "a call failed" and kind == "batch":
        pytest.skip("a batch makes no call before it is closed")
    ends = {
        "raises": "raise ZeroDivisionError('physics')",
        "is dropped": "del f; print('goes on')",
        "a call failed": "try: f.write('x' * 300 + '/' * 3, np.ones(3))\nexcept hs.Error: pass",
    }
    status, output, told = ran(f"{ALONE}{begun}\n{ends[how]}", tmp_path)
    assert (status, len(told)) == (1, 1), output
    assert name in told[0]
    assert not published(kind, tmp_path)
    if kind in ("hdf5", "netcdf", "raw"):
        lies = Path(told[0].partition("lies in '")[2].partition("'")[0])
        assert lies.exists(), told


@FORMATS
def test_an_exception_in_its_block_says_enough(kind: str, tmp_path: Path) -> None:
    """It is given up as promised, and nothing is left to tell."""
    begun, _ = BEGUN[kind]
    text = f"{ALONE}{begun}\ntry:\n    with f:\n        raise KeyError\nexcept KeyError:\n    print(hs.finalize())"
    status, output, told = ran(text, tmp_path)
    assert (status, output, told) == (0, "True\n", []), output
    assert not published(kind, tmp_path)


@FORMATS
def test_ranks_of_threads_tell_once(kind: str, tmp_path: Path) -> None:
    begun, name = BEGUN[kind]
    body = begun.replace("; ", "\n    ")
    text = f"""
kept = []
def one(comm):
    dist = hs.Distribution.block((8,), 4)
    values = np.arange(8.0)[2 * comm.rank: 2 * comm.rank + 2]
    {body}
    kept.append(f)
    comm.barrier()
hs.threads(4, one)
"""
    status, output, told = ran(text, tmp_path)
    assert (status, len(told)) == (1, 1), output
    assert name in told[0]
    assert not published(kind, tmp_path)


@pytest.mark.mpi
def test_each_process_tells_once(tmp_path: Path) -> None:
    begun = "\n".join(
        BEGUN[kind][0].replace("f = ", f"f{number} = ").replace("; f.", f"; f{number}.")
        for number, kind in enumerate(BEGUN)
    )
    text = f"""
comm = MPI.COMM_WORLD
dist = hs.Distribution.block((9,), 3)
values = np.arange(9.0)[3 * comm.rank: 3 * comm.rank + 3]
{begun}
"""
    status, output, told = ran(text, tmp_path, ranks=3)
    assert status != 0, output
    names = [
        "a.h5' was",
        "a.nc' was",
        "a.raw' was",
        "a.zarr' was never closed, and",
        "b.h5' was never closed, and",
        "batch",
    ]
    assert [sum(name in line for line in told) for name in names] == [3] * 6, output


def test_a_program_that_asks_decides_by_itself(tmp_path: Path) -> None:
    begun, _ = BEGUN["hdf5"]
    assert ran(f"{ALONE}{begun}\nprint(hs.finalize(), hs.finalize())", tmp_path)[:2][0] == 0
    status, output, _ = ran(f"{ALONE}{begun}\nsys.exit(0 if hs.finalize() else 7)", tmp_path)
    assert status == 7, output


def test_a_status_that_says_so_already_stays(tmp_path: Path) -> None:
    begun, _ = BEGUN["raw"]
    assert ran(f"{ALONE}{begun}\nsys.exit(5)", tmp_path)[0] == 5


def test_what_was_closed_or_is_only_read_leaves_nothing_to_tell(tmp_path: Path) -> None:
    text = ALONE + "\n".join(f"{begun}\nf.close()" for begun, _ in BEGUN.values())
    text += '\ng = hs.open(p + "/a.h5"); h = hs.open(p + "/a.zarr", "r+")'
    status, output, told = ran(text.replace('s.batch(); f.write("rho"', 's.batch(); f.write("other"'), tmp_path)
    assert (status, told) == (0, []), output


def test_a_child_tells_nothing_of_its_parent(tmp_path: Path) -> None:
    begun, _ = BEGUN["hdf5"]
    text = f"{ALONE}{begun}\nif os.fork() == 0:\n    sys.exit(0)\nprint(os.wait()[1])"
    status, output, told = ran(text, tmp_path)
    assert (status, len(told), output.splitlines()[0]) == (1, 1, "0"), output
    assert published("hdf5", tmp_path)


def test_of_hundreds_of_failed_requests_the_first_ones_are_told(tmp_path: Path) -> None:
    text = 's = hs.open(p + "/a.zarr", "w", comm=None)\nkept = [s.iread(f"none{number}") for number in range(100)]'
    status, _, told = ran(text, tmp_path)
    assert status != 0
    assert sum("'none" in line for line in told) == 20
    assert any("80 more request(s) failed, and no rank waited for them" in line for line in told)
