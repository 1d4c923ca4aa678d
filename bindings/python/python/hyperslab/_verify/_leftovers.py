"""What was begun and did not end: hidden directories and files of this library, and markers of updates."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hyperslab._findings import Finding
from hyperslab._verify._files import Damaged, Denied, content, kind_of, ours

#: Most bytes of an owner's record.
RECORD_BYTES_MAX = 64 << 10
#: Files of a hidden directory that are looked at for the owner's record.
RECORD_FILES_MAX = 64
#: Names that are shown of what is not published.
NAMES_MAX = 8
#: Characters of a note that are shown.
NOTE_MAX = 200


def beside(path: Path) -> Iterator[Finding]:
    """What lies beside a store or file: hidden directories, temporary files, markers."""
    seen = set()
    # Programs that followed a link to it looked at the other end.
    for place in (path.absolute(), path.resolve()):
        if not place.name or place in seen:
            continue
        seen.add(place)
        try:
            with os.scandir(place.parent) as entries:
                names = sorted(entry.name for entry in entries if entry.name.startswith(f".{place.name}.hyperslab-"))
        except OSError:
            continue
        yield from findings([place.with_name(name) for name in names])


def findings(paths: Sequence[Path], array: str | None = None) -> Iterator[Finding]:
    """What the things of this library say that lie in one directory; nothing of those that are gone meanwhile."""
    hidden = [path for path in paths if ours(path.name) != "update"]
    for path in paths:
        if ours(path.name) == "update":
            yield from _update(path, array)
    containers = [path for path in hidden if _is_container(path)]
    yield from _unpublished([path for path in hidden if path not in containers], array)
    for path in containers:
        inside = _listed(path)
        if not inside:
            what = "an empty hidden directory" if inside is not None else "a hidden directory that cannot be listed"
            yield Finding("warning", "leftover", str(path), what, array)
        yield from _unpublished([path / name for name in inside or ()], array)


def _is_container(path: Path) -> bool:
    """Whether a directory holds those of several owners."""
    return (path.name == ".hyperslab" or path.name.endswith("-partial")) and not path.is_symlink() and path.is_dir()


def _unpublished(paths: Sequence[Path], array: str | None) -> Iterator[Finding]:
    """What was not published, in one directory, where there may be a list of its owners."""
    listed = {path: records for path in paths if (records := _records(path))}
    known = [record for records in listed.values() for record in records]
    others = [path for path in paths if path not in listed]
    for path in others:
        try:
            mode = path.lstat().st_mode
        except OSError:
            continue
        inside = (_listed(path) or []) if stat.S_ISDIR(mode) else []
        own = {name: records for name in inside[:RECORD_FILES_MAX] if (records := _records(path / name))}
        whose = [record for records in own.values() for record in records]
        owner = _owner([*whose, *known], path.name) or next(iter(whose), None)
        held = [name for name in inside if name not in own]
        text = f"{kind_of(mode)} that is not published: a program left it, or is still at work"
        if held:
            text += f"; in it {', '.join(held[:NAMES_MAX])}{' and more' if len(held) > NAMES_MAX else ''}"
        yield Finding("warning", "leftover", str(path), text, array, owner=owner)
    if not others:
        for path, records in listed.items():
            text = "a program is changing this, or ended without tidying up"
            yield Finding("warning", "leftover", str(path), text, array, owner=records[-1])


def _owner(records: Sequence[dict[str, Any]], name: str) -> dict[str, Any] | None:
    """The record of the owner whose token is in a name."""
    for record in records:
        token = record.get("token")
        if isinstance(token, str) and token and token in name:
            return record
    return None


def _update(path: Path, array: str | None) -> Iterator[Finding]:
    text = "an update in place began and has not ended, so elements may be old or new"
    try:
        note = content(path, RECORD_BYTES_MAX)
    except FileNotFoundError:
        return
    except (Damaged, Denied) as error:
        yield Finding("warning", "update", str(path), f"{text}; its marker: {error}", array)
        return
    records = _parsed(note)
    owner = records[-1] if records else None
    if owner is not None and all(record.get("readers") == "whole" for record in records):
        text = "a program is changing this, or ended in the middle; readers see nothing of it"
        yield Finding("warning", "leftover", str(path), text, array, owner=owner)
        return
    if owner is not None and owner.get("owner", ...) is None:
        # It was left to whoever writes the array next.
        owner = None
    elif owner is None and note.strip():
        text = f"{text}: {' '.join(note.decode('utf-8', 'replace').split())[:NOTE_MAX]}"
    yield Finding("warning", "update", str(path), text, array, owner=owner)


def _listed(path: Path) -> list[str] | None:
    """Names in a directory; None if it cannot be listed."""
    try:
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries)
    except OSError:
        return None


def _records(path: Path) -> list[dict[str, Any]]:
    """The records of owners in a file, if it holds any."""
    try:
        status = path.lstat()
        # What is not published may hold metadata of Zarr, which are JSON, too.
        if not stat.S_ISREG(status.st_mode) or status.st_size > RECORD_BYTES_MAX or path.name == "zarr.json":
            return []
        return _parsed(content(path, RECORD_BYTES_MAX))
    except (OSError, Damaged, Denied):
        return []


def _parsed(text: bytes) -> list[dict[str, Any]]:
    """The JSON objects in a text: one, or one on each line."""
    whole = _object(text)
    found = [whole] if whole is not None else [_object(line) for line in text.splitlines()]
    return [each for each in found if each is not None]


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
