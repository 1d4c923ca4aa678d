"""``hyperslab bench regret``: its sample, its memories, scores where the answer is planted, and a tiny run."""

from __future__ import annotations

import json
import math
import random
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import hyperslab as hs
import numpy as np
import pytest
from hyperslab.bench._allowance import USUAL_ROUNDS, Allowance
from hyperslab.bench._campaign import Campaign, Result
from hyperslab.bench._cases import Case, Spread, holding
from hyperslab.bench._checks import check_chunks, check_file
from hyperslab.bench._estimates import Estimates
from hyperslab.bench._families import FAMILIES, LARGEST_BYTES, MOST_RUNS
from hyperslab.bench._grid import CHOSEN, TWIN, grid, in_turns, why_not_mpiio
from hyperslab.bench._memory import Held, values
from hyperslab.bench._scoring import Score, score, summary
from hyperslab.bench._sweep import MODES, RANKS, sample

from mpi_launch import environment, mpiexec, run_ranks

# ---- the sample ------------------------------------------------------------------------------------------------


def test_the_sample_is_the_same_each_time_and_another_for_another_seed() -> None:
    assert sample(7, 40) == sample(7, 40)
    assert sample(7, 40)[:15] == sample(7, 15)
    assert sample(7, 40) != sample(8, 40)


@pytest.mark.parametrize("seed", range(4))
def test_every_family_meets_every_number_of_ranks_and_mode(seed: int) -> None:
    cases = sample(seed, 9 * len(FAMILIES))
    met = Counter((case.family, case.ranks, case.mode) for case in cases)
    for family in set(FAMILIES) - {"another distribution"}:
        assert {key[1:] for key in met if key[0] == family} == {
            (ranks, name) for ranks in RANKS for name in ("write", "write, fsync", "read")
        }
    assert {case.mode for case in cases if case.family == "another distribution"} == {"read"}
    # A small sample is balanced, too: each round has all families and all combinations.
    for turn in range(9):
        some = cases[turn * len(FAMILIES) : (turn + 1) * len(FAMILIES)]
        assert {case.family for case in some} == set(FAMILIES)
        pairs = {(case.ranks, case.mode) for case in some}
        assert len(pairs) >= len(RANKS) * len(MODES) - 1


def test_sizes_and_kinds_cover_the_sweep() -> None:
    cases = sample(1, 400)
    assert all(8 << 10 <= case.stored_bytes <= 1.4 * LARGEST_BYTES for case in cases)
    assert all(case.runs <= MOST_RUNS for case in cases)
    octaves = Counter(int(math.log2(case.stored_bytes)) for case in cases)
    assert all(octaves[octave] >= 8 for octave in range(17, 29)), octaves
    assert max(octaves) >= 29
    assert {len(case.shape) for case in cases} == {1, 2, 3, 4}
    assert {case.target for case in cases} == {"raw", "zarr"}
    assert {case.memory for case in cases} == {"plain", "with_halo", "interleaved"}
    assert any(case.order == "F" for case in cases)
    assert any(case.spread.box for case in cases)
    assert {case.arrays for case in cases} & set(range(512, 1025))
    assert all(
        case.stored_bytes <= 1.4 * (1 << 20) for case in sample(1, 60, largest_bytes=1 << 20) if case.arrays == 1
    )


@pytest.mark.parametrize("seed", range(3))
def test_each_case_makes_sense_and_travels(seed: int) -> None:
    for case in sample(seed, 60, largest_bytes=1 << 20):
        assert Case.of_json(json.loads(json.dumps(case.to_json()))) == case
        for spread in filter(None, (case.spread, case.written)):
            shape = case.part if spread is case.spread else case.shape
            assert math.prod(spread.mesh) == case.ranks
            held = [holding(spread, shape, rank) for rank in range(case.ranks)]
            parts = [
                sum(map(math.prod, one.local_shapes)) if isinstance(one, hs.Boxes) else math.prod(one.local_shape(rank))
                for rank, one in enumerate(held)
            ]
            assert sum(parts) == math.prod(shape)


