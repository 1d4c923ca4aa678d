"""Options that do not exist, and types that do not fit: each marked line is an error for mypy and pyright."""

import hyperslab as hs
import numpy as np

dist = hs.Distribution.block((4, 4), 1)
with hs.open("a.zarr", "w", durable=True) as store:
    store.write("a", np.ones((4, 4)), dist, chunk=(2, 2))  # wrong
    store.write("a", np.ones((4, 4)), distribution=dist)  # wrong
    store.write("a", np.ones((4, 4)), dist, casting="safe")  # wrong
    store.iwrite("a", np.ones((4, 4)), dist, stagged=True)  # wrong
    store.read("a", dist, sectoin=slice(2))  # wrong
    store["a"].read(dist, order="fortran")  # wrong
    store["a"].atrs["units"] = "m"  # wrong
    store.append("a", np.ones((1, 4)), dist, axes=0)  # wrong
    store.step("s", attribute={})  # wrong
    store.create_array("b", (4,), "f4", chunk=(2,))  # wrong
    store.steps.kepp(3)  # wrong
    hs.open("a.zarr", "w", durabel=True)  # wrong
    hs.open("a.zarr", mode="rw")  # wrong
    store.write("fine", np.ones((4, 4)), dist=dist, chunks=(2, 2), fill_value=0)
