"""Wrong labels by the shape of the classes: normal, and alike, along linear scores.

Errors near the borders between classes and classes that overlap there give labels the same
probabilities. They differ in where items lie: errors leave the gap between two classes where it is,
overlap fills it. A linear score is a sum of columns, and nearly normal within a true class whatever
the columns are; a class of given labels that holds errors is a mixture. So normal classes with one
covariance and a noise matrix are fitted to scores and labels by EM: a linear discriminant under
label noise (Lawrence and Schoelkopf 2001; Bouveyron and Girard 2009). Classes of several clusters
or of other shapes lead it astray; it is a second opinion, and not the fit's noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from nbmodels.fitting.one_thread import one_thread_if_small
from nbmodels.fitting.reference import linear_scores

#: Classes beyond which a covariance of the scores says little, and labels a class below which none
#: is fitted: of ten classes of 20 right labels each the shape made a tenth wrong.
_MOST_CLASSES, _LABELS = 20, 20

#: Share of right labels at the start, and pseudo-labels of a class: wrong, shared out, and right. A
#: number for each other class would make labels wrong where classes are many and small.
_START, _WRONG, _RIGHT = 0.85, 1.0, 2.5

#: Overlap beyond which the shape does not tell the share: expected share of items whose likeliest
#: class by the scores is another one. Five such classes with 10 % noise seemed to have 15 to 30 %.
_OVERLAP = 0.25

#: Iterations, and gain in nats a row below which there are no more.
_ITERATIONS, _TOLERANCE = 300, 1e-6

#: Part of the scores' covariance that is added to the classes', so that none is singular.
_RIDGE = 1e-3


def share_wrong_by_shape(
    points: Any,
    codes: Int[np.ndarray, " n"],
    n_classes: int,
    weights: Float[np.ndarray, " n"],
    copies: Int[np.ndarray, " n"] | None = None,
) -> float:
    """Share of the given labels that is wrong if classes are normal along linear scores.

    Args:
        points: ``(n, d)`` items in the space of their features, dense or sparse.
        codes: ``(n,)`` given labels, negative where there is none.
        n_classes: K.
        weights: ``(n,)`` row weights.
        copies: rows that stay in one fold, see :func:`nbmodels.fitting.scores.stratified_folds`.

    Returns:
        NaN where there are too many classes or too few labels of one, or no features; where the
        classes found are not those of the labels; and where they overlap too much to tell.
    """
    counts = np.bincount(codes[codes >= 0], minlength=n_classes)
    if n_classes > _MOST_CLASSES or counts.min() < _LABELS or not points.shape[1]:
        return np.nan
    rows, scores = linear_scores(points, codes, n_classes, copies)
    given, here = codes[rows], weights[rows] / weights[rows].mean()
    with one_thread_if_small(scores):
        resp, transition = _fitted(scores[:, :-1] - scores[:, -1:], given, n_classes, here)
    by_scores = resp / transition[:, given].T
    overlap = 1 - np.average((by_scores / by_scores.sum(1, keepdims=True)).max(1), weights=here)
    if np.diag(transition).min() <= 0.5 or overlap > _OVERLAP:
        return np.nan
    return float(1 - np.average(resp[np.arange(len(given)), given], weights=here))


def _fitted(
    x: Float[np.ndarray, "n d"],
    codes: Int[np.ndarray, " n"],
    k: int,
    weights: Float[np.ndarray, " n"],
) -> tuple[Float[np.ndarray, "n k"], Float[np.ndarray, "k k"]]:
    """Responsibilities, and P(given | true), by EM from the labels."""
    n, d = x.shape
    whole = np.cov(x.T, aweights=weights).reshape(d, d)
    ridge = _RIDGE * whole + np.finfo(float).eps * (1 + np.trace(whole)) * np.eye(d)
    target = np.eye(k)[codes]
    resp, last = _START * target + (1 - _START) / k, -np.inf
    pseudo = np.where(np.eye(k, dtype=bool), _RIGHT, _WRONG / max(k - 1, 1))
    second = (x * weights[:, None]).T @ x
    for _ in range(_ITERATIONS):
        counted = weights[:, None] * resp
        mass = counted.sum(0)
        means = (counted.T @ x) / mass[:, None]
        # of one covariance, the classes' spread about their means is the whole's less that of means
        scatter = second - (means * mass[:, None]).T @ means
        root = np.linalg.cholesky(scatter / n + ridge)
        transition = counted.T @ target + pseudo
        transition /= transition.sum(1, keepdims=True)
        white = np.concatenate([x, means]) @ np.linalg.inv(root).T
        lengths = np.square(white).sum(1)
        squares = lengths[:n, None] + lengths[n:] - 2 * white[:n] @ white[n:].T
        logs = np.log(mass / n) - 0.5 * squares + np.log(transition).T[codes]
        largest = logs.max(1)
        resp = np.exp(logs - largest[:, None])
        whole = resp.sum(1)
        total, resp = largest + np.log(whole), resp / whole[:, None]
        objective = float(weights @ total) / n - np.log(np.diag(root)).sum()
        if objective - last < _TOLERANCE:
            break
        last = objective
    return resp, transition
