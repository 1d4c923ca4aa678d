"""Calls with usual arguments take a short way, and give what the long way gives."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest
from hyperslab import _core, _moving, files
from hyperslab._moving import Moving

#: Arguments of openings of a file with a header of 16 bytes, two arrays of 6 float64 and one of 4 int32.
KNOWN = {"a": ((2, 3), "f8"), "b": ((6,), "<f8"), "c": ([4], "i4")}
SHARED = ((6,), np.dtype("f8"))
OPENINGS: dict[str, dict[str, Any]] = {
    "as usual": {"arrays": KNOWN, "header": 16},
    "column-major": {"arrays": KNOWN, "header": 16, "order": "F"},
    "the header as bytes": {"arrays": KNOWN, "header": bytes(16)},
    "for update": {"arrays": KNOWN, "header": 16, "mode": "r+"},
    "types as objects": {"arrays": {"a": SHARED, "b": SHARED, "c": ((4,), np.int32)}, "header": 16},
    "one object for several": {"arrays": dict.fromkeys("ab", ((6,), "float64")) | {"c": ((2, 2), "i4")}, "header": 16},
    "the other byte order": {"arrays": {"a": ((12,), ">f8"), "c": ((4,), ">i4")}, "header": 16},
    "NumPy's types": {"arrays": {"a": SHARED, "b": SHARED, "c": ((4,), np.dtype(">i4"))}, "header": 16},
    "a type of several fields": {"arrays": {"a": ((8,), np.dtype([("x", "f8"), ("y", "f8")]))}},
    "a number of two fields": {
        "arrays": {"a": ((32,), np.dtype((np.int32, {"x": (np.int16, 0), "y": (np.int16, 2)})))}
    },
    "dates": {"arrays": {"a": ((16,), np.dtype("M8[s]"))}},
    "bytes": {"arrays": {"a": ((128,), "u1")}},
    "bytes of each kind": {"arrays": {"a": ((64,), "|u1"), "b": ((32,), np.dtype("i1")), "c": ((32,), "b1")}},
    "bytes in some order": {"arrays": {"a": ((64,), "<u1"), "b": ((64,), ">i1")}},
    "no order of several bytes": {"arrays": {"a": ((16,), "|f8")}},
    "two orders": {"arrays": {"a": ((16,), "<>f8")}},
    "bfloat16": {"arrays": {"a": ((64,), "bfloat16")}},
    "texts as types": {"arrays": {"a": ((14,), "d"), "b": ((4,), "int32")}},
    "extents of NumPy's": {"arrays": {"a": ((np.int64(12),), "f8"), "c": ((4,), "i4")}, "header": np.int64(16)},
    "another mapping": {"arrays": OrderedDict(KNOWN), "header": 16},
    "an extent too much": {"arrays": {"a": ((13,), "f8"), "c": ((4,), "i4")}, "header": 16},
    "a negative extent": {"arrays": {"a": ((-1,), "f8")}},
    "half an extent": {"arrays": {"a": ((1.5,), "f8")}},
    "True as an extent": {"arrays": {"a": ((True,), "f8")}, "header": 120},
    "a negative header": {"arrays": KNOWN, "header": -1},
    "no type": {"arrays": {"a": ((2,), "f7")}},
    "objects": {"arrays": {"a": ((2,), "O")}},
    "no pair": {"arrays": {"a": (2,)}},
    "a list as pair": {"arrays": {"a": [(16,), "f8"]}},
    "a name that is none": {"arrays": {1: ((16,), "f8")}},
    "no arrays": {},
    "another order": {"arrays": KNOWN, "header": 16, "order": "K"},
    "another mode": {"arrays": KNOWN, "header": 16, "mode": "a"},
    "new, with arrays": {"arrays": KNOWN, "mode": "w"},
    "new, with so many bytes": {"header": 3, "mode": "w"},
    "new": {"header": b"123", "mode": "w"},
    "new, but it is there": {"mode": "x"},
    "durable as a number": {"arrays": KNOWN, "header": 16, "durable": 0},
    "not durable": {"arrays": KNOWN, "header": 16, "durable": False},
}
if find_spec("ml_dtypes"):
    # NumPy shows some of these as types of its own.
    packages: Any = import_module("ml_dtypes")
    for code, extent in (("bfloat16", 64), ("float8_e5m2", 128), ("int4", 128)):
        OPENINGS[f"{code} as an object"] = {"arrays": {"a": ((extent,), np.dtype(getattr(packages, code)))}}

#: A path in other words; those of no file are errors.
PATHS: dict[str, Callable[[Path], Any]] = {
    "text": str,
    "as it is": lambda path: path,
    "bytes": os.fsencode,
    "a URL": lambda path: f"file://{path}",
    "another URL": lambda path: f"s3://{path}",
    "a colon": lambda path: path.with_name("a:b.raw"),
    "home": lambda path: f"~{path}",
    "nothing": lambda _: "",
    "a zero byte": lambda path: f"{path}\0",
    "a number": lambda _: 7,
    "not there": lambda path: path.with_name("none.raw"),
}


def long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the short way of opening out: no options are as usual."""
    monkeypatch.setattr(files, "_USUAL", ())


