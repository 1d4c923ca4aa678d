"""The benchmarks of the ``hyperslab bench`` command."""

from __future__ import annotations

from typing import Any

__all__ = ["add_verbs"]


def add_verbs(verbs: Any) -> None:
    """Add ``bench`` to the command line."""
    bench = verbs.add_parser("bench", help="measure this machine and this library")
    which = bench.add_subparsers(dest="bench", required=True, metavar="benchmark")
    from hyperslab.bench import _alone, _e3sm, _entire, _flash, _formats, _growth, _maps, _peers, _regret

    _alone.add_verb(which)
    _e3sm.add_verb(which)
    _entire.add_verb(which)
    _flash.add_verb(which)
    _formats.add_verb(which)
    _growth.add_verb(which)
    _maps.add_verb(which)
    _peers.add_verb(which)
    _regret.add_verb(which)
