"""What programs do twice with one name, whose ranks sit on several clients of a shared file system.

Usage: second_touches.py DIRECTORY OUTPUT [--own] [WORDS ...]

With ``--own``, all ranks but the first see an empty file system of their own at DIRECTORY, as the worst client of a
shared one would show it, in a namespace that this program may mount in.

Each case does something in DIRECTORY that all ranks have looked at before (writes again, grows, replaces, removes and
makes again); then all ranks read everything, whole and in another distribution, and compare it with NumPy. With
WORDS, only cases whose names have one of them. Rank 0 writes a line of JSON for each case to OUTPUT.
"""

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def see_files_of_its_own(directory: str) -> None:
    """Begin again in a mount namespace with an empty file system at the directory."""
    mounting = 'mount -t tmpfs own "$0" && exec "$@"'
    again = [sys.executable, "-m", "mpi4py", *(each for each in sys.argv if each != "--own")]
    os.execvp("unshare", ["unshare", "--mount", "sh", "-c", mounting, directory, *again])


if "--own" in sys.argv:
    # Before anything of MPI begins.
    if os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK")) != "0":
        see_files_of_its_own(sys.argv[1])
    sys.argv.remove("--own")

import hyperslab as hs  # noqa: E402
from mpi4py import MPI  # noqa: E402

SHAPE = (24, 10)
LIMITS = {"arrival_seconds": 20.0, "progress_seconds": 20.0}
comm = MPI.COMM_WORLD
Values = NDArray[np.int32]


def field(turn: int, shape: tuple[int, ...] = SHAPE) -> Values:
    """All elements of an array; each tells its place and the turn that wrote it."""
    return (np.arange(np.prod(shape)) + 1000 * turn + 1).reshape(shape).astype("i4")


def rows(shape: tuple[int, ...]) -> hs.Distribution:
    return hs.Distribution(shape, (comm.size,), ("block", *"*" * (len(shape) - 1)))


def part(whole: Values, dist: hs.Distribution) -> Values:
    """What this rank holds."""
    return np.ascontiguousarray(whole[np.ix_(*dist.indices(comm.rank))])


class File:
    """A path of its own, in one format, and the everyday calls on it."""

    def __init__(self, path: Path, kind: str) -> None:
        self.path, self.kind = path, kind
        #: What a new file is opened with.
        self.new: dict[str, Any] = {"format": "netcdf4"} if kind == "nc4" else {}

    @contextmanager
    def open(self, mode: str) -> Iterator[Any]:
        new = dict(self.new) if mode == "w" else {}
        with hs.open(self.path, mode, comm=comm, **new, **LIMITS) as group:
            yield group

    def make(self, **arrays: Values) -> None:
        with self.open("w") as group:
            for name, whole in arrays.items():
                self.write(group, name, whole)

    def write(self, group: Any, name: str, whole: Values, **options: Any) -> None:
        dist = rows(whole.shape)
        group.write(name, part(whole, dist), dist, **options)

    def check(self, **arrays: Values) -> None:
        with self.open("r") as group:
            for name, whole in arrays.items():
                same(group, name, whole)


def same(group: Any, name: str, whole: Values) -> None:
    """All ranks read all, then what another holds, then one row that each asks for alone."""
    compare(name, group.read(name), whole)
    turned = hs.Distribution(whole.shape, (comm.size,), ("*", "cyclic", *"*" * (whole.ndim - 2)))
    compare(f"{name}, spread by columns", group.read(name, turned), part(whole, turned))
    row = comm.rank % len(whole)
    try:
        compare(f"{name}, one row alone", group[name][row], whole[row])
    except hs.UnsupportedError as error:
        refused.append(f"{name}, one row alone: {error}")
    except hs.Error as error:  # this rank's own
        unlike.append(f"{name}, one row alone: {type(error).__name__}: {error}")


#: What this rank may not do by itself, on file systems whose clients do not see what others do.
refused: list[str] = []
#: What this rank saw that it should not see. It stays with the others all the same, since they wait for it.
unlike: list[str] = []


def compare(what: str, got: Any, expected: Any) -> None:
    if np.shape(got) != np.shape(expected):
        unlike.append(f"{what}: {np.shape(got)} in place of {np.shape(expected)}")
        return
    got, expected = np.asarray(got), np.asarray(expected)
    wrong = np.argwhere(got != expected)
    if len(wrong):
        unlike.append(f"{what}: {len(wrong)} are old or wrong, first {got[got != expected].flat[0]!r}")


# ---- cases: each is called three times over, with another turn, on one path --------------------------------------


def over(file: File, turn: int) -> None:
    """Mode w over the old."""
    file.make(a=field(turn))
    file.check(a=field(turn))


def section(file: File, turn: int) -> None:
    """Rows of an array in place, by ranks that did not write them before."""
    if turn == 1:
        file.make(a=field(1))
        file.check(a=field(1))
    before = field(1) if turn == 1 else changed(turn - 1)
    with file.open("r+") as group:
        same(group, "a", before)
        new = changed(turn)[5:17]
        turned = hs.Distribution(new.shape, (comm.size,), ("*", "block"))
        group.write("a", part(new, turned), turned, section=(slice(5, 17), ...))
        same(group, "a", changed(turn))
    file.check(a=changed(turn))


