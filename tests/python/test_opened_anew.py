"""What is open for reading is used in other processes: pickled, or in forked children."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import numpy as np
import pytest

ENDS = ("zarr", "h5", "nc", "nc4")
VALUES = np.arange(12.0).reshape(3, 4)


def made(folder: Path, end: str) -> Path:
    path = folder / f"a.{end}"
    options: dict[str, Any] = {"format": "netcdf4"} if end == "nc4" else {}
    with hs.open(path, "w", **options) as file:
        file.write("rho", VALUES, attributes={"units": "kg"})
        if end != "nc":
            with file.step("s1") as step:
                step.write("u", VALUES + 1)
    return path


def last_row(array: hs.Array) -> list[float]:
    return array[-1].tolist()


def of_group(group: hs.Group) -> list[float]:
    return [*group["u"][0].tolist(), group.read("u").sum()]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_workers_read_what_is_open(end: str, way: str, tmp_path: Path) -> None:
    path = made(tmp_path, end)
    with hs.open(path) as file, ProcessPoolExecutor(2, multiprocessing.get_context(way)) as workers:
        found = workers.submit(last_row, file["rho"]).result(60)
        assert found == VALUES[-1].tolist()
        if end != "nc":
            group = file.group("s1")
            assert workers.submit(of_group, group).result(60) == [*(VALUES[0] + 1).tolist(), (VALUES + 1).sum()]


@pytest.mark.parametrize("end", ENDS)
def test_children_use_what_the_parent_opened(end: str, tmp_path: Path) -> None:
    """As workers of torch's DataLoader do; also while threads of the parent are at work in it."""
    file = hs.open(made(tmp_path, end))
    array = file["rho"]
    stop = threading.Event()

    def reads() -> None:
        while not stop.is_set():
            file.read("rho")

    thread = threading.Thread(target=reads)
    thread.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                try:
                    good = array[1, 2] == VALUES[1, 2] and np.array_equal(file.read("rho"), VALUES)
                    good = good and file["rho"].attrs["units"] == "kg" and next(iter(file)) == "rho"
                    grandchild = os.fork()
                    if grandchild == 0:
                        os._exit(0 if array[0, 1] == 1 else 1)
                    good = good and os.waitpid(grandchild, 0)[1] == 0
                    os._exit(0 if good else 1)
                finally:
                    os._exit(2)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        thread.join()
    assert array[2, 3] == VALUES[2, 3]
    file.close()


def test_options_of_the_opening_travel(tmp_path: Path) -> None:
    path = made(tmp_path, "h5")
    with hs.open(path, locking=False) as file:
        pickled = pickle.dumps(file["rho"])
    with h5py.File(path, "r+", locking=True):
        assert pickle.loads(pickled)[1, 1] == VALUES[1, 1]
        with pytest.raises(hs.BusyError):
            hs.open(path)


def test_what_cannot_be_pickled_says_what_to_do(tmp_path: Path) -> None:
    path = made(tmp_path, "h5")
    with hs.open(path, "r+") as file:
        for what in (file, file["rho"]):
            with pytest.raises(TypeError, match="hint: pickle its path"):
                pickle.dumps(what)
        report = file.write("rho", VALUES)
    for what, hint in ((report, "hint: pickle str"), (hs.MemoryStore(), "hint: it is in this process only")):
        with pytest.raises(TypeError, match=hint):
            pickle.dumps(what)
    found = hs.threads(2, lambda comm: pickle.dumps(hs.open(path, comm=comm)["rho"]))
    assert pickle.loads(found[1])[0].tolist() == VALUES[0].tolist()
    gone = pickle.dumps(hs.open(path))
    path.unlink()
    with pytest.raises(hs.NotFoundError, match=r"a\.h5"):
        pickle.loads(gone)
