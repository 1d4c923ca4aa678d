"""Our side of files that others and we change in turns: how we carry a change out, and all that we read."""

from __future__ import annotations

from typing import Any

import hyperslab as hs
import numpy as np
from numpy.typing import NDArray

import turns_changes as to
from attribute_cases import told
from global_arrays import Spread, select
from random_cases import Random, as_user_says, some_section, some_spread
from turns_model import Array, Attributes, Tree, chance, native, one_of, same


def parts(random: Random, values: NDArray[Any], comm: Any) -> tuple[NDArray[Any], hs.Distribution]:
    """This rank's part of an array that all ranks hold in some way, which they draw alike."""
    spread = some_spread(random, values.shape, size_of(comm))
    return spread.part(values, rank_of(comm)), spread.distribution()


def size_of(comm: Any) -> int:
    """Number of ranks."""
    return 1 if comm is None else int(comm.size)


def rank_of(comm: Any) -> int:
    """This rank."""
    return 0 if comm is None else int(comm.rank)


def node_of(file: Any, path: str, tree: Tree) -> Any:
    """The array or group of a path, as we have it."""
    if isinstance(tree.find(path), Array):
        return file[path]
    return file.group(path) if path else file


def carry_out(file: Any, change: to.Change, tree: Tree, random: Random, comm: Any) -> None:
    """Make a change, on all ranks alike."""
    match change:
        case to.New():
            make(file, change, random, comm)
        case to.NewGroup():
            file.create_group(change.path, attributes=change.attributes)
        case to.Write():
            section: Any = as_user_says(random, change.section)
            array, dist = parts(random, change.values, comm)
            file.write(change.path, array, dist, section=section)
        case to.Append():
            array, dist = parts(random, change.values, comm)
            file.append(change.path, array, dist, axis=change.axis)
        case to.Resize():
            file.resize(change.path, change.shape)
        case to.SetAttributes():
            node_of(file, change.path, tree).attrs.update(change.values)
        case to.DropAttribute():
            del node_of(file, change.path, tree).attrs[change.name]
        case to.Rename():
            file.rename(change.old, change.new)
        case to.Delete():
            file.delete(change.path)
        case _:
            raise NotImplementedError(change)


def make(file: Any, change: to.New, random: Random, comm: Any) -> None:
    """Make a new array."""
    array = change.array
    options: dict[str, Any] = dict(array.how)
    if array.dims is not None:
        options["dimension_names"] = list(array.dims)
    if array.says_fill:
        options["fill_value"] = array.fill
    given = {name: value for name, value in array.attributes.items() if name != "_FillValue"}
    if given:
        options["attributes"] = given
    if change.written:
        mine, dist = parts(random, array.values.astype(array.stored), comm)
        file.write(change.path, mine, dist, **options)
    else:
        file.create_array(change.path, array.values.shape, array.stored, **options)


def check(file: Any, tree: Tree, random: Random, comm: Any, *, deep: bool) -> None:
    """Names, types, shapes, dimensions, attributes and elements, whole and in sections, as we read them."""
    arrays, groups = tree.arrays(), tree.groups()
    check_names(file, tree, "", deep=deep)
    for path, group in groups.items():
        found = file.group(path) if path else file
        check_attributes(dict(found.attrs), group.attributes, f"ours: group '{path}'")
        if path:
            check_names(found, tree, path, deep=deep)
    for path, array in arrays.items():
        check_array(file, path, array)
        check_elements(file, path, array.values, random, comm)


def check_names(group: Any, tree: Tree, within: str, *, deep: bool) -> None:
    """Which groups and arrays lie in a group; a group of a file lists the arrays in all groups below, too."""
    before = f"{within}/" if within else ""
    below = [path.removeprefix(before) for path in tree.groups() if path.startswith(before) and path != within]
    direct = sorted(path for path in below if "/" not in path)
    assert sorted(group.groups()) == direct, f"ours: groups in '{within}': {sorted(group.groups())}, expected {direct}"
    names = sorted(path.removeprefix(before) for path in tree.arrays() if path.startswith(before))
    if not deep:
        names = [name for name in names if "/" not in name]
    assert sorted(group) == names, f"ours: arrays in '{within}': {sorted(group)}, expected {names}"


def check_array(file: Any, path: str, array: Array) -> None:
    """What an array is, but for its elements."""
    found, what = file[path], f"ours: '{path}'"
    assert native(np.empty(0, found.dtype)).dtype == array.values.dtype, f"{what}: {found.dtype}, {array.values.dtype}"
    assert found.shape == array.values.shape, f"{what}: shape {found.shape}, expected {array.values.shape}"
    dims = found.dimension_names or None
    assert dims == (array.dims or None), f"{what}: dimensions {dims}, expected {array.dims}"
    check_attributes(dict(found.attrs), array.attributes, what)
    if array.says_fill:
        fill = np.asarray(found.fill_value, array.values.dtype)
        same(fill, np.asarray(array.fill, array.values.dtype), f"{what}: fill value")


def check_attributes(found: Attributes, expected: Attributes, what: str) -> None:
    """Names of attributes, and their values with type and bits."""
    assert sorted(found) == sorted(expected), f"{what}: attributes {sorted(found)}, expected {sorted(expected)}"
    for name, value in expected.items():
        assert told(found[name]) == told(value), f"{what}: attribute {name!r} is {found[name]!r}, expected {value!r}"


def check_elements(file: Any, path: str, values: NDArray[Any], random: Random, comm: Any) -> None:
    """All of it or a section, spread over the ranks, and a part that this rank reads alone."""
    section, expected = None, values
    if chance(random, 0.5):
        quads = some_section(random, values.shape)
        section, expected = as_user_says(random, quads), select(values, quads)
    spread: Spread = some_spread(random, expected.shape, size_of(comm))
    found = file.read(path, spread.distribution(), section=section)
    if spread.holds(rank_of(comm)):
        same(found, spread.part(expected, rank_of(comm)), f"ours: '{path}' at {section}, held as {spread}")
    if chance(random, 0.3):
        key = tuple(slice(int(random.integers(0, extent + 1)), None) for extent in values.shape)
        # One element has a type that does not say how long a text may be.
        alone = file[path][key] if values.ndim else np.asarray(file[path][()], values.dtype)
        same(alone, values[key] if values.ndim else values, f"ours: '{path}' alone at {key}")


def some_ranks(random: Random) -> int:
    """One, three or four."""
    return int(one_of(random, [1, 3, 4]))
