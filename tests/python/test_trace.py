"""Traces: their form, real and simulated alike; what is read from damaged ones; causes; what other tools load."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest
from hyperslab.__main__ import main
from hyperslab.trace import _chrome, _page
from hyperslab.trace._causes import chain, phrase
from hyperslab.trace._form import HEAD, KINDS, SPAN, Kind, blocks
from hyperslab.trace._path import critical_path, states_of
from hyperslab.trace._previews import previews
from hyperslab.trace._run import OUTSIDE, STATES, Run, load, pick
from hyperslab.trace._summary import summarize, text

from mpi_launch import run_ranks

SHAPE = (64, 32, 16)


def record(directory: Path, ranks: int = 4, late: float = 0.0, **options: Any) -> Run:
    """Write an array on threads; the last rank may be late for the write."""

    def one(comm: hs.ThreadComm) -> None:
        dist = hs.Distribution(SHAPE, (ranks, 1, 1), ("block", "*", "*"))
        mine = np.full(dist.local_shape(comm.rank), float(comm.rank))
        with (
            hs.trace.recording(directory / "trace", comm=comm),
            hs.open(directory / "run.zarr", "w", comm=comm, **options) as store,
        ):
            comm.barrier()
            if comm.rank == ranks - 1 and late:
                with hs.trace.span("thinking", comm=comm, bytes=mine.nbytes):
                    time.sleep(late)
            store.write("rho", mine, dist, chunks=(16, 32, 16))

    hs.threads(ranks, one)
    return pick(load(directory / "trace"), None)


def simulated(directory: Path, **options: Any) -> Run:
    array = {"shape": SHAPE, "mesh": (4, 1, 1), "dims": ("block", "*", "*"), "store": {"chunks": (16, 32, 16)}}
    stages = [{"transfer": {"write": True, "arrays": [array], "sync": True, "strategy": "server-directed"}}]
    hs.simulate("nas-sp2", stages, clients=4, servers=1, trace=directory, **options)
    return pick(load(directory), None)


def rewrite(directory: Path, rank: int, change: Callable[[dict[str, Any], Any], dict[str, Any]]) -> None:
    """Write a rank's file anew, with other headers, and spans that may be changed in place."""
    file = next(directory.glob(f"*rank-{rank:06d}.trace"))
    out = b""
    for block in (block for block in blocks(directory) if block.rank == rank):
        spans = block.spans.copy()
        told = json.dumps(change(block.header, spans)).encode()
        told += b" " * (-len(told) % 8)
        out += HEAD.pack(b"hsTRACE1", len(told), SPAN.itemsize, len(spans)) + told + spans.tobytes()
    file.write_bytes(out)


# ---- the form --------------------------------------------------------------------------------------------------


def test_real_and_simulated_ranks_record_the_same_form(tmp_path: Path) -> None:
    """The same keys of headers, the same kinds for the same strategy; only whose time it is differs."""
    record(tmp_path / "real", strategy="server-directed")
    simulated(tmp_path / "simulated")
    keys, kinds = [], []
    for directory in (tmp_path / "real" / "trace", tmp_path / "simulated"):
        found = [block for block in blocks(directory) if "write" in block.header["what"] and block.rank == 0]
        keys.append({frozenset(block.header) - {"failed"} for block in found if "strategy" in block.header})
        kinds.append({int(kind) for block in blocks(directory) for kind in block.spans["kind"]})
    assert keys[0] & keys[1], keys
    moves = {Kind.SEND, Kind.RECEIVE, Kind.WRITE, Kind.SYNC, Kind.WAIT, Kind.AGREE}
    assert moves <= kinds[0]
    assert moves <= kinds[1]


def test_it_records_nothing_unless_asked(tmp_path: Path) -> None:
    with hs.open(tmp_path / "run.zarr", "w") as store:
        store.write("rho", np.ones(SHAPE))
    assert [path.name for path in tmp_path.iterdir()] == ["run.zarr"]


