"""What a file should hold that others and we change in turns, kept in NumPy arrays and dicts: no library of files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from random_cases import Random

#: Names of objects and attributes, short, long, and in several scripts.
NAMES = ("a", "b", "c", "größe", "in it", "мм", "k" * 40)
Attributes = dict[str, Any]


@dataclass(eq=False)
class Array:
    """An array, as it should be."""

    #: Elements in the byte order of this machine.
    values: NDArray[Any]
    #: Their type in the file.
    stored: np.dtype[Any]
    attributes: Attributes = field(default_factory=dict)
    dims: tuple[str | None, ...] | None = None
    #: What elements are that were never written.
    fill: Any = 0
    #: Whether a fill value was given, and does not only follow from the type.
    says_fill: bool = False
    #: How far each dimension may grow; ``None`` is without a limit.
    limits: tuple[int | None, ...] = ()
    #: How it is stored, in the words of its maker.
    how: dict[str, Any] = field(default_factory=dict)
    #: Whether it was cut off once.
    was_cut: bool = False

    def __deepcopy__(self, memo: dict[int, Any]) -> Array:
        """A copy with elements of its own. NumPy's types lose their metadata in ``deepcopy``, so they are shared."""
        copied = replace(self, values=self.values.copy(), attributes=dict(self.attributes))
        memo[id(self)] = copied
        return copied

    @property
    def grows(self) -> bool:
        """Whether it may get another shape."""
        return self.limits != self.values.shape

    def resize(self, shape: tuple[int, ...]) -> None:
        """Cut it off, and fill up what is new."""
        new = filled(shape, self.values.dtype, self.fill)
        both = tuple(slice(0, min(pair)) for pair in zip(shape, self.values.shape, strict=True))
        new[both] = self.values[both]
        self.values = new


@dataclass(eq=False)
class Group:
    """A group, and what lies in it by which names."""

    attributes: Attributes = field(default_factory=dict)
    members: dict[str, Array | Group | Soft] = field(default_factory=dict)


@dataclass(eq=False)
class Soft:
    """A link that names a path from the root."""

    to: str


Node = Array | Group


class Tree:
    """A file, as it should be."""

    def __init__(self) -> None:
        self.root = Group()
        #: Lengths of the dimensions of netCDF, which have one name each in all of a file.
        self.lengths: dict[str, int] = {}
        self.unlimited: set[str] = set()

    def find(self, path: str) -> Node | None:
        """What a path leads to, through soft links, too."""
        node: Node | None = self.root
        for name in filter(None, path.split("/")):
            if not isinstance(node, Group):
                return None
            node = self.follow(node.members.get(name))
        return node

    def follow(self, member: Array | Group | Soft | None, depth: int = 0) -> Node | None:
        """What a member is, or leads to."""
        if isinstance(member, Soft):
            return self.find(member.to) if depth < 9 else None
        return member

    def group(self, path: str) -> Group:
        """The group of a path."""
        found = self.find(path)
        assert isinstance(found, Group), path
        return found

    def array(self, path: str) -> Array:
        """The array of a path."""
        found = self.find(path)
        assert isinstance(found, Array), path
        return found

    def above(self, path: str) -> tuple[Group, str]:
        """The group that a path lies in, and the name there."""
        within, _, name = path.rpartition("/")
        return self.group(within), name

    def walk(self) -> Iterator[tuple[str, Node]]:
        """All paths that lead to something, and where. A tree with a circle has no end of them."""
        yield "", self.root
        yield from self._walk(self.root, "", (self.root,))

    def _walk(self, group: Group, within: str, above: tuple[Group, ...]) -> Iterator[tuple[str, Node]]:
        for name, member in group.members.items():
            found = self.follow(member)
            if found is None:
                continue
            if any(found is each for each in above):
                raise RecursionError(within + name)
            yield within + name, found
            if isinstance(found, Group):
                yield from self._walk(found, f"{within}{name}/", (*above, found))

    def is_sound(self) -> bool:
        """Whether there is no circle, and not too much in it."""
        try:
            return sum(1 for _ in self.walk()) < 60
        except RecursionError:
            return False

    def arrays(self) -> dict[str, Array]:
        """All arrays by all of their paths."""
        return {path: node for path, node in self.walk() if isinstance(node, Array)}

    def groups(self) -> dict[str, Group]:
        """All groups by all of their paths; the root is the empty one."""
        return {path: node for path, node in self.walk() if isinstance(node, Group)}

    def lengthen(self, dim: str, length: int) -> None:
        """A dimension of netCDF gets longer, and so do all arrays along it."""
        self.lengths[dim] = max(length, self.lengths[dim])
        for each in self.arrays().values():
            if each.dims is not None:
                each.resize(tuple(self.lengths[str(name)] for name in each.dims))


