"""Attributes of arrays, groups and steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

__all__ = ["Attributes"]


class Attributes(MutableMapping[str, Any]):
    """Attributes of an array, a group or a step: a mapping that can be changed.

    Reading is local. Each change is collective, and durable when it returns where the store is: all ranks make the same
    one. `update` and `replace` make several changes in one call. Values are what JSON has: numbers, texts, lists and
    mappings; a value that was read cannot be changed itself, but its ``copy()`` can.

    Examples
    --------
    >>> import numpy as np, hyperslab as hs, tempfile
    >>> with hs.open(tempfile.mkdtemp() + "/run.zarr", "w") as store:
    ...     report = store.write("rho", np.ones(4), attributes={"units": "kg"})
    ...     store["rho"].attrs["units"] = "kg m-3"
    ...     store.attrs.update(title="a collapse", time=0.5)
    ...     dict(store["rho"].attrs), dict(store.attrs)
    ({'units': 'kg m-3'}, {'title': 'a collapse', 'time': 0.5})
    """

    def __init__(
        self,
        read: Callable[[], Mapping[str, Any]],
        change: Callable[..., None],
    ) -> None:
        self._read = read
        self._change = change

    def __getitem__(self, name: str) -> Any:
        """An attribute. Local."""
        return self._read()[name]

    def __iter__(self) -> Iterator[str]:
        """Names. Local."""
        return iter(self._read())

    def __len__(self) -> int:
        """How many there are. Local."""
        return len(self._read())

    def __setitem__(self, name: str, value: Any) -> None:
        """Set one. Collective."""
        self._change({name: value}, [], replace=False)

    def __delitem__(self, name: str) -> None:
        """Remove one. Collective."""
        if name not in self._read():
            raise KeyError(name)
        self._change({}, [name], replace=False)

    def update(self, other: Any = (), /, **more: Any) -> None:
        """Set several in one change. Collective."""
        self._change(dict(other, **more), [], replace=False)

    def replace(self, attributes: Mapping[str, Any]) -> None:
        """Make these all that there are, in one change. Collective."""
        self._change(dict(attributes), [], replace=True)

    def clear(self) -> None:
        """Remove all, in one change. Collective."""
        self._change({}, [], replace=True)

    def copy(self) -> dict[str, Any]:
        """All of them, as an ordinary dict. Local."""
        copied: dict[str, Any] = self._read().copy()  # type: ignore[attr-defined]
        return copied

    def __copy__(self) -> dict[str, Any]:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        # What travels to another process is what they are, not the store.
        return dict, (self.copy(),)

    def __or__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        """These and others, as an ordinary dict. Local."""
        return self.copy() | dict(other)

    def __repr__(self) -> str:
        """As a dict shows itself."""
        return repr(dict(self._read()))
