"""``hyperslab calibrate``: what it writes can be read, simulated and used; what is wrong with a profile is told."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import hyperslab as hs
import pytest
from hyperslab import _core
from hyperslab._calibrate import default_ranks, full_of
from hyperslab._calibrate_fit import Point, Times, fit, jump, spread, typical
from hyperslab._calibrate_profile import profile, rate_text, time_text
from hyperslab._calibrate_ranks import merged, partners

from mpi_launch import environment, launched, mpiexec
from terminals import on_a_terminal
from test_command import run

#: Bounds of what a machine of this century can do: lowest and highest, in base units (s, B/s, counts).
BOUNDS = {
    "processor.copy_rate": (1e8, 1e12),
    "processor.run": (0, 1e-5),
    "processor.code_rate": (1e6, 1e11),
    "processor.step": (0, 1e-3),
    "processor.piece": (0, 1e-3),
    "messages.send": (0, 1e-1),
    "processor.turn": (0, 1e-6),
    "processor.touch_rate": (1e6, 1e12),
    "measured.neighbours.message": (0, 1e-1),
    "measured.neighbours.rate": (1e7, 1e12),
    "measured.neighbours.wake": (1e-7, 1),
    "measured.agreements.base": (1e-8, 1e-2),
    "measured.agreements.rank": (0, 1),
    "measured.files.write_rate": (1e6, 1e12),
    "measured.files.write_rate_kept": (1e6, 1e12),
    "measured.files.read_rate": (1e6, 1e12),
    "measured.files.cold_rate": (1e5, 1e12),
    "measured.files.direct_write_rate": (1e5, 1e12),
    "measured.files.writers": (1, 64),
    "measured.files.sync": (0, 10),
    "measured.files.create": (1e-7, 1),
    "measured.files.open": (1e-7, 1),
    "measured.files.rename": (1e-7, 1),
    "measured.files.remove": (1e-7, 1),
    "measured.noise.copy": (0, 100),
}
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "B/s": 1, "KB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9}
UNITS |= {"KiB": 2**10, "MiB": 2**20}


def value(text: str) -> float:
    number, _, unit = text.strip('"').partition(" ")
    return float(number) * (UNITS[unit] if unit else 1)


def check(path: Path) -> dict[str, hs.Constant]:
    """The profile can be read, its numbers are plausible, most were measured, and it can be simulated."""
    constants = {constant.key: constant for constant in hs.Machine.load(path).constants()}
    for key, (low, high) in BOUNDS.items():
        constant = constants[key]
        assert low <= value(constant.value) <= high, (key, constant)
        assert constant.origin == "measured", (key, constant)
    assert sum(constant.origin == "measured" for constant in constants.values()) > 40
    array = {"shape": [64, 64], "mesh": [2, 2], "dims": ["block", "block"]}
    result = hs.simulate(path, [{"transfer": {"write": True, "arrays": [array], "sync": True}}], clients=4)
    assert 0 < result["seconds"] < 10
    return constants


def at_hand(profile: object) -> tuple[str, bool, list[str]]:
    """What a process finds whose environment names this profile."""
    program = "import json; from hyperslab import _core; print(json.dumps(_core.profile_at_hand()))"
    extra = environment({"HYPERSLAB_PROFILE": str(profile)})
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60, env=extra
    )
    name, default, warnings = json.loads(done.stdout)
    return name, default, warnings


@pytest.fixture(scope="module")
def by_threads(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A quick calibration whose ranks are threads."""
    place = tmp_path_factory.mktemp("calibrated")
    output, directory = place / "below" / "machine.toml", place / "scratch"
    directory.mkdir()
    arguments = ("--directory", directory, "--output", output, "--seconds", 1, "--ranks", "1,2,3", "--threads")
    command = [sys.executable, "-m", "hyperslab", "calibrate", *map(str, arguments), "--json"]
    stdout, progress = on_a_terminal(command, 0, apart=True)
    assert "one process: files" in progress
    assert "2 ranks: messages, packed" in progress
    assert "3 ranks: agreements" in progress
    assert not list(directory.iterdir()), "scratch files are left"
    assert [path.name for path in output.parent.iterdir()] == ["machine.toml"]
    return output, json.loads(stdout)


