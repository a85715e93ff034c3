"""Order in which given labels are to be checked: ranks by several detectors, averaged.

A cross-fitted model that takes errors to be independent of the features finds few of those that
follow them: it ranks labels by how the classes overlap. The other end, a model without overlap
(:mod:`nbmodels.fitting.separable`), ranks them by how an item's neighbours are labelled. A noise
matrix that found no errors of a class hides those that follow the features, and a class that took
labels from others has too high a share, by which all of them are plausible: the likelihood ratio of
the best other class to the given one, by the scores, knows neither. Ranks are averaged where it is
not known which detector is right, since their probabilities are not on one scale. A joint fit,
whose features pass their own checks, ranks alone.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.stats import rankdata

from nbmodels.core.model import PRIOR
from nbmodels.fitting.fitted_model import FittedModel, given_codes
from nbmodels.fitting.nearest import MOST_ASKED
from nbmodels.fitting.separable import Separable

#: Weight of the ranks by the neighbours beside those by the fit: they agree on errors that alike
#: rows share. Measured in six kinds of label errors (``benchmarks/records/ends.md``).
_NEIGHBOURS = 0.5

#: Gain of held-out labels, in nats an item, below which an end says next to nothing.
_LEAST_GAIN = 1e-3


def suspicion(
    fitted: FittedModel, p_wrong: Float[np.ndarray, " n"], changed: Bool[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    """How soon a label is to be checked; larger is sooner.

    Where the fit is cross-fitted and the neighbours of all labelled items were asked for (up to
    2,000), the mean of the ranks by P(wrong), by the scores' likelihood ratio and by the neighbours
    (half the weight of the fit's, less where they predict less of the given labels than the fit).
    Labels that the fit changes come first.

    Args:
        fitted: a fit to a table.
        p_wrong: ``(N,)`` probability that the given label is wrong, NaN where none is given.
        changed: ``(N,)`` whether another label is suggested.

    Returns:
        ``(N,)``; NaN where no label is given.
    """
    other, scores = fitted.separable, fitted.data.parts.get(PRIOR)
    known = np.flatnonzero(np.isfinite(p_wrong))
    if other is None or scores is None or len(known) > MOST_ASKED:
        return p_wrong
    own, near = np.full((2, len(p_wrong)), np.nan)
    ratios = _likelihood_ratios(np.asarray(scores, float), given_codes(fitted))
    ranks = rankdata(p_wrong[known])
    by_ratio = rankdata(ratios[known], nan_policy="omit")  # rows of weight 0 have none
    own[known] = (ranks + np.where(np.isnan(by_ratio), ranks, by_ratio)) / 2 / len(known)
    right = other.resp[np.arange(len(other.rows)), other.codes]
    near[:] = own  # where an item is near no other
    near[other.rows] = rankdata(-right) / len(right)
    weight = _NEIGHBOURS * _weight(fitted, other)
    return (own + weight * near) / (1 + weight) + changed


def _likelihood_ratios(
    logs: Float[np.ndarray, "rows k"], codes: Int[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    """Log of the best other class's likelihood by the given one's.

    Class probabilities hold the shares of the labels, by which a class that took labels from others
    is plausible everywhere: they are divided by them.

    Args:
        logs: log-probabilities of the classes, of as many rows as there are codes or more.
        codes: ``(n,)`` given labels, negative where missing.

    Returns:
        ``(n,)``; NaN without a label.
    """
    known = np.flatnonzero(codes >= 0)
    shares = np.bincount(codes[known], minlength=logs.shape[1])
    with np.errstate(divide="ignore"):  # a class without labels is no alternative
        logs = np.where(shares > 0, logs[known] - np.log(shares), -np.inf)
    given = np.arange(logs.shape[1]) == codes[known, None]
    found = np.full(len(codes), np.nan)
    found[known] = np.max(np.where(given, -np.inf, logs), 1) - np.sum(logs, 1, where=given)
    return found


def _weight(fitted: FittedModel, other: Separable) -> float:
    """What neighbours predict of the given labels by what the fit does, at most 1."""
    if fitted.held_out_scores is None:
        return 1.0
    own = fitted.held_out_scores[other.rows]
    rows = np.isfinite(own)
    weights = other.weights * rows
    if not weights.sum():
        return 1.0
    shares = np.bincount(other.codes, other.weights) / other.weights.sum()
    alone = np.log(shares[other.codes])
    theirs, ours = (
        float(np.average(np.where(rows, logs - alone, 0), weights=weights))
        for logs in (other.without_own, own)
    )
    return float(np.clip(theirs / max(ours, _LEAST_GAIN), 0, 1))
