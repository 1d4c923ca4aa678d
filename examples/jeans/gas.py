"""The gas: Euler's equations in three dimensions by a second-order finite-volume scheme.

MUSCL-Hancock with van Albada slopes and the HLLC flux, one dimension after another, in alternating order (Strang).
Literature: E. F. Toro, *Riemann Solvers and Numerical Methods for Fluid Dynamics*, 3rd ed., sections 10.4 and 14.4.

The result must not depend on how the cells are spread over ranks, to the last bit. So every update is made of
``+ - * /``, square root, comparison and selection, which IEEE 754 rounds in one way only, and the one reduction over
cells is a minimum. There is no sum over cells and no ``exp``, ``sin`` or power in the loop, whose last bit may depend
on where an element stands in its array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from mpi4py import MPI

from domain import HALO, Domain

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIELDS = ("density", "momentum_x", "momentum_y", "momentum_z", "energy", "potential")
"""The arrays of a state, in the order in which they are stacked and dumped."""
DENSITY, MOMENTUM, ENERGY, POTENTIAL = 0, 1, 4, 5

GAMMA = 1.1
"""Ratio of specific heats: close to 1, for a gas that radiates most of the heat of its compression."""
COURANT = 0.8
"""Part of a cell that the fastest wave may cross in one step."""
DENSITY_MIN = 1e-3
PRESSURE_MIN = 1e-5
COLUMNS = 512
"""Columns of cells swept at a time, so that temporaries stay in the processor's cache."""


