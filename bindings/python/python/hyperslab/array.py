"""Arrays of an open store or file."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np

from hyperslab import _core, _options
from hyperslab._calls import Casting, Ownership, SectionLike, type_of
from hyperslab._frozen import frozen
from hyperslab._printing import legible
from hyperslab._scalars import fill_of
from hyperslab._selecting import read_selected
from hyperslab._typed import attributes_of
from hyperslab._types import native
from hyperslab.attributes import Attributes
from hyperslab.expressions import Expression, Operators
from hyperslab.pieces import Boxes
from hyperslab.requests import Request

if TYPE_CHECKING:
    from typing import Unpack

    from numpy.typing import DTypeLike, NDArray

    from hyperslab.distribution import Distribution
    from hyperslab.group import Group
    from hyperslab.pieces import Runs

__all__ = ["Array", "ArrayInfo", "RawInfo", "info_of"]

#: Kind, shape, chunks, shards, names of dimensions, attributes; fill value and codecs as JSON.
RawInfo: TypeAlias = "tuple[str, list[int], list[int], list[int] | None, list[str | None] | None, bytes, str, str]"

#: What is said of an array is kept for others that are alike, if it is no longer than this.
KEPT_TEXT = 4096


@dataclass(frozen=True)
class ArrayInfo:
    """What an array in storage is, at the time when it was looked at."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunks: tuple[int, ...]
    shards: tuple[int, ...] | None
    dimension_names: tuple[str | None, ...] | None
    attributes: Mapping[str, Any]
    fill_value: Any
    codecs: Sequence[Mapping[str, Any]]


def info_of(raw: RawInfo) -> ArrayInfo:
    """What the core tells of an array."""
    kind, shape, chunks, shards, names, *told = raw
    in_shards = None if shards is None else tuple(shards)
    made = _info if sum(map(len, told)) <= KEPT_TEXT else _info.__wrapped__
    return made(kind, tuple(shape), tuple(chunks), in_shards, None if names is None else tuple(names), *told)


@lru_cache(maxsize=64)
def _info(
    kind: str,
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    shards: tuple[int, ...] | None,
    names: tuple[str | None, ...] | None,
    attributes: bytes,
    fill: str,
    codecs: str,
) -> ArrayInfo:
    """Nothing of it can be changed, and of thousands of arrays in a store nearly all are alike."""
    dtype = type_of(kind)
    said, filled = frozen(attributes_of(attributes)), fill_of(fill, dtype)
    return ArrayInfo(shape, dtype, chunks, shards, names, said, filled, frozen(json.loads(codecs)))


