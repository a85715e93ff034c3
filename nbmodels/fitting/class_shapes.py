"""Classes along linear scores, normal or of Student's t, fitted under label noise by EM.

A linear score is a sum of columns, and nearly normal within a true class whatever the columns are;
a class of given labels that holds errors is a mixture. So normal classes with one covariance and a
noise matrix are fitted to scores and labels: a linear discriminant analysis under label noise
(Lawrence and Schoelkopf 2001; Bouveyron and Girard 2009), or with several normal parts a class a
mixture discriminant analysis (Hastie and Tibshirani 1996). A sum of few columns with heavy tails
has heavy tails itself: classes of Student's t (Peel and McLachlan 2000) hold items far out without
noise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln

#: Iterations, and gain in nats a row below which there are no more.
_ITERATIONS, _TOLERANCE = 300, 1e-6

#: Part of the scores' covariance that is added to the classes', so that none is singular.
_RIDGE = 1e-3

#: P(given | true) from the expected labels of each true class, a row each.
Channel = Callable[[Float[np.ndarray, "k k"]], Float[np.ndarray, "k k"]]


class ShapedClasses(NamedTuple):
    """Classes of normal or Student's t parts with one covariance, and a noise matrix.

    Attributes:
        log_likelihood: of scores and labels together, the weighted sum over items.
        resp: ``(n, K)`` P(true class | scores, given label).
        transition: ``(K, K)`` P(given | true), a row a true class.
    """

    log_likelihood: float
    resp: Float[np.ndarray, "n k"]
    transition: Float[np.ndarray, "k k"]


def fit_classes(
    x: Float[np.ndarray, "n d"],
    codes: Int[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
    start: Float[np.ndarray, "n km"],
    channel: Channel,
    n_classes: int,
    freedom: float = np.inf,
) -> ShapedClasses:
    """Fit parts, shares and noise by EM.

    Args:
        x: ``(n, d)`` scores.
        codes: ``(n,)`` given labels.
        weights: ``(n,)`` row weights of mean one.
        start: ``(n, K m)`` responsibilities of the classes' parts, those of a class one after the
            other.
        channel: the noise matrix from expected labels.
        n_classes: K.
        freedom: degrees of freedom of the parts' t distributions; infinite ones are normal.
    """
    (n, d), k = x.shape, n_classes
    m = start.shape[1] // k
    of_class = np.repeat(np.eye(k), m, axis=0)
    whole = np.cov(x.T, aweights=weights).reshape(d, d)
    ridge = _RIDGE * whole + np.finfo(float).eps * (1 + np.trace(whole)) * np.eye(d)
    target = np.eye(k)[codes]
    resp, last = start / start.sum(1, keepdims=True), -np.inf
    near = np.ones(1)
    for _ in range(_ITERATIONS):
        counted = weights[:, None] * resp
        mass = np.maximum(counted.sum(0), np.finfo(float).tiny)
        here = counted * near
        pull = np.maximum(here.sum(0), np.finfo(float).tiny)
        means = (here.T @ x) / pull[:, None]
        # of one covariance, the parts' spread about their means is the whole's less that of means
        second = (x * here.sum(1)[:, None]).T @ x
        root = np.linalg.cholesky((second - (means * pull[:, None]).T @ means) / pull.sum() + ridge)
        transition = channel((counted @ of_class).T @ target)
        white = np.concatenate([x, means]) @ np.linalg.inv(root).T
        lengths = np.square(white).sum(1)
        squares = np.maximum(lengths[:n, None] + lengths[n:] - 2 * white[:n] @ white[n:].T, 0)
        with np.errstate(divide="ignore"):  # where there is no noise
            seen = np.repeat(np.log(transition), m, axis=0).T[codes]
        logs = np.log(mass / n) + _log_kernel(squares, d, freedom) + seen
        largest = logs.max(1)
        resp = np.exp(logs - largest[:, None])
        sums = resp.sum(1)
        total, resp = largest + np.log(sums), resp / sums[:, None]
        objective = float(weights @ total) / n - np.log(np.diag(root)).sum()
        if objective - last < _TOLERANCE:
            break
        last = objective
        if np.isfinite(freedom):
            near = (freedom + d) / (freedom + squares)
    return ShapedClasses(n * objective, resp @ of_class, transition)


def _log_kernel(
    squares: Float[np.ndarray, "n m"], d: int, freedom: float
) -> Float[np.ndarray, "n m"]:
    """Log-density at squared distances, of unit covariance."""
    if not np.isfinite(freedom):
        return -0.5 * squares - d / 2 * np.log(2 * np.pi)
    scale = gammaln((freedom + d) / 2) - gammaln(freedom / 2) - d / 2 * np.log(freedom * np.pi)
    return scale - (freedom + d) / 2 * np.log1p(squares / freedom)
