"""From what was measured to a machine profile in TOML."""

from __future__ import annotations

import datetime
import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import hyperslab as hs
from hyperslab import _core
from hyperslab._calibrate_fit import Point, Times, fit, jump
from hyperslab._calibrate_launch import available_bytes
from hyperslab._calibrate_ranks import FAR, NEAR, WIRE

__all__ = ["BEGIN", "BUSY", "END", "profile"]

#: The first words and the last line of a profile: one that ends otherwise was cut off.
BEGIN = "# Measured by hyperslab calibrate"
END = "# end of profile"

TIMES = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))
RATES = (("GB/s", 1e9), ("MB/s", 1e6), ("KB/s", 1e3), ("B/s", 1.0))
#: Other programs that use a larger part of the cores disturb.
BUSY = 0.1
#: Kernels whose noise is told under one name.
NOISE = {
    "copy": ("copy",),
    "message": ("message", "agree"),
    "file": ("write", "read", "own-file", "one-file"),
    "sync": ("sync", "own-sync", "one-sync"),
}
#: Slowest and fastest that a rate can sensibly be [B/s]: noise must not make a profile that no one can read.
RATE_MIN, RATE_MAX = 1e3, 1e12


def _in_units(value: float, units: tuple[tuple[str, float], ...]) -> str:
    unit, factor = next((unit for unit in units if value >= unit[1]), units[-1])
    return f"{value / factor:.4g} {unit}"


def time_text(seconds: float) -> str:
    """A time, such as ``12.5 us``."""
    return _in_units(max(seconds, 0.0), TIMES)


def _size_text(nbytes: float) -> str:
    unit, factor = ("MiB", 1 << 20) if nbytes >= 1 << 20 else ("KiB", 1 << 10)
    return f"{nbytes / factor:.3g} {unit}"


def rate_text(rate: float) -> str:
    """A rate, such as ``6.4 GB/s``."""
    return _in_units(min(max(rate, RATE_MIN), RATE_MAX), RATES)


def _inverse(seconds_per_byte: float) -> float:
    return 1 / seconds_per_byte if seconds_per_byte > 1 / RATE_MAX else RATE_MAX


def _one(_at: Mapping[str, float]) -> float:
    return 1.0


def _bytes(at: Mapping[str, float]) -> float:
    return at["bytes"]


def _runs(at: Mapping[str, float]) -> float:
    return at["runs"]


class _Numbers:
    """Numbers by key, with their sources; those of the default until they are known better."""

    def __init__(self) -> None:
        self.document: dict[str, Any] = tomllib.loads(_core.default_profile())
        self.how = f"{datetime.datetime.now(tz=datetime.UTC).date().isoformat()}"
        self._as_guesses(self.document)

    def _as_guesses(self, table: dict[str, Any]) -> None:
        for value in table.values():
            if isinstance(value, dict) and "from" in value:
                if not value["from"].startswith("public:"):
                    said = re.sub(r"^\w+: ", "", value["from"])
                    value["from"] = f"guess: not measured here; of the default: {said}"
            elif isinstance(value, dict):
                self._as_guesses(value)

    def _table(self, key: str) -> tuple[dict[str, Any], str]:
        *path, last = key.split(".")
        table = self.document
        for part in path:
            table = table[part]
        return table, last

    def put(self, key: str, value: str | float, source: str) -> None:
        """A number and its source."""
        table, last = self._table(key)
        assert last in table, key
        table[last] = {"is": value, "from": source}

    def measured(self, key: str, value: str | float, how: str) -> None:
        """A number that was measured."""
        self.put(key, value, f"measured: {how}, {self.how}")

    def without(self, key: str) -> None:
        """No number, since there is no such thing here."""
        table, last = self._table(key)
        del table[last]

    def word(self, key: str, value: str) -> None:
        """A word."""
        table, last = self._table(key)
        assert last in table, key
        table[last] = value

    def text(self) -> str:
        """As TOML."""
        lines: list[str] = []
        self._section("", self.document, lines)
        return "\n".join(lines).strip() + "\n"

    def _section(self, path: str, table: dict[str, Any], lines: list[str]) -> None:
        nested = {key: value for key, value in table.items() if isinstance(value, dict) and "from" not in value}
        if path and len(nested) < len(table):
            lines += ["", f"[{path}]"]
        for key, value in table.items():
            if isinstance(value, dict) and "from" in value:
                said = json.dumps(value["from"], ensure_ascii=False)
                lines.append(f"{key} = {{ is = {json.dumps(value['is'])}, from = {said} }}")
            elif key not in nested:
                lines.append(f"{key} = {json.dumps(value, ensure_ascii=False)}")
        for key, value in nested.items():
            self._section(f"{path}.{key}" if path else key, value, lines)


