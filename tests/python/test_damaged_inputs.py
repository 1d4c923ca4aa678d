"""Files that people hand to the command, damaged in any way: an error that says which and where, and no traceback."""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest
from hyperslab.__main__ import main

#: Of a block of a trace: its magic, lengths of header and span, number of spans; docs/trace.md.
HEAD = struct.Struct("<8sIIQ")
SPAN_BYTES = 64

#: What no field of a header can be, or only some can.
VALUES: tuple[Any, ...] = (
    None, -1, 0, 1.5, 1e308, 10**30, 2**63, True, "x", "", "\ud800", float("nan"), [], [1], [None], [[1]], {}, {"a": 1},
)  # fmt: skip

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command; gives the exit status and what it said on the error output."""

    def once(*arguments: object) -> tuple[int, str]:
        status = main([str(argument) for argument in arguments])
        told = capsys.readouterr()
        assert status in (0, 2)
        assert told.err.startswith("hyperslab: ") == (status == 2), told.err
        return status, told.err

    return once


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a good trace."""
    directory = tmp_path_factory.mktemp("recorded")

    def one(comm: hs.ThreadComm) -> None:
        dist = hs.Distribution((12, 8), (3, 1), ("block", "*"))
        with (
            hs.trace.recording(directory / "trace", comm=comm),
            hs.open(directory / "run.zarr", "w", comm=comm) as store,
        ):
            with hs.trace.span("thinking", comm=comm):
                mine = np.ones(dist.local_shape(comm.rank))
            store.write("rho", mine, dist, chunks=(5, 3), strategy="two-phase")
            store.read("rho", dist)

    hs.threads(3, one)
    return {path.name: path.read_bytes() for path in (directory / "trace").iterdir()}


def put(directory: Path, files: dict[str, bytes]) -> Path:
    directory.mkdir(exist_ok=True)
    for old in directory.iterdir():
        old.unlink()
    for name, contents in files.items():
        (directory / name).write_bytes(contents)
    return directory


def parts(contents: bytes) -> list[tuple[Any, bytes]]:
    """Headers and spans of a file."""
    at, found = 0, []
    while at < len(contents):
        _, header, span, count = HEAD.unpack_from(contents, at)
        begin = at + HEAD.size + header
        found.append((json.loads(contents[at + HEAD.size : begin]), contents[begin : begin + count * span]))
        at = begin + count * span
    return found


