"""The example's simulation: the same bits on every mesh of ranks, and the right gravity.

Runs under real MPI; needs mpi4py and an ``mpiexec``, but not hyperslab.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

MPI = pytest.importorskip("mpi4py.MPI")

EXAMPLE = Path(__file__).parents[2] / "examples" / "jeans"
sys.path.insert(0, str(EXAMPLE))

import gas  # noqa: E402
from cloud import Cloud  # noqa: E402
from domain import Domain  # noqa: E402
from gravity import Gravity  # noqa: E402
from mpi_launch import launched  # noqa: E402

pytestmark = pytest.mark.mpi

SHAPE = (24, 20, 12)
STEPS = 4

WORKER = """
import sys
sys.path.insert(0, sys.argv[1])
out, shape, mesh, steps = sys.argv[2], *(tuple(map(int, a.split(","))) for a in sys.argv[3:5]), int(sys.argv[5])
import numpy as np
from mpi4py import MPI
from evolve import Simulation
simulation = Simulation(MPI.COMM_WORLD, shape, mesh)
simulation.begin()
for _ in range(steps):
    simulation.advance()
ranges = np.array([(s.start, s.stop) for s in simulation.domain.box])
np.savez(f"{out}/{MPI.COMM_WORLD.rank}.npz", box=ranges, fields=simulation.inside, time=simulation.time)
"""


def run(out: Path, mesh: tuple[int, ...], shape: tuple[int, ...] = SHAPE, steps: int = STEPS) -> tuple[Any, ...]:
    """Run the simulation on a mesh; return the stacked global fields, the time, and the cells of each rank."""
    out.mkdir()
    ranks = int(np.prod(mesh))
    command = [sys.executable, "-m", "mpi4py", "-c", WORKER, EXAMPLE, out]
    done = launched(ranks, *command, ",".join(map(str, shape)), ",".join(map(str, mesh)), steps)
    assert done.returncode == 0, done.stdout + done.stderr
    fields = np.full((6, *shape), np.nan)
    covered = np.zeros(shape, int)
    cells, times = [], set()
    for rank in range(ranks):
        part = np.load(out / f"{rank}.npz")
        box = tuple(slice(*pair) for pair in part["box"])
        fields[:, *box] = part["fields"]
        covered[box] += 1
        cells.append(covered[box].size)
        times.add(float(part["time"]))
    assert (covered == 1).all()
    assert len(times) == 1
    return fields, times.pop(), cells


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ...]:
    """Run on one rank, against which all others are compared."""
    return run(tmp_path_factory.mktemp("jeans") / "alone", (1, 1, 1))


@pytest.mark.parametrize(
    ("mesh", "empty"),
    [
        ((2, 1, 1), 0),
        ((2, 2, 2), 0),
        ((3, 2, 1), 0),
        ((1, 3, 2), 0),  # 20 cells over 3 ranks: 7, 7, 6
        ((1, 1, 5), 1),  # 12 cells over 5 ranks: 3, 3, 3, 3, 0
        ((1, 1, 8), 2),  # 12 cells over 8 ranks: six times 2, and two ranks with nothing; slabs in x hold 3
        ((1, 7, 1), 0),  # 20 cells over 7 ranks: six times 3, then 2
    ],
)
def test_every_mesh_gives_the_same_bits(
    tmp_path: Path, alone: tuple[Any, ...], mesh: tuple[int, ...], empty: int
) -> None:
    """Uneven blocks and ranks without cells included."""
    fields, time, cells = run(tmp_path / "run", mesh)
    assert cells.count(0) == empty
    assert time == alone[1]
    np.testing.assert_array_equal(fields.view("u8"), alone[0].view("u8"))


def test_blocks_may_be_thinner_than_the_guard(tmp_path: Path) -> None:
    """Halo cells then come from more than one rank away: 6 cells over 6 ranks, two halo."""
    reference, _, _ = run(tmp_path / "one", (1, 1, 1), (8, 6, 6), 2)
    fields, _, _ = run(tmp_path / "six", (1, 6, 1), (8, 6, 6), 2)
    np.testing.assert_array_equal(fields.view("u8"), reference.view("u8"))


def test_mass_and_energy_behave(alone: tuple[Any, ...]) -> None:
    """Mass is conserved, the cloud contracts, and nothing is infinite."""
    fields, time, _ = alone
    domain = Domain(MPI.COMM_SELF, SHAPE, (1, 1, 1))
    start = domain.zeros(6)
    Cloud().fill(domain, start)
    before = start[0][domain.interior]
    assert time > 0.0
    assert np.isfinite(fields).all()
    assert fields[0].sum() == pytest.approx(before.sum(), rel=1e-12)
    assert fields[0].max() > 2.0 * before.max()


def test_the_potential_solves_poissons_equation() -> None:
    """The seven-point Laplacian of the potential is the density's deviation from its mean."""
    density = np.random.default_rng(7).uniform(0.5, 2.0, SHAPE)
    cell, strength = 0.1, 3.0
    potential = Gravity(Domain(MPI.COMM_SELF, SHAPE, (1, 1, 1)), cell, strength).potential(density)
    neighbours = sum(np.roll(potential, shift, axis) for axis in range(3) for shift in (-1, 1))
    laplacian = (neighbours - 6.0 * potential) / cell**2
    np.testing.assert_allclose(laplacian, strength * (density - density.mean()), atol=1e-10)


