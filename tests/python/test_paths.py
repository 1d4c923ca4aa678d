"""Paths as people give them, at every door that takes one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest
from hyperslab._clean import clean

DOORS: dict[str, Callable[[Any], Any]] = {
    "open": hs.open,
    "open w": lambda path: hs.open(path, "w"),
    "open_raw": lambda path: hs.open_raw(path, header=0, arrays={"a": ((4,), "<f8")}),
    "open_raw w": lambda path: hs.open_raw(path, "w"),
    "load_npy": hs.load_npy,
    "save_npy": lambda path: hs.save_npy(path, np.ones(4)),
    "verify": hs.verify,
    "clean": lambda path: clean(path, dry_run=True),
    "striped": lambda path: hs.open_raw(hs.Striped([path, path + "2"], "a.raw"), "w"),
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory, which is also where the program runs."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("before", ["~", "file://{}", "file://localhost{}", "FILE://{}"])
def test_homes_and_urls_of_files_are_paths(before: str, home: Path) -> None:
    start = before.format(home)
    with hs.open(f"{start}/run.zarr", "w") as store:
        store.write("rho", np.arange(4.0))
        assert store.path == str(home / "run.zarr")
    with hs.open_raw(f"{start}/a.raw", "w") as file:
        file.write({"a": np.arange(4.0)})
    hs.save_npy(f"{start}/a.npy", np.arange(4.0))
    assert hs.load_npy(f"{start}/a.npy").tolist() == [0, 1, 2, 3]
    assert not hs.verify(f"{start}/run.zarr").damaged
    assert clean(f"{start}/run.zarr", dry_run=True) == []
    assert sorted(path.name for path in home.iterdir()) == ["a.npy", "a.raw", "run.zarr"]


def test_urls_escape_what_paths_do_not(home: Path) -> None:
    hs.open(f"file://{home}/a%20b.zarr", "w").close()
    hs.open(f"{home}/a%20b.zarr", "w").close()
    assert sorted(path.name for path in home.iterdir()) == ["a b.zarr", "a%20b.zarr"]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("url", ["s3://bucket/run.zarr", "gs://b/x", "https://host/run.zarr", "abcd+ef://x", "s3:/b/x"])
def test_other_urls_make_nothing(door: str, url: str, home: Path) -> None:
    with pytest.raises(hs.UnsupportedError, match="which this version cannot open: expected a path, file:///path"):
        DOORS[door](url)
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("url", ["file://host/x.zarr", "file://x.zarr", "~nobody-has-this-name/x.zarr"])
def test_what_is_no_place_makes_nothing(url: str, home: Path) -> None:
    with pytest.raises(hs.InvalidError, match="hint: "):
        hs.open(url, "w")
    assert list(home.iterdir()) == []


def test_a_path_of_pathlib_that_was_a_url_is_seen(home: Path) -> None:
    with pytest.raises(hs.UnsupportedError, match="s3"):
        hs.open(Path("s3://bucket/run.zarr"), "w")
    hs.open(Path(f"file://{home}/a.zarr"), "w").close()
    hs.open(Path("~/b.zarr"), "w").close()
    assert sorted(path.name for path in home.iterdir()) == ["a.zarr", "b.zarr"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("x.zip", "zip file, which cannot be written in parallel"),
        ("x.npy", "read it with hyperslab.load_npy"),
        ("x.npz", "archive of NumPy"),
        ("x.raw", "open it with hyperslab.open_raw"),
        ("x.bin", "open it with hyperslab.open_raw"),
    ],
)
@pytest.mark.parametrize("mode", ["r", "w"])
def test_names_of_other_formats_make_no_store(name: str, words: str, mode: Any, home: Path) -> None:
    with pytest.raises(hs.UnsupportedError, match=words):
        hs.open(name, mode)
    assert list(home.iterdir()) == []


def test_a_store_may_have_any_name(home: Path) -> None:
    hs.open("x.h5", "w", format="zarr").close()
    hs.open("x.h5", format="zarr").close()
    with pytest.raises(hs.NotFoundError, match=r"found a directory\n.*format='zarr'"):
        hs.open("x.h5")
    hs.open("odd:name", "w").close()
    hs.open("./~", "w").close()
    assert sorted(path.name for path in home.iterdir()) == ["odd:name", "x.h5", "~"]


def test_ranks_hear_of_a_path_of_one_rank(home: Path) -> None:
    def one(comm: hs.ThreadComm) -> str:
        with pytest.raises(hs.UnsupportedError) as caught:
            hs.open("s3://bucket/x" if comm.rank == 1 else home / "x.zarr", "w", comm=comm)
        return str(caught.value)

    texts = hs.threads(3, one)
    assert len(set(texts)) == 1
    assert "on rank 1" in texts[0]
    assert "hint: copy it to a file system" in texts[0]
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("place", [hs.MemoryStore(), hs.MemoryStore() / "run.zarr", hs.ObjectMemory(), 5])
def test_what_cannot_be_verified_says_so(place: Any) -> None:
    with pytest.raises(hs.InvalidError, match=f"only paths can be verified, but this is {type(place).__name__}"):
        hs.verify(place)


def test_nothing_is_called_whole_that_was_not_checked(tmp_path: Path) -> None:
    with hs.open(tmp_path / "a.zarr", "w") as store:
        store.write("a", np.arange(8.0))
    assert hs.verify(tmp_path / "a.zarr").text.endswith("result: no damage found")
    metadata = tmp_path / "a.zarr/a/zarr.json"
    text = metadata.read_text()
    metadata.write_text(text.replace('"crc32c"', '"of_tomorrow"'))
    assert hs.verify(tmp_path / "a.zarr").text.endswith("result: nothing was checked")
    with hs.open(tmp_path / "a.zarr", "r+") as store:
        store.write("b", np.arange(8.0))
    result = hs.verify(tmp_path / "a.zarr")
    assert result.text.endswith("result: no damage found in what was checked")
    assert "no damage found in what was checked" in repr(result)
    np.arange(8.0).tofile(tmp_path / "a.raw")
    text = hs.verify(tmp_path / "a.raw").text
    assert text.endswith("nothing else was checked, since the arrays of the file are not known")


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("kind", ["hdf5", "netcdf3", "netcdf4", "zarr"])
def test_what_a_name_does_not_tell_the_first_bytes_do(kind: Any, ranks: int, tmp_path: Path) -> None:
    path = tmp_path / "restart"
    with hs.open(path, "w", format=kind) as file:
        file.write("a", np.arange(3.0), dimension_names=["x"])

    def program(comm: Any) -> None:
        for mode in ("r", "r+", "a"):
            with hs.open(path, mode, comm=comm) as file:
                assert file.read("a").tolist() == [0, 1, 2]
                assert (
                    type(file).__name__
                    == {
                        "hdf5": "Hdf5File",
                        "netcdf3": "NetcdfFile",
                        "netcdf4": "Hdf5File",
                        "zarr": "Group",
                    }[kind]
                )

    hs.threads(ranks, program)
    hs.save_npy(tmp_path / "array", np.arange(3.0))
    with pytest.raises(hs.UnsupportedError, match=r"is a file of format 'npy'\n  hint: open npy files with load_npy"):
        hs.open(tmp_path / "array")
    (tmp_path / "text").write_text("nothing of ours")
    with pytest.raises(hs.NotFoundError, match="is not a Zarr store: expected a directory, found a file"):
        hs.open(tmp_path / "text")
