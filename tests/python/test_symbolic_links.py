"""Paths that are symbolic links, as to scratch: the link stays, and what it leads to is replaced, all or nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest

ENDS = ("h5", "nc", "nc4", "zarr", "npy", "raw")


def write(path: Path, value: float, *, mode: str = "w", comm: Any = None, fails: bool = False) -> None:
    array = np.full(4, value)
    dist = hs.Distribution.replicated((4,), comm.size if comm else 1)
    if path.suffix == ".npy":
        hs.save_npy(path, array, dist, comm=comm)
        return
    options: dict[str, Any] = {"format": "netcdf4"} if path.suffix == ".nc4" else {}
    make: Any = hs.open_raw if path.suffix == ".raw" else hs.open
    with make(path, mode, comm=comm, **options) as file:
        file.write("a", array, dist)
        if fails:
            message = "of the program"
            raise ValueError(message)


def read(path: Path) -> list[float]:
    if path.suffix == ".npy":
        return hs.load_npy(path).tolist()
    if path.suffix == ".raw":
        return np.fromfile(path).tolist()
    with hs.open(path) as file:
        return file["a"][...].tolist()


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("ranks", [1, 3])
def test_what_a_link_leads_to_is_replaced(ranks: int, end: str, tmp_path: Path) -> None:
    scratch, home = tmp_path / "scratch", tmp_path / "home"
    scratch.mkdir()
    home.mkdir()
    target, link, other = scratch / f"run.{end}", home / f"run.{end}", home / f"again.{end}"
    link.symlink_to(Path("..") / "scratch" / target.name)
    other.symlink_to(link.name)
    # Nothing is there yet.
    hs.threads(ranks, lambda comm: write(other, 1.0, comm=comm))
    assert read(target) == read(link) == [1.0] * 4
    hs.threads(ranks, lambda comm: write(link, 2.0, comm=comm))
    assert link.is_symlink()
    assert other.is_symlink()
    assert not target.is_symlink()
    assert read(target) == read(other) == [2.0] * 4
    assert sorted(home.iterdir()) == sorted([link, other])
    assert [*scratch.iterdir()] == [target]


@pytest.mark.parametrize("end", [end for end in ENDS if end != "npy"])
def test_what_a_link_leads_to_stays_if_the_program_fails(end: str, tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    target, link = tmp_path / "scratch" / f"run.{end}", tmp_path / f"run.{end}"
    write(target, 1.0)
    link.symlink_to(target)
    with pytest.raises(hs.ExistsError):
        write(link, 2.0, mode="x")
    if end != "zarr":
        with pytest.raises(ValueError, match="of the program"):
            write(link, 2.0, fails=True)
        assert read(target) == [1.0] * 4
    target.rename(tmp_path / f"elsewhere.{end}")
    with pytest.raises(hs.NotFoundError, match="does not exist"):
        hs.open(link) if end != "raw" else hs.open_raw(link, "r", arrays={"a": ((4,), "f8")})
    write(link, 3.0, mode="x")
    assert link.is_symlink()
    assert read(target) == [3.0] * 4


def test_a_link_into_a_directory_that_is_not_there(tmp_path: Path) -> None:
    link = tmp_path / "run.h5"
    link.symlink_to(tmp_path / "nothing" / "run.h5")
    with pytest.raises(hs.Error, match=r"run\.h5"):
        write(link, 1.0)
    assert link.is_symlink()
    round_and_round = tmp_path / "round.h5"
    round_and_round.symlink_to(round_and_round)
    with pytest.raises(hs.Error, match=r"round\.h5"):
        write(round_and_round, 1.0)
    assert round_and_round.is_symlink()
