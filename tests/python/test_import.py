"""Importing hyperslab loads what moves arrays, and nothing of the laboratory; names of that are there all the same."""

from __future__ import annotations

import json
import subprocess
import sys

import hyperslab as hs

#: What no program needs that only moves arrays.
LABORATORY = (
    "_calibrate",
    "_plan_command",
    "_simulate",
    "bench",
    "planning",
    "reproduce",
    "simulation",
    "trace",
)


def loaded_by(program: str) -> list[str]:
    """Names of the package's modules in a fresh interpreter that has run a program."""
    tells = "import json, sys\nprint(json.dumps([name for name in sys.modules if name.startswith('hyperslab')]))"
    command = [sys.executable, "-c", f"{program}\n{tells}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    names: list[str] = json.loads(done.stdout)
    return names


def of_the_laboratory(names: list[str]) -> list[str]:
    """Those of modules that only the laboratory has."""
    return [name for name in names if name.startswith(tuple(f"hyperslab.{begin}" for begin in LABORATORY))]


def test_importing_loads_nothing_of_the_laboratory() -> None:
    names = loaded_by("import hyperslab")
    assert "hyperslab.group" in names
    assert not of_the_laboratory(names)


def test_moving_arrays_loads_nothing_of_the_laboratory() -> None:
    program = "import hyperslab as hs, numpy as np\nmemory = hs.MemoryStore()\n"
    program += "with hs.open(memory / 'a.zarr', 'w') as store: store.write('a', np.arange(6.0))\n"
    program += "with hs.open(memory / 'a.zarr') as store: assert store.read('a').sum() == 15"
    assert not of_the_laboratory(loaded_by(program))


def test_what_is_asked_for_is_loaded() -> None:
    for name in ("simulate", "machines", "Machine", "Simulated", "plan", "Plan", "trace"):
        assert of_the_laboratory(loaded_by(f"import hyperslab; hyperslab.{name}")), name
    assert "hyperslab.trace" in loaded_by("from hyperslab import trace")


def test_all_names_are_there() -> None:
    assert set(hs.__all__) <= set(dir(hs))
    assert all(getattr(hs, name) is not None for name in hs.__all__)
