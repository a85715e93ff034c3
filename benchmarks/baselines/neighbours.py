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


def relaxation_labels(
    edges: Any, labels: np.ndarray, n_classes: int, steps: int = 99, decay: float = 0.99
) -> np.ndarray:
    """wvRN with relaxation labelling (Macskassy and Provost 2007, section 3.5.2).

    Estimates begin at the labels. In every step each item takes what its neighbours' estimates and
    its own label say, mixed with its own estimate, whose share grows as the steps are annealed. All
    labels may be wrong here, so that none is clamped: an item's own label counts as one neighbour
    more. Without it, all items of a connected graph end in one class.

    Args:
        edges: as for :func:`weighted_vote`.
        labels: as there.
        n_classes: K.
        steps: number of steps.
        decay: factor of the neighbours' share at each step, which begins at one.

    Returns:
        ``(N, K)`` estimates; those of an item without neighbours stay at its label.
    """
    graph = sparse.csr_array(edges).astype(float)
    given = np.zeros((len(labels), n_classes))
    known = np.flatnonzero(labels >= 0)
    given[known, labels[known]] = 1
    own = np.asarray(graph.multiply(graph).sum(1)).reshape(-1, 1)
    estimate, share = given, 1.0
    for _ in range(steps):
        votes = np.asarray(graph @ (graph.T @ estimate)) - own * estimate
        votes = np.maximum(votes, 0) + given  # differences of equal sums may round below zero
        total = votes.sum(1, keepdims=True)
        heard = np.where(total > 0, votes / np.where(total > 0, total, 1), estimate)
        estimate = share * heard + (1 - share) * estimate
        share *= decay
    return estimate
