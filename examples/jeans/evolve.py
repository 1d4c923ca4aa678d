"""The simulation without any I/O: a state, and how it advances by one step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gas
from cloud import Cloud
from domain import Domain
from gravity import Gravity

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from mpi4py import MPI
    from numpy.typing import NDArray


class Simulation:
    """A cloud of gas on a mesh of ranks.

    Parameters
    ----------
    comm
        Communicator with as many ranks as the mesh.
    shape
        Global number of cells, ``(nx, ny, nz)``; cells are cubes.
    mesh
        Logical grid of ranks.

    Attributes
    ----------
    state
        ``(6, nx + 2 HALO, ny + 2 HALO, nz + 2 HALO)`` local fields with halo, in the order of ``gas.FIELDS``.
    step, time, dt
        Steps done, time reached, and the last time step. Together with ``state`` they are all that a restart needs.
    """

    def __init__(self, comm: MPI.Intracomm, shape: Sequence[int], mesh: Sequence[int]) -> None:
        self.cloud = Cloud()
        self.domain = Domain(comm, shape, mesh)
        self.cell = self.cloud.cell(self.domain.shape)
        self.gravity = Gravity(self.domain, self.cell, self.cloud.strength)
        self.state = self.domain.zeros(len(gas.FIELDS))
        self.step = 0
        self.time = 0.0
        self.dt = 0.0

    @property
    def fields(self) -> dict[str, NDArray[np.float64]]:
        """The local fields by name, with their halo; views of ``state``."""
        return dict(zip(gas.FIELDS, self.state, strict=True))

    @property
    def inside(self) -> NDArray[np.float64]:
        """The local fields, stacked, without their halo: a view of ``state``."""
        return self.state[:, *self.domain.interior]

    def begin(self) -> None:
        """Set the initial state."""
        self.cloud.fill(self.domain, self.state)
        self.attract()

    def attract(self) -> None:
        """Compute the potential of the present density, and fill its halo."""
        self.inside[gas.POTENTIAL] = self.gravity.potential(self.inside[gas.DENSITY])
        self.fill_potential_guards()

    def fill_potential_guards(self) -> None:
        """Fill the potential's halo: after ``attract``, or when the fields came from a dump."""
        for axis in range(3):
            self.domain.exchange(self.state[gas.POTENTIAL :], axis)

    def advance(self) -> None:
        """Advance by one time step: half a kick by gravity, the gas, the new potential, the other half."""
        self.dt = gas.time_step(self.domain, self.state, self.cell)
        gas.kick(self.domain, self.state, 0.5 * self.dt, self.cell)
        gas.advect(self.domain, self.state, self.dt, self.cell, (0, 1, 2) if self.step % 2 == 0 else (2, 1, 0))
        self.attract()
        gas.kick(self.domain, self.state, 0.5 * self.dt, self.cell)
        self.step += 1
        self.time += self.dt
