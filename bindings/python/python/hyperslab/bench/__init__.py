"""Benchmarks of this machine and this library: what ``hyperslab bench`` runs.

``entire`` holds one whole array against the limits of the machine; ``regret`` holds the library's own choice against
every strategy, over a sample of all that it is for.
"""