def test_a_shock_tube_has_the_exact_solution() -> None:
    """Sod's problem along each axis, against the exact plateau behind the shock (for this gas, found by iteration)."""
    for axis in range(3):
        shape = tuple(200 if a == axis else 4 for a in range(3))
        domain = Domain(MPI.COMM_SELF, shape, (1, 1, 1))
        state = domain.zeros(6)
        inside = state[:, *domain.interior]
        along = np.arange(200).reshape([-1 if a == axis else 1 for a in range(3)])
        high = (along >= 50) & (along < 150)  # periodic: two tubes, mirror images of each other
        inside[gas.DENSITY] = np.where(high, 1.0, 0.125)
        inside[gas.ENERGY] = np.where(high, 1.0, 0.1) / (gas.GAMMA - 1.0)
        cell, time, step = 1.0 / 200, 0.0, 0
        while time < 0.1:
            dt = min(gas.time_step(domain, state, cell), 0.1 - time)
            gas.advect(domain, state, dt, cell, (0, 1, 2) if step % 2 == 0 else (2, 1, 0))
            time, step = time + dt, step + 1
        line = np.moveaxis(inside, 1 + axis, 1)[:, :, 1, 1]
        pressure, speed, front = shock_tube(gas.GAMMA)
        middle = round(150 + 0.1 * 0.5 * (speed + front) * 200)  # half way between the contact and the shock
        assert gas.pressure(line)[middle] == pytest.approx(pressure, rel=0.01)
        assert line[gas.MOMENTUM + axis][middle] / line[gas.DENSITY][middle] == pytest.approx(speed, rel=0.01)
        np.testing.assert_allclose(line[0], line[0][::-1], rtol=1e-9)


def shock_tube(gamma: float) -> tuple[float, float, float]:
    """Return pressure and speed between the waves of Sod's problem, and the speed of the shock, by bisection."""
    rho_l, p_l, rho_r, p_r = 1.0, 1.0, 0.125, 0.1
    sound_l = np.sqrt(gamma * p_l / rho_l)

    def rarefied(p: float) -> float:
        return 2.0 * sound_l / (gamma - 1.0) * (1.0 - (p / p_l) ** ((gamma - 1.0) / (2.0 * gamma)))

    def shocked(p: float) -> float:
        return (p - p_r) * np.sqrt(2.0 / rho_r / ((gamma + 1.0) * p + (gamma - 1.0) * p_r))

    low, high = p_r, p_l
    for _ in range(100):
        p = 0.5 * (low + high)
        low, high = (p, high) if rarefied(p) > shocked(p) else (low, p)
    front = np.sqrt(gamma * p_r / rho_r * ((gamma + 1.0) / (2.0 * gamma) * p / p_r + (gamma - 1.0) / (2.0 * gamma)))
    return p, shocked(p), front
