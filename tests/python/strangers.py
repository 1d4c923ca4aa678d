"""What another user of the machine can plant beside data, and what somebody then does: for `test_strangers`."""

from __future__ import annotations

import codecs
import json
import os
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
from hyperslab._clean import clean

#: Who has the data, and who has not.
ME, OTHER = 1001, 1002
TOKEN = "0123456789abcdef" * 2
VALUES = np.arange(8.0)
PLANTED = np.full(8, 666.0)
#: What a dead program on this host says of itself.
OWNER = {"token": TOKEN, "host": "h", "boot": "", "pid_namespace": 1, "pid": 1, "started": 1}


def as_user(user: int, act: Callable[[], Any], groups: Sequence[int] = ()) -> Any:
    """What a child returns that does this as another user."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.setgroups(groups)
            os.setgid(user)
            os.setuid(user)
            answer = {"done": act()}
        except BaseException as error:  # noqa: BLE001 (the child ends here)
            answer = {"failed": f"{type(error).__name__}: {error}"}
        os.write(writing, json.dumps(answer).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the child was killed"
    return json.loads(text)


def load() -> None:
    """Loads all that is needed: other users may not read what root's Python is made of."""
    for encoding in ("utf-8", "utf-16-be", "utf-16-le", "utf-32-be", "utf-32-le"):
        codecs.lookup(encoding)
    with tempfile.TemporaryDirectory() as made:
        store(Path(made))
        for suffix in ACTIONS:
            path = Path(made) / f"s{suffix}"
            if suffix != ".zarr":
                write_file(path)
            acted(path, "r")
            acted(path, "verify")
            acted(path, "clean")
            # Threads, and what they need.
            act(path, "r", 3)


def line(**more: Any) -> str:
    """A line of JSON of a dead owner."""
    return json.dumps(OWNER | {"parts": "1"} | more) + "\n"


def version(path: Path) -> str:
    """By what a journal tells what it replaces."""
    born = subprocess.run(["stat", "-c", "%w", path], capture_output=True, text=True, check=True).stdout
    seconds = subprocess.run(["stat", "-c", "%W", path], capture_output=True, text=True, check=True).stdout
    found = path.stat()
    made = int(seconds) * 10**9 + int(born.split(".")[1].split(" ")[0]) if "." in born else 0
    return f"{found.st_ino}.{made}.{found.st_mtime_ns // 10**9}.{found.st_mtime_ns % 10**9}"


def store(place: Path) -> Path:
    """A store with an array, of the running user."""
    path = place / "s.zarr"
    with hs.open(path, "w", comm=None) as made:
        made.write("rho", VALUES, chunks=(4,))
    return path


def array(place: Path, name: str) -> None:
    """An array with other values, as a directory."""
    with hs.open(place, "a", comm=None) as made:
        made.write(name, PLANTED, chunks=(4,))


def root(at: Path, path: Path) -> None:
    """A hidden root whose owner is dead, who was about to publish two arrays."""
    at.mkdir()
    for number, name in ((2, "rho"), (3, "evil")):
        array(at / "made.zarr", name)
        (at / "made.zarr" / name).rename(at / f"{number}-array.7-{name}")
    subprocess.run(["rm", "-r", at / "made.zarr"], check=True)
    (at / "2-array.7-rho" / ".hyperslab-new").touch()
    entries = [
        {"over": version(path / "rho"), "from": "2-array.7-rho", "to": "rho", "replaces": True},
        {"from": "3-array.7-evil", "to": "evil", "replaces": False},
    ]
    (at / "4-publish").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    (at / "owner").write_text(line() + json.dumps({"update": "rho", "readers": "torn"}) + "\n")


def hidden(path: Path, what: str) -> Path:
    """What lies beside something."""
    return path.with_name(f".{path.name}.hyperslab-{what}")


def plant_list(path: Path) -> None:
    """Owners, with a root that publishes."""
    hidden(path, "owners").write_text(line() + json.dumps({"unfinished": "rho"}) + "\n")
    root(hidden(path, TOKEN), path)


def plant_writable_list(path: Path) -> None:
    """The same, where all may strike out lines."""
    plant_list(path)
    hidden(path, "owners").chmod(0o666)


def plant_root(path: Path) -> None:
    """The root alone."""
    root(hidden(path, TOKEN), path)


