"""The lock that HDF5's library has on a file: honoured, or not, as its own variable says, or `locking=`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import numpy as np
import pytest


def made(folder: Path, end: str) -> Path:
    path = folder / f"a.{end}"
    options: dict[str, Any] = {"format": "netcdf4"} if end == "nc" else {}
    with hs.open(path, "w", **options) as file:
        file.write("rho", np.zeros(3))
    return path


@pytest.mark.parametrize("end", ["h5", "nc"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_a_file_that_is_locked(ranks: int, end: str, tmp_path: Path) -> None:
    path = made(tmp_path, end)

    def changes(comm: Any, **options: Any) -> None:
        with hs.open(path, "r+", comm=comm, **options) as file:
            file.write("rho", np.ones(3), hs.Distribution.replicated((3,), comm.size))

    with h5py.File(path, "r", locking=True):
        for locking in (None, True, "best-effort"):
            with pytest.raises(hs.BusyError, match="which has it locked"):
                hs.threads(ranks, lambda comm, how=locking: changes(comm, locking=how))
        hs.threads(ranks, lambda comm: changes(comm, locking=False))
    assert hs.open(path)["rho"][...].tolist() == [1.0] * 3
    with hs.open(path, "r+", locking=False), h5py.File(path, "r+", locking=True) as file:
        file["rho"][0] = 7
    assert hs.open(path)["rho"][0] == 7
    with pytest.raises(hs.InvalidError, match="locking must be True, False or 'best-effort', got 'no'"):
        hs.open(path, locking="no")  # type: ignore[arg-type]


@pytest.mark.parametrize(("said", "opens"), [("FALSE", True), ("0", True), ("TRUE", False), ("BEST_EFFORT", False)])
def test_the_variable_of_hdf5(said: str, opens: bool, tmp_path: Path) -> None:  # noqa: FBT001
    path = made(tmp_path, "h5")
    program = f"import hyperslab as hs; hs.open({str(path)!r}, 'r+').close()"
    with h5py.File(path, "r", locking=True):
        environment = {**os.environ, "HDF5_USE_FILE_LOCKING": said}
        run = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60
        )
    assert (run.returncode == 0) == opens, run.stderr
    assert opens or "BusyError" in run.stderr