def test_every_rank_tells_of_every_call(tmp_path: Path) -> None:
    run = record(tmp_path)
    assert (run.size, run.ranks, run.simulated) == (4, [0, 1, 2, 3], False)
    whats = [call.what.split(" ")[0] for call in run.calls]
    assert whats == ["open", "write", "close"]
    write = run.calls[1]
    assert (write.about["bytes"], write.about["arrays"][0]["name"]) == (8 * np.prod(SHAPE), "rho")
    written = 0
    for rank in run.ranks:
        spans, begin, end, calls = run.spans(rank)
        assert {call.number for call in run.calls} <= set(calls)
        assert np.all(begin <= end)
        written += int(spans["bytes"][spans["kind"] == Kind.WRITE].sum())
    assert written == 8 * np.prod(SHAPE)
    assert 0 < run.span_ns < 1e5


def test_an_argument_and_the_environment_turn_it_on(tmp_path: Path) -> None:
    with hs.open(tmp_path / "a.zarr", "w", trace=tmp_path / "given") as store:
        store.write("rho", np.ones(SHAPE))
        hs.trace.stop()
    assert [call.what.split(" ")[0] for call in load(tmp_path / "given")[0].calls][:2] == ["open", "write"]
    program = "import hyperslab as hs, numpy as np, sys\nhs.open(sys.argv[1], 'w').write('rho', np.ones(9))"
    environment = os.environ | {"HYPERSLAB_TRACE": str(tmp_path / "wanted")}
    command = [sys.executable, "-c", program, str(tmp_path / "b.zarr")]
    subprocess.run(command, env=environment, check=True, timeout=60)
    assert [call.what.split(" ")[0] for call in load(tmp_path / "wanted")[0].calls] == ["open", "write"]


def test_a_directory_that_cannot_be_written_to_is_an_error_on_all_ranks(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    def one(comm: hs.ThreadComm) -> str:
        with pytest.raises(hs.StorageError) as caught, hs.trace.recording(tmp_path / "file" / "trace", comm=comm):
            pass
        with hs.open(tmp_path / "run.zarr", "w", comm=comm):
            return str(caught.value)

    told = hs.threads(3, one)
    assert told[0] == told[1] == told[2]
    assert "cannot be written" in told[0]


def test_ranks_that_record_into_different_directories_are_told_so(tmp_path: Path) -> None:
    def one(comm: hs.ThreadComm) -> str:
        with (
            pytest.raises(hs.DisagreementError) as caught,
            hs.trace.recording(tmp_path / str(comm.rank), comm=comm),
        ):
            pass
        return str(caught.value)

    assert "directory of the trace" in hs.threads(2, one)[0]


@pytest.mark.mpi
def test_ranks_under_mpi_and_dedicated_servers_record(tmp_path: Path) -> None:
    run_ranks(4, "traced", tmp_path / "run.zarr", extra_environment={"HYPERSLAB_TRACE": str(tmp_path / "trace")})
    runs = load(tmp_path / "trace")
    served = next(run for run in runs if run.clients < run.size)
    assert (served.size, served.clients, served.ranks) == (4, 3, [0, 1, 2, 3])
    spans = served.spans(3)[0]
    assert {Kind.RECEIVE, Kind.WRITE} <= set(spans["kind"])
    told = summarize(served)
    assert any(call["what"].startswith("write of 'rho'") for call in told["calls"])
    assert {"send"} <= set(told["states"])


# ---- damage ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [0.3, 0.6, 0.95, 0.999])
def test_a_file_that_is_cut_off_is_read_as_far_as_it_goes(tmp_path: Path, keep: float) -> None:
    whole = record(tmp_path)
    file = next((tmp_path / "trace").glob("*rank-000002.trace"))
    contents = file.read_bytes()
    file.write_bytes(contents[: int(keep * len(contents))])
    cut = pick(load(tmp_path / "trace"), None)
    assert cut.count < whole.count
    ends = {rank: len(cut.spans(rank)[0]) for rank in cut.ranks}
    assert all(ends[rank] == len(whole.spans(rank)[0]) for rank in cut.ranks if rank != 2)
    assert text(summarize(cut))
    assert len(_page.page(cut)) > 10_000


def test_what_is_no_trace_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "summary", str(tmp_path / "none")]) == 2
    assert "there is no directory" in capsys.readouterr().err
    assert main(["trace", "summary", str(tmp_path)]) == 2
    assert "holds no trace" in capsys.readouterr().err
    (tmp_path / "x.trace").write_bytes(b"something else, and long enough for a head")
    assert main(["trace", "summary", str(tmp_path)]) == 2
    assert "is no trace: byte 0" in capsys.readouterr().err


