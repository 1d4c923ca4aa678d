"""How an array is cut into chunks on disk."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeAlias

from hyperslab import _core
from hyperslab._calls import type_code, type_of
from hyperslab._types import is_texts
from hyperslab._values import whole_numbers
from hyperslab.distribution import Distribution

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from hyperslab import _options

__all__ = ["Chunking", "Chunks", "Shards", "TypicalRequest", "chunking", "chunking_of_asks", "codecs_of", "shards_of"]


@dataclass(frozen=True)
class TypicalRequest:
    """The shape of what is typically read later, from which chunks are chosen.

    The only thing that Disk Resident Arrays ask for: extents that do not divide the array's are replaced by the nearest
    that do, open dimensions are filled as far as a chunk may be large, and of a request that is larger than a chunk may
    be, each side is cut into equal parts. Where the size of chunks is left open, such shapes for chunks of at most 32,
    8, 2 and 0.5 MiB are compared by what the model expects of writing the array once and of reading all of it by
    such requests; the first is taken unless another is clearly better. Compressed arrays, and those of which ranks hold
    pieces of their own, get the first.

    Parameters
    ----------
    shape : sequence of int or None
        Extent of a typical request along each dimension; ``None`` leaves it open.
    chunk_bytes : int, optional
        Most bytes of a chunk [B]; chosen when not given. A rank that handles chunks needs a few of them in its buffers.

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
        """Shape of the chunks of an array, which have at most `chunk_bytes`, or 32 MiB."""
        from hyperslab.errors import InvalidError

        try:
            size = type_of(type_code(dtype)).itemsize
            return tuple(_core.chunks_for_request(shape, self._extents(), size, self.chunk_bytes))
        except (ValueError, TypeError, OverflowError) as error:
            raise InvalidError(str(error)) from None

    def _extents(self) -> list[int | None]:
        return [None if extent is None or extent < 0 else extent.__index__() for extent in self.shape]


#: What says how an array is cut into chunks.
Chunks: TypeAlias = "Sequence[SupportsIndex] | Distribution | TypicalRequest"


#: What says whether chunks lie in shards.
Shards: TypeAlias = "Sequence[SupportsIndex] | Literal['auto', False] | None"


def shards_of(shards: Any) -> list[int] | None:
    """Shape of shards, where one is given."""
    if shards is None or shards is False or (isinstance(shards, str) and shards == "auto"):
        return None
    if isinstance(shards, (str, bool)):
        from hyperslab.errors import InvalidError

        message = f'shards={shards!r} is neither a shape nor "auto", False or None'
        raise InvalidError(message)
    return whole_numbers(shards, "shards", 1)


#: Names of compression as h5py has them, and of the codecs that do the same.
_COMPRESSION = {"gzip": "gzip", "deflate": "gzip", "zlib": "gzip", "zstd": "zstd"}


def codecs_of(options: _options.CreateOptions) -> str | None:
    """Codecs as JSON: of mappings or of codecs of zarr-python, or those that h5py's keywords ask for.

    Raises
    ------
    InvalidError
        When both are given, or there is no such compression.
    """
    from hyperslab.errors import InvalidError

    codecs = options.get("codecs")
    compression: str | int | None = options.get("compression")
    level: int | None = options.get("compression_opts")
    shuffle, fletcher32 = options.get("shuffle", False), options.get("fletcher32", False)
    if compression is None and not shuffle and not fletcher32:
        if level is not None:
            message = "compression_opts= is a level of compression, which is not given\n  hint: give compression='gzip'"
            raise InvalidError(message)
        if codecs is None:
            return None
        return json.dumps([codec.to_dict() if hasattr(codec, "to_dict") else codec for codec in codecs], default=str)
    if codecs is not None or options.get("zstd") is not None:
        message = (
            "compression=, shuffle= and fletcher32= cannot be given with codecs= or zstd=\n"
            "  hint: name all of it among the codecs, or leave those out"
        )
        raise InvalidError(message)
    if isinstance(compression, int) and not isinstance(compression, bool):
        level, compression = compression, "gzip"
    if compression is not None and compression not in _COMPRESSION:
        message = f"there is no compression {compression!r}\n  hint: choose among {', '.join(map(repr, _COMPRESSION))}"
        raise InvalidError(message)
    made: list[Any] = [{"name": "numcodecs.shuffle"}] if shuffle else []
    if compression is not None:
        name = _COMPRESSION[compression]
        usual = 4 if name == "gzip" else 3
        made.append({"name": name, "configuration": {"level": usual if level is None else level}})
    if fletcher32:
        made.append({"name": "numcodecs.fletcher32"})
    elif options.get("checksum", True):
        made.append({"name": "crc32c"})
    return json.dumps(made)


def maxshape_of(limits: Sequence[int | None] | None) -> list[int | None] | None:
    """How far dimensions may grow, as h5py has it."""
    if limits is None:
        return None
    return [None if limit is None else whole_numbers([limit], "maxshape", 0)[0] for limit in limits]


#: Shape of the chunks, or that with which a choice begins; and extents of typical requests, if the choice is by these.
Chunking: TypeAlias = "tuple[list[int] | None, list[int | None] | None]"


def chunking_of_asks(chunks: Chunks | None, asks: Sequence[tuple[Any, ...]], dtype: DTypeLike | None) -> Chunking:
    """Chunks for the arrays that are asked for: name, local arrays, holding."""
    if chunks is None or not asks:
        return None, None
    _, raws, held = asks[0]
    if dtype is None and not raws and isinstance(chunks, (Distribution, TypicalRequest)):
        from hyperslab.errors import InvalidError

        message = (
            "this rank holds no piece, so the type of the elements, and so the chunks, are unknown\n  hint: give dtype="
        )
        raise InvalidError(message)
    # How long texts of any length will be is not known.
    dtype = "V32" if is_texts(dtype) else dtype
    kind = raws[0].kind if raws and dtype is None else type_code(float if dtype is None else dtype)
    return chunking(chunks, raws[0].shape if held is None else held.shape, kind)


def chunking(chunks: Chunks | None, shape: Sequence[int], kind: str) -> Chunking:
    """Chunks for an array of this shape, of elements of this kind."""
    if chunks is None:
        return None, None
    if isinstance(chunks, TypicalRequest):
        begin = list(chunks.chunks(shape, type_of(kind)))
        return begin, chunks._extents() if chunks.chunk_bytes is None else None
    if not isinstance(chunks, Distribution):
        return whole_numbers(chunks, "chunks", 1), None
    if tuple(chunks.shape) != tuple(shape):
        from hyperslab.errors import InvalidError

        message = (
            f"the distribution that is given as chunks has shape {chunks.shape}, but the array has {tuple(shape)}\n"
            "  hint: make it for the shape of the array"
        )
        raise InvalidError(message)
    return _core.schema_chunks(chunks._core, type_of(kind).itemsize), None
