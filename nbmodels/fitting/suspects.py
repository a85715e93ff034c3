"""Order in which given labels are to be checked: ranks by several detectors, averaged.

A cross-fitted model that takes errors to be independent of the features finds few of those that
follow them: it ranks labels by how the classes overlap. The other end, a model without overlap
(:mod:`nbmodels.fitting.separable`), ranks them by how an item's neighbours are labelled. The
nonlinear classifier with which the fit is compared (:mod:`nbmodels.fitting.reference`) shares no
assumption with either. A noise matrix that found no errors of a class hides those that follow the
features, and a class that took labels from others has too high a share, by which all of them are
plausible: the likelihood ratio of the best other class to the given one, by the scores or by the
nonlinear classifier, knows neither. Ranks are averaged where it is not known which detector is
right, since their probabilities are not on one scale. A joint fit, whose features pass their own
checks, ranks alone.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import rankdata

from nbmodels.core.model import PRIOR
from nbmodels.fitting.changed_labels import given_codes
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.nearest import MOST_ASKED
from nbmodels.fitting.reference import likelihood_ratios
from nbmodels.fitting.separable import Separable

#: Weights of the ranks by likelihood ratio and by the reference beside P(wrong), and of the
#: neighbours' beside the three: they agree on errors that alike rows share. Measured on 650 fits in
#: six kinds of label errors (``benchmarks/records/ends.md``).
_RATIO, _REFERENCE, _NEIGHBOURS = 1.0, 0.5, 0.5

#: Gain of held-out labels, in nats an item, below which an end says next to nothing.
_LEAST_GAIN = 1e-3


def suspicion(
    fitted: FittedModel, p_wrong: Float[np.ndarray, " n"], changed: Bool[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    """How soon a label is to be checked; larger is sooner.

    Where the fit is cross-fitted and the neighbours of all labelled items were asked for (up to
    2,000), the mean of the ranks by P(wrong), by the scores' likelihood ratio, by that of the
    nonlinear classifier (half the weight) and by the neighbours (half the weight of the others
    together, less where they predict less of the given labels than the fit). Labels that the fit
    changes come first.

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
    judges = [
        (1.0, p_wrong),
        (_RATIO, likelihood_ratios(np.asarray(scores, float), given_codes(fitted))),
    ]
    if fitted.reference_ratio is not None:
        judges.append((_REFERENCE, fitted.reference_ratio))
    judges = [(weight, by) for weight, by in judges if np.isfinite(by[known]).all()]
    ranks = sum(weight * rankdata(by[known]) for weight, by in judges)
    own[known] = ranks / sum(weight for weight, _ in judges) / len(known)
    right = other.resp[np.arange(len(other.rows)), other.codes]
    near[:] = own  # where an item is near no other
    near[other.rows] = rankdata(-right) / len(right)
    weight = _NEIGHBOURS * _weight(fitted, other)
    return (own + weight * near) / (1 + weight) + changed


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
