"""Folds of the items of a graph that do not hang on the order of items and users.

A small graph is fitted a little differently with every other draw of the folds, and a shuffled file
is the same graph. So items are put into an order of their own before folds are drawn: by numbers
made of an item's label, its users, their other items and so on, as in colour refinement (Weisfeiler
and Leman 1968). Items that share a number are alike as far as the graph is seen from them.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from nbmodels.fitting.scores import draw_folds

#: Steps from an item to its users and back.
_STEPS = 3

#: Resolution at which labels, weights and numbers of edges are compared, in parts of one.
_PARTS = 1e6


def graph_folds(
    edges: sparse.csr_array,
    resp: Float[np.ndarray, "n k"],
    weights: Float[np.ndarray, " n"],
    n_folds: int,
) -> Int[np.ndarray, " n"]:
    """Fold of each item, every class spread evenly over the folds.

    Args:
        edges: ``(N, users)`` numbers of edges.
        resp: ``(N, K)`` the given labels, rows of zeros where there is none.
        weights: ``(N,)`` row weights.
        n_folds: number of folds.
    """
    order = np.argsort(numbers_of_items(edges, resp, weights), kind="stable")
    fold = np.empty(len(order), np.int32)
    fold[order] = draw_folds(resp[order], n_folds)
    return fold


def numbers_of_items(
    edges: sparse.csr_array, resp: Float[np.ndarray, "n k"], weights: Float[np.ndarray, " n"]
) -> Int[np.ndarray, " n"]:
    """A number for each item by what it is linked to; arguments as of :func:`graph_folds`.

    Sums of integers have no order.
    """
    columns = np.column_stack([resp, weights])
    counts = _whole_counts(edges)
    factors = whole_numbers_mixed(np.arange(1, columns.shape[1] + 1, dtype=np.uint64))
    own = whole_numbers_mixed((_whole(columns) * factors).sum(1, dtype=np.uint64))
    item = own
    for _ in range(_STEPS):
        item = whole_numbers_mixed(own + counts @ whole_numbers_mixed(counts.T @ item))
    return item


def numbers_of_users(
    edges: sparse.csr_array, items: Int[np.ndarray, " n"]
) -> Int[np.ndarray, " users"]:
    """A number for each user by the numbers of the user's items."""
    return whole_numbers_mixed(_whole_counts(edges).T @ items)


def _whole_counts(edges: sparse.csr_array) -> sparse.csr_array:
    counts = edges.copy()
    counts.data = _whole(edges.data)
    return counts


def _whole(values: Float[np.ndarray, "*s"]) -> Int[np.ndarray, "*s"]:
    return np.round(np.asarray(values, float) * _PARTS).astype(np.uint64)


def whole_numbers_mixed(numbers: Int[np.ndarray, "*s"]) -> Int[np.ndarray, "*s"]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014); overflow is meant."""
    z = numbers + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
