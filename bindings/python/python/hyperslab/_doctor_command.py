"""``hyperslab doctor``: tells what a directory does for the ranks of a program."""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING, Any, Protocol

from hyperslab import _core
from hyperslab._printing import legible, say, say_json
from hyperslab._quantities import said_bytes, said_rate, said_seconds
from hyperslab._style import Style

if TYPE_CHECKING:
    from hyperslab._doctor import Examination, Ranks


class _Verbs(Protocol):
    def add_parser(self, name: str, **options: Any) -> argparse.ArgumentParser: ...


def add_verb(verbs: _Verbs) -> None:
    """Add the command to the others."""
    command = verbs.add_parser("doctor", help="tell what a directory does for the ranks of a job, or for this process")
    command.add_argument("path", help="a directory that may be written")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command; the status is 1 if data would be at risk there."""
    from hyperslab._doctor import examine

    comm = _ranks()
    try:
        seen = examine(args.path, comm)
    except Exception as error:  # noqa: BLE001  # the others wait for this rank
        say(f"hyperslab: doctor: rank {comm.rank}: {error}", error=True)
        comm.Abort(2)
        return 2
    launched = _core.ranks_of_launcher()
    if launched is not None and launched[0] > comm.size:
        seen.risks.append(
            f"this process is one of {launched[0]} ({launched[1]}), but MPI knows of {comm.size}: start them with the "
            "mpiexec, or the srun --mpi=, of the MPI that mpi4py uses"
        )
    if comm.rank == 0:
        if args.json:
            say_json(dataclasses.asdict(seen))
        else:
            _tell(seen)
    return 1 if seen.risks else 0


def _ranks() -> Ranks:
    """All ranks of this launch, if a launcher started several and mpi4py is there."""
    from hyperslab._doctor import Alone

    if _core.ranks_of_launcher() is None:
        return Alone()
    try:
        from mpi4py import MPI
    except ImportError:
        return Alone()
    world: Ranks = MPI.COMM_WORLD
    return world


#: What the classes mean, for people.
_MEANING = {
    "coherent": "all clients see at once what one did",
    "close-to-open": "opening a file shows what was closed before; names and attributes are seen late",
    "timeouts": "what a client has looked at may stay as it was for some seconds",
}


def _tell(seen: Examination) -> None:
    style = Style.of_stdout()
    place = seen.place
    ranks = "1 rank" if seen.ranks == 1 else f"{seen.ranks} ranks"
    mounts = "1 client" if seen.mounts == 1 else f"{seen.mounts} clients"
    say(style.heading(f"{legible(seen.path)}: {ranks} on {', '.join(map(legible, seen.hosts))}, {mounts}"))
    rows = [
        ("file system", f"{legible(place['type'])}, {legible(place['source'])}"),
        ("taken for", f"{place['strength']}: {_MEANING[place['strength']]}"),
        ("measured", f"{seen.measured}{': ' + _MEANING[seen.measured] if seen.measured in _MEANING else ''}"),
        ("locks", f"{seen.locks}; known to hold: {place['locks']}"),
    ]
    rows += [(name, "yes" if there else "no") for name, there in seen.renames.items()]
    if seen.room:
        rows.append(("free", f"{said_bytes(seen.room['bytes'])}, {seen.room['files']} files"))
    for name, value in seen.rates.items():
        what, unit = name.removeprefix("seconds ").removeprefix("bytes per second "), name.split()[0]
        rows.append((what, said_seconds(value) if unit == "seconds" else said_rate(value)))
    width = max(len(name) for name, _ in rows)
    for name, said in rows:
        say(f"  {name:<{width}}  {said}")
    if seen.seen:
        say(style.heading("what other clients see of what one did"))
        for name, row in seen.seen.items():
            late = f", all after {said_seconds(row['seconds'])}" if row["at_once"] < row["of"] else ""
            opening = f", by opening it {row['by_opening']}" if row["by_opening"] != row["at_once"] else ""
            say(f"  {name:<{width}}  at once {row['at_once']} of {row['of']}{opening}{late}")
    for note in seen.notes:
        say(f"{style.name('note:')} {note}")
    for risk in seen.risks:
        say(f"{style.bad('risk:')} {risk}")
    if not seen.risks:
        say(style.good("nothing that puts data at risk was found"))