def test_threads_are_measured(by_threads: tuple[Path, dict[str, Any]]) -> None:
    output, told = by_threads
    constants = check(output)
    assert told["profile"] == output.read_text()
    assert told["launched"]["wire"] == "threads"
    assert "by threads" in constants["messages.send"].source
    kernels = {series["kernel"] for series in told["series"]}
    expected = {
        "copy",
        "turn",
        "touch",
        "plan",
        "encode",
        "write",
        "sync",
        "cold",
        "message",
        "echo",
        "own-file",
        "agree",
    }
    assert expected <= kernels
    assert all(min(series["seconds"]) > 0 for series in told["series"])


@pytest.mark.mpi
def test_processes_are_measured(tmp_path: Path) -> None:
    mpiexec()
    output = tmp_path / "machine.toml"
    done = run("calibrate", "--directory", tmp_path, "--output", output, "--seconds", 1, "--ranks", "1,2")
    # Progress is for terminals, and a summary for people: each unit stands for all that it can be of.
    assert all(line.startswith("warning: ") for line in done.stderr.splitlines()), done.stderr
    units = set(re.findall(r"[\d.]+ (\S+)$", done.stdout, re.MULTILINE))
    assert len(units) == 2, done.stdout
    constants = check(output)
    assert re.search(r"by (MPICH|Open MPI) [\d.]+", constants["messages.send"].source)
    assert [path.name for path in tmp_path.iterdir()] == ["machine.toml"]


@pytest.mark.mpi
def test_the_ranks_of_a_launch_are_measured(tmp_path: Path) -> None:
    output = tmp_path / "machine.toml"
    task = ["calibrate", "--here", "--directory", tmp_path, "--output", output, "--seconds", 1, "--ranks", "1,3"]
    command = [sys.executable, "-m", "mpi4py", "-m", "hyperslab", *task]
    done = launched(3, *command)
    assert done.returncode == 0, done.stderr
    check(output)
    assert [path.name for path in tmp_path.iterdir()] == ["machine.toml"]
    refused = launched(3, *command, "--output", tmp_path)
    assert refused.returncode != 0
    assert "is a directory" in refused.stderr


