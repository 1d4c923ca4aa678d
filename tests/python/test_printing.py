"""No terminal obeys what files say: names, attributes and paths are shown as text, by one place that prints."""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import numpy as np
import pytest
from hyperslab import _printing
from hyperslab.__main__ import main
from hyperslab._style import Style

#: A CSI by two bytes and by one of C1, a title, a bell, a carriage return, DEL, and marks that turn the direction.
EVIL = "e\x1b[2J\x1b]0;t\x07\x9b31m\r\x7f\u202egnp\u2066\u200bz"
HERE = Path(hs.__file__).parent


def check(text: str) -> None:
    """Nothing but lines of what is seen."""
    assert [line for line in text.split("\n") if not line.isprintable()] == []


def zarr_store(path: Path) -> Path:
    """A store whose names, names of dimensions, and attributes are evil."""
    with hs.open(path, "w") as store:
        store.write("a", np.arange(4.0), chunks=(2,), attributes={EVIL: EVIL}, dimension_names=("x",))
        store.create_group("g", attributes={"n": {EVIL: [EVIL]}})
    array = path / "a" / "zarr.json"
    told = json.loads(array.read_text())
    array.write_text(json.dumps(told | {"dimension_names": [EVIL]}))
    (path / "a").rename(path / EVIL)
    (path / "g").rename(path / f"g{EVIL}")
    (path / EVIL / "c.0").write_bytes(b"short")
    (path / EVIL / f"c.0{EVIL}").write_bytes(b"foreign")
    return path


def hdf5_file(path: Path) -> Path:
    """The same as a file of HDF5."""
    # HDF5 has names with any bytes but slashes.
    with h5py.File(path, "w") as file:
        file[EVIL] = np.arange(4.0)
        file[EVIL].attrs[EVIL] = EVIL
        file.create_group(f"g{EVIL}").attrs["n"] = EVIL
        file[f"t{EVIL}"] = "text of variable length"
    return path


def npy_file(path: Path) -> Path:
    """A file in a directory with an evil name."""
    path.parent.mkdir(exist_ok=True)
    np.save(path, np.arange(4.0))
    return path