def _processor(it: _Numbers, times: Times, together: int) -> None:
    many = NEAR if times.points("copy", NEAR) else "alone"
    points = times.points("copy", many)
    if points:

        def longest(way: str) -> float:
            whole = min(times.points("copy", way), key=lambda point: point.at["runs"])
            return whole.at["bytes"] / whole.seconds

        by = f"{together} ranks at the same time" if many == NEAR else "one process"
        alone = f"; one alone {rate_text(longest('alone'))}" if times.points("copy", "alone") else ""
        it.measured(
            "processor.copy_rate", rate_text(longest(many)), f"copies of runs of 2 MiB into a slot, {by}{alone}"
        )
        said = f"copies of runs of 32 B to 8 KiB, four times as far apart, {by}"
        # Shorter ones are words, which cost as those that are transposed.
        longer = [point for point in points if point.at["bytes"] > 8 * point.at["runs"]]
        it.measured("processor.run", time_text(fit(longer, _bytes, _runs)[1]), said)
        turned = times.points("turn", many)
        if turned:
            said = f"copies that turn over two dimensions of elements of 1 to 8 B, less their bytes, {by}"
            it.measured("processor.turn", time_text(_each_run(turned, 0.0, 1 / longest(many))), said)
        for point in times.points("touch", many):
            said = f"a byte of each page of {point.at['bytes'] / 2**20:g} MiB of new memory, {by}"
            it.measured("processor.touch_rate", rate_text(point.at["bytes"] / point.seconds), said)
    encoded, decoded = times.points("encode"), times.points("decode")
    if encoded and decoded:
        coding, decoding = (point.at["bytes"] / point.seconds for point in (*encoded, *decoded))
        said = f"zstd of level 1 with a checksum, {rate_text(coding)} coding, {rate_text(decoding)} decoding"
        it.measured("processor.code_rate", rate_text(2 / (1 / coding + 1 / decoding)), said)
    points = times.points("plan")
    if points:
        step, piece = fit(points, lambda at: at["steps"], lambda at: at["pieces"])
        said = "programs of a server of 4, 64 and 256 ranks"
        it.measured("processor.step", time_text(step), said)
        it.measured("processor.piece", time_text(piece), said)


def _message_fit(
    times: Times, way: str, *, slot: float = 0, array: float = 0
) -> tuple[float, float, float, float] | None:
    """Seconds a message, a byte, and a run of messages that go this way: apart in the slot, and apart in the array.

    Of either side only runs of at least so many bytes count.
    """
    whole = times.points("message", way, lambda at: at["runs"] == 1)
    if len(whole) < 2:
        return None
    start, each = fit(whole, _one, _bytes)

    def parts(in_slot: int, run_bytes_min: float) -> list[Point]:
        long = times.points("message", way, lambda at: at["bytes"] / at["runs"] >= run_bytes_min)
        return [point for point in long if point.at["runs"] > 1 and point.at["in_slot"] == in_slot]

    return start, each, _each_run(parts(1, slot), start, each), _each_run(parts(0, array), start, each)


def _each_run(parts: Sequence[Point], start: float, each: float) -> float:
    """Seconds for each run beside those of an operation and its bytes: what comes nearest to all times, relatively."""
    weights = [(p.at["runs"] / p.seconds, max(1 - (start + each * p.at["bytes"]) / p.seconds, 0.0)) for p in parts]
    squares = sum(weight * weight for weight, _ in weights)
    return sum(weight * rest for weight, rest in weights) / squares if squares else 0.0


