"""``hyperslab simulate``: what a transfer would cost on a machine that you do not have."""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from hyperslab import _simulate_benchmarks
from hyperslab._arguments import byte_count, dims, factor, integers, output_file
from hyperslab._printing import say, say_json
from hyperslab._style import Style
from hyperslab._text import read_text
from hyperslab.errors import InvalidError, NotFoundError
from hyperslab.simulation import Machine, Simulated, Stage, machines, simulate


class _Verbs(Protocol):
    def add_parser(self, name: str, **options: Any) -> argparse.ArgumentParser: ...


def add_array(command: argparse.ArgumentParser) -> None:
    """Add what says which arrays move, and what of how they do is forced."""
    command.add_argument("--shape", type=integers, help="of the array, such as 512,512,512")
    command.add_argument("--mesh", type=integers, help="of ranks, such as 4,4,2")
    command.add_argument("--dims", type=dims, help="such as block,cyclic(4),*; block for all without")
    command.add_argument("--dtype", default="f8")
    command.add_argument("--count", type=int, default=1, help="how many arrays alike move in the one call")
    command.add_argument("--chunks", type=integers, help="a file for each chunk, instead of one file")
    command.add_argument("--order", choices=("C", "F"), default="C")
    command.add_argument("--direction", choices=("write", "read"), default="write")
    command.add_argument("--strategy", help="the library chooses without")
    command.add_argument("--clients", type=int, help="ranks that hold arrays; those of the mesh without")
    command.add_argument("--servers", type=int, default=0, help="ranks behind them that only serve")
    command.add_argument("--server-ranks", type=integers, help="which ranks serve")
    command.add_argument("--subchunk-bytes", type=byte_count, help="such as 4MiB")
    command.add_argument("--buffer-bytes", type=byte_count, help="such as 256MiB")
    command.add_argument("--slots", type=int)
    command.add_argument("--exchange", choices=("all", "sharers"), help="between whom data cross, for two-phase")
    command.add_argument("--no-sync", action="store_true", help="leave what is written to caches")


def add_verb(verbs: _Verbs) -> None:
    """Add the command to the others."""
    command = verbs.add_parser("simulate", help="tell what a transfer would cost on another machine")
    command.add_argument("--list", action="store_true", help="list machines and benchmarks")
    command.add_argument("--machine", help="one of them, here, or a TOML file; docs/machines.md has the schema")
    command.add_argument("--constants", action="store_true", help="list the machine's numbers and their sources")
    command.add_argument("--stages", type=Path, help="a JSON file of stages, instead of one transfer")
    command.add_argument("--benchmark", choices=tuple(_simulate_benchmarks.BENCHMARKS), help="a known program")
    add_array(command)
    command.add_argument(
        "--disk-layout", choices=("contiguous", "random-blocks", "random-tracks"), default="contiguous"
    )
    command.add_argument("--instant-disk", action="store_true", help="what if disks took no time?")
    command.add_argument("--instant-network", action="store_true", help="what if messages took no time?")
    command.add_argument("--scale", type=factor, action="append", default=[], metavar="KEY=FACTOR", help="what if?")
    command.add_argument("--blocking-sends", action="store_true", help="as systems of the 1990s did")
    command.add_argument("--linear-start", action="store_true", help="as systems of the 1990s did")
    command.add_argument("--look-ahead", type=int, default=0, help="steps that a rank derives ahead")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--store", help="a store that the program opens, writes into and closes, such as run.zarr")
    command.add_argument("--faults", type=int, metavar="SEED", help="let something go wrong, drawn by this seed")
    command.add_argument("--log", type=output_file, help="write what happens into this file, a line each")
    command.add_argument(
        "--trace", type=Path, help="record spans of all ranks into this directory; see hyperslab trace"
    )
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if args.list:
        return _list(as_json=args.json)
    if args.machine is None:
        message = "no machine is named\n  hint: --machine nas-sp2, or --list for all"
        raise InvalidError(message)
    machine = Machine.load(args.machine)
    if args.constants:
        if args.json:
            say_json([asdict(constant) for constant in machine.constants()])
            return 0
        for constant in machine.constants():
            say(f"{constant.key:<32} {constant.value:<14} {constant.origin:<8} {constant.source}")
        return 0
    result = _simulated(args, machine)
    if args.log is not None:
        args.log.write_text(result.pop("log", ""))
    if args.json:
        say_json(result)
    else:
        say(Style.of_stdout().headings(result.text))
    return 0


