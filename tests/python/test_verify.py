"""``hyperslab verify``: it names what is damaged and which elements that concerns, and nothing else."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest
import zarr
import zarr.codecs
import zarr.codecs.numcodecs
from hyperslab.__main__ import main

from peak import PEAK

pytestmark = [
    pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part"),
    pytest.mark.filterwarnings("ignore:Stored array in format 3.0"),
]

WRITER = Path(__file__).with_name("dying_writer.py")
DOCS = Path(__file__).parents[2] / "docs" / "verify.md"
#: A codec that is not known here.
UNKNOWN = zarr.codecs.numcodecs.JenkinsLookup3(initval=0)


# ---- stores and what is done to them ---------------------------------------------------------------------------


def make_store(path: Path) -> Path:
    """A store with two groups and three arrays, whose chunks have checksums, but for those of ``plain``."""
    random = np.random.default_rng(1)
    with hs.open(path, "w", durable=False) as store:
        store.write("rho", random.random((45, 37)), chunks=(10, 10))
        store.write("plain", random.random((45, 20)), chunks=(10, 10), checksum=False)
        with store.step("0001") as step:
            step.write("u", np.arange(12, dtype="i4"), chunks=(5,), zstd=1)
    return path


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 0x10
    path.write_bytes(content)


def replace(path: Path, old: str, new: str) -> None:
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new, 1))


def found(path: Path, severity: str | None = None) -> list[tuple[str, str, str | None, Any]]:
    """Kind, path below `path`, array and section of each finding."""
    return [
        (each.kind, os.path.relpath(each.path, path), each.array, each.section)
        for each in hs.verify(path).findings
        if severity in (None, each.severity)
    ]


def told(path: Path) -> list[str]:
    return [finding.text for finding in hs.verify(path).findings]


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Status, output and errors of the command."""
    try:
        status = main(["verify", *map(str, arguments)])
    except SystemExit as end:
        status = int(str(end.code))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail if it takes longer, also if it waits for ever."""

    def late(*_: object) -> None:
        message = f"not done after {seconds} s"
        raise AssertionError(message)

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# ---- whole outputs ---------------------------------------------------------------------------------------------


def test_a_store_that_is_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = make_store(tmp_path / "a.zarr")
    expected = f"""\
{path}: Zarr store, 2 groups, 3 arrays
chunks: 33 checked; 20.1 KiB of elements read
result: no damage found
"""
    assert run(capsys, path) == (0, expected, "")


def test_the_report_of_a_damaged_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = make_store(tmp_path / "a.zarr")
    zarr.open_group(path).create_array("b", shape=(8,), chunks=(4,), dtype="i4", compressors=UNKNOWN)
    zarr.consolidate_metadata(path)
    replace(path / "rho" / "zarr.json", '"attributes": {}', '"attributes": {"time": 1}')
    flip(path / "rho" / "c.4.3", 0)
    flip(path / "0001" / "u" / "c.1", 3)
    (path / "0001" / "zarr.json").write_text('{"zarr_format" 3}')
    (path / "plain" / "c.0.1").unlink()
    (path / "plain" / "notes.txt").write_text("by hand")
    (path / "plain" / "c.9.0").write_bytes(b"")
    marker = {"host": "node7", "pid": 4711, "token": "f00"}
    (path / "plain" / ".hyperslab-update").write_text(json.dumps(marker))
    left = tmp_path / ".a.zarr.hyperslab-partial" / "0a1b2c"
    left.mkdir(parents=True)
    (left / "lock").write_bytes(b"")
    (left / "owner").write_text(json.dumps({"host": "node8", "pid": 12}))
    # What a program was writing is no record.
    (left / "zarr.json").write_text("{}")
    status, out, err = run(capsys, path)
    # Checksums depend on the values.
    out = re.sub("0x[0-9a-f]{8}", "0x...", out).replace(str(tmp_path), "...")
    out = re.sub(r"of its \d+ B", "of its ... B", out)
    expected = """\
.../a.zarr: Zarr store, 1 group, 4 arrays
chunks: 30 checked, 2 damaged, 3 absent; 19.0 KiB of elements read
damage:
  0001/zarr.json: expected JSON, found 17 B that do not parse at character 15
  0001/u [5:10] in 0001/u/c.1: expected CRC-32C 0x... as stored, found CRC-32C 0x... of its ... B
  rho [40:45, 30:37] in rho/c.4.3: expected CRC-32C 0x..., found 0x...
warnings:
  .../.a.zarr.hyperslab-partial/0a1b2c: a directory that is not published: a program left it, or is still at work; in \
it lock, zarr.json (owner: host node8, pid 12)
  plain/.hyperslab-update: an update in place began and has not ended, so elements may be old or new (owner: host \
node7, pid 4711, token f00)
  plain/c.9.0: a chunk outside of the array, which no reader sees
  plain/notes.txt: a file that is no chunk of the array
  zarr.json: consolidated metadata are stale: 'rho' differs in attributes
not checked:
  b/zarr.json: expected blosc, gzip, zlib, zstd, lz4, bz2, lzma, shuffle, fletcher32, crc32, crc32c, adler32, \
delta, fixedscaleoffset, quantize, astype, bitround or packbits, found codec 'jenkins_lookup3'
absent chunks, which read as the fill value:
  b: 2 of 2
  plain: 1 of 10
result: damaged
hint: hyperslab clean .../a.zarr removes what programs that ended have left
"""
    assert (status, err) == (1, "")
    assert out == expected


def test_the_report_of_an_npy_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.npy"
    hs.save_npy(path, np.ones((10, 4)))
    expected = f"{path}: npy file, 1 array\nread: 448 B\nresult: no damage found\n"
    assert run(capsys, path) == (0, expected, "")
    os.truncate(path, 128 + 6 * 32 + 1)
    status, out, err = run(capsys, path)
    assert (status, err) == (1, "")
    assert (
        out
        == f"""\
{path}: npy file, 1 array
read: 321 B
damage:
  [6:10, 0:4] in a.npy: expected 448 B, a header of 128 B and 320 B of elements, found 321 B
