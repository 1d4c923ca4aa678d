"""The ``hyperslab`` command."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from typing import Any

import hyperslab as hs
from hyperslab import _core
from hyperslab._arguments import byte_count, cores_here, dims, integers, output_file, section
from hyperslab._printing import say, say_json
from hyperslab._style import Style


def _explain(args: argparse.Namespace) -> int:
    dist = hs.Distribution(args.shape, args.mesh, args.dims)
    servers = args.server_ranks if args.servers is None else args.servers
    told = hs.explain(
        dist,
        args.dtype,
        name=args.name,
        direction=args.direction,
        section=args.section,
        shape=args.stored_shape,
        layout=args.layout,
        chunks=args.chunks,
        order=args.order,
        strategy=args.strategy,
        servers=servers,
        subchunk_bytes=args.subchunk_bytes,
        buffer_bytes=args.buffer_bytes,
        exchange=args.exchange,
        cores=args.cores,
        ranks_per_node=args.ranks_per_node,
        ranks=args.ranks,
        rounds=args.rounds,
    )
    if args.picture is not None:
        args.picture.write_text(told.picture())
    advice = _advice(args, dist, told.to_dict())
    if args.json:
        say_json(told.to_dict() | {"advice": advice})
        return 0
    style = Style.of_stdout()
    say(style.headings(told.text), end="")
    for line in advice:
        say(f"{style.name('advice:')} {line}")
    return 0


def _advice(args: argparse.Namespace, dist: hs.Distribution, told: dict[str, Any]) -> list[str]:
    """What else would be cheaper on this machine, as far as the model can tell; nothing where something is forced."""
    forced = ("section", "strategy", "servers", "server_ranks", "subchunk_bytes", "buffer_bytes", "exchange")
    if any(getattr(args, name) is not None for name in (*forced, "cores", "ranks_per_node")):
        return []
    array = {"shape": dist.shape, "mesh": dist.mesh, "dims": dist.dims, "dtype": args.dtype}
    if args.layout == "zarr":
        array["store"] = {"chunks": told["arrays"][0]["chunks"]["shape"]}
    else:
        array["order"] = args.order
    names = [args.name] if isinstance(args.name, str) else args.name
    arrays = [{**array, "name": name} for name in names]
    asked = {"write": args.direction == "write", "arrays": arrays, "sync": args.direction == "write"}
    # More ranks than this machine has cores would share them.
    most = max(cores_here(), dist.size)
    return list(hs.plan("here", asked, clients=dist.size, ranks_max=most)["advice"])


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="hyperslab",
        description="Collective I/O of distributed arrays.",
        epilog="exit codes: 0, done; 1, done, and what was looked at is damaged or cannot be read; 2, not done: wrong "
        "usage, or an error, which goes to stderr; 130, interrupted. Data go to stdout; with --json, as JSON. "
        "docs/environment.md lists environment variables.",
    )
    top.add_argument("--version", action="version", version=f"hyperslab {hs.__version__}")
    verbs = top.add_subparsers(dest="verb", required=True, metavar="verb")

    explain = verbs.add_parser(
        "explain",
        help="tell how a transfer would be done",
        epilog=f"strategies:\n{textwrap.indent(_core.strategy_help(), '  ')}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    explain.add_argument("--shape", type=integers, required=True, help="such as 128,128,64")
    explain.add_argument("--mesh", type=integers, required=True, help="such as 2,2,2")
    explain.add_argument("--dims", type=dims, help="such as block,cyclic(4),*; block for all without")
    explain.add_argument("--dtype", default="f8")
    explain.add_argument("--direction", choices=("write", "read"), default="write")
    explain.add_argument("--name", nargs="+", default="array", help="one array, or several that are held alike")
    explain.add_argument("--section", type=section, help="a part of a stored array, such as 0:64:2,3:9")
    explain.add_argument("--stored-shape", type=integers, help="shape of the array that the section is of")
    explain.add_argument("--layout", choices=("zarr", "raw"), default="zarr")
    explain.add_argument("--chunks", type=integers)
    explain.add_argument("--order", choices=("C", "F"), default="C", help="of the elements of a raw file")
    explain.add_argument("--strategy", help="one of those below; the library chooses without")
    servers = explain.add_mutually_exclusive_group()
    servers.add_argument("--servers", type=int, help="how many ranks are servers")
    servers.add_argument("--server-ranks", type=integers, help="which ranks are servers, such as 0,4,8")
    explain.add_argument("--subchunk-bytes", type=byte_count, help="most bytes of a subchunk, such as 4MiB")
    explain.add_argument("--buffer-bytes", type=byte_count, help="most bytes of buffers on one rank, such as 256MiB")
    explain.add_argument("--exchange", choices=("all", "sharers"), help="between whom data cross, for two-phase")
    explain.add_argument("--cores", type=int, help="cores of a compute node")
    explain.add_argument("--ranks-per-node", type=int, help="ranks on a compute node")
    explain.add_argument("--ranks", type=int, default=8, help="ranks that are shown")
    explain.add_argument("--rounds", type=int, default=3, help="rounds that are shown")
    explain.add_argument("--picture", type=output_file, help="draw who moves what into this SVG file")
    explain.add_argument("--json", action="store_true", help="print JSON")
    explain.set_defaults(run=_explain)

    _add_verbs(verbs)
    return top


def _add_verbs(verbs: Any) -> None:
    """Those that have modules of their own, which are loaded only here."""
    from hyperslab import (
        _calibrate,
        _clean_command,
        _completion,
        _convert_command,
        _doctor_command,
        _inspect_command,
        _plan_command,
        _simulate_command,
    )
    from hyperslab._verify import _command as verify
    from hyperslab.bench import _command as bench
    from hyperslab.reproduce import _command as reproduce
    from hyperslab.trace import _command as trace

    _inspect_command.add_verb(verbs)
    _simulate_command.add_verb(verbs)
    _plan_command.add_verb(verbs)
    reproduce.add_verb(verbs)
    _calibrate.add_verb(verbs)
    bench.add_verbs(verbs)
    trace.add_verb(verbs)
    verify.add_verb(verbs)
    _convert_command.add_verb(verbs)
    _clean_command.add_verb(verbs)
    _doctor_command.add_verb(verbs)
    _completion.add_verb(verbs, parser)


def main(argv: list[str] | None = None) -> int:
    """Run the command; errors go to stderr with their hint."""
    args = parser().parse_args(argv)
    try:
        status: int = args.run(args)
        sys.stdout.flush()
    except hs.Error as error:
        say(f"hyperslab: {error}", error=True)
        return 2
    except BrokenPipeError:
        # Whoever reads has seen enough; nothing more can be written when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        of = "" if error.filename is None else f"'{error.filename}': "
        say(f"hyperslab: {args.verb}: {of}{error.strerror or error}", error=True)
        return 2
    except KeyboardInterrupt:
        say(f"hyperslab: {args.verb}: interrupted by the user", error=True)
        return 130
    return status


if __name__ == "__main__":
    sys.exit(main())
