"""How an array is cut into chunks on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

from hyperslab import _core
from hyperslab._calls import type_code, type_of
from hyperslab.distribution import Distribution

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["Chunks", "TypicalRequest", "chunk_shape"]


@dataclass(frozen=True)
class TypicalRequest:
    """The shape of what is typically read or written later, from which chunks are chosen.

    The only thing that Disk Resident Arrays ask for: extents that do not divide the array's are replaced by the nearest
    that do, open dimensions are filled as far as a chunk may be large, and of a request that is larger than a chunk may
    be, each side is cut into equal parts.

    Parameters
    ----------
    shape : sequence of int or None
        Extent of a typical request along each dimension; ``None`` leaves it open.
    chunk_bytes : int, optional
        Most bytes of a chunk; 32 MiB by default. A rank that handles chunks needs a few of them in its buffers.

    Examples
    --------
    >>> import hyperslab as hs
    >>> hs.TypicalRequest((None, 1, 360)).chunks((1000, 180, 360), "f8")
    (1000, 1, 360)
    >>> hs.TypicalRequest((3000, 2000), chunk_bytes=1 << 20).chunks((6000, 6000), "f8")
    (375, 250)
    """

    shape: Sequence[int | None]
    chunk_bytes: int | None = None

    def chunks(self, shape: Sequence[int], dtype: DTypeLike) -> tuple[int, ...]:
        """Shape of the chunks of an array."""
        from hyperslab.errors import InvalidError

        wanted = [None if extent is None or extent < 0 else extent.__index__() for extent in self.shape]
        try:
            size = type_of(type_code(dtype)).itemsize
            return tuple(_core.chunks_for_request(shape, wanted, size, self.chunk_bytes))
        except (ValueError, TypeError, OverflowError) as error:
            raise InvalidError(str(error)) from None


#: What says how an array is cut into chunks.
Chunks: TypeAlias = "Sequence[SupportsIndex] | Distribution | TypicalRequest"


def chunk_shape(chunks: Chunks | None, asks: Sequence[tuple[Any, ...]], dtype: DTypeLike | None) -> list[int] | None:
    """Extents of the chunks for the arrays that are asked for: name, local arrays, holding, section."""
    if chunks is None or not asks:
        return None
    if not isinstance(chunks, (Distribution, TypicalRequest)):
        return [chunk.__index__() for chunk in chunks]
    from hyperslab.errors import InvalidError

    _, raws, held, _ = asks[0]
    if dtype is None and not raws:
        message = (
            "this rank holds no piece, so the type of the elements, and so the chunks, are unknown\n  hint: give dtype="
        )
        raise InvalidError(message)
    kind = type_of(raws[0][2] if dtype is None else type_code(dtype))
    if isinstance(chunks, TypicalRequest):
        return list(chunks.chunks(held.shape, kind))
    if tuple(chunks.shape) != tuple(held.shape):
        message = f"the disk schema has shape {chunks.shape}, the array {tuple(held.shape)}"
        raise InvalidError(message)
    return _core.schema_chunks(chunks._core, kind.itemsize)
