"""``hyperslab reproduce``: the papers' checklists, item by item."""

from __future__ import annotations

import argparse
import importlib
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol, cast

from hyperslab._arguments import output_file
from hyperslab._printing import say, say_json
from hyperslab._quantities import said_bytes
from hyperslab.reproduce._evidence import classed, in_words, softly
from hyperslab.reproduce._sensitivity import sensitivity
from hyperslab.reproduce._study import Figure, Item, Runner

#: Studies in the order of `all`.
STUDIES = ("kotz97", "chen96", "chen97", "ross01", "thakur96")

#: So many kinds of rows are named where a number is not enough.
_ABOUT_MAX = 3


class Study(Protocol):
    """A module that runs a paper's checklist."""

    TITLE: str

    def items(self, runner: Runner) -> Iterator[Item]:
        """Each result of the checklist."""
        ...

    def figures(self, runner: Runner) -> list[Figure]:
        """The paper's figures."""
        ...


class _Verbs(Protocol):
    def add_parser(self, name: str, **options: Any) -> argparse.ArgumentParser: ...


def load(name: str) -> Study:
    """The study with this name."""
    return cast(Study, importlib.import_module(f"hyperslab.reproduce.{name}"))


def add_verb(verbs: _Verbs) -> None:
    """Add the command to the others."""
    command = verbs.add_parser("reproduce", help="run the papers' results again")
    command.add_argument("study", choices=(*STUDIES, "all"))
    command.add_argument("--quick", action="store_true", help="one trial, without the longest cases")
    command.add_argument(
        "--whole-calls", action="store_true", help="let transfers that papers time alone be whole calls of this library"
    )
    command.add_argument("--trials", type=int, help="seeds for each case that depends on chance; 5 without")
    command.add_argument("--figures", type=Path, metavar="FOLDER", help="draw the papers' figures there")
    command.add_argument("--format", choices=("svg", "png"), default="svg", help="of figures")
    command.add_argument("--markdown", type=output_file, metavar="FILE", help="write a page of all tables, too")
    command.add_argument("--heading", default="", help="what the page begins with, such as date and commit")
    command.add_argument("--json", action="store_true", help="print JSON instead of tables")
    command.add_argument(
        "--sensitivity",
        type=output_file,
        metavar="FILE",
        help="vary each number that is in no paper by 20 %% and write a page",
    )
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command. The status is 0 also when items are not within their tolerance: that is a result."""
    trials = args.trials or (1 if args.quick else 5)
    runner = Runner(trials=trials, quick=args.quick, whole_calls=args.whole_calls)
    names = STUDIES if args.study == "all" else (args.study,)
    if args.sensitivity is not None:
        studies = {name: load(name).items for name in names}
        page = sensitivity(studies, quick=runner.quick, recorded=args.heading)
        args.sensitivity.write_text(page)
        told = {"page": str(args.sensitivity), "bytes": len(page.encode()), "studies": names}
        if args.json:
            say_json(told)
        else:
            say(f"{args.sensitivity}: {said_bytes(len(page.encode()))}")
        return 0
    found: dict[str, list[Item]] = {}
    pages = []
    for name in names:
        study = load(name)
        start = time.perf_counter()
        found[name] = classed(name, study.items(runner))
        seconds = time.perf_counter() - start
        notes: Callable[[], list[str]] = getattr(study, "notes", list)
        if not args.json:
            say(table(study.TITLE, found[name], seconds))
        drawn = study.figures(runner) if args.figures is not None or args.markdown is not None else []
        if args.figures is not None:
            from hyperslab.reproduce._figures import draw

            draw(drawn, args.figures, args.format)
        if args.markdown is not None:
            pages.append(markdown(study.TITLE, found[name], notes()))
            pages += [figure_table(figure) for figure in drawn]
    if args.json:
        say_json({name: [asdict(item) for item in items] for name, items in found.items()})
    if args.markdown is not None:
        args.markdown.write_text("\n".join([args.heading, *pages]).lstrip())
    return 0


def _deviation(item: Item) -> str:
    return "" if item.deviation is None else f"{100 * item.deviation:+.1f} %"


def _kind(item: Item) -> str:
    return "" if item.evidence is None else item.evidence.kind


def table(title: str, items: Sequence[Item], seconds: float) -> str:
    """Items as a text of 120 columns."""
    lines = [title, f"{'item':<6} {'paper':<26} {'ours':<34} {'off by':>8}  {'allowed':<10} verdict    evidence"]
    for item in items:
        verdict = "within" if item.within else "NOT within"
        line = (
            f"{item.number:<6} {item.expected[:26]:<26} {item.found[:34]:<34} {_deviation(item):>8}"
            f"  {item.tolerance:<10} {verdict:<10} {_kind(item)}"
        )
        lines.append(line.rstrip())
        lines += textwrap.wrap(item.statement, 112, initial_indent="       ", subsequent_indent="       ")
        if item.reason:
            indent = "       because: " if not item.within else "       note: "
            lines += textwrap.wrap(item.reason, 112, initial_indent=indent, subsequent_indent="       ")
    lines.append(f"{in_words(items)}, {seconds:.0f} s")
    return "\n".join(lines) + "\n"


def figure_table(figure: Figure) -> str:
    """A figure's values as a table: a row for each position, a column for each series."""
    places = list(dict.fromkeys(x for points in figure.series.values() for x, _ in points))
    values = {name: dict(points) for name, points in figure.series.items()}
    lines = [f"### {figure.name}: {figure.title}", "", f"{figure.y_label}", ""]
    lines.append("| " + " | ".join([figure.x_label, *values]) + " |")
    lines.append("| " + " | ".join(["---"] * (len(values) + 1)) + " |")
    for place in places:
        cells = [f"{points[place]:.4g}" if place in points else "" for points in values.values()]
        shown = f"{place:g}" if isinstance(place, (int, float)) else place
        lines.append("| " + " | ".join([shown, *cells]) + " |")
    return "\n".join([*lines, ""])


