"""The initial state: a rotating, lumpy cloud of cold gas that cannot carry its own weight.

The cloud is a flattened ball with a smooth edge in a thin surrounding gas. Waves of random direction and phase make it
lumpy and give it velocities towards the lumps. Wavelengths above Jeans' length grow: the cloud falls together into
filaments and fragments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gas import DENSITY, ENERGY, GAMMA, MOMENTUM, PRESSURE_MIN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from domain import Domain


@dataclass(frozen=True)
class Cloud:
    """Parameters of the cloud, in units in which the longest edge of the box is 2 and the cloud's density is 1."""

    strength: float = 60.0
    """4 pi G."""
    sound: float = 0.25
    """Isothermal speed of sound in the cloud."""
    surroundings: float = 0.12
    """Density outside."""
    radius: float = 0.78
    """Of the cloud, in x and y."""
    flattening: float = 0.5
    """Height over width."""
    spin: float = 1.0
    """Angular velocity about z."""
    lumps: float = 0.8
    """Root mean square of the relative waves in density."""
    infall: float = 0.9
    """Root mean square of the velocity towards the lumps."""
    waves: int = 48
    seed: int = 1902
    """Jeans' first paper on the stability of a spherical nebula."""

    def cell(self, shape: tuple[int, ...]) -> float:
        """Return the edge of a (cubic) cell."""
        return 2.0 / max(shape)

    def fill(self, domain: Domain, state: NDArray[np.float64]) -> None:
        """Set density, momenta and energy of the cells that this rank holds."""
        inside = state[:, *domain.interior]
        x, y, z = self._axes(domain)
        cylinder = x * x + y * y
        far = (cylinder + z * z / (self.flattening * self.flattening)) / (self.radius * self.radius)
        profile = 1.0 / (1.0 + far * far * far * far)
        wave, towards = self._waves(domain)
        rho = self.surroundings + profile * np.maximum(1.0 + self.lumps * wave, 0.2)
        inside[DENSITY] = rho
        turn = (-self.spin * y, self.spin * x, 0.0 * z)
        for axis in range(3):
            inside[MOMENTUM + axis] = rho * profile * (turn[axis] + self.infall * towards[axis])
        push = sum(inside[MOMENTUM + axis] * inside[MOMENTUM + axis] for axis in range(3))
        heat = np.maximum(self.sound * self.sound * rho, PRESSURE_MIN) / (GAMMA - 1.0)
        inside[ENERGY] = heat + 0.5 * push / rho

    def _axes(self, domain: Domain) -> list[NDArray[np.float64]]:
        """Return the coordinates of cell centres, the origin in the middle, shaped to be combined by broadcasting."""
        cell = self.cell(domain.shape)
        axes: list[NDArray[np.float64]] = []
        for axis, (cells, own) in enumerate(zip(domain.shape, domain.box, strict=True)):
            centres = (np.arange(cells, dtype=np.float64) + 0.5 - 0.5 * cells) * cell
            axes.append(centres[own].reshape([-1 if a == axis else 1 for a in range(3)]))
        return axes

    def _waves(self, domain: Domain) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
        """Return waves of mean square about 1, and the velocity field that feeds them, both of the local shape.

        Sines and cosines are tabulated over whole axes, by every rank alike, and only then cut to the rank's cells.
        """
        random = np.random.default_rng(self.seed)
        wave = np.zeros(domain.local_shape)
        towards = [np.zeros(domain.local_shape) for _ in range(3)]
        largest = max(domain.shape)
        power = speed = 0.0
        for _ in range(self.waves):
            periods = random.integers(1, 7, 3) * [n / largest for n in domain.shape]
            periods = np.maximum(np.rint(periods), 1.0)
            phases = random.uniform(0.0, 2.0 * np.pi, 3)
            numbers = np.pi * periods * [largest / n for n in domain.shape]
            steepness = float(np.sqrt(np.add.reduce(numbers * numbers)))
            weight = 1.0 / steepness
            sines, cosines = [], []
            for axis in range(3):
                angle = 2.0 * np.pi * periods[axis] * np.arange(domain.shape[axis]) / domain.shape[axis] + phases[axis]
                form = [-1 if a == axis else 1 for a in range(3)]
                sines.append(np.sin(angle)[domain.box[axis]].reshape(form))
                cosines.append(np.cos(angle)[domain.box[axis]].reshape(form))
            wave += weight * (cosines[0] * cosines[1] * cosines[2])
            for axis in range(3):
                factors = [sines[a] if a == axis else cosines[a] for a in range(3)]
                # Gas flows up the gradient of a wave: towards its crests.
                scale = -weight * float(numbers[axis]) / (steepness * steepness)
                towards[axis] += scale * (factors[0] * factors[1] * factors[2])
            power += weight * weight / 8.0
            speed += weight * weight / (8.0 * steepness * steepness)
        return wave * (1.0 / np.sqrt(power)), [field * (1.0 / np.sqrt(speed)) for field in towards]
