"""``hyperslab bench peers``: small things, large ones and first calls, beside peers, plain code and an empty call."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hyperslab as hs
from hyperslab._printing import say
from hyperslab._progress import tell
from hyperslab._scratch import remove_left, scratch
from hyperslab.bench._arguments import counts, positive
from hyperslab.bench._emptying import empty
from hyperslab.bench._launch import about, file_system, find_mpiexec, launch
from hyperslab.bench._peers_libraries import missing
from hyperslab.bench._peers_picture import draw
from hyperslab.bench._peers_rows import FAMILIES, ROWS, SIZES, Row, ranks_of
from hyperslab.bench._peers_tables import Measured, notes, row_tables, summary_table

__all__ = ["add_verb"]

DESCRIPTION = """\
Holds this package against MPI-IO (default hints and the best of some), h5py, zarr-python and TensorStore, as far as
they are installed, against the plainest Python code that makes the same files (the limit), and against an empty call.
Each row tells the first call of a fresh process and later calls, memory over the arrays of the user, and whether it is
near the limit or faster than the best peer.

A launch for each row has all ways take turns. First calls are those of launches of their own, one for each way and
repetition, which take turns, too. What was written and read is compared. Nothing is deleted before the end, since ext4
makes files slowly for a minute after others were deleted; files are emptied instead.
"""

#: Where Linux has a file system in memory.
SHARED_MEMORY = Path("/dev/shm")
#: Files deleted on the file system since the last look that are worth telling, and how long they slow things [s].
DELETED_WORTH_TELLING, DELETED_SECONDS = 100, 60.0


def add_verb(which: Any) -> None:
    """Add ``peers`` to the benchmarks."""
    verb = which.add_parser(
        "peers",
        help="first and later calls, beside MPI-IO, h5py, zarr-python and TensorStore",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("--ranks", type=counts, default=[2, 8], help="numbers of ranks; 2,8 by default")
    verb.add_argument(
        "--families", type=families, default=list(FAMILIES), help=f"of {','.join(FAMILIES)}; all by default"
    )
    verb.add_argument(
        "--size", choices=list(SIZES), default="full", help="full by default; tiny only shows that it works"
    )
    verb.add_argument("--repetitions", type=positive, default=5, help="rounds of later calls that count; 5 by default")
    verb.add_argument("--launches", type=positive, default=3, help="launches for a first call; 3 by default")
    verb.add_argument("--directory", type=Path, default=Path(), help="where scratch files go; here by default")
    verb.add_argument("--output", type=Path, metavar="FOLDER", help="write peers.json, peers.txt and peers.svg there")
    verb.add_argument("--json", action="store_true", help="print all times as JSON")
    verb.set_defaults(run=run)


def families(text: str) -> list[str]:
    """Names of families, such as ``whole,many``."""
    names = text.split(",")
    for name in names:
        if name not in FAMILIES:
            message = f"{name!r} is not one of {', '.join(FAMILIES)}"
            raise argparse.ArgumentTypeError(message)
    return names


class Launches:
    """Launches of one row on one number of ranks.

    Parameters
    ----------
    args : Namespace
        What was asked for.
    row : Row
        Which row.
    ranks : int
        On how many ranks.
    place : Path
        An empty directory, to be emptied by somebody else.
    memory : Path, optional
        Another one, on a file system in memory.
    """

    def __init__(self, args: argparse.Namespace, row: Row, ranks: int, place: Path, memory: Path | None) -> None:
        self._args, self._row, self._ranks, self._place, self._memory = args, row, ranks, place, memory
        self._number = 0

    def _launch(self, **more: Any) -> dict[str, Any]:
        """One launch; its files stay beside the data."""
        self._number += 1
        task = self._place / f"task-{self._number}.json"
        answer = self._place / f"answer-{self._number}.json"
        row = self._row
        told: dict[str, Any] = {"place": str(self._place), "answer": str(answer), "size": self._args.size}
        told |= {"kind": row.kind, "options": dict(row.options), "calls": row.calls}
        told |= {"way": None, "number": 0, "prepared": False, "hints": None, "memory": None}
        # A repetition of many shapes is many calls.
        repetitions = self._args.repetitions if row.calls == "one" else -(-self._args.repetitions // 2)
        task.write_text(json.dumps(told | {"repetitions": repetitions} | more))
        launch(self._ranks, "_peers_ranks", task)
        found: dict[str, Any] = json.loads(answer.read_text())
        return found

    def measure(self) -> Measured:
        """Later calls, then first ones."""
        later = self._launch(memory=None if self._memory is None else str(self._memory))
        hints = next((way["hints"] for way in later["ways"] if way["hints"]), None)
        ways = [way["name"] for way in later["ways"] if way["role"] != "nothing"]
        each = {"one": 1, "calls": SIZES[self._args.size].calls, "shapes": SIZES[self._args.size].shapes}[
            self._row.calls
        ]
        firsts: dict[str, list[dict[str, Any]]] = {name: [] for name in ways}
        for number in range(self._args.launches):
            turn = number % len(ways)
            for name in [*ways[turn:], *ways[:turn]]:
                # A number that no later call had, of the array in the middle where there are many.
                own = (1000 + number * len(ways) + ways.index(name)) * each + each // 2
                firsts[name].append(self._launch(way=name, number=own, prepared=True, hints=hints))
        return Measured(self._row, self._ranks, later, firsts)


class Deleted:
    """Files that somebody deleted on the file system of a directory, as far as its free inodes tell."""

    def __init__(self, directory: Path) -> None:
        self._directory, self._free = directory, os.statvfs(directory).f_ffree

    def since(self) -> int:
        """How many there are more free since the last look."""
        before, self._free = self._free, os.statvfs(self._directory).f_ffree
        return max(0, self._free - before)


@contextmanager
def in_memory() -> Iterator[Path | None]:
    """A directory on a file system in memory, where there is one."""
    if not SHARED_MEMORY.is_dir() or file_system(SHARED_MEMORY) != "tmpfs":
        yield None
        return
    with scratch("hyperslab-bench-", SHARED_MEMORY) as place:
        yield place


def measured(args: argparse.Namespace, failed: list[str]) -> Iterator[Measured]:
    """All rows; those whose ranks failed are named in a list."""
    with scratch("hyperslab-bench-", args.directory) as place, in_memory() as memory:
        deleted = Deleted(place)
        for ranks in args.ranks:
            for number, row in enumerate(ROWS):
                own = ranks_of(row, ranks)
                if row.family not in args.families or own is None:
                    continue
                tell(f"measuring {row.name} on {own} ranks ...")
                folder = place / f"{ranks}-{number}"
                folder.mkdir()
                beside = None if memory is None else memory / folder.name
                if beside is not None:
                    beside.mkdir()
                try:
                    found = Launches(args, row, own, folder, beside).measure()
                except hs.PeerError as error:
                    # The ranks have said why; the other rows are worth having all the same.
                    failed.append(f"{row.name}, {own} ranks: {error}")
                    continue
                gone = deleted.since()
                if gone >= DELETED_WORTH_TELLING:
                    found.notes.append(f"{gone} files were deleted on this file system meanwhile")
                # Room for the next row; names stay until the end.
                for used in filter(None, (folder, beside)):
                    empty(used)
                yield found


def is_ours(name: str) -> bool:
    """Whether a variable of the environment is one of this package."""
    return name.startswith("HYPERSLAB_")


def run(args: argparse.Namespace) -> int:
    """Measure, print, and keep."""
    find_mpiexec()
    args.directory.mkdir(parents=True, exist_ok=True)
    if args.output is not None:
        args.output.mkdir(parents=True, exist_ok=True)
    if remove_left("hyperslab-bench-", args.directory):
        # ext4 passes over inodes that were freed just now, which would make the first rows slow.
        tell(f"removed what a killed benchmark had left; waiting for {DELETED_SECONDS:.0f} s")
        time.sleep(DELETED_SECONDS)
    facts = about(args.directory)
    facts["settings"] = " ".join(f"{name}={os.environ[name]}" for name in sorted(os.environ) if is_ours(name)) or "none"
    failed: list[str] = []
    found: list[Measured] = []
    for one in measured(args, failed):
        found.append(one)
        # A run of an hour that is ended leaves what it has measured.
        keep(args, facts, found, failed)
    text, page = keep(args, facts, found, failed)
    say(text if args.json else page)
    return 1 if failed else 0


def keep(
    args: argparse.Namespace, facts: Mapping[str, str], found: Sequence[Measured], failed: Sequence[str]
) -> tuple[str, str]:
    """What was measured so far, as JSON and as a page; also in the folder for it."""
    told = {"about": facts, "size": args.size, "missing": missing(), "failed": failed}
    text = json.dumps(told | {"rows": [one.to_json() for one in found]})
    lines = [f"{name + ':':9}{fact}" for name, fact in facts.items()]
    lines += [
        "",
        *notes(found),
        *(f"failed: {line}" for line in failed),
        "",
        summary_table(found),
        "",
        row_tables(found),
    ]
    page = "\n".join(lines)
    if args.output is not None:
        (args.output / "peers.json").write_text(text)
        (args.output / "peers.txt").write_text(page + "\n")
        (args.output / "peers.svg").write_text(draw(found))
    return text, page
