"""ARCHITECTURE.md is true: its map names every folder, and its edges are those of Cargo's graph."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def drawn_edges() -> dict[str, set[str]]:
    """Read the block ``edges``: which crate imports which, by folder names."""
    block = re.search(r"```edges\n(.*?)```", TEXT, re.DOTALL)
    assert block is not None, "ARCHITECTURE.md has no block ```edges"
    edges = {}
    for line in block[1].splitlines():
        name, _, imports = line.partition("->")
        edges[name.strip()] = set(imports.split())
    return edges


@pytest.fixture(scope="module")
def cargo_edges() -> dict[str, set[str]]:
    """Ask Cargo: ordinary dependencies between crates of the workspace, by folder names."""
    command = ["cargo", "metadata", "--offline", "--no-deps", "--format-version", "1"]
    try:
        answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError:
        pytest.skip("cargo is not on the path")
    assert answer.returncode == 0, answer.stderr
    packages = json.loads(answer.stdout)["packages"]
    folder = {package["name"]: Path(package["manifest_path"]).parent.name for package in packages}
    return {
        folder[package["name"]]: {
            folder[needed["name"]]
            for needed in package["dependencies"]
            if needed["kind"] is None and needed["name"] in folder
        }
        for package in packages
    }


def test_edges_are_cargos(cargo_edges: dict[str, set[str]]) -> None:
    drawn = drawn_edges()
    drawn.setdefault("layout", set())
    assert drawn == cargo_edges


def test_no_edge_points_back() -> None:
    """A crate imports only crates that stand above it in the list, so the list itself is an order without cycles."""
    above = {"layout"}
    for name, imports in drawn_edges().items():
        assert imports <= above, f"{name} imports {imports - above}, which stand below it"
        above.add(name)


def test_every_folder_is_in_the_map() -> None:
    tops = ("crates", "bindings", "examples", "tests", "benches", "docs")
    folders = {
        f"{top}/{path.name}"
        for top in tops
        for path in (ROOT / top).glob("*/")
        if path.is_dir() and not path.name.startswith((".", "_")) and any(path.iterdir())
    }
    mapped = set(re.findall(r"^\| `([^`]+)` \|", TEXT, re.MULTILINE))
    assert not folders - mapped, f"not in the code map of ARCHITECTURE.md: {sorted(folders - mapped)}"
    gone = {name for name in mapped if not (ROOT / name).is_dir()}
    assert not gone, f"in the code map, but not there: {sorted(gone)}"


def test_unsafe_is_forbidden_where_the_map_says_so() -> None:
    """Every crate but those that may write ``unsafe`` begins by forbidding it."""
    may = {"pack", "real"}
    for library in sorted((ROOT / "crates").glob("*/src/lib.rs")):
        forbids = "#![forbid(unsafe_code)]" in library.read_text(encoding="utf-8")
        assert forbids == (library.parents[1].name not in may), library


def test_it_stays_short() -> None:
    assert len(TEXT.splitlines()) < 400
