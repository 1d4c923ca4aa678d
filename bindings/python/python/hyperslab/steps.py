"""Steps: groups that become visible whole or not at all, and the steps that a group has."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

from hyperslab import _core
from hyperslab._calls import calling
from hyperslab.group import Group

__all__ = ["Step", "Steps"]


class Step(Group):
    """A step that is being written; made by `Group.step`."""

    def __init__(self, core: _core.Target, comm: _core.Comm, before_publish: Callable[[], None] | None) -> None:
        super().__init__(core, comm)
        self._before_publish = before_publish

    def close(self) -> None:
        """Make the step durable and visible, when all its requests are over. Collective."""
        if self._before_publish is not None:
            try:
                self._core.sync()
                self._before_publish()
            except BaseException as error:
                self._give_up(error)
                raise
        self._core.close(None)

    def _exit(self, error: BaseException | None) -> None:
        """Publish the step, or give it up on all ranks after an exception on this one, also Ctrl-C or an exit."""
        if error is None:
            self.close()
        else:
            self._give_up(error)


class Steps(Sequence[str]):
    """Names of the published steps of a group, in their natural order: ``step_9`` comes before ``step_10``.

    A sequence, which is local; made by `Group.steps`. Groups that were not made as steps are not among them.

    Examples
    --------
    >>> import numpy as np, hyperslab as hs, tempfile
    >>> with hs.open(tempfile.mkdtemp() + "/run.zarr", "w") as store:
    ...     for number in (8, 9, 10):
    ...         with store.step(f"step_{number}") as step:
    ...             report = step.write("rho", np.full(4, number))
    ...     store.steps.latest(), list(store.steps)
    ...     store.steps.keep(2), list(store.steps)
    ('step_10', ['step_8', 'step_9', 'step_10'])
    (['step_8'], ['step_9', 'step_10'])
    """

    def __init__(self, group: Group) -> None:
        self._group = group

    def _names(self) -> list[str]:
        return sorted(self._group._core.steps(), key=_natural)

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: int | slice) -> str | list[str]:
        """One of the names, or several. Local."""
        return self._names()[number]

    def __len__(self) -> int:
        """How many there are. Local."""
        return len(self._names())

    def __iter__(self) -> Iterator[str]:
        """The names. Local."""
        return iter(self._names())

    def latest(self) -> str | None:
        """The last of the names, or None where there is no step. Local."""
        names = self._names()
        return names[-1] if names else None

    def keep(self, count: int) -> list[str]:
        """Delete all but the last steps, the oldest first; returns the names of those that went. Collective.

        Parameters
        ----------
        count : int
            How many stay, at least 1.
        """
        group = self._group
        with calling(group._comm, f"keep the last steps of '{group.path}'"):
            if isinstance(count, bool) or count < 1:
                message = f"keep({count!r}) would delete all steps\n  hint: delete(name) deletes one"
                raise ValueError(message)
            gone = self._names()[:-count]
            group._comm.compare("keep the last steps", [("steps to be deleted", repr(gone))])
        for name in gone:
            group.delete(name)
        return gone

    def __repr__(self) -> str:
        """As a list shows itself."""
        return f"<Steps {self._names()}>"


def _natural(name: str) -> list[Any]:
    """A key by which numbers in names are in the order of their values."""
    parts: list[Any] = re.split(r"(\d+)", name)
    return [(int(part), part) if number % 2 else part for number, part in enumerate(parts)]
