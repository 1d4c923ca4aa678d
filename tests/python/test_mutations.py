"""Deliberate faults of the product are found by the tests that they name: see `mutations`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mutations import ROOT, Mutation, every


@pytest.mark.parametrize("mutation", every(), ids=lambda mutation: mutation.name)
def test_a_deliberate_fault_still_fits(mutation: Mutation) -> None:
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    assert mutation.applies(ROOT), "the product has changed: make the patch anew"
    if mutation.finder.startswith("loom "):
        model = mutation.finder.split()[-1].split("::")[-1]
        files = [*ROOT.glob("crates/*/src/**/tests.rs"), *ROOT.glob("crates/*/src/**/tests/*.rs")]
        assert any(f"fn {model}(" in path.read_text(encoding="utf-8") for path in files)
    elif mutation.finder.startswith("cargo "):
        _, crate, test = mutation.finder.split()
        folder = ROOT / "crates" / (crate.removeprefix("hyperslab-"))
        assert (folder / ("src/lib.rs" if test == "lib" else f"tests/{test}.rs")).exists()
    else:
        path, _, test = mutation.finder.partition("::")
        text = (ROOT / path).read_text(encoding="utf-8")
        name = re.split(r"\W", test)[0]
        assert not name or f"def {name}(" in text


@pytest.mark.long
def test_deliberate_faults_are_found() -> None:
    command = [sys.executable, str(Path(__file__).with_name("mutations.py"))]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
