"""Several nodes: what a launch on one node shows holds across nodes, too, and what they do not share is an error.

The nodes are namespaces of one machine, which share one page cache. So nothing here shows what caches of attributes,
names and data in clients of NFS, Lustre and their like do; `nodes` says what nodes have of their own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest
import zarr

from mpi_launch import MOUNTING, check_can_mount, printed, run_ranks, running
from mpi_programs.cut_off import ARRIVAL_SECONDS, PROGRESS_SECONDS, STORAGE_SECONDS
from nodes import nodes
from unshared_cases import CASES

pytestmark = pytest.mark.mpi

SEED = 20261123
#: Nodes, ranks and transfers.
SPREADS = {2: (4, 20), 3: (5, 20)}
#: What may pass between a limit and the error, on a machine that has other things to do, too [s].
SLACK_SECONDS = 8.0
Outcomes = dict[str, list[dict[str, Any]]]


@pytest.mark.parametrize("number", SPREADS)
def test_random_transfers_across_nodes_equal_the_oracle(number: int, tmp_path: Path) -> None:
    ranks, cases = SPREADS[number]
    with nodes(number) as made:
        told = run_ranks(
            ranks,
            "roundtrip",
            tmp_path,
            SEED,
            cases,
            inside=made.inside,
            extra_environment=made.environment(ranks),
        )
    assert f"{cases} cases on {ranks} ranks" in told


# ---- a path that not all ranks share ---------------------------------------------------------------------------


def outcomes(ranks: int, report: Path, output: str) -> Outcomes:
    """How the cases ended on all ranks, as far as they got."""
    lines = [(report / f"rank{rank}").read_text().splitlines() for rank in range(ranks)]
    assert all(lines), output
    every = [dict(map(json.loads, each)) for each in lines]
    return {name: [each[name] for each in every] for name in CASES if all(name in each for each in every)}


@pytest.fixture(scope="module")
def on_one_node(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """Four ranks, of which two see file systems of their own at a path."""
    directory, report = tmp_path_factory.mktemp("own"), tmp_path_factory.mktemp("report")
    check_can_mount(directory)
    output = run_ranks(4, "unshared", directory, report, 2, 3, inside=MOUNTING)
    return outcomes(4, report, output)


@pytest.fixture(scope="module")
def on_three_nodes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """Five ranks on three nodes, each with a file system of its own at a path."""
    directory, report = tmp_path_factory.mktemp("own"), tmp_path_factory.mktemp("report")
    with nodes(3, [directory]) as made:
        output = run_ranks(5, "unshared", directory, report, inside=made.inside, extra_environment=made.environment(5))
    found = outcomes(5, report, output)
    assert [each["node"] for each in next(iter(found.values()))] == ["node1", "node1", "node2", "node2", "node3"]
    return found


def check_all_fail_or_nothing_is_missing(name: str, found: Outcomes) -> None:
    """All ranks have one error, and no file has parts of what was written; or all went well, where it may."""
    assert name in found, "the ranks did not get to the end of it"
    every = found[name]
    if "by_a_server" in name:
        # The last rank serves, and has no call of its own that could fail.
        every = every[:-1]
    errors = {(each["kind"], each["text"]) for each in every}
    assert len(errors) == 1, errors
    kind, text = errors.pop()
    values = [each["found"] for each in every] if name.startswith("reading") else [every[0]["found"]]
    if kind == "none":
        assert set(values) == {"whole"}, f"no error, but what was found is {values}"
        assert not CASES[name].must_fail, "a rank handled files that rank 0 does not see, and nobody says so"
    else:
        assert issubclass(getattr(hs, kind, Exception), hs.Error), (kind, text)
        assert kind not in ("InvalidError", "TimeoutError"), f"it failed for another reason: {text}"
        assert set(values) <= {"absent", "as before", "partly changed and marked", "nothing"}, (kind, text, values)


@pytest.mark.parametrize("name", CASES)
def test_files_that_half_of_the_ranks_do_not_see(name: str, on_one_node: Outcomes) -> None:
    check_all_fail_or_nothing_is_missing(name, on_one_node)


@pytest.mark.parametrize("name", CASES)
def test_files_that_other_nodes_do_not_see(name: str, on_three_nodes: Outcomes) -> None:
    check_all_fail_or_nothing_is_missing(name, on_three_nodes)


# ---- a link that is cut ----------------------------------------------------------------------------------------


@pytest.mark.alone
@pytest.mark.filterwarnings("ignore:.*removed what an earlier run left unfinished")
@pytest.mark.parametrize("cut", [3, pytest.param(1, marks=pytest.mark.long)], ids=["off_others", "off_rank_0"])
def test_a_link_that_is_cut_in_the_middle_of_a_campaign(cut: int, tmp_path: Path) -> None:
    """Every rank ends within its limits, and all steps that can be seen are whole."""
    store, report = tmp_path / "a.zarr", tmp_path / "report"
    report.mkdir()
    ranks = 5
    files = {rank: report / f"rank{rank}.json" for rank in range(ranks)}
    with (
        nodes(3) as made,
        running(
            ranks,
            "cut_off",
            tmp_path,
            report,
            inside=made.inside,
            extra_environment=made.environment(ranks),
            deaths_are_hidden=True,
        ) as (process, output),
    ):
        wait_for(lambda: len(published(store)) >= 5 or process.poll() is not None, 30.0)
        assert len(published(store)) >= 5, printed(output)
        made.cut(process, cut)
        limit = ARRIVAL_SECONDS + PROGRESS_SECONDS + STORAGE_SECONDS + SLACK_SECONDS
        wait_for(lambda: all(file.exists() for file in files.values()), limit + 5.0)
        missing = [rank for rank, file in files.items() if not file.exists()]
        (report / "over").touch()
        # All else in the namespaces ends with it.
        process.kill()
        assert missing == [], f"long after the cut, ranks {missing} still wait:\n{printed(output)}"
    for rank, file in files.items():
        noted = json.loads(file.read_text())
        assert noted["ours"], (rank, noted)
        assert noted["seconds"] < limit, (rank, noted)
    check_steps(store)


def wait_for(condition: Callable[[], bool], limit: float) -> None:
    """Wait until something is so, but not longer than a limit [s]."""
    deadline = time.monotonic() + limit
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)


def published(store: Path) -> list[str]:
    """Names of the steps that readers see."""
    return sorted(each.name for each in store.glob("[0-9]*")) if store.exists() else []


def check_steps(store: Path) -> None:
    """All steps that are visible are whole, and the next run goes on."""
    names = published(store)
    assert names == [f"{number:06}" for number in range(len(names))]
    root = zarr.open_group(store, mode="r")
    for number, name in enumerate(names):
        assert root[name].attrs["number"] == number
        assert (root[name]["a"][...] == number).all(), name
        assert (root[name]["b"][...] == -number).all(), name
    with hs.open(store, "r+") as again:
        with again.step(f"{len(names):06}") as step:
            step.write("a", np.zeros(3))
        assert len(again.groups()) == len(names) + 1
