"""The plain classifier: features calibrated to the labels as they are given, without noise.

It is what anybody would use who trusts the labels, and the floor of every fit: where the labels
give no evidence for more, new items are predicted by it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import expit

from nbmodels.fitting.design_effect import of_groups

#: Slopes that are compared.
_SLOPES = np.logspace(-2, 1, 31)


class PlainClassifier(NamedTuple):
    """Scores with one slope and the shares of the given classes.

    Attributes:
        calibration: ``(1 + K,)`` log-slope and biases, as
            :class:`nbmodels.class_priors.Calibration` reads them.
        held_out: ``(N,)`` log-probability of each item's given label, by a slope that was learned
            without it; 0 without a label.
    """

    calibration: Float[np.ndarray, " k1"]
    held_out: Float[np.ndarray, " n"]


def plain_classifier(
    scores: Float[np.ndarray, "n k"],
    given: Float[np.ndarray, "n k"],
    weights: Float[np.ndarray, " n"],
    fold: Int[np.ndarray, " n"],
    shares: bool,
) -> PlainClassifier:
    """Temperature scaling of out-of-fold scores to the given labels (Guo et al. 2017).

    Args:
        scores: of each item, by a fit that did not see its label.
        given: the labels as responsibilities; rows of zeros where there is none.
        weights: row weights.
        fold: fold of each item.
        shares: whether the shares of the classes are to be added: emissions do not hold them.
    """
    k = scores.shape[1]
    counts = weights @ given
    # one pseudo-label in all, so that a class without labels keeps a finite score
    bias = np.log((counts + 1 / k) / (counts.sum() + 1)) if shares else np.zeros(k)
    own, scores = weights[:, None] * given, scores + bias
    scores = scores - scores.max(1, keepdims=True)
    size, known = own.sum(1), (own * scores).sum(1)
    # the largest of each row is 0
    of_slope = cache(
        lambda t: _SLOPES[t] * known - size * np.log(np.exp(_SLOPES[t] * scores).sum(1))
    )
    held_out = np.zeros(len(scores))
    for f in np.unique(fold):
        here = fold == f
        held_out[here] = of_slope(_best_slope(of_slope, ~here))[here]
    slope = _SLOPES[_best_slope(of_slope, np.ones(len(scores), bool))]
    some = np.where(weights > 0, weights, 1)
    return PlainClassifier(np.concatenate([[np.log(slope)], slope * bias]), held_out / some)


def _best_slope(
    of_slope: Callable[[int], Float[np.ndarray, " n"]], rows: Bool[np.ndarray, " n"]
) -> int:
    """The likeliest slope, by bisection: log-likelihoods are concave in it."""
    low, high = 0, len(_SLOPES) - 1
    while low < high:
        middle = (low + high) // 2
        if of_slope(middle + 1)[rows].sum() > of_slope(middle)[rows].sum():
            low = middle + 1
        else:
            high = middle
    return low


def at_odds(probability: float, odds: float) -> float:
    """A probability that held at even odds beforehand, at other ones."""
    return odds * probability / (odds * probability + 1 - probability)


def pseudo_bma(
    scores: Float[np.ndarray, " n"],
    others: Float[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
    groups: Int[np.ndarray, " n"] | None = None,
) -> float:
    """Posterior probability of a model beside another, at even odds beforehand.

    The gain in nats is a log Bayes factor by cross-validation; it is uncertain by its standard
    error (Yao et al. 2018, Bayesian Analysis 13; the logistic function averaged over a normal as by
    MacKay 1992, Neural Computation 4).

    Args:
        scores: log-probability of each label under the model, by a fit that did not see it.
        others: the same under the other model.
        weights: row weights, 0 without a label; a row of weight 2 counts as two.
        groups: see :func:`nbmodels.fitting.holdout.compare_scores`.
    """
    gain = scores - others
    n = max(float(weights.sum()), 1.0)
    total = float(weights @ gain)
    gaps = gain - total / n
    spread = float(weights @ np.square(gaps))
    if groups is not None:
        n = max(float(np.count_nonzero(of_groups(weights, groups))), 1.0)
        spread = float(np.square(of_groups(weights * gaps, groups)).sum())
    variance = spread * n / max(n - 1, 1)
    return float(expit(total / np.sqrt(1 + np.pi * variance / 8)))
