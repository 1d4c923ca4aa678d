"""The command: what it lists, explains and measures, for people and as JSON."""

from __future__ import annotations

import argparse
import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType

import hyperslab as hs
import numpy as np
import pytest
from hyperslab.__main__ import main, parser

from mpi_launch import environment, mpiexec
from terminals import on_a_terminal


def run(*arguments: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hyperslab", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment({}))
    assert done.returncode == status, done.stderr
    return done


def make_store(path: Path) -> None:
    with hs.open(path, "w") as store:
        store.attrs["title"] = "a test"
        names, attributes = ("x", "y"), {"units": "kg m-3", "of": ["a", 1]}
        values = np.arange(24, dtype="f4").reshape(4, 6)
        store.write("rho", values, chunks=(2, 6), dimension_names=names, attributes=attributes, zstd=1)
        store.create_array("empty", (10, 10), chunks=(5, 5), fill_value=-1)
        store.write("mesh/deep/x", np.zeros(3), shards=(3,), chunks=(1,))
        with store.step("0001", attributes={"time": 0.5}) as step:
            step.write("u", np.zeros(3))


def test_inspect_shows_a_tree(tmp_path: Path) -> None:
    path = tmp_path / "s.zarr"
    make_store(path)
    lines = run("inspect", path).stdout.splitlines()
    size = (path / "rho/c.0.0").stat().st_size + (path / "rho/c.1.0").stat().st_size
    shard = next(path.glob("mesh/deep/x/c*")).stat().st_size
    assert lines == [
        f"{path}  Zarr",
        '  title = "a test"',
        "  empty  float64 (10, 10), 800 B, chunks (5, 5), 0 of 4 chunks stored, 0 B, crc32c, fill -1.0",
        f"  rho  float32 (x: 4, y: 6), 96 B, chunks (2, 6), 2 of 2 chunks stored, {size} B, zstd+crc32c",
        '      units = "kg m-3"',
        '      of = ["a", 1]',
        "  0001/  step",
        "    time = 0.5",
        "    u  float64 (3), 24 B, chunks (3,), 1 of 1 chunks stored, 28 B, crc32c",
        "  mesh/",
        "    deep/",
        f"      x  float64 (3), 24 B, chunks (1,), shards (3,), 1 of 1 shards stored, {shard} B",
    ]
    told = json.loads(run("inspect", path, "--json").stdout)
    rho = told["arrays"]["rho"]
    assert (told["kind"], told["attributes"], sorted(told["arrays"])) == ("zarr", {"title": "a test"}, ["empty", "rho"])
    assert (rho["shape"], rho["dtype"], rho["chunks"], rho["dimension_names"]) == (
        [4, 6],
        "float32",
        [2, 6],
        ["x", "y"],
    )
    assert (rho["bytes"], rho["objects"], rho["objects_stored"], rho["bytes_stored"]) == (96, 2, 2, size)
    assert (told["groups"]["0001"]["step"], list(told["groups"]["mesh"]["groups"])) == (True, ["deep"])


def test_inspect_goes_on_where_something_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "s.zarr"
    make_store(path)
    (path / "rho/zarr.json").write_text("{")
    (path / "0001/u/zarr.json").write_text((path / "0001/u/zarr.json").read_text().replace("float64", "fancy"))
    shown = run("inspect", path, status=1).stdout
    for text in ("rho  cannot be read: ", "u  cannot be read: ", "fancy", "empty  float64", "time = 0.5", "deep/"):
        assert text in shown, shown
    told = json.loads(run("inspect", path, "--json", status=1).stdout)
    assert "JSON" in told["arrays"]["rho"]["error"]
    with hs.open(path) as store:
        assert list(store) == ["empty", "rho"]
        assert store["empty"].shape == (10, 10)
        with pytest.raises(hs.CorruptError):
            store["rho"]


def test_inspect_shows_files_and_arrays_alone(tmp_path: Path) -> None:
    make_store(tmp_path / "s.zarr")
    assert "  /  float32 (x: 4, y: 6), 96 B" in run("inspect", tmp_path / "s.zarr/rho").stdout
    hs.save_npy(tmp_path / "a.npy", np.zeros((2, 3), "i2"))
    assert run("inspect", tmp_path / "a.npy").stdout == f"{tmp_path}/a.npy  npy\n  array  int16 (2, 3), 12 B\n"
    with hs.open(tmp_path / "a.nc", "w", attributes={"title": "t"}) as file:
        file.write({"rho": (("x",), np.zeros(3), {"units": "kg"})})
    lines = run("inspect", tmp_path / "a.nc").stdout.splitlines()
    assert lines == [
        f"{tmp_path}/a.nc  NetCDF classic",
        '  title = "t"',
        "  rho  >f8 (x: 3), 24 B, fill 9.969209968386869e+36",
        '      units = "kg"',
    ]
    (tmp_path / "other").write_text("text")
    assert "neither npy nor NetCDF nor HDF5" in run("inspect", tmp_path / "other", status=2).stderr


def test_inspect_shows_every_type_and_prints_strict_json(tmp_path: Path) -> None:
    path = tmp_path / "s.zarr"
    with hs.open(path, "w") as store:
        store.write("a", np.ones(4), fill_value=float("nan"), attributes={"µ": "µm"})
        store.write("c", np.ones(4, "c8"), fill_value=1 + 2j)
        store.write("s", np.zeros(4, [("a", "i4"), ("b", "f8")]))
        store.write("t", np.ones(3, "datetime64[s]"))
    shown = run("inspect", path).stdout
    assert '      µ = "µm"' in shown.splitlines()
    assert "  s  [('a', '<i4'), ('b', '<f8')] (4), 48 B" in shown
    assert re.search(r"  t  datetime64\[s\] \(3\), .*, fill NaT\n", shown)

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    told = json.loads(run("inspect", path, "--json").stdout, parse_constant=refuse)
    assert {name: one["fill_value"] for name, one in told["arrays"].items()} == {
        "a": "NaN",
        "c": [1.0, 2.0],
        "s": "(0, 0.0)",
        "t": "NaT",
    }


#: Whole outputs that follow from the arguments alone, by the names of their files in `golden/command`.
OUTPUTS = {
    "explain": ("explain", "--shape", "8,8", "--mesh", "2,2", "--cores", "2"),
    "plan": ("plan", "--machine", "orion-like", "--shape", "512,512,64", "--mesh", "4,4,2", "--dims", "block,block,*"),
    "simulate": ("simulate", "--machine", "nas-sp2", "--benchmark", "flash", "--clients", "8", "--trace", "trace"),
    "trace": ("trace", "summary", "trace"),
    "verify": ("verify", "s.zarr"),
    "clean": ("clean", "s.zarr"),
}


def test_whole_outputs_are_as_kept(tmp_path: Path) -> None:
    """After a change that is meant: set HYPERSLAB_GOLDEN=1, and look at what git shows."""
    make_store(tmp_path / "s.zarr")
    kept = Path(__file__).parent / "golden/command"
    alone = {"HYPERSLAB_PROFILE": "none", "HYPERSLAB_LEARNED": "none", "COLUMNS": "120"}
    for name, arguments in OUTPUTS.items():
        command = [sys.executable, "-m", "hyperslab", *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=120, env=environment(alone), cwd=tmp_path, check=True
        )
        assert done.stderr == "", name
        if "HYPERSLAB_GOLDEN" in os.environ:
            (kept / f"{name}.txt").write_text(done.stdout)
        assert done.stdout == (kept / f"{name}.txt").read_text(), name


def leaves(parser: argparse.ArgumentParser, verb: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """All verbs without verbs below them."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        yield verb, parser
    for action in below:
        for name, one in action.choices.items():
            yield from leaves(one, f"{verb} {name}".strip())


def test_every_verb_prints_json_but_that_of_scripts() -> None:
    without = [verb for verb, one in leaves(parser()) if "--json" not in one._option_string_actions]
    assert without == ["completion"]


def test_explain_has_one_unit_of_times() -> None:
    # Less than a millisecond now, and more to be durable later.
    shown = run("explain", "--shape", "512,512", "--mesh", "2,2", "--cores", "2").stdout
    assert set(re.findall(r"\d (s|ms|us|ns)\b", shown)) == {"ms"}
    told = re.search(r"([\d.]+) ms \(and ([\d.]+) ms to be durable later\) predicted", shown)
    assert told is not None
    assert float(told[1]) < 1 < float(told[2]), told[0]


def test_what_cannot_be_written_is_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nowhere, asked = str(tmp_path / "none/file"), ("--shape", "8,8", "--mesh", "2,2")
    for arguments in (
        ("explain", *asked, "--picture", nowhere),
        ("simulate", "--machine", "nas-sp2", *asked, "--log", nowhere),
        ("reproduce", "ross01", "--markdown", nowhere),
        ("reproduce", "ross01", "--sensitivity", nowhere),
        ("trace", "view", str(tmp_path), "--output", nowhere),
        ("trace", "export", str(tmp_path), "--chrome", nowhere),
    ):
        with pytest.raises(SystemExit, match="2"):
            main([*arguments])
        assert f"cannot be written: there is no directory '{tmp_path}/none'" in capsys.readouterr().err
    assert main(["bench", "entire", "--directory", "/proc/none"]) == 2
    assert capsys.readouterr().err == "hyperslab: bench: '/proc/none': No such file or directory\n"


def test_the_help_tells_exit_codes() -> None:
    told = " ".join(parser().format_help().split())
    assert "exit codes: 0, done; 1, done, and what was looked at is damaged" in told


def test_sizes_have_units_everywhere(tmp_path: Path) -> None:
    make_store(tmp_path / "s.zarr")
    assert "no damage" in run("verify", tmp_path / "s.zarr", "--buffer-bytes", "1MiB").stdout
    (tmp_path / "a.raw").write_bytes(bytes(1024 + 32))
    assert "no damage" in run("verify", tmp_path / "a.raw", "--header", "1KiB", "--array", "a:4:<f8").stdout


def test_all_lists_are_json_too() -> None:
    told = json.loads(run("simulate", "--list", "--json").stdout)
    assert {"nas-sp2", "orion-like"} <= set(told["machines"])
    assert "flash" in " ".join(told["benchmarks"]).lower() or told["benchmarks"]
    constants = json.loads(run("simulate", "--machine", "nas-sp2", "--constants", "--json").stdout)
    assert {"key", "value", "origin", "source"} <= set(constants[0])


def test_a_plan_needs_a_shape_and_a_mesh_only() -> None:
    shown = run("plan", "--machine", "orion-like", "--shape", "512,512,64", "--mesh", "4,4,2").stdout
    assert shown.startswith("128 MiB on orion-like: ")
    assert "candidates" in shown
    assert run("simulate", "--machine", "nas-sp2", "--shape", "64,64", "--mesh", "2,2").stdout.startswith("32 KiB in ")


def test_nobody_is_advised_to_use_more_ranks_than_there_are_cores() -> None:
    cores = os.cpu_count() or 1
    asked = ("--shape", f"{512 * cores},512,64", "--mesh", f"{cores},1,1")
    advice = json.loads(run("explain", *asked, "--json").stdout)["advice"]
    assert not [line for line in advice if line.split()[1].startswith("rank") and int(line.split()[0]) > cores], advice
    variants = json.loads(run("plan", "--machine", "here", *asked, "--json").stdout)["variants"]
    assert not [one["text"] for one in variants if one["kind"] == "ranks" and int(one["text"].split()[0]) > cores]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_the_command(shell: str) -> None:
    script = run("completion", shell).stdout
    assert "inspect" in script
    assert "--strategy" in script or "-l strategy" in script
    if shell != "bash":
        return

    def completed(*words: str) -> list[str]:
        line = " ".join(f'"{word}"' for word in ("hyperslab", *words))
        ask = (
            f"{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words)}; _hyperslab; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        )
        done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True, cwd="/")
        return done.stdout.split()

    assert {"inspect", "verify", "bench", "completion"} <= set(completed(""))
    assert completed("ins") == ["inspect"]
    assert completed("inspect", "--js") == ["--json"]
    assert completed("explain", "--direction", "") == ["write", "read"]
    assert set(completed("bench", "")) >= {"entire", "formats", "peers", "regret"}
    # A path or a value may be called like a verb.
    assert completed("inspect", "trace", "--js") == ["--json"]
    assert completed("explain", "--name", "plan", "--pict") == ["--picture"]


def test_colours_are_for_terminals_and_those_who_want_them(tmp_path: Path) -> None:
    make_store(tmp_path / "s.zarr")

    place = str(tmp_path / "s.zarr")

    def shown(*arguments: str, **variables: str) -> str:
        command = [sys.executable, "-m", "hyperslab", *arguments]
        return on_a_terminal(command, 0, **variables)[1]

    explain = ("explain", "--shape", "8,8", "--mesh", "2,2", "--cores", "2")
    assert "\x1b[36mrho" in shown("inspect", place)
    assert "\x1b[32mresult: no damage found" in shown("verify", place)
    assert "\x1b[1mcandidates" in shown(*explain)
    assert "\x1b" not in shown(*explain, NO_COLOR="1")


def test_what_a_killed_program_left_goes_with_the_next(tmp_path: Path) -> None:
    from hyperslab._scratch import scratch

    program = f"""
import os, signal
from pathlib import Path
from hyperslab._scratch import scratch
with scratch("left-", Path({str(tmp_path)!r})) as place:
    (place / "file").write_text("x")
    os.kill(os.getpid(), signal.{{}})
"""
    for number in ("SIGKILL", "SIGTERM"):
        done = subprocess.run([sys.executable, "-c", program.format(number)], env=environment({}), check=False)
        assert done.returncode != 0
        assert len(list(tmp_path.iterdir())) == (number == "SIGKILL"), number
        with scratch("left-", tmp_path) as place, scratch("left-", tmp_path) as other:
            assert sorted(tmp_path.iterdir()) == sorted([place, other]), "what is in use stays"
        assert not list(tmp_path.iterdir())


def test_a_directory_is_locked_before_it_has_its_name(tmp_path: Path) -> None:
    from hyperslab import _scratch

    # Somebody else looks for what was left at each step of making one, and must not take it.
    steps: list[str] = []

    def look(frame: FrameType, event: str, _: object) -> None:
        if event in ("call", "return", "c_call", "c_return") and frame.f_code.co_name == "scratch":
            sys.setprofile(None)
            steps.extend(path.name for path in _scratch.remove_left("left-", tmp_path))
            sys.setprofile(look)

    sys.setprofile(look)
    try:
        with _scratch.scratch("left-", tmp_path) as place:
            sys.setprofile(None)
            assert place.is_dir()
            assert place.name.startswith("left-")
    finally:
        sys.setprofile(None)
    assert not steps
    assert not list(tmp_path.iterdir())


@pytest.mark.mpi
def test_a_benchmark_that_is_told_to_end_does_so_and_leaves_nothing(tmp_path: Path) -> None:
    mpiexec()
    asked = ("--size", "8MiB", "--ranks", "2", "--repetitions", "100000", "--directory", str(tmp_path))
    command = [sys.executable, "-m", "hyperslab", "bench", "entire", *asked]
    with tempfile.TemporaryDirectory(prefix="t", dir="/tmp") as own:
        for number, status in ((signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGINT, 130)):
            extra = environment({"TMPDIR": own})
            with subprocess.Popen(command, env=extra, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                assert process.stderr is not None
                while not list(tmp_path.glob("hyperslab-bench-*/task.json")) or not any(Path(own).iterdir()):
                    assert process.poll() is None, process.stderr.read()
                    time.sleep(0.02)
                process.send_signal(number)
                assert process.wait(100) == status
                assert b"Traceback" not in process.stderr.read()
            assert not list(tmp_path.iterdir())
            assert not any(Path(own).iterdir())


def test_the_page_of_environment_variables_is_current() -> None:
    from hyperslab._environment import VARIABLES, page

    root = Path(__file__).parents[2]
    assert (root / "docs/environment.md").read_text() == page(), "make it anew: python -m hyperslab._environment FILE"
    product = [*root.glob("crates/*/src/**/*.rs"), *root.glob("bindings/**/*.rs"), *root.glob("bindings/**/*.py")]
    read = set()
    for path in product:
        if path.name != "_environment.py":
            text = path.read_text().split("#[cfg(test)]")[0]
            read |= set(re.findall(r'"(HYPERSLAB_[A-Z_]+)"', text))
    declared = {one.name for one in VARIABLES}
    assert read - FOR_TESTS == declared


#: What only our own tests and scripts read.
FOR_TESTS = {"HYPERSLAB_TIMES", "HYPERSLAB_SEED", "HYPERSLAB_GOLDEN", "HYPERSLAB_CHROMIUM"}


def test_an_error_goes_to_stderr_with_its_hint(tmp_path: Path) -> None:
    done = run("inspect", tmp_path / "none.zarr", status=2)
    assert done.stdout == ""
    assert "does not exist" in done.stderr
    assert "hint:" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (("explain", "--shape", "2,a", "--mesh", "1"), 2, "'2,a' is not a list of numbers such as 128,128,64"),
        (("explain", "--shape", "8", "--mesh", "1", "--section", "0:a"), 2, "'0:a' is not low:high or low:high:step"),
        (("plan", "--machine", "here", "--scale", "messages.send"), 2, "is not key=factor, such as messages.send=1.2"),
        (("plan", "--machine", "here", "--clients", "-1"), 2, "-1 clients: at least one is needed"),
        (("plan", "--machine", "here", "--clients", "2"), 2, "hint: or name a --benchmark\n"),
        (("simulate", "--machine", "here", "--clients", "2"), 2, "hint: or name a --benchmark, or --stages\n"),
    ],
)
def test_what_cannot_be_read_is_told(arguments: tuple[str, ...], status: int, told: str) -> None:
    assert told in run(*arguments, status=status).stderr


def test_explain_tells_who_moves_what() -> None:
    shape = ("explain", "--shape", "64,64", "--mesh", "2,2", "--chunks", "48,48", "--cores", 2)
    lines = run(*shape).stdout.splitlines()
    assert "write 1 array, 32 KiB in storage, 4 ranks" in lines
    why = next(line for line in lines if line.startswith("  why: "))
    assert "predicted, bound by the" in why
    assert "independent is out, since two ranks hold parts of one chunk of array 'array' (at index 32 of" in why
    assert any(line.startswith("  independent: not possible: two ranks hold parts of one chunk") for line in lines)
    told = json.loads(run(*shape, "--json").stdout)
    assert told["strategy"] != "independent"
    assert sum(row["elements"] for table in told["rounds"] for row in table["ranks"]) == 64 * 64
    prices = [one["predicted"] for one in told["candidates"]]
    seconds = [price["seconds"] + price["later_seconds"] + price["first_seconds"] for price in prices]
    assert seconds == sorted(seconds)
    assert "advice" in told
    assert told["predicted"]["seconds"] == pytest.approx(sum(told["predicted"]["phases"].values()))
    assert "strategy independent" in run(*shape[:5], "--chunks", "32,32").stdout
    assert "chunks of 'array' are (64, 64), since (32, 32) would take " in run(*shape[:5]).stdout
    refused = run(*shape, "--strategy", "independent", status=2)
    assert "cannot share a chunk" in refused.stderr
    shared = ("explain", "--shape", "64,64", "--mesh", "2,2", "--layout", "raw", "--strategy", "two-phase")
    told = json.loads(run(*shared, "--exchange", "sharers", "--json").stdout)
    assert told["parameters"]["exchange"] == "sharers"
    unknown = run(*shape, "--strategy", "magic", status=2)
    assert "there is no strategy 'magic'" in unknown.stderr


def test_explain_knows_raw_files_sections_and_servers() -> None:
    raw = ("explain", "--shape", "32,32", "--mesh", "2,2", "--dtype", "f4", "--layout", "raw", "--order", "F")
    raw += ("--strategy", "server-directed")
    told = json.loads(run(*raw, "--name", "a", "b", "--server-ranks", "3,1", "--json").stdout)
    assert [array["order"] for array in told["arrays"]] == [[1, 0], [1, 0]]
    assert [array["file"]["offset"] for array in told["arrays"]] == [0, 4096]
    assert told["parameters"]["servers"] == [3, 1]
    assert {row["rank"] for row in told["servers"]} == {1, 3}
    part = run(*raw, "--section", "1:64:2,0:32", "--stored-shape", "64,40", "--rounds", 1, "--ranks", 2).stdout
    assert "array[1:64:2, 0:32] of (64, 40) float32" in part
    assert "... and 2 more ranks" in part
    lost = run(*raw, "--section", "1:64:2,0:32", status=2)
    assert "needs the shape" in lost.stderr


def test_explain_takes_the_pieces_of_all_ranks() -> None:
    held = [hs.Boxes((8, 8), [((0, 0), (4, 8))]), hs.Boxes((8, 8), [((4, 0), (8, 4)), ((4, 4), (8, 8))])]
    told = hs.explain(held, "f8", layout="raw", cores=2, strategy="server-directed", servers=1)
    moved = [row for table in told.to_dict()["rounds"] for row in table["ranks"]]
    assert [(row["rank"], row["pieces"], row["bytes"]) for row in moved] == [(0, 1, 256), (1, 2, 256)]
    assert str(told) == told.text
    assert "server-directed" in repr(told)
    with pytest.raises(hs.InvalidError, match="both write element"):
        hs.explain([held[0], held[0]])
    with pytest.raises(hs.InvalidError, match="layout must be 'zarr' or 'raw'"):
        hs.explain(hs.Distribution.block((4,), 2), layout="tar")  # type: ignore[arg-type]


@pytest.mark.mpi
def test_the_benchmark_runs_and_checks_itself(tmp_path: Path) -> None:
    mpiexec()
    small = ("--size", "2MiB", "--ranks", 2, "--repetitions", 1, "--directory", tmp_path)
    told = json.loads(run("bench", "entire", *small, "--json").stdout)
    assert told
    (launch,) = json.loads(run("bench", "formats", *small, "--json").stdout)["launches"]
    assert list(launch["cases"]) == ["write", "read", "FLASH checkpoint, 80 blocks a rank"]
    for case in launch["cases"].values():
        assert {"hyperslab, raw", "hyperslab, HDF5"} <= case["seconds"].keys() == case["stored_bytes"].keys()
        assert all(len(each) == 2 for each in case["seconds"].values()), "a first call, and one that counts"
    stored = launch["cases"]["write"]["stored_bytes"]
    assert "h5py, rank 0, gzip" in stored
    assert stored["hyperslab, HDF5, gzip"] < stored["hyperslab, HDF5"] / 2
    assert stored["hyperslab, raw"] == 2 << 20
    assert not list(tmp_path.iterdir())


def test_a_long_transfer_shows_a_bar_on_a_terminal(tmp_path: Path) -> None:
    program = (
        "import sys, numpy as np, hyperslab as hs, hyperslab._calls as calls\n"
        "calls.BAR_SECONDS = 0.0\n"
        "with hs.open(sys.argv[1], 'w', subchunk_bytes=1 << 20) as store:\n"
        "    store.write('a', np.ones((96, 1 << 19)), chunks=(1, 1 << 19))\n"
    )
    terminal, inner = pty.openpty()
    termios.tcsetwinsize(inner, (24, 80))
    shown = bytearray()

    def watch() -> None:
        # Reading from a terminal that nobody has open any more is an error, and the end.
        with suppress(OSError):
            while part := os.read(terminal, 4096):
                shown.extend(part)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    child = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "s.zarr")], stderr=inner, stdout=inner)
    os.close(inner)
    assert child.wait(100) == 0
    watcher.join(10)
    assert b"write of 'a'" in shown, bytes(shown)
    assert b"%" in shown