def changed(turn: int) -> Values:
    values = field(1)
    values[5:17] = field(10 + turn)[5:17]
    return values


def append(file: File, turn: int) -> None:
    """Rows at the end, read by those who have the file open, and by those who open it again."""
    first = np.concatenate([field(each, (6, 10)) for each in range(turn)] or [field(0, (6, 10))])
    if turn == 1:
        if file.kind in ("nc", "nc4"):
            file.new["unlimited"] = "time"
        options = {
            "zarr": {"chunks": (4, 10)},
            "h5": {"chunks": (4, 10), "maxshape": (None, 10)},
        }.get(file.kind, {"dimension_names": ("time", "x")})
        with file.open("w") as group:
            file.write(group, "a", first, **options)
        file.check(a=first)
    with file.open("r+") as group:
        same(group, "a", first)
        more = field(turn, (6, 10))
        group.append("a", part(more, rows(more.shape)), rows(more.shape))
        same(group, "a", np.concatenate([first, more]))
    file.check(a=np.concatenate([first, more]))


def attributes(file: File, turn: int) -> None:
    """Attributes, set and read within one opening and by others."""
    if turn == 1:
        file.make(a=field(1))
    with file.open("r+") as group:
        group.attrs["turn"] = turn
        group["a"].attrs["turn"] = -turn
        compare("attributes", [group.attrs["turn"], group["a"].attrs["turn"]], [turn, -turn])
    with file.open("r") as group:
        compare("attributes", [group.attrs["turn"], group["a"].attrs["turn"]], [turn, -turn])
        same(group, "a", field(1))


def overwrite(file: File, turn: int) -> None:
    """An array in the place of another, of another shape in turns."""
    if turn == 1:
        file.make(a=field(0), b=field(9))
        file.check(a=field(0))
    shape = SHAPE if turn % 2 else (12, 7)
    with file.open("r+") as group:
        file.write(group, "a", field(turn, shape), overwrite=True)
        same(group, "a", field(turn, shape))
    file.check(a=field(turn, shape), b=field(9))


def again(file: File, turn: int) -> None:
    """An array is deleted, and one of its name is made."""
    if turn == 1:
        file.make(a=field(0), b=field(9))
        file.check(a=field(0))
    with file.open("r+") as group:
        group.delete("a")
        compare("names", sorted(group), ["b"])
        file.write(group, "a", field(turn))
        same(group, "a", field(turn))
    file.check(a=field(turn), b=field(9))


def more(file: File, turn: int) -> None:
    """New arrays in a file that is there, in one call."""
    if turn == 1:
        file.make(a=field(1))
    with file.open("r+") as group:
        dist = rows(SHAPE)
        group.write({f"b{turn}": part(field(turn), dist), f"c{turn}": part(field(turn + 1), dist)}, dist)
        same(group, f"c{turn}", field(turn + 1))
    file.check(a=field(1), **{f"b{turn}": field(turn)})


def steps(file: File, turn: int) -> None:
    """Steps of which the last two are kept, and the latest is read."""
    if turn == 1:
        file.make(a=field(0))
    with file.open("r+") as group:
        for number in (2 * turn, 2 * turn + 1):
            with group.step(f"step_{number:04d}") as step:
                step.write("rho", part(field(number), rows(SHAPE)), rows(SHAPE))
        group.steps.keep(2)
        same(latest(group), "rho", field(2 * turn + 1))
    with file.open("r") as group:
        compare("names", list(group.steps), [f"step_{2 * turn:04d}", f"step_{2 * turn + 1:04d}"])
        same(latest(group), "rho", field(2 * turn + 1))
        same(group.group(f"step_{2 * turn:04d}"), "rho", field(2 * turn))


def latest(group: Any) -> Any:
    """The newest step."""
    name = group.steps.latest()
    assert name is not None
    return group.group(name)


def resized(file: File, turn: int) -> None:
    """Cut, and grown over what was cut."""
    if turn == 1:
        with file.open("w") as group:
            file.write(group, "a", field(0), fill_value=0, chunks=(4, 10))
        file.check(a=field(0))
    with file.open("r+") as group:
        group["a"].resize((6, 10))
        same(group, "a", field(turn - 1)[:6])
        group["a"].resize(SHAPE)
        same(group, "a", np.concatenate([field(turn - 1)[:6], np.zeros((18, 10), "i4")]))
        group.write("a", part(field(turn), rows(SHAPE)), rows(SHAPE), section=...)
        same(group, "a", field(turn))
    file.check(a=field(turn))


def renamed(file: File, turn: int) -> None:
    """A name goes to another array and back."""
    if turn == 1:
        file.make(a=field(1), b=field(2))
        file.check(a=field(1), b=field(2))
    first, second = (1, 2) if turn % 2 else (2, 1)
    with file.open("r+") as group:
        same(group, "a", field(first))
        group.rename("a", "c")
        group.rename("b", "a")
        group.rename("c", "b")
        same(group, "a", field(second))
        same(group, "b", field(first))
    file.check(a=field(second), b=field(first))