def _messages(it: _Numbers, times: Times, launched: Mapping[str, Any]) -> None:
    ranks, wire = launched["together"], launched["wire"]
    # Gaps are three times as long as runs; up to 2 KiB of the array they are read along.
    found = _message_fit(times, NEAR, slot=256, array=1024)
    pairs = f"{ranks} ranks in pairs, each taking the other's messages"
    if found:
        start, each, run, in_array = found
        it.measured("measured.neighbours.message", time_text(start), f"{pairs}, 64 B to 4 MiB")
        it.measured("measured.neighbours.rate", rate_text(_inverse(each)), f"{pairs}, 64 B to 4 MiB")
        for key, seconds, side, least in (("run", run, "slot", "256 B"), ("array_run", in_array, "array", "1 KiB")):
            runs = f"512 KiB in runs of {least} to 16 KiB, apart in the {side}"
            it.measured(f"measured.neighbours.{key}", time_text(seconds), f"{pairs}, {runs}")
    found = _message_fit(times, FAR) or _message_fit(times, WIRE)
    if not found:
        return
    start, each, run, in_array = found
    way = FAR if times.points("message", FAR) else WIRE
    said = f"{pairs}, packed, by {wire}" + (", between nodes" if way == FAR else "")
    for end in ("send", "receive"):
        it.measured(f"messages.{end}", time_text(start / 2), f"half of a message's start-up; {said}")
        if way == WIRE:
            it.measured(f"messages.{end}_per_byte", f"{each / 2 * 1e9:.4g} ns/B", f"half of a byte's time; {said}")
    for side, seconds in (("slot", run), ("array", in_array)):
        runs = f"512 KiB in runs of 64 B to 16 KiB, apart in the {side}"
        it.measured(f"messages.{side}_per_run", time_text(seconds), f"{said}, {runs}")
    step = jump(times.points("message", way, lambda at: at["runs"] == 1))
    if step:
        it.measured("messages.eager", f"{step:.0f} B", f"longer messages take a step longer; {said}")
    else:
        eager = it.document["messages"]["eager"]["is"]
        it.put("messages.eager", eager, "guess: no step was seen in the time of messages of 64 B to 4 MiB")
    echo = times.seconds("echo", FAR)
    if echo and way == FAR:
        it.measured(
            "network.latency", time_text(max(echo - start, 0.0)), f"half of there and back, less start-up; {said}"
        )
        # All ranks of a node send at the same time.
        it.measured("network.link_rate", rate_text(_inverse(each / launched["ranks_per_node"])), said)


def _agreements(it: _Numbers, times: Times, cores: int) -> None:
    points = {int(point.at["ranks"]): point.seconds for point in times.points("agree")}
    if not points:
        return
    counts = ", ".join(f"{ranks}: {time_text(seconds)}" for ranks, seconds in sorted(points.items()))
    said = f"agreements in a row, by ranks ({counts})"
    base = points.get(1, min(points.values()))
    it.measured("measured.agreements.base", time_text(base), said)
    several = sorted(ranks for ranks in points if ranks > 1)
    fits = {ranks: points[ranks] for ranks in several if ranks <= max(cores, several[0])}
    rank = 0.0
    if fits:
        most = max(fits)
        rank = max(fits[most] - base, 0.0) / (most - 1)
        it.measured("measured.agreements.rank", time_text(rank), said)
    beyond = {ranks: seconds for ranks, seconds in points.items() if ranks > cores}
    if beyond:
        full = base + rank * (cores - 1)
        each = [max(seconds - full, 0.0) / (ranks - cores) for ranks, seconds in beyond.items()]
        it.measured("measured.agreements.crowded", time_text(sum(each) / len(each)), said)
    late = [point.seconds for point in times.points("late-agree", None, lambda at: 1 < at["ranks"] <= cores)]
    late = late or [point.seconds for point in times.points("late-agree")]
    if late:
        it.measured(
            "measured.neighbours.wake",
            time_text(min(late) / 2),
            "half of an agreement as seen by a rank for which the others waited for 1 ms",
        )