def whole(blocks: list[tuple[Any, bytes]]) -> bytes:
    """A file of these headers and spans."""
    out = b""
    for header, spans in blocks:
        text = json.dumps(header).encode()
        out += HEAD.pack(b"hsTRACE1", len(text), SPAN_BYTES, len(spans) // SPAN_BYTES) + text + spans
    return out


def verbs(tmp_path: Path, directory: Path) -> Iterator[tuple[object, ...]]:
    yield "trace", "summary", directory
    yield "trace", "summary", "--json", directory
    yield "trace", "view", "-o", tmp_path / "page.html", directory
    yield "trace", "export", "--chrome", tmp_path / "chrome.json", directory


# ---- traces ----------------------------------------------------------------------------------------------------


def cut_off(recorded: dict[str, bytes], tmp_path: Path, run: Run, step: int) -> None:
    """Of a file that is cut off anywhere, what is whole is told; without anything whole, it is an error."""
    for name, contents in recorded.items():
        for keep in range(0, len(contents), step):
            directory = put(tmp_path / "trace", {**recorded, name: contents[:keep]})
            assert run("trace", "summary", directory) == (0, "")
            alone = put(tmp_path / "trace", {name: contents[:keep]})
            status, told = run("trace", "export", "--chrome", tmp_path / "chrome.json", alone)
            _, header, _, _ = HEAD.unpack_from(contents)
            assert status == 2 * int(keep < HEAD.size + header), (keep, told)
            assert status == 0 or str(alone) in told


def test_a_trace_that_is_cut_off(recorded: dict[str, bytes], tmp_path: Path, run: Run) -> None:
    cut_off(recorded, tmp_path, run, 389)


@pytest.mark.long
def test_a_trace_that_is_cut_off_at_any_byte(recorded: dict[str, bytes], tmp_path: Path, run: Run) -> None:
    cut_off(recorded, tmp_path, run, 1)


def flipped(recorded: dict[str, bytes], tmp_path: Path, run: Run, times: int) -> None:
    chance = random.Random(times)
    statuses = set()
    for _ in range(times):
        name = chance.choice(sorted(recorded))
        contents = bytearray(recorded[name])
        for _ in range(chance.choice((1, 1, 2, 8))):
            contents[chance.randrange(len(contents))] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
        directory = put(tmp_path / "trace", {**recorded, name: bytes(contents)})
        status, told = run(*chance.choice(list(verbs(tmp_path, directory))))
        assert status == 0 or name in told or "two blocks of run" in told or "spans of" in told, told
        statuses.add(status)
    assert statuses == {0, 2}


def test_a_trace_with_other_bytes(recorded: dict[str, bytes], tmp_path: Path, run: Run) -> None:
    flipped(recorded, tmp_path, run, 80)


@pytest.mark.long
def test_a_trace_with_many_other_bytes(recorded: dict[str, bytes], tmp_path: Path, run: Run) -> None:
    flipped(recorded, tmp_path, run, 4000)


def other_types(recorded: dict[str, bytes], tmp_path: Path, run: Run, step: int) -> None:
    """Each field of a call in which data moved, with other values; what is refused names the field and the file."""
    name = min(recorded)
    blocks = parts(recorded[name])
    number = next(number for number, (header, _) in enumerate(blocks) if "strategy" in header)
    refused = set()
    for place, field in enumerate(sorted(blocks[number][0])):
        for value in VALUES[place % step :: step]:
            header = {**blocks[number][0], field: value}
            changed = whole([*blocks[:number], (header, blocks[number][1]), *blocks[number + 1 :]])
            directory = put(tmp_path / "trace", {**recorded, name: changed})
            status, told = run("trace", "summary", directory)
            if status:
                refused.add(field)
                assert field in told or "cannot be" in told or "before it begins" in told, told
        header = {other: value for other, value in blocks[number][0].items() if other != field}
        changed = whole([*blocks[:number], (header, blocks[number][1]), *blocks[number + 1 :]])
        status, told = run("trace", "summary", put(tmp_path / "trace", {**recorded, name: changed}))
        assert status == 0 or f"no {field!r}" in told, told
    assert {"run", "rank", "size", "clients", "call", "begin_ns", "objects", "predicted", "servers"} <= refused


def test_a_header_with_fields_of_other_types(recorded: dict[str, bytes], tmp_path: Path, run: Run) -> None:
    other_types(recorded, tmp_path, run, 5)


@pytest.mark.long
def test_a_header_with_fields_of_all_other_types(recorded: dict[str, bytes], tmp_path: Path, run: Run) -> None:
    other_types(recorded, tmp_path, run, 1)


def test_a_header_that_is_no_object(recorded: dict[str, bytes], tmp_path: Path, run: Run) -> None:
    name = min(recorded)
    (_, spans), *others = parts(recorded[name])
    for value in VALUES:
        status, told = run("trace", "summary", put(tmp_path / "trace", {name: whole([(value, spans), *others])}))
        assert status == 2, value
        assert name in told
    deep = b'{"a":' * 100_000
    for text in (b"{", b"\xff", b"9" * 10_000, deep):
        damaged = HEAD.pack(b"hsTRACE1", len(text), SPAN_BYTES, 0) + text
        status, told = run("trace", "summary", put(tmp_path / "trace", {name: damaged}))
        assert (status, "does not say in JSON" in told) == (2, True), told


def test_spans_that_cannot_be(recorded: dict[str, bytes], tmp_path: Path, run: Run) -> None:
    name = min(recorded)
    blocks = parts(recorded[name])
    number = next(number for number, (header, _) in enumerate(blocks) if "strategy" in header)
    header, spans = blocks[number]
    for at, size, value, why in (
        (56, 1, 13, "no kind"),
        (57, 1, 255, "no kind"),
        (8, 8, 0, "ends before it begins"),
        (8, 8, 2**64 - 1, "at no time"),
        (44, 4, 3, "a rank of which there are 3 only"),
    ):
        begin = 2 * SPAN_BYTES + at
        damaged = spans[:begin] + value.to_bytes(size, "little") + spans[begin + size :]
        changed = whole([*blocks[:number], (header, damaged), *blocks[number + 1 :]])
        status, told = run("trace", "view", "-o", tmp_path / "p", put(tmp_path / "trace", {**recorded, name: changed}))
        assert status == 2
        assert name in told
        assert f"span 2 {'is of ' if why == 'no kind' else ''}" in told
        assert why in told


def test_what_is_no_file_of_a_trace(tmp_path: Path, run: Run) -> None:
    for make in (Path.mkdir, os.mkfifo, lambda path: path.symlink_to("nowhere")):
        directory = tmp_path / make.__name__
        directory.mkdir()
        make(directory / "x.trace")
        status, told = run("trace", "summary", directory)
        assert status == 2
        assert f"'{directory}/x.trace'" in told
        assert "not a file" in told


@pytest.mark.filterwarnings("error")
def test_a_trace_of_servers_only(tmp_path: Path, run: Run) -> None:
    """Files may have been left behind: what is there is told, whichever ranks that is."""
    array = {"shape": (16, 8), "mesh": (2, 1), "dims": ("block", "*")}
    stages = [{"transfer": {"write": True, "arrays": [array], "strategy": "server-directed"}}]
    hs.simulate("nas-sp2", stages, clients=2, servers=1, trace=tmp_path / "all")
    (file,) = (tmp_path / "all").iterdir()
    blocks = parts(file.read_bytes())
    for ranks in ({0}, {1}, {2}, {1, 2}):
        some = whole([block for block in blocks if block[0]["rank"] in ranks])
        directory = put(tmp_path / "some", {file.name: some})
        for arguments in verbs(tmp_path, directory):
            assert run(*arguments) == (0, "")


# ---- machines and stages ---------------------------------------------------------------------------------------


def machine_text() -> bytes:
    return hs.Machine.load("nas-sp2").text.encode()


@pytest.mark.parametrize(
    "contents",
    [b"\xff\xfe", b"name = \x80", machine_text() + b"\xe9", machine_text().decode().encode("utf-16")],
    ids=["bytes", "a byte in a text", "another encoding at the end", "utf-16"],
)
def test_a_machine_that_is_not_utf8(tmp_path: Path, run: Run, contents: bytes) -> None:
    file = tmp_path / "machine.toml"
    file.write_bytes(contents)
    array = ("--shape", "16,16", "--mesh", "2,1", "--dims", "block,*")
    for arguments in (("simulate", "--constants"), ("simulate", *array), ("plan", *array)):
        status, told = run(arguments[0], "--machine", file, *arguments[1:])
        assert status == 2
        assert f"'{file}'" in told
        assert "not UTF-8" in told
        assert "hint:" in told


def test_a_machine_that_is_damaged_is_an_error(tmp_path: Path, run: Run) -> None:
    """Cut off, or with other bytes: it is refused or means something else, and never a traceback."""
    good, chance = machine_text(), random.Random(2)
    file = tmp_path / "machine.toml"
    statuses = []
    for number in range(60):
        damaged = bytearray(good)
        damaged[chance.randrange(len(good))] = chance.randrange(256)
        file.write_bytes(good[: 37 * number % len(good)] if number % 4 == 0 else damaged)
        statuses.append(run("simulate", "--machine", file, "--constants")[0])
    assert set(statuses) == {0, 2}


def test_a_machine_is_read_as_utf8_in_any_language(tmp_path: Path) -> None:
    file = tmp_path / "machine.toml"
    file.write_text(machine_text().decode() + "\n# größer als µ\n", encoding="utf-8")
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "hyperslab", "simulate", "--machine", str(file), "--constants"]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "contents", [b"\xff", b"[" * 100_000, b"9" * 10_000, b'"\\ud800"', b'{"work": {"\\ud800": 1}}']
)
def test_stages_that_are_damaged(tmp_path: Path, run: Run, contents: bytes) -> None:
    file = tmp_path / "stages.json"
    file.write_bytes(contents)
    status, told = run("simulate", "--machine", "nas-sp2", "--clients", "2", "--stages", file)
    assert status == 2
    assert "Traceback" not in told


@pytest.mark.parametrize("kind", ["bytes", "pipe", "directory", "cut off"])
def test_a_profile_that_is_damaged_is_a_warning(tmp_path: Path, kind: str) -> None:
    """Transfers go on with the built-in one."""
    profile = tmp_path / "profile.toml"
    match kind:
        case "bytes":
            profile.write_bytes(b"# Measured by hyperslab calibrate\nname = '\xff'\n")
        case "pipe":
            os.mkfifo(profile)
        case "directory":
            profile.mkdir()
        case _:
            profile.write_bytes(machine_text()[:200])
    program = (
        "import sys, hyperslab as hs, numpy as np\n"
        "with hs.open(sys.argv[1], 'w') as store: store.write('rho', np.ones(3))\n"
        "with hs.open(sys.argv[1]) as store: print(store.read('rho').sum())\n"
    )
    environment = {**os.environ, "HYPERSLAB_PROFILE": str(profile)}
    command = [sys.executable, "-c", program, str(tmp_path / "run.zarr")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "3.0\n"), done.stderr
    assert done.stderr.count("hyperslab: warning: ") == 1
    assert str(profile) in done.stderr
    assert "built-in profile is used instead" in done.stderr
