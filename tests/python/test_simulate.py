"""Machines that are not at hand: the same programs, in virtual time."""

from __future__ import annotations

import json
import math
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import hyperslab as hs
import pytest

from test_command import run

ARRAY = {"shape": [64, 64], "mesh": [2, 2], "dims": ["block", "cyclic(3)"], "store": {"file": {"object": "file"}}}


def transfer(**options: Any) -> dict[str, Any]:
    return {"transfer": {"write": True, "arrays": [ARRAY], "sync": True, **options}}


@pytest.mark.parametrize("machine", hs.machines())
@pytest.mark.parametrize("strategy", ["root-gather", "independent", "two-phase", "server-directed", "disk-directed"])
def test_every_machine_runs_every_strategy(machine: str, strategy: str) -> None:
    for write in (True, False):
        stages = [{"open": {}}, transfer(write=write, strategy=strategy), {"close": {}}]
        result = hs.simulate(machine, stages, clients=4, servers=2)
        (told,) = result["transfers"]
        assert told["bytes"] == 64 * 64 * 8
        assert told["strategy"] == strategy
        assert 0 < told["seconds"] <= result["seconds"] <= result["settled_seconds"]
        assert {"open", "close"} <= result["calls"].keys()
        moved = result["calls"]["write" if write else "read"]
        assert moved["bytes"] == 64 * 64 * 8
        assert "B/s" in result.text


@pytest.mark.parametrize("mesh", [(2, 2, 2), (4, 4, 2), (4, 4, 4)])
@pytest.mark.parametrize("write", [True, False])
def test_a_usual_lustre_gives_a_good_part_of_what_its_targets_give(mesh: tuple[int, ...], *, write: bool) -> None:
    array = {"shape": [512, 512, 512], "mesh": mesh, "dims": ["block"] * 3}
    asked = {"write": write, "arrays": [array], "sync": True}
    (told,) = hs.simulate("lustre-like", [{"transfer": asked}], clients=math.prod(mesh))["transfers"]
    targets = 16 * (630e6 if write else 770e6)
    assert 0.2 * targets < told["rate"] < targets
    planned = hs.plan("lustre-like", asked, clients=math.prod(mesh))
    assert 1 / 2 < planned["predicted"]["seconds"] / told["seconds"] < 2


def test_it_walks_the_programs_that_explain_tells_of() -> None:
    dist = hs.Distribution((64, 64), (2, 2), ("block", "cyclic(3)"))
    for strategy in ("root-gather", "two-phase", "server-directed"):
        told = hs.explain(dist, "f8", layout="raw", strategy=strategy, servers=(1, 3), subchunk_bytes=4096).to_dict()
        asked = transfer(strategy=strategy, servers=[1, 3], subchunk_bytes=4096)
        result = hs.simulate("nvme-workstation", [asked], clients=4)
        assert result["messages"] == sum(rank["sent"]["messages"] for rank in told["ranks"])
        assert result["message_bytes"] == sum(rank["sent"]["bytes"] for rank in told["ranks"])
        assert result["calls"]["write"]["count"] == sum(server["extents"] for server in told["servers"])
        assert result["calls"]["write"]["bytes"] == sum(server["bytes"] for server in told["servers"])


def test_the_same_seed_gives_the_same_log() -> None:
    def traced(seed: int) -> tuple[str, str]:
        read = transfer(write=False, strategy="independent")
        options: Any = {"clients": 4, "servers": 2, "disk_layout": "random-blocks", "seed": seed, "log": True}
        result = hs.simulate("starfish", [read], **options)
        return result["log"], json.dumps(result)

    assert traced(3) == traced(3)
    assert traced(3) != traced(4)
    assert len(traced(3)[0].splitlines()) > 4


def test_what_takes_no_time_costs_no_time() -> None:
    stages = [transfer(strategy="server-directed")]

    def seconds(**options: Any) -> float:
        return float(hs.simulate("nas-sp2", stages, clients=4, servers=2, **options)["settled_seconds"])

    normal = seconds()
    disk = seconds(what_if={"instant_disk": True})
    both = seconds(what_if={"instant_disk": True, "instant_network": True})
    assert both < disk < normal
    assert seconds(scale={"storage.disk.write_rate": 0.5}) > normal
    assert seconds(period={"blocking_sends": True, "linear_start": True, "look_ahead": 1}) >= normal


