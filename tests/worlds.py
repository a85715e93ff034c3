"""Data sets with properties that several tests need."""

import numpy as np


def clusters(seed, groups=3, n=1200, k=4, d=40):
    """Binary features that hang together within a class: each class is a mixture of groups."""
    rng = np.random.default_rng(seed)
    y, group = rng.integers(0, k, n), rng.integers(0, groups, n)
    x = rng.random((n, d)) < rng.random((k, groups, d))[y, group]
    noisy = np.where(rng.random(n) < 0.25, rng.integers(0, k, n), y)
    return x.astype(int), y, noisy
