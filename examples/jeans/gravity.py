"""The gravity of the gas: Poisson's equation in a periodic box, by fast Fourier transforms of distributed arrays.

The potential of the seven-point Laplacian is found in one pass, without iteration::

    blocks  ->  slabs in x: transform z, y  ->  slabs in y: transform x, divide, back  ->  slabs in x  ->  blocks

The result does not depend on the mesh, to the last bit: each line of cells is transformed whole, by one rank, by the
same routine, whoever that rank is; everything else is done point by point. In a periodic box only the deviation from
the mean density attracts: that is the transform's zeroth coefficient, which is dropped, so no sum over ranks is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from domain import Domain, Redistribution, boxes

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Gravity:
    """Solve ``laplacian(potential) = strength * (density - mean density)``.

    Parameters
    ----------
    domain
        How the cells are spread over the ranks.
    cell
        Edge of a cell [length].
    strength
        4 pi G, in units of the simulation.
    """

    def __init__(self, domain: Domain, cell: float, strength: float) -> None:
        comm = domain.comm
        nx, ny, nz = domain.shape
        half = (nx, ny, nz // 2 + 1)  # coefficients of a real array: half of the last axis suffices
        blocks = boxes(domain.shape, domain.mesh)
        slabs = boxes(domain.shape, (comm.size, 1, 1))
        x_slabs, y_slabs = boxes(half, (comm.size, 1, 1)), boxes(half, (1, comm.size, 1))
        self._to_slabs = Redistribution(comm, blocks, slabs)
        self._to_blocks = Redistribution(comm, slabs, blocks)
        self._to_y = Redistribution(comm, x_slabs, y_slabs)
        self._to_x = Redistribution(comm, y_slabs, x_slabs)
        self._cells_z = nz
        self._factor = strength * _inverse_laplacian(domain.shape, cell)[y_slabs[comm.rank]]

    def potential(self, density: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return this rank's part of the potential, given its part of the density (neither with halo)."""
        # A rank without a slab takes part with empty arrays: only the axis not transformed is empty.
        slab = self._to_slabs(density)
        spectrum = self._to_y(np.fft.fft(np.fft.rfft(slab, axis=2), axis=1))
        spectrum = np.fft.fft(spectrum, axis=0)
        # Real and imaginary parts apart: a product of complex numbers may be fused in some lanes of a vector loop.
        spectrum.real *= self._factor
        spectrum.imag *= self._factor
        slab = np.fft.ifft(self._to_x(np.fft.ifft(spectrum, axis=0)), axis=1)
        return self._to_blocks(np.fft.irfft(slab, n=self._cells_z, axis=2))


def _inverse_laplacian(shape: tuple[int, ...], cell: float) -> NDArray[np.float64]:
    """Return one over the eigenvalues of the periodic seven-point Laplacian, ``(nx, ny, nz // 2 + 1)``, zero at 0.

    Every rank computes the cosines of whole axes, so that they are the same numbers everywhere.
    """
    x, y, z = ((2.0 * np.cos(2.0 * np.pi * np.arange(n) / n) - 2.0) / (cell * cell) for n in shape)
    eigenvalues = x[:, None, None] + y[None, :, None] + z[None, None, : shape[2] // 2 + 1]
    eigenvalues[0, 0, 0] = 1.0
    inverse = 1.0 / eigenvalues
    inverse[0, 0, 0] = 0.0
    return inverse
