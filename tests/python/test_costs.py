"""Costs follow what is stored, and memory what is asked for: what files declare costs nothing.

Held by counting, not by time: what is asked of the library, and what it asks of storage.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import numpy as np
import pytest
from hyperslab import _core
from hyperslab.__main__ import main

from peak import PEAK

#: How datasets are made so that each kind of index of chunks occurs, with the library that writes it.
INDEXES: dict[str, tuple[str, dict[str, Any]]] = {
    "tree 1": ("earliest", {}),
    "tree 1, filtered": ("earliest", {"compression": "gzip"}),
    "fixed array": ("latest", {}),
    "fixed array, filtered": ("latest", {"compression": "gzip", "fletcher32": True}),
    "extensible array": ("latest", {"maxshape": (None, 64)}),
    "tree 2": ("latest", {"maxshape": (None, None)}),
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the check of an HDF5 file asks for boxes of elements, and for places of chunks."""
    from hyperslab._verify import _hdf5

    counts: Counter[str] = Counter()
    read, stored = _hdf5._Reader.read, _core.stored_chunks

    def counted_read(self: Any, *given: Any) -> None:
        counts["reads"] += 1
        read(self, *given)

    def counted_stored(*given: Any) -> Any:
        counts["lookups"] += 1
        return stored(*given)

    monkeypatch.setattr(_hdf5._Reader, "read", counted_read)
    monkeypatch.setattr(_core, "stored_chunks", counted_stored)
    return counts


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("rows", [4, 1 << 20, 1 << 56])
def test_a_dataset_without_chunks_costs_nothing_to_verify(
    index: str, rows: int, tmp_path: Path, asked: Counter[str]
) -> None:
    libver, options = INDEXES[index]
    if "maxshape" not in options and index.startswith("fixed") and rows > 1 << 20:
        rows = 1 << 50
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        file.create_dataset("a", shape=(rows, 64), chunks=(1, 1), dtype="u1", **options)
    found = hs.verify(path)
    assert not found.findings
    (array,) = found.arrays
    assert (array.chunks, array.absent, array.checked) == (64 * rows, 64 * rows, 0)
    assert asked == {"lookups": 1}


