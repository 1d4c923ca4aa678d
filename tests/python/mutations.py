"""Deliberate faults of the product (`tests/mutations`): each must make the test fail that its patch names.

    python tests/python/mutations.py
    python tests/python/mutations.py --only delete-unsynced

All of them take two minutes to build in a copy of the checkout, and half a minute each.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "mutations"
#: What a copy needs.
PARTS = (
    "Cargo.toml",
    "Cargo.lock",
    "rustfmt.toml",
    "pyproject.toml",
    "README.md",
    "crates",
    "bindings",
    "machines",
    "tests",
)


@dataclass(frozen=True)
class Mutation:
    """A patch, why it is wrong, and what finds it: a test of pytest, ``cargo CRATE TEST`` (or
    ``lib``), or ``loom CRATE MODEL``."""

    name: str
    why: str
    finder: str

    @classmethod
    def read(cls, path: Path) -> Mutation:
        """Of its first lines."""
        why, finder, *_ = path.read_text(encoding="utf-8").splitlines()
        assert finder.startswith("found by: "), f"{path.name}: the second line says what finds it"
        return cls(path.stem, why, finder.removeprefix("found by: "))

    @property
    def path(self) -> Path:
        """The patch."""
        return FOLDER / f"{self.name}.patch"

    def applies(self, checkout: Path) -> bool:
        """Whether it still fits."""
        command = ["git", "apply", "--check", str(self.path)]
        return subprocess.run(command, cwd=checkout, capture_output=True, check=False).returncode == 0


def every() -> list[Mutation]:
    """All of them."""
    return [Mutation.read(path) for path in sorted(FOLDER.glob("*.patch"))]


def model_fails(crate: str, model: str, copy: Path, environment: dict[str, str]) -> bool:
    """Whether loom finds an order of turns in which this model fails."""
    environment |= {"RUSTFLAGS": "--cfg loom"}
    build = ["cargo", "test", "-q", "--locked", "-p", crate, "--lib"]
    subprocess.run([*build, "--no-run"], cwd=copy, env=environment, check=True)
    ended = subprocess.run(
        [*build, "--", model], cwd=copy, env=environment, capture_output=True, text=True, check=False
    )
    assert "running 0 tests" not in ended.stdout, f"{crate} has no model '{model}'"
    return ended.returncode != 0


def found(mutation: Mutation, copy: Path, target: Path) -> bool:
    """Whether the test fails with the fault, in this copy."""
    subprocess.run(["git", "apply", str(mutation.path)], cwd=copy, check=True)
    try:
        environment = os.environ | {"CARGO_TARGET_DIR": str(target), "PYO3_PYTHON": sys.executable}
        if mutation.finder.startswith("cargo "):
            _, crate, test = mutation.finder.split()
            command = [
                "cargo",
                "test",
                "-q",
                "--locked",
                "-p",
                crate,
                *(["--lib"] if test == "lib" else ["--test", test]),
            ]
            # What does not compile finds nothing.
            subprocess.run([*command, "--no-run"], cwd=copy, env=environment, check=True)
            return subprocess.run(command, cwd=copy, env=environment, capture_output=True, check=False).returncode != 0
        if mutation.finder.startswith("loom "):
            _, crate, model = mutation.finder.split()
            return model_fails(crate, model, copy, environment | {"CARGO_TARGET_DIR": str(target / "loom")})
        subprocess.run(
            ["cargo", "build", "-q", "--locked", "-p", "hyperslab-python"], cwd=copy, env=environment, check=True
        )
        package = copy / "bindings" / "python" / "python"
        shutil.copy(target / "debug" / "lib_core.so", package / "hyperslab" / "_core.abi3.so")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-x", mutation.finder]
        ended = subprocess.run(
            command,
            cwd=copy,
            env=environment | {"PYTHONPATH": str(package)},
            capture_output=True,
            text=True,
            check=False,
        )
        # 1 is a failure; anything else found no test.
        assert ended.returncode in (0, 1), ended.stdout[-2000:]
        return ended.returncode == 1
    finally:
        subprocess.run(["git", "apply", "-R", str(mutation.path)], cwd=copy, check=True)


def main() -> int:
    """Try them, and say which are not found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", help="the names of some")
    parser.add_argument("--target", type=Path, help="where what is built stays for the next time")
    args = parser.parse_args()
    missed = []
    with tempfile.TemporaryDirectory(prefix="hs-mutations-") as folder:
        copy, target = Path(folder) / "checkout", args.target or Path(folder) / "target"
        copy.mkdir()
        for part in PARTS:
            source = ROOT / part
            left_out = shutil.ignore_patterns("target", "__pycache__", "*.so")
            shutil.copytree(source, copy / part, ignore=left_out) if source.is_dir() else shutil.copy(
                source, copy / part
            )
        for mutation in every():
            if args.only is None or mutation.name in args.only:
                is_found = found(mutation, copy, target)
                print(f"{mutation.name}: {'found' if is_found else 'NOT FOUND'} ({mutation.why})", flush=True)
                missed += [] if is_found else [mutation.name]
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
