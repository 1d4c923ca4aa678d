"""The ``hyperslab`` command."""

from __future__ import annotations

import argparse
import json
import sys

import hyperslab as hs


def _inspect(args: argparse.Namespace) -> int:
    with hs.open(args.path) as store:
        rows = {name: store[name] for name in store.arrays()}
        groups = store.groups()
        if args.json:
            arrays = {
                name: {"shape": info.shape, "dtype": str(info.dtype), "chunks": info.chunks}
                for name, info in rows.items()
            }
            print(json.dumps({"path": store.path, "arrays": arrays, "groups": groups}))
            return 0
        for name, info in rows.items():
            print(f"{name}: {info.dtype} {info.shape}, chunks {info.chunks}")
        for name in groups:
            print(f"{name}/")
    return 0


def _explain(args: argparse.Namespace) -> int:
    dist = hs.Distribution(args.shape, args.mesh, args.dims)
    text = hs.explain(
        dist, args.dtype, direction=args.direction, chunks=args.chunks, strategy=args.strategy, servers=args.servers
    )
    print(json.dumps({"explain": text.splitlines()}) if args.json else text, end="" if not args.json else "\n")
    return 0


def _integers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.replace("x", ",").split(",") if part)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="hyperslab", description="Collective I/O of distributed arrays.")
    top.add_argument("--version", action="version", version=f"hyperslab {hs.__version__}")
    verbs = top.add_subparsers(dest="verb", required=True, metavar="verb")

    inspect = verbs.add_parser("inspect", help="list what a store holds")
    inspect.add_argument("path")
    inspect.add_argument("--json", action="store_true")
    inspect.set_defaults(run=_inspect)

    explain = verbs.add_parser("explain", help="tell how a transfer would be done")
    explain.add_argument("--shape", type=_integers, required=True, help="such as 128,128,64")
    explain.add_argument("--mesh", type=_integers, required=True, help="such as 2,2,2")
    explain.add_argument("--dims", type=lambda text: text.split(","), help="such as block,cyclic(4),*")
    explain.add_argument("--dtype", default="f8")
    explain.add_argument("--direction", choices=("write", "read"), default="write")
    explain.add_argument("--chunks", type=_integers)
    explain.add_argument("--strategy")
    explain.add_argument("--servers", type=int)
    explain.add_argument("--json", action="store_true")
    explain.set_defaults(run=_explain)

    from hyperslab import _bench

    _bench.add_verbs(verbs)
    return top


def main(argv: list[str] | None = None) -> int:
    """Run the command; errors go to stderr with their hint."""
    args = parser().parse_args(argv)
    try:
        status: int = args.run(args)
    except hs.Error as error:
        print(f"hyperslab: {error}", file=sys.stderr)
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
