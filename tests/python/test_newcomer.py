"""Programs as new users write them, from what the pages teach; and what checkers of types find in misspelt ones."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mpi_launch import environment, launched

ROOT = Path(__file__).parents[2]
NEWCOMER = ROOT / "tests/newcomer"
LINES_MAX = 60
#: Pyright with a Node.js of its own: 300 MB, so only in an environment that the test makes and removes.
PYRIGHT = "basedpyright==1.40.2"


def ran(program: str, ranks: int, *arguments: object) -> str:
    """What a program prints on so many ranks."""
    command = [sys.executable, "-m", "mpi4py", NEWCOMER / f"{program}.py", *arguments]
    done = launched(ranks, *command)
    assert done.returncode == 0, f"{program}: {done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.mpi
def test_a_heat_equation_restarts_on_other_ranks(tmp_path: Path) -> None:
    through = ran("heat", 2, tmp_path / "through.zarr", 8)
    ran("heat", 4, tmp_path / "parts.zarr", 3)
    assert ran("heat", 3, tmp_path / "parts.zarr", 8) == through
    assert through.startswith("(8, 24, 16) 8 ")


@pytest.mark.mpi
def test_programs_of_new_users(tmp_path: Path) -> None:
    assert ran("rank0", 3, tmp_path) == "same bytes: 480\n"
    assert ran("layouts", 4, tmp_path / "layouts.zarr") == "all layouts agree\n"
    assert re.fullmatch(r"\d kinds of tensors\n", ran("tensors", 2, tmp_path / "tensors.zarr"))
    assert ran("nonblocking", 3, tmp_path / "n.zarr").startswith("['step_0', 'step_1', 'step_2'] ")
    assert ran("served", 3, tmp_path / "served.zarr") == "clients: 2\n"
    assert ran("with_xarray", 3, tmp_path / "x.zarr") == "['kelvin', 'lat', 'lon'] ('lat', 'lon')\n"
    assert ran("checkpoints", 3, tmp_path / "c.zarr", 4) == "['epoch_2', 'epoch_3', 'epoch_4']\n"
    assert ran("checkpoints", 2, tmp_path / "c.zarr", 11) == "['epoch_9', 'epoch_10', 'epoch_11']\n"


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [3, 5, 7])
def test_sections_of_a_store_of_somebody_else(ranks: int, tmp_path: Path) -> None:
    assert ran("sections", ranks, tmp_path / "theirs.zarr") == "420 elements of the section\n"


def test_an_analysis_in_a_notebook(tmp_path: Path) -> None:
    command = [sys.executable, NEWCOMER / "notebook.py", tmp_path / "run.zarr"]
    done = subprocess.run(command, env=environment({}), capture_output=True, text=True, timeout=60, check=True)
    assert "12 steps, the last is step_11" in done.stdout
    assert "[9, 10, 11]" in done.stdout
    assert done.stdout.rstrip().endswith("True")


def test_they_are_short() -> None:
    programs = sorted(NEWCOMER.glob("*.py"))
    assert len(programs) == 10
    lengths = {path.name: len(path.read_text().splitlines()) for path in programs}
    assert max(lengths.values()) < LINES_MAX, lengths


def checked(*paths: Path) -> subprocess.CompletedProcess[str]:
    """What mypy says of programs, in its strict mode, with the package as it is installed."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--config-file", "/dev/null"]
    more = ["--ignore-missing-imports", "--follow-imports", "silent", "--allow-untyped-calls", "--no-error-summary"]
    return subprocess.run(
        [*command, *more, *map(str, paths)], cwd=NEWCOMER, capture_output=True, text=True, timeout=300, check=False
    )


def wrong_lines(path: Path) -> set[int]:
    return {number for number, line in enumerate(path.read_text().splitlines(), 1) if line.endswith("# wrong")}


def test_types_of_the_programs_fit_and_of_misspelt_ones_do_not() -> None:
    pytest.importorskip("mypy")
    misspelt = NEWCOMER / "misspelt/options.py"
    done = checked(misspelt)
    found = {int(number) for number in re.findall(r"options\.py:(\d+): error", done.stdout)}
    assert found == wrong_lines(misspelt), done.stdout
    programs = sorted(path for path in NEWCOMER.glob("*.py"))
    assert checked(*programs).returncode == 0, checked(*programs).stdout


@pytest.mark.long
def test_pyright_finds_the_same(tmp_path: Path) -> None:
    commands = tmp_path / "environment/bin"
    subprocess.run([sys.executable, "-m", "venv", commands.parent], check=True, timeout=300)
    subprocess.run([commands / "pip", "install", "--quiet", PYRIGHT], check=True, timeout=600)
    misspelt = NEWCOMER / "misspelt/options.py"
    # What there is to know of the package is what is installed beside this interpreter.
    settings = {"include": [str(NEWCOMER)], "typeCheckingMode": "standard"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [commands / "basedpyright", "-p", tmp_path, "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300, check=False)
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] == len(list(NEWCOMER.rglob("*.py")))
    errors = [one for one in found["generalDiagnostics"] if one["severity"] == "error"]
    assert {Path(one["file"]) for one in errors} == {misspelt}, done.stdout
    assert {one["range"]["start"]["line"] + 1 for one in errors} == wrong_lines(misspelt), done.stdout
