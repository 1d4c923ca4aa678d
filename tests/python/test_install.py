"""What `make install` puts in its place, as strangers find it, also where it was moved to."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import h5py
import pytest

from c_door import ROOT, compiler, library

C = """
#include <hyperslab.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    double values[6] = {0, 1, 2, 3, 4, 5};
    int64_t shape[2] = {2, 3};
    hyperslab_comm *comm;
    hyperslab_dist *whole;
    hyperslab_group *file;
    (void)argc;
    hyperslab_comm_alone(&comm);
    hyperslab_set_errors(comm, HYPERSLAB_ABORT);
    hyperslab_dist_block(comm, 2, shape, &whole);
    hyperslab_memory part = hyperslab_dense(values, HYPERSLAB_FLOAT64);
    hyperslab_open(comm, argv[1], "w", NULL, &file);
    hyperslab_write(file, "rho", &part, whole, NULL, NULL);
    hyperslab_close(file);
    hyperslab_dist_free(whole);
    hyperslab_comm_free(comm);
    printf("%d\\n", hyperslab_version());
    return 0;
}
"""
FORTRAN = """
program first
    use hyperslab
    implicit none
    type(hyperslab_comm) :: comm
    type(hyperslab_file) :: file
    character(len=200) :: path
    double precision :: rho(3, 2)
    call get_command_argument(1, path)
    rho = reshape([0d0, 1d0, 2d0, 3d0, 4d0, 5d0], [3, 2])
    call comm%alone()
    call file%open(comm, trim(path), 'w')
    call file%write('rho', rho)
    call file%close()
    call comm%free()
end program
"""
CMAKE = """
cmake_minimum_required(VERSION 3.16)
project(strangers LANGUAGES {languages})
find_package(hyperslab 0.1 CONFIG REQUIRED)
{targets}
"""
CXX = """
#include <hyperslab.hpp>
namespace hs = hyperslab;
int main(int, char **argv)
{
    hs::comm comm = hs::comm::alone();
    std::vector<double> values{0, 1, 2, 3, 4, 5};
    hs::open(comm, argv[1], "w").write("rho", values, hs::dist::blocks(comm, {2, 3}));
}
"""
TARGETS = {
    "C": "add_executable(c first.c)\ntarget_link_libraries(c hyperslab::c)\n"
    "add_executable(c_static first.c)\ntarget_link_libraries(c_static hyperslab::c_static)\n",
    "CXX": "add_executable(cxx first.cpp)\ntarget_link_libraries(cxx hyperslab::cxx)\n",
    "Fortran": "add_executable(fortran first.f90)\ntarget_link_libraries(fortran hyperslab::fortran)\n",
}


def run(*command: object, **variables: str) -> str:
    """What a command prints."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=os.environ | variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation that was moved after it was made."""
    folder = tmp_path_factory.mktemp("prefix")
    run(ROOT / "scripts/install", library().parent, folder / "made")
    return Path(shutil.move(folder / "made", folder / "moved here"))


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    (tmp_path / "first.c").write_text(C, encoding="utf-8")
    (tmp_path / "first.f90").write_text(FORTRAN, encoding="utf-8")
    (tmp_path / "first.cpp").write_text(CXX, encoding="utf-8")
    return tmp_path


def writes(program: Path, prefix: Path) -> str:
    """Runs a program, whose file h5py reads; gives what it prints."""
    path = program.with_suffix(".h5")
    printed = run(program, path, LD_LIBRARY_PATH=str(prefix / "lib"))
    with h5py.File(path) as file:
        assert file["rho"][...].tolist() == [[0, 1, 2], [3, 4, 5]]
    return printed


def test_a_compiler_finds_it_by_its_prefix(prefix: Path, sources: Path) -> None:
    flags = ["-std=c99", "-Wall", "-Werror", "-I", prefix / "include"]
    run(compiler(), *flags, sources / "first.c", "-L", prefix / "lib", "-lhyperslab", "-o", sources / "first")
    assert writes(sources / "first", prefix) == "1000\n"


def test_pkg_config_finds_it_where_it_is(prefix: Path, sources: Path) -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("there is no pkg-config on the path")
    asked = {"PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    assert run("pkg-config", "--modversion", "hyperslab", **asked) == "0.1.0\n"
    # It escapes spaces in paths.
    line = f'eval "{compiler()} $(pkg-config --cflags hyperslab) first.c $(pkg-config --libs hyperslab) -o first"'
    run("sh", "-c", f"cd '{sources}' && {line}", **asked)
    writes(sources / "first", prefix)


@pytest.mark.parametrize("language", TARGETS)
def test_cmake_finds_it(language: str, prefix: Path, sources: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("there is no cmake on the path")
    compiler({"C": "cc", "CXX": "c++", "Fortran": "gfortran"}[language])
    text = CMAKE.format(languages=f"C {language}", targets=TARGETS[language])
    (sources / "CMakeLists.txt").write_text(text, encoding="utf-8")
    run("cmake", "-S", sources, "-B", sources / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", sources / "build")
    for program in {"C": ["c", "c_static"], "CXX": ["cxx"], "Fortran": ["fortran"]}[language]:
        writes(sources / "build" / program, prefix)


def test_packagers_get_all_below_their_folder(tmp_path: Path) -> None:
    printed = run(ROOT / "scripts/install", library().parent, "/usr", DESTDIR=str(tmp_path / "package"))
    assert f"below {tmp_path}/package/usr" in printed
    found = {
        str(path.relative_to(tmp_path / "package")) for path in (tmp_path / "package").rglob("*") if path.is_file()
    }
    assert {"usr/include/hyperslab.h", "usr/include/hyperslab.F90", "usr/lib/pkgconfig/hyperslab.pc"} <= found
    assert {path for path in found if path.startswith("usr/lib/libhyperslab.so")} == {
        "usr/lib/libhyperslab.so",
        "usr/lib/libhyperslab.so.0",
        "usr/lib/libhyperslab.so.0.1.0",
    }
    # Nothing of where it was made.
    for name in ("usr/lib/pkgconfig/hyperslab.pc", "usr/lib/cmake/hyperslab/hyperslab-config.cmake"):
        assert str(tmp_path) not in (tmp_path / "package" / name).read_text(encoding="utf-8")


def test_without_a_library_it_says_what_to_build(tmp_path: Path) -> None:
    done = subprocess.run(
        [ROOT / "scripts/install", tmp_path, tmp_path / "to"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "cargo build --release --package hyperslab-c" in done.stderr) == (1, True)
    assert not (tmp_path / "to").exists()
