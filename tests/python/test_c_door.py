"""The library for C: programs that are compiled against its header, alone and under ``mpiexec``."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import netCDF4
import numpy as np
import pytest
import zarr

from c_door import HEADERS, PROGRAMS, ROOT, STRICT, Script, Stored, compiled, compiler, library
from mpi_launch import launched

CASES = 40
HEADER = HEADERS / "hyperslab.h"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(scope="module")
def transfers(folder: Path) -> Path:
    return compiled(PROGRAMS / "transfers.c", folder)


@pytest.fixture(scope="module")
def failing(folder: Path) -> Path:
    return compiled(PROGRAMS / "failing.c", folder)


@pytest.fixture(scope="module")
def verbs(folder: Path) -> Path:
    return compiled(PROGRAMS / "verbs.c", folder)


def run(*command: object) -> str:
    """What a program prints that ends well."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_on(ranks: int, *command: object) -> str:
    """The same on ranks of MPI."""
    done = launched(ranks, *command)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_library_exports_the_header_and_nothing_else() -> None:
    declared = set(
        re.findall(r"^(?:int|void|size_t|int64_t|const char \*) ?(hyperslab_\w+)\(", HEADER.read_text(), re.M)
    )
    symbols = run("nm", "-D", "--defined-only", "--format=posix", library())
    assert {line.split()[0] for line in symbols.splitlines()} == declared
    assert "[libhyperslab.so.0]" in run("readelf", "-d", library())


@pytest.mark.parametrize(
    "language", [("cc", "c", "-std=c99"), ("c++", "c++", "-std=c++11"), ("c++", "c++", "-std=c++20")]
)
def test_the_header_is_c_and_cxx(language: tuple[str, str, str], tmp_path: Path) -> None:
    name, suffix, standard = language
    source = tmp_path / f"header.{suffix}"
    source.write_text(
        "#include <hyperslab.h>\nint main(void) { return hyperslab_dense(0, HYPERSLAB_INT8).ndim + 1; }\n"
    )
    run(compiler(name), standard, *STRICT, "-I", HEADERS, "-c", source, "-o", tmp_path / "header.o")


def read_by_others(stored: Stored) -> Any:
    """What another library reads."""
    if stored.format == "zarr":
        return zarr.open_array(stored.path / stored.name, mode="r")[...]
    if stored.format == "hdf5":
        with h5py.File(stored.path) as file:
            return file[stored.name][()]
    if stored.format in ("netcdf3", "netcdf4"):
        with netCDF4.Dataset(stored.path) as file:
            file.set_auto_mask(False)
            return file[stored.name][...]
    if stored.format == "npy":
        return np.load(stored.path)
    return np.fromfile(stored.path, stored.values.dtype).reshape(stored.values.shape)


def check_stored(script: Script) -> None:
    """Compare all files with what they must hold, by the libraries of their formats and by the Python package."""
    for stored in script.stored:
        found = read_by_others(stored)
        assert found.dtype == stored.values.dtype or stored.format == "netcdf3", stored
        np.testing.assert_array_equal(found, stored.values, err_msg=str(stored))
        if stored.format in ("npy", "raw"):
            continue
        with hs.open(stored.path, format=stored.format, comm=None) as group:
            np.testing.assert_array_equal(group.read(stored.name), stored.values, err_msg=str(stored))


def random_script(folder: Path, ranks: int, seed: int) -> Script:
    script = Script(folder, ranks, seed)
    for number in range(CASES):
        script.add(number)
    return script


def test_random_transfers_alone(transfers: Path, tmp_path: Path) -> None:
    script = random_script(tmp_path, 1, 1)
    assert run(transfers, script.written(), "alone") == f"{len(script.lines)} transfers\n"
    check_stored(script)


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_random_transfers_on_ranks(transfers: Path, ranks: int, tmp_path: Path) -> None:
    script = random_script(tmp_path, ranks, 10 + ranks)
    assert run_on(ranks, transfers, script.written(), "mpi") == f"{len(script.lines)} transfers\n"
    check_stored(script)