def markdown(title: str, items: Sequence[Item], notes: Sequence[str]) -> str:
    """Items as a page."""
    lines = [f"## {title}", "", "| item | statement | paper | ours | off by | allowed | within | evidence |"]
    lines.append("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for item in items:
        cells = (item.number, item.statement, item.expected, item.found, _deviation(item), item.tolerance)
        verdict = "yes" if item.within else "**no**"
        lines.append("| " + " | ".join([*map(_cell, cells), verdict, _kind(item)]) + " |")
    lines += ["", f"{in_words(items)}.", ""]
    lines += [*_soft_rows(items), *_reasons(items), *(f"- {note}" for note in notes), ""]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "/")


def _soft_rows(items: Sequence[Item]) -> list[str]:
    """What the paper says of rows that are read more softly, as a table."""
    rows = [
        f"| {item.number} | {_cell(told.words)} | {_cell(told.read_so)} | {'yes' if told.holds else '**no**'} |"
        for item, told in softly(items)
    ]
    head = ["Read more softly than the paper says:", "", "| item | the paper's words | ours | holds as worded |"]
    return [*head, "| --- | --- | --- | --- |", *rows, ""] if rows else []


def _reasons(items: Sequence[Item]) -> list[str]:
    """Why rows have their class, and what there is to know of them, once for rows of which the same is said."""
    rows: dict[str, list[Item]] = {}
    for item in items:
        told = [] if item.evidence is None else [f"{item.evidence.kind}: {item.evidence.why}"]
        reason = item.reason[:1].upper() + item.reason[1:]
        text = ". ".join([*told, *([reason] if reason else [])])
        if text:
            rows.setdefault(text, []).append(item)
    often = {number for number, count in Counter(item.number for item in items).items() if count > 1}
    lines = [f"- {_named(same, often)}, {text}" for text, same in rows.items()]
    return [*lines, *([""] if lines else [])]


def _named(same: Sequence[Item], often: Collection[str]) -> str:
    """Numbers of rows, and what rows are about whose numbers come often."""
    numbers = list(dict.fromkeys(item.number for item in same))
    about = dict.fromkeys(item.statement.split(": ", 1)[-1] for item in same if item.number in often)
    told = f" ({'; '.join(about)})" if 0 < len(about) <= _ABOUT_MAX else ""
    return f"Item{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}{told}"
