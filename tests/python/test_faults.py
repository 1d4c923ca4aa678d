"""System calls that fail: all ranks end with one error or go on after it, and readers see the old or the new.

The n-th call of a class, below the directory of the test, fails on one rank of four: with an error, after half of the
bytes, after a delay, or with all calls after it. `fault_operations` says into what such faults are put, and
`mpi_programs.faults` what must hold afterwards.

By hand, more faults or all of them, which takes hours:

    python tests/python/test_faults.py --faults 100 --seed 7
    python tests/python/test_faults.py --all --operation step --strategy two-phase
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from fault_library import CLASSES, SYSTEM_CALLS, compiled, quick_directory
from fault_operations import OPERATIONS
from mpi_launch import environment, run_ranks

HERE = Path(__file__).parent
RANKS = 4
#: For each operation, in the ordinary tests; and for each of its strategies, in those that take long.
FAULTS = 4
FAULTS_LONG = 40
#: How many cases that went wrong are shown.
SHOWN = 20
#: Pairs of an operation and a strategy.
Pair = tuple[str, str | None]
EVERY_PAIR: list[Pair] = [(made.name, strategy) for made in OPERATIONS.values() for strategy in made.strategies]
#: A call in a trace of strace, in the thread that its line begins with.
CALL = re.compile(r"^\d+ +(\w+)\((.*)$")
#: Calls that say something of a file, or where in it to go on, and change nothing.
HARMLESS = {
    "close",
    "dup",
    "fadvise64",
    "fstatfs",
    "getcwd",
    "getxattr",
    "lgetxattr",
    "fgetxattr",
    "ioctl",
    "lseek",
    "mmap",
    "readlink",
    "readlinkat",
    "statfs",
}
#: Of `fcntl`, what locks.
LOCKS = ("F_SETLK", "F_OFD_SETLK", "F_SETLEASE")


@pytest.fixture(scope="module")
def preloaded() -> Iterator[dict[str, str]]:
    """An environment with the library that lets calls fail."""
    with compiled() as variables:
        yield variables


def seed_of_this_run() -> int:
    """That of the environment; otherwise always the same, and the command line draws others."""
    return int(os.environ.get("HYPERSLAB_SEED", "1326111136"))


def one_strategy_each(seed: int) -> list[Pair]:
    """Each operation once, with a strategy by chance."""
    random = np.random.default_rng(seed)
    return [(made.name, made.strategies[int(random.integers(len(made.strategies)))]) for made in OPERATIONS.values()]


def try_faults(
    directory: Path,
    variables: dict[str, str],
    seed: int,
    pairs: Sequence[Pair],
    faults: int | None,
    timeout: float,
    *,
    only: str | None = None,
) -> tuple[str, list[str]]:
    """Try faults in one launch; gives what was printed, and what went wrong, case by case."""
    task, work = directory / "task.json", directory / "work"
    last, wrong = work / "last", work / "wrong"
    work.mkdir()
    task.write_text(json.dumps({"seed": seed, "pairs": pairs, "faults": faults, "only": only}))
    try:
        printed = run_ranks(RANKS, "faults", work, task, extra_environment=variables, timeout=timeout)
    except pytest.fail.Exception as failure:
        case = last.read_text() if last.exists() else "none"
        pytest.fail(f"HYPERSLAB_SEED={seed}; the last case was: {case}\n{failure}")
    return printed, wrong.read_text().splitlines() if wrong.exists() else []


def check_faults(
    variables: dict[str, str],
    seed: int,
    pairs: Sequence[Pair],
    faults: int | None,
    timeout: float,
    *,
    only: str | None = None,
) -> None:
    """Try faults, none of which may have gone wrong."""
    with quick_directory() as directory:
        printed, wrong = try_faults(directory, variables, seed, pairs, faults, timeout, only=only)
    some = "\n".join(wrong[:SHOWN])
    assert not wrong, f"HYPERSLAB_SEED={seed}: {printed}{some}"
    assert "0 cases went wrong" in printed


@pytest.mark.mpi
@pytest.mark.alone
def test_ranks_fail_together_and_nothing_is_torn(preloaded: dict[str, str]) -> None:
    seed = seed_of_this_run()
    check_faults(preloaded, seed, one_strategy_each(seed), FAULTS, 120.0)


@pytest.mark.mpi
@pytest.mark.alone
def test_what_is_told_late_is_told(preloaded: dict[str, str]) -> None:
    seed = seed_of_this_run()
    check_faults(preloaded, seed, one_strategy_each(seed + 1), 2, 120.0, only="late")


@pytest.mark.mpi
@pytest.mark.long
def test_many_faults_with_all_strategies(preloaded: dict[str, str]) -> None:
    seed = seed_of_this_run()
    check_faults(preloaded, seed, EVERY_PAIR, FAULTS_LONG, 1500.0)


#: Writes once, so that a marker rests, and once more when nobody can look at anything.
UNSEEN = """
import errno, sys
from pathlib import Path
import hyperslab as hs
import numpy as np
from fault_library import Fault, Faults

