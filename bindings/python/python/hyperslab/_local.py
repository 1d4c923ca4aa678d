"""Local arrays, as any package has them: where their elements lie, without a copy where that can be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hyperslab import _core
from hyperslab._texts import Slots
from hyperslab._types import code_of
from hyperslab._values import whole_number
from hyperslab.errors import InvalidError
from hyperslab.pieces import Boxes

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["describe", "describe_all", "describe_each", "host_array"]

#: Memory of DLPack that the processor can use: its own, and what CUDA and ROCm keep there for the device.
HOST = {1, 3, 11}

#: Other memory of DLPack, for messages.
DEVICES = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 13: "CUDA managed", 14: "oneAPI"}

#: How to get an array into memory of the processor.
TO_HOST = "copy it there first: tensor.cpu() of torch, jax.device_get(array), cupy.asnumpy(array)"


def describe(array: Any, halo: int = 0, *, writable: bool = False) -> _core.Local:
    """Where the elements of an array lie, without its halo."""
    slots = isinstance(array, Slots)
    if isinstance(array, Slots):
        array = array.array
    if type(array) is not np.ndarray:
        array = host_array(array, writable=writable)
    if writable and not array.flags.writeable:
        message = "the array to read into is read-only\n  hint: read without out=, or give an array that may be changed"
        raise InvalidError(message)
    inner = array
    if halo:
        width = whole_number(halo, "halo")
        if any(extent < 2 * width for extent in array.shape):
            message = (
                f"halo={width} takes {2 * width} cells of each dimension, but the local array has shape {array.shape}\n"
                "  hint: give the array with its halo, which has the shape of the part and the halo on all sides"
            )
            raise InvalidError(message)
        # The dots keep an array without dimensions an array; without them it would become a scalar, a copy.
        inside: tuple[Any, ...] = (*[slice(halo, -halo)] * array.ndim, ...)
        inner = array[inside]
    if slots:
        size = inner.dtype.itemsize
        return _core.Local(inner.view(np.uint8 if size == 1 else f"V{size}"), f"|T{size}")
    # Not `suppress`, which takes longer than the question itself; there may be hundreds of arrays.
    try:
        return _core.Local(inner)
    except (ValueError, TypeError, BufferError):
        pass
    # The buffer protocol has no name for what is left of these: dates, structured types, those of ml_dtypes.
    kind = code_of(inner.dtype)
    return _core.Local(inner.view(np.uint8 if inner.dtype.itemsize == 1 else f"V{inner.dtype.itemsize}"), kind)


def describe_all(arrays: Any, dist: Any, halo: int = 0, *, writable: bool = False) -> list[_core.Local]:
    """Where the elements of a rank's part lie: of one array, or of one for each box."""
    if not isinstance(dist, Boxes):
        return [describe(arrays, halo, writable=writable)]
    if not isinstance(arrays, (Sequence, np.ndarray)):
        arrays = [arrays] if len(dist) == 1 else arrays
    elif isinstance(arrays, np.ndarray) and len(dist) == 1 and arrays.ndim == dist.ndim:
        arrays = [arrays]
    if not isinstance(arrays, (Sequence, np.ndarray)) or len(arrays) != len(dist):
        count = len(arrays) if isinstance(arrays, (Sequence, np.ndarray)) else type(arrays).__name__
        boxes = (
            "1 box needs a list of 1 local array" if len(dist) == 1 else f"{len(dist)} boxes need as many local arrays"
        )
        message = f"{boxes}, got {count}\n  hint: give a list of arrays, one for each box of this rank"
        raise InvalidError(message)
    return [describe(array, halo, writable=writable) for array in arrays]


def describe_each(
    arrays: Sequence[Any], dist: Any, halo: int = 0, *, writable: bool = False
) -> list[list[_core.Local]]:
    """Where the elements of a rank's parts of several arrays lie, that are held alike."""
    # There may be hundreds of them, and all that is asked of each in Python takes longer than the answer.
    usual = not halo and not isinstance(dist, Boxes)
    found = _core.locals_of(arrays, writable) if usual else None
    if found is not None:
        return [[local] for local in found]
    return [describe_all(array, dist, halo, writable=writable) for array in arrays]


