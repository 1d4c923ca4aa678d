"""``hyperslab bench peers``: a tiny run of all families, and what is said of times that are planted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hyperslab.bench._peers_libraries import Plain
from hyperslab.bench._peers_rows import FAMILIES, ROWS, SIZES, ranks_of, shapes_between
from hyperslab.bench._peers_tables import Measured, notes, summary_table

from mpi_launch import environment, mpiexec


def row(name: str) -> Any:
    return next(one for one in ROWS if one.name == name)


def planted(name: str, ours: float, peer: float, limit: float, first: float, nbytes: int = 1000) -> Measured:
    """A row with these times [s] of one later and one first call."""

    def way(called: str, role: str, seconds: float) -> dict[str, Any]:
        memory = {"rank": 1 << 20, "node": 2 << 20}
        return {"name": called, "role": role, "hints": None, "seconds": [[seconds]], "memory": memory}

    quiet = {"seconds": 1.0, "others": 0.0, "stolen": 0.0}
    ways = [way("hyperslab", "ours", ours), way("h5py", "peer", peer), way("limit: plain code", "limit", limit)]
    firsts = {"hyperslab": [{"ways": [way("hyperslab", "ours", first)], "load": quiet}]}
    return Measured(row(name), 2, {"bytes": nbytes, "ways": ways, "load": quiet}, firsts)


def test_a_row_is_fast_beside_the_best_peer_or_near_the_limit() -> None:
    assert planted("whole, raw, write", 1.0, 1.31, 0.1, 1.0).is_fast
    assert planted("whole, raw, write", 1.0, 0.9, 0.8, 1.0).is_fast
    assert not planted("whole, raw, write", 1.0, 0.5, 0.8, 1.0).is_fast, "a peer is faster than plain code"
    assert not planted("whole, raw, write", 1.0, 1.2, 0.7, 1.0).is_fast
    assert planted("whole, Zarr, write", 1.0, 1.2, 0.7, 1.0).is_fast, "Zarr may be further from the limit"


def test_a_first_call_is_held_against_later_ones_by_size() -> None:
    large = 512 << 20
    assert planted("whole, raw, write", 0.2, 1.0, 1.0, 0.29, large).is_fast_at_once
    assert not planted("whole, raw, write", 0.2, 1.0, 1.0, 0.31, large).is_fast_at_once
    assert planted("new, Zarr", 0.001, 1.0, 1.0, 0.0059).is_fast_at_once
    assert not planted("new, Zarr", 0.001, 1.0, 1.0, 0.0061).is_fast_at_once


def test_a_disturbed_row_says_so() -> None:
    one = planted("new, Zarr", 1.0, 1.0, 1.0, 1.0)
    assert not one.disturbances
    one.later["load"]["others"] = 0.9
    one.notes.append("4000 files were deleted on this file system meanwhile")
    assert one.disturbances == [*one.notes, "other programs took 0.90 cores"]
    assert any(line.startswith("disturbed: new, Zarr, 2 ranks") for line in notes([one]))
    assert "disturbed" in summary_table([one])


def test_the_command_leaves_mpi_to_the_ranks_that_it_starts() -> None:
    """A process that begins with MPI by itself has files of Open MPI's, which stay when it is told to end."""
    code = "import sys, hyperslab.bench._entire, hyperslab.bench._formats; "
    code += "import hyperslab.bench._peers, hyperslab.bench._regret; sys.exit('mpi4py.MPI' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_fewer_ranks_read_what_more_wrote() -> None:
    assert [ranks_of(row("reread, raw"), ranks) for ranks in (2, 4, 8)] == [None, 3, 6]
    assert ranks_of(row("many, Zarr"), 2) == 2


def test_shapes_go_from_1_kib_to_the_largest() -> None:
    for ranks in (2, 8):
        sizes = [8 * rows * columns for rows, columns in shapes_between(300, 4 << 20, ranks)]
        assert abs(sizes[0] - 1024) < 200
        assert abs(sizes[-1] / (4 << 20) - 1) < 0.02
        assert all(rows % ranks == 0 for rows, _ in shapes_between(300, 4 << 20, ranks))


def test_plain_code_writes_what_zarr_python_reads(tmp_path: Path) -> None:
    import numpy as np
    import zarr

    plain = Plain()
    array = np.arange(24.0).reshape(4, 6)
    handle = plain.create(tmp_path / "a", (4, 6), (2, 3))
    plain.put(handle, (slice(0, 4), slice(0, 6)), array)
    array[1:3, 2:5] = -1
    plain.put(plain.open(tmp_path / "a"), (slice(1, 3), slice(2, 5)), array[1:3, 2:5])
    assert np.array_equal(zarr.open_array(store=str(tmp_path / "a"), mode="r")[...], array)
    found = np.zeros((3, 4))
    plain.get(plain.open(tmp_path / "a"), (slice(1, 4), slice(1, 5)), found)
    assert np.array_equal(found, array[1:4, 1:5])


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 4])
def test_all_families_run_and_check_themselves(ranks: int, tmp_path: Path) -> None:
    run(tmp_path, ranks, FAMILIES)


@pytest.mark.mpi
def test_some_families_run_and_check_themselves(tmp_path: Path) -> None:
    run(tmp_path, 2, ("new",))


def run(folder: Path, ranks: int, families: tuple[str, ...]) -> None:
    mpiexec()
    command = [sys.executable, "-m", "hyperslab", "bench", "peers", "--size", "tiny", "--repetitions", "2"]
    command += ["--launches", "1", "--ranks", str(ranks), "--families", ",".join(families), "--json"]
    command += ["--directory", str(folder / "scratch"), "--output", str(folder / "out")]
    done = subprocess.run(command, env=environment({}), capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    wanted = [one.name for one in ROWS if one.family in families and ranks_of(one, ranks) is not None]
    assert [one["row"] for one in told["rows"]] == wanted
    for one in told["rows"]:
        ways = {way["name"]: way for way in one["later"]["ways"]}
        assert {"hyperslab", "limit: plain code", "nothing: an empty call"} <= set(ways)
        assert len(ways) >= 5
        assert all(len(calls) >= 1 and min(map(min, calls)) > 0 for calls in (way["seconds"] for way in ways.values()))
        first = one["firsts"]["hyperslab"][0]["ways"][0]
        assert len(first["seconds"]) == len(first["seconds"][0]) == 1
        assert first["memory"]["node"] >= first["memory"]["rank"] > 0
    assert not list((folder / "scratch").iterdir())
    assert json.loads((folder / "out/peers.json").read_text()) == told
    assert wanted[0] in (folder / "out/peers.txt").read_text()
    circles = list(ElementTree.parse(folder / "out/peers.svg").iter("{http://www.w3.org/2000/svg}circle"))
    assert len(circles) >= 6 * len(wanted)
    assert SIZES["tiny"].calls == 4