result: damaged
"""
    )


def test_long_lists_are_cut_in_the_report_only(tmp_path: Path) -> None:
    with hs.open(tmp_path / "a.zarr", "w") as store:
        store.write("a", np.ones(60), chunks=(2,))
    for chunk in (tmp_path / "a.zarr" / "a").glob("c.*"):
        flip(chunk, 1)
    result = hs.verify(tmp_path / "a.zarr")
    assert [each.section for each in result.findings] == [((at, at + 2),) for at in range(0, 60, 2)]
    assert "  ... and 10 more; --json lists all" in result.text
    assert len(result.text.splitlines()) == 2 + 1 + 20 + 1 + 1


# ---- the JSON document -----------------------------------------------------------------------------------------


def conforms(value: Any, schema: dict[str, Any], root: dict[str, Any], at: str = "$") -> None:
    """Check a value against the part of JSON Schema that the page uses; any other keyword is an error."""
    kinds: dict[str, Callable[[Any], bool]] = {
        "object": lambda item: isinstance(item, dict),
        "array": lambda item: isinstance(item, list),
        "string": lambda item: isinstance(item, str),
        "boolean": lambda item: isinstance(item, bool),
        "integer": lambda item: isinstance(item, int) and not isinstance(item, bool),
        "null": lambda item: item is None,
    }
    for keyword, wanted in schema.items():
        match keyword:
            case "$schema" | "$defs" | "description":
                pass
            case "$ref":
                conforms(value, root["$defs"][wanted.removeprefix("#/$defs/")], root, at)
            case "type":
                names = [wanted] if isinstance(wanted, str) else wanted
                assert any(kinds[name](value) for name in names), f"{at}: {value!r} is not {wanted}"
            case "enum":
                assert value in wanted, f"{at}: {value!r} is none of {wanted}"
            case "minimum":
                assert value >= wanted, f"{at}: {value} < {wanted}"
            case "minItems":
                assert len(value) >= wanted, at
            case "maxItems":
                assert len(value) <= wanted, at
            case "required":
                assert set(wanted) <= value.keys(), f"{at}: {set(wanted) - value.keys()} missing"
            case "additionalProperties":
                assert wanted or value.keys() <= schema["properties"].keys(), f"{at}: more than in the schema: {value}"
            case "properties":
                for key, inner in wanted.items():
                    if key in value:
                        conforms(value[key], inner, root, f"{at}.{key}")
            case "items":
                for number, item in enumerate(value or []):
                    conforms(item, wanted, root, f"{at}[{number}]")
            case _:
                pytest.fail(f"the schema uses {keyword}, which this test does not know")


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    block = re.search(r"```json\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    found: dict[str, Any] = json.loads(block[1])
    return found


def test_the_schema_can_fail(schema: dict[str, Any], tmp_path: Path) -> None:
    good = hs.verify(make_store(tmp_path / "a.zarr")).to_dict()
    conforms(json.loads(json.dumps(good)), schema, schema)
    for bad in ({"groups": -1}, {"kind": "hdf4"}, {"more": 1}, {"arrays": [{"name": "a"}]}, {"nbytes": 1.5}):
        with pytest.raises(AssertionError):
            conforms(json.loads(json.dumps(good | bad)), schema, schema)


def test_json_follows_the_schema(tmp_path: Path, schema: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    path = make_store(tmp_path / "a.zarr")
    group = zarr.open_group(path)
    group.create_array("b", shape=(8,), chunks=(4,), dtype="i4", compressors=zarr.codecs.BloscCodec())[:] = 1
    (path / "bad\udc80\n").mkdir()
    (path / "bad\udc80\n" / "zarr.json").write_text("[]")
    flip(path / "rho" / "c.0.0", 0)
    (path / ".x.raw.hyperslab-update").write_text('{"pid": 7}')
    (path / "rho" / "c.7.7").write_text("")
    hs.save_npy(tmp_path / "a.npy", np.ones(4))
    os.truncate(tmp_path / "a.npy", 129)
    (tmp_path / "a.raw").write_bytes(b"abcdefgh")
    for name, status, more in (
        ("a.zarr", 1, ()),
        ("a.zarr/0001", 0, ()),
        ("a.zarr/rho", 1, ()),
        ("a.npy", 1, ()),
        ("a.raw", 0, ("--array", "a:2:i4", "--array", "b::")),
        ("a.raw", 0, ("--array", "a:1:i4", "--array", "b::i4")),
    ):
        if more[-1:] == ("b::",):
            assert run(capsys, tmp_path / name, "--json", *more)[:2] == (2, "")
            continue
        found, out, err = run(capsys, tmp_path / name, "--json", *more)
        assert (found, err) == (status, "")
        document = json.loads(out)
        conforms(document, schema, schema)
        assert document["damaged"] == bool(status)
        assert document["path"] == str(tmp_path / name)
        for array in document["arrays"]:
            parts = sum(array[part] for part in ("checked", "damaged", "absent", "unchecked"))
            assert parts == array["chunks"]
    document = json.loads(run(capsys, path, "--json")[1])
    assert any(each["path"] == f"{path}/bad\\x80\n/zarr.json" for each in document["findings"])
    assert [each["owner"] for each in document["findings"] if each["kind"] == "update"] == [{"pid": 7}]


# ---- damage, file by file --------------------------------------------------------------------------------------

ENCODINGS: dict[str, dict[str, Any]] = {
    "zstd with checksum": {"compressors": zarr.codecs.ZstdCodec(level=3, checksum=True)},
    "gzip": {"compressors": zarr.codecs.GzipCodec(level=1)},
    "crc32c": {"compressors": zarr.codecs.Crc32cCodec()},
    "crc32c after zstd": {"compressors": [zarr.codecs.ZstdCodec(), zarr.codecs.Crc32cCodec()]},
    "transposed": {"filters": zarr.codecs.TransposeCodec(order=(1, 0)), "compressors": zarr.codecs.Crc32cCodec()},
    "big endian": {"serializer": zarr.codecs.BytesCodec(endian="big"), "compressors": zarr.codecs.Crc32cCodec()},
    "keys of version 2": {
        "chunk_key_encoding": {"name": "v2", "separator": "."},
        "compressors": zarr.codecs.Crc32cCodec(),
    },
    "keys of version 2 with directories": {
        "chunk_key_encoding": {"name": "v2", "separator": "/"},
        "compressors": zarr.codecs.Crc32cCodec(),
    },
}


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_flipped_byte_in_a_chunk_of_zarr_python(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    values = np.random.default_rng(2).random((9, 7))
    zarr.create_array(path, shape=values.shape, chunks=(4, 3), dtype="f8", **ENCODINGS[name])[...] = values
    assert found(path) == []
    key = {"keys of version 2": "1.2", "keys of version 2 with directories": "1/2"}.get(name, "c/1/2")
    flip(path / key, 40)
    assert found(path) == [("chunk", key, "", ((4, 8), (6, 7)))]


@pytest.mark.parametrize("kind", ["?", "i1", "u8", "f2", "f4", "c16", "bfloat16"])
@pytest.mark.parametrize("shape", [(), (7,), (5, 4, 3)])
def test_every_type_and_number_of_dimensions(kind: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    chunks = tuple(2 for _ in shape)
    with hs.open(path, "w") as store:
        store.write("a", np.ones(shape), dtype=kind, chunks=chunks, casting="unsafe")
    assert found(path) == []
    result = hs.verify(path).arrays[0]
    assert result.shape == shape
    assert result.checked == result.chunks == np.prod([-(-extent // 2) for extent in shape], dtype=int)
    last = max((path / "a").glob("c*"))
    flip(last, 0)
    expected = tuple(((extent - 1) // 2 * 2, extent) for extent in shape)
    assert found(path) == [("chunk", f"a/{last.name}", "a", expected)]


@pytest.mark.parametrize("array", ["rho", "plain", "0001/u"])
@pytest.mark.parametrize("change", ["empty", "shorter", "longer"])
def test_chunks_of_a_wrong_length(array: str, change: str, tmp_path: Path) -> None:
    """Also of those at the edge, where only bytes are missing that no element has."""
    path = make_store(tmp_path / "a.zarr")
    key, section = {
        "rho": ("c.4.3", ((40, 45), (30, 37))),
        "plain": ("c.4.1", ((40, 45), (10, 20))),
        "0001/u": ("c.2", ((10, 12),)),
    }[array]
    chunk = path / array / key
    length = chunk.stat().st_size
    os.truncate(chunk, {"empty": 0, "shorter": length - 1, "longer": length + 1}[change])
    assert found(path) == [("chunk", f"{array}/{key}", array, section)]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("zarr.json", '"node_type"', '"nodetype"'),
        ("zarr.json", "{", ""),
        ("zarr.json", "attributes", "attribut\\"),
        ("0001/zarr.json", '"attributes": {', '"attributes": 7, "other": {'),
        ("rho/zarr.json", '"crc32c"', "crc32c"),
        ("rho/zarr.json", '"shape"', '"shap"'),
        ("rho/zarr.json", "45", "-45"),
        ("rho/zarr.json", "    10", "    0"),
        ("rho/zarr.json", '"bytes"', '"crc32c"'),
        ("rho/zarr.json", '"little"', '"middle"'),
        ("rho/zarr.json", "{", "[" * 100_000),
    ],
)
def test_metadata_that_make_no_sense(name: str, old: str, new: str, tmp_path: Path) -> None:
    path = make_store(tmp_path / "a.zarr")
    replace(path / name, old, new)
    node = os.path.dirname(name)  # noqa: PTH120 (it may be empty)
    result = hs.verify(path)
    assert [(each.severity, each.kind, each.array) for each in result.findings] == [("damage", "metadata", node)]
    # What is elsewhere is checked all the same.
    assert sum(array.checked for array in result.arrays) >= 13


def test_metadata_that_are_not_there(tmp_path: Path) -> None:
    path = make_store(tmp_path / "a.zarr")
    (path / "rho" / "zarr.json").unlink()
    assert found(path) == [("metadata", "rho", "rho", None)]
    shutil.rmtree(path / "rho")
    (path / "0001" / "zarr.json").unlink()
    assert found(path) == [("foreign", "0001", None, None)]
    assert "0001/u" in {array.name for array in hs.verify(path).arrays}
    (path / "zarr.json").unlink()
    with pytest.raises(hs.InvalidError, match=r"no Zarr v3 store: it has no zarr.json\n  hint: .* below it: plain"):
        hs.verify(path)
    # A program that was killed while it made the store anew has left these.
    (path / ".hyperslab").mkdir()
    assert ("metadata", ".", "", None) in found(path, "damage")


def test_an_array_in_no_group_and_under_any_name(tmp_path: Path) -> None:
    values = np.arange(10.0)
    for name in ("__a", "a b", "ä", "a\nb", "c"):
        path = tmp_path / name
        zarr.create_array(path, data=values, chunks=(4,), compressors=zarr.codecs.Crc32cCodec())
        flip(path / "c" / "1", 0)
        result = hs.verify(path)
        assert [(each.kind, each.array, each.section) for each in result.findings] == [("chunk", "", ((4, 8),))]
        assert "\n" not in result.text.splitlines()[0]
        assert str(path / "c") not in result.findings[0].text


# ---- what is legal, foreign or not supported -------------------------------------------------------------------


def test_absent_chunks_are_counted(tmp_path: Path) -> None:
    path = make_store(tmp_path / "a.zarr")
    (path / "rho" / "c.0.0").unlink()
    (path / "rho" / "c.4.1").unlink()
    zarr.open_group(path).create_array("huge", shape=(10**12, 10**5), chunks=(100, 100), dtype="f4")[:150, :100] = 1
    with within(5):
        result = hs.verify(path)
    assert not result.findings
    absent = {array.name: (array.chunks, array.checked, array.absent) for array in result.arrays}
    assert absent["rho"] == (20, 18, 2)
    assert absent["huge"] == (10**13, 2, 10**13 - 2)
    assert "rho: 2 of 20" in result.text


def test_files_that_do_not_belong_there(tmp_path: Path) -> None:
    path = make_store(tmp_path / "a.zarr")
    zarr.open_group(path).create_array("n", shape=(4, 4), chunks=(2, 2), dtype="i4", fill_value=7)[...] = 1
    names = {
        "outside": ["rho/c.5.0", "rho/c.0.4", "rho/c.99999999999999999999.0", "n/c/2/0", "n/c/0/7"],
        "foreign": ["rho/c.1", "rho/c.01.0", "rho/c.0.0.0", "rho/c", "rho/c.-1.0", "rho/x", "n/c/0/0.tmp", "n/0.0"],
    }
    for name in (*names["outside"], *names["foreign"]):
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_text("x")
    (path / "rho" / "nested").mkdir()
    (path / "n" / "c" / "0" / "0").rename(path / "n" / "c" / "1" / "aside")
    (path / "README.md").write_text("what this store is")
    expected = [("outside", name) for name in names["outside"]] + [("foreign", name) for name in names["foreign"]]
    expected += [("foreign", "rho/nested"), ("foreign", "n/c/1/aside")]
    assert sorted((kind, where) for kind, where, _, _ in found(path)) == sorted(expected)
    result = hs.verify(path)
    assert not result.damaged
    assert {array.name: array.absent for array in result.arrays}["n"] == 1


def test_what_is_not_supported_is_not_checked(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    values = np.arange(16, dtype="i4")
    group.create_array("other", shape=(16,), chunks=(4,), dtype="i4", compressors=UNKNOWN)[:] = values
    group.create_array("sharded", shape=(16,), chunks=(2,), shards=(8,), dtype="i4")[:] = values
    group.create_array("time", shape=(4,), dtype="M8[s]")
    group.create_array("known", shape=(16,), chunks=(4,), dtype="i4")[:] = values
    zarr.create_array(tmp_path / "a.zarr" / "old", shape=(4,), dtype="i4", zarr_format=2)[:] = 1
    flip(tmp_path / "a.zarr" / "other" / "c" / "0", 3)
    (tmp_path / "a.zarr" / "other" / "c" / "7").write_text("x")
    (tmp_path / "a.zarr" / "sharded" / "c" / "0").unlink()
    os.mkfifo(tmp_path / "a.zarr" / "sharded" / "c" / "0")
    result = hs.verify(tmp_path / "a.zarr")
    reasons = {each.array or Path(each.path).name: each.text for each in result.of("unchecked")}
    assert reasons.keys() == {"other", "old"}
    assert "codec 'jenkins_lookup3'" in reasons["other"]
    assert "Zarr v2" in reasons["old"]
    counts = {array.name: (array.checked, array.damaged, array.unchecked) for array in result.arrays}
    assert counts == {"other": (0, 0, 4), "sharded": (1, 1, 0), "time": (0, 0, 0), "known": (4, 0, 0)}
    # What needs no reading is found all the same.
    assert [each.section for each in result.of("damage")] == [((0, 8),)]
    assert [Path(each.path).name for each in result.of("warning")] == ["7"]
    only_old = hs.verify(tmp_path / "a.zarr" / "old")
    assert [each.severity for each in only_old.findings] == ["unchecked"]


def test_chunks_that_need_too_much_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    with hs.open(path, "w") as store:
        store.write("a", np.zeros(1 << 20), chunks=(1 << 19,))
    result = hs.verify(path, buffer_bytes=1 << 20)
    assert [(each.severity, each.kind, each.array) for each in result.findings] == [("unchecked", "buffer", "a")]
    assert result.arrays[0].unchecked == 2
    assert hs.verify(path, buffer_bytes=1 << 24).arrays[0].checked == 2


# ---- special files and links -----------------------------------------------------------------------------------


def test_special_files_are_named_and_nothing_waits_for_them(tmp_path: Path) -> None:
    path = make_store(tmp_path / "a.zarr")
    for name in ("rho/c.1.1", "0001/u/zarr.json", "plain/c.0.9", "plain/fifo", "fifo"):
        (path / name).unlink(missing_ok=True)
        os.mkfifo(path / name)
    (path / "plain" / "c.2.0").unlink()
    (path / "plain" / "c.2.0").symlink_to("/dev/zero")
    (path / "plain" / "c.3.0").unlink()
    (path / "plain" / "c.3.0").mkdir()
    (path / "full").mkdir()
    (path / "full" / "zarr.json").symlink_to("/dev/zero")
    (path / "fifos").mkdir()
    os.mkfifo(path / "fifos" / ".hyperslab-update")
    os.mkfifo(path / ".hyperslab")
    os.mkfifo(tmp_path / ".a.zarr.hyperslab-partial")
    with within(5), socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(path / "socket"))
        result = hs.verify(path)
    kinds = [(each.kind, os.path.relpath(each.path, path), each.section) for each in result.of("damage")]
    assert kinds == [
        ("metadata", "0001/u/zarr.json", None),
        ("metadata", "full/zarr.json", None),
        ("chunk", "plain/c.2.0", ((20, 30), (0, 10))),
        ("chunk", "plain/c.3.0", ((30, 40), (0, 10))),
        ("chunk", "rho/c.1.1", ((10, 20), (10, 20))),
    ]
    assert "found a FIFO" in result.of("damage")[0].text
    assert "found a character device" in result.of("damage")[2].text
    warnings = {(each.kind, os.path.relpath(each.path, path)) for each in result.of("warning")}
    assert warnings == {
        ("foreign", "fifo"),
        ("foreign", "socket"),
        ("foreign", "fifos"),
        ("foreign", "plain/c.0.9"),
        ("foreign", "plain/fifo"),
        ("update", "fifos/.hyperslab-update"),
        ("leftover", ".hyperslab"),
        ("leftover", "../.a.zarr.hyperslab-partial"),
    }


def test_metadata_are_read_with_a_bound(tmp_path: Path) -> None:
    path = make_store(tmp_path / "a.zarr")
    os.truncate(path / "rho" / "zarr.json", 4 << 40)
    with within(5):
        assert [(kind, where) for kind, where, _, _ in found(path)] == [("metadata", "rho/zarr.json")]
    assert told(path) == [f"expected at most {256 << 20} B, found {4 << 40} B"]


def test_links_are_followed_and_told(tmp_path: Path) -> None:
    path = make_store(tmp_path / "a.zarr")
    make_store(tmp_path / "b.zarr")
    (path / "rho").rename(tmp_path / "rho")
    (path / "rho").symlink_to(tmp_path / "rho")
    (path / "other").symlink_to("../b.zarr")
    (path / "0001" / "up").symlink_to("..")
    (path / "nowhere").symlink_to("nothing")
    (path / "plain" / "c.0.0").rename(tmp_path / "chunk")
    (path / "plain" / "c.0.0").symlink_to(tmp_path / "chunk")
    (path / "plain" / "c.1.0").unlink()
    (path / "plain" / "c.1.0").symlink_to("nothing")
    (path / "plain" / "c.2.0").unlink()
    (path / "plain" / "c.2.0").symlink_to("c.2.0")
    flip(tmp_path / "rho" / "c.0.0", 0)
    link = tmp_path / "link"
    link.symlink_to(path)
    for root in (path, link):
        assert found(root, "damage") == [
            ("chunk", "plain/c.1.0", "plain", ((10, 20), (0, 10))),
            ("chunk", "plain/c.2.0", "plain", ((20, 30), (0, 10))),
            ("chunk", "rho/c.0.0", "rho", ((0, 10), (0, 10))),
        ]
        warnings = [(kind, where) for kind, where, _, _ in found(root, "warning")]
        assert sorted(warnings) == [
            ("foreign", "nowhere"),
            ("link", "0001/up"),
            ("link", "0001/up"),
            ("link", "other"),
            ("link", "plain/c.0.0"),
            ("link", "rho"),
        ]
    assert {array.name for array in hs.verify(path).arrays} >= {"other/0001/u", "rho"}


def test_directories_of_chunks_that_lead_in_circles(tmp_path: Path) -> None:
    """There are 2 ** 24 ways through them."""
    path = tmp_path / "a.zarr"
    zarr.create_array(path, shape=(4,) * 24, chunks=(2,) * 24, dtype="i1")
    (path / "c").mkdir()
    for name in "01":
        (path / "c" / name).symlink_to("../c", target_is_directory=True)
    with within(5):
        result = hs.verify(path)
    assert {finding.kind for finding in result.findings} == {"link"}
    assert result.arrays[0].absent == 2**24


# ---- what was begun and did not end ----------------------------------------------------------------------------


def test_a_writer_at_work_is_told_and_not_disturbed(tmp_path: Path) -> None:
    path = make_store(tmp_path / "a.zarr")
    with hs.open(path, "r+") as store, store.step("0002") as step:
        step.write("v", np.arange(3.0))
        result = hs.verify(path)
        assert not result.damaged
        assert {each.kind for each in result.findings} == {"leftover"}
        assert {array.name for array in result.arrays} == {"rho", "plain", "0001/u"}
    assert found(path) == []
    assert "0002/v" in {array.name for array in hs.verify(path).arrays}
    with hs.open_raw(tmp_path / "a.raw", "w") as file:
        file.write({"a": np.ones(4)})
        with pytest.raises(hs.NotFoundError, match=r"hint: beside it lies what was not published: .*\.a\.raw"):
            hs.verify(tmp_path / "a.raw")
    assert found(tmp_path / "a.raw") == []


def test_what_a_killed_writer_left_names_its_process(tmp_path: Path) -> None:
    path = make_store(tmp_path / "a.zarr")
    shutil.rmtree(path / "0001")
    writer = subprocess.Popen([sys.executable, WRITER, "step", tmp_path], stdout=subprocess.PIPE, text=True)
    with writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "now\n"
        writer.kill()
    result = hs.verify(path)
    assert not result.damaged
    assert {each.kind for each in result.findings} == {"leftover"}
    assert [(each.owner or {}).get("pid") for each in result.findings] == [writer.pid]
    assert "0001" in result.text


def test_a_store_that_changes_meanwhile_is_never_damaged(tmp_path: Path) -> None:
    """Steps are published, chunks replaced in place and arrays replaced by others, by another thread."""
    path = make_store(tmp_path / "a.zarr")
    values = np.random.default_rng(3).random((45, 37))
    failures: list[BaseException] = []

    def write() -> None:
        try:
            with hs.open(path, "r+", durable=False) as store:
                for number in range(25):
                    with store.step(f"s{number}") as step:
                        step.write("a", values, chunks=(20, 20))
                    store.write("rho", values[:20], section=(slice(10, 30), slice(None)))
                    shape = (20 + number % 7, 20)
                    store.write("plain", np.ones(shape), chunks=(3, shape[0]), checksum=False, overwrite=True)
        except BaseException as error:  # noqa: BLE001 (told below)
            failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    groups = []
    try:
        while writer.is_alive() or not groups:
            result = hs.verify(path)
            assert not result.damaged, result.text
            assert {each.kind for each in result.findings} <= {"leftover", "update", "gone"}
            groups.append(result.groups)
    finally:
        writer.join()
    assert not failures
    assert groups == sorted(groups)
    assert len(set(groups)) > 2
    assert (hs.verify(path).groups, hs.verify(path).findings) == (27, ())


def test_leftovers_and_their_owners(tmp_path: Path) -> None:
    path = make_store(tmp_path / "a.zarr")

    def record(pid: int) -> dict[str, Any]:
        return {"token": f"{pid:032x}", "host": "node7", "pid": pid, "start": 1.5, "nested": {"x": 1}}

    def line(pid: int) -> str:
        return json.dumps(record(pid)) + "\n"

    entries: dict[str, str | None] = {
        # Each owner in a directory with his record, or in a list beside it.
        ".hyperslab/t1/owner.json": line(1),
        ".hyperslab/t2/notes": "no record",
        ".hyperslab/t3/zarr.json": "{}",
        ".hyperslab/owners": line(4) + line(5) + '{"half":',
        f".hyperslab/{5:032x}/1-step-0001/zarr.json": "{}",
        "0001/.u.hyperslab-partial/t6/owner": line(6),
        f"rho/.c.0.0.hyperslab-{7:032x}": "a chunk",
        "rho/.c.hyperslab-owners": line(7),
        ".dump.raw.hyperslab-partial": "a raw file",
        "plain/.hyperslab-tmp": "",
        "../.a.zarr.hyperslab-owners": line(8) + line(9),
        f"../.a.zarr.hyperslab-{8:032x}/owner": "",
        f"../.a.zarr.hyperslab-gone-{9:032x}/2-array-x/c.0": "",
        # These are of others.
        "../.b.zarr.hyperslab-partial/t8/owner": line(10),
        "../.a.zarr": "",
    }
    for name, content in entries.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(content or "")
    (path / "plain" / ".c.0.0.hyperslab-partial").mkdir()
    result = hs.verify(path)
    assert not result.damaged
    assert {each.kind for each in result.findings} == {"leftover"}
    owners = {os.path.relpath(each.path, path): each.owner for each in result.findings}
    assert owners == {
        ".hyperslab/t1": record(1),
        ".hyperslab/t2": None,
        ".hyperslab/t3": None,
        f".hyperslab/{5:032x}": record(5),
        "0001/.u.hyperslab-partial/t6": record(6),
        f"rho/.c.0.0.hyperslab-{7:032x}": record(7),
        ".dump.raw.hyperslab-partial": None,
        "plain/.hyperslab-tmp": None,
        "plain/.c.0.0.hyperslab-partial": None,
        f"../.a.zarr.hyperslab-{8:032x}": record(8),
        f"../.a.zarr.hyperslab-gone-{9:032x}": record(9),
    }
    assert f"(owner: token {1:032x}, host node7, pid 1, start 1.5)" in result.text
    assert "in it 1-step-0001 (owner" in result.text
    assert f"hint: hyperslab clean {path} removes" in result.text
    # A list alone: a program has the store open, or ended without tidying up.
    shutil.rmtree(tmp_path / f".a.zarr.hyperslab-{8:032x}")
    shutil.rmtree(tmp_path / f".a.zarr.hyperslab-gone-{9:032x}")
    beside = {Path(each.path).name: each.owner for each in hs.verify(path).findings if ".a.zarr.hyper" in each.path}
    assert beside == {".a.zarr.hyperslab-owners": record(9)}


def test_updates_that_did_not_end(tmp_path: Path) -> None:
    path = make_store(tmp_path / "a.zarr")
    (path / "rho" / ".hyperslab-update").write_text('{"host": "node6"}\n{"host": "node7"}\n')
    (path / "0001" / "u" / ".hyperslab-update").write_text("an update of section [0:3] has begun\x1b[2J\n")
    (path / "plain" / ".hyperslab-update").write_bytes(b"\xff\x00" * 40_000)
    hs.save_npy(tmp_path / "a.npy", np.ones(3))
    (tmp_path / ".a.npy.hyperslab-update").write_text('{"pid": 3}')
    result = hs.verify(path)
    assert not result.damaged
    assert {(each.kind, each.array) for each in result.findings} == {
        ("update", "rho"),
        ("update", "0001/u"),
        ("update", "plain"),
    }
    by_array = {each.array: each for each in result.findings}
    assert by_array["rho"].owner == {"host": "node7"}
    assert "an update of section [0:3] has begun" in by_array["0001/u"].text
    assert "\x1b" not in result.text
    result = hs.verify(tmp_path / "a.npy")
    assert [(each.kind, each.owner) for each in result.findings] == [("update", {"pid": 3})]
    assert not result.damaged


# ---- consolidated metadata -------------------------------------------------------------------------------------


def consolidated(path: Path) -> Path:
    """A store in all that metadata can say, consolidated by zarr-python, which writes some of it differently."""
    with hs.open(path, "w") as store:
        for number, kind in enumerate(("?", "i2", "u8", "f4", "f8", "c8")):
            fill: Any = True if kind == "?" else 3 if kind in ("i2", "u8") else float("nan")
            options: dict[str, Any] = {"zstd": 3} if number % 2 else {"dimension_names": ("x", None)}
            store.write(
                f"a{number}", np.ones((4, 3)), dtype=kind, casting="unsafe", fill_value=fill, chunks=(2, 3), **options
            )
        store.write("with", np.ones(3), attributes={"a": 1.0, "b": [1e300, None, {"c": "ä"}]}, checksum=False)
        with store.step("s", attributes={"time": 2.0}) as step:
            step.write("u", np.ones(3))
    group = zarr.open_group(path)
    group.create_group("g/h").create_array("z", shape=(4,), dtype="f4", fill_value=np.inf, chunks=(2,), shards=(4,))
    group.create_array("v2", shape=(4,), dtype="i1", chunk_key_encoding={"name": "v2", "separator": "."})
    zarr.consolidate_metadata(path)
    zarr.consolidate_metadata(path, path="g")
    return path


def stale(path: Path) -> list[tuple[str, str]]:
    """The group whose block is stale, and what is said of which node."""
    findings = [each for each in hs.verify(path).findings if each.kind == "consolidated"]
    texts = [each.text.removeprefix("consolidated metadata are stale: ") for each in findings]
    groups = [os.path.relpath(each.path, path).removesuffix("zarr.json").rstrip("/") for each in findings]
    return sorted(zip(groups, texts, strict=True))


def test_fresh_consolidated_metadata_are_not_stale(tmp_path: Path) -> None:
    path = consolidated(tmp_path / "a.zarr")
    assert "consolidated_metadata" in json.loads((path / "zarr.json").read_text())
    assert "consolidated_metadata" in json.loads((path / "g" / "zarr.json").read_text())
    assert stale(path) == []
    assert not hs.verify(path).damaged


def test_stale_consolidated_metadata_are_named(tmp_path: Path) -> None:
    path = consolidated(tmp_path / "a.zarr")
    # By hand, since a version of this library may remove a block that its own writes make stale.
    for name, key, value in (
        ("a1", "shape", [9, 3]),
        ("a2", "fill_value", 4),
        ("a3", "codecs", [{"name": "bytes", "configuration": {"endian": "big"}}, {"name": "crc32c"}]),
        ("with", "attributes", {"a": True}),
        ("s", "attributes", {"time": 3.0}),
        ("g/h/z", "fill_value", "-Infinity"),
        ("v2", "chunk_key_encoding", {"name": "v2", "configuration": {"separator": "/"}}),
    ):
        metadata = json.loads((path / name / "zarr.json").read_text())
        assert key in metadata
        (path / name / "zarr.json").write_text(json.dumps(metadata | {key: value}))
    shutil.rmtree(path / "a4")
    shutil.copytree(path / "s", path / "new")
    assert stale(path) == [
        ("", "'a1' differs in shape"),
        ("", "'a2' differs in fill_value"),
        ("", "'a3' differs in codecs"),
        ("", "'a4' is listed, but not there"),
        ("", "'g/h/z' differs in fill_value"),
        ("", "'new' is there, but not listed"),
        ("", "'new/u' is there, but not listed"),
        ("", "'s' differs in attributes"),
        ("", "'v2' differs in chunk_key_encoding"),
        ("", "'with' differs in attributes"),
        ("g", "'g/h/z' differs in fill_value"),
    ]
    # Of what cannot be read nothing is said; a block that makes no sense is no damage, since nobody needs it.
    (path / "a1" / "zarr.json").write_text("{")
    assert ("", "'a1' differs in shape") not in stale(path)
    metadata = json.loads((path / "g" / "zarr.json").read_text())
    (path / "g" / "zarr.json").write_text(json.dumps(metadata | {"consolidated_metadata": {"metadata": 7}}))
    assert ("g", "the block of consolidated metadata lists no nodes") in stale(path)


# ---- npy and raw files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_files_of_a_wrong_length(order: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    with path.open("wb") as file:
        np.save(file, np.ones((5, 4), dtype="f4", order=order))  # type: ignore[call-overload]
    assert found(path) == []
    os.truncate(path, 128 + 80 - 17)
    section = ((3, 5), (0, 4)) if order == "C" else ((0, 5), (3, 4))
    assert found(path) == [("length", ".", "", section)]
    os.truncate(path, 128 + 81)
    assert found(path) == [("length", ".", None, None)]


def test_npy_files_of_any_kind(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    for array in (np.float32(3), np.ones((0, 4)), np.array(["a", "bc"]), np.zeros(3, [("x", "i4"), ("y", "f8", 2)])):
        np.save(path, array)
        assert found(path) == []
        assert hs.verify(path).arrays[0].shape == array.shape
    np.save(path, np.array([{}, 1], dtype=object), allow_pickle=True)
    assert [(each.severity, each.kind) for each in hs.verify(path).findings] == [("unchecked", "unsupported")]
    np.save(path, np.zeros(3, [("ä☃", "i4")]))
    assert [(each.severity, each.kind) for each in hs.verify(path).findings] == [("unchecked", "unsupported")]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"\x93NUMPY", b"\x93NUMPI"),
        (b"'shape': (5, 4)", b"'shape': (5,-4)"),
        (b"'shape': (5, 4)", b"'shapes': (5, 4)"),
        (b"{'descr'", b"{'descr "),
        (b"<f8", b"<f9"),
        (b"\x93NUMPY\x01\x00v\x00", b"\x93NUMPY\x01\x00\x00\x00"),
        (b"{'descr'", b"(" * 8),
    ],
)
def test_npy_headers_that_make_no_sense(old: bytes, new: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.ones((5, 4)))
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))
    assert [(kind, array) for kind, _, array, _ in found(path)] == [("metadata", "")]


def test_raw_files(tmp_path: Path) -> None:
    path = tmp_path / "a.raw"
    arrays = {"a": ((4, 3), "<f4"), "t": ((), "f8"), "b": ((2, 5), "bfloat16")}
    path.write_bytes(bytes(8 + 48 + 8 + 20))
    assert hs.verify(path, header=8, arrays=arrays).findings == ()  # type: ignore[arg-type]
    assert hs.verify(path).findings == ()
    assert hs.verify(path, header=84).findings == ()

    def damage(**options: Any) -> list[tuple[str, str | None, Any]]:
        return [(each.kind, each.array, each.section) for each in hs.verify(path, **options).findings]

    assert damage(header=85) == [("length", None, None)]
    assert damage(header=7, arrays=arrays) == [("length", None, None)]
    os.truncate(path, 8 + 48 - 1)
    assert damage(header=8, arrays=arrays) == [
        ("length", "a", ((0, 4), (2, 3))),
        ("length", "b", ((0, 2), (0, 5))),
        ("length", "t", ()),
    ]
    assert damage(header=8, arrays=arrays, order="C")[0] == ("length", "a", ((3, 4), (0, 3)))
    counts = hs.verify(path, header=8, arrays=arrays).arrays  # type: ignore[arg-type]
    assert [(array.name, array.damaged) for array in counts] == [("a", 1), ("t", 1), ("b", 1)]
    os.truncate(path, 3)
    assert damage(header=8, arrays=arrays)[0] == ("length", "a", ((0, 4), (0, 3)))
    (tmp_path / ".a.raw.hyperslab-update").write_text('{"pid": 1}')
    (tmp_path / ".a.raw.hyperslab-partial").mkdir()
    assert {kind for kind, _, _, _ in found(path)} == {"update", "leftover"}


# ---- reads that fail -------------------------------------------------------------------------------------------

FAILING_READS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* Whether a file's path ends with FAIL_NAME and an offset lies in [FAIL_LOW, FAIL_HIGH). */
static int fails(int descriptor, off_t at) {
    char link[64], path[4096];
    const char *name = getenv("FAIL_NAME");
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0 || name == NULL || (size_t)length < strlen(name)) return 0;
    path[length] = 0;
    return strcmp(path + length - strlen(name), name) == 0 && at >= atol(getenv("FAIL_LOW"))
        && at < atol(getenv("FAIL_HIGH"));
}

#define WRAP(name, parameters, arguments, at)                    \
    ssize_t name parameters {                                    \
        static ssize_t (*real) parameters;                       \
        if (real == NULL) real = dlsym(RTLD_NEXT, #name);        \
        if (fails(fd, at)) { errno = EIO; return -1; }           \
        return real arguments;                                   \
    }

WRAP(read, (int fd, void *b, size_t n), (fd, b, n), 0)
WRAP(readv, (int fd, const struct iovec *v, int n), (fd, v, n), 0)
WRAP(pread, (int fd, void *b, size_t n, off_t at), (fd, b, n, at), at)
WRAP(pread64, (int fd, void *b, size_t n, off_t at), (fd, b, n, at), at)
WRAP(preadv, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at), at)
WRAP(preadv64, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at), at)
WRAP(preadv2, (int fd, const struct iovec *v, int n, off_t at, int f), (fd, v, n, at, f), at)
WRAP(preadv64v2, (int fd, const struct iovec *v, int n, off_t at, int f), (fd, v, n, at, f), at)
"""