def filled(shape: tuple[int, ...], dtype: np.dtype[Any], fill: Any) -> NDArray[Any]:
    """An array with one value everywhere."""
    new = np.empty(shape, dtype)
    new[...] = fill
    return new


def native(values: Any) -> NDArray[Any]:
    """In the byte order of this machine; records stay as they are."""
    array = np.asarray(values)
    return array.astype(array.dtype.newbyteorder("=")) if array.dtype.names is None else array


def one_of(random: Random, options: Any) -> Any:
    """Any of them."""
    several = list(options)
    return several[int(random.integers(len(several)))]


def chance(random: Random, probability: float) -> bool:
    """Whether it happens this time."""
    return bool(random.random() < probability)


def some_shape(random: Random) -> tuple[int, ...]:
    """A small shape of 0 to 3 dimensions; now and then one has no extent."""
    ndim = int(one_of(random, [0, 1, 1, 2, 2, 3]))
    shape = [int(extent) for extent in random.integers(1, (1, 12, 7, 5)[ndim] + 1, ndim)]
    if ndim and chance(random, 0.07):
        shape[int(random.integers(ndim))] = 0
    return tuple(shape)


def some_chunks(random: Random, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Chunks of a shape, some as large as it, few larger."""
    return tuple(int(random.integers(1, extent + 2)) for extent in shape)


def some_text(random: Random, letters: str = "abc äöµмж,/'\"") -> str:
    """A text of up to eight letters."""
    return "".join(one_of(random, letters) for _ in range(int(random.integers(0, 9))))


def some_elements(random: Random, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Elements of any bits that a type has."""
    values = np.empty(shape, dtype)
    if dtype.names is not None:
        for name in dtype.names:
            field_type = dtype[name]
            values[name] = some_elements(random, field_type.base, shape + field_type.shape)
        return values
    metadata: Any = dtype.metadata or {}
    if members := metadata.get("enum"):
        values[...] = np.reshape([one_of(random, members.values()) for _ in range(values.size)], shape)
    elif dtype.kind == "O":
        values[...] = np.array([some_text(random) for _ in range(values.size)], object).reshape(shape)
    elif dtype.kind == "S":
        texts = [some_text(random, "abcdef").encode()[: dtype.itemsize] for _ in range(values.size)]
        values[...] = np.array(texts, dtype).reshape(shape)
    elif dtype.kind == "U":
        texts_ = [some_text(random) for _ in range(values.size)]
        values[...] = np.array(texts_, dtype).reshape(shape)
    elif dtype.kind == "b":
        values[...] = random.integers(0, 2, shape)
    else:
        values = np.frombuffer(random.bytes(values.size * dtype.itemsize), dtype).reshape(shape).copy()
    return values


def same(found: Any, expected: NDArray[Any], what: str) -> None:
    """Fail unless type, shape and bits are those; texts of any length by what they say."""
    found = np.asarray(found)
    kinds = f"type {found.dtype}, expected {expected.dtype}"
    assert found.dtype == expected.dtype, f"{what}: {kinds}"
    assert found.shape == expected.shape, f"{what}: shape {found.shape}, expected {expected.shape}"
    if expected.dtype.kind == "O":
        equal = found.tolist() == expected.tolist()
    else:
        equal = np.ascontiguousarray(found).tobytes() == np.ascontiguousarray(expected).tobytes()
    assert equal, f"{what}: {found.ravel().tolist()!r:.300} is not {expected.ravel().tolist()!r:.300}"
