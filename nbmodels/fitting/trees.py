"""Extremely randomised trees, where classes are thresholds of a few columns among many.

Kernels are smooth in all columns at once, and an additive model knows no interaction; trees cut
columns one by one (Geurts, Ernst and Wehenkel 2006). All columns are candidates of a cut: of some
at random, few informative columns among hundreds would hardly be cut at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax, xlogy

from nbmodels.fitting.nonlinear_classifier import Basis
from nbmodels.fitting.nonlinear_sample import Learn, Sample, Way, out_of_fold
from nbmodels.fitting.paired_gains import surely

#: Trees, and standard errors by which labels must be likelier. Of 60 to 120 rows of normal classes
#: they were by 1.6 to 1.9 where chance had it, and right changes of labels were not made.
_TREES, _SURELY = 30, 2.0

#: The same of a first look, and rows of it at least, or cells times classes at most beyond these.
_FEW_TREES, _PROMISING, _FEW_ROWS, _FEW_CELLS = 15, 0.5, 300, 200_000

#: Share of what a classifier without trees adds to the labels' log-probability that trees must add
#: besides (McFadden's pseudo-R squared). Where these add little, they blur borders, and noise on
#: their scores is understated: of rings with 20 % wrong labels 13 % were found.
_MORE = 0.1

#: Slopes of predictions and error rates that are compared.
_SLOPES, _RATES = np.logspace(0, 1.5, 10), (0.0, 0.1, 0.2, 0.35, 0.5)

#: Weight of a leaf in rows at least, and leaves of a tree at most. With five rows trees know their
#: own labels, wrong ones, too: of the training rows 74 to 95 % were predicted right, 87 to 97 with
#: ten, and of new ones as many.
_LEAF, _LEAVES = 10, 200

#: Cells times classes that a level of a tree looks at: beyond, a cut is of columns at random.
_CELLS = 1_000_000


def with_trees(best: Way, sample: Sample) -> Way:
    """A way, or its mean with trees, or trees alone, by which held-out labels are likeliest.

    Smooth surfaces and steps err in different places, so that their mean is seldom the worse one.
    Few trees, of a part of many rows, first show whether it may be the better one.

    Args:
        best: predictions without trees.
        sample: what they were learned from.
    """
    some = sample.part(max(_FEW_ROWS, _FEW_CELLS // sample.x.shape[1] // sample.target.shape[1]))
    own = best[0] if some is sample else out_of_fold(best[1], some)
    both = (own + out_of_fold(partial(_trees, _FEW_TREES), some)) / 2
    if not _better(both, own, some, _PROMISING):
        return best
    trees = partial(_trees, _TREES)
    alone = out_of_fold(trees, sample)
    both = (best[0] + alone) / 2
    if not _better(both, best[0], sample, _SURELY):
        return best
    weights = sample.weights[sample.fold >= 0]
    found: list[Way] = [(both, partial(_mean, best[1], trees)), (alone, trees)]
    return max(found, key=lambda one: float(weights @ sample.held_out(one[0])))


def _better(
    out: Float[np.ndarray, "n k"], other: Float[np.ndarray, "n k"], sample: Sample, errors: float
) -> bool:
    """Whether labels are surely likelier, by enough, and likelier than under one error rate, too.

    Out-of-fold predictions of labels are calibrated without noise; the others with one error rate
    besides, which explains labels as well wherever their errors are at random.
    """
    weights = sample.weights[sample.fold >= 0]
    found, before = sample.held_out(out), sample.held_out(other)
    lead = float(np.average(found - before, weights=weights))
    if lead <= _MORE * _information(before, sample) or not surely(found - before, weights, errors):
        return False
    return bool(weights @ (found - _under_one_rate(other, sample)) > 0)


def _information(held_out: Float[np.ndarray, " m"], sample: Sample) -> float:
    """Nats by which a held-out label is likelier than by the class shares; zero if it is not."""
    known = sample.fold >= 0
    weights, target = sample.weights[known], sample.target[known]
    shares = np.average(target, axis=0, weights=weights)
    return max(float(np.average(held_out, weights=weights) - xlogy(shares, shares).sum()), 0.0)


def _under_one_rate(out: Float[np.ndarray, "n k"], sample: Sample) -> Float[np.ndarray, " m"]:
    """``(m,)`` log-probability of each label by out-of-fold predictions and one error rate.

    Temperature and error rate are the likeliest of the other folds' labels.
    """
    known = sample.fold >= 0
    fold, target, weights = sample.fold[known], sample.target[known], sample.weights[known]
    scores = out[known] - out[known].max(1, keepdims=True)
    ways = []
    for slope in _SLOPES:
        probs = np.maximum(softmax(slope * scores, axis=1), np.finfo(float).tiny)
        ways += [np.sum(target * np.log((1 - r) * probs + r / probs.shape[1]), 1) for r in _RATES]
    logs = np.stack(ways)
    found = np.empty(len(fold))
    for f in np.unique(fold):
        here = fold == f
        found[here] = logs[np.argmax(logs[:, ~here] @ weights[~here])][here]
    return found


@dataclass(frozen=True)
class Trees:
    """Shares of the classes in the leaves of new rows, averaged over trees.

    Attributes:
        order: columns in an order that does not depend on their positions, by which cuts are drawn.
        forest: multi-output regression of the classes' indicators.
    """

    order: Int[np.ndarray, " d"]
    forest: Any

    @classmethod
    def learned(
        cls,
        shares: Float[np.ndarray, "n d"],
        target: Float[np.ndarray, "n k"],
        weights: Float[np.ndarray, " n"],
        n_trees: int,
    ) -> Trees:
        """From rows with a label.

        Args:
            shares: share of the rows below each cell, see
                :func:`nbmodels.fitting.nonlinear_classifier.shares_below`.
            target: indicators of the labels or P(class).
            weights: row weights.
            n_trees: how many.
        """
        from sklearn.ensemble import ExtraTreesRegressor  # takes .1 s to import

        here = weights > 0
        shares, target, weights = shares[here], target[here], weights[here]
        (n, d), k = shares.shape, target.shape[1]
        forest = ExtraTreesRegressor(
            n_trees,
            min_weight_fraction_leaf=min(max(_LEAF / weights.sum(), 1 / _LEAVES), 0.5),
            max_features=min(max(_CELLS // (n * k), round(np.sqrt(d))), d),
            random_state=0,
        )
        order = np.lexsort(shares)
        return cls(order, forest.fit(shares[:, order], target, weights))

    def __call__(
        self, x: Float[np.ndarray, "n d"], shares: Float[np.ndarray, "n d"]
    ) -> Float[np.ndarray, "n k"]:
        """Of new rows, by the shares of the training rows below their cells."""
        found: np.ndarray = self.forest.predict(shares[:, self.order])
        return found


@dataclass(frozen=True)
class _Both:
    """Two bases, one beside the other."""

    first: Basis
    second: Basis

    def __call__(self, x: np.ndarray, shares: np.ndarray) -> np.ndarray:
        return np.hstack([self.first(x, shares), self.second(x, shares)])


def _mean(one: Learn, other: Learn, sample: Sample) -> tuple[_Both, Float[np.ndarray, "m k"]]:
    """What is learned in two ways, averaged."""
    (first, table), (second, beside) = one(sample), other(sample)
    return _Both(first, second), np.concatenate([table, beside]) / 2


def _trees(n_trees: int, sample: Sample) -> tuple[Trees, Float[np.ndarray, "k k"]]:
    known = sample.fold >= 0
    about = sample.shares[known], sample.target[known], sample.weights[known]
    return Trees.learned(*about, n_trees), np.eye(sample.target.shape[1])
