"""The benchmarks of the ``hyperslab bench`` command."""

from __future__ import annotations

import argparse
from typing import Any


def add_verbs(verbs: Any) -> None:
    """Add ``bench`` to the command line."""
    bench = verbs.add_parser("bench", help="measure this machine and this library")
    which = bench.add_subparsers(dest="bench", required=True, metavar="benchmark")
    from hyperslab import _bench_entire

    _bench_entire.add_verb(which)


__all__ = ["add_verbs", "argparse"]
