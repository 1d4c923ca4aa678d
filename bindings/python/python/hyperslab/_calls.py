"""What all collective calls share: arrays as addresses, failures that every rank hears of, progress bars."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import EllipsisType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from hyperslab import _core
from hyperslab._local import describe, describe_all, describe_each
from hyperslab._log import again, called, listener
from hyperslab._printing import legible
from hyperslab._scalars import fill_json
from hyperslab._signals import travels
from hyperslab._types import type_code, type_of
from hyperslab._values import unfit
from hyperslab.distribution import Distribution
from hyperslab.errors import Error, InvalidError, OutdatedError
from hyperslab.pieces import Pieces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "Casting",
    "Changes",
    "Ownership",
    "RawSection",
    "SectionLike",
    "asking",
    "attending",
    "calling",
    "describe",
    "describe_all",
    "describe_each",
    "end",
    "fill_json",
    "give_up",
    "held",
    "holding",
    "interrupt",
    "is_known",
    "local_extents",
    "progress",
    "run",
    "section_of",
    "sectioned",
    "tell_known",
    "told",
    "type_code",
    "type_of",
    "unready",
]

T = TypeVar("T")

#: How the ranks hold an array.
Ownership: TypeAlias = "Distribution | Pieces"
#: Start, stride, count and block of a dimension.
RawSection: TypeAlias = list[tuple[int, int, int, int]]
#: What a section may be given as.
SectionLike: TypeAlias = "slice | int | EllipsisType | Sequence[slice | int | EllipsisType | tuple[int, int, int, int] | Sequence[int] | NDArray[np.integer]]"  # noqa: E501

#: Which changes of the element type a call may make.
Casting: TypeAlias = Literal["same_kind", "unsafe"]

#: Seconds that a transfer takes before a progress bar appears.
BAR_SECONDS = 2.0


class Changes:
    """How often this program has changed what is open, or looked at it anew."""

    count = 0


def local_extents(raws: Sequence[_core.Local]) -> Sequence[int]:
    """Extents of the first local array."""
    return raws[0].shape if raws else ()


def holding(dist: Any) -> Ownership:
    """How the ranks hold an array, or an error that says what was given instead."""
    if not isinstance(dist, (Distribution, Pieces)):
        hint = "spread a shape evenly with hyperslab.Distribution.block(shape, comm.size)"
        raise unfit("dist", "a Distribution or Pieces", dist, hint)
    return dist


def section_of(section: SectionLike | None, shape: Sequence[int] | None) -> RawSection | None:
    """A section as start, stride, count and block.

    Each dimension is a slice with a positive step, an integer (which keeps the dimension, with extent 1), or a tuple
    (start, stride, count, block) as HDF5 has it.
    """
    return None if section is None else sectioned(section, shape)


def sectioned(section: SectionLike, shape: Sequence[int] | None) -> RawSection:
    """The same where there is one."""
    return _core.section_of(list(section) if isinstance(section, Sequence) else [section], shape)


def told(verb: str, names: Any, where: str) -> str:
    """What is asked, for messages, whatever was given as names."""
    if isinstance(names, str):
        return f"{verb} {names!r} {where}"
    listed = list(names) if isinstance(names, Iterable) else [names]
    return f"{verb} {', '.join(repr(name) for name in listed[:4]) or 'nothing'} {where}"


def plain(comm: _core.Comm, options: Mapping[str, Any]) -> bool:
    """Whether a call has no option but a section, and nobody listens to what is told of it or sees how it goes."""
    few = not options or (len(options) == 1 and "section" in options)
    return few and ("logging" not in sys.modules or listener() is None) and not _shows(comm)


class _Seen:
    """A stream for errors that was no terminal, and will not become one."""

    stream: Any = None


def _shows(comm: _core.Comm) -> bool:
    """Whether this rank shows a terminal how a call goes. A program may have closed its stderr, or have none."""
    stream = sys.stderr
    if stream is _Seen.stream or comm.rank > 0:
        return False
    try:
        shows = stream.isatty()
    except (AttributeError, ValueError):
        shows = False
    if not shows:
        _Seen.stream = stream
    return shows


class attending:  # noqa: N801 (it reads as what it does; a class, since a generator takes longer than a short call)
    """Where a rank makes its arguments ready: a failure here is raised on all ranks, and nobody waits for this one.

    What a handler of signals raises before the call has begun ends it on the other ranks, as it does in the call.
    """

    __slots__ = ("_begun", "_comm", "_what")

    def __init__(self, comm: _core.Comm, what: str) -> None:
        self._comm = comm
        self._what = what
        self._begun = comm.begun

    def __enter__(self) -> None:
        """Nothing has failed yet."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Attend the next call of the others with the failure."""
        if isinstance(error, Exception) and not self._is_known(error) and not travels(error):
            raise self._comm.attend(self._what, unready(error)) from error
        if isinstance(error, InvalidError) and not _says(error, self._what):
            raise _asked(error, self._what) from error.__cause__
        if error is not None:
            interrupt(error, self._comm, self._begun, self._what)

    def _is_known(self, error: Exception) -> bool:
        """Whether the other ranks have the failure already."""
        return False


class calling(attending):  # noqa: N801
    """Where a rank calls: what keeps it from that is raised on all ranks, what comes out of the call already is."""

    __slots__ = ()

    def _is_known(self, error: Exception) -> bool:
        return bool(getattr(error, "_collective", False)) or type(error) is RuntimeError


