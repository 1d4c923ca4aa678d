"""The picture of the collapse, from dumps read back with xarray and zarr-python."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
import xarray
import zarr

mpl.use("Agg")
import matplotlib.pyplot as plt

if TYPE_CHECKING:
    from pathlib import Path


def draw(out: Path, steps: list[str], path: Path) -> None:
    """Draw one column per step: above the density averaged along z, below a cut through the middle of the box."""
    figure, axes = plt.subplots(
        2, len(steps), figsize=(2.9 * len(steps), 6.3), squeeze=False, layout="constrained", facecolor="black"
    )
    for column, step in enumerate(steps):
        dataset = xarray.open_zarr(out / "run.zarr", group=step, consolidated=False)
        above = dataset["density"].mean("z").transpose("y", "x").values
        array = zarr.open_group(out / "run.zarr", mode="r")[step]["density"]
        below = array[:, :, array.shape[2] // 2].T
        for row, (values, low, high) in enumerate([(above, 0.1, 12.0), (below, 0.1, 60.0)]):
            plot = axes[row, column]
            plot.imshow(
                np.log(values), origin="lower", cmap="inferno", vmin=np.log(low), vmax=np.log(high),
                interpolation="bicubic",
            )  # fmt: skip
            plot.set_axis_off()
        title = f"step {dataset.attrs['step']}, time {dataset.attrs['time']:.3f}"
        axes[0, column].set_title(title, color="white", fontsize=11)
    axes[0, 0].text(4, 4, "mean along z", color="white", fontsize=9)
    axes[1, 0].text(4, 4, "cut at mid-height", color="white", fontsize=9)
    figure.savefig(path, dpi=110, facecolor="black")
    plt.close(figure)