def test_a_wrong_value_is_noticed(transfers: Path, tmp_path: Path) -> None:
    script = random_script(tmp_path, 1, 2)
    number = next(number for number, line in enumerate(script.lines) if line.startswith("read"))
    path = tmp_path / f"values_{number}"
    (np.fromfile(path, np.int64) + 1).tofile(path)
    done = subprocess.run([transfers, script.written(), "alone"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"line {number + 1}, rank 0: a value is another one" in done.stderr


def test_the_static_library_does_the_same(folder: Path, tmp_path: Path) -> None:
    if not library().with_suffix(".a").exists():
        pytest.skip("libhyperslab.a is not built: cargo build -p hyperslab-c")
    program = compiled(PROGRAMS / "transfers.c", tmp_path, static=True)
    assert "libhyperslab" not in run("readelf", "-d", program)
    script = random_script(tmp_path, 1, 3)
    assert run(program, script.written(), "alone") == f"{len(script.lines)} transfers\n"


def check_verbs(path: Path) -> None:
    """What the program left, as others read it."""
    group = zarr.open_group(path / "verbs.zarr", mode="r")
    assert sorted(group.array_keys()) == ["blank", "rho", "sooner"]
    assert sorted(group.group_keys()) == ["inner", "s10", "s9"]
    with h5py.File(path / "verbs.h5") as file:
        assert sorted(file) == ["blank", "inner", "rho", "s10", "s9", "sooner"]
        for rho in (group["rho"], file["rho"]):
            assert (rho.shape, rho.dtype, rho.chunks) == ((8, 4), np.float64, (2, 4))
            np.testing.assert_array_equal(rho[6:], [[0.25] * 4, [-1] * 4])
            np.testing.assert_array_equal(rho[0], np.arange(4))
        for blank in (group["blank"], file["blank"]):
            np.testing.assert_array_equal(blank[...], [[-1] * 4, [0.25] * 4, *[[-1] * 4] * 4])
        for of in (file.attrs, file["rho"].attrs, file["s10"].attrs, file["inner"].attrs):
            assert (of["count"], of["count"].dtype, of["pair"].tolist()) == (3, np.int32, [0.5, -1.5])
            assert (of["units"], list(of["axes"])) == ("kg m-3", ["x", "yä"])
        assert [dim.label for dim in file["rho"].dims] == ["time", "x"]
    for of in (group, group["rho"], group["s10"], group["inner"]):
        found = {name: of.attrs[name] for name in ("count", "pair", "units", "axes")}
        assert found == {"count": 3, "pair": [0.5, -1.5], "units": "kg m-3", "axes": ["x", "yä"]}
    assert group["rho"].metadata.dimension_names == ("time", "x")


def test_all_verbs_on_threads(verbs: Path, tmp_path: Path) -> None:
    assert run(verbs, tmp_path, "threads") == "all is well\n"
    check_verbs(tmp_path)


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 3])
def test_all_verbs_on_ranks(verbs: Path, ranks: int, tmp_path: Path) -> None:
    # Lines of ranks may be mixed.
    printed = run_on(ranks, verbs, tmp_path, "mpi")
    assert (printed.count("all is well"), printed.replace("all is well", "").strip()) == (ranks, "")
    check_verbs(tmp_path)


