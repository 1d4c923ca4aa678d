"""``hyperslab clean``: removes what programs that ended have left."""

from __future__ import annotations

import argparse
import os
from typing import Any, Protocol

from hyperslab._printing import legible, say, say_json, valid
from hyperslab.errors import Error


class _Verbs(Protocol):
    def add_parser(self, name: str, **options: Any) -> argparse.ArgumentParser: ...


def add_verb(verbs: _Verbs) -> None:
    """Add the command to the others."""
    command = verbs.add_parser("clean", help="remove what programs that ended have left at a store or file")
    command.add_argument("path", help="the store or file")
    command.add_argument("--dry-run", action="store_true", help="remove nothing, only say what would be removed")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command; the status is 2 if the path does not exist or nothing could be done."""
    from hyperslab._clean import clean

    try:
        cleaned = clean(args.path, dry_run=args.dry_run)
    except Error as error:
        say(f"hyperslab: {error}", error=True)
        return 2
    if args.json:
        rows = [{"kind": each.kind, "path": valid(each.path), "note": valid(each.note)} for each in cleaned]
        say_json({"path": valid(os.fspath(args.path)), "dry_run": args.dry_run, "cleaned": rows})
        return 0
    for each in cleaned:
        say(f"{legible(each.path)}: {each.kind}, {legible(each.note)}")
    if not cleaned:
        say("nothing to remove")
    return 0
