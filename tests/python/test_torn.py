"""A process that is killed leaves nothing torn: steps and raw files are there whole, or not at all."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import hyperslab as hs
import numpy as np
import pytest
import zarr

WRITER = Path(__file__).with_name("dying_writer.py")


def kill_writer(scenario: str, directory: Path, after_seconds: float = 0.0) -> None:
    """Run the writer up to its moment and kill it (SIGKILL) some time later."""
    writer = subprocess.Popen([sys.executable, WRITER, scenario, directory], stdout=subprocess.PIPE, text=True)
    with writer:
        assert writer.stdout is not None
        try:
            assert writer.stdout.readline() == "now\n"
            time.sleep(after_seconds)
        finally:
            writer.kill()


def test_a_step_that_was_killed_before_it_was_published(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    with hs.open(path, "w") as store:
        store.write("old", np.arange(5))
    kill_writer("step", tmp_path)
    assert dict(zarr.open_group(path, mode="r").members()).keys() == {"old"}
    with hs.open(path) as store:
        assert (store.arrays(), store.groups(), store.removed) == (["old"], [], ())
    with pytest.warns(UserWarning, match="removed what an earlier run left unfinished: 0001"):
        store = hs.open(path, "r+")
    with store:
        assert store.removed == ("0001",)
        with store.step("0001") as step:
            step.write("a", np.arange(3))
    assert [found.name for found in tmp_path.iterdir()] == ["a.zarr"]
    with hs.open(path, "r+") as store:
        assert (store.removed, store.groups()) == ((), ["0001"])


@pytest.mark.filterwarnings("ignore:.*removed what an earlier run left unfinished")
@pytest.mark.parametrize("seed", range(6))
def test_steps_that_were_killed_at_any_moment(seed: int, tmp_path: Path) -> None:
    kill_writer("steps", tmp_path, float(np.random.default_rng(seed).uniform(0, 0.2)))
    path = tmp_path / "a.zarr"
    root = zarr.open_group(path, mode="r")
    names = sorted(root.group_keys())
    assert names == [f"{number:06}" for number in range(len(names))]
    for number, name in enumerate(names):
        assert root[name].attrs["number"] == number
        assert (root[name]["a"][...] == number).all()
        assert (root[name]["b"][...] == -number).all()
    with hs.open(path, "r+") as store:
        assert store.groups() == names
        assert set(store.removed) <= {f"{len(names):06}"}


def test_a_raw_file_that_was_killed_leaves_the_older_one(tmp_path: Path) -> None:
    with hs.open_raw(tmp_path / "a.raw", "w", header=b"old") as file:
        file.write({"a": np.arange(12.0)})
    before = (tmp_path / "a.raw").read_bytes()
    kill_writer("raw", tmp_path)
    assert (tmp_path / "a.raw").read_bytes() == before
    with hs.open_raw(tmp_path / "a.raw", header=3, arrays={"a": ((12,), "f8")}) as file:
        assert np.array_equal(file.read("a"), np.arange(12.0))
    with pytest.warns(UserWarning, match="removed what an earlier run left unfinished"):
        file = hs.open_raw(tmp_path / "a.raw", "w", header=b"newest")
    with file:
        file.write({"a": np.arange(2.0)})
    assert (tmp_path / "a.raw").read_bytes() == b"newest" + np.arange(2.0).tobytes()
    assert [found.name for found in tmp_path.iterdir()] == ["a.raw"]
