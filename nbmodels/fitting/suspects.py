"""Order in which given labels are to be checked: ranks by several detectors, averaged.

A cross-fitted model that takes errors to be independent of the features finds few of those that
follow them: it ranks labels by how the classes overlap. The other end, a model without overlap
(:mod:`nbmodels.fitting.separable`), ranks them by how an item's neighbours are labelled. A noise
matrix that found no errors of a class hides those that follow the features, and a class that took
labels from others has too high a share, by which all of them are plausible: the likelihood ratio of
the best other class to the given one, by the scores, knows neither. A nonlinear classifier of other
items' labels ranks a label by its probability to the share of its class (pointwise mutual
information). Ranks are averaged where it is not known which detector is right, since their
probabilities are not on one scale. A joint fit, whose features pass their own checks, ranks alone.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    2,000), the mean of the ranks by P(wrong), by the scores' likelihood ratio, by a nonlinear
    classifier and by the neighbours (half the weight of the others). These two count less where
    they predict less of the given labels than the fit. Labels that the fit changes come first.

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
    codes = given_codes(fitted)
    right = np.full(len(codes), np.nan)
    right[other.rows] = other.resp[np.arange(len(other.rows)), other.codes]
    ratios = _likelihood_ratios(np.asarray(scores, float), codes)
    ranks, weights = [_ranked(p_wrong, known), _ranked(ratios, known)], [1.0, 1.0]
    plain = fitted.reference_held_out
    if plain is not None:
        ranks.append(_ranked(_log_shares(codes) - plain, known))
        weights.append(_weight(fitted, plain, codes, other))
    near = np.full(len(codes), np.nan)
    near[other.rows] = other.without_own
    share = _NEIGHBOURS * _weight(fitted, near, codes, other)
    own = _averaged(ranks, weights)
    return _averaged([own, _ranked(-right, known)], [1.0, share]) + changed


def _averaged(
    values: Sequence[Float[np.ndarray, " n"]], weights: Sequence[float]
) -> Float[np.ndarray, " n"]:
    """Weighted mean of those that are not NaN, of which the first is everywhere or nowhere."""
    table = np.stack(values)
    there = np.isfinite(table) * np.asarray(weights)[:, None]
    total = there.sum(0)
    mean = np.sum(there * np.nan_to_num(table), 0) / np.where(total > 0, total, 1)
    return np.where(total > 0, mean, np.nan)


def _ranked(
    values: Float[np.ndarray, " n"], known: Int[np.ndarray, " m"]
) -> Float[np.ndarray, " n"]:
    """Ranks among the labelled items that have a value, the largest 1; NaN elsewhere."""
    out = np.full(len(values), np.nan)
    there = known[np.isfinite(values[known])]
    out[there] = rankdata(values[there]) / len(there)
    return out


def _log_shares(codes: Int[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Logarithm of the share of each item's class; NaN without a label."""
    known = codes >= 0
    shares = np.bincount(codes[known]) / max(int(known.sum()), 1)
    return np.where(known, np.log(shares[np.maximum(codes, 0)]), np.nan)


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


def _weight(
    fitted: FittedModel,
    logs: Float[np.ndarray, " n"],
    codes: Int[np.ndarray, " n"],
    other: Separable,
) -> float:
    """What other predictions say of held-out labels by what the fit's do, between 0 and 1.

    Args:
        fitted: the fit.
        logs: log-probability of each label by the others; NaN where there is none.
        codes: given labels.
        other: the model whose row weights count.
    """
    if fitted.held_out_scores is None:
        return 1.0
    weights, own = np.zeros(len(codes)), fitted.held_out_scores
    rows = other.rows[np.isfinite(own[other.rows]) & np.isfinite(logs[other.rows])]
    weights[other.rows] = other.weights
    if not weights[rows].sum():
        return 1.0
    at = codes[other.rows]
    shares = np.log(np.bincount(at, other.weights) / other.weights.sum())[codes[rows]]
    theirs, ours = (
        float(np.average(one[rows] - shares, weights=weights[rows])) for one in (logs, own)
    )
    return float(np.clip(theirs / max(ours, _LEAST_GAIN), 0, 1))