def test_more_servers_are_faster_where_the_disk_is_slow() -> None:
    array = {"shape": [256, 256, 16], "mesh": [2, 2, 2], "dims": ["block"] * 3}
    stages = [{"transfer": {"write": True, "arrays": [array], "sync": True, "subchunk_bytes": 65536}}]

    def seconds(servers: int) -> float:
        return float(hs.simulate("nas-sp2", stages, clients=8, servers=servers)["seconds"])

    assert seconds(1) > 1.8 * seconds(2) > 3 * seconds(4)


SHAPES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"machine": "atlantis"}, {}, "neither a machine"),
    ({"clients": 0}, {}, "at least one client"),
    ({"machine": "starfish", "servers": 0}, {}, "none of 4 is to"),
    ({"machine": "starfish", "clients": 400}, {}, "a torus of 6 x 6"),
    ({"disk_layout": "random-blocks"}, {}, "cannot lie in random-blocks"),
    ({"disk_layout": "anywhere"}, {}, "anywhere"),
    ({"scale": {"network.speed": 2.0}}, {}, "network.speed"),
    ({"what_if": {"instant_everything": True}}, {}, "instant_everything"),
    ({}, {"strategy": "magic"}, "there is no strategy 'magic'"),
    ({}, {"exchange": "some"}, "exchange is"),
    ({}, {"servers": [9]}, "rank 9"),
    ({}, {"buffer_bytes": 99, "arrays": [{**ARRAY, "store": {"chunks": [64, 64]}}]}, "may have 99 B"),
    ({}, {"fast": True}, "there is no field 'fast'"),
    ({}, {"arrays": [{**ARRAY, "dims": ["block"]}]}, "dim"),
    ({}, {"arrays": [{**ARRAY, "dims": ["block", "spiral"]}]}, '"spiral" is no distribution'),
    ({}, {"arrays": [{**ARRAY, "dtype": "f7"}]}, '"f7" is no element type'),
    ({}, {"arrays": [{**ARRAY, "order": "Z"}]}, 'not "Z"'),
    ({}, {"arrays": [{**ARRAY, "section": [[0, 1, 90, 1], [0, 1, 64, 1]]}]}, "array"),
    ({}, {"arrays": [{**ARRAY, "mesh": [8, 8]}]}, "more ranks than the 4 clients"),
    ({}, {"arrays": [{**ARRAY, "shape": [1 << 40, 1 << 40]}]}, "array"),
    ({}, {"arrays": [{**ARRAY, "store": {"chunks": [0, 4]}}]}, "chunk"),
    ({}, {"arrays": [{**ARRAY, "store": {"chunks": [4]}}]}, "chunk"),
    ({}, {"arrays": [{**ARRAY, "count": 0}]}, "count"),
    ({}, {"arrays": [{**ARRAY, "count": 1 << 30, "shape": [0, 4]}]}, "more than the 1048576"),
    ({}, {"arrays": [ARRAY, ARRAY]}, "two arrays of one transfer lie at the same place of 'file'"),
    ({}, {"arrays": [{**ARRAY, "store": {"file": {"offset": 2**64 - 1}}}]}, "2^60 B"),
    ({}, {"arrays": [{**ARRAY, "store": {"chunks": [2**61, 1]}}]}, "2^60 B"),
    ({}, {"arrays": [{**ARRAY, "local": {"halo": [2**62, 0]}}]}, "2^60 B"),
    ({}, {"strategy": "server-directed", "slots": 2**32 - 1, "buffer_bytes": 2**63}, "buffer slots of a rank"),
    ({"clients": 2**32 - 2}, {}, "more than the 4194304"),
    ({"scale": {"nodes.ranks_per_node": 1e8, "nodes.cores_per_node": 1e8}}, {}, "processors of a node"),
    ({"machine": "starfish", "servers": 2, "scale": {"network.rows": 1e4, "network.columns": 1e4}}, {}, "of a torus"),
    ({"machine": "starfish", "servers": 2, "scale": {"storage.servers.unit": 8}}, {}, "storage.cache.block"),
    ({"machine": "starfish", "servers": 2, "scale": {"storage.servers.disks": 1e9}}, {}, "disks"),
    ({"scale": {"messages.send": 1e300}}, {}, "30 years"),
    ({"scale": {"storage.servers.disks": 4}}, {}, "storage.servers.disks"),
]


@pytest.mark.parametrize(("options", "asked", "text"), SHAPES)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], asked: dict[str, Any], text: str) -> None:
    with pytest.raises(hs.Error, match=re.escape(text)):
        hs.simulate(options.pop("machine", "nas-sp2"), [transfer(**asked)], **{"clients": 4, **options})


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        ({"open": {"who": 99}}, "stage 0 is for rank 99, but there are only 4 ranks"),
        ({"work": {"seconds": -1.0}}, "work of -1 s"),
        ({"call": {"object": "a", "offset": 2**64 - 5, "bytes": 10, "write": True}}, "2^60 B"),
        ({"sleep": {}}, "there is no 'sleep'"),
    ],
)
def test_stages_that_make_no_sense_are_refused(stage: dict[str, Any], text: str) -> None:
    with pytest.raises(hs.InvalidError, match=re.escape(text)):
        hs.simulate("nas-sp2", [stage], clients=4)


