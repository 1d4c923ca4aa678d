"""What arrays of a Zarr store are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from hyperslab._calls import type_of
from hyperslab._frozen import frozen

__all__ = ["ArrayInfo", "RawInfo", "info_of"]

#: Kind, shape, chunks, shards, names of dimensions, attributes and fill value as JSON.
RawInfo: TypeAlias = "tuple[str, list[int], list[int], list[int] | None, list[str | None] | None, str, str]"


@dataclass(frozen=True)
class ArrayInfo:
    """What an array on disk is."""

    #: Global shape.
    shape: tuple[int, ...]
    #: Type of the elements. That of ml_dtypes for bfloat16; without this package `V2`, two bytes that mean nothing.
    dtype: np.dtype[Any]
    #: Shape of a chunk; of an array in shards, of one inside of a shard.
    chunks: tuple[int, ...]
    #: Shape of a shard, which is an object that holds several chunks, where the array has shards.
    shards: tuple[int, ...] | None
    #: Names of the dimensions, where they have any.
    dimension_names: tuple[str | None, ...] | None
    #: Attributes, which cannot be changed here; ``attributes.copy()`` is an ordinary dict.
    attributes: Mapping[str, Any]
    #: What elements are that were never written, as in the metadata.
    fill_value: Any

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)


def info_of(raw: RawInfo) -> ArrayInfo:
    """What the core tells of an array."""
    kind, shape, chunks, shards, names, attributes, fill = raw
    return ArrayInfo(
        tuple(shape),
        type_of(kind),
        tuple(chunks),
        None if shards is None else tuple(shards),
        None if names is None else tuple(names),
        frozen(json.loads(attributes)),
        frozen(json.loads(fill)),
    )
