"""Consolidated metadata never show an older state than the store has.

zarr-python and xarray read no node where the group that they open has consolidated metadata.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import struct
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest
import zarr

xr = pytest.importorskip("xarray")

RANKS = 3
SHAPE = (6, 4)

#: What others say of stores with and without consolidated metadata.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Failed to open Zarr store with consolidated:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part:UserWarning"),
]

Act = Callable[[hs.Group, hs.Distribution, Any], None]


def mine(dist: hs.Distribution, rank: int, value: float = 1.0) -> np.ndarray[Any, Any]:
    return np.full(dist.local_shape(rank), value)


def rows(extent: int) -> hs.Distribution:
    return hs.Distribution((extent, SHAPE[1]), (RANKS, 1), ("block", "*"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with an array, a step and a group in the step, all consolidated, in the root and in the step."""
    path = tmp_path / "run.zarr"
    with hs.open(path, "w") as store:
        store.write("rho", np.zeros(SHAPE), dimension_names=("x", "y"), chunks=(2, 4))
        with store.step("s0", attributes={"time": 0.0}) as step:
            step.write("rho", np.zeros(SHAPE), dimension_names=("x", "y"))
    root = zarr.open_group(path, mode="r+")
    root.attrs.update({"title": "é", "bad": float("nan"), "list": [1, {"a": None}]})
    zarr.consolidate_metadata(path / "s0")
    zarr.consolidate_metadata(path)
    assert block(path) is not None
    assert block(path / "s0") is not None
    return path


def block(path: Path) -> Any:
    """The consolidated metadata of a group as its file has them."""
    return json.loads((path / "zarr.json").read_text()).get("consolidated_metadata")


def on_ranks(path: Path, act: Act, mode: Any = "r+", **options: Any) -> None:
    """Let 3 threads open a store and do something with it."""

    def one(comm: hs.ThreadComm) -> None:
        with hs.open(path, mode, comm=comm, **options) as store:
            act(store, rows(SHAPE[0]), comm)

    hs.threads(RANKS, one)


# ---- what changes a store --------------------------------------------------------------------------------------


def read(store: hs.Group, dist: hs.Distribution, _: Any) -> None:
    store.read("rho", dist)


def write(store: hs.Group, dist: hs.Distribution, comm: Any) -> None:
    store.write("u", mine(dist, comm.rank), dist, dimension_names=("x", "y"))


def write_several(store: hs.Group, dist: hs.Distribution, comm: Any) -> None:
    store.write({name: mine(dist, comm.rank) for name in ("u", "v")}, dist, dimension_names=("x", "y"))


def write_later(store: hs.Group, dist: hs.Distribution, comm: Any) -> None:
    store.iwrite("u", mine(dist, comm.rank), dist, dimension_names=("x", "y"), staged=True)
    store.flush()


def overwrite(store: hs.Group, _: hs.Distribution, comm: Any) -> None:
    dist = rows(3)
    store.write("rho", mine(dist, comm.rank), dist, dimension_names=("x", "y"), dtype="f4", overwrite=True)


def append(store: hs.Group, _: hs.Distribution, comm: Any) -> None:
    dist = rows(3)
    store.append("rho", mine(dist, comm.rank), dist)


def step(store: hs.Group, dist: hs.Distribution, comm: Any) -> None:
    with store.step("s1", attributes={"time": 1.0}) as made:
        made.write("rho", mine(dist, comm.rank), dist, dimension_names=("x", "y"))
        made.attrs.replace({"time": 2.0})


def below(store: hs.Group, dist: hs.Distribution, comm: Any) -> None:
    store.group("s0").write("u", mine(dist, comm.rank), dist, dimension_names=("x", "y"))


def below_append(store: hs.Group, _: hs.Distribution, comm: Any) -> None:
    dist = rows(3)
    store.group("s0").append("rho", mine(dist, comm.rank), dist)


def step_below(store: hs.Group, dist: hs.Distribution, comm: Any) -> None:
    with store.group("s0").step("inner") as made:
        made.write("rho", mine(dist, comm.rank), dist)


CHANGES = (write, write_several, write_later, overwrite, append, step, below, below_append, step_below)


def seen(path: Path) -> dict[str, Any]:
    """All that zarr-python shows of a store, opened as people open it."""
    shown: dict[str, Any] = {}

    def walk(group: zarr.Group, prefix: str) -> None:
        shown[prefix] = dict(group.attrs)
        for name, array in sorted(group.arrays()):
            shown[f"{prefix}/{name}"] = (array.shape, str(array.dtype), np.asarray(array[...]).tolist())
        for name, inner in sorted(group.groups()):
            walk(inner, f"{prefix}/{name}")

    walk(zarr.open_group(path, mode="r"), "")
    return shown


