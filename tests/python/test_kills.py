"""Ranks that are killed, stopped or stalled, and ranks that come back: nothing that readers see is torn.

`kill_cases` says what happens in a case and what must hold. By hand, more cases:

    python tests/python/test_kills.py --cases 500 --seed 7
    python tests/python/test_kills.py --points all
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest

from fault_library import compiled, quick_directory
from fault_operations import Attempt, carry_out, hidden
from kill_cases import ARRIVAL_SECONDS, LARGE_STEP, PROGRESS_SECONDS, RANKS, SLACK_SECONDS, Case, random_case
from mpi_launch import environment, printed, running
from telling import tell
from test_faults import seed_of_this_run

HERE = Path(__file__).parent
#: Ranks of a lane of `mpi_programs.kills`: those of an attempt, and one for another job.
LANE_RANKS = RANKS + 1
#: Cases in the ordinary tests, in lanes that run at the same time.
CASES = 10
LANES = 4
#: Of the cases of a lane, the last ones are deaths, each of which takes a rank away.
DEATHS = 1
#: Lanes of which none has ended a case for this time hang [s].
CASE_SECONDS = 120.0
#: How many cases of a launch at most, before others start.
LAUNCH_CASES = 8
#: For each operation, calls at which a process is killed in the ordinary tests.
POINTS = 3
#: How many cases that went wrong are shown.
SHOWN = 10

Result = dict[str, Any]


@pytest.fixture(scope="module")
def preloaded() -> Iterator[dict[str, str]]:
    """An environment with the library that stops, stalls and kills."""
    with compiled() as variables:
        yield variables


def carry_out_lanes(lanes: Sequence[Sequence[Case]], variables: dict[str, str]) -> list[Result]:
    """The results of cases, lane by lane at the same time; where MPI broke with a death, the rest in another launch."""
    results: list[Result] = []
    while lanes:
        rest = []
        for lane, found in zip(lanes, launch(lanes, variables), strict=True):
            results += found
            left = lane[len(found) :]
            if left and found[-1].get("broke"):
                rest.append(left)
            else:
                results += [{"case": str(case), "wrong": [], "skipped": True} for case in left]
        lanes = rest
    return results


def launch(lanes: Sequence[Sequence[Case]], variables: dict[str, str]) -> list[list[Result]]:
    """What each lane came to: the results of its cases up to the one that did not end, if there is one."""
    with quick_directory() as directory:
        task, work = directory / "task.json", directory / "work"
        task.write_text(json.dumps([[case.to_json() for case in lane] for lane in lanes]))
        for number in range(len(lanes)):
            (work / str(number)).mkdir(parents=True)
        ranks = LANE_RANKS * len(lanes)
        options: dict[str, Any] = {"extra_environment": variables, "deaths_are_hidden": True}
        with running(ranks, "kills", work, task, **options) as (process, output):
            done, since = 0, time.monotonic()
            while done < sum(map(len, lanes)) and time.monotonic() - since < CASE_SECONDS:
                time.sleep(0.05)
                now = len(list(work.glob("*/*.result")))
                if now > done:
                    done, since = now, time.monotonic()
                if process.poll() is not None or len(list(work.glob("ended-*"))) == ranks:
                    break
            told = printed(output)
        results: list[list[Result]] = []
        for number, lane in enumerate(lanes):
            results.append([])
            for each, case in enumerate(lane):
                path = work / str(number) / f"{each}.result"
                missing = {"case": str(case), "wrong": ["it did not end"], "stopped": True, "printed": told[-4000:]}
                results[-1].append(json.loads(path.read_text()) if path.exists() else missing)
                if results[-1][-1].get("broke") or results[-1][-1].get("stopped"):
                    break
        return results


def random_lanes(seed: int, cases: int, lanes: int) -> list[list[Case]]:
    """Cases by chance, some of them deaths."""
    random = np.random.default_rng(seed)
    sizes = [cases // lanes + (number < cases % lanes) for number in range(lanes)]
    return [[random_case(random, kill=each >= size - DEATHS) for each in range(size)] for size in sizes]


def check(results: Sequence[Result], seed: int | None = None) -> None:
    """No case may have gone wrong."""
    wrong = [result for result in results if result["wrong"]]
    some = "\n".join(json.dumps(result) for result in wrong[:SHOWN])
    by = "" if seed is None else f"HYPERSLAB_SEED={seed}: "
    assert not wrong, f"{by}{len(wrong)} of {len(results)} cases went wrong:\n{some}"


@pytest.mark.alone
def test_ranks_that_go_out_and_come_back_tear_nothing(preloaded: dict[str, str]) -> None:
    seed = seed_of_this_run()
    results = carry_out_lanes(random_lanes(seed, CASES, LANES), preloaded)
    check(results, seed)
    assert any(kind == "TimeoutError" for result in results for kind in kinds(result))


def kinds(result: Result) -> set[str]:
    """What ranks that stayed ended with."""
    return {kind for errors in result.get("errors", {}).values() for kind, _ in errors}


@pytest.mark.long
@pytest.mark.mpi
def test_many_ranks_that_go_out_and_come_back(preloaded: dict[str, str]) -> None:
    seed, cases = seed_of_this_run(), int(os.environ.get("HYPERSLAB_CASES", "200"))
    check(campaign(seed, cases, preloaded), seed)


def campaign(seed: int, cases: int, variables: dict[str, str]) -> list[Result]:
    """Many cases, by several launches."""
    results: list[Result] = []
    most = LANES * LAUNCH_CASES
    while len(results) < cases:
        some = min(most, cases - len(results))
        results += carry_out_lanes(random_lanes(seed + len(results), some, min(LANES, some)), variables)
        wrong, skipped = (sum(bool(result.get(what)) for result in results) for what in ("wrong", "skipped"))
        print(f"{len(results)} cases, {wrong} went wrong, {skipped} were not begun", file=sys.stderr, flush=True)
    return results


# ---- a rank of an earlier attempt writes into the next one --------------------------------------------------------


#: Rank 1 goes out before its first write of a chunk, when more are queued; it comes back when the step has been written
#: again, and is not yet published.
LATE = Case(LARGE_STEP.name, "independent", "stall", 1, "write", 0.0, "same", None, before_publish=True)


@pytest.mark.alone
def test_a_write_that_stalls_does_not_reach_the_next_attempt(preloaded: dict[str, str]) -> None:
    """The same ranks write the step again on another communicator, and then the stalled write goes on."""
    results = carry_out_lanes([[LATE], [replace(LATE, event="stop", again="job")]], preloaded)
    check(results)
    assert [kinds(result) for result in results] == [{"TimeoutError"}, {"TimeoutError"}]


@pytest.mark.mpi
@pytest.mark.long
def test_writes_that_stall_do_not_reach_any_next_attempt(preloaded: dict[str, str]) -> None:
    ways = [replace(LATE, again="others"), replace(LATE, again="job"), replace(LATE, event="stop", again="others")]
    cases = [replace(way, victim=victim) for way in ways for victim in (0, 1)]
    check(carry_out_lanes([cases[::2], cases[1::2]], preloaded))


@pytest.mark.alone
@pytest.mark.parametrize(
    ("moment", "victim"), [("write", 1), pytest.param("target", 0, marks=pytest.mark.long)], ids=["writer", "publisher"]
)
def test_a_stopped_rank_of_an_earlier_job_does_not_reach_the_next_one(
    moment: str, victim: int, preloaded: dict[str, str], tmp_path: Path
) -> None:
    """Job A has a stopped rank and leaves; job B writes the same step; the rank of A goes on before B publishes."""
    case = tmp_path / "case"
    case.mkdir()
    made = LATE.made
    made.prepare(case)
    before = made.look(case)
    a_rest = [rank for rank in range(RANKS) if rank != victim]
    limit = 30.0 + ARRIVAL_SECONDS + 2 * PROGRESS_SECONDS + SLACK_SECONDS
    options: dict[str, Any] = {"extra_environment": preloaded, "deaths_are_hidden": True}
    with running(RANKS, "restarted", tmp_path, 1, moment, victim, **options) as (_, a_output):
        ends = [wait_for(tmp_path / f"1-{rank}.json", limit, a_output) for rank in a_rest]
        assert {kind for end in ends for kind, _ in end["errors"]} == {"TimeoutError"}
        assert made.look(case) == before
        with running(RANKS - 1, "restarted", tmp_path, 2, **options) as (_, b_output):
            wait_for(tmp_path / "2.written", limit, b_output)
            os.kill(wait_for(tmp_path / f"1-{victim}.pid", limit, a_output), signal.SIGCONT)
            back = wait_for(tmp_path / f"1-{victim}.json", limit, a_output)
            assert back["where"], "it was never stopped"
            tell(tmp_path / "go", content=True)
            second = [wait_for(tmp_path / f"2-{rank}.json", limit, b_output) for rank in range(RANKS - 1)]
    check_late_rank(case, before, back, second, publisher=moment == "target")


def wait_for(path: Path, seconds: float, output: Any) -> Any:
    """What a rank has noted, when it has."""
    until = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < until, f"nobody wrote {path.name}; printed was:\n{printed(output)}"
        time.sleep(0.01)
    return json.loads(path.read_text())


def check_late_rank(case: Path, before: Any, back: Any, second: list[Any], *, publisher: bool) -> None:
    """One of the two jobs has its step, whole; a third one finds everything in order."""
    made = LATE.made
    told = {str(end["errors"]) for end in second}
    assert len(told) == 1, told
    errors = second[0]["errors"]
    # A publisher that comes back before the other publishes may well be the one who wins the name.
    first_wins = publisher and back["published"]
    assert [kind for kind, _ in errors] == (["ExistsError"] if first_wins else []), (back, errors)
    assert all(issubclass(getattr(hs, kind), hs.Error) for kind, _ in back["errors"]), back
    assert first_wins or back["errors"]
    state = made.look(case)
    assert state == made.after(before, Attempt(None, case, 1 if first_wins else 2)), state
    third = Attempt(None, case, 3, turn=made.turn(state))
    carry_out(made, third)
    assert third.errors == []
    assert made.look(case) == made.after(state, third)
    assert hidden(case) == []


# ---- one process, killed at any call -----------------------------------------------------------------------------


def kill_at(points: int | None, seed: int, variables: dict[str, str], timeout: float) -> dict[str, Any]:
    """Kill processes at some calls of each operation, or at all."""
    with quick_directory() as directory:
        command = [sys.executable, str(HERE / "kill_points.py"), str(directory), str(seed), str(points or "all")]
        done = subprocess.run(
            command, env=environment(variables), capture_output=True, text=True, timeout=timeout, check=False
        )
    assert done.returncode == 0, f"HYPERSLAB_SEED={seed}\n{done.stderr}"
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_a_process_that_is_killed_at_a_call_tears_nothing(preloaded: dict[str, str]) -> None:
    seed = seed_of_this_run()
    told = kill_at(POINTS, seed, preloaded, 120.0)
    some = "\n".join(json.dumps(each) for each in told["wrong"][:SHOWN])
    assert not told["wrong"], f"HYPERSLAB_SEED={seed}: {len(told['wrong'])} of {told['cases']} went wrong:\n{some}"
    assert told["cases"] > 0


@pytest.mark.long
def test_a_process_that_is_killed_at_every_call_tears_nothing(preloaded: dict[str, str]) -> None:
    told = kill_at(None, 0, preloaded, 1500.0)
    some = "\n".join(json.dumps(each) for each in told["wrong"][:SHOWN])
    assert not told["wrong"], f"{len(told['wrong'])} of {told['cases']} went wrong:\n{some}"


def main() -> None:
    """Carry out cases by hand."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=0, help="ranks that go out, by chance")
    parser.add_argument("--points", help="calls at which a process is killed, for each operation, or 'all'")
    parser.add_argument("--seed", type=int, default=seed_of_this_run())
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    with compiled() as variables:
        if args.points is not None:
            points = None if args.points == "all" else int(args.points)
            told = kill_at(points, args.seed, variables, 86400.0)
            print(*map(json.dumps, told["wrong"]), f"{told['cases']} kills, {len(told['wrong'])} went wrong", sep="\n")
        results = campaign(args.seed, args.cases, variables)
        print(*(json.dumps(result) for result in results if result["wrong"]), sep="\n")


if __name__ == "__main__":
    main()
