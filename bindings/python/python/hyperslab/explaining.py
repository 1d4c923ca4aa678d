"""What a transfer would do, without doing it."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

from hyperslab import _core
from hyperslab._calls import holding, section_of, type_code
from hyperslab._picture import draw
from hyperslab.chunking import chunking, shards_of
from hyperslab.distribution import Distribution
from hyperslab.errors import Error, InvalidError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from hyperslab._calls import SectionLike
    from hyperslab.chunking import Chunking, Chunks, Shards
    from hyperslab.pieces import Pieces

__all__ = ["Explanation", "explain"]


class Explanation:
    """How a transfer would be done: printed for people, or as data.

    Made by `explain`.
    """

    def __init__(self, text: str, data: str) -> None:
        self._text = text
        self._data = data

    @property
    def text(self) -> str:
        """What `print` shows: what is asked, what was chosen and why, and the tables of rounds, servers and ranks."""
        return self._text

    @property
    def strategy(self) -> str:
        """The strategy that was chosen."""
        return str(self.to_dict()["strategy"])

    def to_dict(self) -> dict[str, Any]:
        """The same as data.

        Returns
        -------
        dict
            What is asked (``direction``, ``bytes`` [B], ``size``, ``arrays``), what was chosen (``strategy``, ``why``,
            ``parameters``, ``others`` with the reason why they are infeasible, or None), at what price (``predicted``:
            ``seconds`` [s], ``later_seconds`` to be durable later [s], ``first_seconds`` of new memory [s],
            ``phases`` [s], ``busy`` [s], ``bound_by``, ``buffer_bytes`` [B]; ``candidates``: the same of all that
            were compared, the cheapest first, by all three kinds of seconds), and three tables: ``rounds`` (what each
            server moves of which rank), ``servers`` (what each asks of storage) and ``ranks`` (what each sends,
            receives and needs for buffers), with ``more_rounds``, ``more_servers`` and ``more_ranks`` that are not in
            them.
        """
        data: dict[str, Any] = json.loads(self._data)
        return data

    def picture(self) -> str:
        """The ranks, the servers, and what moves between them, as a picture.

        Returns
        -------
        str
            SVG: ranks to the left, servers to the right, each pair joined by a band as wide as the bytes between them;
            below, what each server moves in which round, in the colours of the ranks.
        """
        return draw(self.to_dict())

    def __str__(self) -> str:
        """The text."""
        return self._text

    def _repr_html_(self) -> str:
        """For notebooks: the picture, and the text below it."""
        return f"{self.picture()}<pre>{html.escape(self._text)}</pre>"

    def __repr__(self) -> str:
        """What is asked, and the strategy."""
        return f"<Explanation: {self._text.partition(chr(10))[0]}; {self.strategy}>"


def explain(
    dist: Distribution | Sequence[Pieces],
    dtype: DTypeLike = float,
    *,
    name: str | Sequence[str] = "array",
    direction: Literal["write", "read"] = "write",
    section: SectionLike | None = None,
    shape: Sequence[SupportsIndex] | None = None,
    layout: Literal["zarr", "raw"] = "zarr",
    chunks: Chunks | None = None,
    shards: Shards = "auto",
    checksum: bool = True,
    zstd: int | None = None,
    order: Literal["C", "F"] = "C",
    header_bytes: int = 0,
    strategy: str | None = None,
    exchange: str | None = None,
    servers: int | Sequence[SupportsIndex] | None = None,
    subchunk_bytes: int | None = None,
    buffer_bytes: int | None = None,
    cores: int | None = None,
    ranks_per_node: int | None = None,
    ranks: int = 8,
    rounds: int = 3,
) -> Explanation:
    """Tell how arrays would be written to, or read from, storage: who sends what to whom in which round, and why so.

    Nothing is opened, written or sent, and any number of ranks can be asked about.

    Parameters
    ----------
    dist : Distribution, or sequence of Pieces
        Who holds what in memory: one distribution, or what each rank holds, in the order of ranks.
    dtype : optional
        Type of the elements, in memory and in storage.
    name : str or sequence of str
        The array, or several arrays that are held alike and move in one call.
    direction : {"write", "read"}
        Which way.
    section : optional
        Only this part of existing arrays, as for `Group.write`; `shape` is then theirs, and `dist` spreads the section.
    shape : sequence of int, optional
        Shape of the stored arrays, where only a section moves.
    layout : {"zarr", "raw"}
        Chunks of a Zarr store, or one raw file with all arrays one after another.
    chunks, shards, checksum, zstd : optional
        For Zarr, as for `Group.write`.
    order : {"C", "F"}
        For raw files, the order of the elements.
    header_bytes : int
        For raw files, the bytes before the first array [B].
    strategy, exchange, subchunk_bytes, buffer_bytes : optional
        As for `open`; chosen when not given.
    servers : int or sequence of int, optional
        How many ranks are servers, or which.
    cores : int, optional
        Cores of a compute node; those of this machine by default.
    ranks_per_node : int, optional
        Ranks on one compute node; all of them by default.
    ranks, rounds : int
        How many ranks (and servers) and how many rounds are shown at most.

    Returns
    -------
    Explanation
        Its text is for people; `Explanation.to_dict` gives data.

    Examples
    --------
    >>> import hyperslab as hs
    >>> blocks = hs.Distribution.block((16, 16), 4)
    >>> told = hs.explain(blocks, "f4", layout="raw", strategy="server-directed", subchunk_bytes=512, servers=2)
    >>> lines = told.text.splitlines()
    >>> table = next(number for number, line in enumerate(lines) if line.startswith("  round"))
    >>> for line in lines[table : table + 5]:
    ...     print(line)
      round   server  from rank   pieces      elements           bytes
          0        0          0        1            64             256  its own
          0        0          1        1            64             256
          0        2          2        1            64             256  its own
          0        2          3        1            64             256
    >>> told.to_dict()["servers"][0]["extents"]
    1
    """
    if direction not in ("write", "read"):
        message = f"direction must be 'write' or 'read', got {direction!r}"
        raise InvalidError(message)
    names = [name] if isinstance(name, str) else list(name)
    held = [dist] if isinstance(dist, Distribution) else [holding(pieces) for pieces in dist]
    if (section is None) != (shape is None):
        message = "a section needs the shape of the array that it is a part of, and a shape is only for a section"
        raise InvalidError(f"{message}\n  hint: give both, or neither: without a section, the shape is that of dist")
    stored = None if shape is None else [extent.__index__() for extent in shape]
    part = section_of(section, stored)
    listed = None if servers is None or isinstance(servers, int) else [rank.__index__() for rank in servers]
    count = servers if isinstance(servers, int) else None
    given: _core._OpenKeywords = {
        "buffer_bytes": buffer_bytes,
        "subchunk_bytes": subchunk_bytes,
        "servers": count,
        "strategy": strategy,
        "exchange": exchange,
    }
    node = (ranks_per_node or _size(held), cores or os.cpu_count() or 1)
    try:
        cut = chunking(chunks, held[0].shape if stored is None else stored, type_code(dtype)) if held else (None, None)
        text, data = _core.explain(
            names,
            [one._core for one in held],
            type_code(dtype),
            None if part is None or stored is None else (part, stored),
            _layout(layout, cut, shards=shards, checksum=checksum, zstd=zstd, order=order, header_bytes=header_bytes),
            direction == "write",
            given,
            listed,
            node,
            (ranks, rounds),
        )
    except (ValueError, TypeError, OverflowError) as error:
        if isinstance(error, Error):
            raise
        raise InvalidError(str(error)) from None
    return Explanation(text, data)


def _size(held: Sequence[Distribution | Pieces]) -> int:
    """Number of ranks."""
    first = held[0] if held else None
    return first.size if isinstance(first, Distribution) else len(held)


def _layout(
    layout: str,
    cut: Chunking,
    *,
    shards: Shards,
    checksum: bool,
    zstd: int | None,
    order: str,
    header_bytes: int,
) -> Any:
    """How arrays are stored, as the core takes it."""
    if layout == "raw":
        return (order, header_bytes)
    if layout != "zarr":
        message = f"layout must be 'zarr' or 'raw', got {layout!r}"
        raise InvalidError(message)
    chunks, typical = cut
    unsharded = shards is None or shards is False
    given = {"chunks": chunks, "typical": typical, "shards": shards_of(shards), "unsharded": unsharded}
    return given | {"checksum": checksum, "zstd": zstd}