def there(path: Path) -> dict[str, Any]:
    """The same, read node by node from a copy without consolidated metadata."""
    bare = path.with_name(f"{path.name}.bare")
    shutil.copytree(path, bare)
    for file in bare.rglob("zarr.json"):
        document = json.loads(file.read_text())
        document.pop("consolidated_metadata", None)
        file.write_text(json.dumps(document))
    shown = seen(bare)
    shutil.rmtree(bare)
    return shown


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_changed_is_seen(path: Path, change: Act) -> None:
    before = repr(there(path))
    on_ranks(path, change)
    found = there(path)
    assert repr(found) != before
    # As text, since NaN among the attributes does not equal itself.
    assert repr(seen(path)) == repr(found)
    assert repr(seen(path / "s0")) == repr(there(path / "s0"))


@pytest.mark.parametrize("change", [write, append, overwrite, step, below], ids=lambda change: change.__name__)
def test_xarray_sees_it(path: Path, change: Act) -> None:
    on_ranks(path, change)
    groups = xr.open_groups(path, engine="zarr")
    assert set(groups) == ({"/", "/s0", "/s1"} if change is step else {"/", "/s0"})
    for group, found in groups.items():
        with hs.open(path / group[1:]) as store:
            for theirs in (found, xr.open_zarr(path / group[1:])):
                assert {str(name) for name in theirs.data_vars} == set(store.arrays())
                for name in store.arrays():
                    np.testing.assert_array_equal(theirs[name].values, store.read(name))


def test_nothing_else_of_the_group_changes(path: Path) -> None:
    before = json.loads((path / "zarr.json").read_text())
    on_ranks(path, write)
    after = json.loads((path / "zarr.json").read_text())
    assert after.get("consolidated_metadata") is None
    before.pop("consolidated_metadata")
    after.pop("consolidated_metadata", None)
    # NaN is a word that is not JSON, and must not become a text.
    assert json.dumps(after) == json.dumps(before)
    assert np.isnan(zarr.open_group(path, mode="r").attrs["bad"])


def test_what_changes_nothing_leaves_them(path: Path) -> None:
    before = (path / "zarr.json").read_bytes(), (path / "s0" / "zarr.json").read_bytes()

    def act(store: hs.Group, dist: hs.Distribution, comm: Any) -> None:
        store.read("rho", dist)
        store.group("s0").read("rho", dist)
        store["rho"]

    def refused(store: hs.Group, dist: hs.Distribution, comm: Any) -> None:
        with pytest.raises(hs.ExistsError):
            store.write("rho", mine(dist, comm.rank), dist)
        with pytest.raises(hs.InvalidError):
            store.write("u", mine(dist, comm.rank), dist, chunks=(0, 0))
        with pytest.raises(hs.Error):
            store.append("rho", np.ones((1, 1)), hs.Distribution.replicated((1, 1), RANKS))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        on_ranks(path, act, "r")
        on_ranks(path, act)
        on_ranks(path, refused)
    assert ((path / "zarr.json").read_bytes(), (path / "s0" / "zarr.json").read_bytes()) == before


# ---- in which order --------------------------------------------------------------------------------------------


@contextmanager
def watched(*directories: Path) -> Iterator[list[tuple[Path, str]]]:
    """What the system says became different in directories, in its order: filled at the end."""
    libc = ctypes.CDLL(None, use_errno=True)
    file = libc.inotify_init1(os.O_NONBLOCK)
    if file < 0:
        pytest.skip("this system has no inotify")
    # IN_CLOSE_WRITE, IN_MOVED_TO, IN_CREATE.
    marks = {libc.inotify_add_watch(file, os.fsencode(path), 0x8 | 0x80 | 0x100): path for path in directories}
    found: list[tuple[Path, str]] = []
    try:
        yield found
        while True:
            try:
                events = os.read(file, 1 << 16)
            except BlockingIOError:
                break
            at = 0
            while at < len(events):
                mark, _, _, length = struct.unpack_from("iIII", events, at)
                name = events[at + 16 : at + 16 + length].rstrip(b"\0").decode()
                found.append((marks[mark], name))
                at += 16 + length
    finally:
        os.close(file)


