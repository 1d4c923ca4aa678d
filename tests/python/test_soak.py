"""A long run: random collective calls of two programs on one store, while system calls fail and one program dies.

Nothing is lost, nothing is left, nothing grows.

    python tests/python/test_soak.py --seconds 1800 --seed 7
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import sys
import time
from pathlib import Path

import hyperslab as hs
import pytest
import zarr

from fault_library import compiled, quick_directory
from mpi_launch import printed, running

#: The longest call of a program whose partner has died may wait so long [s].
ENDS_SECONDS = 120.0
#: What memory may grow by between the second and the last quarter of a run [KiB], and files by. What was planned for up
#: to 1,024 kinds of calls is kept.
GROWTH_KIB, GROWTH_FILES = 8 << 10, 2
#: A program that is killed lives so long [s].
LIFE_SECONDS = (0.7, 4.0)


def grown(measured: list[list[int]]) -> tuple[float, float, float]:
    """By how much memory, open files and threads have grown from the second quarter of a run to the last."""
    quarter = len(measured) // 4
    early, late = measured[quarter : 2 * quarter], measured[-quarter:]
    medians = [[statistics.median(one[column] for one in part) for column in range(3)] for part in (early, late)]
    return tuple(late - early for early, late in zip(*medians, strict=True))  # type: ignore[return-value]


def soak(directory: Path, seconds: float, seed: int, ranks: int) -> dict[str, object]:
    """Let two programs run; one is killed again and again. Gives what was counted."""
    chance, kills, until = random.Random(seed), 0, time.monotonic() + seconds
    with (
        compiled() as preloaded,
        running(ranks, "soaking", directory, "p", seconds, seed, extra_environment=preloaded) as (first, output),
    ):
        while time.monotonic() < until and first.poll() is None:
            left = until - time.monotonic()
            arguments = (directory, "q", left, seed + 1 + kills)
            with running(2, "soaking", *arguments, extra_environment=preloaded) as (second, told):
                life = chance.uniform(*LIFE_SECONDS)
                if life < left - ENDS_SECONDS / 60:
                    time.sleep(life)
                    assert second.poll() is None, printed(told)
                    kill_all(second.pid)
                    kills += 1
                else:
                    assert second.wait(left + ENDS_SECONDS) == 0, printed(told)
        assert first.wait(ENDS_SECONDS) == 0, printed(output)
        result: dict[str, object] = json.loads(printed(output).strip().splitlines()[-1])
    return result | {"kills": kills}


def kill_all(launcher: int) -> None:
    """End a launcher and its ranks at once; they are all in its session."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            after = status.read_text().rpartition(")")[2].split()
            if int(after[3]) == launcher:
                os.kill(int(status.parent.name), signal.SIGKILL)
        except (OSError, IndexError):
            continue


def check(seconds: float, seed: int, ranks: int = 3) -> dict[str, object]:
    """Soak, and look at what is left by others' eyes."""
    with quick_directory() as directory:
        result = soak(directory, seconds, seed, ranks)
        with hs.open(directory / "run.zarr", "r+", comm=None) as store:
            assert all("q" in one for one in store.unfinished), store.unfinished
        for path in directory.glob("*.h5"):
            hs.open(path, "r+", comm=None).close()
        hidden = [path.name for path in directory.iterdir() if "hyperslab" in path.name and "-update" not in path.name]
        named = [one for one in hidden if not one.endswith("-owners")]
        assert not named, f"left behind: {hidden}"
        assert zarr.open_group(directory / "run.zarr", mode="r") is not None
        for measured in result["measured"]:  # type: ignore[attr-defined]
            if len(measured) >= 8:
                memory, files, threads = grown(measured)
                assert memory < GROWTH_KIB, f"memory grew by {memory} KiB"
                assert files <= GROWTH_FILES, f"{files} more open files"
                assert threads <= 0, f"{threads} more threads"
        return result


@pytest.mark.mpi
def test_nothing_is_lost_left_or_grown() -> None:
    """A short run of what is soaked for half an hour by hand."""
    result = check(15, 5)
    counts = result["counts"]
    assert isinstance(counts, dict)
    assert counts["calls"] > 50
    assert counts["faults"] > 2
    assert result["kills"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ranks", type=int, default=3)
    arguments = parser.parse_args()
    ended = check(arguments.seconds, arguments.seed, arguments.ranks)
    measured = ended.pop("measured")
    sys.stdout.write(f"{ended}; grown: {[grown(each) for each in measured if len(each) >= 8]}\n")  # type: ignore[attr-defined]