def test_reads_that_fail_name_what_cannot_be_read(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler on the path")
    library = tmp_path / "fails.so"
    command = [compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", str(library), "-ldl"]
    subprocess.run(command, input=FAILING_READS, text=True, check=True)
    path = make_store(tmp_path / "a.zarr")
    part = 8 << 20
    np.lib.format.open_memmap(tmp_path / "a.npy", "w+", "f8", (3 * part // 64, 8)).flush()
    program = (
        "import os, sys, hyperslab as hs\n"
        "for name, low, target in zip(*[iter(sys.argv[1:])] * 3):\n"
        "    os.environ.update(FAIL_NAME=name, FAIL_LOW=low, FAIL_HIGH=str(int(low) + 100))\n"
        "    for each in hs.verify(target).findings:\n"
        "        print(each.severity, each.kind, each.array, each.section, each.text, sep='|')\n"
    )
    cases = ("/rho/c.2.1", "0", path), ("/rho/zarr.json", "0", path), ("/a.npy", str(part), tmp_path / "a.npy")
    # What is preloaded for all tests, such as a sanitizer, stays.
    preloaded = os.pathsep.join(filter(None, [str(library), os.environ.get("LD_PRELOAD")]))
    done = subprocess.run(
        [sys.executable, "-c", program, *(str(part) for case in cases for part in case)],
        env=os.environ | {"LD_PRELOAD": preloaded},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split("|") for line in done.stdout.splitlines()]
    rows = f"(({part // 64 - 2}, {2 * part // 64 - 2}), (0, 8))"
    assert [line[:4] for line in lines] == [
        ["damage", "chunk", "rho", "((20, 30), (10, 20))"],
        ["damage", "metadata", "rho", "None"],
        ["damage", "unreadable", "", rows],
    ]
    assert all("nput/output error" in line[4] for line in lines), lines


# ---- arguments -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("none",), "'{}/none' does not exist"),
        (("fifo",), "expected a Zarr store or a regular file, found a FIFO"),
        (("nowhere",), "is a symbolic link to 'nothing' that leads nowhere"),
        ((".",), "is no Zarr v3 store: it has no zarr.json"),
        (("a.zarr/zarr.json",), "hint: name the directory that it is in"),
        (("a.zarr", "--header", "8"), "expected a raw file, found a directory"),
        (("a.raw", "--array", "a"), "'a' is not NAME:SHAPE:DTYPE, such as rho:128,128,64:<f8"),
        (("a.raw", "--array", "a:4,y:f8"), "'4,y' is not a list of numbers"),
        (("a.raw", "--array", "a:4:f9"), "'f9' is not a type of elements"),
        (("a.raw", "--array", "a:-4:f8"), "extents of 0 or more"),
        (("a.raw", "--array", "a:4:f8", "--array", "a:4:f8"), "two arrays have the same name"),
        (("a.raw", "--header", "-1"), "'-1' is no size such as 64MiB"),
        (("a.zarr", "--jobs", "0"), "jobs must be a whole number of 1 or more, got 0"),
        ((), "the following arguments are required: path"),
    ],
)
def test_what_cannot_be_checked_has_status_2(
    arguments: tuple[str, ...], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_store(tmp_path / "a.zarr")
    (tmp_path / "a.raw").write_bytes(b"abcd")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "nowhere").symlink_to("nothing")
    status, out, err = run(capsys, *(tmp_path / name for name in arguments[:1]), *arguments[1:])
    assert (status, out) == (2, "")
    assert expected.format(tmp_path) in err


@pytest.mark.parametrize("jobs", [1, 2, 7])
def test_any_number_of_threads_finds_the_same(jobs: int, tmp_path: Path) -> None:
    with hs.open(tmp_path / "a.zarr", "w") as store:
        store.write("a", np.ones((40, 50)), chunks=(2, 3))
    bad = [(0, 0), (7, 9), (7, 10), (19, 16)]
    for i, j in bad:
        flip(tmp_path / "a.zarr" / "a" / f"c.{i}.{j}", 1)
    result = hs.verify(tmp_path / "a.zarr", jobs=jobs)
    sections = [((2 * i, 2 * i + 2), (3 * j, min(3 * j + 3, 50))) for i, j in bad]
    assert [each.section for each in result.findings] == sections
    assert (result.arrays[0].checked, result.arrays[0].damaged) == (340 - 4, 4)


def test_what_may_not_be_read_is_no_damage() -> None:
    # Not below the directories of pytest, which nobody else may enter.
    with tempfile.TemporaryDirectory() as root:
        Path(root).chmod(0o755)
        path = make_store(Path(root) / "a.zarr")
        (path / "rho" / "c.1.0").chmod(0)
        (path / "plain" / "zarr.json").chmod(0)
        (path / "0001").chmod(0)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)
        try:
            result = hs.verify(path)
        finally:
            os.seteuid(user)
            (path / "0001").chmod(0o755)
    assert not result.damaged
    assert [(each.kind, each.array) for each in result.findings] == [
        ("permission", "0001"),
        ("permission", "plain"),
        ("permission", "rho"),
    ]
    assert result.findings[2].section == ((10, 20), (0, 10))
    assert result.arrays[0].unchecked == 1


def test_the_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    listed = capsys.readouterr().out
    assert re.search(r"^ +verify +check that", listed, re.MULTILINE)
    assert re.search(r"^ +clean +remove what", listed, re.MULTILINE)
    with pytest.raises(SystemExit) as end:
        main(["clean"])
    assert end.value.code == 2


def test_importing_the_package_does_not_import_what_checks() -> None:
    program = "import sys, hyperslab; print([name for name in sys.modules if name.startswith('hyperslab._verify')])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "[]\n"


def test_memory_stays_small_and_a_bar_is_shown_on_a_terminal(tmp_path: Path) -> None:
    """96 MiB in chunks of 4 MiB, and in tiny ones; the terminal is one that this test reads."""
    with hs.open(tmp_path / "a.zarr", "w", durable=False) as store:
        store.write("a", np.ones((24, 1 << 19)), chunks=(1, 1 << 19))
        store.write("b", np.ones((400, 16)), chunks=(2, 4))
    program = (
        f"{PEAK}\n"
        "import sys, hyperslab as hs, hyperslab._calls as calls\n"
        "calls.BAR_SECONDS = 0.0\n"
        "hs.verify(sys.argv[2])\n"
        "before = peak_bytes()\n"
        "result = hs.verify(sys.argv[1])\n"
        "print(peak_bytes() - before, result.nbytes, result.damaged)\n"
    )
    terminal, inner = os.openpty()
    termios.tcsetwinsize(inner, (24, 80))
    command = [sys.executable, "-c", program, tmp_path / "a.zarr", tmp_path / "a.zarr" / "b"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=inner, text=True)
    os.close(inner)
    shown = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:
            break
        shown += part
    out, _ = child.communicate(timeout=60)
    os.close(terminal)
    grown, nbytes, damaged = out.split()
    assert (int(nbytes), damaged) == ((24 << 22) + 400 * 16 * 8, "False")
    assert int(grown) < 48 << 20, f"{grown} B more"
    assert b"verify" in shown
    assert b"%" in shown


# ---- any byte of any chunk -------------------------------------------------------------------------------------


def random_array(random: np.random.Generator, path: Path) -> None:
    """An array whose chunks have checksums, with some chunks absent, by this library or zarr-python."""
    shape = tuple(int(extent) for extent in random.integers(1, 9, int(random.integers(0, 4))))
    chunks = tuple(int(random.integers(1, extent + 2)) for extent in shape)
    kind = str(random.choice(["i1", "i4", "f8", "c16"]))
    values = random.integers(-9, 9, shape).astype(kind)
    if random.random() < 0.5:
        with hs.open(path.parent, "r+") as store:
            level = int(random.integers(1, 4)) if random.random() < 0.5 else None
            store.write(path.name, values, chunks=chunks, zstd=level)
    else:
        codec: Any = random.choice([0, 1, 2])
        before = [[], [zarr.codecs.ZstdCodec()], [zarr.codecs.GzipCodec()]][codec]
        compressors = [*before, zarr.codecs.Crc32cCodec()]
        separator = str(random.choice([".", "/"]))
        zarr.open_group(path.parent).create_array(
            path.name,
            shape=shape,
            chunks=chunks or "auto",
            dtype=kind,
            compressors=compressors,
            chunk_key_encoding={"name": str(random.choice(["default", "v2"])), "separator": separator},
        )[...] = values
    for file in chunk_files(path):
        if random.random() < 0.1:
            file.unlink()


def chunk_files(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*") if file.is_file() and file.name != "zarr.json")


def read_chunks(path: Path, names: list[str]) -> dict[tuple[str, Any], bytes | None]:
    """Each chunk of each array as zarr-python reads it; None if it cannot."""
    chunks: dict[tuple[str, Any], bytes | None] = {}
    for name in names:
        array: Any = zarr.open_array(path / name, mode="r")
        grid = np.ndindex(*(-(-extent // chunk) for extent, chunk in zip(array.shape, array.chunks, strict=True)))
        for index in grid:
            every = zip(index, array.chunks, array.shape, strict=True)
            box = tuple((at * chunk, min((at + 1) * chunk, extent)) for at, chunk, extent in every)
            try:
                chunks[name, box] = np.asarray(array[tuple(slice(*bounds) for bounds in box)]).tobytes()
            except Exception:  # noqa: BLE001 (codecs of zarr-python raise what they like)
                chunks[name, box] = None
    return chunks


def check_flip(seed: int, path: Path) -> None:
    random = np.random.default_rng(seed)
    hs.open(path, "w").close()
    names = [f"a{number}" for number in range(int(random.integers(1, 4)))]
    for name in names:
        random_array(random, path / name)
    before = read_chunks(path, names)
    assert None not in before.values()
    result = hs.verify(path)
    assert not result.findings, result.text
    assert {array.name: array.absent for array in result.arrays} == {
        name: sum(1 for array, _ in before if array == name) - len(chunk_files(path / name)) for name in names
    }
    files = [file for name in names for file in chunk_files(path / name)]
    if not files:
        return
    file = files[int(random.integers(len(files)))]
    content = bytearray(file.read_bytes())
    content[int(random.integers(len(content)))] ^= int(random.integers(1, 256))
    file.write_bytes(content)
    after = read_chunks(path, names)
    differ = {key for key in before if after[key] != before[key]}
    result = hs.verify(path, jobs=int(random.integers(1, 4)))
    assert {(each.array, each.section) for each in result.findings} == differ, result.text
    assert len(differ) == len(result.findings) == 1
    assert result.findings[0].path == str(file)


@pytest.mark.parametrize("seed", range(20))
def test_any_flipped_byte_is_found_where_zarr_python_finds_it(seed: int, tmp_path: Path) -> None:
    check_flip(seed, tmp_path / "a.zarr")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 2000))
def test_many_flipped_bytes(seed: int, tmp_path: Path) -> None:
    check_flip(seed, tmp_path / "a.zarr")
