"""What all collective calls share: arrays as addresses, failures that every rank hears of, progress bars."""

from __future__ import annotations

import functools
import importlib
import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import EllipsisType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np

from hyperslab import _core
from hyperslab._log import called
from hyperslab._values import whole_number
from hyperslab.distribution import Distribution
from hyperslab.errors import Error, InvalidError
from hyperslab.pieces import Boxes, Pieces

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

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


def type_code(dtype: DTypeLike) -> str:
    """How the compiled module calls a type of elements: NumPy's code, or ``bfloat16``, for which NumPy has none."""
    try:
        return _code_of_text(dtype) if isinstance(dtype, str) else _code_of(np.dtype(dtype))
    except (TypeError, ValueError):
        message = f"dtype={dtype!r} is no type of elements\n  hint: such as 'float64', '<f4' or 'bfloat16'"
        raise InvalidError(message) from None


# Making a type of a text, and asking for its name, take longer than all else that is asked of an array.
@functools.lru_cache(maxsize=256)
def _code_of_text(text: str) -> str:
    return text if text == "bfloat16" else _code_of(np.dtype(text))


@functools.lru_cache(maxsize=256)
def _code_of(dtype: np.dtype[Any]) -> str:
    return "bfloat16" if dtype.name == "bfloat16" and dtype.itemsize == 2 else dtype.str


def type_of(code: str) -> np.dtype[Any]:
    """The type that the compiled module calls so.

    That of ml_dtypes for ``bfloat16``; where this package is not there, two bytes without a meaning (``V2``).
    """
    if code.lstrip("<>=|") != "bfloat16":
        return _type_of_code(code)
    try:
        ml_dtypes = importlib.import_module("ml_dtypes")
    except ImportError:
        return np.dtype("V2")
    bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return bfloat16


@functools.lru_cache(maxsize=256)
def _type_of_code(code: str) -> np.dtype[Any]:
    return np.dtype(code)


@functools.lru_cache(maxsize=256)
def _storable_code(dtype: np.dtype[Any]) -> str:
    """The code of a type, or an error where no format has it."""
    kind = _code_of(dtype)
    # Packages have floats of one byte.
    smallest, largest = {"f": (2, 8), "c": (8, 16)}.get(dtype.kind, (1, 8))
    plain = dtype.kind in "biufc" and smallest <= dtype.itemsize <= largest
    if not plain and kind != "bfloat16":
        message = f"elements of type {dtype} cannot be stored\n  hint: bool, integers, floats and complex can"
        if dtype == np.dtype("V2"):
            message += "; bfloat16 can with the package ml_dtypes, or converted to and from dtype='float32'"
        raise InvalidError(message)
    return kind


def describe(array: NDArray[Any], halo: int = 0, *, writable: bool = False) -> _core.Local:
    """Where the elements of an array lie, without its halo."""
    if not isinstance(array, np.ndarray):
        message = f"a local part should be a NumPy array, but is {type(array).__name__}"
        raise InvalidError(message)
    if writable and not array.flags.writeable:
        message = "the array to read into is read-only"
        raise InvalidError(message)
    inner = array
    if halo:
        width = whole_number(halo, "halo")
        if any(extent < 2 * width for extent in array.shape):
            message = f"an array of shape {array.shape} has no room for a halo of {width} cells on every side"
            raise InvalidError(message)
        # The dots keep an array without dimensions an array; without them it would become a scalar, a copy.
        inside: tuple[Any, ...] = (*[slice(halo, -halo)] * array.ndim, ...)
        inner = array[inside]
    # Not `suppress`, which takes longer than the question itself; there may be hundreds of arrays.
    try:
        return _core.Local(inner)
    except (ValueError, TypeError, BufferError):
        pass
    # The buffer protocol has no name for what is left of these, bfloat16.
    kind = _storable_code(inner.dtype)
    return _core.Local(inner.view(np.uint16), kind)


def describe_all(arrays: Any, dist: Ownership | None, halo: int = 0, *, writable: bool = False) -> list[_core.Local]:
    """Where the elements of a rank's part lie: of one array, or of one for each box."""
    if not isinstance(dist, Boxes):
        if not isinstance(arrays, np.ndarray) and np.isscalar(arrays):
            arrays = np.asarray(arrays)
        return [describe(arrays, halo, writable=writable)]
    if isinstance(arrays, np.ndarray) and len(dist) == 1 and arrays.ndim == dist.ndim:
        arrays = [arrays]
    if not isinstance(arrays, (Sequence, np.ndarray)) or len(arrays) != len(dist):
        count = len(arrays) if isinstance(arrays, (Sequence, np.ndarray)) else type(arrays).__name__
        message = f"{len(dist)} boxes need a list of {len(dist)} local arrays, found {count}"
        raise InvalidError(message)
    return [describe(array, halo, writable=writable) for array in arrays]