def test_a_long_call() -> None:
    call = {"call": {"who": 0, "object": "a", "bytes": 1 << 36, "write": True}}
    result = hs.simulate("object-store", [call], clients=1, what_if={"instant_disk": True, "instant_network": True})
    assert result["calls"]["write"]["bytes"] == 1 << 36


def test_a_request_of_too_many_ranges_is_refused() -> None:
    array = {"shape": [1 << 29], "mesh": [2], "dims": ["cyclic"], "dtype": "i1"}
    asked = {"write": True, "arrays": [array], "strategy": "independent", "subchunk_bytes": 1 << 29}
    with pytest.raises(hs.InvalidError, match="more than 67108864 ranges"):
        hs.simulate("nas-sp2", [{"transfer": {**asked, "buffer_bytes": 1 << 31}}], clients=2)


def test_what_is_not_synced_reaches_the_disk_later() -> None:
    result = hs.simulate("nas-sp2", [transfer(sync=False)], clients=4)
    assert result["settled_seconds"] > result["seconds"]
    assert sum(server["bytes"] for server in result["servers"]) == 64 * 64 * 8


def test_the_order_of_the_disk_is_that_of_the_file_at_hand() -> None:
    array = {"shape": [512, 512], "mesh": [2, 2], "dims": ["block", "block"], "name": "second"}
    stages = [
        {"call": {"who": 0, "object": "first", "bytes": 1, "write": False}},
        {"transfer": {"write": False, "arrays": [array], "strategy": "disk-directed", "subchunk_bytes": 8192}},
    ]

    def seek(*, presort: bool) -> float:
        stages[1]["transfer"]["presort"] = presort
        result = hs.simulate("starfish", stages, clients=4, servers=4, disk_layout="random-blocks")
        return float(sum(server["seek"] for server in result["servers"]))

    assert seek(presort=True) < 0.5 * seek(presort=False)


def test_a_simulation_can_be_interrupted() -> None:
    program = (
        "import hyperslab as hs\n"
        "a = {'shape': [1 << 23], 'mesh': [4], 'dims': ['cyclic']}\n"
        "print('begun', flush=True)\n"
        "hs.simulate('anl-sp-piofs', [{'transfer': {'write': True, 'arrays': [a], 'strategy': 'independent'}}],"
        " clients=4)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "begun\n"
        time.sleep(0.5)
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=60)
    assert "KeyboardInterrupt" in told


def test_a_machine_of_ones_own_is_checked(tmp_path: Path) -> None:
    text = hs.Machine.load("nas-sp2").text
    own = tmp_path / "own.toml"
    own.write_text(text.replace("45 us", "50 us"))
    assert hs.simulate(own, [transfer()], clients=4)["seconds"] > 0
    for found, instead, key in [
        ('latency = { is = "1 us"', 'latency = { is = "1 MB"', "network.latency"),
        ('latency = { is = "1 us"', 'latency = { is = "-1 us"', "network.latency"),
        ('kind = "switch"', 'kind = "bus"', "network.kind"),
        ("[network]", "[net]", "net"),
    ]:
        assert found in text
        own.write_text(text.replace(found, instead))
        with pytest.raises(hs.InvalidError) as raised:
            hs.simulate(own, [transfer()], clients=4)
        assert str(own) in str(raised.value)
        assert key in str(raised.value)
        assert "hint:" in str(raised.value) or "expected one of" in str(raised.value)


def program(*, section: bool = False) -> list[Any]:
    """A program that opens a store, writes an array, a step, perhaps a section of the array, and closes it."""
    array = {"shape": [64, 64], "mesh": [2, 2], "dims": ["block", "block"], "name": "rho"}
    store = {"store": "run.zarr"}
    write = {"write": True, "arrays": [array], **store}
    part = {**array, "section": [[0, 1, 64, 1], [0, 1, 64, 1]]}
    stages: list[Any] = [{"begin": store}, {"transfer": write}, {"step": {**store, "name": "s"}}, {"transfer": write}]
    stages.append({"publish": store})
    if section:
        stages.append({"transfer": {**write, "arrays": [part]}})
    read = {"transfer": {**write, "write": False}}
    append = {"transfer": {**write, "append": 0}}
    return [*stages, read, append, {"end": store}]