@pytest.mark.parametrize("index", INDEXES)
def test_verify_reads_what_is_stored(
    index: str, tmp_path: Path, asked: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some chunks of many: as many are checked as h5py says that there are, however they are looked up."""
    from hyperslab._verify import _hdf5

    libver, options = INDEXES[index]
    path, random = tmp_path / "a.h5", np.random.default_rng(7)
    with h5py.File(path, "w", libver=libver) as file:
        data = file.create_dataset("a", shape=(1 << 14, 64), chunks=(2, 4), dtype="u1", **options)
        data[0:40, 0:20] = 1
        for row, column in zip(random.integers(0, 1 << 14, 30), random.integers(0, 64, 30), strict=True):
            data[row, column] = 2
        stored = data.id.get_num_chunks()
    for most in (1 << 16, 16):
        monkeypatch.setattr(_hdf5, "PAGE_CHUNKS", most)
        asked.clear()
        found = hs.verify(path)
        assert not found.findings
        (array,) = found.arrays
        assert (array.checked, array.absent) == (stored, array.chunks - stored)
        assert asked["reads"] <= stored
        assert asked["lookups"] == stored // most + 1


def test_a_damaged_chunk_among_few_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        data = file.create_dataset("a", shape=(1 << 40,), chunks=(8,), dtype="u8", fletcher32=True)
        for at in (0, 1 << 20, 1 << 39):
            data[at] = 7
        place = data.id.get_chunk_info(1).byte_offset
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    found = hs.verify(path)
    (array,) = found.arrays
    assert (array.checked, array.damaged, array.absent) == (2, 1, (1 << 37) - 3)
    assert [finding.section for finding in found.of("damage")] == [((1 << 20, (1 << 20) + 8),)]


def test_sections_of_what_is_hardly_stored(tmp_path: Path) -> None:
    """However many chunks lie between what is asked for, and also where nobody wrote anything."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        data = file.create_dataset("chunks", shape=(1 << 60,), chunks=(1,), dtype="u1", fillvalue=3)
        data[1 << 59] = 7
        file.create_dataset("nowhere", shape=(1 << 59,), dtype="u1")
    with hs.open(path) as file:
        assert file["chunks"][:: 1 << 58].tolist() == [3, 3, 7, 3]
        assert file["nowhere"][(1 << 58) : (1 << 58) + 3].tolist() == [0, 0, 0]
    found = {array.name: array for array in hs.verify(path).arrays}
    assert (found["chunks"].checked, found["chunks"].absent) == (1, (1 << 60) - 1)
    assert (found["nowhere"].chunks, found["nowhere"].absent) == (1, 1)


@pytest.mark.parametrize("name", ["a.h5", "a.nc", "a.zarr"])
def test_attributes_are_parsed_once(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for each of them; a change is seen."""
    attributes = {f"a{number}": number for number in range(50)}
    with hs.open(tmp_path / name, "w", **({} if name == "a.zarr" else {"attributes": attributes})) as group:
        if name == "a.zarr":
            group.attrs.update(attributes)
    parsed = Counter[str]()
    loads = json.loads

    def counted(text: str, **given: Any) -> Any:
        parsed["all"] += "a49" in text
        return loads(text, **given)

    with hs.open(tmp_path / name, "r" if name == "a.nc" else "r+") as group:
        monkeypatch.setattr(json, "loads", counted)
        assert dict(group.attrs) == attributes
        assert [group.attrs[each] for each in attributes] == list(range(50))
        assert parsed["all"] == 1
        if name != "a.nc":
            group.attrs["a0"] = 7
            assert group.attrs["a0"] == 7
            assert parsed["all"] <= 3
    with pytest.raises(hs.InvalidError, match="is closed"):
        dict(group.attrs)


def test_inspect_of_many_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All are shown; `of_many_groups_few_are_looked_at` counts what each of them costs."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for number in range(300):
            file.create_group(f"g{number:03}/inner").attrs["n"] = number
        file["g007/a"] = np.arange(3.0)
    assert main(["inspect", str(tmp_path / "a.h5"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [group["groups"]["inner"]["attributes"]["n"] for group in told["groups"].values()] == list(range(300))
    assert list(told["groups"]["g007"]["arrays"]) == ["a"]


def run(program: str, *arguments: object) -> str:
    """What a program prints that runs by itself."""
    ended = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


#: Lets a process have so much more memory than it has at its start, or after a first check, and verifies.
LIMITED = """
import resource, sys
import hyperslab as hs
path, first, more = sys.argv[1], sys.argv[2], int(sys.argv[3]) << 20
if first:
    hs.verify(first)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + more, used + more))
found = hs.verify(path)
for array in found.arrays:
    print(array.name, array.checked, array.damaged, array.unchecked)
print(*(f"{each.severity} {each.kind}" for each in found.findings))
"""


@pytest.mark.parametrize("kind", ["zarr", "zarr, gzip", "hdf5", "hdf5, gzip"])
@pytest.mark.parametrize(
    ("more", "begins"), [(64, "anew"), (100, "anew"), (200, "anew"), (64, "after"), (160, "after"), (400, "after")]
)
def test_a_limit_of_memory_leaves_large_chunks_unchecked(kind: str, more: int, begins: str, tmp_path: Path) -> None:
    """And nothing else: no chunk is called damaged, and the process goes on."""
    large = np.zeros(4 << 20)
    given: dict[str, Any] = {"compression": "gzip"} if "gzip" in kind else {}
    path = tmp_path / ("a.zarr" if "zarr" in kind else "a.h5")
    if "zarr" in kind:
        with hs.open(path, "w", durable=False, buffer_bytes=1 << 30) as store:
            store.write("large", large, chunks=large.shape, **given)
            store.write({"first": np.ones(4), "last": np.ones(4)})
    else:
        with h5py.File(path, "w") as file:
            file.create_dataset("large", data=large, chunks=large.shape, **given)
            file["first"] = file["last"] = np.ones(4)
    first = tmp_path / "first.zarr"
    with hs.open(first, "w", durable=False) as store:
        store.write("a", np.ones(4))
    *arrays, findings = run(LIMITED, path, first if begins == "after" else "", more).splitlines()
    found = {name: counts for name, *counts in (line.split() for line in arrays)}
    assert found["first"] == found["last"] == ["1", "0", "0"]
    assert found["large"] in (["0", "0", "1"], ["1", "0", "0"])
    assert findings == ("unchecked buffer" if found["large"][0] == "0" else "")
    if more <= 100:
        assert found["large"] == ["0", "0", "1"]


#: How much memory the opening of a store takes [B].
OPENED = (
    PEAK
    + """