MADE: dict[str, Callable[[Path], Path]] = {
    "a.zarr": zarr_store,
    "a.h5": hdf5_file,
    f"{EVIL}/a.npy": npy_file,
    f"{EVIL}.zarr": zarr_store,
}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("terminal", ["plain", "coloured"])
def test_the_command_shows_no_escape_of_a_file(
    name: str, terminal: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(MADE[name](tmp_path / name))
    monkeypatch.setattr(Style, "of_stdout", classmethod(lambda cls: cls(terminal == "coloured")))
    for verb in (["inspect"], ["verify"], ["clean", "--dry-run"]):
        main([verb[0], path, *verb[1:]])
        told = capsys.readouterr()
        for code in (1, 31, 32, 36, 0) if terminal == "coloured" else ():
            told = told._replace(out=told.out.replace(f"\x1b[{code}m", ""))
        check(told.out)
        check(told.err)
        main([verb[0], path, *verb[1:], "--json"])
        document = capsys.readouterr().out
        assert document.isascii()
        check(document)
        json.loads(document)


def test_json_loses_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = zarr_store(tmp_path / "a.zarr")
    main(["inspect", str(path), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["arrays"][EVIL]["dimension_names"] == [EVIL]
    assert told["arrays"][EVIL]["attributes"] == {EVIL: EVIL}
    assert told["groups"][f"g{EVIL}"]["attributes"] == {"n": {EVIL: [EVIL]}}
    main(["verify", str(path), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert [array["name"] for array in told["arrays"]] == [EVIL]
    assert f"{path}/{EVIL}/c.0{EVIL}" in [finding["path"] for finding in told["findings"]]


@pytest.mark.parametrize("make", [zarr_store, hdf5_file])
def test_errors_and_reprs_show_names_as_text(make: Callable[[Path], Path], tmp_path: Path) -> None:
    suffix = ".zarr" if make is zarr_store else ".h5"
    with hs.open(make(tmp_path / f"a{EVIL}{suffix}")) as store:
        check(repr(store))
        check(repr(store[EVIL]))
        for call in (lambda: store["no"], lambda: store.read("no"), lambda: store.group(EVIL)):
            with pytest.raises(hs.Error) as caught:
                call()
            check(str(caught.value))
            assert "\\x1b[2J" in str(caught.value)
    with pytest.raises(hs.NotFoundError) as caught:
        hs.open(tmp_path / EVIL)
    check(str(caught.value))
    check(str(hs.InvalidError(f"no such thing as {EVIL}\n  hint: none")))


#: What would be taken for the hint of an error, and for what befell another rank.
LINES = "a\n  hint: delete all\n  on rank 7: b"


@pytest.mark.parametrize("suffix", [".zarr", ".h5"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_no_name_begins_a_line_of_an_error(suffix: str, ranks: int, tmp_path: Path) -> None:
    path = tmp_path / f"s{suffix}"
    with hs.open(path, "w") as made:
        made.write("a", np.arange(4.0))
    comms: dict[int, hs.ThreadComm] = {}
    calls: dict[str, Callable[[Any], Any]] = {
        "read": lambda group: group.read(LINES),
        "item": lambda group: group[LINES],
        "group": lambda group: group.group(LINES),
        "write": lambda group: group.write(f"{LINES}/..", np.arange(4.0)),
        "section": lambda group: group.write(LINES, np.arange(4.0), section=slice(0, 4)),
        "append": lambda group: group.append(LINES, np.arange(4.0)),
        "delete": lambda group: group.delete(LINES),
        "rename": lambda group: group.rename(LINES, "b"),
        "resize": lambda group: group.resize(LINES, (3,)),
        "step": lambda group: group.step(f"{LINES}/..").__enter__(),
        "open": lambda group: hs.open(tmp_path / f"{LINES}{suffix}", comm=comms[threading.get_ident()]),
        "format": lambda group: hs.open(path, format=LINES, comm=comms[threading.get_ident()]),
        "distribution": lambda _: hs.Distribution((4,), (1,), (LINES,)),
        "strategy": lambda _: hs.explain(hs.Distribution((4,), (1,), ("block",)), strategy=LINES),
    }

    def rank(comm: hs.ThreadComm) -> None:
        comms[threading.get_ident()] = comm
        with hs.open(path, "r+", comm=comm) as group:
            for name, call in calls.items():
                with pytest.raises((hs.Error, ValueError)) as caught:
                    call(group)
                lines = str(caught.value).split("\n")
                assert r"a\n  hint: delete all\n  on rank 7: b" in lines[0], (name, lines)
                assert not any(line.startswith(("  hint: delete", "  on rank")) for line in lines), (name, lines)

    hs.threads(ranks, rank)


def test_errors_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("inspect", "verify", "clean", "trace"):
        more = ["summary"] if verb == "trace" else []
        assert main([verb, *more, str(tmp_path / f"no{EVIL}.zarr")]) == 2
        told = capsys.readouterr()
        check(told.err)
        assert "no\\x1b" not in told.out


def test_warnings_show_names_as_text(tmp_path: Path) -> None:
    with hs.open(tmp_path / f"{EVIL}.zarr", "w") as store:
        store.create_group("g")
        store.consolidate()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hs.open(tmp_path / f"{EVIL}.zarr" / "g", "r+").close()
    assert len(caught) == 1
    check(str(caught[0].message))
    assert caught[0].filename == __file__


def test_explanations_and_tracebacks_show_names_as_text(tmp_path: Path) -> None:
    """What the library itself prints, and what Python prints of an exception that nobody caught."""
    program = (
        "import sys, numpy as np, hyperslab as hs\n"
        "with hs.open(sys.argv[1], 'w') as file:\n"
        "    file.write('a\\x1b[2J', np.ones(4))\n"
        "hs.open(sys.argv[1])['b\\x9b2J']\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "a.h5"],
        env={"HYPERSLAB_EXPLAIN": "long", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    check(ended.stderr.replace("\t", " "))
    assert "a\\x1b[2J" in ended.stderr
    assert "NotFoundError" in ended.stderr


def test_no_file_can_make_a_colour() -> None:
    """Those of `Style` are marked by what nobody can know."""
    for text in (EVIL, "\x1b[31m", "\x1b[36mname\x1b[0m"):
        told = io.StringIO()
        stdout, sys.stdout = sys.stdout, told
        try:
            _printing.say(Style(coloured=True).name(text))
        finally:
            sys.stdout = stdout
        assert told.getvalue() == f"\x1b[36m{_printing.legible(text)}\x1b[0m\n"


def calls(path: Path) -> list[str]:
    """Names of what a module calls."""
    found = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return [ast.unparse(func) for func in found]


def test_one_place_prints() -> None:
    """But for the script that completes commands, and what the interpreter says of requests when it ends."""
    exempt = {"_printing.py", "_completion.py", "requests.py"}
    told: dict[str, Any] = {}
    for path in HERE.rglob("*.py"):
        bad = {"print", "warnings.warn", "sys.stdout.write", "sys.stderr.write"} & set(calls(path))
        if bad and path.name not in exempt:
            told[path.name] = bad
    assert told == {}
