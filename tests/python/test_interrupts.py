"""Signals: what a handler raises comes out of the call that it meets, as it is, and of no other.

By hand, more cases of each way:

    python tests/python/test_interrupts.py --cases 1000 --seed 7
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest

from fault_library import quick_directory
from fault_operations import disks
from interrupt_cases import ALONE, BESIDE, THREADS, campaign
from mpi_launch import printed, run_ranks, running
from struck_doors import OPENINGS, VALUES, Moments, Struck, at_each_moment, fill, handler, handling
from test_faults import seed_of_this_run

#: Cases in the ordinary tests: of one process, and of ranks of MPI.
CASES, MPI_CASES = 24, 12
RANKS = 4


def in_this_process(count: int, seed: int, ways: list[str]) -> dict[str, Any]:
    """The same in a process of its own, since signals are sent to it."""
    program = f"import json, sys, pathlib; from interrupt_cases import campaign; print(json.dumps(campaign({count}, {seed}, {ways!r}, pathlib.Path(sys.argv[1]))))"  # noqa: E501
    with quick_directory() as directory:
        path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [sys.executable, "-c", program, str(directory)],
            env=os.environ | {"PYTHONPATH": path, "PYTHONFAULTHANDLER": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60 + 20 * count,
        )
    assert done.returncode == 0, f"HYPERSLAB_SEED={seed}: {done.stderr[-4000:]}"
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def by_mpi(count: int, seed: int) -> dict[str, Any]:
    """The same of ranks of MPI."""
    with quick_directory() as directory, running(RANKS, "interrupted", directory, count, seed) as (process, output):
        status = process.wait(60 + 20 * count)
        assert status == 0, f"HYPERSLAB_SEED={seed}: {printed(output)[-4000:]}"
        told: dict[str, Any] = json.loads((directory / "told.json").read_text())
        return told


def check(told: dict[str, Any], seed: int) -> None:
    """Nothing may have gone wrong."""
    some = "\n".join(json.dumps(each) for each in told["wrong"][:10])
    assert not told["wrong"], f"HYPERSLAB_SEED={seed}: {len(told['wrong'])} of {told['cases']} went wrong:\n{some}"


def test_each_signal_reaches_the_call_that_it_meets() -> None:
    seed = seed_of_this_run()
    check(in_this_process(CASES, seed, [ALONE, BESIDE, THREADS]), seed)


@pytest.mark.mpi
def test_each_signal_reaches_the_rank_that_it_meets() -> None:
    seed = seed_of_this_run()
    check(by_mpi(MPI_CASES, seed), seed)


def program(text: str, *arguments: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a program."""
    done = subprocess.run(
        [sys.executable, "-c", "import os, signal, sys, threading, time\nimport numpy as np, hyperslab as hs\n" + text]
        + [str(each) for each in arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == status, (done.stdout, done.stderr)
    return done


#: A handler of the program's own, and a signal soon.
HANDLER = """
class Stop(Exception):
    pass

error = Stop("enough")

def handler(*_):
    raise error

def soon(number, seconds=0.3):
    threading.Timer(seconds, lambda: os.kill(os.getpid(), number)).start()
"""


@pytest.mark.parametrize(
    ("number", "ranks"), [(signal.SIGTERM, 1), (signal.SIGALRM, 3), (signal.SIGUSR1, 4), (signal.SIGINT, 4)]
)
def test_what_a_handler_raises_travels_as_it_is(number: int, ranks: int, tmp_path: Path) -> None:
    """While others do not come; one rank waits for all of them."""
    done = program(
        HANDLER
        + f"""
signal.signal({number}, handler)
ended = []

def one(comm):
    dist = hs.Distribution.block((480_000,), {ranks})
    try:
        with hs.open(sys.argv[1], "w", comm=comm, durable=False) as store:
            while True:
                store.write("a", np.ones(480_000 // {ranks}), dist, overwrite=True)
    except BaseException as caught:
        ended.append(type(caught).__name__)
        raise

soon({number})
try:
    one(None) if {ranks} == 1 else hs.threads({ranks}, one)
except BaseException as caught:
    print(caught is error, sorted(set(ended)))
""",
        tmp_path / "a.zarr",
    )
    expected = "['Stop']" if ranks == 1 else "['InterruptedError']"
    assert done.stdout == f"True {expected}\n", done.stderr


def test_ranks_of_threads_have_ended_when_the_main_thread_goes_on(tmp_path: Path) -> None:
    """Nothing is overwritten behind its back, neither by calls nor by requests, nor by openings of one rank."""
    done = program(
        HANDLER
        + """
def one(comm):
    dist = hs.Distribution.block((3 * 50_000,), comm.size)
    mine = hs.open(f"{sys.argv[1]}/{comm.rank}.zarr", "w", comm=None, durable=False)
    with hs.open(sys.argv[1] + "/a.zarr", "w", comm=comm, durable=False) as store:
        store.write("a", np.zeros(50_000), dist)
        mine.write("a", np.zeros(50_000))
        for number in range(1_000_000):
            requests.append(store.iwrite("a", np.full(50_000, float(number)), dist, section=slice(0, 150_000)))
            mine.write("a", np.full(50_000, float(number)), section=slice(0, 50_000))

requests = []
soon(signal.SIGINT, 0.5)
try:
    hs.threads(3, one)
except KeyboardInterrupt:
    pass
look = lambda: [hs.open(f"{sys.argv[1]}/{name}.zarr", comm=None).read("a").sum() for name in ("a", 0, 1, 2)]
before = look()
time.sleep(0.5)
print(look() == before, threading.active_count(), all(request.test() for request in requests), flush=True)
# A rank may have been stopped before it could note a request, of whose failure the end of the program would tell.
os._exit(0)
""",
        tmp_path,
    )
    assert done.stdout == "True 1 True\n", done.stderr


def test_a_signal_that_wakes_another_thread_stops_who_waits_for_ranks(tmp_path: Path) -> None:
    """Python's handlers run in the main thread, which such a signal does not wake."""
    done = program(
        """
import signal, sys, threading, time
import numpy as np, hyperslab as hs

def one(comm):
    with hs.open(sys.argv[1] + "/a.zarr", "w", comm=comm, durable=False) as store:
        store.write("a", np.zeros(10), hs.Distribution.block((20,), 2))
        for number in range(1_000_000):
            store.read("a", hs.Distribution.block((20,), 2))
            if comm.rank == 1 and number == 3:
                signal.pthread_kill(threading.get_ident(), signal.SIGINT)

try:
    hs.threads(2, one)
except KeyboardInterrupt:
    print("stopped", threading.active_count())
""",
        tmp_path,
    )
    assert done.stdout == "stopped 1\n", done.stderr


def test_a_signal_while_a_wait_ends_reaches_no_later_call(tmp_path: Path) -> None:
    done = program(
        HANDLER
        + """
signal.signal(signal.SIGUSR1, handler)
swallowed = late = 0
for number in range(60):
    store = hs.open(f"{sys.argv[1]}/{number}.zarr", "w", comm=None, durable=False)
    request = store.iwrite("a", np.ones(200_000))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0)
        threading.Timer(number * 1e-4, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
        request.wait()
        time.sleep(0.05)
        swallowed += 1
    except Stop:
        pass
    try:
        with hs.open(f"{sys.argv[1]}/next.zarr", "w", comm=None) as fresh:
            fresh.write("b", np.ones(10))
    except BaseException as caught:
        print(type(caught))
        late += 1
print(swallowed, late)
""",
        tmp_path,
    )
    assert done.stdout == "0 0\n", done.stderr


def test_what_ended_a_wait_reaches_no_later_call(tmp_path: Path) -> None:
    """For certain in the middle of it: another rank does not come."""
    done = program(
        HANDLER
        + """
signal.signal(signal.SIGUSR1, handler)
comms = [hs.ThreadComm(core, threading.Barrier(2)) for core in hs._core.Comm.threads(2)]
worker = threading.Thread(target=lambda: hs.open(sys.argv[1] + "/a.zarr", "w", comm=comms[1]), daemon=True)
worker.start()
store = hs.open(sys.argv[1] + "/a.zarr", "w", comm=comms[0])
worker.join()
request = store.iwrite("a", np.ones(4), hs.Distribution.block((8,), 2))
soon(signal.SIGUSR1)
try:
    request.wait()
except Stop as caught:
    print(caught is error)
with hs.open(sys.argv[1] + "/next.zarr", "w", comm=None) as fresh:
    fresh.write("b", np.ones(10))
print(hs.open(sys.argv[1] + "/next.zarr", comm=None).read("b").sum())
""",
        tmp_path,
    )
    assert done.stdout == "True\n10.0\n", (done.stdout, done.stderr)


def test_a_handler_may_call_but_not_into_the_call_that_it_interrupts(tmp_path: Path) -> None:
    """A store of its own it may write; a call on the same communicator would wait for itself."""
    done = program(
        HANDLER
        + """
def handler(*_):
    for use in (lambda: store.write("b", np.ones(3)), lambda: store.close()):
        try:
            use()
        except hs.Error as caught:
            print(type(caught).__name__, "a handler of signals calls" in str(caught))
    with hs.open(sys.argv[1] + "/own.zarr", "w", comm=None) as own:
        own.write("a", np.ones(3))

signal.signal(signal.SIGUSR1, handler)
comms = [hs.ThreadComm(core, threading.Barrier(2)) for core in hs._core.Comm.threads(2)]
worker = threading.Thread(target=lambda: hs.open(sys.argv[1] + "/a.zarr", "w", comm=comms[1]), daemon=True)
worker.start()
store = hs.open(sys.argv[1] + "/a.zarr", "w", comm=comms[0], arrival_seconds=2)
worker.join()
soon(signal.SIGUSR1)
try:
    store.write("a", np.ones(4), hs.Distribution.block((8,), 2))
except hs.TimeoutError:
    print("goes on", hs.open(sys.argv[1] + "/own.zarr", comm=None).read("a").tolist())
""",
        tmp_path,
    )
    expected = "InvalidError True\nInvalidError True\ngoes on [1.0, 1.0, 1.0]\n"
    assert done.stdout == expected, (done.stdout, done.stderr)


@pytest.mark.parametrize("name", OPENINGS)
def test_an_opening_that_is_interrupted_gives_up_what_its_caller_never_got(name: str, tmp_path: Path) -> None:
    """At each moment of the door: the next opening goes, though the exception and its frames are kept."""
    for disk in disks(tmp_path):
        disk.mkdir()

    def door(moments: Moments) -> None:
        moments.begin()
        with OPENINGS[name](tmp_path, None) as file:
            moments.end()
            fill(file)

    def again() -> None:
        with OPENINGS[name](tmp_path, None) as file:
            fill(file)

    assert at_each_moment(door, again) > 5


@pytest.mark.parametrize("name", OPENINGS)
def test_the_end_of_a_context_that_is_interrupted_leaves_nothing_open(name: str, tmp_path: Path) -> None:
    """At each moment of it: what was opened is published or given up."""
    for disk in disks(tmp_path):
        disk.mkdir()

    def door(moments: Moments) -> None:
        with OPENINGS[name](tmp_path, None) as file:
            fill(file)
            moments.begin()

    def again() -> None:
        with OPENINGS[name](tmp_path, None) as file:
            fill(file)

    assert at_each_moment(door, again) > 2


@pytest.mark.parametrize("name", ["zarr", "hdf5"])
def test_a_step_that_is_interrupted_is_given_up(name: str, tmp_path: Path) -> None:
    """At each moment of its door: it can be begun again in the same opening, and holds what is written then."""

    def door(moments: Moments) -> None:
        with OPENINGS[name](tmp_path, None) as file:
            fill(file)
            try:
                moments.begin()
                with file.step("0001") as step:
                    moments.end()
                    step.write("b", VALUES)
            except Struck:
                with file.step("0001") as step:
                    step.write("b", VALUES + 1)
                file.close()
                raise

    def look() -> None:
        path = tmp_path / ("a.zarr" if name == "zarr" else "a.h5")
        with hs.open(path) as file:
            assert np.array_equal(file.read("0001/b"), VALUES + 1)

    assert at_each_moment(door, look) > 5


@pytest.mark.parametrize("name", OPENINGS)
def test_other_ranks_do_not_wait_for_one_that_is_interrupted_in_a_door(name: str, tmp_path: Path) -> None:
    """At each moment of it: they hear of it in the same call or the next, and go on together where that is possible."""
    for disk in disks(tmp_path):
        disk.mkdir()

    def one(comm: hs.ThreadComm, moments: Moments) -> str:
        try:
            if comm.rank == 1:
                moments.begin()
            with OPENINGS[name](tmp_path, comm) as file:
                moments.end()
                fill(file, comm)
        except Struck:
            ended = "struck"
        except hs.Error as error:
            ended = type(error).__name__
        else:
            return "passed"
        for _ in range(2):
            try:
                with hs.open(tmp_path / "next.h5", "w", comm=comm, arrival_seconds=10.0) as file:
                    fill(file, comm)
            except hs.DisagreementError:
                # The others were in the opening before.
                ended += ", disagreed"
            except hs.PoisonedError:
                return f"{ended}, poisoned"
            else:
                return f"{ended}, went on"
        return ended

    #: What the others and this rank ended with: before the call had begun, in it, and when the file was open.
    before = ("DisagreementError, went on", "struck, disagreed, went on")
    inside, after = ("InterruptedError, poisoned", "struck, poisoned"), ("PeerError, went on", "struck, went on")
    number, seen = 1, set()
    with handling():
        while True:
            moments = Moments(number)
            began = time.monotonic()
            ended = hs.threads(3, lambda comm, moments=moments: one(comm, moments))
            if not moments.where:
                break
            assert time.monotonic() - began < 8, f"struck by {moments.where}: {ended}"
            assert ended[0] == ended[2], f"struck by {moments.where}: {ended}"
            assert tuple(ended[:2]) in (before, inside, after), f"struck by {moments.where}: {ended}"
            seen.add(tuple(ended[:2]))
            number += 1
    assert ended == ["passed"] * 3
    # Of a store, no call gives anything up.
    assert seen == {before, inside} | ({after} if name != "zarr" else set())


class Striking:
    """A value that a signal meets while it is looked at, before the call has begun."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        handler()

    def __iter__(self) -> Any:
        handler()

    keys = items = __iter__


#: Calls with a value for one rank.
CALLS: dict[str, Callable[[hs.Group, Any, hs.Distribution], Any]] = {
    "write": lambda group, given, dist: group.write("a", given, dist),
    "several": lambda group, given, dist: group.write({"a": given}, dist),
    "request": lambda group, given, dist: group.iwrite("a", given, dist).wait(),
    "append": lambda group, given, dist: group.append("b", given, dist),
    "attributes": lambda group, given, _: group.attrs.update({"a": given}),
    "group": lambda group, given, _: group.create_group("g", attributes={"a": given}),
}


@pytest.mark.parametrize("name", CALLS)
def test_other_ranks_do_not_wait_for_one_that_is_interrupted_before_its_call(name: str, tmp_path: Path) -> None:
    """Though its program lives: it neither leaves nor calls again."""

    def one(comm: hs.ThreadComm, others: threading.Barrier) -> str:
        with hs.open(tmp_path / "a.zarr", "w", comm=comm) as group:
            dist = hs.Distribution.block((6,), comm.size)
            mine = VALUES[dist.slices(comm.rank)]
            group.write("b", mine, dist)
            # Who is at the end of a call still may hear of it there.
            comm.barrier()
            try:
                CALLS[name](group, Striking() if comm.rank == 1 else mine, dist)
            except (Struck, hs.InterruptedError):
                others.wait(10)
                raise
        return "passed"

    def ended(comm: hs.ThreadComm, others: threading.Barrier) -> str:
        try:
            return one(comm, others)
        except (hs.Error, Struck, threading.BrokenBarrierError) as error:
            return type(error).__name__

    others = threading.Barrier(3)
    with handling():
        assert hs.threads(3, lambda comm: ended(comm, others)) == ["InterruptedError", "Struck", "InterruptedError"]


@pytest.mark.parametrize("victim", [0, 2])
def test_dedicated_servers_do_not_wait_for_a_rank_that_is_interrupted_in_the_door(
    victim: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client, and the server, at each moment from which on the other ranks have their part."""
    divide = hs.ThreadComm._divide

    def one(comm: hs.ThreadComm, moments: Moments, ended: list[str], over: threading.Event) -> None:
        def divided(comm: hs.ThreadComm, servers: list[int]) -> Any:
            part = divide(comm, servers)
            if comm.rank == victim:
                moments.begin()
            return part

        monkeypatch.setattr(hs.ThreadComm, "_divide", divided)
        try:
            with hs.dedicate(comm, servers=1) as io:
                moments.end()
                io.serve() if io.is_server else io.barrier()
                ended.append("passed")
        except Struck:
            # When this rank ends, the others hear of it.
            ended.append("told" if over.wait(1) else "waited for")
        except (hs.PeerError, hs.InterruptedError):
            ended.append("failed")
            if len(ended) == 2:
                over.set()

    number = 1
    with handling():
        while True:
            moments, over = Moments(number), threading.Event()
            ended: list[str] = []
            hs.threads(3, lambda comm, given=(moments, ended, over): one(comm, *given))
            if not moments.where:
                break
            assert ended == ["failed", "failed", "told"], f"struck by {moments.where}"
            number += 1
    assert ended == ["passed"] * 3
    assert number > 5


@pytest.mark.mpi
@pytest.mark.parametrize("victim", [0, 2])
def test_ranks_of_mpi_do_not_wait_for_one_that_is_interrupted_while_they_are_divided(victim: int) -> None:
    """A client, and the server: from when all have agreed, no handler runs until they have come to MPI."""
    told = run_ranks(3, "divided", victim)
    assert int(re.search(r"struck at (\d+) moments", told)[1]) > 5  # type: ignore[index]


def test_what_a_handler_raises_when_a_rank_has_begun_travels_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though `threading` fails in clearing up after it, where it is an `Exception`."""
    error = OSError("a handler raised it")
    begin = threading._start_new_thread  # type: ignore[attr-defined]

    def handler(*_: object) -> None:
        raise error

    def begun(*given: Any) -> None:
        begin(*given)
        time.sleep(0.2)
        handler()

    before = signal.signal(signal.SIGUSR1, handler)
    monkeypatch.setattr(threading, "_start_new_thread", begun)
    try:
        with pytest.raises(OSError, match="a handler raised it") as caught:
            hs.threads(2, lambda comm: comm.barrier())
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert caught.value is error


def main() -> None:
    """Carry out cases by hand."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100, help="of each way")
    parser.add_argument("--seed", type=int, default=seed_of_this_run())
    parser.add_argument("--ways", nargs="*", default=[ALONE, BESIDE, THREADS, "mpi"])
    args = parser.parse_args()
    for way in args.ways:
        print(f"{way}, seed {args.seed}", flush=True)
        if way == "mpi":
            told = by_mpi(args.cases, args.seed)
        else:
            with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
                told = campaign(args.cases, args.seed, [way], Path(directory))
        print(way, told["cases"], "cases,", told["fired"], "in time,", len(told["wrong"]), "went wrong", flush=True)
        for each in told["wrong"]:
            print(json.dumps(each), flush=True)


if __name__ == "__main__":
    main()
