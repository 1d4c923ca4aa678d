"""``hyperslab plan``: how a transfer would be done on a machine that you do not have, and what would help."""

from __future__ import annotations

import argparse
import math
from typing import Any, Protocol

from hyperslab import _simulate_benchmarks
from hyperslab._arguments import cores_here, factor, integers
from hyperslab._printing import say, say_json
from hyperslab._simulate_command import add_array, clients_of, transfer
from hyperslab._style import Style
from hyperslab.planning import PANDA, plan


class _Verbs(Protocol):
    def add_parser(self, name: str, **options: Any) -> argparse.ArgumentParser: ...


def add_verb(verbs: _Verbs) -> None:
    """Add the command to the others."""
    command = verbs.add_parser("plan", help="tell how a transfer would be done on another machine, and what would help")
    command.add_argument("--machine", required=True, help="a name (hyperslab simulate --list), here, or a TOML file")
    command.add_argument("--benchmark", choices=tuple(_simulate_benchmarks.BENCHMARKS), help="a known program")
    add_array(command)
    command.add_argument("--disk-mesh", type=integers, help="of servers, each with a chunk of each array: 8,1,1")
    command.add_argument("--panda", action="store_true", help="as Panda 2.0.5 did: one buffer, each chunk by itself")
    command.add_argument("--rehearse", type=int, default=0, metavar="N", help="simulate this and the best N")
    command.add_argument("--scale", type=factor, action="append", default=[], metavar="KEY=FACTOR", help="what if?")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    clients = clients_of(args)
    asked = (PANDA if args.panda else {}) | transfer(args, clients)
    servers = args.servers or (math.prod(args.disk_mesh) if args.disk_mesh else 0)
    # More ranks than this machine has cores would share them.
    most = max(cores_here(), clients + servers) if args.machine == "here" else None
    found = plan(
        args.machine,
        asked,
        clients=clients,
        servers=servers,
        disk_mesh=args.disk_mesh,
        rehearse=args.rehearse,
        scale=dict(args.scale),
        ranks_max=most,
        period={"blocking_sends": True, "linear_start": True, "look_ahead": 40} if args.panda else None,
    )
    if args.json:
        say_json(found)
    else:
        say(Style.of_stdout().headings(found.text))
    return 0
