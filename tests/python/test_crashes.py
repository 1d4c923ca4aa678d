"""Crashes at any moment: of processes, and losses of power, after which only what was synced is there for sure.

Each operation of `fault_operations` is carried out once under strace. Of the calls that change files, images are made
as file systems may have them after a crash (`crash_images`), and each is judged as after a kill: old or new, whole, or
an update in place that names itself; and a fresh attempt succeeds.

By hand, many more:

    python tests/python/test_crashes.py --images 2000 --seed 7
    python tests/python/test_crashes.py --images 500 --operation "hdf5 step" --ranks 3
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crash_images import CALLS, Event, Image, Recorder, Sync, crashes
from fault_library import quick_directory
from fault_operations import BY_STAGES, OPERATIONS, Attempt
from kill_cases import Case
from kill_points import in_child, judged, prepared

HERE = Path(__file__).parent
#: Those that change something.
#: What is not durable promises nothing after a loss of power.
UNCHANGING = ("read", "raw read", "clearing up", "striped file")
CHANGING = [name for name, made in OPERATIONS.items() if name not in (*UNCHANGING, *BY_STAGES) and not made.cached]
#: At the end: how many ranks each has goes by its place, and deliberate faults are found by these.
CHANGING += ["striped file", *BY_STAGES]
#: Images of each in the ordinary tests; and most of those in which a fault of the product must show.
IMAGES, IMAGES_OF_CONTROLS = 56, 120
#: Changes that need no sync to be old or new: one name that is given, or bytes that nobody promises anything of.
ONE_NAME = ("array renamed",)
UNPROMISED = ("raw section", "netcdf section", "hdf5 section")
#: Paths outside of what is opened that a program writes to: devices, and what was learned of the machine.
ELSEWHERE = ("/dev/null", str(Path.home() / ".cache" / "hyperslab"))
SEED = int(os.environ.get("HYPERSLAB_SEED", "20261126"))


def can_trace() -> bool:
    """Whether strace is there, and may trace."""
    strace = shutil.which("strace")
    return (
        strace is not None and subprocess.run([strace, "-f", "true"], capture_output=True, check=False).returncode == 0
    )


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    """A directory in memory."""
    if not can_trace():
        pytest.skip("there is no strace, or it may not trace here")
    with quick_directory() as made:
        yield made


def recorded(name: str, template: Path, directory: Path, ranks: int) -> Recorder:
    """What an operation does to a copy of what was there before, in this directory. It touches nothing else."""
    made = OPERATIONS[name]
    shutil.copytree(template, directory, symlinks=True)
    own = {path.name for path in directory.iterdir()} | {"a.npy"}
    turn = made.turn(made.look(directory))
    recorder, trace = Recorder(directory), directory.with_suffix(".trace")
    command = [sys.executable, str(HERE / "crash_record.py"), name, str(directory), str(turn), str(ranks)]
    tracing = ["strace", "-f", "-y", "-xx", "-s", "1000000", "-e", f"trace={','.join(CALLS)}", "-o", str(trace)]
    subprocess.run([*tracing, *command], check=True, timeout=120)
    recorder.read(trace)
    modelled = directory.with_suffix(".model")
    recorder.image.make(modelled)
    compared = subprocess.run(
        ["diff", "-r", str(modelled), str(directory)], capture_output=True, text=True, check=False
    )
    assert compared.returncode == 0, f"the trace does not tell all that happens: {compared.stdout[:2000]}"
    hidden = tuple(f".{each}.hyperslab" for each in own)
    assert recorder.touched
    assert {each for each in recorder.touched if each not in own and not each.startswith(hidden)} == set()
    assert {path for path in recorder.outside if not path.startswith(ELSEWHERE)} == set()
    for path in (directory, modelled):
        shutil.rmtree(path)
    return recorder


def version(path: Path) -> str:
    """As a journal notes what is to be replaced."""
    told = subprocess.run(["stat", "-c", "%i %.W %Y %.Y", str(path)], capture_output=True, text=True, check=True)
    number, born, seconds, precise = told.stdout.split()
    whole, _, rest = born.partition(".")
    return (
        f"{number}.{int(whole + rest.ljust(9, '0')[:9])}.{seconds}.{int(precise.partition('.')[2].ljust(9, '0')[:9])}"
    )


def keep_versions(directory: Path, image: Image, first: Image) -> None:
    """Let journals name the copies of what they were about to replace: no crash would make other files of them."""

    def node(of: Image, path: Path) -> int | None:
        number: int | None = 0
        for name in path.relative_to(directory).parts:
            entries = of.nodes[number].entries if number is not None else None
            number = None if entries is None else entries.get(name)
        return number

    for journal in directory.glob(".a.zarr.hyperslab-*/*-publish*"):
        lines = []
        for line in journal.read_bytes().splitlines(keepends=True):
            try:
                noted = json.loads(line)
                target = directory / "a.zarr" / noted["to"]
                if "over" in noted and node(image, target) == node(first, target) is not None:
                    line = json.dumps({**noted, "over": version(target)}, separators=(",", ":")).encode() + b"\n"
            except (ValueError, KeyError):
                # It was torn.
                pass
            lines.append(line)
        journal.write_bytes(b"".join(lines))


def complaints_of(case: Case, directory: Path, before: dict[str, Any], ended: bool) -> list[str]:  # noqa: FBT001 (told by place)
    """What is wrong with an image. What readers cannot make sense of is wrong, too."""
    try:
        made, complaints = case.made, []
        new = made.after(before, Attempt(None, directory, 1, turn=made.turn(before)))
        if ended and (seen := made.look(directory)) != new:
            # What has returned survives a loss of power.
            complaints.append(f"after the call returned: {seen}, not {new}")
        return complaints + judged(case, directory, before)
    except Exception as error:  # noqa: BLE001 (whatever they say)
        return [f"{type(error).__name__}: {error}"]


def wrong_images(
    name: str,
    recorder: Recorder,
    events: list[Event],
    before: dict[str, Any],
    directory: Path,
    *,
    images: int,
    seed: int,
    most: int = 20,
) -> tuple[list[str], int]:
    """Complaints about images of an operation, until there are so many; and how many images there were."""
    random = np.random.default_rng([seed, len(name)])
    complaints: list[str] = []
    seen: set[tuple[int, bool]] = set()
    for crash in crashes(events, random):
        power, ended = crash.kept is not None, crash.end == len(events)
        image = crash.image(recorder.first, events)
        if (image.key(), ended) in seen:
            continue
        seen.add((image.key(), ended))
        image.make(directory)
        keep_versions(directory, image, recorder.first)
        found = in_child(complaints_of, Case(name, None, "kill", 0, "", 0.0, "others", None), directory, before, ended)
        shutil.rmtree(directory)
        # Without the list of owners, an opening does not find what they left: it is no data, and `clean` removes it.
        found = [one for one in found if not (power and one.startswith("left behind"))]
        if found:
            complaints.append(f"{name}, seed {seed}, {crash}: {found}")
        if len(seen) >= images or len(complaints) >= most:
            break
    return complaints, len(seen)


def campaign(name: str, directory: Path, *, images: int, seed: int, ranks: int, without_syncs: bool = False) -> Any:
    """Record an operation, and judge images of it."""
    template, case = directory / "template", directory / "case"
    before = in_child(prepared, OPERATIONS[name], template)
    try:
        recorder = recorded(name, template, case, ranks)
        events = recorder.events
        if without_syncs:
            events = [event for event in events if not isinstance(event, Sync)]
        most = 1 if without_syncs else 20
        return wrong_images(name, recorder, events, before, case, images=images, seed=seed, most=most)
    finally:
        for left in directory.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()


@pytest.mark.parametrize("name", CHANGING)
def test_a_crash_leaves_the_old_or_the_new(name: str, directory: Path) -> None:
    ranks = 1 + CHANGING.index(name) % 2
    complaints, images = campaign(name, directory, images=IMAGES, seed=SEED, ranks=ranks)
    assert complaints == []
    assert images >= min(4, IMAGES)


@pytest.mark.parametrize("name", [name for name in CHANGING if name not in (*ONE_NAME, *UNPROMISED)])
def test_without_syncs_a_loss_of_power_would_show(name: str, directory: Path) -> None:
    """The control: if the product left its syncs out, the test above would fail."""
    complaints, _ = campaign(name, directory, images=IMAGES_OF_CONTROLS, seed=SEED, ranks=1, without_syncs=True)
    assert complaints != []


def without_each_sync(name: str, directory: Path, *, images: int, seed: int, ranks: int) -> Iterator[str]:
    """Leave out one sync after another; gives those of which no image shows that they are missing."""
    template, case = directory / "template", directory / "case"
    before = in_child(prepared, OPERATIONS[name], template)
    recorder = recorded(name, template, case, ranks)
    for number, event in enumerate(recorder.events):
        if isinstance(event, Sync):
            events = [*recorder.events[:number], *recorder.events[number + 1 :]]
            found, _ = wrong_images(name, recorder, events, before, case, images=images, seed=seed, most=1)
            if not found:
                yield f"event {number}, of {recorder.image.names_of(event.of)}"
    shutil.rmtree(template)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=200, help="of each operation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--operation", choices=CHANGING, help="only this one")
    parser.add_argument("--ranks", type=int, default=1, help="threads that carry it out")
    parser.add_argument(
        "--each-sync", action="store_true", help="leave out one sync after another: which are not missed?"
    )
    args = parser.parse_args()
    if args.each_sync:
        with quick_directory() as directory:
            for name in [args.operation] if args.operation else CHANGING:
                missed = without_each_sync(name, directory, images=args.images, seed=args.seed, ranks=args.ranks)
                print(f"{name}: syncs that are not missed:", *missed, sep="\n    ", flush=True)
        return 0
    all_images, wrong = 0, 0
    with quick_directory() as directory:
        for name in [args.operation] if args.operation else CHANGING:
            complaints, images = campaign(name, directory, images=args.images, seed=args.seed, ranks=args.ranks)
            all_images, wrong = all_images + images, wrong + len(complaints)
            print(f"{name}: {images} images", *complaints, sep="\n    ", flush=True)
    print(f"{all_images} images, {wrong} went wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