def host_array(value: Any, *, writable: bool = False) -> NDArray[Any]:
    """An array of NumPy over the memory of another, or of numbers.

    Raises
    ------
    InvalidError
        When it is masked, lies on a device, or is no array of numbers; or shall be read into, and only a copy can be
        had.
    """
    if isinstance(value, np.ndarray):
        if isinstance(value, np.ma.MaskedArray):
            message = (
                "a masked array cannot be written or read into, since files have no masks\n"
                "  hint: give array.filled(value), with a value for what is masked"
            )
            raise InvalidError(message)
        return value
    if isinstance(value, (str, dict, set)) or value is None or isinstance(value, type):
        raise _no_array(value)
    package = type(value).__module__.partition(".")[0]
    if writable and package in ("pandas", "xarray", "polars", "dask"):
        message = (
            f"{_named(value)} cannot be read into\n  hint: give a NumPy array, or read without out= and make a new "
            f"{type(value).__name__} of what is read"
        )
        raise InvalidError(message)
    if package == "dask":
        message = f"{_named(value)} is not in memory\n  hint: give this rank's part, as array.compute() makes it"
        raise InvalidError(message)
    shown = _shown(value)
    if shown is not None:
        return _writable(shown, value) if writable else shown
    if writable:
        raise _no_array(value, "read into a NumPy array, or without out=")
    try:
        made = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise _no_array(value, f"make a NumPy array of it first, which np.asarray() cannot: {error}") from None
    code_of(made.dtype)
    return made


def _shown(value: Any) -> NDArray[Any] | None:
    """Its memory as an array of NumPy, where it has some: by DLPack, the buffer protocol, or the array interface."""
    if hasattr(value, "__dlpack_device__"):
        return _of_dlpack(value)
    if hasattr(value, "__array_interface__"):
        return np.asarray(value)
    if hasattr(value, "__cuda_array_interface__"):
        raise _on_device(value, "CUDA")
    if isinstance(value, (bytes, bytearray)):
        return np.frombuffer(value, np.uint8)
    if isinstance(value, np.generic):
        return None
    try:
        return np.asarray(memoryview(value))
    except TypeError:
        return None


def _of_dlpack(value: Any) -> NDArray[Any]:
    device, number = value.__dlpack_device__()
    if int(device) not in HOST:
        raise _on_device(value, f"{DEVICES.get(int(device), f'DLPack type {int(device)}')} {number}")
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        # NumPy takes no types of ml_dtypes this way; JAX gives such arrays as NumPy has them.
        if type(value).__module__.partition(".")[0] in ("jax", "jaxlib"):
            return np.asarray(value)
        message = (
            f"{_named(value)} cannot be used: {error}\n  hint: give the NumPy array that it makes, as "
            "tensor.detach().numpy() of torch"
        )
        raise InvalidError(message) from None


def _writable(shown: NDArray[Any], value: Any) -> NDArray[Any]:
    """The same memory, so that it may be changed, or an error that says why it may not."""
    if shown.flags.writeable:
        return shown
    if type(value).__module__.partition(".")[0] not in ("jax", "jaxlib", "builtins") and hasattr(value, "__array__"):
        # Older versions of DLPack do not say whether memory may be changed, and NumPy takes it that it may not.
        other = np.asarray(value)
        same = (other.ctypes.data, other.strides, other.dtype) == (shown.ctypes.data, shown.strides, shown.dtype)
        if same and other.flags.writeable:
            return other
    message = (
        f"{_named(value)} cannot be changed, and so not read into\n"
        "  hint: read without out=, or read into a NumPy array and convert that"
    )
    raise InvalidError(message)


def _named(value: Any) -> str:
    kind = type(value)
    module = "" if kind.__module__ == "builtins" else kind.__module__.partition(".")[0] + "."
    return f"an object of type {module}{kind.__qualname__}"


def _on_device(value: Any, device: str) -> InvalidError:
    return InvalidError(
        f"{_named(value)} lies on a device ({device}), where the processor cannot use it\n  hint: {TO_HOST}"
    )


def _no_array(
    value: Any, hint: str = "give a NumPy array, or an array of another package in host memory"
) -> InvalidError:
    got = "None" if value is None else _named(value)
    return InvalidError(f"the local part must be an array, got {got}\n  hint: {hint}")
