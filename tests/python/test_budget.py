"""Memory of a transfer depends on its budget, not on its size: 400 MiB pass through buffers of 4 MiB."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mpi_launch import run_ranks
from mpi_programs.budget import BUFFER_BYTES, STRATEGIES

HERE = Path(__file__).parent
#: What a process may need besides: stacks of threads, lists of steps [B].
BESIDES = 4 << 20
#: Where ranks do not copy out of each other's memory, or runs are short, packed messages under way come on top, at both
#: ends, and what MPI keeps of its own [B].
MESSAGES = 4 * BUFFER_BYTES
#: Pages of the system's cache that a read has mapped count as memory of the process [B].
MAPPED = 2 << 20

pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux' record of the peak")


def check(every: list[dict[str, tuple[int, int]]], most: int) -> None:
    """Compare the memory that was needed with what is allowed."""
    assert len(every[0]) == 1 + 4 * len(STRATEGIES)
    for rank, found in enumerate(every):
        for name, (rise, buffers) in found.items():
            assert rise <= most, f"{name}: memory rose by {rise / 2**20:.1f} MiB on rank {rank}"
            assert buffers <= BUFFER_BYTES, f"{name}: {buffers} B of buffers on rank {rank}"
    assert max(found["server-directed write raw"][1] for found in every) > 0


# Beside others, MPI keeps more messages that come too early.
@pytest.mark.alone
@pytest.mark.mpi
@pytest.mark.parametrize("direct", [True, False])
def test_processes(direct: bool, tmp_path: Path) -> None:  # noqa: FBT001
    printed = run_ranks(2, "budget", tmp_path, extra_environment={"HYPERSLAB_DIRECT": str(int(direct))})
    check(json.loads(printed.splitlines()[-1]), BUFFER_BYTES + BESIDES + (0 if direct else MESSAGES))


def test_threads(tmp_path: Path) -> None:
    """All share one process, so their budgets add up, and so does what they need besides, for the most part.

    A process of its own: what earlier tests left in this one's heap and threads would count as memory of the transfer.
    """
    ranks = 4
    program = [sys.executable, "-m", "mpi_programs.budget", str(tmp_path), str(ranks)]
    printed = subprocess.run(program, stdout=subprocess.PIPE, check=True, timeout=300, cwd=HERE).stdout
    check(json.loads(printed), ranks * (BUFFER_BYTES + MAPPED) + 2 * BESIDES)


def test_the_module_takes_little_address_space_and_no_huge_pages() -> None:
    """Systems that limit address space count all of it, used or not; huge pages would be resident for each thread."""
    program = """
from pathlib import Path
import numpy, tempfile

def pages():
    return [4096 * int(count) for count in Path("/proc/self/statm").read_text().split()[:2]]

def huge():
    flags = [line.split() for line in Path("/proc/self/smaps").read_text().splitlines() if line.startswith("VmFlags:")]
    return sum("hg" in each for each in flags)

before, asked = pages(), huge()
import hyperslab._core as core
core.Distribution  # it is loaded
found = [after - earlier for after, earlier in zip(pages(), before)]
import hyperslab as hs
with hs.open(tempfile.mkdtemp() + "/a.zarr", "w") as store:
    store.write("a", numpy.ones(8))
    print(*found, huge() - asked)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    reserved, resident, asked = map(int, done.stdout.split())
    assert reserved <= 256 << 20
    assert resident <= 32 << 20
    assert asked == 0


def test_large_encoded_chunks_are_given_back(tmp_path: Path) -> None:
    """What a thread allocates to encode a chunk, another frees: that memory must not grow from write to write."""
    program = f"""
from pathlib import Path
import numpy as np, hyperslab as hs

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

values = np.random.default_rng(0).random((3, 4 << 20))
with hs.open({str(tmp_path / "a.zarr")!r}, "w") as store:
    found = []
    for number in range(4):
        store.write({{f"a{{number}}": values}}, chunks=(1, 4 << 20), compression="zstd")
        found.append(resident())
print(found[-1] - found[0])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    # One encoded chunk has 32 MiB.
    assert int(done.stdout) <= 32 << 20
