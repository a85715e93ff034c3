"""How much oftener than by chance two votes on an item agree: without it votes show no class."""

from __future__ import annotations

import numpy as np

from nbmodels.fitting.vote_dependence import VoteTable

#: Votes by all annotators' shares of labels that an annotator's own are shrunk by.
_SHRUNK = 5.0

#: Fewest items with two votes, whose spread is the standard error.
_FEWEST = 20


def beyond_chance(votes: VoteTable, n_workers: int, n_labels: int) -> float:
    """Standard errors by which votes on an item agree more often than independent ones would.

    By chance two annotators agree as often as their shares of labels have it. Items are
    independent of each other.

    Args:
        votes: on all items.
        n_workers: number of annotators.
        n_labels: number of classes that a vote may name.

    Returns:
        NaN where hardly any items have two votes.
    """
    weight = votes.weight
    cells = votes.worker * n_labels + votes.label
    named = np.bincount(cells, weight, n_workers * n_labels).reshape(-1, n_labels)
    overall = named.sum(0) / max(named.sum(), 1e-12)
    shares = (named + _SHRUNK * overall) / (named.sum(1, keepdims=True) + _SHRUNK)
    each = weight[:, None] * shares[votes.worker]
    alike = _pairs(votes.by_label(n_labels), np.bincount(votes.row, weight**2, votes.n_items))
    chance = _pairs(
        votes.summed(each), np.bincount(votes.row, np.square(each).sum(1), votes.n_items)
    )
    gain = (alike - chance)[np.bincount(votes.row, minlength=votes.n_items) > 1]
    spread = float(np.sqrt(np.square(gain).sum()))
    return float(gain.sum()) / spread if len(gain) >= _FEWEST and spread > 0 else np.nan


def _pairs(sums: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Sums over the pairs of an item's votes of their products, from sums over its votes."""
    return (np.square(sums).sum(1) - own) / 2