def test_runs_are_those_of_the_file() -> None:
    common = {"number": 0, "family": "", "ranks": 4, "direction": "write", "durable": False, "arrays": 1}
    common |= {"shape": (6, 8, 10), "dtype": "f4", "memory_dtype": "f4", "target": "raw"}

    def run(dims: tuple[str, ...], mesh: tuple[int, ...], **more: object) -> int:
        return Case(**(common | {"spread": Spread(mesh, dims)} | more)).run_bytes  # type: ignore[arg-type]

    assert run(("block", "*", "*"), (4,)) == 2 * 8 * 10 * 4
    assert run(("*", "block", "*"), (4,)) == 2 * 10 * 4
    assert run(("*", "*", "cyclic(3)"), (4,)) == 3 * 4
    assert run(("*", "block", "*"), (4,), order="F") == 6 * 2 * 4
    assert run(("block", "*", "*"), (2,), section=((0, 6, 1), (0, 4, 1), (0, 10, 1))) == 4 * 10 * 4
    assert run(("block", "*", "*"), (2,), section=((0, 6, 1), (0, 8, 1), (0, 10, 2))) == 4


# ---- memories and checks ---------------------------------------------------------------------------------------


def test_what_ranks_hold_is_right_only_where_each_element_has_its_value() -> None:
    for case in sample(5, 40, largest_bytes=1 << 18):
        held = Held(case, case.spread, case.ranks - 1)
        held.fill()
        assert held.is_right()
        views = [view for views in held.inside.values() for view in views if view.size]
        if views:
            views[-1][(-1,) * views[-1].ndim] += 1
            assert not held.is_right()


def test_checks_of_files_find_one_wrong_element(tmp_path: Path) -> None:
    shape = (7, 9, 11)
    right = values(np.ix_(*map(np.arange, shape)), 3).astype("<i2")
    for order in ("C", "F"):
        path = tmp_path / order
        path.write_bytes(b"head" + right.tobytes(order))
        check_file(path, shape, "<i2", lambda places: values(places, 3), order=order, offset=4)
        wrong = right.copy()
        wrong[3, 4, 5] += 1
        path.write_bytes(b"head" + wrong.tobytes(order))
        with pytest.raises(AssertionError, match="not what was written"):
            check_file(path, shape, "<i2", lambda places: values(places, 3), order=order, offset=4)
    for chunks, shards in ((shape, None), ((4, 4, 4), None), ((2, 3, 4), (4, 6, 12))):
        for wrong, good in ((0, True), (1, False)):
            content = right.copy()
            content[3, 4, 5] += wrong
            with hs.open(tmp_path / "s.zarr", "w") as store:
                store.write("a", content, chunks=chunks, shards=shards)
            if good:
                check_chunks(tmp_path / "s.zarr" / "a", shape, lambda places: values(places, 3))
            else:
                with pytest.raises(AssertionError, match="not what was written"):
                    check_chunks(tmp_path / "s.zarr" / "a", shape, lambda places: values(places, 3))


# ---- ways ------------------------------------------------------------------------------------------------------


def test_the_grid_holds_every_strategy_and_names_each_way_once() -> None:
    for case in sample(1, 60):
        ways, left_out = grid(case, [{"cb_nodes": "2"}])
        names = [way.name for way in ways]
        assert len(set(names)) == len(names)
        assert names[:2] == [CHOSEN, TWIN]
        assert not ways[0].options
        own = [way for way in ways[2:] if way.hints is None]
        assert len(own) <= 19
        strategies = {str(way.options["strategy"]) for way in own} | {name.partition(",")[0] for name in left_out}
        assert strategies - {"MPI-IO"} == set(hs._core.strategies())
        assert (why_not_mpiio(case) is None) == any(way.hints is not None for way in ways)


def test_methods_take_turns_when_they_are_tried() -> None:
    ways, _ = grid(next(case for case in sample(1, 60) if why_not_mpiio(case) is None), [{"cb_nodes": "2"}])
    order = in_turns(ways[2:])
    assert sorted(way.name for way in order) == sorted(way.name for way in ways[2:])
    first = [way.options.get("strategy") for way in order[:7]]
    assert set(first) == {*hs._core.strategies(), None}


# ---- time ------------------------------------------------------------------------------------------------------


class Planted(Campaign):
    """A campaign on a machine that is slower than estimated by a factor for each kind, in a time of its own."""

    now = 0.0
    slower: Callable[[Case], float]

    def _launch(self, cases: Sequence[Case], deadline: float) -> tuple[list[Result], bool]:
        self.now += 2.0
        lines: list[Result] = []
        for place, case in enumerate(cases):
            if place > 0 and deadline - self.now < 0.7 * self.wanted(case):
                lines.append({"deferred": case.number})
                continue
            needed = Estimates().least(case) * self.slower(case)
            given = max(0.0, min(self._most, deadline - self.now))
            # A transfer that was begun is ended, however late it is.
            self.now += min(max(self._short, needed), given) + needed / 90
            lines.append({"case": case.to_json(), "least_seconds": needed})
        return lines, True