import sys
import hyperslab as hs
before = peak_bytes()
store = hs.open(sys.argv[1])
assert dict(store.attrs) == {"title": "many"}
print(peak_bytes() - before)
"""
)


def test_consolidated_metadata_are_not_kept(tmp_path: Path) -> None:
    """What is opened takes a few times the bytes of its metadata, not the many of parsed nodes."""
    with hs.open(tmp_path / "one.zarr", "w") as store:
        store.write("a", np.ones(4), attributes={"units": "m"})
    node = json.loads((tmp_path / "one.zarr" / "a" / "zarr.json").read_text())
    path = tmp_path / "a.zarr"
    path.mkdir()
    block = {"kind": "inline", "must_understand": False, "metadata": {f"a{n}": node for n in range(20_000)}}
    text = json.dumps(
        {"zarr_format": 3, "node_type": "group", "attributes": {"title": "many"}, "consolidated_metadata": block}
    )
    (path / "zarr.json").write_text(text)
    assert int(run(OPENED, path)) < 4 * len(text) + (16 << 20)


#: How much memory the check of a store takes [B], and how many findings there are.
VERIFIED = (
    PEAK
    + """
import sys
import hyperslab as hs
before = peak_bytes()
findings = hs.verify(sys.argv[1]).findings
print(peak_bytes() - before, *(finding.text for finding in findings))
"""
)


def test_consolidated_metadata_are_compared_node_by_node(tmp_path: Path) -> None:
    """As Python's objects, what the nodes say takes six times as much as the text, and that twice."""
    nodes = 300
    told: dict[str, Any] = {"zarr_format": 3, "node_type": "group", "attributes": {"levels": list(range(1000, 5000))}}
    metadata = {f"g{number}": told for number in range(nodes)}
    for name in metadata:
        (tmp_path / name).mkdir()
        (tmp_path / name / "zarr.json").write_text(json.dumps(told))
    metadata["g7"] = told | {"attributes": {}}
    block = {"kind": "inline", "must_understand": False, "metadata": metadata}
    text = json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}, "consolidated_metadata": block})
    (tmp_path / "zarr.json").write_text(text)
    took, _, found = run(VERIFIED, tmp_path).partition(" ")
    assert found.strip() == "consolidated metadata are stale: 'g7' differs in attributes"
    assert int(took) < 6 * len(text) + (16 << 20)


def hostile_shard(tmp_path: Path) -> Path:
    """A store with a shard of 100 B that should have two million chunks."""
    path = tmp_path / "a.zarr"
    with hs.open(path, "w", durable=False) as store:
        store.create_array("a", (1 << 21,), "u1", chunks=(1,), shards=(1 << 21,))
        store.write("b", np.ones(4))
    (path / "a" / "c.0").write_bytes(b"x" * 100)
    return path


def test_a_short_shard_is_damage(tmp_path: Path) -> None:
    """`a_shard_that_is_too_short_is_noticed_before_its_chunks_are_gone_through` counts what that costs."""
    found = hs.verify(hostile_shard(tmp_path))
    assert {array.name: (array.checked, array.damaged) for array in found.arrays} == {"a": (0, 1), "b": (1, 0)}
    assert "found 100 B" in found.of("damage")[0].text