def describe_each(
    arrays: Sequence[Any], dist: Ownership | None, halo: int = 0, *, writable: bool = False
) -> list[list[_core.Local]]:
    """Where the elements of a rank's parts of several arrays lie, that are held alike."""
    # There may be hundreds of them, and all that is asked of each in Python takes longer than the answer.
    usual = not halo and not isinstance(dist, Boxes)
    found = _core.locals_of(arrays, writable) if usual else None
    if found is not None:
        return [[local] for local in found]
    return [describe_all(array, dist, halo, writable=writable) for array in arrays]


def local_extents(raws: Sequence[_core.Local]) -> Sequence[int]:
    """Extents of the first local array."""
    return raws[0].shape if raws else ()


def holding(dist: Any) -> Ownership:
    """How the ranks hold an array, or an error that says what was given instead."""
    if not isinstance(dist, (Distribution, Pieces)):
        message = (
            f"dist should be a Distribution or Pieces, but is {type(dist).__name__}\n"
            "  hint: hyperslab.Distribution.block(shape, comm.size) spreads a shape evenly"
        )
        raise InvalidError(message)
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


def json_of(value: Mapping[str, Any] | None) -> str:
    """Attributes as JSON, NumPy scalars and arrays included."""

    def plain(item: Any) -> Any:
        if isinstance(item, np.generic):
            return item.item()
        if isinstance(item, np.ndarray):
            return item.tolist()
        message = f"an attribute cannot be of type {type(item).__name__}"
        raise TypeError(message)

    if value is not None and not isinstance(value, Mapping):
        message = f"attributes should be a mapping of names to values, but is {type(value).__name__}"
        raise InvalidError(message)
    try:
        return json.dumps(dict(value or {}), default=plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        message = f"attributes must be JSON: {error}\n  hint: numbers that are finite, texts, lists and mappings are"
        raise InvalidError(message) from None


def fill_json(value: Any) -> str | None:
    """A fill value in JSON, as Zarr has numbers of its kind; the core makes it fit the kind of each array."""
    if value is None:
        return None
    scalar = isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0)
    item = value.item() if scalar else value
    if isinstance(item, complex):
        return json.dumps([_float_json(item.real), _float_json(item.imag)])
    if isinstance(item, float):
        return json.dumps(_float_json(item))
    try:
        return json.dumps(item)
    except TypeError:
        message = f"the fill value should be a number, but is {type(value).__name__}"
        raise InvalidError(message) from None


def _float_json(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def told(verb: str, names: Any, where: str) -> str:
    """What is asked, for messages, whatever was given as names."""
    if isinstance(names, str):
        return f"{verb} {names!r} {where}"
    listed = list(names) if isinstance(names, Iterable) else [names]
    return f"{verb} {', '.join(repr(name) for name in listed[:4]) or 'nothing'} {where}"


class attending:  # noqa: N801 (it reads as what it does; a class, since a generator takes longer than a short call)
    """Where a rank makes its arguments ready: a failure here is raised on all ranks, and nobody waits for this one."""

    __slots__ = ("_comm", "_what")

    def __init__(self, comm: _core.Comm, what: str) -> None:
        self._comm = comm
        self._what = what

    def __enter__(self) -> None:
        """Nothing has failed yet."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Attend the next call of the others with the failure."""
        if isinstance(error, Exception) and not self._is_known(error):
            raise self._comm.attend(self._what, unready(error)) from error

    def _is_known(self, error: Exception) -> bool:
        """Whether the other ranks have the failure already."""
        return False


class calling(attending):  # noqa: N801
    """Where a rank calls: what keeps it from that is raised on all ranks, what comes out of the call already is."""

    __slots__ = ()

    def _is_known(self, error: Exception) -> bool:
        return bool(getattr(error, "_collective", False)) or type(error) is RuntimeError


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
            title = what.partition(" to '")[0].partition(" from '")[0]
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


def end(core: _core.Target, error: BaseException | None) -> None:
    """End the use of a file, or give it up on all ranks after an error of the program, which stays the one to show."""
    if error is None:
        core.close(None)
    elif getattr(error, "_collective", False):
        core.discard()
    else:
        with suppress(Exception):
            core.close(f"{type(error).__name__}: {error}")


def run(call: Callable[[], T], comm: _core.Comm, what: str) -> T:
    """Make a collective call, with a bar. What keeps its arguments from being handed over is an error on all ranks."""
    began = time.monotonic()
    with calling(comm, what):
        if comm.rank != 0 or not sys.stderr.isatty():
            result = call()
        else:
            with progress(comm, what):
                result = call()
    # Short calls feel each step.
    if "logging" in sys.modules:
        called(comm, what, result, time.monotonic() - began)
    return result
