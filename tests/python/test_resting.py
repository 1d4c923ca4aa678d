"""The marker of a file that is changed again and again rests in between: nobody takes that for an update under way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import hyperslab as hs
import numpy as np
import pytest

KNOWN = {"a": ((64,), "<f8")}
MARKER = ".a.raw.hyperslab-update"


def opened(path: Path, mode: str = "r+") -> hs.RawFile:
    return hs.open_raw(path, mode, comm=None, arrays=KNOWN, durable=False)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.raw"
    path.write_bytes(bytes(512))
    return path


def write(file: hs.RawFile, first: int, value: float) -> None:
    file.write("a", np.full(8, value), section=slice(first, first + 8))


def test_others_read_change_and_clean_what_rests(path: Path) -> None:
    with opened(path) as one:
        write(one, 0, 1.0)
        assert path.with_name(MARKER).exists()
        with opened(path, "r") as reader:
            assert reader.unfinished == ()
            assert reader.read("a")[:9].tolist() == [1.0] * 8 + [0.0]
        cleaned = subprocess.run(
            [sys.executable, "-m", "hyperslab", "clean", str(path)], capture_output=True, text=True, check=True
        )
        assert "did not end" not in cleaned.stdout
        write(one, 8, 2.0)
        with opened(path) as other:
            write(other, 16, 3.0)
            write(one, 24, 4.0)
            write(other, 32, 5.0)
        write(one, 40, 6.0)
    assert [found.name for found in path.parent.iterdir()] == ["a.raw"]
    assert np.fromfile(path)[::8].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0.0, 0.0]


def test_who_dies_while_it_rests_left_nothing_unfinished(path: Path) -> None:
    dying = (
        "import os, sys, numpy as np, hyperslab as hs\n"
        "file = hs.open_raw(sys.argv[1], 'r+', comm=None, arrays={'a': ((64,), '<f8')}, durable=False)\n"
        "file.write('a', np.ones(8), section=slice(0, 8))\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", dying, str(path)], check=True)
    assert path.with_name(MARKER).exists()
    with opened(path, "r") as reader:
        assert reader.unfinished == ()
    with opened(path) as one:
        assert one.unfinished == ()
    assert [found.name for found in path.parent.iterdir()] == ["a.raw"]


@pytest.mark.filterwarnings("ignore:an update in place began and did not end")
def test_an_update_of_somebody_else_that_did_not_end_is_not_overlooked(path: Path) -> None:
    """He died in the middle of a change, which he had begun while the marker of another one rested."""
    with opened(path) as one:
        write(one, 0, 1.0)
        with path.with_name(MARKER).open("ab") as marker:
            marker.write(b'{"owner":null,"readers":"torn"}\n')
        write(one, 8, 2.0)
        with opened(path, "r") as reader:
            assert reader.unfinished == ("a.raw",)
    assert path.with_name(MARKER).exists()
