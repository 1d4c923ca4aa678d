"""Doors through which elements change their type: floats on one side, integers of 16 bits on the other.

One process prepares what is there before, and then all ranks of a communicator go through the door together. All of it
lies below the path that they are given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np

SHAPE = (12, 5)
KIND = "i2"
#: What floats become: truncated, and out of range the nearest.
VALUES = {0.0: 0, 1.9: 1, -1.9: -1, 40_000.5: 32_767, -1e9: -32_768, np.inf: 32_767, -np.inf: -32_768, 12.0: 12}
#: Where a NaN may be: with 2 to 4 ranks, not in the part of rank 0.
NAN_AT = (11, 3)

Array = np.ndarray[Any, Any]
Rule = dict[str, Any]
Act = Callable[[Any, Path, Rule, Array], Any]


def floats(*, nan: bool = False) -> Array:
    """All of the values, in the global shape."""
    made = np.resize(list(VALUES), SHAPE)
    if nan:
        made[NAN_AT] = np.nan
    return made


def integers() -> Array:
    """What they become."""
    return np.resize(list(VALUES.values()), SHAPE).astype(KIND)


def spread(comm: Any) -> hs.Distribution:
    return hs.Distribution(SHAPE, (comm.size, 1), ("block", "*"))


def part(comm: Any, whole: Array) -> Array:
    """This rank's part of an array, in memory of its own."""
    return whole[spread(comm).slices(comm.rank)].copy()


@dataclass(frozen=True)
class Door:
    """One way in, or out."""

    #: Makes what is there before; of a way out, these floats.
    prepare: Callable[[Path, Array], None]
    #: Goes through it on all ranks by a rule, or without one. A way in takes the floats; a way out gives what it read.
    act: Act
    #: All of what a way in wrote.
    written: Callable[[Path], Array] | None = None
    #: The array that an error names.
    name: str = "rho"


DOORS: dict[str, Door] = {}

# ---- into stores -----------------------------------------------------------------------------------------------


def _other_array(path: Path, _: Array) -> None:
    with hs.open(path / "run.zarr", "w", comm=None) as store:
        store.write("other", np.ones(3))


def _integers_in_store(path: Path, _: Array) -> None:
    with hs.open(path / "run.zarr", "w", comm=None) as store:
        store.write("rho", np.full(SHAPE, 5, KIND), chunks=(4, 5))


def _rho(path: Path, group: str | None = None) -> Array:
    with hs.open(path / "run.zarr") as root:
        store = root if group is None else root.group(group)
        assert store["rho"].dtype == KIND
        found: Array = store.read("rho")
        return found


def _in_store(call: Callable[[hs.Group, Any, Array, Rule], Any]) -> Act:
    def act(comm: Any, path: Path, rule: Rule, whole: Array) -> None:
        with hs.open(path / "run.zarr", "r+", comm=comm) as store:
            call(store, comm, part(comm, whole), rule)

    return act


def _write(store: hs.Group, comm: Any, mine: Array, rule: Rule) -> None:
    store.write("rho", mine, spread(comm), dtype=KIND, **rule)


def _write_several(store: hs.Group, comm: Any, mine: Array, rule: Rule) -> None:
    zeros = np.zeros_like(mine)
    store.write({"before": zeros, "rho": mine, "after": zeros.astype("f4")}, spread(comm), dtype=KIND, **rule)


def _write_by_servers(store: hs.Group, comm: Any, mine: Array, rule: Rule) -> None:
    mine = np.asfortranarray(mine)
    store.write("rho", mine, spread(comm), dtype=KIND, zstd=1, strategy="server-directed", **rule)


def _write_with_guard(store: hs.Group, comm: Any, mine: Array, rule: Rule) -> None:
    # What lies in the halo does not matter.
    store.write("rho", np.pad(mine, 2, constant_values=np.nan), spread(comm), dtype=KIND, halo=2, **rule)


def _write_boxes(store: hs.Group, comm: Any, mine: Array, rule: Rule) -> None:
    rows = spread(comm).slices(comm.rank)[0]
    boxes = hs.Boxes(SHAPE, [(rows, slice(0, 2)), (rows, slice(2, 5))])
    store.write("rho", [mine[:, :2].copy(), mine[:, 2:].copy()], boxes, dtype=KIND, **rule)


def _iwrite(store: hs.Group, comm: Any, mine: Array, rule: Rule) -> None:
    store.iwrite("rho", mine, spread(comm), dtype=KIND, **rule).wait()


def _iwrite_staged(store: hs.Group, comm: Any, mine: Array, rule: Rule) -> None:
    request = store.iwrite("rho", mine, spread(comm), dtype=KIND, staged=True, **rule)
    mine[...] = 77
    request.wait()


def _step(store: hs.Group, comm: Any, mine: Array, rule: Rule) -> None:
    with store.step("s") as step:
        step.write("rho", mine, spread(comm), dtype=KIND, **rule)


def _section(store: hs.Group, comm: Any, mine: Array, rule: Rule) -> None:
    store.write("rho", mine, spread(comm), section=(slice(0, 12), slice(0, 5)), **rule)


def _append(store: hs.Group, comm: Any, mine: Array, rule: Rule) -> None:
    store.append("rho", mine, spread(comm), **rule)


for _call in (_write, _write_several, _write_by_servers, _write_with_guard, _write_boxes, _iwrite, _iwrite_staged):
    DOORS[_call.__name__[1:]] = Door(_other_array, _in_store(_call), _rho)
DOORS["step"] = Door(_other_array, _in_store(_step), lambda path: _rho(path, "s"))
DOORS["section"] = Door(_integers_in_store, _in_store(_section), _rho)
DOORS["append"] = Door(_integers_in_store, _in_store(_append), lambda path: _rho(path)[SHAPE[0] :])

