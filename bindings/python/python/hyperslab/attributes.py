"""Attributes of arrays, groups and steps, and the values that only they have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

from hyperslab._frozen import same

__all__ = ["Attributes", "Empty", "Kept"]


class Empty:
    """An attribute of HDF5 that has a type and no value, which h5py calls by the same name. It equals ``None``.

    Parameters
    ----------
    dtype : dtype, optional
        Its type; ``None`` for text.
    """

    def __init__(self, dtype: Any = None) -> None:
        self.dtype = dtype

    def __eq__(self, other: object) -> bool:
        """Whether the other is nothing, too."""
        if other is None:
            return True
        return type(other).__name__ == "Empty" and self.dtype == getattr(other, "dtype", None)

    def __hash__(self) -> int:
        return hash(None)

    def __repr__(self) -> str:
        return f"Empty(dtype={self.dtype!r})"


class Kept:
    """An attribute that stays as it is where it is, and can be written nowhere else, such as a reference.

    Attributes
    ----------
    what : str
        What it is.
    shape : tuple of int, or None
        Its shape.
    """

    def __init__(self, what: str, shape: tuple[int, ...] | None = None) -> None:
        self.what = what
        self.shape = shape

    def __eq__(self, other: object) -> bool:
        """Whether the same is said of the other."""
        return isinstance(other, Kept) and (self.what, self.shape) == (other.what, other.shape)

    def __hash__(self) -> int:
        return hash((self.what, self.shape))

    def __repr__(self) -> str:
        return f"Kept({self.what!r}, shape={self.shape})"


class Attributes(MutableMapping[str, Any]):
    """Attributes of an array, a group or a step: a mapping that can be changed.

    Reading is local. Each change is collective, and durable when it returns where the store is: all ranks make the same
    one. `update` and `replace` make several changes in one call. A value that was read cannot be changed itself, but
    its ``copy()`` can.

    Values come as those libraries give them that own the formats. In HDF5 (h5py) and NetCDF (netCDF4) a number is a
    scalar of NumPy, several are an array, text is a ``str``, and bytes of no known encoding are ``numpy.bytes_``. In
    Zarr (zarr-python) values are those of JSON: ``int``, ``float``, ``bool``, ``str``, ``None``, lists and mappings.
    What only HDF5 has comes as `Empty` (no value) or `Kept` (references, and what is not understood). Values are set as
    any of these: ``dict(other.attrs)`` of any file goes to any other as it is, or an error says what that cannot hold.

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

    def __eq__(self, other: object) -> bool:
        """Whether a mapping has the same values. Local."""
        return isinstance(other, Mapping) and same(dict(self), dict(other))

    __hash__ = None  # type: ignore[assignment]

    def __or__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        """These and others, as an ordinary dict. Local."""
        return self.copy() | dict(other)

    def __repr__(self) -> str:
        """As a dict shows itself."""
        return repr(dict(self._read()))
