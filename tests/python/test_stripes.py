"""Raw files striped over directories: their bytes, their errors, and what a process that is killed leaves."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import numpy as np
import pytest

from error_cases import attempt
from mpi_launch import run_ranks
from mpi_programs.stripes import run_cases, together
from test_torn import kill_writer

SHAPE = (64, 64)


@pytest.mark.parametrize("ranks", [1, 2, 4, 7])
def test_on_threads_the_bytes_are_where_the_formula_says(ranks: int, tmp_path: Path) -> None:
    assert hs.threads(ranks, lambda comm: run_cases(comm, tmp_path, 11, 40)) == [40] * ranks


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [2, 5])
def test_on_mpi_the_bytes_are_where_the_formula_says(ranks: int, tmp_path: Path) -> None:
    assert f"25 cases on {ranks} ranks" in run_ranks(ranks, "stripes", tmp_path, 12, 25)


def disks(path: Path, count: int = 3) -> list[Path]:
    """Directories that stand for disks."""
    made = [path / str(number) for number in range(count)]
    for each in made:
        each.mkdir(exist_ok=True)
    return made


def write(target: hs.Striped | Path, value: float, comm: Any = None) -> None:
    with hs.open_raw(target, "w", comm=comm, header=b"head") as file:
        file.write({"a": np.full(SHAPE, value)})


def read(target: hs.Striped) -> np.ndarray:
    with hs.open_raw(target, header=4, arrays={"a": (SHAPE, "f8")}) as file:
        return file.read("a")


Change = Callable[[list[Path]], hs.Striped]


def without_second(found: list[Path]) -> hs.Striped:
    (found[1] / "a.raw").unlink()
    return hs.Striped(found, "a.raw", unit=1000)


ERRORS: dict[str, tuple[Change, str, str]] = {
    "no directory": (lambda _: hs.Striped([], "a.raw"), "InvalidError", "but 0 are given"),
    "one directory twice": (lambda d: hs.Striped([d[0], d[0]], "a.raw"), "InvalidError", "are the same directory"),
    "a directory that is not there": (
        lambda d: hs.Striped([*d, d[0] / "none"], "a.raw"),
        "NotFoundError",
        "none' does not exist",
    ),
    "one path for directories": (lambda d: hs.Striped(str(d[0]), "a.raw"), "InvalidError", "is one path"),
    "a number for a name": (lambda d: hs.Striped(d, 7), "InvalidError", "must be a string, got 7"),  # type: ignore[arg-type]
    "no text for a name": (lambda d: hs.Striped(d, "\udcff"), "InvalidError", "surrogates not allowed"),
    "numbers for directories": (lambda _: hs.Striped([1, 2], "a.raw"), "InvalidError", "not int"),  # type: ignore[list-item]
    "a unit that is too long": (
        lambda d: hs.Striped(d, "a.raw", unit=1 << 70),
        "InvalidError",
        "unit must be 1 B or more",
    ),
    "no unit": (lambda d: hs.Striped(d, "a.raw", unit=0), "InvalidError", "unit must be 1 B or more"),
    "a path for a name": (lambda d: hs.Striped(d, "b/a.raw"), "InvalidError", "is not the name of a file"),
    "no file": (lambda d: hs.Striped(d, "b.raw"), "NotFoundError", "b.raw' does not exist"),
    "another unit": (lambda d: hs.Striped(d, "a.raw", unit=999), "CorruptError", "by 999 B should have"),
    "fewer directories": (lambda d: hs.Striped(d[:2], "a.raw", unit=1000), "CorruptError", "the file has 22000 B, but"),
    "another order": (lambda d: hs.Striped(d[::-1], "a.raw", unit=1000), "CorruptError", "should have"),
    "a part missing": (without_second, "CorruptError", "1/a.raw' is missing"),
}


WITHOUT_HINT = (
    "a number for a name",
    "no text for a name",
    "numbers for directories",
    "a unit that is too long",
    "no unit",
)


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_the_same_on_all_ranks(name: str, tmp_path: Path) -> None:
    change, kind, words = ERRORS[name]
    found = disks(tmp_path)
    write(hs.Striped(found, "a.raw", unit=1000), 1.0)
    target = change(found)
    call = lambda comm: attempt(lambda: hs.open_raw(target, comm=comm, header=4, arrays={"a": (SHAPE, "f8")}))  # noqa: E731
    outcomes = hs.threads(3, call)
    assert outcomes[0][0] == kind
    assert words in outcomes[0][1]
    assert "hint:" in outcomes[0][1] or kind == "NotFoundError" or name in WITHOUT_HINT
    assert len(set(outcomes)) == 1


def test_ranks_that_stripe_differently_hear_of_it(tmp_path: Path) -> None:
    found = disks(tmp_path)
    outcomes = hs.threads(
        3,
        lambda comm: attempt(lambda: hs.open_raw(hs.Striped(found, "a.raw", unit=8 + comm.rank // 2), "w", comm=comm)),
    )
    assert {kind for kind, _ in outcomes} == {"DisagreementError"}
    assert "by 9 B" in outcomes[0][1]


@pytest.mark.parametrize("mode", ["r", "r+", "w", "x"])
def test_a_store_cannot_be_striped(mode: Any, tmp_path: Path) -> None:
    target = hs.Striped(disks(tmp_path), "a.zarr")
    outcomes = hs.threads(3, lambda comm: attempt(lambda: hs.open(target, mode, comm=comm)))
    assert outcomes[0][0] == "UnsupportedError"
    assert "a store cannot be striped" in outcomes[0][1]
    assert "hint:" in outcomes[0][1]
    assert len(set(outcomes)) == 1
    assert not any(list(disk.iterdir()) for disk in disks(tmp_path))


@pytest.mark.parametrize("fmt", ["hdf5", "netcdf4"])
@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_compressed_chunks_can_be_striped(ranks: int, fmt: str, tmp_path: Path) -> None:
    target = hs.Striped(disks(tmp_path), "a.h5", unit=70)
    values = np.arange(300.0).reshape(30, 10)
    names = {"dimension_names": ["y", "x"]}

    def program(comm: Any) -> None:
        rows = hs.Distribution((30, 10), (comm.size, 1), ("block", "block"))
        part = values[rows.slices(comm.rank)]
        with hs.open(target, "w", comm=comm, format=fmt) as file:
            file.write("zipped", part, rows, compression="gzip", chunks=(4, 3), **names)
            file.write("plain", part, rows, chunks=(7, 10), **names)
            file.write("words", part.astype("U").astype(object), rows, **names)
        with hs.open(target, "r+", comm=comm) as file:
            file.write(
                "zipped",
                part[:, :2] * 2,
                hs.Distribution((30, 2), (comm.size, 1), ("block", "block")),
                section=(slice(0, 30), slice(4, 6)),
            )
        with hs.open(target, comm=comm) as file:
            changed = values.copy()
            changed[:, 4:6] = values[:, :2] * 2
            assert (file.read("zipped") == changed).all()
            assert (file.read("zipped", rows) == changed[rows.slices(comm.rank)]).all()
            assert file["zipped"][29, 5] == changed[29, 5]
            assert (file.read("plain") == values).all()
            assert [float(word) for word in file.read("words")[29]] == values[29].tolist()

    hs.threads(ranks, program)
    (tmp_path / "whole.h5").write_bytes(together(disks(tmp_path), "a.h5", 70))
    with h5py.File(tmp_path / "whole.h5") as file:
        assert (file["plain"][...] == values).all()
        assert (file["zipped"][:, :4] == values[:, :4]).all()
    assert hs.verify(tmp_path / "whole.h5").findings == ()


def test_npy_files_can_be_striped(tmp_path: Path) -> None:
    target = hs.Striped(disks(tmp_path), "a.npy", unit=50)
    values = np.arange(100.0).reshape(10, 10)
    rows = hs.Distribution((10, 10), (2,), ("block", "*"))

    def save_and_load(comm: Any) -> np.ndarray:
        hs.save_npy(target, values[5 * comm.rank :][:5], rows, comm=comm)
        return hs.load_npy(target, comm=comm)

    assert all((found == values).all() for found in hs.threads(2, save_and_load))
    (tmp_path / "whole.npy").write_bytes(together(disks(tmp_path), "a.npy", 50))
    assert (np.load(tmp_path / "whole.npy") == values).all()
    (tmp_path / "1/a.npy").unlink()
    with pytest.raises(hs.CorruptError, match=r"1/a\.npy' is missing"):
        hs.load_npy(target)


def test_directories_may_have_any_name_and_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = [os.fsdecode(name) for name in (b"a][b", b"%5d", b"not text \xff", b"two\nlines")]
    for name in names:
        Path(name).mkdir()
    target = hs.Striped([os.fsencode(names[0]), *names[1:]], "[a]%.raw", unit=1000)  # type: ignore[list-item]

    write(target, 4.0)

    def load(comm: Any) -> bool:
        with hs.open_raw(target, comm=comm, header=4, arrays={"a": (SHAPE, "f8")}) as file:
            return bool((file.read("a") == 4.0).all())

    assert hs.threads(3, load) == [True] * 3
    assert together([Path(name) for name in names], "[a]%.raw", 1000)[:4] == b"head"


def test_a_file_that_is_given_up_leaves_the_older_one(tmp_path: Path) -> None:
    found = disks(tmp_path)
    target = hs.Striped(found, "a.raw", unit=1000)
    write(target, 1.0)

    def give_up() -> None:
        with hs.open_raw(target, "w", header=b"head") as file:
            file.write({"a": np.full(SHAPE, 2.0)})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        give_up()
    assert (read(target) == 1.0).all()
    assert [[each.name for each in disk.iterdir()] for disk in found] == [["a.raw"]] * 3


def test_an_existing_file_is_not_replaced_with_mode_x(tmp_path: Path) -> None:
    target = hs.Striped(disks(tmp_path), "a.raw", unit=1000)
    write(target, 1.0)
    with pytest.raises(hs.ExistsError):
        hs.open_raw(target, "x")


def hidden(disk: Path) -> Path:
    """The part of a new file that is not published: beside its place, with a token in its name."""
    return next(each for each in disk.glob(".a.raw.hyperslab-*") if not each.name.endswith("-owners"))


@pytest.mark.parametrize("renamed", range(4))
def test_a_file_that_was_killed_between_its_renames(renamed: int, tmp_path: Path) -> None:
    """Complete and hidden in all directories, it has taken its name in the first few."""
    found = disks(tmp_path)
    target = hs.Striped(found, "a.raw", unit=1000)
    write(target, 1.0)
    kill_writer("striped", tmp_path)
    for disk in found[:renamed]:
        hidden(disk).rename(disk / "a.raw")
    assert (read(target) == (2.0 if renamed else 1.0)).all()
    left = [[each for each in disk.iterdir() if not each.name.endswith("-owners")] for disk in found]
    assert [len(each) for each in left] == [1 if renamed else 2] * 3
    if renamed:
        write(target, 3.0)
    else:
        with pytest.warns(UserWarning, match="removed what an earlier run left unfinished"):
            write(target, 3.0)
    assert (read(target) == 3.0).all()


@pytest.mark.filterwarnings("ignore:.*removed what an earlier run left unfinished")
@pytest.mark.parametrize("seed", range(8))
def test_files_that_were_killed_at_any_moment(seed: int, tmp_path: Path) -> None:
    found = disks(tmp_path)
    target = hs.Striped(found, "a.raw", unit=1000)
    write(target, 0.0)
    kill_writer("stripes", tmp_path, float(np.random.default_rng(seed).uniform(0.05, 0.3)))
    values = read(target)
    assert (values == values[0, 0]).all()
    assert together(found, "a.raw", 1000) == b"head" + values.tobytes("F")
    write(target, -1.0)
    assert (read(target) == -1.0).all()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to any directory")
def test_a_reader_who_may_not_complete_is_told(tmp_path: Path) -> None:
    found = disks(tmp_path)
    target = hs.Striped(found, "a.raw", unit=1000)
    write(target, 1.0)
    kill_writer("striped", tmp_path)
    hidden(found[0]).rename(found[0] / "a.raw")
    found[1].chmod(0o500)
    try:
        with pytest.raises(hs.StorageError, match="completing a publication that was interrupted"):
            read(target)
    finally:
        found[1].chmod(0o700)
    assert (read(target) == 2.0).all()
