"""Thakur, Gropp, Lusk 1996: dumps of an astrophysics code by two-phase I/O on the IBM SP and the Intel Paragon.

The program restarts from a file and dumps its arrays, which are spread in blocks over a mesh of three dimensions, for
analysis, for restarts and for pictures. All of it is one rehearsal for each machine and size: opens, headers,
redistributions, seeks, reads, writes and closes are those of the paper. Counts of opens, closes, reads and writes are
the program's; those of seeks and of messages follow formulas that were fitted to the paper's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hyperslab.reproduce._study import Figure, Item, Runner, check_absolute, check_true
from hyperslab.reproduce._thakur96_program import (
    CASES,
    HEADER_BYTES,
    LARGE,
    MB,
    NAMES,
    OPERATIONS,
    PARAGON,
    SMALL,
    SP,
    Case,
    Run,
    program,
)

TITLE = "Jeans application on the IBM SP and the Intel Paragon (Thakur, Gropp, Lusk 1996)"

TOLERANCE = 0.15

#: Tables 2, 5, 7, 10: the number of the table, and by operation calls and seconds a processor.
CALLS: Mapping[tuple[str, str], tuple[str, Mapping[str, tuple[int, float]]]] = {
    (SP, "small"): (
        "T2",
        {
            "open": (200, 3.919),
            "close": (200, 0.2116),
            "read": (49, 0.500),
            "write": (536, 6.584),
            "seek": (1225, 0.0065),
            "communication": (5608, 10.42),
        },
    ),
    (SP, "large"): (
        "T5",
        {
            "open": (448, 5.601),
            "close": (448, 0.421),
            "read": (385, 5.664),
            "write": (1030, 23.95),
            "seek": (3235, 0.00216),
            "communication": (109888, 33.47),
        },
    ),
    (PARAGON, "small"): (
        "T7",
        {
            "open": (200, 11.29),
            "close": (200, 0.948),
            "read": (49, 0.839),
            "write": (536, 12.15),
            "seek": (1225, 0.867),
            "communication": (5608, 8.771),
        },
    ),
    (PARAGON, "large"): (
        "T10",
        {
            "open": (448, 6.289),
            "close": (448, 0.573),
            "read": (385, 5.714),
            "write": (1030, 22.33),
            "seek": (3235, 1.078),
            "communication": (109888, 15.94),
        },
    ),
}

#: Tables 3, 6, 8, 11: calls of 24 B, 128 KB and 512 KB, then MB, by case and direction; MB/s by machine besides.
SIZES: Mapping[tuple[str, str], tuple[int, int, int, int]] = {
    ("small", "read"): (1, 0, 48, 24),
    ("small", "write"): (24, 128, 384, 208),
    ("large", "read"): (1, 0, 384, 192),
    ("large", "write"): (6, 256, 768, 416),
}
RATES: Mapping[tuple[str, str], tuple[str, Mapping[str, float]]] = {
    (SP, "small"): ("T3", {"read": 48.00, "write": 31.59}),
    (SP, "large"): ("T6", {"read": 33.90, "write": 17.37}),
    (PARAGON, "small"): ("T8", {"read": 28.61, "write": 17.12}),
    (PARAGON, "large"): ("T11", {"read": 33.60, "write": 18.63}),
}

WAITS = (
    "The paper's communication is 9 to 20 ms for each call, most of which carry nothing if the fitted formula of their "
    "count holds: far more than start-ups and bytes cost here, where the exchange itself takes 1 to 2.5 s a "
    "processor and waiting for others the rest. What else those calls waited for is not in the paper; perhaps for "
    "processors that were still writing."
)
REASONS = {"communication": WAITS}


def _runs(runner: Runner) -> dict[tuple[str, str], Run]:
    return {
        (machine, case.name): Run(machine, case, runner.simulate(machine, program(case), clients=case.ranks))
        for machine in (SP, PARAGON)
        for case in CASES
    }


def _within(expected: float, found: float) -> bool:
    return abs(found / expected - 1) <= TOLERANCE


def _counts(run: Run) -> Iterator[Item]:
    """A table of operations: counts are exact, times within the tolerance."""
    table, rows = CALLS[run.machine, run.case.name]
    where = f"{NAMES[run.machine]}, {run.case.name}"
    for operation, (count, seconds) in rows.items():
        statement = f"{operation}s" if operation in OPERATIONS else "communication calls"
        yield check_true(
            table,
            f"{where}: number of {statement}",
            str(count),
            str(run.count(operation)),
            run.count(operation) == count,
            _origin_of_count(run, operation),
            (run.count(operation),),
            "exact",
        )
        reason = REASONS.get(operation, "")
        yield check_absolute(
            table, f"{where}: {operation}, per processor", seconds, run.each(operation), TOLERANCE, "s", reason
        )


def _origin_of_count(run: Run, operation: str) -> str:
    if operation == "communication":
        pieces = run.report["messages"]
        return (
            f"{pieces} messages with data come from the program; the others, P - 1 for each array and processor, and P "
            "for the header, are a formula of ours"
        )
    if operation == "seek":
        return "which processor seeks when is a formula of ours: the paper does not say it"
    return ""


def _requests(run: Run) -> Iterator[Item]:
    """A table of sizes and bandwidths."""
    table, rates = RATES[run.machine, run.case.name]
    where = f"{NAMES[run.machine]}, {run.case.name}"
    for operation, rate in rates.items():
        expected, found = SIZES[run.case.name, operation], run.sizes(operation)
        yield check_true(
            table,
            f"{where}: {operation}s of 24 B, 128 KB, 512 KB; MB in all",
            _listed(expected),
            _listed(found),
            found == expected,
            "",
            found,
            "exact",
        )
        yield check_absolute(table, f"{where}: {operation} bandwidth", rate, run.rate(operation), TOLERANCE, "MB/s")


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.4g}" for value in values)


def _ratios(
    number: str, statement: str, expected: Sequence[float], found: Sequence[float], order: str, holds: Sequence[bool]
) -> Item:
    """Several ratios or rates of one item within the tolerance, and an order that must hold."""
    worst = max((a / b - 1 for a, b in zip(found, expected, strict=True)), key=abs)
    within = all(holds) and all(_within(b, a) for a, b in zip(found, expected, strict=True))
    verdict = f"{_listed(found)}; {order}: {'yes' if all(holds) else 'no'}"
    return Item(
        number, statement, _listed(expected), verdict, worst, within, f"{100 * TOLERANCE:g} %", "", tuple(found)
    )


def _with_reason(item: Item, reason: str) -> Item:
    return Item(**{**vars(item), "reason": reason})


def _checklist(runs: Mapping[tuple[str, str], Run]) -> Iterator[Item]:
    sp, sp_large = runs[SP, "small"], runs[SP, "large"]
    paragon, paragon_large = runs[PARAGON, "small"], runs[PARAGON, "large"]
    best = [_best(runs, kind) for kind in ("read", "write")]
    yield _ratios(
        "1",
        "best read and write bandwidth, both on the SP, small (abstract) [MB/s]",
        (48.0, 31.6),
        [run.rate(kind) for run, kind in zip(best, ("read", "write"), strict=True)],
        "both on the SP, small",
        [run is sp for run in best],
    )
    yield _ratios(
        "2",
        "SP, large: read and write bandwidth, below the small case (section 5) [MB/s]",
        (33.9, 17.4),
        [sp_large.rate("read"), sp_large.rate("write")],
        "below",
        [sp_large.rate(kind) < sp.rate(kind) for kind in ("read", "write")],
    )
    yield _ratios(
        "3",
        "small: times of opens, bandwidth of reads and writes, Paragon over SP; all is slower there (section 6)",
        (2.88, 0.596, 0.542),
        [paragon.each("open") / sp.each("open"), *(paragon.rate(k) / sp.rate(k) for k in ("read", "write"))],
        "all slower",
        [paragon.each(operation) > sp.each(operation) for operation in OPERATIONS],
    )
    communication = [
        a.each("communication") / b.each("communication") for a, b in ((sp, paragon), (sp_large, paragon_large))
    ]
    yield _with_reason(
        _ratios(
            "4",
            "communication, SP over Paragon, small and large: faster on the Paragon (section 6)",
            (10.42 / 8.771, 33.47 / 15.94),
            communication,
            "faster on the Paragon",
            [ratio > 1 for ratio in communication],
        ),
        WAITS,
    )
    yield _large(sp_large, paragon_large)
    yield check_true(
        "6",
        "SP better in the small case, Paragon in the large one (sections 6, 7)",
        "read and write bandwidth fall on the SP, rise on the Paragon",
        ", ".join(f"{NAMES[b.machine]} {k} x{b.rate(k) / a.rate(k):.2f}" for a, b, k in _growth(runs)),
        all((b.rate(k) < a.rate(k)) == (b.machine == SP) for a, b, k in _growth(runs)),
        "",
        [b.rate(k) / a.rate(k) for a, b, k in _growth(runs)],
    )
    costs = {operation: sp.each(operation) for operation in (*OPERATIONS, "communication")}
    yield check_true(
        "7",
        "SP, small: communication costs more than writes; opens more than reads, closes or seeks (section 5)",
        "communication 10.42 s > write 6.58 s; open 3.92 s > read, close, seek",
        "; ".join(f"{operation} {seconds:.3g} s" for operation, seconds in costs.items()),
        costs["communication"] > costs["write"] and costs["open"] > max(costs[k] for k in ("read", "close", "seek")),
        WAITS,
        list(costs.values()),
    )
    seeks = {name: (runs[name, "small"].each("seek"), runs[name, "large"].each("seek")) for name in (SP, PARAGON)}
    yield check_true(
        "8",
        "seeks cost nothing on the SP, but 0.867 and 1.078 s a processor on the Paragon (tables)",
        "below 0.01 s; 0.867 and 1.078 s, 15 %",
        "; ".join(f"{NAMES[name]} {_listed(each)} s" for name, each in seeks.items()),
        max(seeks[SP]) < 0.01 and _within(0.867, seeks[PARAGON][0]) and _within(1.078, seeks[PARAGON][1]),
        "",
        [*seeks[SP], *seeks[PARAGON]],
    )
    sizes = [set(run.calls(kind)["sizes"]) for kind in ("read", "write") for run in (sp, sp_large)]
    yield check_true(
        "9",
        "requests are of the same sizes in both cases (section 5)",
        "the same",
        "; ".join(", ".join(sorted(each, key=int)) + " B" for each in sizes),
        sizes[0] == sizes[1] and sizes[2] == sizes[3],
        "",
        (),
        "exact",
    )


def _best(runs: Mapping[tuple[str, str], Run], kind: str) -> Run:
    return max(runs.values(), key=lambda run: run.rate(kind))


def _growth(runs: Mapping[tuple[str, str], Run]) -> list[tuple[Run, Run, str]]:
    """The small and the large case of each machine, by kind of call."""
    return [
        (runs[machine, "small"], runs[machine, "large"], kind)
        for machine in (SP, PARAGON)
        for kind in ("read", "write")
    ]


def _large(sp: Run, paragon: Run) -> Item:
    """Whether the large case costs about the same on both machines; "comparable" is taken as within a factor of 1.5."""
    ratios = {operation: paragon.each(operation) / sp.each(operation) for operation in OPERATIONS}
    alike = all(1 / 1.5 < ratios[operation] < 1.5 for operation in ("open", "close", "read", "write"))
    return check_true(
        "5",
        "large: most operations take comparable time, writes slightly less on the Paragon, seeks much more (section 6)",
        "Paragon over SP: open 1.12, close 1.36, read 1.01, write 0.932, seek 500",
        ", ".join(f"{operation} {ratio:.3g}" for operation, ratio in ratios.items()),
        alike and 0.8 < ratios["write"] < 1 and ratios["seek"] > 10,
        "",
        list(ratios.values()),
    )


def _files(case: Case, table: str) -> Item:
    """Sizes of files, by arithmetic from the program."""
    analysis = HEADER_BYTES + 6 * 4 * case.points
    picture = HEADER_BYTES + case.points
    expected = (24, 1) if case is SMALL else (192, 8)
    found = (round(analysis / MB, 2), round(picture / MB, 2))
    return check_true(
        table,
        f"{case.name}: MB of an analysis or restart file, and of a visualization file (arithmetic)",
        _listed(expected),
        _listed(found),
        found == expected,
        "",
        found,
        "exact",
    )


def items(runner: Runner) -> Iterator[Item]:
    """Tables 1 to 11, then the checklist of the note."""
    runs = _runs(runner)
    yield _files(SMALL, "T1")
    yield from _counts(runs[SP, "small"])
    yield from _requests(runs[SP, "small"])
    yield _files(LARGE, "T4")
    yield from _counts(runs[SP, "large"])
    yield from _requests(runs[SP, "large"])
    for case in CASES:
        yield from _counts(runs[PARAGON, case.name])
        yield from _requests(runs[PARAGON, case.name])
    yield from _checklist(runs)


def figures(runner: Runner) -> list[Figure]:
    """Bandwidths of Tables 3, 6, 8 and 11; the paper has no figures."""
    runs = _runs(runner)
    series = {
        NAMES[machine]: [
            (f"{case.name}, {kind}", runs[machine, case.name].rate(kind))
            for case in CASES
            for kind in ("read", "write")
        ]
        for machine in (SP, PARAGON)
    }
    title = "Bandwidth of reads and writes of a Jeans run"
    return [Figure("thakur96-tables-3-6-8-11", title, "case", "MB/s (2^20 B)", series, bars=True)]


def notes() -> list[str]:
    """What to know about this study."""
    return [
        "The meshes of processors, 2 x 2 x 2 and 4 x 4 x 4, are not in the paper; its count of communication fits.",
        "Tables 9 and 12 repeat the averages and bandwidths of the others. Close on the SP, small: the printed average "
        "(0.217 s) is not the printed total over 8 (0.2116 s), which is used.",
        "All open and close a file together. On the Paragon that is what gopen is for (section 4.2), on the SP it is "
        "assumed. Ranks seek before the redistribution, not after, which changes no count.",
        "Opens, closes and seeks have two constants each, fitted to the times of the two cases, but for seeks on the "
        "SP, which have one. Bandwidths of a machine are four numbers, to which four constants of its servers (SP) or "
        "three of its disks (Paragon) were fitted. Sizes, and counts of opens, closes, reads and writes, are the "
        "program's. The eight counts of seeks and of communication calls follow formulas that were fitted to them.",
        "Communication is all that transfers take beside calls, and waiting for each other, as with receives that "
        "block.",
    ]
