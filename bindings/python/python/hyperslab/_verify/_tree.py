"""The groups and arrays of a store: walks its directories and reads their metadata."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hyperslab._findings import Finding, Severity
from hyperslab._printing import legible
from hyperslab._verify import _leftovers
from hyperslab._verify._consolidated import stale
from hyperslab._verify._files import Damaged, Denied, content, follow, kind_of, link_text, ours
from hyperslab._verify._library import Library, Problem
from hyperslab._verify._members import Block, parsed
from hyperslab.errors import InvalidError

_METADATA = "zarr.json"
#: Metadata of Zarr v2.
_V2 = frozenset((".zarray", ".zgroup", ".zattrs", ".zmetadata"))
#: What files of chunks are called; in directories of chunks they lie below one that is called ``c``.
_CHUNK = re.compile(r"c(?:\.[0-9]+)+")


@dataclass(frozen=True)
class ArrayNode:
    """An array that was found: its name, its directory and the text of its metadata."""

    name: str
    path: Path
    text: bytes

    @property
    def metadata(self) -> dict[str, Any]:
        """What they say; as text they take less room."""
        return parsed(self.text)[0]


@dataclass
class Tree:
    """What a walk through a store has found."""

    groups: int = 0
    arrays: list[ArrayNode] = field(default_factory=list)
    #: Texts of the metadata of all nodes, by name.
    nodes: dict[str, bytes] = field(default_factory=dict)
    #: Nodes whose metadata could not be read.
    unread: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class _Folder:
    name: str
    path: Path
    #: Whether a directory without metadata is worth a finding here.
    noted: bool = True


def walk(root: Path, library: Library, note: Callable[[Finding], None]) -> Tree:
    """Find all nodes below a directory.

    Raises
    ------
    InvalidError
        If it is no store at all.
    """
    return _Walk(root, library, note).run()


class _Walk:
    def __init__(self, root: Path, library: Library, note: Callable[[Finding], None]) -> None:
        self._root = root
        self._library = library
        self._note = note
        self._tree = Tree()
        #: Directories that were visited, since links may lead back.
        self._seen: set[tuple[int, int]] = set()
        #: Groups with consolidated metadata, in whose path they are told.
        self._consolidated: list[tuple[str, Path, Block]] = []

    def run(self) -> Tree:
        left = [_Folder("", self._root)]
        while left:
            left += reversed(self._visit(left.pop()))
        for name, path, block in self._consolidated:
            for node, text in stale(block, name, self._tree.nodes, self._tree.unread):
                whose = f"'{node}' {text}" if node != name else text
                self._note(
                    Finding("warning", "consolidated", str(path), f"consolidated metadata are stale: {whose}", node)
                )
        return self._tree

    def _visit(self, folder: _Folder) -> list[_Folder]:
        """Look at a directory; returns those below it that remain to be looked at."""
        try:
            status = follow(folder.path)
        except FileNotFoundError:
            return []
        except (Damaged, Denied) as error:
            self._denied(folder, error)
            return []
        identity = (status.st_dev, status.st_ino)
        if identity in self._seen:
            self._note(Finding("warning", "link", str(folder.path), "leads to a directory that was checked already"))
            return []
        self._seen.add(identity)
        path = folder.path / _METADATA
        try:
            text = content(path)
            metadata, block = parsed(text)
        except FileNotFoundError:
            return self._without_metadata(folder)
        except (Damaged, Denied) as error:
            self._unread(folder, path, error)
            return self._below(folder)
        # Of a group that tells of others, what it says of itself.
        text = text if block is None else json.dumps(metadata).encode()
        self._tree.nodes[folder.name] = text
        if metadata.get("node_type") == "array":
            self._tree.arrays.append(ArrayNode(folder.name, folder.path, text))
            return []
        try:
            self._library.node(folder.path).check_group()
        except Problem as problem:
            self._note(Finding(problem.severity, problem.kind, str(path), problem.text, folder.name))
        self._tree.groups += 1
        if block is not None:
            self._consolidated.append((folder.name, path, block))
        return self._below(folder)

    def _unread(self, folder: _Folder, path: Path, error: Damaged | Denied) -> None:
        self._tree.unread.add(folder.name)
        if isinstance(error, Denied):
            self._note(Finding("unchecked", "permission", str(path), str(error), folder.name))
        else:
            self._note(Finding("damage", "metadata", str(path), str(error), folder.name))

    def _without_metadata(self, folder: _Folder) -> list[_Folder]:
        """What a directory is that is no node."""
        try:
            with os.scandir(folder.path) as entries:
                names = {entry.name: entry.is_dir() for entry in entries}
        except OSError as error:
            self._denied(folder, error)
            return []
        if _V2 & names.keys():
            self._note(Finding("unchecked", "unsupported", str(folder.path), "Zarr v2, of which nothing is checked"))
            return []
        self._tree.unread.add(folder.name)
        chunks = names.get("c", False) or any(map(_CHUNK.fullmatch, names))
        began = not folder.name and (".hyperslab" in names or any(_leftovers.beside(self._root)))
        if chunks or began:
            what = "there are chunks" if chunks else "a store was begun here"
            self._note(Finding("damage", "metadata", str(folder.path), f"{what}, but no {_METADATA}", folder.name))
            return [] if chunks else self._below(folder)
        if not folder.name:
            nodes = sorted(name for name in names if (folder.path / name / _METADATA).exists())
            hint = (
                f"there are some below it: {', '.join(map(legible, nodes[:4]))}"
                if nodes
                else "name a store, a group or an array"
            )
            raise InvalidError(
                f"'{legible(str(folder.path))}' is no Zarr v3 store: it has no {_METADATA}\n  hint: {hint}"
            )
        if folder.noted:
            self._note(Finding("warning", "foreign", str(folder.path), f"a directory without {_METADATA}"))
        return self._below(_Folder(folder.name, folder.path, noted=False))

    def _below(self, folder: _Folder) -> list[_Folder]:
        """Look at what a group holds; returns its directories."""
        found = []
        hidden: list[Path] = []
        try:
            with os.scandir(folder.path) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self._denied(folder, error)
            return []
        for entry in listed:
            path = folder.path / entry.name
            if ours(entry.name) is not None:
                hidden.append(path)
                continue
            try:
                status = follow(path)
            except FileNotFoundError:
                continue
            except (Damaged, Denied) as error:
                if entry.name != _METADATA:
                    severity, kind = _of_foreign(error)
                    self._note(Finding(severity, kind, str(path), str(error)))
                continue
            if stat.S_ISDIR(status.st_mode) and not entry.name.startswith("."):
                if entry.is_symlink():
                    self._note(Finding("warning", "link", str(path), link_text(path)))
                name = f"{folder.name}/{entry.name}" if folder.name else entry.name
                found.append(_Folder(name, path, folder.noted))
            elif not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode) and entry.name != _METADATA:
                self._note(Finding("warning", "foreign", str(path), kind_of(status.st_mode)))
        for finding in _leftovers.findings(hidden):
            self._note(finding)
        return found

    def _denied(self, folder: _Folder, error: Exception) -> None:
        """Tell of a directory that cannot be listed, unless its metadata could not be read either."""
        if folder.name in self._tree.unread:
            return
        self._tree.unread.add(folder.name)
        self._note(unlistable(str(folder.path), error, folder.name))


def changed(array: ArrayNode) -> ArrayNode | None:
    """The array as it is now, if its metadata have changed since they were read."""
    try:
        text = content(array.path / _METADATA)
        now, _ = parsed(text)
    except (OSError, Damaged, Denied):
        return None
    return None if now == array.metadata else ArrayNode(array.name, array.path, text)


def unlistable(path: str, error: Exception, array: str | None = None) -> Finding:
    """What is said of a directory that cannot be listed."""
    text = (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)
    if isinstance(error, (PermissionError, Denied)):
        return Finding("unchecked", "permission", path, text, array)
    return Finding("damage", "unreadable", path, text, array)


def _of_foreign(error: Damaged | Denied) -> tuple[Severity, str]:
    return ("unchecked", "permission") if isinstance(error, Denied) else ("warning", "foreign")
