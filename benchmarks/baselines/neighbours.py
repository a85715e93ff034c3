"""Weighted-vote relational neighbours: an item is what its users' other items are."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse


def weighted_vote(edges: Any, labels: np.ndarray, n_classes: int) -> np.ndarray:
    """wvRN (Macskassy and Provost 2007), as Algorithm 2 of Maystre et al. 2021.

    Args:
        edges: ``(N, users)`` numbers of edges, dense or sparse.
        labels: ``(N,)`` integers in ``0..n_classes-1``, negative where an item has no vote.
        n_classes: K.

    Returns:
        ``(N, K)`` votes; ``argmax`` over axis 1 is the prediction. An item without neighbours has a
        row of zeros, and the algorithm then says class 0: keep its label instead.
    """
    graph = sparse.csr_array(edges).astype(float)
    cast = np.zeros((len(labels), n_classes))
    known = np.flatnonzero(labels >= 0)
    cast[known, labels[known]] = 1
    own = np.asarray(graph.multiply(graph).sum(1)).reshape(-1, 1)
    return np.asarray(graph @ (graph.T @ cast)) - own * cast