def _files(it: _Numbers, times: Times) -> None:
    for kernel in ("write", "read"):
        points = times.points(kernel, None, lambda at: at["runs"] == 1)
        if points:
            start, each = fit(points, _one, _bytes)
            said = f"{kernel}s of 4 KiB to 16 MiB of a fresh file in the cache, one rank"
            it.measured(f"measured.files.{kernel}", time_text(start), said)
            it.measured(f"measured.files.{kernel}_rate", rate_text(_inverse(each)), said)
            if kernel == "write":
                _kept(it, times, start)
                it.measured("storage.call", time_text(start), said)
                it.measured("storage.call_per_byte", rate_text(_inverse(each)), said)
                it.measured("storage.cache.copy_rate", rate_text(_inverse(each)), said)
            _runs_of_calls(it, times, kernel, start, each)
            _ranges_of_requests(it, times, kernel, start, each)
    points = times.points("sync")
    if points:
        start, each = fit(points, _one, _bytes)
        sizes = [_size_text(point.at["bytes"]) for point in points]
        said = f"fsync of {', '.join(sizes)} just written"
        it.measured("measured.files.sync", time_text(start), said)
        it.measured("measured.files.sync_rate", rate_text(_inverse(each)), said)
    for point in times.points("cold"):
        rate = point.at["bytes"] / point.seconds
        it.measured("measured.files.cold_rate", rate_text(rate), "reads after fsync and POSIX_FADV_DONTNEED")
    _direct(it, times)
    for kernel in ("create", "open", "rename", "remove"):
        seconds = times.seconds(kernel)
        if seconds:
            it.measured(f"measured.files.{kernel}", time_text(seconds), "128 small files in a row")
    opened = times.seconds("open")
    if opened:
        it.measured(
            "storage.metadata.open", time_text(opened), "opening, reading a byte and closing; 128 files in a row"
        )


def _kept(it: _Numbers, times: Times, start: float) -> None:
    """The rate of writes out of memory that stays in the processor's cache."""
    for point in times.points("write-kept"):
        rate = point.at["bytes"] / max(point.seconds - start, point.seconds / 2)
        said = f"writes of {_size_text(point.at['bytes'])} out of the same memory, one rank, less what a call takes"
        it.measured("measured.files.write_rate_kept", rate_text(rate), said)


def _runs_of_calls(it: _Numbers, times: Times, kernel: str, start: float, each: float) -> None:
    """What runs of memory cost that a call gathers, or into which it scatters."""
    points = times.points(kernel, None, lambda at: at["runs"] > 1)
    if points:
        key, between = ("gather", "out of") if kernel == "write" else ("scatter", "into")
        said = f"{kernel}s of 1 MiB {between} runs of 256 B to 32 KiB, less those of one run"
        it.measured(f"measured.files.{key}", time_text(_each_run(points, start, each)), said)


def _ranges_of_requests(it: _Numbers, times: Times, kernel: str, start: float, each: float) -> None:
    """What ranges of a file cost that one request writes or reads, each by a call of its own."""
    for point in times.points(f"{kernel}-ranges"):
        further, size = point.at["ranges"] - 1, _size_text(point.at["bytes"] / point.at["ranges"])
        seconds = max(0.0, point.seconds - start - each * point.at["bytes"]) / further
        said = f"{kernel}s of {int(further) + 1} ranges of {size} that lie apart in the file, less one of all bytes"
        it.measured(f"measured.files.{kernel}_range", time_text(seconds), said)


