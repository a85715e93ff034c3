"""Normal classes along linear scores, fitted under label noise by EM.

A linear score is a sum of columns, and nearly normal within a true class whatever the columns are;
a class of given labels that holds errors is a mixture. So normal classes with one covariance and a
noise matrix are fitted to scores and labels: a linear discriminant analysis under label noise
(Lawrence and Schoelkopf 2001; Bouveyron and Girard 2009), or with several normal parts a class a
mixture discriminant analysis (Hastie and Tibshirani 1996).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

#: Iterations, and gain in nats a row below which there are no more.
_ITERATIONS, _TOLERANCE = 300, 1e-6

#: Part of the scores' covariance that is added to the classes', so that none is singular.
_RIDGE = 1e-3

#: P(given | true) from the expected labels of each true class, a row each.
Channel = Callable[[Float[np.ndarray, "k k"]], Float[np.ndarray, "k k"]]


class NormalClasses(NamedTuple):
    """Classes of normal parts with one covariance, and a noise matrix.

    Attributes:
        log_likelihood: of scores and labels together, the weighted sum over items.
        resp: ``(n, K)`` P(true class | scores, given label).
        transition: ``(K, K)`` P(given | true), a row a true class.
    """

    log_likelihood: float
    resp: Float[np.ndarray, "n k"]
    transition: Float[np.ndarray, "k k"]


def fit_normal_classes(
    x: Float[np.ndarray, "n d"],
    codes: Int[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
    start: Float[np.ndarray, "n km"],
    channel: Channel,
    n_classes: int,
) -> NormalClasses:
    """Fit parts, shares and noise by EM.

    Args:
        x: ``(n, d)`` scores.
        codes: ``(n,)`` given labels.
        weights: ``(n,)`` row weights of mean one.
        start: ``(n, K m)`` responsibilities of the classes' parts, those of a class one after the
            other.
        channel: the noise matrix from expected labels.
        n_classes: K.
    """
    (n, d), k = x.shape, n_classes
    m = start.shape[1] // k
    of_class = np.repeat(np.eye(k), m, axis=0)
    whole = np.cov(x.T, aweights=weights).reshape(d, d)
    ridge = _RIDGE * whole + np.finfo(float).eps * (1 + np.trace(whole)) * np.eye(d)
    target = np.eye(k)[codes]
    resp, last = start / start.sum(1, keepdims=True), -np.inf
    second = (x * weights[:, None]).T @ x
    for _ in range(_ITERATIONS):
        counted = weights[:, None] * resp
        mass = np.maximum(counted.sum(0), np.finfo(float).tiny)
        means = (counted.T @ x) / mass[:, None]
        # of one covariance, the parts' spread about their means is the whole's less that of means
        root = np.linalg.cholesky((second - (means * mass[:, None]).T @ means) / n + ridge)
        transition = channel((counted @ of_class).T @ target)
        white = np.concatenate([x, means]) @ np.linalg.inv(root).T
        lengths = np.square(white).sum(1)
        squares = lengths[:n, None] + lengths[n:] - 2 * white[:n] @ white[n:].T
        with np.errstate(divide="ignore"):  # where there is no noise
            seen = np.repeat(np.log(transition), m, axis=0).T[codes]
        logs = np.log(mass / n) - 0.5 * squares + seen
        largest = logs.max(1)
        resp = np.exp(logs - largest[:, None])
        sums = resp.sum(1)
        total, resp = largest + np.log(sums), resp / sums[:, None]
        volume = np.log(np.diag(root)).sum() + d / 2 * np.log(2 * np.pi)
        objective = float(weights @ total) / n - volume
        if objective - last < _TOLERANCE:
            break
        last = objective
    return NormalClasses(n * objective, resp @ of_class, transition)