# ---- causes ----------------------------------------------------------------------------------------------------


def test_a_late_rank_and_what_it_did_are_named(tmp_path: Path) -> None:
    run = record(tmp_path, late=0.3)
    told = summarize(run)
    write = next(call for call in told["calls"] if call["what"].startswith("write"))
    assert " for rank 3, which spent " in write["cause"].replace("server 3", "rank 3"), write["cause"]
    assert "the application (thinking)" in write["cause"]
    assert "the application (thinking)" in told["cause"]
    assert told["critical_path"]["application"] == pytest.approx(0.3, abs=0.1)
    assert told["states"]["agree"] > 0.15, "three of four ranks waited"


def test_a_slow_sync_of_a_server_is_named(tmp_path: Path) -> None:
    """On an imagined machine, whose disk is what takes long."""
    run = simulated(tmp_path)
    told = summarize(run)
    write = next(call for call in told["calls"] if call["strategy"])
    assert write["cause"].startswith("rank "), write["cause"]
    assert "for server 4, which spent" in write["cause"]
    assert any(state in write["cause"] for state in ("sync", "writing"))


def test_a_chain_follows_messages(tmp_path: Path) -> None:
    run = simulated(tmp_path)
    call = next(call for call in run.calls if call.about)
    sends = run.segments(0).state == Kind.SEND
    assert sends.any()
    cause = chain(run, 0, (call.begin, float(run.segments(0).end[sends].max())))
    assert [link.rank for link in cause.links][:2] == [0, 4]
    assert phrase(run, cause).startswith("rank 0 waited")


def test_states_fill_the_time_of_a_rank(tmp_path: Path) -> None:
    for run in (record(tmp_path / "real", late=0.05), simulated(tmp_path / "simulated")):
        for rank in run.ranks:
            segments = run.segments(rank)
            assert segments.begin[0] == run.begin
            assert segments.end[-1] == run.end
            assert np.array_equal(segments.begin[1:], segments.end[:-1])
            assert np.all(segments.end > segments.begin)
            assert segments.state.max() <= OUTSIDE


def test_the_critical_path_is_one_way_through_all_of_the_time(tmp_path: Path) -> None:
    for run in (record(tmp_path / "real", late=0.05), simulated(tmp_path / "simulated")):
        path = critical_path(run)
        assert path[0].begin == pytest.approx(run.begin, abs=1e6)
        for before, after in itertools.pairwise(path):
            assert after.begin == pytest.approx(before.end, abs=1)
        last = max(call.end for call in run.calls)
        assert path[-1].end == pytest.approx(last, rel=0.05)
        assert sum(states_of(path).values()) == pytest.approx((path[-1].end - path[0].begin) / 1e9)


def test_clocks_of_hosts_are_brought_together(tmp_path: Path) -> None:
    """Two ranks are moved to another host, whose clock is a minute ahead."""
    ahead = 60_000_000_000
    before = record(tmp_path, late=0.05)

    def move(head: dict[str, Any], spans: Any) -> dict[str, Any]:
        for name in ("begin", "end", "ready"):
            spans[name] += np.uint64(ahead)
        moved = {name: head[name] + ahead for name in ("begin_ns", "end_ns")}
        return head | moved | {"host": "elsewhere"}

    for rank in (2, 3):
        rewrite(tmp_path / "trace", rank, move)
    run = pick(load(tmp_path / "trace"), None)
    uncertainty = run.uncertainty["elsewhere"]
    assert 0 < uncertainty < 0.1e9
    assert run.offsets["elsewhere"] == pytest.approx(ahead, abs=uncertainty + 1)
    assert run.seconds == pytest.approx(before.seconds, abs=0.1)


# ---- predictions, export, previews -----------------------------------------------------------------------------