@pytest.mark.parametrize(
    ("change", "inside", "name"),
    [(write, "", "u"), (write_several, "", "v"), (step, "", "s1"), (append, "rho", "zarr.json"), (below, "s0", "u")],
    ids=["write", "write_several", "step", "append", "below"],
)
def test_they_go_before_anything_else_is_seen(path: Path, change: Act, inside: str, name: str) -> None:
    """A crash at any point leaves readers with no consolidated metadata, or with what they are of."""
    directories = {path, path / inside, path / "s0"}
    with watched(*directories) as found:
        on_ranks(path, change)
    shown = found.index((path / inside, name))
    assert (path, "zarr.json") in found[:shown], found
    if inside == "s0":
        assert (path / "s0", "zarr.json") in found[:shown], found


# ---- above what was opened -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["r+", "w"])
@pytest.mark.parametrize("depth", [1, 2])
def test_those_above_are_named_in_one_warning(path: Path, mode: str, depth: int) -> None:
    """They belong to a store that was not opened, so they stay, and rank 0 says so."""
    inner = path / "s0" if depth == 1 else path / "s0" / "deep"
    if depth == 2:
        zarr.open_group(path / "s0", mode="r+", use_consolidated=False).create_group("deep")
    before = (path / "zarr.json").read_bytes()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        on_ranks(inner, write, mode)
    messages = [str(one.message) for one in told if "consolidated" in str(one.message)]
    assert len(messages) == 1, told
    assert all(one.category is UserWarning for one in told)
    above = [path, path / "s0"][:depth]
    assert all(f"'{group}'" in messages[0] for group in above)
    assert (path / "zarr.json").read_bytes() == before
    assert block(inner) is None
    with hs.open(inner) as store:
        assert "u" in store.arrays()


def test_whoever_reads_is_not_warned(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        on_ranks(path / "s0", read, "r")


# ---- written anew ----------------------------------------------------------------------------------------------


def consolidate(store: hs.Group, _: hs.Distribution, __: Any) -> None:
    store.consolidate()


def test_they_can_be_written_anew(path: Path) -> None:
    """What zarr-python writes of the same nodes, and what it and xarray read."""

    def act(store: hs.Group, dist: hs.Distribution, comm: Any) -> None:
        write(store, dist, comm)
        step_below(store, dist, comm)
        store.consolidate()

    on_ranks(path, act)
    ours = block(path)
    assert sorted(ours["metadata"]) == ["rho", "s0", "s0/inner", "s0/inner/rho", "s0/rho", "u"]
    copy = path.with_name("copy.zarr")
    shutil.copytree(path, copy)
    zarr.consolidate_metadata(copy)
    theirs = block(copy)

    def without_defaults(found: Any) -> Any:
        nodes = {name: dict(node) for name, node in found["metadata"].items()}
        for node in nodes.values():
            node.pop("storage_transformers", None)
            node.setdefault("attributes", {})
        return json.dumps(found | {"metadata": nodes}, sort_keys=True)

    assert without_defaults(ours) == without_defaults(theirs)
    assert zarr.open_consolidated(path, mode="r").metadata.consolidated_metadata is not None
    assert repr(seen(path)) == repr(there(path))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = xr.open_zarr(path, consolidated=True)
    assert set(found) == {"rho", "u"}
    np.testing.assert_array_equal(found["u"].values, np.ones(SHAPE))


def test_they_go_again_with_the_next_change(path: Path) -> None:
    on_ranks(path, consolidate)
    assert block(path) is not None
    on_ranks(path, append)
    assert block(path) is None
    assert repr(seen(path)) == repr(there(path))


def test_those_of_a_group_below(path: Path) -> None:
    def act(store: hs.Group, dist: hs.Distribution, comm: Any) -> None:
        below(store, dist, comm)
        store.group("s0").consolidate()

    on_ranks(path, act)
    assert block(path) is None
    assert sorted(block(path / "s0")["metadata"]) == ["rho", "u"]
    assert repr(seen(path / "s0")) == repr(there(path / "s0"))
    assert repr(seen(path)) == repr(there(path))


def test_a_store_that_is_open_for_reading_is_not_written_to(path: Path) -> None:
    before = (path / "zarr.json").read_bytes()

    def one(comm: hs.ThreadComm) -> str:
        with hs.open(path, comm=comm) as store, pytest.raises(hs.InvalidError) as caught:
            store.consolidate()
        return str(caught.value)

    assert len(set(hs.threads(RANKS, one))) == 1
    assert (path / "zarr.json").read_bytes() == before