def requests(file: File, turn: int) -> None:
    """Writes that do not block, and a reader of them in the same opening."""
    if turn == 1:
        file.make(a=field(0))
        file.check(a=field(0))
    with file.open("r+") as group:
        half = field(turn)[:12]
        first = group.iwrite("a", part(half, rows(half.shape)), rows(half.shape), section=(slice(0, 12), ...))
        rest = field(turn)[12:]
        second = group.iwrite("a", part(rest, rows(rest.shape)), rows(rest.shape), section=(slice(12, 24), ...))
        first.wait()
        second.wait()
        same(group, "a", field(turn))
    file.check(a=field(turn))


def selected(file: File, turn: int) -> None:
    """Elements are selected and summed of what has just been changed."""
    if turn == 1:
        file.make(a=field(0))
        file.check(a=field(0))
    with file.open("r+") as group:
        group.write("a", part(field(turn), rows(SHAPE)), rows(SHAPE), section=...)
        found = group.select(f"a > {1000 * turn + 100}", columns=["a"])
        mine = np.concatenate(comm.allgather(np.asarray(found["a"])))
        compare("selected", mine, field(turn)[field(turn) > 1000 * turn + 100])
        compare("summed", group.reduce("sum", "a"), field(turn).sum())


def beside(file: File, turn: int) -> None:
    """A reader that stays open while a writer changes an array, and looks again."""
    if turn == 1:
        file.make(a=field(0))
    before = field(turn - 1)
    with file.open("r") as reader:
        same(reader, "a", before)
        with file.open("r+") as group:
            group.write("a", part(field(turn), rows(SHAPE)), rows(SHAPE), section=...)
        reader.refresh()
        same(reader, "a", field(turn))


def npy(file: File, turn: int) -> None:
    """A .npy file over the old."""
    path = file.path.with_suffix(".npy")
    hs.save_npy(path, part(field(turn), rows(SHAPE)), rows(SHAPE), comm=comm, **LIMITS)
    compare("npy", hs.load_npy(path, comm=comm, **LIMITS), field(turn))


def raw(file: File, turn: int) -> None:
    """A raw file, made and changed in place."""
    path = file.path.with_suffix(".raw")
    dist = rows(SHAPE)
    if turn == 1:
        with hs.open_raw(path, "w", comm=comm, order="C", **LIMITS) as made:
            made.write("a", part(field(0), dist), dist)
    with hs.open_raw(path, "r+", arrays={"a": (SHAPE, "i4")}, comm=comm, order="C", **LIMITS) as there:
        turned = hs.Distribution(SHAPE, (comm.size,), ("*", "block"))
        there.write("a", part(field(turn), turned), turned, section=...)
        compare("raw, in one opening", there.read("a"), field(turn))
    with hs.open_raw(path, "r", arrays={"a": (SHAPE, "i4")}, comm=comm, order="C", **LIMITS) as there:
        compare("raw", there.read("a"), field(turn))


ALL: tuple[Callable[[File, int], None], ...] = (
    over, section, append, attributes, overwrite, again, more, steps, resized, renamed, requests, selected, beside,
)  # fmt: skip
#: What a format does not have.
WITHOUT = {
    "h5": ("overwrite", "resized"),
    "nc": ("overwrite", "again", "more", "steps", "resized", "renamed"),
    "nc4": ("overwrite", "again", "steps", "resized", "renamed"),
}
FORMATS = {"zarr": ".zarr", "h5": ".h5", "nc": ".nc", "nc4": ".nc4.nc"}
TURNS = 3


def cases() -> Iterator[tuple[str, Callable[[File, int], None], str]]:
    for kind in FORMATS:
        for case in ALL:
            if case.__name__ not in WITHOUT.get(kind, ()):
                yield f"{case.__name__}-{kind}", case, kind
    for case in (npy, raw):
        yield case.__name__, case, "h5"


def carried_out(case: Callable[[File, int], None], file: File) -> list[str]:
    """What went wrong on some rank, and on which."""
    told: list[str] = []
    for turn in range(1, TURNS + 1):
        wrong = ""
        try:
            case(file, turn)
        except Exception as error:  # noqa: BLE001  # an error is this program's result
            wrong = f"turn {turn}: {type(error).__name__}: {error}"
            if not isinstance(error, (hs.Error, AssertionError)):
                wrong = traceback.format_exc()
        wrong = "; ".join([*filter(None, [wrong]), *unlike])
        unlike.clear()
        told = [each for each in comm.allgather(wrong) if each]
        if told:
            break
    return told


def main(directory: Path, output: Path, words: list[str]) -> None:
    for name, case, kind in cases():
        if words and not any(word in name for word in words):
            continue
        began = time.perf_counter()
        told = carried_out(case, File(directory / f"{name}{FORMATS[kind]}", kind))
        alone = comm.reduce(len(refused))
        if comm.rank == 0:
            line = {"case": name, "wrong": told, "refused": alone, "seconds": round(time.perf_counter() - began, 3)}
            with output.open("a") as file:
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
