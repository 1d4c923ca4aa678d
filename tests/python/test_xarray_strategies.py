"""Variables that xarray's own strategies make, written by xarray to netCDF-4 and Zarr, are what we read.

The seed is fixed. More examples: ``XARRAY_EXAMPLES=2000 pytest tests/python/test_xarray_strategies.py``.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import hyperslab as hs
import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import HealthCheck, Phase, given, seed, settings
from xarray.testing.strategies import variables

from attribute_cases import told
from turns_model import native, same

EXAMPLES = int(os.environ.get("XARRAY_EXAMPLES", "60"))
SETTINGS = settings(
    max_examples=EXAMPLES,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)


def attributes_in(path: Path, name: str) -> dict[str, Any]:
    """Attributes as the library gives them that owns the format."""
    if path.suffix == ".zarr":
        return dict(zarr.open_group(path, mode="r")[name].attrs)
    with netCDF4.Dataset(path) as data:
        return {each: data[name].getncattr(each) for each in data[name].ncattrs()}


def written(variable: xr.Variable, path: Path) -> str | None:
    """The variable in a file or store; why that has no place for it, if so."""
    try:
        data = xr.Dataset({"variable": variable})
        if path.suffix == ".zarr":
            data.to_zarr(path)
        else:
            data.to_netcdf(path, engine="netcdf4")
    except (TypeError, ValueError) as error:
        return type(error).__name__
    return None


def read_by_us(variable: xr.Variable, path: Path, attributes: dict[str, Any], comm: Any) -> None:
    """Type, dimensions, attributes and elements, by some ranks."""
    values = native(variable.values)
    with hs.open(path, comm=comm) as file:
        found = file["variable"]
        assert (found.dimension_names or ()) == variable.dims
        assert told({name: value for name, value in found.attrs.items() if name != "_FillValue"}) == told(attributes)
        dist = hs.Distribution(values.shape, (comm.size,), ("block",) + ("*",) * (values.ndim - 1))
        part = values[dist.slices(comm.rank)] if values.ndim else values
        same(
            np.ascontiguousarray(file.read("variable", dist if values.ndim else None)).reshape(part.shape), part, "ours"
        )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("end", ["nc", "zarr"])
def test_variables_of_xarrays_own_strategies(end: str, tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    path = tmp_path / f"a.{end}"

    @seed(20261130)
    @SETTINGS
    @given(variables())
    def run(variable: xr.Variable) -> None:
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)
        if (why := written(variable, path)) is not None:
            counts[f"xarray: {why}"] += 1
            return
        attributes = attributes_in(path, "variable")
        # xarray writes that of floats in Zarr in base 64, and we read it as the number that it is.
        fill = attributes.pop("_FillValue", None)
        with hs.open(path) as file:
            ours = file["variable"].attrs.get("_FillValue")
            assert (ours is None) == (fill is None)
            assert isinstance(fill, str) or told(ours) == told(fill)
        hs.threads(3, lambda comm: read_by_us(variable, path, attributes, comm))
        counts[variable.dtype.kind] += 1

    run()
    print(dict(counts))
    assert sum(count for name, count in counts.items() if len(name) == 1) > EXAMPLES // 4
