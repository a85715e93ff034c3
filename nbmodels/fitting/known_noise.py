"""Calibration of scores under known label noise, by Newton's method with a trust region.

One log-slope and a bias for each class are few parameters, whose second derivatives cost no more
than two evaluations; so a few steps reach the optimum, where a quasi-Newton method takes many.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

from nbmodels.core.short_rows import row_sums, softmax

#: Length of the gradient, in nats a unit of each parameter, at which the search ends.
_FLAT = 1e-3

_TINY = np.finfo(float).tiny


class Calibrated(NamedTuple):
    """Scores calibrated under known noise.

    Attributes:
        at: ``(1 + K,)`` log-slope and biases.
        evidence: ``(N,)`` log-likelihood of the rows' labels.
        probs: ``(N, K)`` P(true class).
    """

    at: Float[np.ndarray, " p"]
    evidence: Float[np.ndarray, " n"]
    probs: Float[np.ndarray, "n k"]


def calibrated(
    scores: Float[np.ndarray, "n k"],
    table: Float[np.ndarray, "n k"],
    weights: Float[np.ndarray, " n"],
    prior: tuple[Float[np.ndarray, " p"], Float[np.ndarray, "p p"]],
    start: Float[np.ndarray, " p"],
) -> Calibrated:
    """The likeliest calibration, a local optimum near the start.

    Args:
        scores: of the classes.
        table: log-likelihood of each row's labels under each class.
        weights: row weights.
        prior: mean and precision of log-slope and biases.
        start: where to begin.
    """
    top = table.max(1)
    mean, precision = prior
    model = _Model(scores, np.exp(table - top[:, None]), weights)
    here = model.at(start)

    def near(at: Float[np.ndarray, " p"]) -> _Point:
        nonlocal here
        if not np.array_equal(at, here.at):  # value, slope and curvature are asked for one by one
            here = model.at(at)
        return here

    def loss(at: Float[np.ndarray, " p"]) -> tuple[float, Float[np.ndarray, " p"]]:
        point, pull = near(at), precision @ (at - mean)
        value = 0.5 * (at - mean) @ pull - weights @ point.evidence
        return float(value), pull - model.gradient(point)

    def curvature(at: Float[np.ndarray, " p"]) -> Float[np.ndarray, "p p"]:
        return precision - model.curvature(near(at))

    options = {"gtol": _FLAT}
    found = minimize(loss, start, jac=True, hess=curvature, method="trust-exact", options=options)
    point = near(found.x)
    return Calibrated(point.at, point.evidence + top, point.after)


class _Point(NamedTuple):
    """A calibration, and what follows for the rows.

    Attributes:
        at: ``(1 + K,)`` log-slope and biases.
        evidence: ``(N,)`` log-likelihood of the rows' labels, as far as they tell classes apart.
        before, after: ``(N, K)`` P(true class) by the scores alone, and with the labels.
    """

    at: Float[np.ndarray, " p"]
    evidence: Float[np.ndarray, " n"]
    before: Float[np.ndarray, "n k"]
    after: Float[np.ndarray, "n k"]


class _Model(NamedTuple):
    """Log-likelihood of labels with known noise, and its derivatives.

    Attributes:
        scores: ``(N, K)`` of the classes.
        likelihood: ``(N, K)`` of the labels, at most 1.
        weights: ``(N,)`` row weights.
    """

    scores: Float[np.ndarray, "n k"]
    likelihood: Float[np.ndarray, "n k"]
    weights: Float[np.ndarray, " n"]

    def at(self, at: Float[np.ndarray, " p"]) -> _Point:
        linear = np.exp(at[0]) * self.scores + at[1:]
        before = softmax(linear)
        after = before * self.likelihood
        total = np.maximum(row_sums(after), _TINY)
        return _Point(at, np.log(total), before, after / total[:, None])

    def gradient(self, point: _Point) -> Float[np.ndarray, " p"]:
        gap = self.weights[:, None] * (point.after - point.before)
        return np.append(np.exp(point.at[0]) * np.vdot(gap, self.scores), gap.sum(0))

    def curvature(self, point: _Point) -> Float[np.ndarray, "p p"]:
        """Second derivatives: how far classes are open with the labels, less without them."""
        steep = np.exp(point.at[0]) * self.scores
        out = self._openness(point.after, steep) - self._openness(point.before, steep)
        out[0, 0] += self.gradient(point)[0]  # of the slope by its logarithm
        return out

    def _openness(
        self, probs: Float[np.ndarray, "n k"], steep: Float[np.ndarray, "n k"]
    ) -> Float[np.ndarray, "p p"]:
        """Weighted sum of the rows' covariances of scores and indicators of the classes."""
        own = self.weights[:, None] * probs
        along, mean = own * steep, row_sums(probs * steep)
        of_slope = np.vdot(along, steep) - self.weights @ np.square(mean)
        with_slope = along.sum(0) - own.T @ mean
        between = np.diag(own.sum(0)) - own.T @ probs
        return np.block([[of_slope, with_slope], [with_slope[:, None], between]])
