"""A dataset of xarray, written in parallel with coordinates and attributes, and read back by xarray."""

import sys

import hyperslab as hs
import numpy as np
import xarray
from mpi4py import MPI

comm = MPI.COMM_WORLD
path = sys.argv[1]
y, x = np.linspace(-90, 90, 19), np.arange(0, 360, 10.0)
dist = hs.Distribution((y.size, x.size), (comm.size,), ("block", "*"))
temperature = 15 + np.add.outer(np.cos(np.radians(y)), np.sin(np.radians(x)))

with hs.open(path, "w", comm=comm) as store:
    store.attrs.update(title="air", Conventions="CF-1.8")
    fields = {"t": (("lat", "lon"), temperature[dist.slices(comm)].copy(), {"units": "degC"})}
    store.write(fields, dist, dtype="f4", fill_value=np.nan)
    axes = {"lat": (("lat",), y, {"units": "degrees_north"}), "lon": (("lon",), x, {"units": "degrees_east"})}
    everybody = {name: hs.Distribution.replicated((axis[1].size,), comm.size) for name, axis in axes.items()}
    store.write(axes, everybody)
    store.consolidate()

if comm.rank == 0:
    data = xarray.open_zarr(path)
    assert data.attrs == {"title": "air", "Conventions": "CF-1.8"}
    assert data.t.dims == ("lat", "lon")
    assert data.t.attrs["units"] == "degC"
    assert np.allclose(data.t.sel(lat=0, lon=90), temperature[9, 9])
    assert data.lat.attrs == {"units": "degrees_north"}
    data.assign(kelvin=data.t + 273.15)[["kelvin"]].drop_encoding().to_zarr(path + "-theirs", consolidated=False)
comm.barrier()
with hs.open(path + "-theirs", comm=comm) as store:
    kelvin = store["kelvin"].read(dist)
    assert np.allclose(kelvin, temperature[dist.slices(comm)] + 273.15, atol=1e-4)
    if comm.rank == 0:
        print(sorted(store), store["kelvin"].dimension_names)
