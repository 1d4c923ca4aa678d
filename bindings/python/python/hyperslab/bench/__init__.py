"""Benchmarks of this machine and this library: what ``hyperslab bench`` runs.

``entire`` holds one whole array against the limits of the machine; ``regret`` holds the library's own choice against
every strategy, over a sample of all that it is for; ``formats`` holds the formats against each other and h5py.

Of the latter, ``_sweep`` and ``_families`` say which cases there are, ``_campaign`` draws them into the time there is
(``_estimates``), ``_grid`` says in which ways each is done, ``_regret_ranks`` measures and ``_scoring`` judges. Nothing
there is known to the planner, and the grid is not taken from it.
"""
