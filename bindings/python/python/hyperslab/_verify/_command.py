"""``hyperslab verify``: whether what is stored is whole."""

from __future__ import annotations

import argparse
from typing import Any, Protocol

from hyperslab._arguments import byte_count, stored_array
from hyperslab._printing import say, say_json
from hyperslab._style import Style
from hyperslab.errors import Error, InvalidError


class _Verbs(Protocol):
    def add_parser(self, name: str, **options: Any) -> argparse.ArgumentParser: ...


def add_verb(verbs: _Verbs) -> None:
    """Add the command to the others."""
    command = verbs.add_parser("verify", help="check that a store or file is whole")
    command.add_argument("path", help="a Zarr store, a group or array in it, or an HDF5, NetCDF, npy or raw file")
    command.add_argument(
        "--header", type=byte_count, default=0, metavar="BYTES", help="of a raw file: before its first array"
    )
    command.add_argument(
        "--array",
        type=stored_array,
        action="append",
        default=[],
        metavar="NAME:SHAPE:DTYPE",
        help="of a raw file: each of its arrays in turn, such as rho:128,128,64:<f8",
    )
    command.add_argument("--order", choices=("C", "F"), default="F", help="of the elements of a raw file")
    command.add_argument("--jobs", type=int, metavar="N", help="threads that read; at most 2 by default")
    command.add_argument("--buffer-bytes", type=byte_count, help="most bytes of buffers of one thread, such as 256MiB")
    command.add_argument("--storage-seconds", type=float, default=600.0, help="how long storage may not answer")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=run)


def _coloured(text: str, style: Style) -> str:
    """A report whose result catches the eye."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if line.startswith("result: "):
            lines[number] = (style.bad if line == "result: damaged" else style.good)(line)
    return "\n".join(lines)


def run(args: argparse.Namespace) -> int:
    """Run the command; the status is 1 only for damage."""
    from hyperslab.verification import verify

    arrays = dict(args.array)
    try:
        if len(arrays) < len(args.array):
            message = "two arrays have the same name\n  hint: each --array needs a name of its own"
            raise InvalidError(message)
        found = verify(
            args.path,
            header=args.header,
            arrays=arrays,
            order=args.order,
            jobs=args.jobs,
            buffer_bytes=args.buffer_bytes,
            storage_seconds=args.storage_seconds,
        )
    except Error as error:
        say(f"hyperslab: {error}", error=True)
        return 2
    if args.json:
        say_json(found.to_dict())
    else:
        say(_coloured(found.text, Style.of_stdout()))
    return int(found.damaged)