#: Calls that fail, with their status and a part of what they say; all others succeed.
INVALID, NOT_FOUND, EXISTS, UNSUPPORTED, PEER = 1, 4, 5, 9, 10
FAILURES = {
    "no mode of errors": (INVALID, "errors must be HYPERSLAB_RETURN or HYPERSLAB_ABORT, got 7"),
    "not found": (NOT_FOUND, "missing.zarr"),
    "no mode": (INVALID, "mode must be 'r', 'r+', 'a', 'w' or 'x', got 'rw'"),
    "no mode on one rank": (INVALID, "mode must be 'r', 'r+', 'a', 'w' or 'x', got 'rw'"),
    "null on one rank": (INVALID, "the path is a null pointer"),
    "no format": (INVALID, "there is no format 'grib'"),
    "no limit": (INVALID, "progress_seconds must be more than 0 and less than 1e9, got -1.0"),
    "later options": (UNSUPPORTED, "options of a later version of this library"),
    "no size": (INVALID, "has the size 3"),
    "a URL": (UNSUPPORTED, "s3://"),
    "a negative extent": (INVALID, "the shape has -1, which is negative"),
    "shapes differ": (2, "(6, 4)"),
    "no distribution": (INVALID, "memory needs its shape"),
    "no memory on one rank": (INVALID, "write of 'rho' to"),
    "null memory": (INVALID, "is a null pointer"),
    "a small memory": (INVALID, "a memory of shape (1, 2) does not have room for ("),
    "no type": (INVALID, "there is no type with the number 99"),
    "exists": (EXISTS, "'rho'"),
    "beyond": (INVALID, "'rho'"),
    "no array": (NOT_FOUND, "'u'"),
    "no shape to read into": (INVALID, "memory needs its shape"),
    "waited for": (INVALID, "the name of an array is a null pointer"),
    "no steps": (INVALID, "to keep 0 steps would delete all"),
    "delete": (NOT_FOUND, "u"),
    "read only": (INVALID, "open for reading only"),
    "null group": (INVALID, "the group is a null pointer"),
    "given up": (PEER, "no time"),
}
HINTS = {
    "no format": "choose among 'zarr', 'netcdf3', 'hdf5', 'netcdf4', 'netcdf4_classic', 'npy', 'raw'",
    "later options": "",
    "no shape to read into": "use hyperslab_inside(), or give a distribution",
    "read only": "open it with mode 'r+' to change it",
}


def check_failures(printed: str, ranks: int, *, alone: set[str]) -> None:
    """Each rank tells of each call the same, and what is expected."""
    told = [line.split("|") for line in printed.splitlines()]
    names = [name for rank, name, *_ in told if rank == "0"]
    assert set(FAILURES) <= set(names)
    for rank in range(ranks):
        mine = {name: (int(status), message, hint) for of, name, status, message, hint in told if of == str(rank)}
        assert list(mine) == names
        for name, (status, message, hint) in mine.items():
            expected, part = FAILURES.get(name, (0, "")) if name not in alone else (0, "")
            assert (status, part in message) == (expected, True), (name, status, message)
            assert name not in HINTS or name in alone or hint == HINTS[name], (name, hint)


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 3])
def test_failures_are_told_on_all_ranks(failing: Path, ranks: int, tmp_path: Path) -> None:
    alone = {"shapes differ"} if ranks == 1 else set()
    printed = run_on(ranks, failing, tmp_path, "calls")
    check_failures(printed, ranks, alone=alone)
    assert not (tmp_path / "given_up.h5").exists()
    assert not [path for path in tmp_path.iterdir() if path.name != "failing.zarr"]


@pytest.mark.mpi
@pytest.mark.parametrize(("mode", "says"), [("abort-all", "missing.zarr"), ("abort-own", "no leftovers of kind 9")])
def test_a_failure_ends_all_ranks_where_that_is_asked_for(failing: Path, mode: str, says: str, tmp_path: Path) -> None:
    done = launched(3, failing, tmp_path, mode)
    assert done.returncode != 0
    assert "still here" not in done.stdout
    # What befell all ranks is printed by the first of them, otherwise by the one that it befell.
    first = f"hyperslab: rank {0 if mode == 'abort-all' else 2} of 3: "
    assert any(line.startswith(first) and says in line for line in done.stderr.splitlines()), done.stderr


def test_mpi_must_be_initialised_first(failing: Path, tmp_path: Path) -> None:
    early, null = run(failing, tmp_path, "early").splitlines()
    assert early.startswith("0|early|")
    assert "MPI is loaded, but not initialised" in early
    assert null == "0|null|0||"


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 4])
def test_the_first_example(ranks: int, folder: Path, tmp_path: Path) -> None:
    program = compiled(ROOT / "examples/c/first.c", folder)
    assert run_on(ranks, program, tmp_path / "run.h5") == "the sum of the first row is 2016\n"
    with h5py.File(tmp_path / "run.h5") as file:
        np.testing.assert_array_equal(file["rho"], np.arange(48 * 64).reshape(48, 64))
