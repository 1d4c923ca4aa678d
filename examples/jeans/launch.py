"""Starting the simulation under MPI from an ordinary program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
TIMEOUT = 900.0
"""A run that takes longer is taken for stuck [s]."""


def mpiexec() -> str:
    """Return the launcher that belongs to this Python's MPI (installed as a wheel), else the first one on the path."""
    sibling = Path(sys.executable).parent / "mpiexec"
    found = str(sibling) if sibling.exists() else shutil.which("mpiexec")
    if found is None:
        raise SystemExit("no mpiexec beside python nor on the path\nhint: pip install mpich, or install an MPI")
    return found


def environment() -> dict[str, str]:
    """Return an environment in which Open MPI, too, starts more ranks than there are cores, also as root."""
    return os.environ | {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }


def simulate(out: Path, mesh: tuple[int, int, int], *options: str) -> subprocess.CompletedProcess[str]:
    """Run ``simulate.py`` to its end, or its death, on a mesh of ranks; its output is collected."""
    ranks = mesh[0] * mesh[1] * mesh[2]
    command = [mpiexec(), "-n", str(ranks), sys.executable, "-m", "mpi4py", str(HERE / "simulate.py")]
    command += ["--out", str(out), "--mesh", ",".join(map(str, mesh)), *options]
    # What MPI keeps while it runs, and Open MPI leaves behind when a run is killed, goes away with this folder.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as own:
        told = environment() | {"TMPDIR": own}
        return subprocess.run(command, env=told, capture_output=True, text=True, timeout=TIMEOUT, check=False)
