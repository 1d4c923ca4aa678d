"""What others see: the dumps read and compared with NumPy, zarr-python and h5py only, never with hyperslab."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import zarr

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

FIELDS = ("density", "momentum_x", "momentum_y", "momentum_z", "energy", "potential")
PICTURES = ("density", "speed", "pressure", "potential")
HEADER = 24
"""Size of the six reals before the arrays [B]."""


class DifferenceError(Exception):
    """Two things that should be the same are not; the message says which, where and how."""


def steps(out: Path) -> list[str]:
    """Return the names of the steps that zarr-python sees in a run's store."""
    return sorted(zarr.open_group(out / "run.zarr", mode="r").group_keys())


def fields(out: Path, step: str) -> dict[str, NDArray[np.float64]]:
    """Return the six arrays of a step, in double precision."""
    group = zarr.open_group(out / "run.zarr" / step, mode="r")
    return {name: group[name][...] for name in FIELDS}


def file_names(number: int) -> list[str]:
    """Return the names of the files that a dump adds beside its step."""
    analysis = [f"analysis_{number:04d}.{end}" for end in ("raw", "h5")]
    return [*analysis, *(f"{name}_{number:04d}.raw" for name in PICTURES)]


def raw_fields(path: Path, shape: tuple[int, ...]) -> dict[str, NDArray[np.float32]]:
    """Return the six arrays of an analysis or restart file: global, column-major, one after another."""
    values = np.fromfile(path, "<f4", offset=HEADER)
    return {
        name: part.reshape(shape, order="F") for name, part in zip(FIELDS, np.split(values, len(FIELDS)), strict=True)
    }


def same(what: str, found: NDArray[Any], expected: NDArray[Any]) -> None:
    """Compare two arrays byte by byte."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        raise DifferenceError(f"{what}: expected {expected.dtype} {expected.shape}, found {found.dtype} {found.shape}")
    bits = f"u{found.dtype.itemsize}"
    differing = np.ascontiguousarray(found).view(bits) != np.ascontiguousarray(expected).view(bits)
    if differing.any():
        first = tuple(int(i[0]) for i in np.nonzero(differing))
        raise DifferenceError(
            f"{what}: {int(differing.sum())} of {differing.size} elements differ, the first at {first}: "
            f"expected {expected[first]!r}, found {found[first]!r}"
        )


def same_files(found: Path, expected: Path) -> None:
    """Compare two files byte by byte."""
    same(str(found), np.fromfile(found, np.uint8), np.fromfile(expected, np.uint8))


def check_after_death(out: Path, whole: Path, last: int) -> list[str]:
    """Check that a killed run shows only what is complete, and return the names of what it left unpublished.

    Parameters
    ----------
    out, whole
        Directories of the killed run and of the uninterrupted one.
    last
        Number of the last complete dump.
    """
    expected = [f"dump_{number:04d}" for number in range(last + 1)]
    if steps(out) != expected:
        raise DifferenceError(f"{out}: zarr-python should see the steps {expected}, but it sees {steps(out)}")
    published = {"run.zarr", "restart.raw", "costs.jsonl", "death.txt"}
    for number in range(last + 1):
        same_step(out, whole, expected[number])
        for name in file_names(number):
            same_files(out / name, whole / name)
            published.add(name)
    # Files of the dump that was interrupted are whole if they are there at all.
    for name in file_names(last + 1):
        if (out / name).exists():
            same_files(out / name, whole / name)
            published.add(name)
    # The restart file has an analysis file's content: of the last dump, or already of the interrupted one.
    restart = (out / "restart.raw").read_bytes()
    if restart not in [(whole / f"analysis_{number:04d}.raw").read_bytes() for number in (last, last + 1)]:
        raise DifferenceError(f"{out / 'restart.raw'}: it is neither that of dump {last} nor that of dump {last + 1}")
    left = [path for path in out.iterdir() if path.name not in published]
    left += [path for path in (out / "run.zarr").iterdir() if path.name not in {*expected, "zarr.json"}]
    return sorted(str(path.relative_to(out)) for path in left)


def same_step(out: Path, whole: Path, step: str) -> None:
    """Compare every byte of every array of a step with the uninterrupted run's."""
    reference = fields(whole, step)
    for name, found in fields(out, step).items():
        same(f"{out / 'run.zarr' / step / name}", found, reference[name])


def check_files(out: Path, last: int) -> int:
    """Check the files of a run against its steps, and return the number of files compared."""
    count = 0
    for number in range(last + 1):
        exact = fields(out, f"dump_{number:04d}")
        shape = exact["density"].shape
        files = [out / f"analysis_{number:04d}.raw"] + ([out / "restart.raw"] if number == last else [])
        for path in files:
            header = np.fromfile(path, "<f4", count=6)
            if tuple(header[:3]) != shape:
                raise DifferenceError(f"{path}: its header should begin with {shape}, but it is {header}")
            for name, found in raw_fields(path, shape).items():
                same(f"{path}: {name}", found, exact[name].astype("<f4"))
        with h5py.File(out / f"analysis_{number:04d}.h5") as data:
            for name in FIELDS:
                same(f"{data.filename}: {name}", data[name][...], exact[name].astype("<f4"))
        shades = np.fromfile(out / f"density_{number:04d}.raw", np.uint8, offset=HEADER).reshape(shape, order="F")
        density = exact["density"]
        for what, place in (("darkest", density.argmin()), ("brightest", density.argmax())):
            if shades.ravel()[place] != (0 if what == "darkest" else 255):
                raise DifferenceError(f"density_{number:04d}.raw: the {what} cell is not where the density has it")
        count += len(files) + 1 + len(PICTURES)
    return count
