"""An analysis as it is done in a notebook: one process, no MPI, cells from top to bottom."""

import sys

import hyperslab as hs
import numpy as np

path = sys.argv[1]

# %% Something to analyse.
with hs.open(path, "w") as made:
    made.attrs["title"] = "noise"
    for number in range(12):
        with made.step(f"step_{number}", attributes={"time": number / 4}) as step:
            step.write("rho", np.random.default_rng(number).normal(number, 1, (40, 30)), dimension_names=("y", "x"))

# %% What is there?
store = hs.open(path)
print(store, store.attrs, len(store.steps), "steps, the last is", store.steps.latest())
rho = store["step_11/rho"]
print(rho)
html = rho._repr_html_()

# %% Means of a few steps: only what is needed is read.
means = [store[f"{name}/rho"][::2, ::2].mean() for name in store.steps[-3:]]
print([round(mean) for mean in means])

# %% A profile, and some rows in any order.
profile = rho[:, 10]
rows = rho[[30, 2, 17]]
print(profile.shape, rows.shape, np.asarray(rho).std() < 2)

# %% Who would hold what?
dist = hs.Distribution(rho.shape, (2, 2), ("block", "cyclic(4)"))
html += dist._repr_html_()
print(dist, dist.local_shape(3), html.count("<table") + html.count("<svg") > 0)
store.close()
