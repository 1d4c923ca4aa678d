"""Sensitivity in Kotz 1997, section 6.1: numbers of processors and disks, sizes of files and records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from hyperslab.reproduce._kotz97_cases import BLOCK, METHODS, Case, Starfish
from hyperslab.reproduce._study import Figure, Item, check_true

RANDOM, CONTIGUOUS = "random-blocks", "contiguous"
_PATTERNS = ("ra", "rn", "rb", "rc")
_COUNTS = (1, 2, 4, 8, 16)
_DISKS = (*_COUNTS, 32)
_RECORDS = (8, 1024, 4096, BLOCK)
#: Rates that differ by less than this are one.
_SAME = 0.03


def sweep_items(starfish: Starfish) -> Iterator[Item]:
    """Items 19 to 26."""
    sweeps = _Sweeps(starfish)
    yield sweeps.compute_processors()
    yield sweeps.permutation()
    yield from sweeps.io_processors()
    yield sweeps.disks()
    yield sweeps.file_size()
    yield sweeps.record_size()
    yield sweeps.random_tracks()


def sweep_figures(starfish: Starfish) -> list[Figure]:
    """Figures 8 to 15."""
    sweeps = _Sweeps(starfish)
    both = ("ddio", "spfs")
    return [
        sweeps.figure(8, "number of CPs", "cps", _COUNTS, ("ra", "rb", "rc"), both),
        sweeps.figure(9, "number of CPs", "cps", _COUNTS, _PATTERNS, ("2pio", "spfs")),
        sweeps.figure(10, "number of IOPs", "iops", _COUNTS, _PATTERNS, both),
        sweeps.figure(11, "number of disks of one IOP", "disks", _DISKS, _PATTERNS, both, Case("rn", "ddio", iops=1)),
        sweeps.figure(
            12,
            "number of disks of one IOP",
            "disks",
            _DISKS,
            _PATTERNS,
            both,
            Case("rn", "ddio", iops=1, layout=RANDOM),
        ),
        sweeps.figure(13, "size of the file [MB]", "mib", sweeps.sizes, _PATTERNS, both),
        sweeps.figure(
            14, "size of the file [MB]", "mib", sweeps.sizes, _PATTERNS, both, Case("rn", "ddio", layout=RANDOM)
        ),
        sweeps.records_figure(),
    ]


def _flat(rates: Sequence[float]) -> bool:
    return max(rates) <= (1 + _SAME) * min(rates)


def _listed(rates: Sequence[float]) -> str:
    return " ".join(f"{rate:.3g}" for rate in rates)


class _Sweeps:
    def __init__(self, starfish: Starfish) -> None:
        self.starfish = starfish
        self.sizes = (10, 100) if starfish.runner.quick else (10, 100, 1000)

    def along(
        self, name: str, values: Sequence[int], pattern: str, method: str, base: Case | None = None
    ) -> list[float]:
        """Rates for these values of a field of a case [MB/s]."""
        case = replace(base or Case("rn", "ddio"), pattern=pattern, method=method)
        fields: list[dict[str, Any]] = [{name: value} for value in values]
        cases = [replace(case, **field) for field in fields]
        return self.starfish.rates(each for each in cases if self.starfish.keeps(each))

    def compute_processors(self) -> Item:
        rc = self.along("cps", _COUNTS, "rc", "spfs")
        others = [
            self.along("cps", _COUNTS, pattern, method)
            for pattern, method in (("ra", "spfs"), ("rb", "spfs"), ("ra", "ddio"), ("rb", "ddio"), ("rc", "ddio"))
        ]
        widest = max(max(rates) / min(rates) for rates in others)
        most_flat = sum(map(_flat, others)) >= len(others) - 1
        return check_true(
            "19",
            "fewer CPs: SPFS drops for rc, most other cases of SPFS and DDIO are unaffected (section 6.1, figure 8)",
            "rc drops",
            f"SPFS rc {_listed(rc)} MB/s with 1 2 4 8 16 CPs; others vary by {100 * (widest - 1):.2g} % at most",
            all(a < b for a, b in pairwise(rc)) and most_flat and rc[-1] / rc[0] > widest,
            "SPFS rb alone varies: see item 20",
            values=(*rc, widest),
        )

    def permutation(self) -> Item:
        found = {pattern: self.along("cps", _COUNTS, pattern, "2pio") for pattern in ("rb", "rn", "rc", "ra")}
        rises = all(found[pattern][-1] > found[pattern][1] for pattern in ("rn", "rc"))
        one_fast = all(found[pattern][0] > (1 - _SAME) * found[pattern][1] for pattern in ("rn", "rc"))
        falls = all(a >= b for a, b in pairwise(found["ra"]))
        told = "; ".join(f"{pattern} {_listed(rates)}" for pattern, rates in found.items())
        return check_true(
            "20",
            "2PIO with more CPs: rb flat, rn and rc rise, save that one CP is fast, ra falls (section 6.1, figure 9)",
            "flat; rise; falls",
            f"MB/s with 1 2 4 8 16 CPs: {told}",
            max(found["rb"]) < 1.1 * min(found["rb"]) and rises and one_fast and falls,
            "rb, for which nothing is permuted, is that of SPFS: in some trials with 2 to 8 CPs, disks lose turns and "
            "move their arms between the parts of several CPs",
            values=[rate for rates in found.values() for rate in rates],
        )

    def _share(self, case: Case, what: str) -> float:
        """Of the time, how much the busiest thing of a kind is at work."""
        busiest = self.starfish.report(case)["busiest"]
        return max(float(busy["share"]) for busy in busiest if busy["name"].startswith(what))

    def io_processors(self) -> Iterator[Item]:
        spfs = self.along("iops", _COUNTS, "rn", "spfs")
        buses = [self._share(Case("rn", "spfs", iops=iops), "bus") for iops in (1, 2)]
        disks = [self._share(Case("rn", "spfs", iops=iops), "disk") for iops in (4, 8, 16)]
        near = all(abs(rate / limit - 1) <= 0.1 for rate, limit in zip(spfs, (10, 20), strict=False))
        lost = spfs[2] < 0.9 * spfs[4] < spfs[3]
        yield check_true(
            "21",
            "fewer IOPs, 16 disks: buses limit at 1-2, disks at 4-16, loss from 4 disks a bus on (6.1, figure 10)",
            "10 and 20 MB/s at 1 and 2 IOPs",
            f"SPFS rn {_listed(spfs)} MB/s with 1 2 4 8 16 IOPs; buses busy {_percent(buses)} with 1 2, disks "
            f"{_percent(disks)} with 4 8 16",
            near and min(buses) > 0.9 and min(disks) > 0.9 and lost,
            "the right things limit, but transactions take a fifth of the bus: if SPFS came to 10 MB/s, it could not "
            "be 13 % faster for want of one transaction in three (item 22)",
            spfs,
            "10 %",
        )
        gains = []
        for pattern in ("rn", "rc"):
            fast, slow = self.starfish.rates(Case(pattern, method, iops=2) for method in ("spfs", "ddio"))
            gains.append(100 * (fast / slow - 1))
        yield check_true(
            "22",
            "2 IOPs: SPFS faster than DDIO for rn and rc, for DDIO's third transaction (section 6.1, footnote 3)",
            "13 %",
            f"rn {gains[0]:.3g} %, rc {gains[1]:.3g} %",
            all(abs(gain - 13) <= 5 for gain in gains),
            values=gains,
            tolerance="5 points",
        )

    def disks(self) -> Item:
        base = Case("rn", "ddio", iops=1)
        found = {pattern: self.along("disks", _DISKS, pattern, "spfs", base) for pattern in _PATTERNS}
        ddio = self.along("disks", _DISKS, "rn", "ddio", base)
        limit = 2.11
        scaled = all(abs(rate / (count * limit) - 1) <= 0.1 for count, rate in zip((1, 2, 4), ddio, strict=False))
        poor = all(min(found[pattern][-2:]) < 0.9 * found["rn"][-1] for pattern in ("ra", "rb"))
        told = "; ".join(f"{pattern} {_listed(rates)}" for pattern, rates in found.items())
        return check_true(
            "23",
            "more disks on one IOP: disks limit for 1-4, the bus of 10 MB/s for 8-32; SPFS poor on rb and ra (6.1)",
            "scales; rb, ra poor",
            f"MB/s with 1 2 4 8 16 32 disks: DDIO rn {_listed(ddio)}; SPFS {told}",
            scaled and abs(ddio[-1] / 10 - 1) <= 0.1 and poor,
            "transactions, as item 22 has them, take a fifth of the bus and more; ra keeps the IOP's processor busy "
            "here too, but the 1280 requests of rb need less than a tenth of its time",
            [*ddio, *(rate for rates in found.values() for rate in rates)],
            "10 %",
        )

    def file_size(self) -> Item:
        rates: dict[tuple[str, str, str], list[float]] = {}
        for layout in (CONTIGUOUS, RANDOM):
            for pattern in ("rn", "rb") if self.starfish.runner.quick else _PATTERNS:
                for method in ("spfs", "ddio"):
                    base = Case(pattern, method, layout=layout)
                    rates[layout, pattern, method] = self.along("mib", self.sizes, pattern, method, base)
        best = max(rate for each in rates.values() for rate in each)
        most = [max(each[size] for each in rates.values() if len(each) > size) for size in range(len(self.sizes))]
        return Item(
            "24",
            "files of 10, 100, 1000 MB: maxima from 100 MB on, order unchanged (section 6.1, figures 13, 14)",
            "33.5 MB/s",
            f"best {_listed(most)} MB/s with {' '.join(map(str, self.sizes))} MB, order "
            f"{'unchanged' if _one_order(list(rates.values())) else 'changed'}",
            best / 33.5 - 1,
            abs(best / 33.5 - 1) <= 0.02 and most[1] > 0.98 * best and _one_order(list(rates.values())),
            "2 %",
            values=(best, *most),
        )

    def record_size(self) -> Item:
        found = {}
        for layout in (CONTIGUOUS, RANDOM):
            found[layout] = self.along("record", _RECORDS, "rc", "spfs", Case("rc", "spfs", layout=layout))
        rises = all(a <= (1 + _SAME) * b for rates in found.values() for a, b in pairwise(rates))
        disk = self._share(Case("rc", "spfs", layout=RANDOM), "disk")
        told = "; ".join(f"{layout} {_listed(rates)}" for layout, rates in found.items())
        return check_true(
            "25",
            "SPFS rc with records of 8, 1024, 4096, 8192 B: from overhead to disks (section 6.1, figure 15; section 5)",
            "rises",
            f"MB/s: {told}; disk busy {100 * disk:.0f} % at 8192 B, random",
            rises and all(rates[0] < 0.9 * rates[-1] for rates in found.values()) and disk > 0.9,
            values=[rate for rates in found.values() for rate in rates],
        )

    def random_tracks(self) -> Item:
        found, between = [], True
        for pattern in ("ra", "rn", "rb", "rc", "wb", "wc"):
            for method in METHODS:
                layouts = (RANDOM, "random-tracks", CONTIGUOUS)
                low, middle, high = self.starfish.rates(Case(pattern, method, layout=layout) for layout in layouts)
                between &= low < middle < high
                found.append(middle)
        return check_true(
            "26",
            "random tracks lie between random blocks and contiguous files (section 5)",
            "between",
            f"{min(found):.3g} to {max(found):.3g} MB/s, {'all' if between else 'not all'} between",
            between,
            values=found,
        )

    def figure(
        self,
        number: int,
        label: str,
        name: str,
        values: Sequence[int],
        patterns: Sequence[str],
        methods: Sequence[str],
        base: Case | None = None,
    ) -> Figure:
        """Rates along a field of a case."""
        series = {}
        for pattern in patterns:
            for method in methods:
                rates = self.along(name, values, pattern, method, base)
                series[f"{METHODS[method].removesuffix(' sort')} {pattern}"] = list(zip(values, rates, strict=False))
        title = f"{label[0].upper()}{label[1:]}, {(base or Case('rn', 'ddio')).layout} layout, records of 8192 B"
        return Figure(f"kotz97-figure-{number}", title, label, "throughput [MB/s]", series)

    def records_figure(self) -> Figure:
        series = {}
        for layout in (CONTIGUOUS, RANDOM):
            cases = [Case("rc", "spfs", record, layout) for record in _RECORDS]
            series[layout] = [(case.record, self.starfish.rate(case)) for case in cases if self.starfish.keeps(case)]
        title = "SPFS, rc, by size of records"
        return Figure("kotz97-figure-15", title, "size of records [B]", "throughput [MB/s]", series)


def _percent(shares: Sequence[float]) -> str:
    return " ".join(f"{100 * share:.0f}" for share in shares) + " %"


def _one_order(cases: Sequence[Sequence[float]]) -> bool:
    """Whether any two cases that differ clearly at two places do so in the same order at both."""
    clear = 1.05
    for a in cases:
        for b in cases:
            pairs = list(zip(a, b, strict=False))
            if any(x > clear * y for x, y in pairs) and any(y > clear * x for x, y in pairs):
                return False
    return True