def plant_gone(path: Path) -> None:
    """A root that was about to be removed."""
    root(hidden(path, f"gone-{TOKEN}"), path)


def plant_link_to_root(path: Path) -> None:
    """A link to a root elsewhere."""
    root(path.with_name("elsewhere"), path)
    hidden(path, TOKEN).symlink_to("elsewhere")


def plant_list_by_link(path: Path) -> None:
    """Owners by a symbolic link."""
    path.with_name("listed").write_text(line())
    hidden(path, "owners").symlink_to("listed")
    root(hidden(path, TOKEN), path)


def plant_list_alone(path: Path) -> None:
    """Owners, of whom nothing is left."""
    hidden(path, "owners").write_text(line())


def plant_directory(what: str) -> Callable[[Path], None]:
    """A directory in the place of a file."""
    return lambda path: hidden(path, what).mkdir()


def plant_pipe(what: str) -> Callable[[Path], None]:
    """A pipe in the place of a file."""
    return lambda path: os.mkfifo(hidden(path, what))


def plant_unreadable(what: str) -> Callable[[Path], None]:
    """A file that nobody else may read."""

    def plant(path: Path) -> None:
        hidden(path, what).write_text(line())
        hidden(path, what).chmod(0)

    return plant


def plant_marker(readers: str) -> Callable[[Path], None]:
    """A marker of an update, of which readers see half or nothing."""
    return lambda path: hidden(path, "update").write_text(line(readers=readers, updates="", replaced="no"))


def plant_file(what: str) -> Callable[[Path], None]:
    """A new file that is not published."""

    def plant(path: Path) -> None:
        hidden(path, what).write_bytes(PLANTED.tobytes())
        hidden(path, "owners").write_text(line())

    return plant


#: What is planted beside a store, and beside a file.
OF_STORES: dict[str, Callable[[Path], None]] = {
    "list": plant_list,
    "list for all": plant_writable_list,
    "root": plant_root,
    "gone": plant_gone,
    "link to root": plant_link_to_root,
    "list by link": plant_list_by_link,
    "list alone": plant_list_alone,
    "list a directory": plant_directory("owners"),
    "list a pipe": plant_pipe("owners"),
    "list unreadable": plant_unreadable("owners"),
    "root a pipe": lambda path: (plant_list_alone(path), plant_pipe(TOKEN)(path))[0],
}
OF_FILES: dict[str, Callable[[Path], None]] = {
    "list": plant_list_alone,
    "list a directory": plant_directory("owners"),
    "list a pipe": plant_pipe("owners"),
    "list unreadable": plant_unreadable("owners"),
    "hidden file": plant_file(TOKEN),
    "first name": plant_file("first"),
    "first a pipe": plant_pipe("first"),
    "first a directory": plant_directory("first"),
    "marker torn": plant_marker("torn"),
    "marker whole": plant_marker("whole"),
    "marker a pipe": plant_pipe("update"),
    "marker a directory": plant_directory("update"),
    "marker unreadable": plant_unreadable("update"),
}
#: What is done with each.
ALL_ACTIONS = ("r", "r+", "a", "w", "x", "verify", "clean")
ACTIONS = dict.fromkeys((".zarr", ".h5", ".nc"), ALL_ACTIONS) | {
    ".raw": tuple(action for action in ALL_ACTIONS if action != "a"),
    ".npy": ("r", "w", "verify", "clean"),
}
#: What one process does, whoever else there is.
ALONE = ("verify", "clean")
#: Those that the kind of thing in their place makes unreadable for all who write.
UNREADABLE = ("a directory", "a pipe", "unreadable", "by link")


def given(comm: Any, values: np.ndarray) -> tuple[Any, ...]:
    """This rank's part, and who holds which; of one rank without others, all."""
    if comm is None:
        return (values,)
    dist = hs.Distribution(values.shape, (comm.size,), ("block",))
    return values[dist.slices(comm.rank)], dist


def write_file(path: Path) -> None:
    """A file of each format."""
    if path.suffix == ".npy":
        hs.save_npy(path, VALUES, comm=None)
        return
    with opened(path, "w") as group:
        group.write("rho", VALUES)


def opened(path: Path, mode: str, comm: Any = None) -> Any:
    """It, open."""
    if path.suffix == ".raw":
        return hs.open_raw(path, mode, comm=comm, **({} if mode in "wx" else {"arrays": {"rho": ((8,), "f8")}}))
    return hs.open(path, mode, comm=comm)