def test_predicted_stands_beside_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path)
    simulated(tmp_path / "simulated")
    command = ["trace", "summary", str(tmp_path / "trace"), "--beside", str(tmp_path / "simulated"), "--json"]
    assert main(command) == 0
    rows = {row["phase"]: row for row in json.loads(capsys.readouterr().out)["predicted"]}
    assert rows["sync"]["predicted"] > 0
    assert rows["sync"]["measured"] > 0
    assert rows["from first to last"]["measured"] > rows["sync"]["measured"]


def test_what_a_model_said_of_a_call_stands_beside_it(tmp_path: Path) -> None:
    record(tmp_path)

    def foresee(head: dict[str, Any], _spans: Any) -> dict[str, Any]:
        said = [{"phase": "sync", "seconds": 0.5}, {"phase": "seek", "seconds": 0.25}]
        return head | {"predicted": said} if "strategy" in head else head

    rewrite(tmp_path / "trace", 0, foresee)
    told = summarize(pick(load(tmp_path / "trace"), None))
    rows = {row["phase"]: row for row in told["predicted"]}
    assert rows["sync"]["predicted"] == 0.5
    assert rows["sync"]["measured"] > 0
    assert (rows["seek"]["predicted"], rows["seek"]["measured"]) == (0.25, 0.0)
    assert re.search(r"^phase +predicted +measured$", text(told), re.MULTILINE)


def test_what_is_exported_is_what_perfetto_loads(tmp_path: Path) -> None:
    for run in (record(tmp_path / "real", strategy="server-directed"), simulated(tmp_path / "simulated")):
        path = tmp_path / "out.json"
        with path.open("w") as file:
            count = _chrome.write(run, file)
        told = json.loads(path.read_text())
        events = told["traceEvents"]
        assert len(events) == count
        complete = [event for event in events if event["ph"] == "X"]
        assert len(complete) == run.count + sum(len(run.extents(rank)) for rank in run.ranks)
        assert {event["name"] for event in complete} & set(KINDS)
        for event in complete:
            assert event["dur"] >= 0
            assert event["ts"] >= -1
        # Spans of one row do not cross: each begins when the one before is over.
        rows: dict[tuple[int, int], float] = {}
        for event in sorted(complete, key=lambda event: (event["ts"], event["dur"])):
            row = (event["pid"], event["tid"])
            assert event["ts"] >= rows.get(row, -1e18) - 1e-3, event
            rows[row] = event["ts"] + event["dur"]
        begins = {event["id"]: event for event in events if event["ph"] == "s"}
        ends = {event["id"]: event for event in events if event["ph"] == "f"}
        assert begins.keys() == ends.keys()
        assert begins
        assert all(ends[key]["ts"] >= begins[key]["ts"] for key in begins)


def test_previews_add_up(tmp_path: Path) -> None:
    run = record(tmp_path, late=0.1)
    made = previews(run, 512)
    assert [level.group for level in made.levels] == [1, 4]
    assert np.all(np.abs(made.histogram.sum(axis=1, dtype=np.int64) - 65535) <= len(STATES))
    fine = made.levels[0].cells[3] & 31
    assert np.sum(fine == Kind.APPLICATION) == pytest.approx(512 * 0.1 / run.seconds, rel=0.2)


def test_the_command_writes_page_and_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path)
    trace = str(tmp_path / "trace")
    assert main(["trace", "summary", trace]) == 0
    told = capsys.readouterr().out
    assert "cause: " in told
    assert re.search(r"recording cost \S+ ns a span", told)
    assert main(["trace", "view", trace, "-o", str(tmp_path / "page.html"), "--title", "a <b> & c"]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "<title>a &lt;b&gt; &amp; c</title>" in page
    assert "http" not in page.replace('lang="en"', ""), "a page asks no other machine for anything"
    assert main(["trace", "export", trace, "--chrome", str(tmp_path / "out.json")]) == 0
    with pytest.raises(SystemExit, match="2"):
        main(["trace", "view", trace, "--output", str(tmp_path / "no" / "page.html")])
    assert main(["trace", "summary", trace, "--run", "other"]) == 2
    assert "has no run 'other'" in capsys.readouterr().err
