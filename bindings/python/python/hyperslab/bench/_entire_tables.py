"""What a benchmark found, as medians, ratios and a table."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from hyperslab._quantities import bytes_unit, number, seconds_unit

__all__ = ["LIMIT_OF", "MPIIO", "Results", "case_table", "ratios"]

#: What the ranks report: how they were launched, and the seconds of each case and contender.
Results: TypeAlias = dict[str, Any]
Seconds: TypeAlias = Mapping[str, Sequence[float]]

OWN, SHARED = "limit: own files", "limit: one file"
RAW, ZARR = "hyperslab, row-major file", "hyperslab, Zarr"
SMALL, SHARDED = "hyperslab, small chunks", "hyperslab, in shards"
DEFAULT, TUNED = "MPI-IO, default hints", "MPI-IO, tuned hints"

#: The limit that each of our ways is held against.
LIMIT_OF = {RAW: SHARED, ZARR: OWN, SMALL: OWN, SHARDED: OWN}
MPIIO = (DEFAULT, TUNED)


def _median(times: Seconds, name: str) -> float:
    return statistics.median(times[name])


def ratios(result: Results) -> dict[str, dict[str, dict[str, float]]]:
    """Ratios of our times to the limit and to the better MPI-IO, of medians and of the fastest, for each case."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for case, times in result["seconds"].items():
        rival = min((name for name in MPIIO if name in times), key=lambda name: _median(times, name))
        found[case] = {
            name: {
                "limit": _median(times, name) / _median(times, limit),
                "limit_fastest": min(times[name]) / min(times[limit]),
                "mpiio": _median(times, name) / _median(times, rival),
                "mpiio_fastest": min(times[name]) / min(times[rival]),
            }
            for name, limit in LIMIT_OF.items()
        }
    return found


def case_table(result: Results) -> str:
    """A table of all cases of one launch: times in one unit, rates in one unit, and ratios of medians."""
    nbytes = math.prod(result["shape"]) * 8
    measured = [seconds for times in result["seconds"].values() for seconds in times.values()]
    unit, second = seconds_unit([one for seconds in measured for one in seconds])
    rate_unit, byte = bytes_unit([nbytes / statistics.median(seconds) for seconds in measured])
    mesh = " x ".join(str(extent) for extent in result["mesh"])
    lines = [
        f"{result['ranks']} ranks, mesh {mesh}, median of {result['repetitions']} [fastest, slowest], {result['mpi']}"
    ]
    compared = ratios(result)
    for case, times in result["seconds"].items():
        lines.append(f"{case:28}{unit:>9} {'':18}{rate_unit + '/s':>7}{'of limit':>11}{'of MPI-IO':>11}")
        for name, seconds in times.items():
            middle = _median(times, name)
            spread = f"[{number(min(seconds) / second)}, {number(max(seconds) / second)}]"
            line = f"  {name:26}{number(middle / second):>9} {spread:18}{number(nbytes / middle / byte):>7}"
            if name in compared[case]:
                line += "".join(f"{number(compared[case][name][ratio]):>11}" for ratio in ("limit", "mpiio"))
            lines.append(line)
    lines += [f"tuned for {case}: {_hints(hints)}" for case, hints in result["tuned"].items()]
    lines.append(
        "ratios of medians: row-major of one file's limit, Zarr of own files' limit, both of the faster MPI-IO"
    )
    return "\n".join(lines)


def _hints(hints: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in hints.items())
