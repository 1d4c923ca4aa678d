"""Names of objects in HDF5 files: several of one object, links that lead to others, and what leads nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import numpy as np
import pytest

RANKS = (1, 3, 4)


def names_by_h5py(path: Path) -> tuple[dict[str, Any], set[str]]:
    """Values of all datasets and paths of all groups, by all names that h5py finds them by, without circles."""
    arrays: dict[str, Any] = {}
    groups: set[str] = set()

    def walk(group: h5py.Group, within: str, above: tuple[Any, ...]) -> None:
        for name in group:
            path = f"{within}{name}"
            try:
                found = group[name]
            except (KeyError, OSError, RuntimeError):
                continue
            where = group.get(name, getlink=True)
            if isinstance(where, h5py.ExternalLink):
                continue
            if isinstance(found, h5py.Dataset):
                arrays[path] = found[...]
            elif isinstance(found, h5py.Group) and found.id not in above:
                groups.add(path)
                walk(found, f"{path}/", (*above, found.id))

    with h5py.File(path) as data:
        walk(data, "", (data["/"].id,))
    return arrays, groups


def paths(file: Any) -> tuple[dict[str, Any], set[str]]:
    """The same, as we have them."""
    arrays = {name: file.read(name) for name in file}
    groups: set[str] = set()

    def walk(group: Any, within: str) -> None:
        for name in group.groups():
            groups.add(f"{within}{name}")
            walk(group.group(name), f"{within}{name}/")

    walk(file, "")
    return arrays, groups


def nexus(path: Path, libver: str) -> None:
    """As instruments write them: a detector's data by several names, links of all kinds, and circles."""
    with h5py.File(path, "w", libver=libver) as data:
        detector = data.create_group("entry/instrument/detector")
        detector["counts"] = np.arange(12).reshape(3, 4)
        detector.create_dataset("image", data=np.arange(30.0), chunks=(7,), maxshape=(None,), compression="gzip")
        detector["counts"].attrs["units"] = "1"
        data["entry/data"] = detector
        data["entry/plot"] = detector["counts"]
        data["direct"] = h5py.SoftLink("/entry/data/image")
        data["entry/beside"] = h5py.SoftLink("plot")
        data["entry/twice"] = h5py.SoftLink("/direct")
        data["through"] = h5py.SoftLink("/entry/instrument/./detector")
        data["root"] = h5py.SoftLink("/")
        data["entry/above"] = data["entry"]
        detector["up"] = data["entry"]
        data["nowhere"] = h5py.SoftLink("/entry/missing")
        data["a"], data["b"] = h5py.SoftLink("/b"), h5py.SoftLink("/a")
        data["other"] = h5py.ExternalLink("other.h5", "/x")
        data["kind"] = np.dtype("f4")
        data["kind again"] = h5py.SoftLink("/kind")


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("ranks", RANKS)
def test_objects_are_found_by_all_their_names(ranks: int, libver: str, tmp_path: Path) -> None:
    nexus(tmp_path / "a.h5", libver)
    arrays, groups = names_by_h5py(tmp_path / "a.h5")
    assert {"entry/data/counts", "entry/plot", "through/image", "direct", "entry/twice", "entry/beside"} <= {*arrays}

    def one(comm: hs.ThreadComm) -> None:
        with hs.open(tmp_path / "a.h5", comm=comm) as file:
            found, found_groups = paths(file)
            # Soft links to groups that have them are circles, which h5py goes round once.
            assert {*found} == {name for name in arrays if not name.startswith("root/")}
            assert found_groups == {name for name in groups if name.split("/")[0] != "root"}
            assert all(np.array_equal(values, arrays[name]) for name, values in found.items())
            assert file["entry/plot"].attrs["units"] == file["through/counts"].attrs["units"] == "1"

    hs.threads(ranks, one)


def test_what_leads_elsewhere_is_named_as_that(tmp_path: Path) -> None:
    nexus(tmp_path / "a.h5", "latest")
    with hs.open(tmp_path / "a.h5") as file:
        for name, said in {
            "nowhere": "a soft link to '/entry/missing', where nothing is",
            "a": "a soft link to '/b', where nothing is",
            "other": "an external link to '/x' in 'other.h5'",
        }.items():
            with pytest.raises(
                hs.UnsupportedError, match=f"'{name}' is in .*: expected an array of this file, found {said}"
            ):
                file.read(name)
        # On the way, too.
        for call in (file.read, file.group):
            with pytest.raises(
                hs.UnsupportedError, match=r"'other' is in .* found an external link to '/x' in 'other.h5'"
            ):
                call("other/deeper/array")


@pytest.mark.parametrize("ranks", RANKS)
def test_changes_by_one_name_are_seen_by_all(ranks: int, tmp_path: Path) -> None:
    nexus(tmp_path / "a.h5", "latest")

    def one(comm: hs.ThreadComm) -> None:
        with hs.open(tmp_path / "a.h5", "r+", comm=comm) as file:
            whole = hs.Distribution.replicated((1, 4), comm.size)
            file.write("entry/plot", np.full((1, 4), 7), whole, section=slice(1, 2))
            file.append("entry/data/image", np.arange(3.0), hs.Distribution.replicated((3,), comm.size))
            file["entry/data/counts"].attrs["units"] = "counts"
            file.write("entry/data/new", np.arange(2), hs.Distribution.replicated((2,), comm.size))
            file.delete("entry/plot")

    hs.threads(ranks, one)
    arrays = names_by_h5py(tmp_path / "a.h5")[0]
    with h5py.File(tmp_path / "a.h5") as data:
        assert data["entry/instrument/detector/counts"].attrs["units"] == "counts"
        assert "entry/plot" not in data
        assert data["entry/above"] == data["entry"]
        assert data.get("nowhere", getlink=True).path == "/entry/missing"
    for within in ("entry/instrument/detector", "entry/data", "through"):
        assert arrays[f"{within}/counts"][1].tolist() == [7] * 4
        assert arrays[f"{within}/image"].tolist() == [*range(30), 0, 1, 2]
        assert arrays[f"{within}/new"].tolist() == [0, 1]
    with hs.open(tmp_path / "a.h5") as file:
        found = paths(file)[0]
    assert {*found} == {name for name in arrays if not name.startswith("root/")}
    assert all(np.array_equal(values, arrays[name]) for name, values in found.items())


def test_a_broken_object_hinders_only_itself(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as data:
        data["fine"], data["group/inside"], data["broken"] = np.arange(3), np.arange(2), np.arange(4)
        data["far/inner/array"] = np.arange(5)
        places = [h5py.h5o.get_info(data[name].id).addr for name in ("broken", "far/inner")]
    content = bytearray((tmp_path / "a.h5").read_bytes())
    for place in places:
        content[place + 10] ^= 0xFF
    (tmp_path / "a.h5").write_bytes(content)
    with hs.open(tmp_path / "a.h5") as file:
        assert sorted(file) == ["fine", "group/inside"]
        assert file.read("group/inside").tolist() == [0, 1]
        for name in ("broken", "far/inner"):
            with pytest.raises(hs.CorruptError, match=f"'{name}' is in .*checksum"):
                file.read(name)


def test_very_many_paths_are_refused(tmp_path: Path) -> None:
    """Thirty groups, each in the one before by two names, make a thousand million paths."""
    with h5py.File(tmp_path / "a.h5", "w") as data:
        group = data.create_group("0")
        for _ in range(30):
            inner = group.create_group("a")
            group["b"] = inner
            group = inner
    with pytest.raises(hs.UnsupportedError, match="further names of objects"):
        hs.open(tmp_path / "a.h5")
