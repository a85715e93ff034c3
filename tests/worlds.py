"""Data sets with properties that several tests need."""

import numpy as np
from sklearn.metrics import roc_auc_score


def clusters(seed, groups=3, n=1200, k=4, d=40):
    """Binary features that hang together within a class: each class is a mixture of groups."""
    rng = np.random.default_rng(seed)
    y, group = rng.integers(0, k, n), rng.integers(0, groups, n)
    x = rng.random((n, d)) < rng.random((k, groups, d))[y, group]
    noisy = np.where(rng.random(n) < 0.25, rng.integers(0, k, n), y)
    return x.astype(int), y, noisy


def centres(seed=0, n=600, k=3, d=8, rate=0.3):
    """Normal features about a centre a class, and labels moved to the next class at a rate."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    x = rng.normal(0, 1, (n, d)) + 1.6 * rng.normal(0, 1, (k, d))[y]
    noisy = np.where(rng.random(n) < rate, (y + 1) % k, y)
    return x, y, noisy


def quality(e, y, noisy):
    """Share of suggestions that are right, AUC for finding wrong labels, error of the noise."""
    resp = e.label_posterior_
    k = resp.shape[1]
    rho = np.zeros((k, k))
    np.add.at(rho, (noisy, y), 1)
    auc = roc_auc_score(noisy != y, 1 - resp[np.arange(len(y)), noisy])
    return np.mean(resp.argmax(1) == y), auc, np.abs(e.noise_matrix_ - rho / rho.sum(0)).max()
