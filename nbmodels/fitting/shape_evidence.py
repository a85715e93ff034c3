"""Evidence of label noise along classes of a shape: forms of the noise, and classes of two parts.

A noise matrix of one rate, any matrix or none is fitted together with the classes
(:mod:`nbmodels.fitting.class_shapes`). Rates are integrated out given the expected labels of each
class (Cheeseman and Stutz 1996), so that a form with more of them is not likelier for that alone.
Classes that are skewed or of several clusters may be taken for noise: they have two parts each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from scipy.special import expit, gammaln, logsumexp

from nbmodels.fitting.class_shapes import ShapedClasses

#: Degrees of freedom of the classes, as likely as each other beforehand; infinite ones are normal.
#: Evidence of noise is the same within .003 of AUC with 5 beside them, or in the place of both.
FREEDOM = (np.inf, 10.0, 3.0)

#: Logarithm of a Bayes factor that is strong evidence (Kass and Raftery 1995).
STRONG = 3.0

#: Pseudo-labels of a class: wrong, shared out, and right. A number for each other class would make
#: labels wrong where classes are many and small.
_WRONG, _RIGHT = 1.0, 2.5

#: The same of a single rate, right and wrong.
_PAIR = np.array([[_RIGHT, _WRONG]])

#: Share of right labels at the start.
_START = 0.85

#: Part of the responsibilities that is shared out at the start: no part of a class is empty.
_SHARED = 1e-6


def mostly_as(labels: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k"]:
    """Responsibilities to begin at, where most labels are right."""
    return _START * labels + (1 - _START) / labels.shape[1]


def mean_evidence(logs: Sequence[float]) -> float:
    """Log-evidence of models that are as likely as each other beforehand."""
    return float(logsumexp(logs) - np.log(len(logs)))


def of_each(probs: Float[np.ndarray, "n k"], codes: Int[np.ndarray, " n"]) -> np.ndarray:
    """``(n,)`` probability of each given label."""
    return np.asarray(probs[np.arange(len(codes)), codes])


# Forms of the noise ---------------------------------------------------------------------------


def any_matrix(counts: Float[np.ndarray, "k k"]) -> Float[np.ndarray, "k k"]:
    """Any noise matrix, with pseudo-labels."""
    counted = counts + _pseudo_labels(len(counts))
    return counted / counted.sum(1, keepdims=True)


def one_rate(counts: Float[np.ndarray, "k k"]) -> Float[np.ndarray, "k k"]:
    """Of one rate of right labels, and wrong ones of all other classes alike."""
    k = len(counts)
    right, wrong = (_right_and_wrong(counts) + _PAIR)[0]
    return np.where(np.eye(k, dtype=bool), right, wrong / (k - 1)) / (right + wrong)


def no_noise(counts: Float[np.ndarray, "k k"]) -> Float[np.ndarray, "k k"]:
    """All labels are right."""
    return np.eye(len(counts))


def evidence_of_any(
    found: ShapedClasses, labels: Float[np.ndarray, "n k"], weights: Float[np.ndarray, " n"]
) -> float:
    """Log-evidence of :func:`any_matrix`, its rates integrated out."""
    counts = _counts(found, labels, weights)
    return found.log_likelihood + _occam(counts, _pseudo_labels(len(counts)))


def evidence_of_one(
    found: ShapedClasses, labels: Float[np.ndarray, "n k"], weights: Float[np.ndarray, " n"]
) -> float:
    """Log-evidence of :func:`one_rate`, the rate integrated out."""
    counts = _counts(found, labels, weights)
    return found.log_likelihood + _occam(_right_and_wrong(counts), _PAIR)


def _pseudo_labels(k: int) -> Float[np.ndarray, "k k"]:
    return np.where(np.eye(k, dtype=bool), _RIGHT, _WRONG / max(k - 1, 1))


def _counts(
    found: ShapedClasses, labels: Float[np.ndarray, "n k"], weights: Float[np.ndarray, " n"]
) -> Float[np.ndarray, "k k"]:
    """Expected labels of each true class."""
    return (weights[:, None] * found.resp).T @ labels


def _right_and_wrong(counts: Float[np.ndarray, "k k"]) -> Float[np.ndarray, "1 2"]:
    return np.array([[np.trace(counts), counts.sum() - np.trace(counts)]])


def _occam(counts: Float[np.ndarray, "r c"], prior: Float[np.ndarray, "r c"]) -> float:
    """Log-probability of expected counts integrated over the rates, less that at their mean."""
    after = counts + prior
    integrated = (gammaln(after) - gammaln(prior)).sum()
    integrated += (gammaln(prior.sum(1)) - gammaln(after.sum(1))).sum()
    return float(integrated - (counts * np.log(after / after.sum(1, keepdims=True))).sum())


# Classes of two parts -------------------------------------------------------------------------


def in_parts(
    resp: Float[np.ndarray, "n k"], share: Float[np.ndarray, "n k"]
) -> Float[np.ndarray, "n km"]:
    """Responsibilities of two parts of each class to begin at.

    Args:
        resp: of the classes.
        share: of the first part.
    """
    parts = _SHARED + np.stack([resp * share, resp * (1 - share)], 2)
    return parts.reshape(len(resp), -1)


def halves(
    x: Float[np.ndarray, "n d"], counted: Float[np.ndarray, "n k"]
) -> Float[np.ndarray, "n k"]:
    """How much each item is on one side of a class, along the class's widest direction.

    Args:
        x: items.
        counted: responsibilities of the classes, times row weights.
    """
    out = np.zeros(counted.shape)
    for k, weight in enumerate(counted.T):
        mass = max(float(weight.sum()), np.finfo(float).tiny)
        centred = x - weight @ x / mass
        spread = (centred * weight[:, None]).T @ centred
        along = centred @ np.linalg.eigh(spread)[1][:, -1]
        width = np.sqrt(weight @ np.square(along) / mass)
        out[:, k] = expit(2 * along / max(width, np.finfo(float).tiny))
    return out


def cost_of_parts(x: Float[np.ndarray, "n d"], n_classes: int) -> float:
    """Nats that mean and share of a second part of each class cost (BIC)."""
    n, d = x.shape
    return float(n_classes * (d + 1) / 2 * np.log(n))