def _direct(it: _Numbers, times: Times) -> None:
    for way in ("write", "read"):
        points = times.points(f"direct-{way}", None, lambda at: at["at_once"] == 1)
        if not points:
            # The file system has no such requests; those of the default must not be taken for its own.
            it.without(f"measured.files.direct_{way}_rate")
            continue
        longest = max(points, key=_point_bytes)
        rate = longest.at["bytes"] / longest.seconds
        said = f"{way}s of {_size_text(longest.at['bytes'])} by direct I/O, 8 at once"
        it.measured(f"measured.files.direct_{way}_rate", rate_text(rate), said)
        it.measured(f"storage.disk.{way}_rate", rate_text(rate), said)
        single = times.points(f"direct-{way}", None, lambda at: at["at_once"] == 0)
        if single:
            seconds = max(single[0].seconds - single[0].at["bytes"] / rate, 0.0)
            size = _size_text(single[0].at["bytes"])
            said = f"a {way} of {size} by direct I/O, alone, less its bytes at the full rate"
            it.measured(f"storage.disk.{way}", time_text(seconds), said)


def _point_bytes(point: Any) -> float:
    return float(point.at["bytes"])


def _writers(it: _Numbers, times: Times) -> None:
    own, one, ratio = times.points("own-file"), times.points("one-file"), times.ratio("own-file", "one-file")
    if not own or not one or ratio is None:
        return
    # Rounds in which others take cores hide what the lock of a file costs: own files then take as long as one.
    ranks = int(own[0].at["ranks"])
    writers = max(1, int(ranks * min(1.0, ratio) + 0.5))
    total = ranks * own[0].at["bytes"]
    said = f"{ranks} ranks, own files {rate_text(total / own[0].seconds)}, one file {rate_text(total / one[0].seconds)}"
    said += f"; in a quarter of the rounds, own files took at most {ratio:.2f} of the time of one"
    it.measured("measured.files.writers", writers, said)
    made = times.points("create-together")
    if made:
        said = f"{int(made[0].at['ranks'])} ranks, 128 small files of each, in its own directory"
        it.measured("measured.files.create_together", time_text(made[0].seconds), said)


def _limits(it: _Numbers) -> None:
    """What the system says of itself."""
    ratio = Path("/proc/sys/vm/dirty_ratio")
    percent = int(ratio.read_text()) if ratio.exists() else 0
    mib = percent * available_bytes() // 100 >> 20
    if mib:
        it.measured("storage.cache.limit", f"{mib} MiB", f"vm.dirty_ratio, {percent} % of the memory available")


def profile(series: list[dict[str, Any]], directory: Path, launched: Mapping[str, Any]) -> str:
    """The profile of this machine, as TOML.

    Parameters
    ----------
    series : list
        All that was measured.
    directory : Path
        On the file system that was measured.
    launched : mapping
        ``cores`` and ``ranks_per_node`` of a node, ``nodes``, ``together`` (ranks that exchanged messages), ``wire``
        (what joined them), and ``others``: which part of the cores other programs used meanwhile, if that is known.
    """
    times, it = Times(series), _Numbers()
    host, processor, system, _, file_system = _core.identity(directory)
    cores = launched["cores"]
    it.word("name", re.sub(r"[^a-z0-9]+", "-", host.lower()).strip("-") or "here")
    it.word("description", f"{host}: {processor}, {cores} cores, {system}, {file_system}")
    it.measured("nodes.cores_per_node", cores, "processors that ranks may use")
    it.measured("nodes.ranks_per_node", launched["ranks_per_node"], "most ranks of a node that measured together")
    words = {"host": host, "processor": processor, "system": system, "file_system": file_system}
    for key, value in (words | {"library": hs.__version__, "date": it.how}).items():
        it.word(f"measured.{key}", value)
    _processor(it, times, launched["together"])
    _messages(it, times, launched)
    _agreements(it, times, cores * launched["nodes"])
    _files(it, times)
    _writers(it, times)
    _limits(it)
    for key, kernels in NOISE.items():
        noise = times.noise(*kernels)
        if noise is not None and math.isfinite(noise):
            said = f"half the distance of quartiles over the median, {times.rounds(*kernels)} rounds or more"
            it.measured(f"measured.noise.{key}", round(noise, 4), said)
    others = launched.get("others") or 0.0
    busy = others > BUSY
    said = (
        f"# Other programs used {100 * others:.0f} % of the cores meanwhile: times may be too long.\n" if busy else ""
    )
    return f"{BEGIN} {hs.__version__}; docs/calibrate.md says how.\n{said}\n{it.text()}\n{END}\n"