def pressure(conserved: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the pressure of stacked conserved fields ``(5 or more, ...)``."""
    rho, mx, my, mz, energy = conserved[:5]
    return np.maximum((GAMMA - 1.0) * (energy - 0.5 * (mx * mx + my * my + mz * mz) / rho), PRESSURE_MIN)


def time_step(domain: Domain, state: NDArray[np.float64], cell: float) -> float:
    """Return the longest stable time step: the same number on every rank of every mesh, as minima are exact."""
    inside = state[:, *domain.interior]
    rho = inside[DENSITY]
    sound = np.sqrt(GAMMA * pressure(inside) / rho)
    fastest = 0.0
    for axis in range(3):
        speed = np.abs(inside[MOMENTUM + axis] / rho) + sound
        fastest = max(fastest, float(speed.max(initial=0.0)))
    limit = np.array(COURANT * cell / fastest if fastest > 0.0 else np.inf)
    domain.comm.Allreduce(MPI.IN_PLACE, limit, MPI.MIN)
    return float(limit)


def advect(domain: Domain, state: NDArray[np.float64], dt: float, cell: float, axes: tuple[int, int, int]) -> None:
    """Advance the gas in place by one time step without gravity, sweeping along the axes in the order given."""
    for axis in axes:
        domain.exchange(state[:POTENTIAL], axis)
        _sweep(domain, state, dt / cell, axis)


def kick(domain: Domain, state: NDArray[np.float64], dt: float, cell: float) -> None:
    """Accelerate the gas in place by the potential's gradient (central differences; halo must be filled)."""
    inside = state[:, *domain.interior]
    rho, energy = inside[DENSITY], inside[ENERGY]
    for axis in range(3):
        left, right = (
            tuple(slice(s.start + shift, s.stop + shift) if a == axis else s for a, s in enumerate(domain.interior))
            for shift in (-1, 1)
        )
        push = (0.5 * dt / cell) * (state[POTENTIAL][left] - state[POTENTIAL][right])
        # The work done, so that the heat of the gas stays as it is: d(m^2 / 2 rho) for dm = rho * push.
        energy += push * (inside[MOMENTUM + axis] + 0.5 * rho * push)
        inside[MOMENTUM + axis] += rho * push


def _sweep(domain: Domain, state: NDArray[np.float64], ratio: float, axis: int) -> None:
    """Sweep along one axis in place. ``ratio`` is time step over cell size."""
    if 0 in domain.local_shape:
        return
    order = [DENSITY, *(MOMENTUM + (axis + k) % 3 for k in range(3)), ENERGY]  # the momentum along the axis first
    inside = tuple(slice(None) if a == axis else s for a, s in enumerate(domain.interior))
    rows = [np.moveaxis(state[field][inside], axis, 0) for field in order]
    # In C order whatever the axis (np.stack would keep the order in memory), so that columns are a view of it.
    pencils = np.empty((len(order), *rows[0].shape))
    for place, row in zip(pencils, rows, strict=True):
        place[...] = row
    columns = pencils.reshape(len(order), pencils.shape[1], -1)
    for first in range(0, columns.shape[2], COLUMNS):
        part = np.ascontiguousarray(columns[:, :, first : first + COLUMNS])
        columns[:, HALO:-HALO, first : first + COLUMNS] += _change(part, ratio)
    for field, new in zip(order, pencils, strict=True):
        np.moveaxis(state[field][domain.interior], axis, 0)[...] = new[HALO:-HALO]
    _keep_positive(state[:, *domain.interior])


def _change(conserved: NDArray[np.float64], ratio: float) -> NDArray[np.float64]:
    """Return the change ``(5, n, columns)`` of cells ``(5, n + 2 HALO, columns)`` in one sweep along their rows."""
    w = _primitive(conserved)
    before, after = w[:, 1:-1] - w[:, :-2], w[:, 2:] - w[:, 1:-1]
    product = before * after
    # van Albada: zero at extrema; the tiny number keeps 0/0 away where the gas is uniform.
    slope = np.maximum(product, 0.0) * (before + after) / (before * before + after * after + 1e-200)

    rho, u, v1, v2, p = w[:, 1:-1]
    half = 0.5 * ratio
    middle = np.empty_like(slope)  # half a time step later, at the centre of the cell
    middle[0] = rho - half * (u * slope[0] + rho * slope[1])
    middle[1] = u - half * (u * slope[1] + slope[4] / rho)
    middle[2] = v1 - half * u * slope[2]
    middle[3] = v2 - half * u * slope[3]
    middle[4] = p - half * (u * slope[4] + GAMMA * p * slope[1])

    slope *= 0.5
    low, high = middle - slope, middle + slope
    for side in (low, high):
        np.maximum(side[0], DENSITY_MIN, out=side[0])
        np.maximum(side[4], PRESSURE_MIN, out=side[4])
    flux = _hllc(high[:, :-1], low[:, 1:])
    return ratio * (flux[:, :-1] - flux[:, 1:])


def _primitive(conserved: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return density, three velocities and pressure."""
    w = np.empty_like(conserved)
    w[0] = conserved[0]
    np.divide(conserved[1:4], conserved[0], out=w[1:4])
    w[4] = pressure(conserved)
    return w


def _hllc(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the flux through the faces between primitive states ``(5, faces, columns)``."""
    rho_l, u_l, _, _, p_l = left
    rho_r, u_r, _, _, p_r = right
    sound_l, sound_r = np.sqrt(GAMMA * p_l / rho_l), np.sqrt(GAMMA * p_r / rho_r)
    slowest = np.minimum(u_l - sound_l, u_r - sound_r)
    fastest = np.maximum(u_l + sound_l, u_r + sound_r)
    weight_l, weight_r = rho_l * (slowest - u_l), rho_r * (fastest - u_r)
    contact = (p_r - p_l + weight_l * u_l - weight_r * u_r) / (weight_l - weight_r)

    # Only the side from which the contact wave comes matters: choose it first, then compute one flux.
    from_left = contact >= 0.0
    rho, u, v1, v2, p = np.where(from_left, left, right)
    wave = np.where(from_left, slowest, fastest)
    reach = np.where(from_left, np.minimum(slowest, 0.0), np.maximum(fastest, 0.0))

    energy = p / (GAMMA - 1.0) + 0.5 * rho * (u * u + v1 * v1 + v2 * v2)
    star = rho * (wave - u) / (wave - contact)  # the density between the wave and the contact
    star_energy = star * (energy / rho + (contact - u) * (contact + p / (rho * (wave - u))))
    mass = rho * u
    extra = reach * (star - rho)
    flux = np.empty(left.shape)
    flux[0] = mass + extra
    flux[1] = mass * u + p + reach * (star * contact - mass)
    flux[2] = mass * v1 + extra * v1
    flux[3] = mass * v2 + extra * v2
    flux[4] = u * (energy + p) + reach * (star_energy - energy)
    return flux


def _keep_positive(inside: NDArray[np.float64]) -> None:
    """Lift density and pressure to their floors, where a strong rarefaction has emptied a cell."""
    np.maximum(inside[DENSITY], DENSITY_MIN, out=inside[DENSITY])
    rho, mx, my, mz = inside[:4]
    coldest = 0.5 * (mx * mx + my * my + mz * mz) / rho + PRESSURE_MIN / (GAMMA - 1.0)
    np.maximum(inside[ENERGY], coldest, out=inside[ENERGY])
