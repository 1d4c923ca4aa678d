"""Batches: writes that are gathered and carried out as one call."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from hyperslab import _options
from hyperslab._calls import calling, run, told, unready

if TYPE_CHECKING:
    from typing import Unpack

    from hyperslab import _core
    from hyperslab._calls import Ownership
    from hyperslab._moving import Moving, Report

__all__ = ["Batch"]


class Batch:
    """Writes that are gathered; made by `Group.batch`."""

    def __init__(self, group: Moving) -> None:
        self._group = group
        self._gathered: list[tuple[list[_core._Ask], _core._WriteKeywords]] = []
        self._names: list[str] = []
        self._is_over = False
        #: What was chosen and what it cost, once the batch is over.
        self.report: Report | None = None

    @_options.keywords(_options.WriteOptions)
    def write(
        self,
        name: str | Mapping[str, Any],
        array: Any = None,
        dist: Ownership | Mapping[str, Ownership] | None = None,
        **options: Unpack[_options.WriteOptions],
    ) -> None:
        """Gather a write, which is carried out at the end of the batch. Local, but collective with a section.

        All ranks gather the same writes in the same order. Arrays must not be changed before the batch is over.

        Parameters
        ----------
        name, array, dist
            As for `Group.write`.
        **options : optional
            As for `Group.write`. All writes of a batch must say the same of ``overwrite``, ``casting`` and
            ``strategy``, and either all or none of them have a ``section``.
        """
        group = self._group
        with calling(group._comm, told("write of", name, f"to '{group.path}' in a batch")):
            if self._is_over:
                message = "the batch is over: its writes have been carried out, or given up"
                raise RuntimeError(message)
            _options.check("write", options, _options.WriteOptions)
            self._gathered.append(group._prepare_write(name, array, dist, options))
            self._names.extend([name] if isinstance(name, str) else map(str, name))

    def close(self) -> None:
        """Carry out what was gathered, all of it or nothing. Collective."""
        if self._is_over:
            return
        self._is_over = True
        gathered, self._gathered = self._gathered, []
        group = self._group
        if gathered:
            self.report = run(lambda: group._core.write_together(gathered), group._comm, self._what())
            group._changes.count += 1
        else:
            # Whoever gathered something is told that others did not.
            with calling(group._comm, self._what()):
                group._core.flush(publishes=False)

    def _what(self) -> str:
        return told("batch of", self._names, f"to '{self._group.path}'")

    def __enter__(self) -> Self:
        """Use it as a context."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Carry it out, or give it up on all ranks after an exception on this one, also Ctrl-C or an exit."""
        if error is None:
            self.close()
            return
        self._is_over = True
        self._gathered = []
        if not getattr(error, "_collective", False):
            left = error if isinstance(error, Exception) else RuntimeError(type(error).__name__)
            with suppress(Exception):
                self._group._comm.attend(self._what(), unready(left))
