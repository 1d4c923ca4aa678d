"""New files that are seen from their first step or flush on: what programs do with them, and what must be there then.

Usage: new_file_cases DIRECTORY RANKS ENDING, on threads. Each case is carried out twice: in `left` the file is never
closed, in `raised` an exception leaves its block. Then the program ends: `kill` by SIGKILL, `exit` as any program.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import netCDF4
import numpy as np
from numpy.typing import NDArray

from mpi_programs.stripes import together

COLUMNS = 5
#: Elements of what was there before.
OLD = np.arange(7.0)
#: What programs do not close.
KEPT: list[Any] = []


class GoneError(Exception):
    """What leaves a block."""


def whole(number: int, rows: int = 12) -> NDArray[np.float64]:
    """An array by its number."""
    return np.arange(float(rows * COLUMNS)).reshape(rows, COLUMNS) + 1000 * number


def given(comm: Any, number: int, rows: int = 12) -> tuple[NDArray[np.float64], hs.Distribution]:
    """What this rank holds of it, and who holds what."""
    dist = hs.Distribution((rows, COLUMNS), (comm.size,), ("cyclic", "*"))
    return np.ascontiguousarray(whole(number, rows)[dist.indices(comm.rank)[0]]), dist


def same(found: Any, number: int, rows: int = 12) -> None:
    """It is this array."""
    assert np.array_equal(np.asarray(found), whole(number, rows)), (number, np.asarray(found))


@dataclass(frozen=True)
class Case:
    """A new file."""

    path: str
    mode: Any
    #: What a program does, of which the last part is not published.
    write: Callable[[Any, Any, Path], None]
    #: What must be there.
    check: Callable[[Path], None]
    options: dict[str, Any] = field(default_factory=dict)
    opens: Callable[..., Any] = hs.open

    def run(self, comm: Any, directory: Path, *, raises: bool) -> None:
        """Carry it out, and leave the file."""
        file = self.opens(self.place(directory), self.mode, comm=comm, **self.options)
        if not raises:
            self.write(file, comm, directory / self.path)
            KEPT.append(file)
            return
        try:
            with file:
                self.write(file, comm, directory / self.path)
                raise GoneError
        except GoneError:
            pass

    def place(self, directory: Path) -> Any:
        """Where it lies."""
        if not self.path.startswith("striped"):
            return directory / self.path
        return hs.Striped([directory / f"disk{number}" for number in range(3)], self.path, unit=100)


def seen(comm: Any, look: Callable[[], None]) -> None:
    """Rank 0 looks, while nobody changes anything."""
    comm.barrier()
    if comm.rank == 0:
        look()
    comm.barrier()


# ---- HDF5 ----------------------------------------------------------------------------------------------------------


def steps(file: Any, comm: Any, path: Path) -> None:
    """Three steps, an array behind them, and one that is never ended."""
    growing: dict[str, Any] = {"chunks": (4, COLUMNS), "compression": "gzip", "maxshape": (None, COLUMNS)}
    file.write("fields/a", *given(comm, 1), attributes={"units": "m"})
    file.write("s", *given(comm, 2), **growing)
    file.create_group("input", attributes={"code": "x"})
    seen(comm, lambda: absent(path))
    for number in range(3):
        with file.step(f"{number:04}", attributes={"time": number}) as step:
            step.write("rho", *given(comm, 10 + number), compression="gzip")
            step.write("in/u", *given(comm, 20 + number))
        seen(comm, lambda number=number: of_steps(path, number + 1, late=False))
    file.write("late", *given(comm, 3))
    file.append("s", *given(comm, 4))
    file["late"].attrs["said"] = "afterwards"
    assert np.array_equal(file.read("fields/a"), whole(1)), "what is there is read"
    step = file.step("open")
    step.write("x", *given(comm, 5))
    KEPT.append(step)


def absent(path: Path) -> None:
    """There is no such file."""
    assert not path.exists()


def of_steps(path: Path, count: int = 3, *, late: bool = True) -> None:
    """What is there of them, as h5py sees it."""
    with h5py.File(path, "r", locking=False) as data:
        same(data["fields/a"], 1)
        assert (data["fields/a"].attrs["units"], data["input"].attrs["code"]) == ("m", "x")
        steps = {f"{number:04}" for number in range(count)}
        assert set(data) == {"fields", "input", "s", *steps} | ({"late"} if late else set()), set(data)
        for number in range(count):
            step = data[f"{number:04}"]
            assert step.attrs["time"] == number
            same(step["rho"], 10 + number)
            same(step["in/u"], 20 + number)
        same(data["s"][:12], 2)
        assert len(data["s"]) == (24 if late else 12)
        if late:
            same(data["late"], 3)
            same(data["s"][12:], 4)
            assert data["late"].attrs["said"] == "afterwards"


def make_old(directory: Path) -> None:
    """Files that are replaced."""
    for name in ("over.h5", "none.h5"):
        with h5py.File(directory / name, "w") as data:
            data["old"] = OLD


def old(path: Path) -> None:
    """It is there as it was."""
    with h5py.File(path, "r", locking=False) as data:
        assert list(data) == ["old"]
        assert np.array_equal(data["old"], OLD)


def over(file: Any, comm: Any, path: Path) -> None:
    """The old one is there until the first step ends."""
    file.write("b", *given(comm, 1))
    with file.step("0") as step:
        step.write("c", *given(comm, 2))
        seen(comm, lambda: old(path))
    seen(comm, lambda: of_over(path))


def of_over(path: Path) -> None:
    """The new one."""
    with h5py.File(path, "r", locking=False) as data:
        assert set(data) == {"b", "0"}
        same(data["b"], 1)
        same(data["0/c"], 2)


def none(file: Any, comm: Any, path: Path) -> None:
    """Nothing is published, also no step that is given up."""
    file.write("b", *given(comm, 1))
    try:
        with file.step("0") as step:
            step.write("c", *given(comm, 2))
            raise GoneError
    except GoneError:
        pass
    seen(comm, lambda: old(path))


def flushed(file: Any, comm: Any, path: Path) -> None:
    """Flushes and changes where it lies; many arrays in one call."""
    file.write({f"a{number}": given(comm, number)[0] for number in range(8)}, given(comm, 0)[1])
    for _ in range(2):
        file.flush()
        seen(comm, lambda: of_flushed(path, changed=False))
    part, dist = given(comm, 9, 4)
    file.write("a7", part, dist, section=slice(2, 6))
    file.rename("a0", "moved")
    file.delete("a1")


def of_flushed(path: Path, *, changed: bool = True) -> None:
    """What is there of them."""
    with h5py.File(path, "r", locking=False) as data:
        names = {f"a{number}" for number in range(8)}
        assert set(data) == (names - {"a0", "a1"} | {"moved"} if changed else names)
        same(data["moved" if changed else "a0"], 0)
        for number in range(2, 7):
            same(data[f"a{number}"], number)
        if changed:
            same(data["a7"][2:6], 9, 4)


# ---- netCDF-4, NetCDF, raw -----------------------------------------------------------------------------------------


def of_dimensions(file: Any, comm: Any, path: Path) -> None:
    """Variables that share dimensions, before and after they are seen, and a step."""
    named: dict[str, Any] = {"dimension_names": ["t", "x"], "compression": "gzip", "chunks": (4, COLUMNS)}
    file.write("a", *given(comm, 1), **named)
    file.flush()
    seen(comm, lambda: of_netcdf4(path, 1))
    file.write("b", *given(comm, 2), **named)
    file.append({"a": given(comm, 3)[0], "b": given(comm, 4)[0]}, given(comm, 3)[1])
    with file.step("0") as step:
        step.write("c", *given(comm, 5), dimension_names=["y", "x"])
    seen(comm, lambda: of_netcdf4(path, 2))
    file.attrs["title"] = "a run"
    file.write("x", np.arange(float(COLUMNS)), hs.Distribution.replicated((COLUMNS,), comm.size), dimension_names=["x"])
    file.flush()
    file.append({"a": given(comm, 6)[0], "b": given(comm, 7)[0]}, given(comm, 6)[1])
    file.write("d", *given(comm, 8), **named)


def of_netcdf4(path: Path, stage: int = 3) -> None:
    """What netCDF4-python and h5py see of them."""
    with h5py.File(path, "r", locking=False) as data:
        assert data["x"].is_scale
        assert "d" not in data
        assert [dimension[0].name for dimension in data["a"].dims if len(dimension)] == ["/t", "/x"]
    with netCDF4.Dataset(path) as data:
        data.set_auto_mask(False)
        rows = 12 if stage == 1 else 24
        assert (data["a"].dimensions, data["a"].shape) == (("t", "x"), (rows, COLUMNS))
        same(data["a"][:12], 1)
        if stage == 1:
            assert set(data.variables) == {"a"}
            return
        same(data["a"][12:], 3)
        same(data["b"][:12], 2)
        same(data["b"][12:], 4)
        same(data["0"]["c"][:], 5)
        assert set(data.variables) == ({"a", "b"} if stage == 2 else {"a", "b", "x"})
        if stage == 3:
            assert (data.title, data["x"][:].tolist()) == ("a run", np.arange(float(COLUMNS)).tolist())


def records(file: Any, comm: Any, path: Path) -> None:
    """A file of records: once it is seen, each append is when it returns."""
    named: dict[str, Any] = {"dimension_names": ["t", "x"]}
    file.write("fixed", *given(comm, 1), dimension_names=["y", "x"])
    file.write("a", *given(comm, 2), **named)
    file.append("a", *given(comm, 3))
    seen(comm, lambda: absent(path))
    file.flush()
    seen(comm, lambda: of_records(path, 24))
    for number in (4, 5):
        file.append("a", *given(comm, number))
        seen(comm, lambda number=number: of_records(path, 12 * (number - 1)))
    assert np.array_equal(file.read("fixed"), whole(1))


def of_records(path: Path, rows: int = 48) -> None:
    """What netCDF4-python sees of it."""
    with netCDF4.Dataset(path) as data:
        data.set_auto_mask(False)
        same(data["fixed"][:], 1)
        assert len(data["a"]) == rows
        for number in range(rows // 12):
            same(data["a"][12 * number : 12 * (number + 1)], 2 + number)


def fixed(file: Any, comm: Any, path: Path) -> None:
    """Fixed arrays come after the file was seen: a copy takes its place."""
    for number, name in enumerate("abcd"):
        file.write(name, *given(comm, number), dimension_names=["y", "x"])
        if number < 2:
            file.flush()
        seen(comm, lambda number=number: of_fixed(path, min(2, number + 1)))


def of_fixed(path: Path, count: int = 2) -> None:
    """What netCDF4-python sees of it."""
    with netCDF4.Dataset(path) as data:
        assert list(data.variables) == list("abcd"[:count])
        for number, name in enumerate(data.variables):
            same(data[name][:], number)


def raw(file: Any, comm: Any, path: Path) -> None:
    """The same of a raw file."""
    for number, name in enumerate("abc"):
        file.write({name: given(comm, number)[0]}, given(comm, number)[1])
        if number < 2:
            file.flush()
        seen(comm, lambda number=number: of_raw(path, min(2, number + 1)))


def of_raw(path: Path, count: int = 2) -> None:
    """Its bytes."""
    striped = path.name.startswith("striped")
    disks = [path.parent / f"disk{number}" for number in range(3)]
    found = together(disks, path.name, 100) if striped else path.read_bytes()
    assert found == b"header  " + b"".join(whole(number).tobytes() for number in range(count))


RAW: dict[str, Any] = {"header": b"header  ", "order": "C"}
CASES = {
    "steps": Case("steps.h5", "a", steps, of_steps),
    "over": Case("over.h5", "w", over, of_over),
    "none": Case("none.h5", "w", none, old),
    "flushed": Case("flushed.h5", "x", flushed, of_flushed),
    "dimensions": Case("dimensions.nc4", "a", of_dimensions, of_netcdf4, {"unlimited": ["t"]}),
    "records": Case("records.nc", "a", records, of_records, {"unlimited": "t"}),
    "fixed": Case("fixed.nc", "x", fixed, of_fixed),
    "raw": Case("a.raw", "w", raw, of_raw, RAW, hs.open_raw),
    "striped": Case("striped.raw", "x", raw, of_raw, RAW, hs.open_raw),
}
WAYS = ("left", "raised")


def prepare(directory: Path) -> None:
    """Make what is there before."""
    for way in WAYS:
        (directory / way).mkdir()
        make_old(directory / way)
        for number in range(3):
            (directory / way / f"disk{number}").mkdir()


def program(comm: Any, directory: Path) -> None:
    """All cases."""
    for case in CASES.values():
        for way in WAYS:
            case.run(comm, directory / way, raises=way == "raised")


def leave(ending: str) -> None:
    """End this process."""
    if ending == "kill":
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    hs.threads(int(sys.argv[2]), lambda comm: program(comm, Path(sys.argv[1])))
    leave(sys.argv[3])
