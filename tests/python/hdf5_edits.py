"""Random changes of HDF5 files that exist: groups, names, attributes, new arrays, steps, in turns with h5py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import numpy as np
from numpy.typing import NDArray

from global_arrays import same
from hdf5_cases import KINDS, LIBRARY, LIBVERS, Program5, some_storage
from netcdf_cases import Model, assert_attributes, native, some_attributes
from random_cases import Random, some_values

NAMES = ("a", "b", "größe", "in it", "k" * 70)


@dataclass
class Tree:
    """A file, as it should be: attributes of the groups, and arrays, by their paths."""

    groups: dict[str, dict[str, Any]] = field(default_factory=lambda: {"": {}})
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    attributes: dict[str, dict[str, Any]] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)
    #: How far those may grow that are in chunks.
    limits: dict[str, tuple[int | None, ...]] = field(default_factory=dict)

    def paths(self) -> list[str]:
        """Of all objects but the root."""
        return [*(path for path in self.groups if path), *self.arrays]

    def drop(self, path: str) -> None:
        """An object goes, with all that is in it."""
        self.move(path, None)

    def move(self, path: str, to: str | None) -> None:
        """An object gets another path, or goes."""

        def moved(known: dict[str, Any]) -> None:
            for name in [name for name in known if name == path or name.startswith(path + "/")]:
                value = known.pop(name)
                if to is not None:
                    known[to + name[len(path) :]] = value

        for known in (self.groups, self.arrays, self.attributes, self.limits):
            moved(known)
        steps = dict.fromkeys(self.steps)
        moved(steps)
        self.steps = list(steps)


class Editor:
    """Calls on one file that exists, which all ranks make alike."""

    def __init__(self, comm: Any, random: Random, tree: Tree) -> None:
        self.comm, self.random, self.tree = comm, random, tree
        self.program = Program5(comm, random, netcdf=False, named=False)

    def one_of(self, options: list[Any]) -> Any:
        """Any of them."""
        return options[int(self.random.integers(len(options)))]

    def free(self, *, below: str | None = None) -> str:
        """A path that leads to nothing, in a group that is there."""
        group = self.one_of(list(self.tree.groups)) if below is None else below
        name = f"{self.one_of(list(NAMES))}{int(self.random.integers(1000))}"
        path = f"{group}/{name}" if group else name
        return self.free(below=below) if path in self.tree.paths() else path

    def some_array(self) -> NDArray[Any]:
        """Elements of a new array."""
        shape = tuple(int(extent) for extent in self.random.integers(1, 12, int(self.random.integers(0, 3))))
        kind = str(self.random.choice(KINDS))
        return some_values(self.random, shape, kind, any_bits=kind != "b1")

    def add(self, file: Any, at: Callable[[str], str] = str) -> dict[str, NDArray[Any]]:
        """New arrays in one call; `at` gives their paths."""
        new = {self.free(below=None if at is str else ""): self.some_array() for _ in range(self.one_of([1, 1, 2]))}
        locals_, dists, halo = self.program.parts(new)
        how: dict[str, Any] = {}
        alone = next(iter(new.values())) if len(new) == 1 else None
        limits: tuple[int | None, ...] | None = None
        if alone is not None and self.random.random() < 0.6:
            how = some_storage(self.random, alone.shape, grows=True)
            if alone.ndim and self.random.random() < 0.6:
                limits = tuple(self.one_of([None, extent, extent + 5]) for extent in alone.shape)
                how["maxshape"] = limits
        attributes = some_attributes(self.random) if alone is not None else {}
        file.write(locals_, dists, halo=halo, attributes=attributes or None, **how)
        for name, values in new.items():
            self.tree.arrays[at(name)] = values
            self.tree.attributes[at(name)] = attributes
            # What is made of missing groups on the way.
            self.see(at(name))
            if limits is not None:
                self.tree.limits[at(name)] = limits
        return new

    def see(self, path: str) -> None:
        """The groups that a path leads through."""
        parts = path.split("/")[:-1]
        for count in range(1, len(parts) + 1):
            self.tree.groups.setdefault("/".join(parts[:count]), {})

    def add_deep(self, file: Any) -> None:
        """An array in groups that are not there."""
        group = self.free()
        values = self.some_array()
        locals_, dists, halo = self.program.parts({"x": values})
        file.write({f"{group}/deep/x": locals_["x"]}, {f"{group}/deep/x": dists["x"]}, halo=halo)
        self.tree.arrays[f"{group}/deep/x"] = values
        self.tree.attributes[f"{group}/deep/x"] = {}
        self.see(f"{group}/deep/x")

    def group(self, file: Any) -> None:
        """A new group, or attributes of one that is there."""
        attributes = some_attributes(self.random)
        known = [path for path in self.tree.groups if path]
        if known and self.random.random() < 0.3:
            path = self.one_of(known)
            file.create_group(path, attributes=attributes, exist_ok=True)
            self.tree.groups[path] = self.tree.groups[path] | attributes
            return
        path = self.free()
        file.create_group(path, attributes=attributes)
        self.tree.groups[path] = attributes

    def edit(self, file: Any) -> None:
        """Attributes of anything."""
        path = self.one_of(["", *self.tree.paths()])
        attrs = file[path].attrs if path in self.tree.arrays else (file.group(path) if path else file).attrs
        held = self.tree.attributes if path in self.tree.arrays else self.tree.groups
        match self.one_of(["set", "set", "remove", "replace"]):
            case "set":
                new = some_attributes(self.random)
                attrs.update(new)
                held[path] = held[path] | new
            case "remove" if held[path]:
                name = self.one_of(list(held[path]))
                del attrs[name]
                held[path] = {key: value for key, value in held[path].items() if key != name}
            case _:
                held[path] = some_attributes(self.random)
                attrs.replace(held[path])
        assert_attributes(dict(attrs), held[path], path)

    def delete(self, file: Any) -> None:
        """Anything."""
        if paths := self.tree.paths():
            path = self.one_of(paths)
            file.delete(path)
            self.tree.drop(path)

    def rename(self, file: Any) -> None:
        """Anything, in its group or into another one."""
        if not (paths := self.tree.paths()):
            return
        path = self.one_of(paths)
        above = [group for group in self.tree.groups if group != path and not group.startswith(path + "/")]
        to = self.free(below=self.one_of([path.rpartition("/")[0], self.one_of(above)]))
        file.rename(path, to)
        self.tree.move(path, to)

    def step(self, file: Any) -> None:
        """A step that is published, or given up."""
        path, attributes = self.free(), some_attributes(self.random)
        within, _, name = path.rpartition("/")
        before = (dict(self.tree.arrays), dict(self.tree.groups), dict(self.tree.attributes), dict(self.tree.limits))
        gives_up = self.random.random() < 0.3
        try:
            with (file.group(within) if within else file).step(name, attributes=attributes) as step:
                for _ in range(self.one_of([0, 1, 2])):
                    self.add(step, lambda inner: f"{path}/{inner}")
                assert not any(known.startswith(path) for known in file)
                if gives_up:
                    raise InterruptedError
                step.attrs["at"] = 1.5
        except InterruptedError:
            self.tree.arrays, self.tree.groups, self.tree.attributes, self.tree.limits = before
            return
        self.tree.groups[path] = {**attributes, "at": 1.5}
        self.tree.steps.append(path)

    def grow(self, file: Any) -> None:
        """An array gets more rows, or another shape."""
        growing = list(self.tree.limits)
        if not growing:
            return
        path = self.one_of(growing)
        old, limits = self.tree.arrays[path], self.tree.limits[path]
        if limits[0] is None and self.random.random() < 0.5:
            values = some_values(self.random, (3, *old.shape[1:]), old.dtype.str, any_bits=old.dtype != bool)
            locals_, dists, halo = self.program.parts({"x": values})
            file.append({path: locals_["x"]}, {path: dists["x"]}, halo=halo)
            self.tree.arrays[path] = np.concatenate([old, values])
            return
        most = [extent + 4 if limit is None else limit for extent, limit in zip(old.shape, limits, strict=True)]
        shape = tuple(int(self.random.integers(low, high + 1)) for low, high in zip(old.shape, most, strict=True))
        file.resize(path, shape)
        new = np.zeros(shape, old.dtype)
        new[tuple(slice(0, extent) for extent in old.shape)] = old
        self.tree.arrays[path] = new

    def update(self, file: Any) -> None:
        """A section of an array."""
        if self.tree.arrays:
            model = Model(None, {}, {})
            path = self.one_of(list(self.tree.arrays))
            model.variables[path] = _Named(path, self.tree.arrays[path])
            self.program.update(file, model)

    def change(self, file: Any, count: int) -> None:
        """Some changes of any kind."""
        kinds = [
            *(self.add, self.add_deep, self.group, self.edit, self.edit, self.delete, self.rename, self.step),
            *(self.grow, self.update, lambda one: self.program.check(one, self.model())),
        ]
        for _ in range(count):
            self.one_of(kinds)(file)

    def model(self) -> Model:
        """What it is as arrays in a file."""
        named = {path: _Named(path, values, self.tree.attributes[path]) for path, values in self.tree.arrays.items()}
        return Model(None, self.tree.groups[""], named)

    def check(self, file: Any) -> None:
        """What we see of it, with as many ranks."""
        self.program.check(file, self.model())
        assert sorted(file.groups()) == sorted(path for path in self.tree.groups if path and "/" not in path)
        for path, attributes in self.tree.groups.items():
            group = file.group(path) if path else file
            assert_attributes(dict(group.attrs), attributes, path)
            inside = [step.rpartition("/") for step in self.tree.steps]
            assert sorted(group.steps) == sorted(name for above, _, name in inside if above == path)


@dataclass
class _Named:
    """An array as `netcdf_cases` has it."""

    name: str
    values: NDArray[Any]
    attributes: dict[str, Any] = field(default_factory=dict)


def check_by_h5py(path: Path, tree: Tree) -> None:
    """What h5py reads."""
    with h5py.File(path) as data:
        found: dict[str, bool] = {}
        data.visititems(lambda name, one: found.update({name: isinstance(one, h5py.Dataset)}))
        assert sorted(found) == sorted(tree.paths())
        for name, values in tree.arrays.items():
            same(native(data[name][...]), values, f"h5py: {name}")
            assert_attributes(dict(data[name].attrs), tree.attributes[name], name)
        for name, attributes in tree.groups.items():
            attrs = {key: value for key, value in data[name or "/"].attrs.items() if key != "hyperslab_step"}
            assert_attributes(attrs, attributes, name)


def change_by_h5py(path: Path, random: Random, tree: Tree) -> None:
    """Another program changes the file in its turn."""
    with h5py.File(path, "r+") as data:
        for number in range(int(random.integers(1, 30))):
            group = list(tree.groups)[int(random.integers(len(tree.groups)))]
            name = f"h{number} {int(random.integers(1 << 30))}"
            whole = f"{group}/{name}" if group else name
            data[whole] = np.arange(number)
            tree.arrays[whole], tree.attributes[whole] = np.arange(number), {}
            data[group or "/"].attrs[name] = number
            tree.groups[group] = tree.groups[group] | {name: number}


def new_file(path: Path, random: Random, tree: Tree) -> None:
    """A file of any form, with links that are not hard, and many members and attributes, which lie elsewhere then."""
    libver = LIBVERS[int(random.integers(len(LIBVERS)))]
    with h5py.File(path, "w", libver=libver, track_order=bool(random.random() < 0.5)) as data:
        for name in ("links", "links/large"):
            tree.groups[name] = {}
            data.create_group(name, track_order=bool(random.random() < 0.5))
        for number in range(int(random.integers(0, 20))):
            data["links"][f"soft{number}"] = h5py.SoftLink("/links")
        for number in range(int(random.integers(0, 20))):
            name = f"links/large/{number}"
            data[name], tree.arrays[name], tree.attributes[name] = np.arange(number), np.arange(number), {}
            data["links/large"].attrs[f"n{number}"] = number
            tree.groups["links/large"][f"n{number}"] = number


def edits(comm: Any, path: Path, random: Random) -> None:
    """A file that we make or others, and that is changed in turns."""
    tree, ours = Tree(), bool(random.random() < 0.5)
    editor = Editor(comm, random, tree)
    if ours:
        with hs.open(path, "w", comm=comm, durable=False) as file:
            for _ in range(int(random.integers(0, 4))):
                editor.one_of([editor.add, editor.add_deep, editor.group, editor.edit, editor.step])(file)
    else:
        # Every rank draws the same numbers; rank 0 makes the file.
        with LIBRARY:
            new_file(path if comm.rank == 0 else path.with_name(f"{comm.rank}-{path.name}"), random, tree)
    comm.barrier()
    for _ in range(2):
        with hs.open(path, "r+", comm=comm, durable=False) as file:
            editor.change(file, int(random.integers(1, 8)))
            editor.check(file)
        with hs.open(path, comm=comm) as file:
            editor.check(file)
        if comm.rank == 0:
            with LIBRARY:
                check_by_h5py(path, tree)
        own = path if comm.rank == 0 else path.with_name(f"{comm.rank}-{path.name}")
        with LIBRARY:
            if comm.rank:
                with h5py.File(own, "w") as data:
                    for group in tree.groups:
                        data.require_group(group or "/")
            change_by_h5py(own, random, tree)
        comm.barrier()
    with hs.open(path, comm=comm) as file:
        editor.check(file)