def test_a_program_of_the_library() -> None:
    result = hs.simulate("lustre-like", program(section=True), clients=4)
    parts = [stage["what"] for stage in result["stages"]]
    write, read = ["agree", "write", "agree"], ["agree", "read", "agree"]
    assert parts == ["begin", *write, "step", *write, "publish", *write, *read, *write, "end"]
    assert all(stage["end"] > stage["begin"] for stage in result["stages"] if stage["what"] != "agree")
    assert [transfer["bytes"] for transfer in result["transfers"]] == [64 * 64 * 8] * 5
    assert all(0 < transfer["moving_seconds"] < transfer["seconds"] for transfer in result["transfers"])
    assert {"open", "close", "query", "sync", "read", "write"} <= set(result["calls"])
    assert result == hs.simulate("lustre-like", program(section=True), clients=4)


def test_a_raw_file_of_the_library() -> None:
    array = {"shape": [64, 64], "mesh": [2, 2], "dims": ["block", "block"]}
    store = {"store": "out.raw"}
    stages = [{"begin": store}, {"transfer": {"write": True, "arrays": [array], **store}}, {"end": store}]
    result = hs.simulate("nas-sp2", stages, clients=4)
    assert result["transfers"][0]["bytes"] == 64 * 64 * 8
    with pytest.raises(hs.InvalidError, match=r"'out\.raw' is not open"):
        hs.simulate("nas-sp2", stages[1:], clients=4)


def test_a_transfer_alone_moves_as_that_of_a_call() -> None:
    alone = hs.simulate("nas-sp2", [transfer(alone=True)], clients=4)
    whole = hs.simulate("nas-sp2", [transfer()], clients=4)
    assert [stage["what"] for stage in alone["stages"]] == [stage["what"] for stage in whole["stages"]]
    moving = [result["transfers"][0]["moving_seconds"] for result in (alone, whole)]
    assert moving[0] == pytest.approx(moving[1], rel=0.02)


def test_what_goes_wrong_is_drawn_by_a_seed() -> None:
    ends = set()
    for seed in range(12):
        faults = {"seed": seed, "arrival_seconds": 20.0, "progress_seconds": 10.0, "storage_seconds": 30.0}
        result = hs.simulate("nvme-workstation", program(), clients=4, faults=faults)
        assert 1 <= len(result["faults"]) <= 2
        assert len(result["ends"]) == 4
        assert result["seconds"] < 120
        assert result == hs.simulate("nvme-workstation", program(), clients=4, faults=faults)
        ends |= {"failed" if end not in ("through", "dead") else end for end in result["ends"]}
    assert "through" in ends
    assert "failed" in ends
    assert "what goes wrong:" in hs.simulate("nvme-workstation", program(), clients=4, faults=1).text


def test_the_command(tmp_path: Path) -> None:
    listed = run("simulate", "--list").stdout
    assert all(name in listed for name in hs.machines())
    assert "messages.send" in run("simulate", "--machine", "nas-sp2", "--constants").stdout
    shape = ("simulate", "--machine", "nas-sp2", "--shape", "64,64", "--mesh", "2,2", "--dims", "block,block")
    assert "busiest:" in run(*shape, "--servers", 2, "--instant-disk").stdout
    trace = tmp_path / "trace"
    told = json.loads(run(*shape, "--json", "--log", trace, "--scale", "messages.send=2").stdout)
    assert told["transfers"][0]["bytes"] == 64 * 64 * 8
    assert trace.read_text().count("\n") > 4
    stages = tmp_path / "stages.json"
    stages.write_text(json.dumps(["agree", {"work": {"seconds": 2.0}}, transfer()]))
    told = json.loads(run("simulate", "--machine", "nas-sp2", "--clients", 4, "--stages", stages, "--json").stdout)
    assert told["seconds"] > 2
    for name in ("entire", "cyclic", "flash", "jeans"):
        asked = ("simulate", "--machine", "orion-like", "--benchmark", name, "--clients", 6, "--json")
        (moved,) = json.loads(run(*asked).stdout)["transfers"]
        assert moved["bytes"] > 6 << 20
    assert "no machine is named" in run("simulate", status=2).stderr
    assert "--shape is missing" in run("simulate", "--machine", "nas-sp2", "--clients", 2, status=2).stderr
    stages.write_text("{")
    refused = run("simulate", "--machine", "nas-sp2", "--clients", 4, "--stages", stages, status=2)
    assert "is not JSON" in refused.stderr