@contextmanager
def asking(what: str) -> Iterator[None]:
    """Where a rank asks by itself: what was asked stands in front of what keeps it from that."""
    try:
        yield
    except InvalidError as error:
        if _says(error, what):
            raise
        raise _asked(error, what) from error.__cause__


def _says(error: InvalidError, what: str) -> bool:
    """Whether an error says what was asked."""
    return bool(error.doing) or what in str(error)


def _asked(error: InvalidError, what: str) -> InvalidError:
    """The same error with what was asked in front."""
    text = str(error)
    again = InvalidError(f"{what}: {text}")
    again.__dict__.update(error.__dict__)
    again.what, _, again.hint = text.partition("\n  hint: ")
    again.doing = (what,)
    return again


def unready(error: Exception) -> _core._Unready:
    """What keeps a rank from making a call."""
    told: _core._Unready = {"where": None, "expected": None, "found": None, "doing": [], "name": "InvalidError"}
    told["what"], _, told["hint"] = str(error).partition("\n  hint: ")
    if isinstance(error, Error):
        told["name"] = type(error).__name__
        if error.what:
            told.update({"what": error.what, "doing": list(error.doing), "where": error.where})
            told.update({"expected": error.expected, "found": error.found})
    elif not isinstance(error, (ValueError, TypeError, OverflowError, AttributeError)):
        told.update({"name": "PeerError", "what": f"{type(error).__name__}: {told['what']}"})
    return told


@contextmanager
def progress(comm: _core.Comm, what: str) -> Iterator[None]:
    """Show a bar on the terminal while a transfer takes long."""
    started = time.monotonic()
    bar: Any = None

    def observe(done: int, total: int) -> None:
        nonlocal bar
        if bar is None and time.monotonic() - started > BAR_SECONDS:
            from tqdm import tqdm

            # A path would leave no room for the bar.
            title = legible(what.partition(" to '")[0].partition(" from '")[0])
            bar = tqdm(total=total, desc=title, unit="B", unit_scale=True, leave=False, file=sys.stderr)
        if bar is not None:
            bar.update(done - bar.n)

    comm.observed_by(observe)
    try:
        yield
    finally:
        comm.observed_by(None)
        if bar is not None:
            bar.close()


def held(dist: Ownership | None) -> Any:
    """How the ranks hold an array, as the compiled module has it; without a distribution, it knows what holds."""
    return None if dist is None else holding(dist)._core


def end(core: _core.Target, comm: _core.Comm, error: BaseException | None) -> None:
    """End the use of a file, or give it up on all ranks after an error of the program, which stays the one to show."""
    if error is None:
        core.close(None)
    elif is_known(error, comm):
        core.discard()
    else:
        try:
            core.close(f"{type(error).__name__}: {error}")
        except Exception as told:
            if travels(told):
                raise
            tell_known(error, comm)


def give_up(core: _core.Target, comm: _core.Comm, what: str, error: BaseException) -> None:
    """Leave an opening whose caller never gets what is open: other ranks have it, or wait for this one."""
    if core.is_open:
        end(core, comm, error)
    if not is_known(error, comm) and is_of_a_signal(error):
        # A signal came before the call, or when it had ended well. Where the call was ended by it, this does nothing.
        comm.interrupt(what)


def interrupt(error: BaseException, comm: _core.Comm, begun: int, what: str) -> None:
    """End a call on the other ranks that this one has not begun, since a handler of signals raised something before."""
    if comm.begun == begun and is_of_a_signal(error):
        comm.interrupt(what)


def is_of_a_signal(error: BaseException) -> bool:
    """Whether a handler of signals raised it, or it ends the program: what is no failure of the call that it meets."""
    return not isinstance(error, Exception) or travels(error)


def is_known(error: BaseException, comm: _core.Comm) -> bool:
    """Whether all ranks of a communicator know of an error: they have it, too, or failed because of it."""
    return bool(getattr(error, "_collective", False)) or any(comm is one for one in getattr(error, "_known_to", ()))


def tell_known(error: BaseException, comm: _core.Comm) -> None:
    """Take note that all ranks of a communicator know of an error: what is around a step is not told again.

    They have left that, too, and would be waited for in vain.
    """
    # An exception that takes no attributes is told once more.
    with suppress(AttributeError, TypeError):
        error._known_to = (*getattr(error, "_known_to", ()), comm)  # type: ignore[attr-defined]


def run(call: Callable[[], T], comm: _core.Comm, what: str) -> T:
    """Make a collective call, with a bar. What keeps its arguments from being handed over is an error on all ranks."""
    began = time.monotonic()
    with calling(comm, what):
        if _shows(comm):
            with progress(comm, what):
                result = call()
        else:
            result = call()
    # Short calls feel each step.
    if "logging" in sys.modules:
        called(comm, what, result, time.monotonic() - began)
    return result


#: How often arrays may change between looking at them and reading them.
LOOKS_MAX = 100


def until_up_to_date(call: Callable[[], T]) -> T:
    """Carry out a read that may rely on what arrays were before; when they are others by now, once more."""
    for _ in range(LOOKS_MAX - 1):
        try:
            return call()
        except OutdatedError as error:
            again(error)
    return call()