def read(path: Path, comm: Any = None) -> list[float]:
    """This rank's elements."""
    dist = given(comm, VALUES)[1:]
    if path.suffix == ".npy":
        return np.ravel(hs.load_npy(path, *dist, comm=comm)).tolist()
    with opened(path, "r", comm) as group:
        return np.ravel(group.read("rho", *dist)).tolist()


def act(path: Path, action: str, ranks: int = 1) -> Any:
    """What comes of an action of so many threads: values, and what was said besides."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        # Who looks or cleans is one.
        if ranks == 1 or action in ALONE:
            answer = tried(path, action)
        else:
            answer = joined(hs.threads(ranks, lambda comm: tried(path, action, comm)))
    return {"answer": answer, "told": [str(each.message) for each in told]}


def tried(path: Path, action: str, comm: Any = None) -> Any:
    """What comes of it on one rank."""
    try:
        return acted(path, action, comm)
    except hs.Error as error:
        return f"{type(error).__name__}: {error}"


def joined(answers: Sequence[Any]) -> Any:
    """What all ranks have, or the error that all have."""
    failed = [answer for answer in answers if isinstance(answer, str)]
    if failed:
        return failed[0] if len(set(map(str, answers))) == 1 else f"ranks differ: {answers}"
    return [value for answer in answers for value in answer]


def acted(path: Path, action: str, comm: Any = None) -> Any:
    """The same, unless it fails."""
    match action:
        case "r":
            return read(path, comm)
        case "r+" | "a":
            with opened(path, action, comm) as group:
                if path.suffix == ".zarr":
                    group.write("mine", *given(comm, VALUES))
                group.write("rho", *given(comm, VALUES + 1), section=(slice(0, 8),))
            return read(path, comm)
        case "w":
            if path.suffix == ".npy":
                hs.save_npy(path, *given(comm, VALUES + 2), comm=comm)
            else:
                with opened(path, "w", comm) as group:
                    group.write("rho", *given(comm, VALUES + 2))
            return read(path, comm)
        case "x":
            with opened(path, "x", comm) as group:
                group.write("rho", *given(comm, VALUES + 3))
            return read(path, comm)
        case "clean":
            return [tuple(each) for each in clean(path, dry_run=False)]
        case "verify":
            found = hs.verify(path, **({"arrays": {"rho": ((8,), "f8")}} if path.suffix == ".raw" else {}))
            return [str(each) for each in found.findings]
    raise AssertionError(action)


def tree(place: Path) -> dict[str, tuple[int, int, bytes]]:
    """All that lies below: owner, mode and bytes."""

    def each() -> Iterator[tuple[str, tuple[int, int, bytes]]]:
        for path in sorted([place, *place.rglob("*")]):
            found = path.lstat()
            holds = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            yield str(path.relative_to(place)), (found.st_uid, found.st_mode, holds)

    return dict(each())


@dataclass(frozen=True)
class Case:
    """Something that somebody plants beside something of ``ME``, and what is done then, by ``ME`` or by root."""

    suffix: str
    kind: str
    planter: int
    action: str
    actor: int

    def __str__(self) -> str:
        return f"{self.suffix} {self.kind} by {self.planter}, {self.action} by {self.actor}"

    def plant(self, place: Path) -> Path:
        """Makes the data, and plants."""
        path = place / f"s{self.suffix}"
        if self.suffix == ".zarr":
            done = as_user(ME, lambda: str(store(place)))
            plant = OF_STORES[self.kind]
        else:
            done = as_user(ME, lambda: write_file(path))
            plant = OF_FILES[self.kind]
        assert "done" in done, (self, done)
        planted = as_user(self.planter, lambda: plant(path) and None)
        assert "done" in planted, (self, planted)
        return path


def cases() -> list[Case]:
    """All of them."""
    found = []
    for suffix in ACTIONS:
        kinds = OF_STORES if suffix == ".zarr" else OF_FILES
        actions = ACTIONS[suffix]
        found += [
            Case(suffix, kind, planter, action, actor)
            for kind in kinds
            for planter in (ME, OTHER, 0)
            for action in actions
            for actor in (ME, 0)
        ]
    return found