def test_the_environment_names_the_profile(by_threads: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    output, _ = by_threads
    name, default, warnings = at_hand(output)
    assert not default
    assert not warnings
    assert f'name = "{name}"' in output.read_text()
    assert at_hand("none") == ("default", True, [])
    assert at_hand("") == ("default", True, [])
    cut = tmp_path / "cut.toml"
    cut.write_text(output.read_text()[:2000])
    _, default, (warning,) = at_hand(cut)
    assert default
    assert warning.startswith(f"{cut}: the profile was cut off after")
    assert "hint: 'hyperslab calibrate'" in warning


def test_the_default_place_is_that_of_configurations(tmp_path: Path) -> None:
    program = "from hyperslab import _core; print(_core.profile_path())"
    kept = {key: text for key, text in os.environ.items() if key != "HYPERSLAB_PROFILE"}
    for extra, place in (
        ({"XDG_CONFIG_HOME": str(tmp_path)}, tmp_path),
        ({"XDG_CONFIG_HOME": "", "HOME": str(tmp_path)}, tmp_path / ".config"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60, env=kept | extra
        )
        assert done.stdout.strip() == str(place / "hyperslab" / "machine.toml")


def test_what_cannot_be_measured_is_refused_at_once(tmp_path: Path) -> None:
    assert "usage: hyperslab calibrate" in run("calibrate", "--help").stdout
    output = tmp_path / "machine.toml"
    missing = run("calibrate", "--directory", tmp_path / "none", "--output", output, status=2)
    assert "'does not exist" not in missing.stderr
    assert "none' does not exist" in missing.stderr
    assert "hint: --directory" in missing.stderr
    file = tmp_path / "file"
    file.write_text("")
    assert "is not a directory" in run("calibrate", "--directory", file, "--output", output, status=2).stderr
    # What lies in /proc cannot be written to, not even by root.
    refused = run("calibrate", "--directory", "/proc", "--output", output, status=2).stderr
    assert "no file can be made in '/proc'" in refused
    assert "is a directory" in run("calibrate", "--output", tmp_path, status=2).stderr
    refused = run("calibrate", "--output", "/proc/machine.toml", status=2).stderr
    assert "no profile can be written to '/proc/machine.toml'" in refused
    assert "hint: name a file with --output" in refused
    assert "is not a list of numbers of ranks" in run("calibrate", "--ranks", "2,x", status=2).stderr
    assert "is not a number of seconds" in run("calibrate", "--seconds", "-1", status=2).stderr
    assert not output.exists()


def test_it_can_be_interrupted(tmp_path: Path) -> None:
    output = tmp_path / "machine.toml"
    command = [sys.executable, "-m", "hyperslab", "calibrate", "--directory", tmp_path, "--output", output, "--threads"]

    interrupted: list[bytes] = []

    def interrupt(process: subprocess.Popen[bytes], shown: bytes) -> None:
        # By the second line, the first has been measured. Once: what follows shows more.
        if b"one process: coding" in shown and not interrupted:
            interrupted.append(shown)
            process.send_signal(signal.SIGINT)

    _, told = on_a_terminal(list(map(str, command)), 130, watch=interrupt)
    assert "interrupted by the user; no profile was written" in told
    assert not list(tmp_path.iterdir())


def test_fits_find_what_times_were_made_of() -> None:
    points = [
        Point({"bytes": nbytes, "runs": runs}, 3e-6 + nbytes * 2e-10 + runs * 5e-9, 0.0)
        for nbytes in (64, 4096, 1 << 20, 1 << 24)
        for runs in (1, 100, 10000)
    ]
    found = fit(points, lambda _: 1.0, lambda at: at["bytes"], lambda at: at["runs"])
    assert found == pytest.approx([3e-6, 2e-10, 5e-9])
    # What would be negative is left out, and the others are found without it.
    falling = [Point({"bytes": nbytes}, nbytes * 2e-10 - 1e-9, 0.0) for nbytes in (64, 4096, 1 << 20)]
    assert fit(falling, lambda _: 1.0, lambda at: at["bytes"])[0] == 0.0


def test_a_step_in_times_is_found_and_noise_is_none() -> None:
    sizes = [2**exponent for exponent in range(6, 23, 2)]
    plain = [
        Point({"bytes": size}, (5e-6 + size * 1e-10) * (1 + 0.1 * (-1) ** index), 0.0)
        for index, size in enumerate(sizes)
    ]
    assert jump(plain) is None
    stepped = [Point(point.at, point.seconds + 2e-5 * (point.at["bytes"] > 16384), 0.0) for point in plain]
    assert jump(stepped) == 16384


def test_many_times_become_one() -> None:
    assert typical([3.0, 1.0, 2.0, 4.0, 5.0]) == 2.0
    assert typical([3.0]) == 3.0
    assert spread([3.0, 1.0, 2.0, 4.0, 5.0]) == pytest.approx(1 / 3)
    assert spread([1.0]) == 0.0
    one = {"kernel": "agree", "at": {"ranks": 2.0}, "way": "near", "seconds": [1.0, 5.0]}
    (both,) = merged([[one], [one | {"seconds": [2.0, 3.0]}]])
    assert both["seconds"] == [2.0, 5.0]
    times = Times([both])
    assert times.seconds("agree", ranks=2.0) == 2.75
    assert times.seconds("agree", ranks=3.0) is None
    assert times.noise("copy") is None
    # Each round is compared with itself: others were at work in the second and the third.
    pair = [
        one | {"kernel": "a", "seconds": [1.0, 2.0, 3.0, 1.0]},
        one | {"kernel": "b", "seconds": [2.0, 2.0, 3.0, 2.0]},
    ]
    assert Times(pair).ratio("a", "b") == 0.5
    assert Times(pair).ratio("a", "c") is None


def test_ranks_find_partners_on_their_host_or_on_another() -> None:
    assert partners(["a"] * 5, far=False) == [1, 0, 3, 2, None]
    assert partners(["a", "b", "a", "b"], far=False) == [2, 3, 0, 1]
    assert partners(["a", "a", "b", "b"], far=True) == [2, 3, 0, 1]
    assert partners(["a", "b", "c"], far=True) == [1, 0, None]
    assert partners(["a", "a"], far=True) == [None, None]
    assert default_ranks(1) == [1, 2, 4]
    assert full_of([1, 2, 4, 8], 4) == 4
    assert full_of([1, 4, 8], 2) == 4
    assert full_of([1], 2) == 1


def made_up() -> list[dict[str, Any]]:
    """Times of a machine whose numbers are known: two nodes of four ranks."""

    def series(kernel: str, way: str, seconds: float, **at: float) -> dict[str, Any]:
        return {"kernel": kernel, "way": way, "at": at, "seconds": [seconds] * 5}

    made = [
        series("copy", "near", runs * 8e-9 + 2**21 / 8e9, bytes=2**21, runs=runs)
        for runs in (1, 1 << 8, 1 << 12, 1 << 16)
    ]
    turned = [2**21 // size for size in (1, 2, 4, 8)]
    made += [series("turn", "near", runs * 2e-10 + 2**21 / 8e9, bytes=2**21, runs=runs) for runs in turned]
    made += [series("touch", "near", 2**21 / 2e9, bytes=2**21)]
    for way, start, rate in (("near", 4e-6, 8e9), ("wire", 6e-6, 2e9), ("far", 1e-5, 1e9)):
        for nbytes in (64, 4096, 1 << 18, 1 << 22):
            made.append(series("message", way, start + nbytes / rate, bytes=nbytes, runs=1, in_slot=0))
        for in_slot, each in ((1, 5e-8), (0, 9e-8)):
            for runs in (32, 512, 2048):
                seconds = start + (1 << 19) / rate + runs * each
                if way == "near" and in_slot == 0 and runs == 2048:
                    seconds *= 0.7  # Gaps between these are read along, so they say nothing of runs.
                made.append(series("message", way, seconds, bytes=1 << 19, runs=runs, in_slot=in_slot))
        made.append(series("echo", way, 3e-5, bytes=64, runs=1, in_slot=0))
    made += [
        series("agree", "near", seconds, ranks=ranks) for ranks, seconds in ((1, 1e-6), (8, 7.1e-5), (16, 1.671e-3))
    ]
    made += [series("late-agree", "near", 5e-5, ranks=8)]
    for kernel, start, rate in (("write", 3e-6, 4e9), ("read", 2e-6, 8e9)):
        made += [series(kernel, "alone", start + size / rate, bytes=size, runs=1) for size in (4096, 1 << 20, 1 << 24)]
    made += [series("write", "alone", 3e-6 + 2**20 / 4e9 + runs * 1e-7, bytes=2**20, runs=runs) for runs in (256, 4096)]
    made += [series("read", "alone", 2e-6 + 2**20 / 8e9 + runs * 4e-8, bytes=2**20, runs=runs) for runs in (256, 4096)]
    made += [series("write-kept", "alone", 3e-6 + 5e5 / 5e9, bytes=5e5)]
    made += [series("sync", "alone", 1e-3 + size / 2e9, bytes=size) for size in (1 << 16, 1 << 26)]
    made += [series("cold", "alone", 4e-3, bytes=4e6)]
    for way, rate in (("write", 2e9), ("read", 3e9)):
        made.append(series(f"direct-{way}", "alone", 2e6 / rate, bytes=2e6, at_once=1))
        made.append(series(f"direct-{way}", "alone", 1e-4 + 65536 / rate, bytes=65536, at_once=0))
    made += [series("create", "alone", 2e-5), series("create-together", "near", 6e-5, ranks=8)]
    made += [series("own-file", "near", 0.01, bytes=1e7, ranks=8), series("one-file", "near", 0.04, bytes=1e7, ranks=8)]
    return made


def test_a_profile_has_the_numbers_that_times_were_made_of(tmp_path: Path) -> None:
    launched = {"cores": 4, "nodes": 2, "ranks_per_node": 4, "together": 8, "wire": "MPI", "others": 0.5}
    text = profile(made_up(), tmp_path, launched)
    assert text.startswith("# Measured by hyperslab calibrate")
    assert "# Other programs used 50 % of the cores meanwhile" in text
    constants = {constant.key: constant for constant in hs.Machine(text, "made up").constants()}
    for key, expected in {
        "nodes.ranks_per_node": 4,
        "processor.copy_rate": 8e9,
        "processor.run": 8e-9,
        "messages.send": 5e-6,
        "messages.slot_per_run": 5e-8,
        "messages.array_per_run": 9e-8,
        "network.latency": 2e-5,
        "network.link_rate": 4e9,
        "processor.turn": 2e-10,
        "processor.touch_rate": 2e9,
        "measured.neighbours.message": 4e-6,
        "measured.neighbours.rate": 8e9,
        "measured.neighbours.run": 5e-8,
        "measured.neighbours.array_run": 9e-8,
        "measured.neighbours.wake": 2.5e-5,
        "measured.agreements.base": 1e-6,
        "measured.agreements.rank": 1e-5,
        "measured.agreements.crowded": 2e-4,
        "measured.files.write": 3e-6,
        "measured.files.write_rate": 4e9,
        "measured.files.write_rate_kept": 5e9,
        "measured.files.gather": 1e-7,
        "measured.files.scatter": 4e-8,
        "measured.files.writers": 2,
        "measured.files.read": 2e-6,
        "measured.files.read_rate": 8e9,
        "measured.files.sync": 1e-3,
        "measured.files.sync_rate": 2e9,
        "measured.files.cold_rate": 1e9,
        "measured.files.direct_read_rate": 3e9,
        "measured.files.create": 2e-5,
        "measured.files.create_together": 6e-5,
        "storage.disk.write_rate": 2e9,
        "storage.disk.read": 1e-4,
        "measured.noise.message": 0,
    }.items():
        assert value(constants[key].value) == pytest.approx(expected, rel=2e-3), (key, constants[key])
        assert constants[key].origin == "measured"
    # What was not measured says so, and has a value all the same.
    assert constants["processor.code_rate"].origin == "guess"
    assert constants["processor.code_rate"].source.startswith("not measured here; of the default: ")
    assert constants["measured.files.remove"].origin == "guess"


def test_a_file_system_without_direct_requests_has_no_rates_of_them(tmp_path: Path) -> None:
    launched = {"cores": 4, "nodes": 2, "ranks_per_node": 4, "together": 8, "wire": "MPI", "others": 0.0}
    cached = [one for one in made_up() if not one["kernel"].startswith("direct-")]
    for times, expected in ((made_up(), 2), (cached, 0)):
        text = profile(times, tmp_path, launched)
        rates = [constant for constant in hs.Machine(text, "made up").constants() if "files.direct_" in constant.key]
        assert len(rates) == expected


def test_numbers_are_written_with_units() -> None:
    assert [time_text(seconds) for seconds in (0.0, -1.0, 2.5e-9, 1.2345e-5, 0.02, 3.0)] == [
        "0 ns",
        "0 ns",
        "2.5 ns",
        "12.35 us",
        "20 ms",
        "3 s",
    ]
    assert [rate_text(rate) for rate in (0.0, 5e5, 6.4e9, 1e300)] == ["1 KB/s", "500 KB/s", "6.4 GB/s", "1000 GB/s"]


def test_the_default_can_be_simulated() -> None:
    machine = hs.Machine(_core.default_profile(), "default")
    array = {"shape": [64, 64], "mesh": [2, 2], "dims": ["block", "block"]}
    assert hs.simulate(machine, [{"transfer": {"write": True, "arrays": [array]}}], clients=4)["seconds"] > 0
