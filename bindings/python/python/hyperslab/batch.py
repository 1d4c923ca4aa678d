"""Batches: writes, or appends, that are gathered and carried out as one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hyperslab import _core, _options
from hyperslab._calls import calling, is_known, run, tell_known, told, unready
from hyperslab._signals import quietly
from hyperslab._weakly import Weakly
from hyperslab.errors import InvalidError

if TYPE_CHECKING:
    from typing import Unpack

    from hyperslab._calls import Ownership
    from hyperslab._moving import Moving, Report

__all__ = ["Batch", "gathering"]

#: Those that have gathered something and are not over.
gathering: Weakly[Batch] = Weakly()


class Batch(_core.Context):
    """Writes, or appends, that are gathered; made by `Group.batch`."""

    def __init__(self, group: Moving) -> None:
        self._group = group
        self._gathered: list[tuple[list[_core._Ask], _core._WriteKeywords]] = []
        self._appended: list[tuple[list[_core._Ask], int, _core._WriteKeywords]] = []
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
            self._takes(alike=not self._appended)
            _options.check("write", options, _options.WriteOptions)
            self._begin(name)
            self._gathered.append(group._prepare_write(name, array, dist, options))
            self._names.extend([name] if isinstance(name, str) else map(str, name))

    @_options.keywords(_options.AppendOptions)
    def append(
        self,
        name: str | Mapping[str, Any],
        array: Any = None,
        dist: Ownership | Mapping[str, Ownership] | None = None,
        **options: Unpack[_options.AppendOptions],
    ) -> None:
        """Gather an append, which is carried out at the end of the batch, with all others in the same records. Local.

        A batch gathers writes or appends, not both. All ranks gather the same in the same order, and arrays must not be
        changed before the batch is over.

        Parameters
        ----------
        name, array, dist
            As for `Group.append`.
        **options : optional
            As for `Group.append`. All appends of a batch must say the same of ``axis``, ``casting`` and ``strategy``.

        Examples
        --------
        >>> import numpy as np, hyperslab as hs, tempfile
        >>> fields = {"rho": np.ones((1, 3)), "time": np.zeros(1)}
        >>> with hs.open(tempfile.mkdtemp() + "/run.nc", "w", unlimited="t") as file:
        ...     report = file.write({"rho": (["t", "x"], fields["rho"]), "time": (["t"], fields["time"])})
        ...     with file.batch() as batch:
        ...         for name, array in fields.items():
        ...             batch.append(name, array)
        ...     file["rho"].shape
        (2, 3)
        """
        group = self._group
        with calling(group._comm, told("append to", name, f"in '{group.path}' in a batch")):
            self._takes(alike=not self._gathered)
            prepared = group._prepare_append(name, array, dist, options)
            if self._appended and self._appended[0][1:] != prepared[1:]:
                message = "all appends of a batch say the same of axis, casting and strategy"
                raise InvalidError(message)
            self._begin(name)
            self._appended.append(prepared)
            self._names.extend([name] if isinstance(name, str) else map(str, name))

    def _takes(self, *, alike: bool) -> None:
        """Refuse what cannot be gathered any more, or not with what is."""
        if self._is_over:
            message = "the batch is over: its writes have been carried out, or given up"
            raise RuntimeError(message)
        if not alike:
            message = "a batch gathers writes or appends, not both\n  hint: make two batches, one after the other"
            raise InvalidError(message)

    def _begin(self, name: str | Mapping[str, Any]) -> None:
        if self._undone is None:
            what = told("batch of", name, f"to '{self._group.path}'")
            self._undone = _core.Undone(f"{what} was never closed: nothing that it gathered is written")
            gathering.add(self)

    def close(self) -> None:
        """Carry out what was gathered, all of it or nothing. Collective."""
        if self._is_over:
            return
        self._leave()
        gathered, self._gathered = self._gathered, []
        appended, self._appended = self._appended, []
        group = self._group
        if appended:
            asks = [ask for one, _, _ in appended for ask in one]
            _, axis, given = appended[0]
            self.report = run(lambda: group._core.append(asks, axis, given), group._comm, self._what())
            group._changes.count += 1
        elif gathered:
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
        self._gathered, self._appended = [], []
        comm = self._group._comm
        if not is_known(error, comm):
            left = error if isinstance(error, Exception) else RuntimeError(type(error).__name__)
            with quietly():
                comm.attend(self._what(), unready(left))
                tell_known(error, comm)