# ---- into files ------------------------------------------------------------------------------------------------


def _nothing(path: Path, whole: Array) -> None:
    """There is nothing before."""


def _older_raw(path: Path, _: Array) -> None:
    (path / "run.raw").write_bytes(b"head" + np.full(SHAPE, 5, KIND).tobytes())


def _older_npy(path: Path, _: Array) -> None:
    np.save(path / "run.npy", np.zeros(3))


def _raw(path: Path) -> Array:
    return np.fromfile(path / "run.raw", KIND, offset=4).reshape(SHAPE)


def _new_raw(comm: Any, path: Path, rule: Rule, whole: Array) -> None:
    with hs.open_raw(path / "run.raw", "w", comm=comm, order="C", header=b"head") as file:
        file.write({"rho": part(comm, whole)}, spread(comm), dtype=KIND, **rule)


def _new_raw_later(comm: Any, path: Path, rule: Rule, whole: Array) -> None:
    with hs.open_raw(path / "run.raw", "w", comm=comm, order="C", header=b"head") as file:
        file.iwrite({"rho": part(comm, whole)}, spread(comm), dtype=KIND, **rule).wait()


def _raw_in_place(comm: Any, path: Path, rule: Rule, whole: Array) -> None:
    arrays = {"rho": (SHAPE, KIND)}
    with hs.open_raw(path / "run.raw", "r+", comm=comm, order="C", header=4, arrays=arrays) as file:
        file.write({"rho": part(comm, whole)}, spread(comm), section=(slice(0, 12), slice(0, 5)), **rule)


def _npy(comm: Any, path: Path, rule: Rule, whole: Array) -> None:
    hs.save_npy(path / "run.npy", part(comm, whole), spread(comm), comm=comm, dtype=KIND, **rule)


DOORS["new_raw"] = Door(_older_raw, _new_raw, _raw)
DOORS["new_raw_later"] = Door(_nothing, _new_raw_later, _raw)
DOORS["raw_in_place"] = Door(_older_raw, _raw_in_place, _raw)
DOORS["npy"] = Door(_older_npy, _npy, lambda path: np.load(path / "run.npy"), name="array")

# ---- out -------------------------------------------------------------------------------------------------------


def _floats_in_store(path: Path, whole: Array) -> None:
    with hs.open(path / "run.zarr", "w", comm=None) as store:
        store.write({"other": np.zeros(SHAPE), "rho": whole}, chunks=(4, 5))


def _floats_in_files(path: Path, whole: Array) -> None:
    (path / "run.raw").write_bytes(b"head" + whole.tobytes())
    np.save(path / "run.npy", whole)


def _of_store(call: Callable[[hs.Group, Any, Rule], Any], **options: Any) -> Act:
    def act(comm: Any, path: Path, rule: Rule, _: Array) -> Any:
        with hs.open(path / "run.zarr", comm=comm, **options) as store:
            return call(store, comm, rule)

    return act


def _out(comm: Any) -> Array:
    return spread(comm).empty(comm.rank, KIND)


def _read_several(store: hs.Group, comm: Any, rule: Rule) -> Any:
    found = store.read(["other", "rho"], spread(comm), dtype=KIND, **rule)
    assert not found["other"].any()
    return found["rho"]


def _read_part(store: hs.Group, comm: Any, rule: Rule) -> Any:
    whole = (slice(0, 12), slice(0, 5))
    return store.read("rho", spread(comm), section=whole, out=np.asfortranarray(_out(comm)), **rule)


_READS: dict[str, Callable[[hs.Group, Any, Rule], Any]] = {
    "read": lambda store, comm, rule: store.read("rho", spread(comm), dtype=KIND, **rule),
    "read_out": lambda store, comm, rule: store.read("rho", spread(comm), out=_out(comm), **rule),
    "read_part": _read_part,
    "read_several": _read_several,
    "iread": lambda store, comm, rule: store.iread("rho", spread(comm), dtype=KIND, **rule).wait(),
}
for _name, _read in _READS.items():
    DOORS[_name] = Door(_floats_in_store, _of_store(_read))
for _strategy in ("root-gather", "independent", "two-phase", "server-directed"):
    DOORS[f"read_by_{_strategy}"] = Door(_floats_in_store, _of_store(_READS["read"], strategy=_strategy))


def _read_raw(comm: Any, path: Path, rule: Rule, _: Array) -> Any:
    with hs.open_raw(path / "run.raw", comm=comm, order="C", header=4, arrays={"rho": (SHAPE, "f8")}) as file:
        return file.read("rho", spread(comm), dtype=KIND, **rule)


def _iread_raw(comm: Any, path: Path, rule: Rule, _: Array) -> Any:
    with hs.open_raw(path / "run.raw", comm=comm, order="C", header=4, arrays={"rho": (SHAPE, "f8")}) as file:
        return file.iread("rho", spread(comm), out=_out(comm), **rule).wait()


DOORS["read_raw"] = Door(_floats_in_files, _read_raw)
DOORS["iread_raw"] = Door(_floats_in_files, _iread_raw)
DOORS["load_npy"] = Door(
    _floats_in_files,
    lambda comm, path, rule, _: hs.load_npy(path / "run.npy", spread(comm), comm=comm, dtype=KIND, **rule),
    name="array",
)
DOORS["load_npy_out"] = Door(
    _floats_in_files,
    lambda comm, path, rule, _: hs.load_npy(path / "run.npy", spread(comm), comm=comm, out=_out(comm), **rule),
    name="array",
)
