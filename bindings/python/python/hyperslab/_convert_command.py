"""``hyperslab convert``: copies a store or file into another one, of the same format or of another."""

from __future__ import annotations

import argparse
from typing import Any, Protocol

from hyperslab._arguments import byte_count, integers
from hyperslab._printing import legible, say, say_json
from hyperslab._quantities import said_bytes


class _Verbs(Protocol):
    def add_parser(self, name: str, **options: Any) -> argparse.ArgumentParser: ...


def add_verb(verbs: _Verbs) -> None:
    """Add the command to the others."""
    command = verbs.add_parser("convert", help="copy a store or file into another format")
    command.add_argument("source", help="the store or file that is copied")
    command.add_argument("target", help="what is made; its name says the format")
    command.add_argument("--names", nargs="+", help="only these arrays")
    command.add_argument("--format", help="format of the target, such as hdf5, netcdf4, netcdf3 or zarr")
    command.add_argument("--chunks", type=integers, help="shape of the chunks of all arrays, such as 64,64")
    command.add_argument("--compression", help="filter of HDF5 and netCDF-4, such as gzip")
    command.add_argument("--memory", type=byte_count, default=64 << 20, help="most memory for elements, such as 64MiB")
    command.add_argument("--overwrite", action="store_true", help="replace what is there")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from hyperslab.conversion import convert

    options = {name: getattr(args, name) for name in ("chunks", "compression") if getattr(args, name) is not None}
    mode, more = "w" if args.overwrite else "x", {"names": args.names, "format": args.format, "memory": args.memory}
    done = convert(args.source, args.target, mode, comm=None, **more, **options)  # type: ignore[arg-type]
    if args.json:
        say_json({"arrays": list(done.arrays), "bytes": done.bytes, "sections": done.sections})
    else:
        say(
            f"{legible(args.target)}: {said_bytes(done.bytes)} of {', '.join(map(legible, done.arrays)) or 'no arrays'}"
        )
    return 0
