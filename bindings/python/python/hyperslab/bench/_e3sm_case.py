"""What ``hyperslab bench e3sm`` writes: variables out of a header as ncdump prints it, and who holds their elements."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import hyperslab as hs

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Header", "Map", "Variable", "load", "small"]

#: Types of a header, and NumPy's.
TYPES = {"char": "S1", "byte": "i1", "short": "i2", "int": "i4", "int64": "i8", "float": "f4", "double": "f8"}
#: Numbers in attributes that end so have a type of their own.
ENDINGS = {"f": "f4", "b": "i1", "s": "i2", "L": "i8"}


@dataclass(frozen=True)
class Variable:
    """One variable of a header."""

    name: str
    dtype: np.dtype[Any]
    dims: tuple[str, ...]
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Header:
    """Dimensions, of which one may be without an end, and variables."""

    dims: dict[str, int]
    unlimited: str | None
    variables: tuple[Variable, ...]

    def is_record(self, variable: Variable) -> bool:
        """Whether a variable has a row in each record."""
        return self.unlimited is not None and variable.dims[:1] == (self.unlimited,)

    def shape(self, variable: Variable) -> tuple[int, ...]:
        """Of a variable, or of one record of it."""
        return tuple(self.dims[one] for one in variable.dims if one != self.unlimited)


@dataclass(frozen=True)
class Map:
    """A decomposition: which elements of an array of some shape each process of the program holds."""

    shape: tuple[int, ...]
    processes: tuple[NDArray[np.int64], ...]

    def of(self, rank: int, ranks: int) -> NDArray[np.int64]:
        """Elements of one of fewer ranks, in ascending order: those of consecutive processes."""
        count = len(self.processes)
        mine = self.processes[rank * count // ranks : (rank + 1) * count // ranks]
        return np.sort(np.concatenate([np.zeros(0, np.int64), *mine]))


def _value(text: str) -> Any:
    if text.startswith('"'):
        return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text)).replace("\\n", "\n").replace('\\"', '"')
    one = [part.strip() for part in text.split(",")]
    kind = ENDINGS.get(one[0][-1], "f8" if re.search(r"[.eE]|nan|inf", one[0]) else "i4")
    return np.array([part.rstrip("fbsL") for part in one], np.float64).astype(kind)


def read_header(text: str) -> Header:
    """Understand what ``ncdump -h`` printed.

    Raises
    ------
    InvalidError
        When there is a line that is not understood.
    """
    dims: dict[str, int] = {}
    unlimited: str | None = None
    variables: dict[str, Variable] = {}
    for statement in _statements(text):
        if found := re.fullmatch(r"(\w+) = (UNLIMITED|\d+)", statement):
            dims[found[1]] = 0 if found[2] == "UNLIMITED" else int(found[2])
            unlimited = found[1] if found[2] == "UNLIMITED" else unlimited
        elif found := re.fullmatch(r"(\w*):(\S+) = (.*)", statement, re.DOTALL):
            # Those of the file have no name in front.
            if found[1] in variables:
                variables[found[1]].attributes[found[2]] = _value(found[3])
        elif found := re.fullmatch(r"(\w+) (\w+)(?:\(([\w, ]*)\))?", statement):
            axes = tuple(one.strip() for one in (found[3] or "").split(",") if one.strip())
            if found[1] not in TYPES or not set(axes) <= dims.keys():
                message = f"the header declares '{statement}': its type or a dimension is not known"
                raise hs.InvalidError(message)
            variables[found[2]] = Variable(found[2], np.dtype(TYPES[found[1]]), axes)
        else:
            message = f"the header has a line that is not understood: {statement!r}\n  hint: give what ncdump -h prints"
            raise hs.InvalidError(message)
    return Header(dims, unlimited, tuple(variables.values()))


def _statements(text: str) -> Iterator[str]:
    """What ends in a semicolon, without comments and headings; a text may hold either."""
    pieces = re.findall(r'"(?:[^"\\]|\\.)*"|//[^\n]*|;|[^";/]+|/', text[text.index("{") + 1 : text.rindex("}")])
    statement = ""
    for piece in pieces:
        if piece == ";":
            yield re.sub(r"^\s*(dimensions|variables)\s*:\s*", "", statement).strip()
            statement = ""
        elif not piece.startswith("//"):
            statement += piece


def read_maps(path: Path) -> tuple[Map, ...]:
    """Maps out of a file as E3SM-IO has them: D1.nreqs, D1.offsets, D1.lengths and the attribute D1.dims for each."""
    with hs.open(path) as file:
        return tuple(_map(file, f"D{number}") for number in range(1, 100) if f"D{number}.nreqs" in file)


def _map(file: Any, name: str) -> Map:
    counts, offsets, lengths = (
        np.asarray(file[f"{name}.{what}"][...], np.int64) for what in ("nreqs", "offsets", "lengths")
    )
    ends = np.cumsum(counts)
    each = []
    for end, count in zip(ends.tolist(), counts.tolist(), strict=True):
        first, many = offsets[end - count : end], lengths[end - count : end]
        before = np.repeat(np.cumsum(many) - many, many)
        each.append(np.repeat(first, many) + np.arange(many.sum()) - before)
    return Map(tuple(np.atleast_1d(file.attrs[f"{name}.dims"]).tolist()), tuple(each))


def load(maps: Path, header: Path) -> tuple[Header, tuple[Map, ...]]:
    """A case out of a file of maps and a header."""
    return read_header(header.read_text()), read_maps(maps)


def small(columns: int = 600, levels: int = 12, fields: int = 40) -> tuple[Header, tuple[Map, ...]]:
    """A case of our own: columns of an atmosphere, dealt to 16 processes along a curve that leaves and comes back."""
    processes = 16
    order = (np.arange(columns) * 7) % columns if math.gcd(columns, 7) == 1 else np.arange(columns)
    dealt = [order[one * columns // processes : (one + 1) * columns // processes] for one in range(processes)]
    flat = Map((columns,), tuple(dealt))
    deep = Map((levels, columns), tuple((np.arange(levels)[:, None] * columns + np.sort(one)).ravel() for one in dealt))
    text = [f"\tfloat F{number:02}(time, {'lev, ' if number % 4 == 0 else ''}ncol) ;" for number in range(fields)]
    text += [f'\t\tF{number:02}:units = "K" ;' for number in range(fields)]
    head = f"netcdf small {{\ndimensions:\n\ttime = UNLIMITED ;\n\tncol = {columns} ;\n\tlev = {levels} ;\n"
    head += "variables:\n\tdouble lat(ncol) ;\n\tdouble lev(lev) ;\n\tint date(time) ;\n"
    return read_header(head + "\n".join(text) + "\n}\n"), (flat, deep)


def map_of(header: Header, variable: Variable, maps: tuple[Map, ...]) -> int | None:
    """Which map a variable has: of those of its shape the last for records and the first for others, as in E3SM-IO."""
    shape = header.shape(variable)
    alike = [number for number, one in enumerate(maps) if one.shape == shape]
    if not alike:
        return None
    return alike[-1 if header.is_record(variable) else 0]