path, faults = Path(sys.argv[1]), Faults()
file = hs.open_raw(path, "r+", comm=None, arrays={"a": ((64,), "<f8")}, durable=False)
file.write("a", np.ones(8), section=slice(0, 8))
faults.watch(path.parent)
faults.arm(Fault("stat", 1, "fail", errno.EIO, 1 << 40))
try:
    file.write("a", np.ones(8), section=slice(8, 16))
except hs.StorageError as error:
    print(error)
"""


def test_what_cannot_be_looked_at_is_not_taken_for_gone(preloaded: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "a.raw"
    path.write_bytes(bytes(512))
    done = subprocess.run(
        [sys.executable, "-c", UNSEEN, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(preloaded),
        check=True,
    )
    assert "Input/output error" in done.stdout
    assert "replaced" not in done.stdout
    left = [found.name for found in tmp_path.iterdir() if found != path]
    assert all(name in done.stdout for name in left), (left, done.stdout)


# ---- the library sees what the system sees -----------------------------------------------------------------------


def traced(trace: Path, directory: Path) -> dict[str, Counter[str]]:
    """Calls in each directory below one, between looking for ``begins`` and for ``ends`` in it, by their names."""
    found: dict[str, Counter[str]] = {}
    open_ones: set[str] = set()
    below = re.compile(re.escape(str(directory)) + r"/([\w.-]+)(/\w+)?")
    for line in trace.read_text(errors="replace").splitlines():
        call, place = CALL.match(line), below.search(line)
        if call is not None and call[1].startswith("io_uring"):
            found.setdefault("all", Counter())[call[1]] += 1
        if call is None or place is None:
            continue
        name = place[1]
        if place[2] in ("/begins", "/ends"):
            open_ones ^= {name}
        elif name in open_ones and (call[1] != "fcntl" or any(lock in call[2] for lock in LOCKS)):
            exchanges = call[1] == "renameat2" and re.search(r", 0\)? ", call[2]) is None
            found.setdefault(name, Counter())["exchange" if exchanges else call[1]] += 1
    return found


def test_the_library_sees_the_calls_that_the_system_sees(preloaded: dict[str, str], tmp_path: Path) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("there is no strace")
    tried = subprocess.run([strace, "-f", "true"], capture_output=True, text=True, timeout=60, check=False)
    if tried.returncode != 0:
        pytest.skip(f"strace may not trace here: {tried.stderr.strip()}")
    directory, trace = tmp_path / "work", tmp_path / "trace"
    directory.mkdir()
    set_there = [word for name, value in preloaded.items() for word in ("-E", f"{name}={value}")]
    options = ["-f", "-y", "-s", "0", "-e", "trace=%file,%desc,io_uring_setup,io_uring_enter", "-o", str(trace)]
    done = subprocess.run(
        [strace, *options, *set_there, sys.executable, str(HERE / "fault_counts.py"), str(directory)],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment({}),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    counted: dict[str, dict[str, int]] = json.loads(done.stdout)
    calls = traced(trace, directory)
    assert calls.keys() == counted.keys()
    names = {call: name for name, those in SYSTEM_CALLS.items() for call in those} | {"exchange": "exchange"}
    for operation, those in calls.items():
        unknown = those.keys() - names.keys() - HARMLESS
        assert not unknown, f"{operation}: calls of no class: {sorted(unknown)}"
        seen = {name: sum(number for call, number in those.items() if names.get(call) == name) for name in CLASSES}
        expected = dict(counted[operation])
        # One call gives the entries of a directory that are read one by one.
        seen["list"], expected["list"] = min(seen["list"], 1), min(expected["list"], 1)
        # To open a directory for listing, libc asks itself what it is.
        assert 0 <= seen["stat"] - expected["stat"] <= seen["open"], operation
        seen["stat"] = expected["stat"]
        # Of closes, the library counts those of descriptors that wrote.
        seen["close"] = expected["close"]
        assert expected == seen, operation


def main() -> None:
    """Try faults by hand."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    many = parser.add_mutually_exclusive_group()
    many.add_argument("--faults", type=int, default=20, help="for each operation and strategy; 20 by default")
    many.add_argument("--all", action="store_true", help="each call of each rank, each way to fail")
    kinds = parser.add_mutually_exclusive_group()
    for only, told in (
        ("lasting", "only such as let all later calls of a kind fail, too"),
        ("late", "only such as the sync or the close of a descriptor tells"),
    ):
        kinds.add_argument(f"--{only}", action="store_const", dest="only", const=only, help=told)
    parser.add_argument("--seed", type=int, default=seed_of_this_run())
    parser.add_argument("--operation", choices=sorted(OPERATIONS), help="only this one")
    parser.add_argument("--strategy", help="only this one")
    args = parser.parse_args()
    pairs = [
        (name, strategy)
        for name, strategy in EVERY_PAIR
        if args.operation in (None, name) and args.strategy in (None, strategy)
    ]
    with compiled() as variables, quick_directory() as directory:
        faults = None if args.all else args.faults
        print(f"seed {args.seed}", flush=True)
        printed, wrong = try_faults(directory, variables, args.seed, pairs, faults, 86400.0, only=args.only)
        print(*wrong, printed, sep="\n")


if __name__ == "__main__":
    main()
