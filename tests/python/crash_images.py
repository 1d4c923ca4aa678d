"""What a file system may hold after a crash: changes and syncs of an operation are recorded, and images made of them.

A crash of processes leaves a prefix of the changes. A loss of power leaves what was synced, and of the rest anything:
each name that was made, renamed or removed is there or not, each write too, or a part of its sectors. That is more than
file systems with a journal do, which keep names in order; but nobody promises that they do (POSIX, fsync).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

Random = np.random.Generator

#: A write is whole within a sector [B].
SECTOR = 512
#: Of so many changes that were not synced every part may be left; of more, so many parts are tried.
EXHAUSTIVE, BEYOND = 5, 12
#: Calls that change something, or make changes durable.
CALLS = (
    *("open", "openat", "creat", "mkdir", "mkdirat", "unlink", "unlinkat", "rmdir"),
    *(
        "rename",
        "renameat",
        "renameat2",
        "link",
        "linkat",
        "symlink",
        "symlinkat",
        "ftruncate",
        "truncate",
        "fallocate",
    ),
    *("write", "pwrite64", "writev", "pwritev", "pwritev2", "copy_file_range", "sendfile"),
    *("fsync", "fdatasync", "syncfs", "close", "lseek", "access", "faccessat", "faccessat2", "newfstatat", "statx"),
)
#: Those that make, move or remove names begin so.
NAMING = ("mkdir", "unlink", "rmdir", "rename", "link", "symlink")
#: `access` of these paths begins and ends what is recorded.
BEGIN, END = "/recording-begins", "/recording-ends"
ARGUMENT = re.compile(r'\s*(?:"((?:\\x[0-9a-f]{2})*)"|(-?\d+|AT_FDCWD)<((?:\\x[0-9a-f]{2})*)>|([^,\[\]{}"]+))')


# ---- an image -------------------------------------------------------------------------------------------------------


@dataclass
class Node:
    """A directory with its entries, or a file with its bytes, or a symbolic link with its target."""

    entries: dict[str, int] | None = None
    content: bytearray = field(default_factory=bytearray)
    target: str | None = None


@dataclass
class Image:
    """A tree of files; node 0 is the root. Nodes that nothing leads to may become visible later."""

    nodes: dict[int, Node]

    @classmethod
    def of(cls, directory: Path) -> Image:
        """What is in a directory; names of one file are one node."""
        image, known = cls({0: Node({})}), dict[tuple[int, int], int]()

        def enter(path: Path, number: int) -> None:
            for inner in sorted(path.iterdir()):
                facts = inner.lstat()
                known.setdefault((facts.st_dev, facts.st_ino), len(image.nodes))
                child = known[facts.st_dev, facts.st_ino]
                entries = image.nodes[number].entries
                assert entries is not None
                entries[inner.name] = child
                if child in image.nodes:
                    continue
                if inner.is_symlink():
                    image.nodes[child] = Node(target=str(inner.readlink()))
                elif inner.is_dir():
                    image.nodes[child] = Node({})
                    enter(inner, child)
                else:
                    image.nodes[child] = Node(content=bytearray(inner.read_bytes()))

        enter(directory, 0)
        return image

    def make(self, directory: Path) -> None:
        """Put it into a new directory."""
        made: dict[int, Path] = {}

        def put(number: int, path: Path) -> None:
            node = self.nodes[number]
            if node.entries is not None:
                path.mkdir()
                for name, child in node.entries.items():
                    put(child, path / name)
            elif node.target is not None:
                path.symlink_to(node.target)
            elif number in made:
                path.hardlink_to(made[number])
            else:
                path.write_bytes(node.content)
                made[number] = path

        put(0, directory)

    def names_of(self, nodes: tuple[int, ...] | None) -> str:
        """Where nodes lie, in words."""
        if nodes is None:
            return "everything"
        found = dict.fromkeys(nodes, "what is gone") | {0: "the directory"}

        def look(number: int, path: str) -> None:
            found[number] = path or found[number]
            for name, child in (self.nodes[number].entries or {}).items():
                look(child, f"{path}/{name}")

        look(0, "")
        return ", ".join(found[number] for number in nodes)

    def key(self) -> int:
        """Equal for equal trees."""

        def told(number: int) -> object:
            node = self.nodes[number]
            if node.entries is not None:
                return tuple((name, told(child)) for name, child in sorted(node.entries.items()))
            return (number, bytes(node.content), node.target)

        return hash(told(0))


# ---- what happens ---------------------------------------------------------------------------------------------------


@dataclass
class Change:
    """A change, which is there as a whole or not, but for parts of what is written."""

    #: Syncing any of these makes it durable.
    of: tuple[int, ...]
    #: Entries of directories: directory, name, and the node, or nothing.
    entries: list[tuple[int, str, int | None]] = field(default_factory=list)
    #: What is written to a file, and where; or how long it becomes.
    file: int | None = None
    at: int = 0
    content: bytes = b""
    length: int | None = None

    def carry_out(self, image: Image, keep: slice | None = None) -> None:
        """Change an image; `keep` is the part of what is written that got as far."""
        for directory, name, child in self.entries:
            entries = image.nodes[directory].entries
            assert entries is not None
            if child is None:
                entries.pop(name, None)
            else:
                entries[name] = child
        if self.file is None:
            return
        content = image.nodes[self.file].content
        if self.length is not None:
            del content[self.length :]
            content.extend(bytes(self.length - len(content)))
            return
        first, last, _ = (keep or slice(None)).indices(len(self.content))
        if first < last:
            content.extend(bytes(max(0, self.at + last - len(content))))
            content[self.at + first : self.at + last] = self.content[first:last]

    def torn(self, random: Random) -> slice:
        """A part that ends between two sectors, or begins there."""
        cuts = [cut for cut in range(len(self.content)) if (self.at + cut) % SECTOR == 0] or [0]
        cut = int(random.choice(cuts))
        return slice(0, cut) if random.random() < 0.5 else slice(cut, None)


@dataclass
class Sync:
    """A sync of some nodes, or of all."""

    of: tuple[int, ...] | None


Event = Change | Sync


# ---- recording ------------------------------------------------------------------------------------------------------


class Recorder:
    """Reads a trace of strace (-f -y -xx) as events in a directory, of which it keeps an image up to date."""

    def __init__(self, directory: Path) -> None:
        self.root = str(directory.resolve())
        self.first = Image.of(directory)
        self.image = deepcopy(self.first)
        self.events: list[Event] = []
        #: What is opened for writing, made, renamed or removed: names in the directory, and paths elsewhere.
        self.touched: set[str] = set()
        self.outside: set[str] = set()
        self._open: dict[int, int] = {}
        self._places: dict[int, int] = {}

    # -- names

    def _walk(self, path: str) -> int | None:
        """The node at an absolute path; nothing if that is not there, or elsewhere."""
        if path != self.root and not path.startswith(self.root + "/"):
            return None
        node = 0
        for name in path[len(self.root) :].split("/"):
            if name in ("", "."):
                continue
            entries = self.image.nodes[node].entries
            if entries is None or name not in entries:
                return None
            node = entries[name]
        return node

    def _place(self, at: str | None, path: str) -> tuple[int, str] | None:
        """The directory and the name that a call means."""
        above, _, name = self._whole(at, path).rpartition("/")
        directory = self._walk(above)
        return None if directory is None or not name else (directory, name)

    def _whole(self, at: str | None, path: str) -> str:
        return (path if path.startswith("/") else f"{at}/{path}").rstrip("/")

    def _touch(self, at: str | None, path: str) -> None:
        whole = self._whole(at, path)
        if whole.startswith(self.root + "/"):
            self.touched.add(whole[len(self.root) + 1 :].partition("/")[0])
        else:
            self.outside.add(whole)

    def _at(self, place: tuple[int, str]) -> int | None:
        entries = self.image.nodes[place[0]].entries
        return None if entries is None else entries.get(place[1])

    def _node_of(self, descriptor: tuple[int, str]) -> int | None:
        return self._open.get(descriptor[0], self._walk(descriptor[1]))

    def _note(self, change: Change) -> None:
        change.carry_out(self.image)
        self.events.append(change)

    def _new(self, node: Node, place: tuple[int, str]) -> int:
        number = len(self.image.nodes)
        # What nothing leads to is there from the start, and empty.
        self.image.nodes[number] = node
        self.first.nodes[number] = deepcopy(node)
        self._note(Change((place[0],), [(*place, number)]))
        return number

    # -- calls

    def read(self, trace: Path) -> None:
        """All of a trace."""
        waiting: dict[str, str] = {}
        on = False
        for line in trace.read_text("latin-1").splitlines():
            thread, _, text = line.partition(" ")
            text = text.strip()
            if text.endswith("<unfinished ...>"):
                waiting[thread] = text.removesuffix("<unfinished ...>")
                continue
            if resumed := re.match(r"<\.\.\. \w+ resumed>", text):
                text = waiting.pop(thread, "") + text[resumed.end() :]
            found = re.match(r"(\w+)\((.*)\)\s+= (-?\d+)", text)
            if found is None:
                continue
            name, arguments, result = found[1], list(_arguments(found[2])), int(found[3])
            paths = [argument for argument in arguments if isinstance(argument, str)]
            on = (on or BEGIN in paths) and END not in paths
            if on and result >= 0:
                self._call(name, arguments, result)

    def _call(self, name: str, arguments: list[Argument], result: int) -> None:
        descriptors = [one for one in arguments if isinstance(one, tuple)]
        paths = [one for one in arguments if isinstance(one, str)]
        rest = [one.text for one in arguments if isinstance(one, Plain)]
        at = descriptors[0][1] if descriptors else None
        to = descriptors[1][1] if len(descriptors) > 1 else at
        opens = name in ("openat", "open", "creat")
        if (opens and re.search("O_WRONLY|O_RDWR|O_CREAT", " ".join(rest))) or name.startswith(NAMING):
            for path, base in zip(paths[:2], (at, to), strict=False):
                self._touch(base, path)
        if opens:
            self._opened(self._place(at, paths[0]), rest[0] if rest else "", result)
        elif name in ("mkdir", "mkdirat"):
            if place := self._place(at, paths[0]):
                self._new(Node({}), place)
        elif name in ("unlink", "unlinkat", "rmdir"):
            if (place := self._place(at, paths[0])) and self._at(place) is not None:
                self._note(Change((place[0],), [(*place, None)]))
        elif name in ("rename", "renameat", "renameat2"):
            self._renamed(self._place(at, paths[0]), self._place(to, paths[1]), " ".join(rest))
        elif name in ("link", "linkat"):
            self._linked(at, paths, descriptors)
        elif name in ("symlink", "symlinkat"):
            if place := self._place(at, paths[1]):
                self._new(Node(target=paths[0]), place)
        elif name in ("ftruncate", "fallocate"):
            self._lengthened(name, descriptors[0], rest)
        elif name == "lseek":
            self._places[descriptors[0][0]] = result
        elif name == "close":
            self._open.pop(descriptors[0][0], None)
        elif name in ("fsync", "fdatasync"):
            if (node := self._node_of(descriptors[0])) is not None:
                self.events.append(Sync((node,)))
        elif name == "syncfs":
            self.events.append(Sync(None))
        elif name in ("write", "writev", "pwrite64", "pwritev", "pwritev2", "copy_file_range", "sendfile"):
            self._written(name, arguments, result)

    def _opened(self, place: tuple[int, str] | None, flags: str, descriptor: int) -> None:
        self._open.pop(descriptor, None)
        self._places[descriptor] = 0
        if place is None:
            return
        node = self._at(place)
        if node is None and "O_CREAT" in flags:
            node = self._new(Node(), place)
        elif node is not None and "O_TRUNC" in flags and self.image.nodes[node].content:
            self._note(Change((node,), file=node, length=0))
        if node is not None and self.image.nodes[node].entries is None:
            self._open[descriptor] = node

    def _renamed(self, old: tuple[int, str] | None, new: tuple[int, str] | None, flags: str) -> None:
        if old is None or new is None:
            assert old is new, "nothing is renamed out of the directory, or into it"
            return
        moved, other = self._at(old), self._at(new)
        assert moved is not None
        back = other if "RENAME_EXCHANGE" in flags else None
        self._note(Change((old[0], new[0]), [(*old, back), (*new, moved)]))

    def _linked(self, at: str | None, paths: list[str], descriptors: list[tuple[int, str]]) -> None:
        place = self._place(descriptors[-1][1] if descriptors else None, paths[-1])
        old = self._place(at, paths[0]) if paths[0] else None
        node = self._at(old) if old else self._node_of(descriptors[0])
        if place is not None and node is not None:
            self._note(Change((place[0],), [(*place, node)]))

    def _lengthened(self, name: str, descriptor: tuple[int, str], rest: list[str]) -> None:
        node = self._node_of(descriptor)
        if node is None:
            return
        length = int(rest[-1]) if name == "ftruncate" else int(rest[-2]) + int(rest[-1])
        if name == "ftruncate" or ("KEEP_SIZE" not in rest[0] and length > len(self.image.nodes[node].content)):
            self._note(Change((node,), file=node, length=length))

    def _written(self, name: str, arguments: list[Argument], result: int) -> None:
        descriptors = [one for one in arguments if isinstance(one, tuple)]
        node = self._node_of(descriptors[-1] if name == "copy_file_range" else descriptors[0])
        if node is None or result == 0:
            return
        assert name not in ("copy_file_range", "sendfile"), "what is copied in the system is not in a trace"
        content = b"".join(one.encode("latin-1") for one in arguments if isinstance(one, str))[:result]
        rest = [one.text for one in arguments if isinstance(one, Plain)]
        descriptor = descriptors[0][0]
        if "RWF_APPEND" in rest:
            at = len(self.image.nodes[node].content)
        elif name in ("write", "writev"):
            at = self._places.get(descriptor, 0)
            self._places[descriptor] = at + result
        else:
            numbers = [int(one) for one in rest if re.fullmatch(r"-?\d+", one)]
            at = numbers[1] if name in ("pwrite64", "pwritev2") else numbers[-1]
            if name == "pwritev2":
                at = numbers[-1] if "RWF" not in rest[-1] and len(numbers) < 3 else numbers[-2]
        self._note(Change((node,), file=node, at=at, content=content))


@dataclass(frozen=True)
class Plain:
    """An argument that is neither text nor a descriptor."""

    text: str


#: Text, a descriptor with its path, or something else.
Argument = str | tuple[int, str] | Plain


def _arguments(text: str) -> Iterator[Argument]:
    """The arguments of a call, and what is in their lists and structures, one after another."""

    def plain(escaped: str) -> str:
        return bytes.fromhex(escaped.replace("\\x", "")).decode("latin-1")

    for quoted, descriptor, path, other in ARGUMENT.findall(text):
        if descriptor:
            yield (-1 if descriptor == "AT_FDCWD" else int(descriptor), plain(path).encode("latin-1").decode())
        elif other.strip():
            if "iov_base=" not in other and "iov_len=" not in other:
                yield Plain(other.strip())
        else:
            yield plain(quoted)


# ---- images after a crash -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Crash:
    """A crash after the first so many events; where the power was lost, with what stayed of what was not synced."""

    end: int
    #: Numbers of changes that stayed, some of them torn; nothing where only processes died, and all stayed.
    kept: tuple[tuple[int, slice | None], ...] | None = None

    def image(self, first: Image, events: list[Event]) -> Image:
        """What is there afterwards."""
        image = deepcopy(first)
        lost = set() if self.kept is None else set(volatile(events, self.end))
        kept = dict(self.kept or ())
        for number, event in enumerate(events[: self.end]):
            if isinstance(event, Change) and (number not in lost or number in kept):
                event.carry_out(image, kept.get(number))
        return image


def volatile(events: list[Event], end: int) -> list[int]:
    """Which of the first events are changes that no later one of them made durable."""
    synced: set[int] = set()
    found = []
    for number in reversed(range(end)):
        event = events[number]
        if isinstance(event, Change):
            if not synced.intersection(event.of):
                found.append(number)
        elif event.of is None:
            break
        else:
            synced.update(event.of)
    return found[::-1]


def crashes(events: list[Event], random: Random) -> list[Crash]:
    """Crashes of processes at any moment; losses of power before each sync and at the end, with all that may stay.

    That is every part of what was not synced, where it is small, and some parts beyond.
    """
    found = [Crash(end) for end in range(1, len(events) + 1)]
    for end in [*(number for number, event in enumerate(events) if isinstance(event, Sync)), len(events)]:
        lost = volatile(events, end)
        if len(lost) <= EXHAUSTIVE:
            masks = [[bool(mask >> bit & 1) for bit in range(len(lost))] for mask in range(1 << len(lost))]
        else:
            masks = [list(random.random(len(lost)) < random.choice([0.05, 0.2, 0.5, 0.8, 0.95])) for _ in range(BEYOND)]
        for mask in masks:
            whole = [number for number, stays in zip(lost, mask, strict=True) if stays]
            found.append(Crash(end, tuple((number, None) for number in whole)))
            contents = [number for number in whole if _content(events[number])]
            if contents:
                torn = int(random.choice(contents))
                parts = tuple((number, _torn(events[number], random) if number == torn else None) for number in whole)
                found.append(Crash(end, parts))
    return [found[number] for number in random.permutation(len(found))]


def _content(event: Event) -> bytes:
    return event.content if isinstance(event, Change) else b""


def _torn(event: Event, random: Random) -> slice:
    assert isinstance(event, Change)
    return event.torn(random)
