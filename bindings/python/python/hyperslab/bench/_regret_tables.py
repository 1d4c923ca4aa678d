"""What ``hyperslab bench regret`` found, as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from hyperslab._quantities import said_bytes, times
from hyperslab.bench._allowance import USUAL_ROUNDS
from hyperslab.bench._campaign import Campaign
from hyperslab.bench._cases import Case
from hyperslab.bench._families import FAMILIES
from hyperslab.bench._grid import CHOSEN
from hyperslab.bench._scoring import AIM, LIMIT, Score, summary

__all__ = ["case_table", "sample_text", "summary_text"]

#: Cases that are listed as the worst.
WORST = 5


def _percent(part: float | None) -> str:
    return "-" if part is None else f"{100 * part:.0f} %"


def _interval(one: Score) -> str:
    return f"{100 * one.low:.0f} to {100 * one.high:.0f} %"


def _spans(one: Score) -> tuple[float | None, ...]:
    """The times that are told of a case [s]; None is not known."""
    return (one.best_seconds, one.chosen_seconds, one.predicted, one.measured)


def _choice(result: Mapping[str, Any]) -> str:
    """What the library chose."""
    report = result["reports"][-1]
    text = f"{report['strategy']}, {report['servers']} server{'s' * (report['servers'] != 1)}"
    if result["case"]["target"] == "raw":
        text += f", {said_bytes(report['subchunk_bytes'])}"
    return text


def sample_text(campaign: Campaign, seed: int, minutes: float) -> str:
    """How much of the sample was measured, and why the rest was not."""
    results = campaign.results
    cases = [Case.of_json(result["case"]) for result in results]
    lines = [
        f"sample:  {len(results)} of {campaign.drawn} cases of seed {seed} measured, "
        f"in {minutes:.1f} of {campaign.minutes:g} minutes"
    ]
    if results:
        ranks = Counter(case.ranks for case in cases)
        sizes = sorted(case.bytes for case in cases)
        lines.append(
            f"         {len({case.family for case in cases})} of {len(FAMILIES)} families, "
            f"{', '.join(f'{ranks[count]} on {count} ranks' for count in sorted(ranks))}, "
            f"{said_bytes(sizes[0])} to {said_bytes(sizes[-1])}"
        )
    by_number = {case.number: case for case in (*campaign.died, *campaign.passed_over)}
    for number, reason in sorted(campaign.missing.items()):
        case = by_number[number]
        about = f"{case.family}, {case.ranks} ranks, {case.mode}, {said_bytes(case.bytes)}"
        lines.append(f"not measured: case {number} ({about}): {reason}")
    hasty = [result for result in results if result["untried"]]
    if hasty:
        told = [f"{result['case']['number']} ({len(result['untried'])})" for result in hasty]
        lines.append(f"no time to try all ways (how many not): case {', '.join(told)}")
    few = [result for result in results if len(result["rounds"][CHOSEN]) < USUAL_ROUNDS]
    if few:
        told = [f"{result['case']['number']} ({len(result['rounds'][CHOSEN])})" for result in few]
        lines.append(f"fewer than {USUAL_ROUNDS} rounds (how many): case {', '.join(told)}")
    return "\n".join(lines)


def case_table(results: Sequence[Mapping[str, Any]], scores: Sequence[Score]) -> str:
    """A table with a row for each case, in the order of their numbers."""
    head = f"{'case':>4} {'family':24} {'ranks':>5} {'mode':12} {'size':>10}  {'best way':34} {'best':>11}  "
    head += f"{'chosen way':34} {'chosen':>11} {'regret':>7} {'nine in ten':>14} {'predicted':>11} {'measured':>11}"
    lines = [head]
    # All times of the table have one unit.
    spans = iter(times([span for one in scores for span in _spans(one) if span is not None]))
    for result, one in zip(results, scores, strict=True):
        case = Case.of_json(result["case"])
        line = f"{case.number:4} {case.family:24} {case.ranks:5} {case.mode:12} {said_bytes(case.bytes):>10}  "
        best, chosen, predicted, measured = ("-" if span is None else next(spans) for span in _spans(one))
        line += f"{one.best:34} {best:>11}  {_choice(result):34} {chosen:>11} "
        regret = f"{_percent(one.regret)}{'=' if one.is_tie else ' '}"
        line += f"{regret:>7} {_interval(one):>14} {predicted:>11} {measured:>11}"
        lines.append(line)
    lines.append("regret: how much longer than the best way; = marks a tie; nine in ten: of redrawn rounds")
    lines.append("predicted, measured: the library's call alone, without opening and closing")
    return "\n".join(lines)


def _line(name: str, scores: Sequence[Score]) -> str:
    found = summary(scores)
    errors = f"{_percent(found['prediction_error_median']):>7} {_percent(found['prediction_error_90']):>7}"
    return (
        f"{name:26}{found['cases']:5} {found['ties']:5} {found['won']:5}  "
        f"{_percent(found['within_aim']):>7} {_percent(found['within_limit']):>7} {_percent(found['worst']):>7}  "
        f"{_percent(found['within_aim_beyond_noise']):>7} {_percent(found['within_limit_beyond_noise']):>7} "
        f"{_percent(found['worst_beyond_noise']):>7}  {errors}"
    )


def _groups(results: Sequence[Mapping[str, Any]], scores: Sequence[Score]) -> dict[str, list[Score]]:
    """The scores of each family, number of ranks and mode."""
    groups: dict[str, list[Score]] = {}
    cases = [Case.of_json(result["case"]) for result in results]
    for key in (lambda case: case.family, lambda case: f"{case.ranks} ranks", lambda case: case.mode):
        for name in sorted({key(case) for case in cases}):
            groups[name] = [one for case, one in zip(cases, scores, strict=True) if key(case) == name]
    return groups


def summary_text(results: Sequence[Mapping[str, Any]], scores: Sequence[Score]) -> str:
    """The result in all, for each group, and the worst cases with all that is needed to look into them."""
    aim, limit = f"<= {AIM:.0%}", f"<= {LIMIT:.0%}"
    lines = [f"{'':44}{'regret':24}{'beyond noise':24}{'prediction off by'}"]
    lines += [
        f"{'':26}{'cases':>5} {'ties':>5} {'won':>5}  {aim:>7} {limit:>7} {'worst':>7}  "
        f"{aim:>7} {limit:>7} {'worst':>7}  {'median':>7} {'90th':>7}"
    ]
    lines += [_line(name, group) for name, group in (_groups(results, scores) | {"all": list(scores)}).items()]
    found = summary(scores)
    lines.append(
        f"the choice against itself: within {AIM:.0%} in {_percent(found['control_within_aim'])} of cases, "
        f"90th percentile {_percent(found['control_90'])}"
    )
    pairs = sorted(zip(results, scores, strict=True), key=lambda pair: -pair[1].regret)
    lines += ["", "the largest regrets:"]
    for result, one in pairs[:WORST]:
        case = Case.of_json(result["case"])
        tie = " (a tie)" if one.is_tie else ""
        best, chosen = times([one.best_seconds, one.chosen_seconds])
        lines.append(
            f"  {_percent(one.regret)}{tie}: case {case.number}, {case.family}, {case.ranks} ranks, {case.mode}: {case}"
        )
        lines.append(
            f"      best {one.best}, {best}; chosen {_choice(result)}, {chosen}; "
            f"nine in ten {_interval(one)}, against itself {_percent(one.control)}"
        )
    return "\n".join(lines)