def outcome(directory: Path, name: Callable[[Path], Any], options: Mapping[str, Any]) -> Any:
    """What comes of an opening, in a directory that looks as always."""
    for one in directory.iterdir():
        one.unlink()
    path = directory / "a.raw"
    for place in (path, path.with_name("a:b.raw")):
        place.write_bytes(bytes(16) + np.arange(14.0).tobytes())
    try:
        with hs.open_raw(name(path), comm=None, **options) as file:
            found = file._core.file_arrays()
            said = [
                found,
                file.header,
                {one: file.read(one).tolist() for one in file} if options.get("mode") != "w" else 0,
            ]
    except Exception as error:  # noqa: BLE001 (whatever it is, it must be the same)
        return type(error), str(error)
    return said, path.read_bytes()


@pytest.mark.parametrize("options", OPENINGS.values(), ids=OPENINGS)
def test_openings(options: Mapping[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = outcome(tmp_path, str, options)
    long_way(monkeypatch)
    assert short == outcome(tmp_path, str, options)


@pytest.mark.parametrize("name", PATHS.values(), ids=PATHS)
def test_paths(name: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = outcome(tmp_path, name, OPENINGS["as usual"])
    long_way(monkeypatch)
    assert short == outcome(tmp_path, name, OPENINGS["as usual"])


def test_the_short_way_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where arguments are as usual, and there alone."""
    usual = ("as usual", "for update", "the header as bytes", "new", "NumPy's types", "bytes", "bytes of each kind")
    for name in (*usual, "types as objects", "a type of several fields", "dates", "bfloat16"):
        options = {"mode": "r", "order": "C", "header": b"", "arrays": None, "durable": True, **OPENINGS[name]}
        path = tmp_path / "a.raw"
        path.write_bytes(bytes(16) + np.arange(14.0).tobytes())
        arguments = [options[one] for one in ("mode", "order", "header", "arrays", "durable")]
        target = _core.Target()
        assert target.open_plain(_core.Comm.alone(), path, *arguments) == (name in usual), name
        target.close(None)
    path.write_bytes(bytes(16) + np.arange(14.0).tobytes())
    made: list[bool] = []
    monkeypatch.setattr(files, "place_of", lambda path: made.append(True) or str(path))
    hs.open_raw(path, arrays=KNOWN, header=16, comm=None).close()
    assert not made
    hs.open_raw(path, arrays=KNOWN, header=16, comm=None, servers=1).close()
    assert made


def test_reads_of_several(tmp_path: Path) -> None:
    """Into a mapping, in whatever order it has them; what is named twice, or missing, is an error as always."""
    path = tmp_path / "a.raw"
    path.write_bytes(np.arange(18.0).tobytes())
    dist = hs.Distribution.block((3, 2), 1)
    with hs.open_raw(path, order="C", arrays=dict.fromkeys("abc", ((3, 2), "f8")), comm=None) as file:
        out = {name: np.zeros((3, 2)) for name in "cab"}
        assert file.read(["a", "b", "c"], dist, out=out) is out
        for number, name in enumerate("abc"):
            assert np.array_equal(out[name], 6 * number + np.arange(6.0).reshape(3, 2))
        part = {name: np.zeros((2, 2)) for name in "ba"}
        file.read(("a", "b"), hs.Distribution.block((2, 2), 1), out=part, section=(slice(1, None), slice(None)))
        assert np.array_equal(part["b"], out["b"][1:])
        for names in (["a", "a"], ["a", "none"], ["a", 1]):
            with pytest.raises((hs.Error, KeyError)):
                file.read(names, dist, out={name: np.zeros((3, 2)) for name in "ab"})


@pytest.mark.parametrize("suffix", [".raw", ".nc", ".h5"])
def test_fresh_arrays_are_those_of_the_long_way(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is asked in a wrong way is the same error."""
    kinds = {"a": "f8", "b": "i4", "c": ">i2"}
    arrays = {name: np.arange(6).reshape(3, 2).astype(kind) for name, kind in kinds.items()}
    path = tmp_path / f"a{suffix}"
    if suffix == ".raw":
        with hs.open_raw(path, "w", order="C", comm=None) as new:
            new.write(arrays)
    else:
        with hs.open(path, "w", comm=None) as group:
            group.write(arrays)
    dist, rows = hs.Distribution.block((3, 2), 1), hs.Distribution.block((1, 2), 1)
    asked: list[tuple[Any, Any, Any]] = [
        ("a", dist, None),
        (["c", "a", "b"], dist, None),
        (("b", "c"), rows, (slice(2, 3), slice(None))),
        ("a", rows, (slice(1, 2), slice(None))),
        ("a", rows, None),
        ("none", dist, None),
        (["a", "a"], dist, None),
        (["a", "none"], dist, None),
        (["a", 1], dist, None),
        ([["a"]], dist, None),
        ([], dist, None),
        (1, dist, None),
        ("a", hs.Distribution.block((3,), 1), None),
        ("a", hs.Distribution.block((3, 2), 2), None),
        ("a", dist, slice(5)),
    ]

    def outcomes() -> list[Any]:
        with (
            hs.open_raw(path, order="C", comm=None, arrays={name: ((3, 2), kind) for name, kind in kinds.items()})
            if suffix == ".raw"
            else hs.open(path, comm=None)
        ) as file:
            return [read(file, *one) for one in asked]

    def read(file: Any, name: Any, dist: Any, section: Any) -> Any:
        try:
            found = file.read(name, dist, **({} if section is None else {"section": section}))
        except Exception as error:  # noqa: BLE001 (it is compared)
            return type(error), str(error)
        each = {"": found} if isinstance(name, str) else found
        return [
            (one, array.dtype.str, array.shape, array.flags.c_contiguous, array.tolist()) for one, array in each.items()
        ]

    long: list[Any] = []
    read_long = Moving._read
    monkeypatch.setattr(Moving, "_read", lambda self, *given: long.append(given[0]) or read_long(self, *given))
    short = outcomes()
    # Where this rank cannot tell what to read into, or there are fewer slices than dimensions.
    assert long == [one[0] for one in [*asked[5:12], asked[14]]]
    monkeypatch.setattr(_moving, "read_plainly", lambda *_arguments: None)
    assert short == outcomes()
    assert all(isinstance(one, list) for one in short[:4])
    assert len(long) == 8 + len(asked)


def test_ranks_that_take_different_ways_read_together(tmp_path: Path) -> None:
    """One says what others leave out; and what is not there is the same error on all."""
    path = tmp_path / "a.nc"
    with hs.open(path, "w", comm=None) as new:
        new.write({"a": np.arange(6.0), "b": np.arange(6)})
    dist = hs.Distribution((6,), (2,))

    def part(comm: hs.ThreadComm) -> tuple[list[float], str]:
        options: Any = {"casting": "same_kind"} if comm.rank else {}
        with hs.open(path, comm=comm) as file:
            found = file.read(["b", "a"], dist, **options)
            with pytest.raises(hs.NotFoundError) as error:
                file.read(["a", "none"], dist, **options)
            return [*found["a"], *found["b"]], str(error.value)

    (first, why), (second, why_too) = hs.threads(2, part)
    assert why == why_too
    assert (first, second) == ([0, 1, 2, 0, 1, 2], [3, 4, 5, 3, 4, 5])
