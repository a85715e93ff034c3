"""Classes along linear scores, normal or of Student's t, fitted under label noise by EM.

A linear score is a sum of columns, and nearly normal within a true class whatever the columns are;
a class of given labels that holds errors is a mixture. So normal classes with one covariance and a
noise matrix are fitted to scores and labels: a linear discriminant analysis under label noise
(Lawrence and Schoelkopf 2001; Bouveyron and Girard 2009), or with several normal parts a class a
mixture discriminant analysis (Hastie and Tibshirani 1996). A sum of few columns with heavy tails
has heavy tails itself: classes of Student's t (Peel and McLachlan 2000) hold items far out without
noise.

Errors that people make are the oftener the nearer an item is to another class. Labels are then
drawn from the class probabilities taken to a power below one; at a power of one they are right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln, log_softmax

#: Iterations, and gain in nats a row below which there are no more.
_ITERATIONS, _TOLERANCE = 300, 1e-6

#: Part of the scores' covariance that is added to the classes', so that none is singular.
_RIDGE = 1e-3

#: P(given | true) from the expected labels of each true class, a row each.
Channel = Callable[[Float[np.ndarray, "k k"]], Float[np.ndarray, "k k"]]


class Parts(NamedTuple):
    """Normal or Student's t distributions with one covariance.

    Attributes:
        means: ``(m, d)``.
        root: ``(d, d)`` lower Cholesky factor of the covariance, or of a t distribution's scale.
        log_shares: ``(m,)`` log-probability of each part.
        freedom: degrees of freedom; infinite ones are normal.
    """

    means: Float[np.ndarray, "m d"]
    root: Float[np.ndarray, "d d"]
    log_shares: Float[np.ndarray, " m"]
    freedom: float

    def squares(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n m"]:
        """Squared Mahalanobis distances of items to the means."""
        n = len(x)
        white = np.concatenate([x, self.means]) @ np.linalg.inv(self.root).T
        lengths = np.square(white).sum(1)
        return np.maximum(lengths[:n, None] + lengths[n:] - 2 * white[:n] @ white[n:].T, 0)

    def of_squares(self, squares: Float[np.ndarray, "n m"]) -> Float[np.ndarray, "n m"]:
        """Log-density of each part and item, up to the covariance's determinant."""
        return self.log_shares + _log_kernel(squares, len(self.root), self.freedom)

    def log_probabilities(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n m"]:
        """Of each part, of any items."""
        return np.asarray(log_softmax(self.of_squares(self.squares(x)), axis=1))


class ShapedClasses(NamedTuple):
    """Classes of normal or Student's t parts with one covariance, and a noise matrix.

    Attributes:
        log_likelihood: of scores and labels together, the weighted sum over items.
        resp: ``(n, K)`` P(true class | scores, given label).
        transition: ``(K, K)`` P(given | true), a row a true class.
        parts: of the classes.
    """

    log_likelihood: float
    resp: Float[np.ndarray, "n k"]
    transition: Float[np.ndarray, "k k"]
    parts: Parts


def fit_classes(
    x: Float[np.ndarray, "n d"],
    codes: Int[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
    start: Float[np.ndarray, "n km"],
    channel: Channel,
    n_classes: int,
    freedom: float = np.inf,
    power: float | None = None,
) -> ShapedClasses:
    """Fit parts, shares and noise by EM.

    Where labels are of a power of the class probabilities, the gradient is that of an EM whose
    responsibilities are ``q + power (y - h)``, with class probabilities ``q``, their normalised
    power ``h`` and labels ``y``: the labels at a power of one, no labels at zero.

    Args:
        x: ``(n, d)`` scores.
        codes: ``(n,)`` given labels; -1 where none is known, which needs a noise matrix.
        weights: ``(n,)`` row weights of mean one.
        start: ``(n, K m)`` responsibilities of the classes' parts, those of a class one after the
            other.
        channel: the noise matrix from expected labels.
        n_classes: K.
        freedom: degrees of freedom of the parts' t distributions; infinite ones are normal.
        power: of the class probabilities from which labels are drawn, for classes of one part;
            None where errors do not depend on the scores. There is then no noise matrix, and
            P(true class) is that under which as many labels are right as may be.
    """
    (n, d), k = x.shape, n_classes
    m = start.shape[1] // k
    of_class = np.repeat(np.eye(k), m, axis=0)
    whole = np.cov(x.T, aweights=weights).reshape(d, d)
    ridge = _RIDGE * whole + np.finfo(float).eps * (1 + np.trace(whole)) * np.eye(d)
    target = np.eye(k + 1, k)[codes]
    items, objective, last = np.arange(n), -np.inf, -np.inf
    resp = own = start / start.sum(1, keepdims=True)
    transition, near = np.eye(k), np.ones(1)
    parts = Parts(np.zeros((k * m, d)), np.eye(d), np.zeros(k * m), freedom)
    for _ in range(_ITERATIONS):
        counted = weights[:, None] * resp
        mass = np.maximum(counted.sum(0), np.finfo(float).tiny)
        here = counted * near
        pull = here.sum(0)
        # responsibilities that are no probabilities may leave a class empty, or without a spread
        if power is not None and (mass.min() < 1 or pull.min() <= 0):
            break
        pull = np.maximum(pull, np.finfo(float).tiny)
        means = (here.T @ x) / pull[:, None]
        # of one covariance, the parts' spread about their means is the whole's less that of means
        second = (x * here.sum(1)[:, None]).T @ x
        spread = (second - (means * pull[:, None]).T @ means) / pull.sum() + ridge
        if power is not None and np.linalg.eigvalsh(spread)[0] <= 0:
            break
        parts = Parts(means, np.linalg.cholesky(spread), np.log(mass / n), freedom)
        transition = channel((counted @ of_class).T @ target)
        squares = parts.squares(x)
        logs = parts.of_squares(squares)
        if power is None:
            with np.errstate(divide="ignore"):  # where there is no noise
                of_labels = np.hstack([np.log(transition), np.zeros((k, 1))])
            seen = np.repeat(of_labels, m, axis=0).T[codes]
            total, resp = _normalised(logs + seen)
        else:
            total, probs = _normalised(logs)
            of_labels, drawn = _normalised(power * logs)
            total = total + power * logs[items, codes] - of_labels
            resp = probs + power * (target - drawn)
            own = _coupled(probs, drawn, codes)
        objective = float(weights @ total) / n - np.log(np.diag(parts.root)).sum()
        if objective - last < _TOLERANCE:
            break
        last = objective
        if np.isfinite(freedom):
            near = (freedom + d) / (freedom + squares)
    found = (resp if power is None else own) @ of_class
    return ShapedClasses(n * objective, found, transition, parts)


def _normalised(
    logs: Float[np.ndarray, "n m"],
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n m"]]:
    """Logarithms of the sums of each row, and the row as probabilities."""
    largest = logs.max(1)
    probs = np.exp(logs - largest[:, None])
    sums = probs.sum(1)
    return largest + np.log(sums), probs / sums[:, None]


def _coupled(
    probs: Float[np.ndarray, "n k"], drawn: Float[np.ndarray, "n k"], codes: Int[np.ndarray, " n"]
) -> Float[np.ndarray, "n k"]:
    """P(true class | given label) where as many labels are right as both distributions allow.

    Args:
        probs: of the true classes.
        drawn: of the labels.
        codes: ``(n,)`` given labels.
    """
    both, items = np.minimum(probs, drawn), np.arange(len(codes))
    lacking, surplus = probs - both, (drawn - both)[items, codes]
    total = np.maximum(lacking.sum(1), np.finfo(float).tiny)
    out = lacking * (surplus / total)[:, None]
    out[items, codes] += both[items, codes]
    return out / np.maximum(drawn[items, codes], np.finfo(float).tiny)[:, None]


def _log_kernel(
    squares: Float[np.ndarray, "n m"], d: int, freedom: float
) -> Float[np.ndarray, "n m"]:
    """Log-density at squared distances, of unit covariance."""
    if not np.isfinite(freedom):
        return -0.5 * squares - d / 2 * np.log(2 * np.pi)
    scale = gammaln((freedom + d) / 2) - gammaln(freedom / 2) - d / 2 * np.log(freedom * np.pi)
    return scale - (freedom + d) / 2 * np.log1p(squares / freedom)