def _list(*, as_json: bool) -> int:
    """List machines and benchmarks."""
    told = {name: re.search(r'^description = "(.*)"', Machine.load(name).text, re.MULTILINE) for name in machines()}
    known = {name: found.group(1) if found else "" for name, found in told.items()}
    benchmarks = {name: what for name, (what, _) in _simulate_benchmarks.BENCHMARKS.items()}
    if as_json:
        say_json({"machines": known, "benchmarks": benchmarks})
        return 0
    for name, what in known.items():
        say(f"{name:<26} {what}")
    for name, what in benchmarks.items():
        say(f"--benchmark {name:<14} {what}")
    return 0


def _simulated(args: argparse.Namespace, machine: Machine) -> Simulated:
    stages = _stages(args)
    return simulate(
        machine,
        stages,
        clients=clients_of(args),
        servers=args.servers,
        seed=args.seed,
        disk_layout=args.disk_layout,
        what_if={"instant_disk": args.instant_disk, "instant_network": args.instant_network},
        period={
            "blocking_sends": args.blocking_sends,
            "linear_start": args.linear_start,
            "look_ahead": args.look_ahead,
        },
        scale=dict(args.scale),
        log=args.log is not None,
        trace=args.trace,
        faults=args.faults,
    )


def clients_of(args: argparse.Namespace) -> int:
    """How many ranks hold arrays."""
    if args.clients is not None:
        if args.clients < 1:
            message = f"{args.clients} clients: at least one is needed"
            raise InvalidError(message)
        return int(args.clients)
    if args.mesh is None:
        message = "the number of ranks is not known\n  hint: --mesh 4,4,2, or --clients 32"
        raise InvalidError(message)
    return math.prod(args.mesh)


def _array(args: argparse.Namespace) -> dict[str, Any]:
    missing = [name for name in ("shape", "mesh") if getattr(args, name) is None]
    if missing:
        instead = "--benchmark, or --stages" if "stages" in args else "--benchmark"
        message = f"what is to move is not known: --{missing[0]} is missing\n  hint: or name a {instead}"
        raise InvalidError(message)
    array: dict[str, Any] = {
        "shape": args.shape,
        "mesh": args.mesh,
        "dims": args.dims or ["block"] * len(args.shape),
        "dtype": args.dtype,
        "count": args.count,
        "order": args.order,
    }
    if args.chunks is not None:
        array["store"] = {"chunks": args.chunks}
    return array


def _stages(args: argparse.Namespace) -> Sequence[Stage]:
    if args.stages is not None:
        if not args.stages.is_file():
            message = f"there is no file '{args.stages}' of stages"
            raise NotFoundError(message)
        told = read_text(args.stages, "a list of stages")
        try:
            stages = json.loads(told)
        except (ValueError, RecursionError) as error:
            message = f"'{args.stages}' is not JSON: {error}"
            raise InvalidError(message) from error
        return stages if isinstance(stages, list) else [stages]
    asked = transfer(args, clients_of(args))
    if args.store is None:
        return [{"open": {}}, {"transfer": asked}, {"close": {}}]
    store = {"store": args.store}
    durable = {"durable": asked.pop("sync")} if asked["write"] else {"mode": "r"}
    return [{"begin": store | durable}, {"transfer": asked | store}, {"end": store}]


def transfer(args: argparse.Namespace, clients: int) -> dict[str, Any]:
    """The collective call that is asked for, with what of it is forced."""
    arrays = [_array(args)] if args.benchmark is None else _simulate_benchmarks.arrays(args.benchmark, clients)
    write = args.direction == "write"
    asked: dict[str, Any] = {"write": write, "arrays": arrays, "sync": write and not args.no_sync}
    forced = {
        "strategy": args.strategy,
        "servers": args.server_ranks,
        "subchunk_bytes": args.subchunk_bytes,
        "buffer_bytes": args.buffer_bytes,
        "slots": args.slots,
        "exchange": args.exchange,
    }
    return asked | {key: value for key, value in forced.items() if value is not None}
