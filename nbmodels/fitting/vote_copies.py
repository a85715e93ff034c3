"""Annotators who copy one another: found without a model of classes, and weighted by their number.

Given the class, let votes be independent. With two classes, or with one accuracy for all classes,
the chance-corrected agreement of a pair (the numerator of Cohen's kappa) is then a product
``s[a] s[b]`` of one number an annotator: the matrix of agreements has rank one off its diagonal
(Dalvi et al. 2013; Bonald and Combes 2017). A pair that agrees more than such a product says shares
more than the class. The fit is robust (Cauchy weights), so that a few copies do not become the
measure of all others; items of unequal difficulty, and matrices that all share, leave the rank as
it is. What else the product does not explain widens the limit of the test.

A model of annotators cannot judge that from its own fit: where two copy, it takes them for the only
accurate ones, and their agreement is then expected.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import sparse, stats
from scipy.sparse.csgraph import connected_components

from nbmodels.fitting.vote_dependence import VoteTable

#: Level of the test of all pairs together, by Bonferroni's correction.
_LEVEL = 0.01

#: Fewest items that a pair must share, and least share of the possible excess of agreement.
_LEAST_SHARED, _LEAST_EXCESS = 10, 0.2

#: Most annotators whose pairs are looked at: all pairs are held in memory.
_MOST_ANNOTATORS = 2_000

#: Rounds of reweighting, and residuals in standard errors from where weights fall.
_ROUNDS, _TURN = 100, 2.0

_TINY = 1e-9


@dataclass(frozen=True)
class VoteCopies:
    """Annotators who agree more often than independence given the class allows.

    Attributes:
        pairs: data frame with ``first`` and ``second`` (codes of annotators), ``shared`` items,
            ``agreement``, the ``expected`` one and ``z``, worst first.
        cluster: ``(W,)`` number of the group of copies of each annotator, its own where alone.
        power: ``(W,)`` power of an annotator's votes, 1 without copies; the design effect
            ``1 / (1 + (m - 1) r)`` of ``m`` votes of a group on an item, with their correlation.
    """

    pairs: pd.DataFrame
    cluster: np.ndarray
    power: Float[np.ndarray, " w"]

    @property
    def some(self) -> bool:
        """Whether there is a pair."""
        return len(self.pairs) > 0


def find_copies(votes: VoteTable, n_annotators: int, n_observed: int) -> VoteCopies:
    """Pairs who copy, tested at 1 % for all pairs together, with what their votes are worth.

    Args:
        votes: on any items; at most 2,000 annotators are looked at.
        n_annotators: W.
        n_observed: number of labels.
    """
    w = n_annotators
    none = pd.DataFrame(columns=["first", "second", "shared", "agreement", "expected", "z"])
    alone = VoteCopies(none, np.arange(w), np.ones(w))
    if not 4 <= w <= _MOST_ANNOTATORS:
        return alone
    shared, agreement, chance = _agreements(votes, w, n_observed)
    # who always names one label agrees by chance only
    informative = (shared >= _LEAST_SHARED) & (chance < 1 - 1e-6) & ~np.eye(w, dtype=bool)
    excess = agreement - chance
    fitted, error = _rank_one(excess, chance, shared, informative)
    first, second = np.nonzero(np.triu(informative, 1))
    if not len(first):
        return alone
    z = ((excess - fitted) / error)[first, second]
    scale = max(1.0, 1.4826 * float(np.median(np.abs(z))))
    room = np.maximum(1 - chance - fitted, _TINY)
    correlation = np.clip((excess - fitted) / room, 0, 1)
    beyond = z / scale > stats.norm.isf(_LEVEL / len(first))
    beyond &= correlation[first, second] > _LEAST_EXCESS
    if not beyond.any():
        return alone
    first, second, z = first[beyond], second[beyond], z[beyond] / scale
    at = (first, second)
    pairs = pd.DataFrame(
        {
            "first": first,
            "second": second,
            "shared": shared[at].astype(int),
            "agreement": agreement[at],
            "expected": (chance + fitted)[at],
            "z": z,
        }
    )
    pairs = pairs.sort_values("z", ascending=False, kind="stable").reset_index(drop=True)
    edges = sparse.coo_array((np.ones(len(first)), at), (w, w))
    cluster = connected_components(edges, directed=False)[1]
    return VoteCopies(pairs, cluster, _powers(correlation, shared, cluster))


def _agreements(votes: VoteTable, w: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``(W, W)`` shared items, share of equal votes on them, and what chance would give."""
    by_label = [
        sparse.coo_array(
            (np.ones(here.sum()), (votes.row[here], votes.worker[here])), (votes.n_items, w)
        ).tocsr()
        for here in (votes.label == label for label in range(k))
    ]
    every = sum(by_label[1:], by_label[0])
    shared = (every.T @ every).toarray()
    number = np.maximum(shared, 1)
    agreement, chance = np.zeros((w, w)), np.zeros((w, w))
    for one in by_label:
        agreement += (one.T @ one).toarray() / number
        named = (one.T @ every).toarray() / number
        chance += named * named.T
    return shared, agreement, chance


def _rank_one(
    excess: np.ndarray, chance: np.ndarray, shared: np.ndarray, used: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """``(W, W)`` robust fit of rank one off the diagonal, and standard errors of its residuals."""
    base = np.where(used, shared, 0.0)
    robust = np.ones_like(base)
    total = (base * excess).sum(1)
    size = np.maximum(base.sum(1), _TINY)
    mean = max(total.sum() / max(size.sum(), _TINY), _TINY)
    s = np.clip(total / size / np.sqrt(mean), 0.01, 1)
    fitted, error = np.outer(s, s), np.ones_like(base)
    for _ in range(_ROUNDS):
        weight = base * robust
        new = (weight * excess) @ s / np.maximum(weight @ s**2, _TINY)
        # damped: all annotators move at once
        s = 0.5 * s + 0.5 * np.clip(new, -1, 1)
        fitted = np.outer(s, s)
        expected = np.clip(chance + fitted, 0.02, 0.98)
        error = np.sqrt(expected * (1 - expected) / np.maximum(shared, 1))
        robust = 1 / (1 + ((excess - fitted) / error / _TURN) ** 2)
    return fitted, error


def _powers(correlation: np.ndarray, shared: np.ndarray, cluster: np.ndarray) -> np.ndarray:
    """``(W,)`` powers of votes: design effects within the groups of copies."""
    same = (cluster[:, None] == cluster) & ~np.eye(len(cluster), dtype=bool)
    own = np.maximum(np.diag(shared), 1)
    partners = np.where(same, shared, 0).sum(1) / own
    size = np.maximum(np.where(same, shared, 0).sum(1), _TINY)
    within = np.where(same, shared * correlation, 0).sum(1) / size
    return 1 / (1 + partners * within)
