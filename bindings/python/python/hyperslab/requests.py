"""Calls that do not block: requests, and waiting for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from hyperslab import _core
from hyperslab._calls import interrupt, unready
from hyperslab._signals import travels

__all__ = ["Request", "wait_all"]

T = TypeVar("T")

#: Seconds without any progress after which a program that ends gives up requests that nobody waited for.
EXIT_SECONDS = 10.0


class Request(Generic[T]):
    """A call under way; made by `Group.iwrite`, `Group.iread` and their like.

    Requests of one communicator are carried out one after another, in the order in which they were made, by a thread of
    this package; blocking calls wait for those before them. If MPI was initialised with a level of thread support below
    ``MPI_THREAD_MULTIPLE``, messages between ranks move only while the program is in `test`, `wait` or a collective
    call of this package.

    A request that fails and is dropped without `wait` makes the next collective call fail; closing the store or
    publishing the step that it belongs to fails, too, if nobody has waited for it. At the end of the program `finalize`
    tells it.
    """

    def __init__(self, core: _core.Request, result: Callable[[_core.Report], T]) -> None:
        self._core = core
        self._result = result

    def wait(self) -> T:
        """Wait for the end, and return what the blocking call returns. Local; may be called again.

        Raises
        ------
        Error
            The same on all ranks.
        """
        return self._result(self._core.wait())

    def test(self) -> bool:
        """Whether it is over, well or not. Local, and does not wait."""
        return self._core.test()

    def __repr__(self) -> str:
        """Whether it is over."""
        return f"<Request {'over' if self._core.test() else 'under way'}>"


class _Known(Request[Any]):
    """One that failed before it was begun, on all ranks, of which they know."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def wait(self) -> Any:
        raise self._error

    def test(self) -> bool:
        return True

    def __repr__(self) -> str:
        return "<Request over>"


def failed(group: Any, what: str, begun: int, error: BaseException) -> Request[Any]:
    """A request that fails on all ranks, since this one cannot make the call; what a handler raised travels on."""
    interrupt(error, group._comm, begun, what)
    if not isinstance(error, Exception) or travels(error):
        raise error
    if getattr(error, "_collective", False):
        # All ranks have met in the call that raised it.
        return _Known(error)
    core = group._core.attend_later(what, unready(error))
    return Request(core, lambda report: report)


def wait_all(requests: Iterable[Request[Any]]) -> list[Any]:
    """Wait for all of these requests, and return what each of them returns.

    Raises
    ------
    Error
        The first error of any; all requests are over then.

    Examples
    --------
    >>> import numpy as np, hyperslab as hs, tempfile
    >>> with hs.open(tempfile.mkdtemp() + "/run.zarr", "w") as store:
    ...     requests = [store.iwrite(name, np.ones(4)) for name in ("rho", "u")]
    ...     reports = hs.wait_all(requests)
    ...     store.arrays()
    ['rho', 'u']
    """
    results: list[Any] = []
    errors: list[Exception] = []
    for request in list(requests):
        try:
            results.append(request.wait())
        except Exception as error:
            if travels(error):
                raise
            errors.append(error)
    if errors:
        raise errors[0]
    return results
