"""Records of measurements: data in docs/data, and the tables of pages that are made from them.

python scripts/records.py            makes the tables of the pages
python scripts/records.py measure    runs all studies first, for minutes, and records what comes out

A page has its prose around two comments, "made by scripts/records.py from data/NAME.json" and "end of data/NAME.json".
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hyperslab.reproduce import Figure, Item, Runner
from hyperslab.reproduce._command import STUDIES, figure_table, load, markdown
from hyperslab.reproduce._evidence import KINDS, by_kind, classed, softly
from hyperslab.reproduce._sensitivity import Effect, Variations, Varied, variations

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
#: Seeds for each case of a study that depends on chance.
TRIALS = 5
WIDTH = 120


# ---- data ---------------------------------------------------------------------------------------------------------


def has_records(value: Any) -> bool:
    """Whether lines are to be made of something's parts: they are records, or long texts."""
    inner = list(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
    texts = isinstance(value, list) and any(isinstance(one, str) and len(one) > WIDTH / 2 for one in inner)
    return texts or any(isinstance(one, dict) or has_records(one) for one in inner)


def text(value: Any, indent: int = 0) -> str:
    """JSON with a line for each record, so that changes of a record are changes of a line."""
    if not has_records(value):
        return json.dumps(value, ensure_ascii=False)
    inner = " " * (indent + 1)
    if isinstance(value, dict):
        parts = [f"{json.dumps(name)}: {text(found, indent + 1)}" for name, found in value.items()]
    else:
        parts = [text(found, indent + 1) for found in value]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    return f"{begin}\n{inner}" + f",\n{inner}".join(parts) + f"\n{' ' * indent}{end}"


def read(name: str) -> Any:
    """A record."""
    return json.loads((DOCS / f"data/{name}.json").read_text(encoding="utf-8"))


def write(name: str, data: Any) -> None:
    """Replace a record."""
    (DOCS / f"data/{name}.json").write_text(text(data) + "\n", encoding="utf-8")


# ---- measuring ----------------------------------------------------------------------------------------------------


def item_data(item: Item) -> dict[str, Any]:
    """An item as a record: what its row shows."""
    off = None if item.deviation is None else round(item.deviation, 3)
    told = {"number": item.number, "statement": item.statement, "expected": item.expected, "found": item.found}
    return {**told, "deviation": off, "within": item.within, "tolerance": item.tolerance, "reason": item.reason}


def figure_data(figure: Figure) -> dict[str, Any]:
    """A figure as a record, with the digits that its table shows."""
    series = {name: [[x, float(f"{y:.4g}")] for x, y in points] for name, points in figure.series.items()}
    told = {"name": figure.name, "title": figure.title, "x_label": figure.x_label, "y_label": figure.y_label}
    return {**told, "series": series}


def measured(name: str, runner: Runner) -> dict[str, Any]:
    """Run a study, and draw its figures."""
    from hyperslab.reproduce._figures import draw

    study = load(name)
    items, figures = list(study.items(runner)), study.figures(runner)
    notes: Callable[[], list[str]] = getattr(study, "notes", list)
    draw(figures, DOCS / "figures", "svg")
    return {
        "name": name,
        "title": study.TITLE,
        "items": [item_data(item) for item in items],
        "notes": list(notes()),
        "figures": [figure_data(figure) for figure in figures],
    }


def effects_data(effects: list[Effect] | None) -> Any:
    """Effects as a record."""
    return effects and [[one.item, one.change, *([] if one.within is None else [one.within])] for one in effects]


def varied_data(found: Variations) -> dict[str, Any]:
    """What numbers of a machine do, as a record."""
    numbers = [
        {
            "key": number.key,
            "value": number.value,
            "source": number.source,
            "larger": effects_data(number.larger and list(number.larger)),
            "smaller": effects_data(number.smaller and list(number.smaller)),
        }
        for number in found.numbers
    ]
    return {"study": found.study, "machine": found.machine, "numbers": numbers}


def measure() -> None:
    """Run all studies, and then all of them again for each number that is in no paper."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    recorded = {"day": f"{datetime.now(UTC):%Y-%m-%d}", "commit": commit.stdout.strip()}
    runner = Runner(trials=TRIALS)
    studies = [measured(name, runner) for name in STUDIES]
    write("reproduced", {"recorded": {**recorded, "trials": TRIALS}, "studies": studies})
    items = {name: load(name).items for name in STUDIES}
    tables = [varied_data(found) for found in variations(items, quick=True)]
    write("constants", {"recorded": {**recorded, "trials": 1}, "tables": tables})


# ---- pages --------------------------------------------------------------------------------------------------------


def when(data: Any) -> str:
    """Where a record comes from."""
    told = data["recorded"]
    seeds = "one seed" if told["trials"] == 1 else f"{told['trials']} seeds"
    remark = f"\n{told['remark']}\n" if "remark" in told else ""
    return f"Recorded on {told['day']} at commit {told['commit']}, with {seeds} for each case.\n{remark}"


def rows(study: Any) -> list[Item]:
    """A study's items as recorded, with their evidence, which is not measured."""
    return classed(study["name"], (Item(**item) for item in study["items"]))


def worth(items: list[Item]) -> Iterator[str]:
    """What all rows are worth, as a table and in words."""
    yield "| evidence | what it says | rows | within tolerance |\n| --- | --- | --- | --- |"
    for kind, (within, count) in by_kind(items).items():
        yield f"| {kind} | {KINDS[kind]} | {count} | {within} |"
    yield f"| all | | {len(items)} | {sum(item.within for item in items)} |\n"
    soft = [evidence for _, evidence in softly(items)]
    refuted = sum(not evidence.holds for evidence in soft)
    told = (
        f"Of the rows within tolerance, {len(soft)} are read more softly than the paper says, and {refuted} of these "
        "do not hold as it words them. Tables below show its words."
    )
    yield f"{told}\n"


def reproduced(data: Any) -> Iterator[str]:
    """Tables of all studies."""
    yield when(data)
    yield from worth([item for study in data["studies"] for item in rows(study)])
    for study in data["studies"]:
        yield markdown(study["title"], rows(study), study["notes"])
        yield from (figure_table(Figure(**figure)) for figure in study["figures"])


def in_short(data: Any) -> Iterator[str]:
    """What all rows are worth, for the front page."""
    items = [item for study in data["studies"] for item in rows(study)]
    within, count = by_kind(items)["predicted"]
    told = (
        f"Of {len(items)} results of five papers that are run again on simulated machines, "
        f"{sum(item.within for item in items)} come out within tolerance. Only {count} were predicted, of which "
        f"{within} hold. The others were fitted, chosen after results were seen, or follow from arithmetic "
        "([reproduced](docs/reproduced.md))."
    )
    yield textwrap.fill(told, WIDTH, break_on_hyphens=False)


def effects(data: Any) -> list[Effect] | None:
    """Effects of a record."""
    return None if data is None else [Effect(*effect) for effect in data]


def constants(data: Any) -> Iterator[str]:
    """Tables of what numbers do."""
    yield when(data)
    for table in data["tables"]:
        numbers = [
            Varied(row["key"], row["value"], row["source"], effects(row["larger"]), effects(row["smaller"]))
            for row in table["numbers"]
        ]
        yield Variations(table["study"], table["machine"], numbers).table()


def percent(*fractions: float) -> str:
    """Fractions as text."""
    return " and ".join(f"{100 * fraction:.0f}" for fraction in fractions) + " %"


def regret(data: Any) -> Iterator[str]:
    """Samples of choices, and what loses."""
    told = data["recorded"]
    yield f"Measured until {told['day']} on {told['machine']}.\n"
    lines = [
        "| seed | min | cases | new | within 10 and 25 % | worst | own ways only | prediction off | itself |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in data["samples"]:
        cells = (
            row["seed"],
            row["minutes"],
            row["cases"],
            row["version"],
            percent(*row["within"]),
            percent(row["worst"]),
            percent(*row["own_ways"]),
            percent(*row["prediction_off"]),
            percent(row["itself"]),
        )
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    yield "\n".join([*lines, ""])
    lines = ["Cases of these samples that lose, in ms:", "", "| case | ranks | ours | the best | which |"]
    lines.append("| --- | --- | --- | --- | --- |")
    for row in data["losses"]:
        cells = (row["case"], row["ranks"], f"{row['ours_ms']:g}", f"{row['best_ms']:g}", row["best"])
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    yield "\n".join([*lines, ""])


#: Pages, the record of each, and what makes its tables.
PAGES: dict[str, tuple[str, Callable[[Any], Iterator[str]]]] = {
    "reproduced.md": ("reproduced", reproduced),
    "../README.md": ("reproduced", in_short),
    "constants.md": ("constants", constants),
    "benchmarks.md": ("regret", regret),
}


def pages() -> dict[str, str]:
    """All pages with their tables made anew, by the names of their files."""
    made = {}
    for page, (name, tables) in PAGES.items():
        begin = f"<!-- made by scripts/records.py from data/{name}.json -->"
        end = f"<!-- end of data/{name}.json -->"
        before = (DOCS / page).read_text(encoding="utf-8")
        parts = re.fullmatch(f"(.*{re.escape(begin)}\n)(.*)({re.escape(end)}\n.*)", before, flags=re.DOTALL)
        if parts is None:
            message = f"docs/{page}: expected the comments {begin!r} and {end!r}"
            raise ValueError(message)
        tables_text = re.sub(r"\n{3,}", "\n\n", "\n".join(tables(read(name)))).strip()
        made[page] = f"{parts[1]}\n{tables_text}\n\n{parts[3]}"
    return made


def main() -> None:
    """Measure where that is asked for, and make the pages."""
    if sys.argv[1:] == ["measure"]:
        measure()
    elif sys.argv[1:]:
        sys.exit(f"unknown arguments {sys.argv[1:]}\n{__doc__}")
    for page, made in pages().items():
        (DOCS / page).write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
