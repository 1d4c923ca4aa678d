"""The papers' results, run again on imagined machines.

Each study is a module with a ``TITLE``, a function ``items(runner)`` that yields an :class:`Item` for each result on
the paper's checklist, and a function ``figures(runner)`` that yields the paper's figures with our values.
"""

from hyperslab.reproduce._study import Evidence, Figure, Item, Runner, check_absolute, check_ratio, check_true

__all__ = ["Evidence", "Figure", "Item", "Runner", "check_absolute", "check_ratio", "check_true"]