class OuterIndex:
    """What `Array.oindex` gives."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def __getitem__(self, key: Any) -> Any:
        """Read a part by this rank alone; each list selects along its own dimension. Local."""
        return read_selected(self._array, key, outer=True)


class Array(Operators):
    """An array of an open store, step or file; made by ``store["name"]``.

    Properties are local: they tell what the array was when this rank last looked. It looks again after each call of
    this program that changes the store, and after `Group.refresh`. Indexing is local, too: each rank reads
    what it wants and waits for nobody. `read`, `write`, `append` and `resize` are collective, as those of `Group`.

    Examples
    --------
    >>> import numpy as np, hyperslab as hs, tempfile
    >>> with hs.open(tempfile.mkdtemp() + "/run.zarr", "w") as store:
    ...     report = store.write("rho", np.arange(12.0).reshape(3, 4), dimension_names=("x", "y"))
    ...     rho = store["rho"]
    ...     rho.shape, rho.dtype, rho.dimension_names
    ...     rho[1:, -1]
    ...     rho[[2, 0], :2]
    ((3, 4), dtype('float64'), ('x', 'y'))
    array([ 7., 11.])
    array([[8., 9.],
           [0., 1.]])
    """

    def __init__(self, group: Group, name: str) -> None:
        self._group = group
        self._name = name
        self._seen: tuple[int, ArrayInfo] | None = None
        # Else all ranks look at it together, when it is read or written.
        if group._core.can_look_at(name):
            self._look()

    def __reduce__(self) -> tuple[Any, ...]:
        return Array, (self._group, self._name)

    @property
    def expression(self) -> Expression:
        """What stands for its values in expressions, for `Group.select` and `Group.reduce`.

        Comparisons and arithmetic make one by themselves: ``store["rho"] > 0.1``. Only ``==`` and ``!=`` of two arrays
        tell whether they are the same array; those of an expression compare values.
        """
        return Expression._of_array(self._group, self._name)

    def _operand(self) -> Expression:
        return self.expression

    def __eq__(self, other: object) -> Any:
        """Where it is equal to a number or an expression; of another array, whether it is the same one."""
        return NotImplemented if isinstance(other, Array) else self._with("==", other)

    def __ne__(self, other: object) -> Any:
        """Where it is not equal to a number or an expression; of another array, whether it is another one."""
        return NotImplemented if isinstance(other, Array) else self._with("!=", other)

    __hash__ = object.__hash__

    def _look(self) -> ArrayInfo:
        changes = self._group._changes.count
        if self._seen is None or self._seen[0] != changes:
            self._seen = changes, self._group._info(self._name)
        return self._seen[1]

    def _look_now(self) -> ArrayInfo:
        return info_of(self._group._core.look_local(self._name))

    @property
    def name(self) -> str:
        """Its name in the group by which it was found."""
        return self._name

    @property
    def path(self) -> str:
        """Absolute path, or name in memory: that of the store or file, and the name in it."""
        return self._group.path if self._name == "/" else f"{self._group.path}/{self._name}"

    @property
    def shape(self) -> tuple[int, ...]:
        """Global shape."""
        return self._look().shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements; for bfloat16 that of ml_dtypes, or `V2` where this package is not installed."""
        return self._look().dtype

    @property
    def itemsize(self) -> int:
        """Bytes of an element [B]."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, as they are in memory [B]."""
        return self.size * self.itemsize

    @property
    def chunks(self) -> tuple[int, ...]:
        """Shape of a chunk; of an array in shards, of one in a shard; of one that is not in chunks, its own shape."""
        return self._look().chunks

    @property
    def shards(self) -> tuple[int, ...] | None:
        """Shape of a shard, which is an object that holds several chunks, where the array has shards."""
        return self._look().shards

    @property
    def codecs(self) -> Sequence[Mapping[str, Any]]:
        """How chunks become bytes, as the metadata of Zarr list it; empty in other files."""
        return self._look().codecs

    @property
    def dimension_names(self) -> tuple[str | None, ...] | None:
        """Names of the dimensions, where they have any."""
        return self._look().dimension_names

    @property
    def fill_value(self) -> Any:
        """What elements are that were never written."""
        return self._look().fill_value

    @property
    def attrs(self) -> Attributes:
        """Its attributes; changes are collective."""
        return self._group._attributes_of(self._name, lambda: self._look().attributes)

    @overload
    def read(
        self,
        dist: Distribution | Runs | None = None,
        *,
        out: NDArray[Any] | None = None,
        **options: Unpack[_options.ReadOptions],
    ) -> NDArray[Any]: ...
    @overload
    def read(self, dist: Boxes, *, out: Any = None, **options: Unpack[_options.ReadOptions]) -> list[NDArray[Any]]: ...
    @_options.keywords(_options.ReadOptions)
    def read(self, dist: Ownership | None = None, *, out: Any = None, **options: Unpack[_options.ReadOptions]) -> Any:
        """Read this rank's part; see `Group.read`. Collective."""
        read: Any = self._group.read
        return read(self._name, dist, out=out, **options)

    @_options.keywords(_options.ReadOptions)
    def iread(
        self, dist: Ownership | None = None, *, out: Any = None, **options: Unpack[_options.ReadOptions]
    ) -> Request[Any]:
        """Read as `read` does, but return at once; see `Group.iread`. Collective."""
        read: Any = self._group.iread
        request: Request[Any] = read(self._name, dist, out=out, **options)
        return request

    @_options.keywords(_options.UpdateOptions)
    def write(
        self, array: Any, dist: Ownership | None = None, **options: Unpack[_options.UpdateOptions]
    ) -> _core.Report:
        """Write over all of it, or over a section, in place: each chunk is old or new at every moment. Collective.

        Parameters
        ----------
        array : array
            This rank's part.
        dist : Distribution or Pieces, optional
            Who holds what: of the array, or of the section.
        section : optional
            Only this part; see `Group.write`.
        casting, halo, strategy : optional
            See `Group.write`.
        """
        return self._group.write(self._name, array, dist, **self._whole(options))

    @_options.keywords(_options.UpdateOptions)
    def iwrite(
        self,
        array: Any,
        dist: Ownership | None = None,
        *,
        staged: bool = False,
        **options: Unpack[_options.UpdateOptions],
    ) -> Request[_core.Report]:
        """Write as `write` does, but return at once; see `Group.iwrite`. Collective."""
        return self._group.iwrite(self._name, array, dist, staged=staged, **self._whole(options))

    def _whole(self, options: _options.UpdateOptions) -> _options.UpdateOptions:
        """These options, with the section that is all of the array where none is given."""
        if options.get("section") is None:
            options["section"] = (...,)
        return options

    @_options.keywords(_options.AppendOptions)
    def append(
        self, array: Any, dist: Ownership | None = None, **options: Unpack[_options.AppendOptions]
    ) -> _core.Report:
        """Make it longer along one dimension, by what is written; see `Group.append`. Collective."""
        return self._group.append(self._name, array, dist, **options)

    def resize(self, shape: Sequence[int]) -> None:
        """Give it another shape; see `Group.resize`. Collective."""
        self._group.resize(self._name, shape)

    def read_local(
        self,
        dist: Runs | None = None,
        *,
        section: SectionLike | None = None,
        out: NDArray[Any] | None = None,
        dtype: DTypeLike | None = None,
        casting: Casting = "same_kind",
    ) -> NDArray[Any]:
        """Read all of it, or a section, or runs of it, by this rank alone; see `Group.read_local`. Local."""
        return self._group.read_local(self._name, dist, section=section, out=out, dtype=dtype, casting=casting)

    def __getitem__(self, key: Any) -> Any:
        """Read a part by this rank alone, as NumPy selects it. Local.

        Integers, which drop their dimension, slices with a positive step and ``...``; lists of indices, in any order,
        which select element by element where there are several; and boolean masks, of one dimension or of more. Each
        chunk is read once.
        """
        info = self._look()
        found = self._group._core.read_at_rest((self._name, info.shape, native(info.dtype)), key, listed=False)
        return read_selected(self, key) if found is None else found

    @property
    def oindex(self) -> OuterIndex:
        """The same, where each list or mask selects along its own dimension, as zarr has it.

        Examples
        --------
        >>> import numpy as np, hyperslab as hs, tempfile
        >>> with hs.open(tempfile.mkdtemp() + "/run.zarr", "w") as store:
        ...     report = store.write("rho", np.arange(12.0).reshape(3, 4))
        ...     rho = store["rho"]
        ...     rho.oindex[[2, 0], [1, 3]]
        ...     rho[[2, 0], [1, 3]]
        ...     rho[rho[:] > 9]
        array([[ 9., 11.],
               [ 1.,  3.]])
        array([9., 3.])
        array([10., 11.])
        """
        return OuterIndex(self)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Refuse: arrays are written by all ranks together."""
        message = (
            f"'{self._name}' cannot be assigned to: all ranks write together\n"
            "  hint: write(array, dist, section=...) of the array is the collective call"
        )
        raise TypeError(message)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:  # noqa: FBT001
        """All of it, as NumPy asks for it. Local."""
        if copy is False:
            message = f"'{self._name}' lies in storage, and cannot become an array in memory without a copy"
            raise ValueError(message)
        found = self.read_local()
        return found if dtype is None else found.astype(dtype, copy=False)

    def __len__(self) -> int:
        """Extent of the first dimension."""
        if not self.shape:
            message = f"'{self._name}' has no dimensions, and so no length"
            raise TypeError(message)
        return self.shape[0]

    def __iter__(self) -> Any:
        """Its rows, read one by one. Local."""
        return (self[row] for row in range(len(self)))

    def __repr__(self) -> str:
        """Name, shape, type and chunks."""
        info = self._look()
        shards = "" if info.shards is None else f", shards {info.shards}"
        return f"<Array '{legible(self._name)}' {info.shape} {info.dtype}, chunks {info.chunks}{shards}>"

    def _repr_html_(self) -> str:
        info = self._look()
        names = info.dimension_names or (None,) * self.ndim
        extents = ", ".join(
            f"{name}: {extent}" if name else str(extent) for name, extent in zip(names, info.shape, strict=True)
        )
        rows: dict[str, Any] = {"shape": f"({extents})", "type": info.dtype, "chunks": info.chunks}
        if info.shards is not None:
            rows["shards"] = info.shards
        rows |= {"bytes": f"{self.nbytes:,}", "fill value": info.fill_value, **info.attributes}
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(str(name))}</th><td>{html.escape(str(value))}</td></tr>"
            for name, value in rows.items()
        )
        return f"<table><caption>Array '{html.escape(self._name)}'</caption>{cells}</table>"
