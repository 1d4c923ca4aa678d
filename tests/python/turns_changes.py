"""Changes of a file as values: what they make of the model. Owners' libraries and we carry the same ones out."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from global_arrays import Quads, replace
from turns_model import Array, Attributes, Group, Soft, Tree


@dataclass
class New:
    """A new array; if nothing is written to it, it has its fill value."""

    path: str
    array: Array
    written: bool = True
    #: Dimensions of netCDF that come with it.
    dims: dict[str, int | None] = field(default_factory=dict)

    def apply(self, tree: Tree) -> None:
        """As the model has it."""
        NewDims(self.dims).apply(tree)
        above, name = tree.above(self.path)
        above.members[name] = deepcopy(self.array)
        for dim, extent in zip(self.array.dims or (), self.array.values.shape, strict=True) if tree.lengths else ():
            tree.lengthen(str(dim), extent)


@dataclass
class NewGroup:
    """A new group."""

    path: str
    attributes: Attributes

    def apply(self, tree: Tree) -> None:
        """As the model has it."""
        above, name = tree.above(self.path)
        above.members[name] = Group(dict(self.attributes))


@dataclass
class NewDims:
    """New dimensions of netCDF; ``None`` is one without a limit."""

    lengths: dict[str, int | None]

    def apply(self, tree: Tree) -> None:
        """As the model has it."""
        for name, length in self.lengths.items():
            tree.lengths[name] = length or 0
            if length is None:
                tree.unlimited.add(name)


@dataclass
class Write:
    """Elements of a section; in netCDF it may reach behind the last record."""

    path: str
    section: Quads
    values: NDArray[Any]

    def apply(self, tree: Tree) -> None:
        """As the model has it."""
        array = tree.array(self.path)
        reaches = [start + (count - 1) * stride + block for start, stride, count, block in self.section]
        for dim, reach in zip(array.dims or (), reaches, strict=True) if tree.lengths else ():
            tree.lengthen(str(dim), reach)
        replace(array.values, self.section, self.values)


@dataclass
class Append:
    """Rows behind the last one along an axis."""

    path: str
    axis: int
    values: NDArray[Any]
    #: Behind which row they come: in netCDF those that the opening has seen or written of the array.
    behind: int | None = None

    def apply(self, tree: Tree) -> None:
        """As the model has it."""
        array = tree.array(self.path)
        old, axis = [*array.values.shape], self.axis
        if self.behind is not None:
            old[axis] = self.behind
        by = self.values.shape[axis]
        longer = tuple(max(old[each] + by * (each == axis), extent) for each, extent in enumerate(array.values.shape))
        if tree.lengths and array.dims is not None:
            tree.lengthen(str(array.dims[axis]), longer[axis])
        else:
            array.resize(longer)
        array.values[(slice(None),) * axis + (slice(old[axis], old[axis] + by),)] = self.values


@dataclass
class Resize:
    """Another shape."""

    path: str
    shape: tuple[int, ...]

    def apply(self, tree: Tree) -> None:
        """As the model has it."""
        array = tree.array(self.path)
        array.was_cut |= any(new < old for new, old in zip(self.shape, array.values.shape, strict=True))
        array.resize(self.shape)


@dataclass
class SetAttributes:
    """Attributes of anything, new or with another value."""

    path: str
    values: Attributes

    def apply(self, tree: Tree) -> None:
        """As the model has it."""
        node = tree.find(self.path)
        assert node is not None
        node.attributes.update(self.values)


@dataclass
class DropAttribute:
    """An attribute goes."""

    path: str
    name: str

    def apply(self, tree: Tree) -> None:
        """As the model has it."""
        node = tree.find(self.path)
        assert node is not None
        del node.attributes[self.name]


@dataclass
class Rename:
    """A name of anything becomes another, perhaps in another group."""

    old: str
    new: str

    def apply(self, tree: Tree) -> None:
        """As the model has it."""
        above, name = tree.above(self.old)
        to, new = tree.above(self.new)
        to.members[new] = above.members.pop(name)


@dataclass
class Delete:
    """A name goes, and what has no other one."""

    path: str

    def apply(self, tree: Tree) -> None:
        """As the model has it."""
        above, name = tree.above(self.path)
        del above.members[name]


@dataclass
class Link:
    """A further name of an object, or a soft link to a path from the root, which may lead nowhere."""

    path: str
    to: str
    soft: bool

    def apply(self, tree: Tree) -> None:
        """As the model has it."""
        above, name = tree.above(self.path)
        found = tree.find(self.to)
        assert self.soft or found is not None
        above.members[name] = Soft(self.to) if self.soft or found is None else found


@dataclass
class RenameDim:
    """A dimension of netCDF gets another name."""

    old: str
    new: str

    def apply(self, tree: Tree) -> None:
        """As the model has it."""
        tree.lengths = {self.new if name == self.old else name: length for name, length in tree.lengths.items()}
        if self.old in tree.unlimited:
            tree.unlimited = tree.unlimited - {self.old} | {self.new}
        for each in {id(each): each for each in tree.arrays().values()}.values():
            each.dims = tuple(self.new if name == self.old else name for name in each.dims or ())


Change = (
    New
    | NewGroup
    | NewDims
    | Write
    | Append
    | Resize
    | SetAttributes
    | DropAttribute
    | Rename
    | Delete
    | Link
    | RenameDim
)


@dataclass
class Turn:
    """Changes that one side makes in one opening."""

    side: str
    ranks: int
    changes: list[Change] = field(default_factory=list)

    def __str__(self) -> str:
        """One line for each change."""
        who = f"{self.side} on {self.ranks} ranks" if self.side == "hyperslab" else self.side
        return "\n".join([f"{who}:", *(f"  {each!r:.400}" for each in self.changes)])
