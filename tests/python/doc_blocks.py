"""Code blocks of pages, run as a reader would run them.

Python blocks of a page are one program, in their order, up to the next console block, in a directory of the page's own.
Before a block may stand, as a comment of HTML:

    <!-- file: NAME -->         it is saved under this name instead
    <!-- not run: REASON -->    it cannot run here
    <!-- hidden setup: ... -->  (for readers of the source)

Blocks of C, C++ and Fortran are programs, which a compiler looks at. Lines of console blocks that begin with ``$`` are
run by a shell; lines after them are what is printed, where ``...`` stands for anything.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mpi_launch import environment, mpiexec

ROOT = Path(__file__).parents[2]

#: Seconds that one block may take.
LIMIT = 120.0

_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^>]*) -->\n)?^```(?P<language>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    line: int
    language: str
    mark: str
    body: str

    @property
    def reason(self) -> str | None:
        """Why it is not run."""
        return self.mark.partition(": ")[2] if self.mark.startswith("not run: ") else None

    @property
    def file(self) -> str | None:
        """The name under which it is saved."""
        return self.mark.removeprefix("file: ") if self.mark.startswith("file: ") else None


def blocks(page: Path) -> Iterator[Block]:
    """All fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    assert text.count("\n```") % 2 == 0, f"{page}: a block does not end"
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("language")) + 1
        yield Block(line, found["language"].strip(), (found["mark"] or "").strip(), found["body"])


def pages() -> list[Path]:
    """All pages for users."""
    return sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *ROOT.glob("examples/*/README.md")])


def run_page(page: Path, folder: Path) -> int:
    """Run what can run of a page; returns how many blocks that were."""
    program, ran = "", 0
    for block in blocks(page):
        where = f"{page.relative_to(ROOT)}, line {block.line}"
        assert block.language, f"{where}: a block needs a language"
        if block.reason is not None or block.language == "text":
            continue
        ran += 1
        if block.language == "python" and block.file is not None:
            (folder / block.file).write_text(block.body)
        elif block.language == "python":
            # With all that came before it, so that names go on; printed once.
            program += f"\n# {where}\n{block.body}"
        elif block.language == "console":
            if program:
                _execute(program, folder, where)
                program = ""
            _console(block.body, folder, where)
        elif block.language in ("c", "cpp"):
            _look_at_c(block.body, folder, where, block.language)
        elif block.language == "fortran":
            _look_at_fortran(block.body, folder, where)
        else:
            {"json": json.loads, "toml": tomllib.loads}[block.language](block.body)
    if program:
        _execute(program, folder, str(page))
    return ran


def _look_at_c(program: str, folder: Path, where: str, language: str) -> None:
    (folder / f"block.{language}").write_text(program)
    include = Path(sys.prefix) / "include"
    compiler, standard = {"c": ("cc", "c99"), "cpp": ("c++", "c++20")}[language]
    if shutil.which(compiler) is None or ("mpi.h" in program and not (include / "mpi.h").exists()):
        return
    flags = [f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-isystem", str(include)]
    command = [compiler, *flags, "-I", str(ROOT / "bindings/c/include"), f"block.{language}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, f"{where}:\n{done.stderr}"


def _look_at_fortran(program: str, folder: Path, where: str) -> None:
    (folder / "block.F90").write_text(program)
    if shutil.which("gfortran") is None:
        return
    flags = ["-std=f2018", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    command = ["gfortran", *flags, str(ROOT / "bindings/fortran/hyperslab.F90"), "block.F90"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, f"{where}:\n{done.stderr}"


def _environment() -> dict[str, str]:
    own = Path(sys.executable).parent
    path = os.pathsep.join([str(own), str(Path(mpiexec()).parent), os.environ.get("PATH", "")])
    return environment({"PATH": path, "MPLBACKEND": "Agg"})


def _execute(program: str, folder: Path, where: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=_environment(), capture_output=True, text=True, timeout=LIMIT
    )
    assert done.returncode == 0, f"{where}:\n{done.stdout}\n{done.stderr}"


def _console(body: str, folder: Path, where: str) -> None:
    lines = body.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    assert starts[:1] == [0], f"{where}: a console block begins with '$ command'"
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        command, expected = lines[start][2:], "\n".join(lines[start + 1 : end]).strip()
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=folder,
            env=_environment(),
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        assert done.returncode == 0, f"{where}: {command}\n{done.stdout}\n{done.stderr}"
        pattern = re.sub(r"([\[\]?*])", r"[\1]", expected).replace("...", "*")
        assert not expected or fnmatch.fnmatchcase(done.stdout.strip(), pattern), f"{where}: {command}\n{done.stdout}"
