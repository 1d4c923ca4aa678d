"""The demonstration's comparisons: they must notice what they are there to notice."""

from __future__ import annotations

import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

zarr = pytest.importorskip("zarr")

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "jeans"))

import readback  # noqa: E402

SHAPE = (4, 3, 2)


def write_run(out: Path, dumps: int) -> dict[str, np.ndarray]:
    """Write the files of a small run with other tools, and return the last state."""
    root = zarr.open_group(out / "run.zarr", mode="w")
    random = np.random.default_rng(5)
    state: dict[str, np.ndarray] = {}
    for number in range(dumps):
        state = {name: random.uniform(1.0, 2.0, SHAPE) for name in readback.FIELDS}
        group = root.create_group(f"dump_{number:04d}")
        for name, values in state.items():
            group.create_array(name, data=values)
        header = np.array([*SHAPE, 0, 0, 0], "<f4").tobytes()
        body = b"".join(v.astype("<f4").ravel(order="F").tobytes() for v in state.values())
        density = state["density"]
        shades = np.rint(255 * (density - density.min()) / np.ptp(density)).astype("u1").ravel(order="F").tobytes()
        (out / f"analysis_{number:04d}.raw").write_bytes(header + body)
        (out / "restart.raw").write_bytes(header + body)
        with h5py.File(out / f"analysis_{number:04d}.h5", "w") as data:
            for name, values in state.items():
                data[name] = values.astype("<f4")
        for name in readback.PICTURES:
            (out / f"{name}_{number:04d}.raw").write_bytes(header + shades)
    return state


def test_equal_arrays_pass_and_the_first_difference_is_named() -> None:
    """Also when it is only the sign of a zero."""
    expected = np.zeros(SHAPE)
    readback.same("a", expected.copy(), expected)
    found = expected.copy()
    found[2, 1, 0] = -0.0
    with pytest.raises(readback.DifferenceError, match=r"a: 1 of 24 elements differ, the first at \(2, 1, 0\)"):
        readback.same("a", found, expected)
    with pytest.raises(readback.DifferenceError, match="expected float64"):
        readback.same("a", expected.astype("f4"), expected)


def test_raw_files_are_compared_with_the_steps(tmp_path: Path) -> None:
    """One byte wrong in one array is noticed, and the array is named."""
    write_run(tmp_path, 2)
    assert readback.check_files(tmp_path, 1) == 2 * 6 + 1
    path = tmp_path / "analysis_0001.raw"
    content = bytearray(path.read_bytes())
    content[readback.HEADER + 24 * 4 + 5] ^= 1
    path.write_bytes(content)
    with pytest.raises(readback.DifferenceError, match=r"analysis_0001.raw: momentum_x: 1 of 24"):
        readback.check_files(tmp_path, 1)


def test_a_visible_torn_step_is_noticed(tmp_path: Path) -> None:
    """What is left unpublished is listed; a torn step that readers see, or a torn file, is an error."""
    whole, died = tmp_path / "whole", tmp_path / "died"
    for out, dumps in ((whole, 3), (died, 2)):
        out.mkdir()
        write_run(out, dumps)
    (died / ".something.partial").touch()
    assert readback.check_after_death(died, whole, 1) == [".something.partial"]
    torn = died / "density_0002.raw"
    torn.write_bytes((whole / "density_0002.raw").read_bytes()[:-1])
    with pytest.raises(readback.DifferenceError, match=r"density_0002.raw"):
        readback.check_after_death(died, whole, 1)
    torn.unlink()
    zarr.open_group(died / "run.zarr", mode="r+").create_group("dump_0002")
    with pytest.raises(readback.DifferenceError, match="zarr-python should see"):
        readback.check_after_death(died, whole, 1)
