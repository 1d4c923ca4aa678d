"""Consolidated metadata of groups, compared with the metadata of each node."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from hyperslab._verify._grid import named
from hyperslab._verify._members import CONSOLIDATED, Block, parsed

#: Members that say what an array or group is, with what their absence means.
_DEFAULTS: dict[str, Any] = {"attributes": {}, "dimension_names": None, "storage_transformers": []}
_SEPARATORS = {"default": "/", "v2": "."}


def stale(block: Block, group: str, nodes: Mapping[str, bytes], skipped: set[str]) -> Iterator[tuple[str, str]]:
    """What a block of consolidated metadata says that is not so: names of nodes, and what differs.

    Parameters
    ----------
    block : Block
        The consolidated metadata of a group.
    group : str
        Name of the group.
    nodes : mapping
        Texts of the metadata of all nodes of the store, by name.
    skipped : set of str
        Names of nodes whose metadata could not be read, of which nothing is said.
    """
    listed = block.nodes()
    if listed is None:
        yield group, "the block of consolidated metadata lists no nodes"
        return
    prefix = f"{group}/" if group else ""
    names, found = set(), []
    for name, told in listed:
        node = prefix + name
        names.add(name)
        if node in skipped:
            continue
        if node not in nodes:
            found.append((node, "is listed, but not there"))
        elif differs := differences(told, parsed(nodes[node])[0]):
            found.append((node, f"differs in {', '.join(differs)}"))
    yield from sorted(found)
    for node in sorted(nodes):
        if node.startswith(prefix) and node != group and node.removeprefix(prefix) not in names:
            yield node, "is there, but not listed"


def differences(told: Any, actual: Mapping[str, Any]) -> list[str]:
    """Names of the members in which two metadata of a node differ, but for how the same is written."""
    if not isinstance(told, dict):
        return ["everything"]
    ours, theirs = _normal(told), _normal(actual)
    try:
        return sorted(key for key in ours.keys() | theirs.keys() if not _same(key, ours.get(key), theirs.get(key)))
    except RecursionError:
        return ["what is nested too deeply to compare"]


def _normal(metadata: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in metadata.items() if key != CONSOLIDATED}
    for key, default in _DEFAULTS.items():
        if found.get(key, default) == default:
            found.pop(key, None)
    names = found.get("dimension_names")
    if isinstance(names, list) and all(name is None for name in names):
        del found["dimension_names"]
    return found


def _same(key: str, ours: Any, theirs: Any) -> bool:
    if key == "codecs" and isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return all(map(_same_codec, ours, theirs))
    if key == "chunk_key_encoding":
        ours, theirs = _encoding(ours), _encoding(theirs)
    elif key in ("data_type", "chunk_grid"):
        ours, theirs = _extension(ours), _extension(theirs)
    return _canonical(ours) == _canonical(theirs)


def _same_codec(ours: Any, theirs: Any) -> bool:
    """Whether two codecs are the same; what only one of them tells is a default that the other left out."""
    (name, left), (other, right) = named(ours), named(theirs)
    return name == other and all(_canonical(left[key]) == _canonical(right[key]) for key in left.keys() & right.keys())


def _extension(value: Any) -> Any:
    name, configuration = named(value)
    return [name, configuration] if name else value


def _encoding(value: Any) -> Any:
    name, configuration = named(value)
    return [name, configuration.get("separator", _SEPARATORS.get(name))]


def _canonical(value: Any) -> str:
    """JSON in one form: sorted, 1.0 as 1, and no bare NaN."""
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, float):
        return value
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return int(value) if value.is_integer() else value