@pytest.mark.parametrize("slowness", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("minutes", [4, 60])
def test_a_campaign_keeps_its_time_on_any_machine(slowness: float, minutes: int) -> None:
    campaign = Planted(7, RANKS, LARGEST_BYTES if minutes > 4 else 256 << 20, minutes, Path())
    campaign.clock = lambda: campaign.now
    uneven = {family: slowness * 2 ** ((number % 5) - 2) for number, family in enumerate(FAMILIES)}
    campaign.slower = lambda case: uneven[case.family]
    campaign.run()
    assert 0.6 * 60 * minutes < campaign.now <= 60 * minutes
    cases = [Case.of_json(result["case"]) for result in campaign.results]
    assert {case.number for case in cases} | set(campaign.missing) == set(range(campaign.drawn))
    assert not {case.number for case in cases} & set(campaign.missing)
    # Nothing is left out but at the end.
    assert len(campaign.missing) <= 3
    if minutes == 60:
        assert {case.family for case in cases} == set(FAMILIES)
        assert {case.ranks for case in cases} == set(RANKS)
        assert len(cases) >= 2 * len(FAMILIES)
        assert max(case.bytes for case in cases) > 100 << 20


def test_estimates_learn_from_cases_of_their_kind() -> None:
    estimates = Estimates()
    slow, other = ([case for case in sample(1, 200) if case.family == name] for name in ("Jeans", "FLASH"))
    before = {case: estimates.least(case) for case in (slow[0], other[0])}
    for case in slow[1:5]:
        estimates.learn(case, 8 * Estimates().least(case))
    assert 4 * before[slow[0]] < estimates.least(slow[0]) < 16 * before[slow[0]]
    for case in other[1:5]:
        estimates.learn(case, Estimates().least(case))
    assert estimates.least(other[0]) < 3 * before[other[0]]
    copied = Estimates(json.loads(json.dumps(estimates.to_json())))
    assert copied.least(slow[0]) == estimates.least(slow[0])


def test_rounds_follow_from_the_time_that_is_left() -> None:
    times = Allowance(began=100.0, share=30.0, short=12.0, most=60.0)
    assert times.rounds(102.0, 0.01) == 100
    assert times.rounds(102.0, 1.0) == 10
    assert times.rounds(115.0, 1.0) == 6
    assert times.rounds(126.0, 1.0) == 4
    assert times.rounds(140.0, 1.0) == 2
    times.extend(104.0, 40.0)
    assert times.end == pytest.approx(150.0)
    times.extend(104.0, 400.0)
    assert times.end == pytest.approx(160.0)


# ---- scores ----------------------------------------------------------------------------------------------------


def planted(seed: int, factors: dict[str, float], noise: float, rounds: int = 12) -> Score:
    """Times of ways that take so many times a second, with noise that disturbs whole rounds and each way."""
    chance = random.Random(seed)
    times: dict[str, list[float]] = {name: [] for name in factors}
    for _ in range(rounds):
        all_alike = math.exp(chance.gauss(0, noise))
        for name, factor in factors.items():
            times[name].append(factor * all_alike * math.exp(chance.gauss(0, noise)))
    return score({"rounds": times})


def test_a_choice_that_is_half_as_slow_again_has_that_regret() -> None:
    factors = {CHOSEN: 1.5, TWIN: 1.5, "fast": 1.0, "slow": 2.0}
    exact = planted(0, factors, 0.0)
    assert exact.best == "fast"
    assert exact.regret == pytest.approx(0.5)
    assert exact.regret_beyond_noise == pytest.approx(0.5)
    assert not exact.is_tie
    noisy = [planted(seed, factors, 0.03) for seed in range(50)]
    assert all(0.4 < one.regret < 0.6 and not one.is_tie for one in noisy)


def test_a_choice_that_is_faster_than_all_has_won() -> None:
    won = planted(0, {CHOSEN: 0.8, TWIN: 0.8, "other": 1.0}, 0.02)
    assert won.regret == pytest.approx(-0.2, abs=0.05)
    assert won.regret_beyond_noise == 0
    assert summary([won])["won"] == 1


def test_noise_alone_is_a_tie_and_no_regret() -> None:
    """Eight ways that are all the same: the best of them is so by luck, which must not count."""
    factors = dict.fromkeys([CHOSEN, TWIN, *"abcdef"], 1.0)
    scores = [planted(seed, factors, 0.1) for seed in range(300)]
    found = summary(scores)
    assert found["ties"] > 0.85 * len(scores)
    assert abs(statistics.mean(one.regret for one in scores)) < 0.02
    assert found["within_aim_beyond_noise"] > 0.9


def test_the_best_is_chosen_where_it_is_not_scored() -> None:
    """A way that was fast only in the rounds that select is taken, and its later times are what counts."""
    lucky = [0.5, 1.2] * 6
    found = score({"rounds": {CHOSEN: [1.0] * 12, TWIN: [1.0] * 12, "lucky": lucky, "steady": [0.9] * 12}})
    assert found.best == "lucky"
    assert found.regret == pytest.approx(1 / 1.2 - 1)


def test_a_difference_that_the_choice_has_from_itself_is_a_tie() -> None:
    found = score({"rounds": {CHOSEN: [1.1] * 8, TWIN: [1.25] * 8, "other": [1.0] * 8}})
    assert found.regret == pytest.approx(0.1)
    assert found.is_tie
    assert found.regret_beyond_noise == 0


def test_predictions_are_held_against_what_the_call_took() -> None:
    rounds = {CHOSEN: [2.0] * 6, TWIN: [2.0] * 6, "other": [2.0] * 6}
    reports = [{"predicted": 0.8, "seconds": 1.0}] * 6
    found = score({"rounds": rounds, "reports": reports})
    assert found.prediction_error == pytest.approx(0.2)
    silent = score({"rounds": rounds, "reports": [{"predicted": None, "seconds": 1.0}] * 6})
    assert silent.prediction_error is None
    both = summary([found, silent])
    assert both["predicted"] == 1
    assert both["prediction_error_median"] == pytest.approx(0.2)


# ---- the real thing --------------------------------------------------------------------------------------------


@pytest.mark.mpi
def test_each_family_is_done_by_each_way_and_checked(tmp_path: Path) -> None:
    print(run_ranks(3, "ways", tmp_path, 11, 2 * len(FAMILIES)))
    (aside,) = tmp_path.iterdir()
    left = [path for path in aside.rglob("*") if path.is_file()]
    assert left
    assert not any(path.stat().st_size for path in left)


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.parametrize("ranks", RANKS)
def test_many_cases_of_each_family_are_done_by_each_way(ranks: int, tmp_path: Path) -> None:
    print(run_ranks(ranks, "ways", tmp_path, ranks, 9 * len(FAMILIES), timeout=1200))


@pytest.mark.mpi
def test_a_tiny_sample_is_measured_scored_and_told(tmp_path: Path) -> None:
    mpiexec()
    answer = tmp_path / "told.json"
    scratch = tmp_path / "scratch"
    asked = ("--cases", 5, "--largest", "256KiB", "--ranks", "2,3", "--minutes", 0.2, "--directory", scratch)
    command = [sys.executable, "-m", "hyperslab", "bench", "regret", *map(str, asked), "--output", str(answer)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment({}))
    assert done.returncode == 0, done.stderr
    assert "the largest regrets:" in done.stdout
    assert not list(scratch.iterdir())
    told = json.loads(answer.read_text())
    assert told["drawn"] == 5
    assert told["failed"] == []
    assert {case["case"]["number"] for case in told["cases"]} | set(map(int, told["missing"])) == set(range(5))
    assert f"{len(told['cases'])} of 5 cases" in done.stdout
    for case in told["cases"]:
        rounds = case["rounds"]
        assert {CHOSEN, TWIN} < set(rounds)
        lengths = {len(times) for times in rounds.values()}
        assert len(lengths) == 1
        # Fewer than usual only where the time was short, which is told.
        assert min(lengths) >= USUAL_ROUNDS or (
            min(lengths) >= 2 and f"fewer than {USUAL_ROUNDS} rounds" in done.stdout
        )
        assert set(rounds) <= set(case["qualifying"]) <= {TWIN, *case["checked"]}
        assert set(case["untried"]) <= set(case["left_out"])
        assert case["score"]["best"] in rounds
        assert len(case["reports"]) == min(lengths)
