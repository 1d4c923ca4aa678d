"""``hyperslab trace``: what was recorded, in words, on a page, and for other tools."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Protocol

from hyperslab._arguments import output_file
from hyperslab._printing import say, say_json
from hyperslab._quantities import said_bytes
from hyperslab._style import Style
from hyperslab.errors import InvalidError
from hyperslab.trace import _chrome, _page
from hyperslab.trace._run import Run, load, pick
from hyperslab.trace._summary import summarize, text


class _Verbs(Protocol):
    def add_parser(self, name: str, **options: Any) -> argparse.ArgumentParser: ...


def add_verb(verbs: _Verbs) -> None:
    """Add the command to the others."""
    trace = verbs.add_parser("trace", help="tell what was recorded by HYPERSLAB_TRACE=directory")
    kinds = trace.add_subparsers(dest="kind", required=True, metavar="what")

    summary = kinds.add_parser("summary", help="where the time went, and why")
    summary.add_argument("--json", action="store_true", help="print JSON")
    summary.set_defaults(run=_summary)

    view = kinds.add_parser("view", help="make one page with timelines, for any browser")
    view.add_argument("-o", "--output", type=output_file, required=True, help="the page, such as trace.html")
    view.add_argument("--title", default="", help="what the page is called")
    view.add_argument("--json", action="store_true", help="print JSON")
    view.set_defaults(run=_view)

    export = kinds.add_parser("export", help="write every span in a form that other tools load")
    export.add_argument("--chrome", type=output_file, required=True, metavar="FILE", help="JSON for ui.perfetto.dev")
    export.add_argument("--json", action="store_true", help="print JSON")
    export.set_defaults(run=_export)

    for command in (summary, view, export):
        command.add_argument("directory", type=Path, help="what HYPERSLAB_TRACE named")
        command.add_argument("--run", dest="which", help="one of several runs; the one with most spans without")
    for command in (summary, view):
        command.add_argument(
            "--beside", type=Path, metavar="DIRECTORY", help="a trace that predicts this one, of hyperslab simulate"
        )


def _chosen(args: argparse.Namespace) -> tuple[Run, Run | None, list[str]]:
    runs = load(args.directory)
    run = pick(runs, args.which)
    beside = None if args.beside is None else pick(load(args.beside), None)
    return run, beside, [other.name for other in runs if other is not run]


def _summary(args: argparse.Namespace) -> int:
    run, beside, others = _chosen(args)
    told = summarize(run, beside)
    if args.json:
        say_json(told | {"other_runs": others})
        return 0
    say(Style.of_stdout().headings(text(told)))
    if others:
        say(f"{len(others)} smaller runs in the directory; --run names one: {', '.join(others[:8])}")
    return 0


def _view(args: argparse.Namespace) -> int:
    run, beside, _ = _chosen(args)
    made = _page.page(run, beside, args.title)
    _written(args.output, made)
    if args.json:
        told = {"page": str(args.output), "bytes": len(made), "ranks": len(run.ranks), "spans": run.count}
        say_json(told)
        return 0
    say(f"{args.output}: {said_bytes(len(made))}, {len(run.ranks)} ranks, {run.count} spans")
    return 0


def _export(args: argparse.Namespace) -> int:
    run = pick(load(args.directory), args.which)
    try:
        with args.chrome.open("w", encoding="utf-8") as file:
            count = _chrome.write(run, file)
    except OSError as error:
        raise _unwritten(args.chrome, error) from error
    if args.json:
        say_json({"file": str(args.chrome), "events": count})
        return 0
    say(f"{args.chrome}: {count} events; load it at ui.perfetto.dev or in chrome://tracing")
    return 0


def _written(path: Path, contents: str) -> None:
    try:
        path.write_text(contents, encoding="utf-8")
    except OSError as error:
        raise _unwritten(path, error) from error


def _unwritten(path: Path, error: OSError) -> InvalidError:
    return InvalidError(f"'{path}' cannot be written: {error.strerror}\n  hint: name another file")
