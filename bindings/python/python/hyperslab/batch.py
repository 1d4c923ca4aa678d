"""Batches: writes that are gathered and carried out as one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hyperslab import _core, _options
from hyperslab._calls import calling, is_known, run, tell_known, told, unready
from hyperslab._signals import quietly
from hyperslab._weakly import Weakly

if TYPE_CHECKING:
    from typing import Unpack

    from hyperslab._calls import Ownership
    from hyperslab._moving import Moving, Report

__all__ = ["Batch", "gathering"]

#: Those that have gathered something and are not over.
gathering: Weakly[Batch] = Weakly()


class Batch(_core.Context):
    """Writes that are gathered; made by `Group.batch`."""

    def __init__(self, group: Moving) -> None:
        self._group = group
        self._gathered: list[tuple[list[_core._Ask], _core._WriteKeywords]] = []
        self._names: list[str] = []
        self._is_over = False
        self._undone: _core.Undone | None = None
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
            if self._undone is None:
                what = told("batch of", name, f"to '{group.path}'")
                self._undone = _core.Undone(f"{what} was never closed: nothing that it gathered is written")
                gathering.add(self)
            self._gathered.append(group._prepare_write(name, array, dist, options))
            self._names.extend([name] if isinstance(name, str) else map(str, name))

    def close(self) -> None:
        """Carry out what was gathered, all of it or nothing. Collective."""
        if self._is_over:
            return
        self._leave()
        gathered, self._gathered = self._gathered, []
        group = self._group
        if gathered:
            self.report = run(lambda: group._core.write_together(gathered), group._comm, self._what())
            group._changes.count += 1
        else:
            # Whoever gathered something is told that others did not.
            with calling(group._comm, self._what()):
                group._core.flush(publishes=False)

    def _leave(self) -> None:
        """Nothing is left to tell of."""
        self._is_over = True
        gathering.discard(self)
        if self._undone is not None:
            self._undone.end()

    def end_alone(self) -> None:
        """Carry it out at the end of the program, where no other rank takes part."""
        if self._group._comm.size > 1:
            return
        ended = "it was carried out at the end of the program"
        try:
            self.close()
        except Exception as error:  # noqa: BLE001 (it is told)
            ended = f"it could not be carried out at the end of the program: {error}"
        _core.tell_left(f"{self._what()} was never closed; {ended}")

    def _what(self) -> str:
        return told("batch of", self._names, f"to '{self._group.path}'")

    def _exit(self, error: BaseException | None) -> None:
        """Carry it out, or give it up on all ranks after an exception on this one, also Ctrl-C or an exit."""
        if error is None:
            self.close()
        else:
            self._abandon(error)

    def _give_up(self, error: BaseException) -> None:
        if not self._is_over:
            self._abandon(error)

    def _abandon(self, error: BaseException) -> None:
        self._leave()
        self._gathered = []
        comm = self._group._comm
        if not is_known(error, comm):
            left = error if isinstance(error, Exception) else RuntimeError(type(error).__name__)
            with quietly():
                comm.attend(self._what(), unready(left))
                tell_known(error, comm)
