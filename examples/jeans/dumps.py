"""The dumps: what the simulation writes, and how it starts again on another number of ranks.

Three kinds of dumps, and their order, follow a production code on the collapse of gas clouds (Thakur, Gropp and Lusk,
*An Experimental Evaluation of the Parallel I/O Systems of the IBM SP and Intel Paragon Using a Production
Application*, 1996, section 3); the exact state in a Zarr step is added to them:

==================== ========================== =====================================================
``analysis_N.raw``    new at each dump           6 reals, then 6 arrays in single precision
``analysis_N.h5``     new at each dump           the same 6 arrays, in HDF5
``speed_N.raw``, ...  4 files, new at each dump  6 reals, then 1 array of one byte per cell
``restart.raw``       overwritten at each dump   6 reals, then 6 arrays in single precision
``run.zarr/dump_N``   a new step at each dump    6 arrays in double precision, time and step number
==================== ========================== =====================================================

Arrays in raw files are global and column-major, one after another, as one process of a Fortran program would write
them: the file does not tell how many ranks wrote it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import hyperslab as hs
import numpy as np
from mpi4py import MPI

import gas
from domain import HALO

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from death import Death
    from evolve import Simulation

STORE = "run.zarr"
RESTART = "restart.raw"
PICTURES = ("density", "speed", "pressure", "potential")
"""What the visualization files show."""


@dataclass(frozen=True)
class Row:
    """What one file or step of a dump cost."""

    file: str
    bytes: int
    seconds: float
    strategy: str


class Dumps:
    """The files of one run in a directory, open for writing.

    Parameters
    ----------
    simulation
        Whose state is dumped.
    directory
        Where; it exists.
    resume
        Continue the run that is there; otherwise begin a new one in place of it.
    death
        When to die (for the demonstration only).
    """

    def __init__(self, simulation: Simulation, directory: Path, *, resume: bool, death: Death) -> None:
        self._simulation = simulation
        self._directory = directory
        self._death = death
        self._comm = simulation.domain.comm
        self._distribution = hs.Distribution(simulation.domain.shape, simulation.domain.mesh)
        self._store = hs.open(directory / STORE, "r+" if resume else "w", comm=self._comm)

    def __enter__(self) -> Dumps:
        """Return the open dumps."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the store, on all ranks together; not after an error, which the others may know nothing of."""
        if kind is None:
            self._store.close()

    @property
    def removed(self) -> list[str]:
        """Names of torn steps that were found and removed when the store was opened."""
        return list(self._store.removed)

    def restore(self) -> str:
        """Set the simulation to the last complete step, and return that step's name."""
        complete: list[str] = sorted(self._store.groups())
        if not complete:
            raise SystemExit(f"nothing to resume: {self._directory / STORE} holds no complete step")
        step = self._store.group(complete[-1])
        fields = step.read(list(gas.FIELDS), self._distribution)
        simulation = self._simulation
        for place, name in zip(simulation.inside, gas.FIELDS, strict=True):
            place[...] = fields[name]
        simulation.fill_potential_guards()
        simulation.step = int(step.attrs["step"])
        # As hexadecimal text: a decimal number in JSON is exact only if all who touch it take care.
        simulation.time = float.fromhex(step.attrs["time_exact"])
        simulation.dt = float.fromhex(step.attrs["dt_exact"])
        return complete[-1]

    def write(self, number: int) -> list[Row]:
        """Write one dump: all of its files, the Zarr step last, since with it the dump is complete."""
        death = self._death
        death.at("before-first-byte", number)
        with death.during("inside-analysis", number):
            rows = [self._write_reals(f"analysis_{number:04d}.raw")]
        rows.append(self._write_hdf5(f"analysis_{number:04d}.h5"))
        for count, (name, shades) in enumerate(self._shades().items()):
            if count == 2:
                death.at("between-files", number)
            rows.append(self._write_picture(f"{name}_{number:04d}.raw", *shades))
        rows.append(self._write_reals(RESTART))
        rows.append(self._write_step(f"dump_{number:04d}", number))
        return rows

    def _write_reals(self, file: str) -> Row:
        """Write six reals and the six fields in single precision."""
        simulation = self._simulation
        header = _reals(*simulation.domain.shape, simulation.step, simulation.time, simulation.dt)
        begin = time.perf_counter()
        with hs.open_raw(self._directory / file, "w", comm=self._comm, header=header) as raw:
            report = raw.write(simulation.fields, self._distribution, dtype="<f4", halo=HALO)
        return Row(file, report.bytes, time.perf_counter() - begin, report.strategy)

    def _write_hdf5(self, file: str) -> Row:
        """Write the six fields in single precision as an HDF5 file, whose names and attributes others see."""
        simulation = self._simulation
        attributes = {"step": simulation.step, "time": simulation.time, "cell": simulation.cell}
        begin = time.perf_counter()
        with hs.open(self._directory / file, "w", comm=self._comm, attributes=attributes) as made:
            report = made.write(simulation.fields, self._distribution, dtype="<f4", halo=HALO)
        return Row(file, report.bytes, time.perf_counter() - begin, report.strategy)

    def _write_picture(self, file: str, shades: NDArray[np.uint8], low: float, high: float) -> Row:
        """Write six reals and one array of bytes; the reals tell which values the bytes 0 and 255 stand for."""
        simulation = self._simulation
        header = _reals(*simulation.domain.shape, simulation.time, low, high)
        begin = time.perf_counter()
        with hs.open_raw(self._directory / file, "w", comm=self._comm, header=header) as raw:
            report = raw.write({"shades": shades}, self._distribution)
        return Row(file, report.bytes, time.perf_counter() - begin, report.strategy)

    def _write_step(self, name: str, number: int) -> Row:
        """Write the exact state as one Zarr step, which becomes visible whole or not at all."""
        simulation = self._simulation
        attributes = {
            "step": simulation.step,
            "time": simulation.time,
            "dt": simulation.dt,
            "time_exact": simulation.time.hex(),
            "dt_exact": simulation.dt.hex(),
            "cell": simulation.cell,
            "gamma": gas.GAMMA,
        }

        def before_publish() -> None:
            self._death.at("before-rename", number)

        begin = time.perf_counter()
        with (
            self._store.step(name, attributes=attributes, before_publish=before_publish) as step,
            self._death.during("inside-step", number),
        ):
            report = step.write(simulation.fields, self._distribution, halo=HALO, dimension_names=("x", "y", "z"))
        return Row(f"{STORE}/{name}", report.bytes, time.perf_counter() - begin, report.strategy)

    def _shades(self) -> dict[str, tuple[NDArray[np.uint8], float, float]]:
        """Return bytes to look at, with the values of the darkest and the brightest, for each of ``PICTURES``."""
        inside = self._simulation.inside
        rho, mx, my, mz = inside[:4]
        values = (rho, np.sqrt(mx * mx + my * my + mz * mz) / rho, gas.pressure(inside), inside[gas.POTENTIAL])
        return {name: self._shade(value) for name, value in zip(PICTURES, values, strict=True)}

    def _shade(self, value: NDArray[np.float64]) -> tuple[NDArray[np.uint8], float, float]:
        """Spread values over 0 to 255, small differences at the low end enlarged: by the fourth root of the rise."""
        low, high = np.array(value.min(initial=np.inf)), np.array(value.max(initial=-np.inf))
        self._comm.Allreduce(MPI.IN_PLACE, low, MPI.MIN)
        self._comm.Allreduce(MPI.IN_PLACE, high, MPI.MAX)
        rise = (value - low) / max(float(high - low), 1e-200)
        return (255.0 * np.sqrt(np.sqrt(rise)) + 0.5).astype(np.uint8), float(low), float(high)


def _reals(*values: float) -> bytes:
    """Return the six reals of a header as 24 bytes."""
    header: bytes = np.array(values, "<f4").tobytes()
    assert len(header) == 24
    return header
