"""What random changes there are: which of them a side tries on a file, by what is in it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import turns_changes as to
from global_arrays import select
from random_cases import Random, some_section
from turns_model import NAMES, Array, Attributes, Tree, chance, native, one_of, some_elements


class Drawing:
    """Draws changes that any format may have; what is in the way of one is no change."""

    random: Random
    #: Kinds of changes of others and of ours; what is there several times is drawn more often.
    KINDS: tuple[str, ...] = (
        *("new", "new", "new", "group", "write", "write", "write", "append", "append", "resize"),
        *("set", "set", "set", "drop", "rename", "delete", "link"),
    )
    #: Of these, those that we have no call for.
    NOT_OURS: tuple[str, ...] = ("link",)

    @abstractmethod
    def some_array(self, side: str) -> Array:
        """A new array."""

    @abstractmethod
    def some_attribute(self, side: str) -> Any:
        """A value of an attribute."""

    def some_attributes(self, side: str, most: int = 3) -> Attributes:
        """Attributes with names of any letters."""
        return {self.some_name(): self.some_attribute(side) for _ in range(int(self.random.integers(0, most)))}

    def some_name(self) -> str:
        """A name, which may be taken."""
        return f"{one_of(self.random, NAMES)}{int(self.random.integers(20))}"

    def free(self, tree: Tree) -> str | None:
        """A path that leads to nothing, in a group that is there."""
        within, name = one_of(self.random, tree.groups()), self.some_name()
        return None if name in tree.group(within).members else f"{within}/{name}".removeprefix("/")

    def some_change(self, tree: Tree, side: str) -> to.Change | None:
        """A change that a side can make, if one is found."""
        kinds = [kind for kind in self.KINDS if side != "hyperslab" or kind not in self.NOT_OURS]
        draw: Any = getattr(self, f"some_{one_of(self.random, kinds)}")
        change: to.Change | None = draw(tree, side)
        return change

    def some_new(self, tree: Tree, side: str) -> to.Change | None:
        """A new array, to which nothing may be written yet."""
        if (path := self.free(tree)) is None:
            return None
        array, written = self.some_array(side), chance(self.random, 0.8)
        if not written:
            array.values[...] = array.fill
        return to.New(path, array, written)

    def some_group(self, tree: Tree, side: str) -> to.Change | None:
        """A new group."""
        path = self.free(tree)
        return None if path is None or path.count("/") > 2 else to.NewGroup(path, self.some_attributes(side))

    def array_in(self, tree: Tree, side: str, *, grows: bool = False) -> tuple[str, Array] | None:
        """An array that a side can change."""
        known = [each for each in tree.arrays().items() if self.may_write(each[1], side)]
        known = [each for each in known if not grows or (each[1].grows and each[1].values.ndim)]
        return one_of(self.random, known) if known else None

    def may_write(self, array: Array, side: str) -> bool:
        """Whether a side can write elements of an array at all; if not, it is refused."""
        return True

    def some_write(self, tree: Tree, side: str) -> to.Change | None:
        """A section of an array."""
        if (found := self.array_in(tree, side)) is None:
            return None
        path, array = found
        section = some_section(self.random, array.values.shape)
        if any(block != 1 for _, _, _, block in section):
            # Others have slices only.
            section = tuple((start, stride, count, 1) for start, stride, count, _ in section)
        return to.Write(path, section, self.elements(array, select(array.values, section).shape))

    def elements(self, array: Array, shape: tuple[int, ...]) -> Any:
        """New elements of an array."""
        return native(some_elements(self.random, array.stored, shape))

    def some_append(self, tree: Tree, side: str) -> to.Change | None:
        """Rows of an array that may grow."""
        if (found := self.array_in(tree, side, grows=True)) is None:
            return None
        path, array = found
        axes = [axis for axis, most in enumerate(array.limits) if most is None]
        if not axes:
            return None
        axis, shape = one_of(self.random, axes), [*array.values.shape]
        shape[axis] = int(self.random.integers(1, 4))
        if shape and max(array.values.shape) > 20:
            return None
        return to.Append(path, axis, self.elements(array, tuple(shape)))

    def some_resize(self, tree: Tree, side: str) -> to.Change | None:
        """Another shape, larger or smaller."""
        if (found := self.array_in(tree, side, grows=True)) is None:
            return None
        path, array = found
        least = 0 if chance(self.random, 0.5) else 99
        shape = tuple(
            int(self.random.integers(min(extent, least), (extent + 4 if most is None else most) + 1))
            for extent, most in zip(array.values.shape, array.limits, strict=True)
        )
        return to.Resize(path, shape)

    def some_node(self, tree: Tree) -> str:
        """A path of anything."""
        return str(one_of(self.random, [path for path, _ in tree.walk()]))

    def some_set(self, tree: Tree, side: str) -> to.Change | None:
        """Attributes, of which some are there."""
        path = self.some_node(tree)
        values = self.some_attributes(side, most=4)
        node = tree.find(path)
        if node is not None and node.attributes and chance(self.random, 0.4):
            values[one_of(self.random, node.attributes)] = self.some_attribute(side)
        return to.SetAttributes(path, values) if values else None

    def some_drop(self, tree: Tree, side: str) -> to.Change | None:
        """An attribute goes."""
        path = self.some_node(tree)
        node = tree.find(path)
        return to.DropAttribute(path, one_of(self.random, node.attributes)) if node and node.attributes else None

    def some_rename(self, tree: Tree, side: str) -> to.Change | None:
        """Another name, or another group, which does not lie in what moves."""
        old, new = self.some_node(tree), self.free(tree)
        if not old or new is None or tree.group(new.rpartition("/")[0]) in inside(tree, old):
            return None
        return to.Rename(old, new)

    def some_delete(self, tree: Tree, side: str) -> to.Change | None:
        """A name goes."""
        path = self.some_node(tree)
        return to.Delete(path) if path else None

    def some_link(self, tree: Tree, side: str) -> to.Change | None:
        """A hard or soft link, some of which lead nowhere."""
        path, target = self.free(tree), self.some_node(tree)
        if path is None or not target:
            return None
        if chance(self.random, 0.5):
            return to.Link(path, target if chance(self.random, 0.8) else f"{target}/none", soft=True)
        return to.Link(path, target, soft=False)


def inside(tree: Tree, path: str) -> list[Any]:
    """What a path leads to, and all that lies in it."""
    return [node for each, node in tree.walk() if each == path or each.startswith(f"{path}/")]
