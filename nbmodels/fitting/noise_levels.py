"""Labels averaged over the level of the noise, where few labels hardly tell it.

Scores of a classifier that overfits are as large where it errs as where it is right. A noise matrix
explains that as wrong labels: classes are then certain, and whatever the scores miss is noise. No
calibration of the scores and no standard error shows it, since a classifier that errs at random and
labels that err at random have one likelihood. What shows it needs no labels: classifiers of
different kinds that err at random do not agree with each other, so that none is more valid than it
is reliable (Spearman 1904, American Journal of Psychology 15). So the likelihood of the level
counts as far as the scores agree with the votes of neighbours (a power posterior, of a model that
is wrong; Miller and Dunson 2019, JASA 114), and P(true class) is averaged over the posterior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.special import xlog1py

from nbmodels.core.component import Given
from nbmodels.core.model import PRIOR
from nbmodels.fitting.agreement import beyond_chance
from nbmodels.fitting.cautions import PLAIN
from nbmodels.fitting.checked_rows import checked_rows
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.known_noise import calibrated

#: Shares of wrong labels at which the posterior is evaluated, for two classes scaled to a half.
LEVELS = np.array([0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.56, 0.62])

#: Rows up to which labels are averaged: more identify the level, or hold the model's errors so
#: surely that no prior says anything.
_MOST_ROWS = 2_000

#: Power of the agreement beyond chance by which the likelihood counts. In simulated worlds of 60 to
#: 150 rows it was 0.2 to 0.6 where a fit did harm, by levels that were too high and yet likelier by
#: 5 to 10 nats, and 0.6 to 0.9 where it helped: nats then count 0.01 to 0.2 and 0.2 to 0.7.
_POWER = 3.0

#: Agreement where there are no neighbours to ask, between the two.
_UNKNOWN = 0.5

#: Labels that are right beforehand, beside a uniform prior of the level: where nothing supports
#: either, more of them are right.
_RIGHT = 1.0

#: A table of log-probabilities is bounded below by this, for a class that is certainly wrong.
_TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class Levels:
    """Posterior of the share of wrong labels, on a grid.

    Attributes:
        share: ``(L,)`` shares of wrong labels, rising.
        weight: ``(L,)`` posterior probability of each.
        probs: ``(L, N, K)`` P(true class) at each.
    """

    share: Float[np.ndarray, " l"]
    weight: Float[np.ndarray, " l"]
    probs: Float[np.ndarray, "l n k"]


def matrices_at(
    matrix: Float[np.ndarray, "k k"], shares: Float[np.ndarray, " l"]
) -> tuple[Float[np.ndarray, " l"], Float[np.ndarray, "l k k"]]:
    """Noise matrices of the same form at other levels, as far as their diagonal dominates.

    Args:
        matrix: ``[true, observed]`` P(observed | true).
        shares: mean shares of wrong labels of the classes.

    Returns:
        the shares that are possible, and a matrix for each.
    """
    matrix = matrix / matrix.sum(1, keepdims=True)
    k = len(matrix)
    level = float(1 - np.diag(matrix).mean())
    wrong = matrix * (1 - np.eye(k))
    wrong = wrong / level if level > 1e-6 else (1 - np.eye(k)) / (k - 1)
    most = 0.98 / max(np.max(wrong.max(1) + wrong.sum(1)), 1e-6)
    shares = shares[(shares > 1e-3) & (shares < most)]
    rows = shares[:, None, None] * wrong
    return shares, rows + np.eye(k) * (1 - rows.sum(2))[:, :, None]


def averaged_over_levels(fitted: FittedModel) -> FittedModel:
    """A cross-fitted model whose P(true class) is averaged over the level of the noise.

    Args:
        fitted: a model of given labels and scores. Where it has other sources of labels than those
            and checked rows, many rows, uninformative features, known noise, or labels that are
            likelier without any noise, nothing is done.
    """
    channel = fitted.fit.model.get("labels")
    rows = np.asarray(fitted.data.weights)[: len(fitted.fit.resp)] > 0
    about = {PRIOR, "labels", "trusted", *fitted.scored}
    if fitted.interrupted or fitted.drawn is not None or np.count_nonzero(rows) > _MOST_ROWS:
        return fitted
    if channel is None or isinstance(channel, Given) or set(fitted.fit.model) - about:
        return fitted
    if fitted.data.parts.get(PRIOR) is None or PLAIN in fitted.cautions:
        return fitted
    found = noise_levels(fitted)
    return replace(fitted, averaged=np.tensordot(found.weight, found.probs, 1))


def noise_levels(fitted: FittedModel) -> Levels:
    """Posterior of the level of the noise, whose matrix keeps its form.

    The calibration of the scores is learned anew at each level. What checked rows show of the noise
    counts in full.

    Args:
        fitted: a cross-fitted model of given labels.
    """
    n, k = len(fitted.fit.resp), len(fitted.names)
    codes, scores = (np.asarray(fitted.data.parts[name])[:n] for name in ("labels", PRIOR))
    weights = np.asarray(fitted.data.weights, float)[:n]
    checked = checked_rows(fitted.fit.model, fitted.data, n)
    shares, matrices = matrices_at(fitted.noise_matrices["labels"].T, LEVELS)
    known = np.zeros((n, k))
    if checked.any():
        classes = np.asarray(fitted.data.parts["trusted"])[:n]
        known[checked] = np.log(np.maximum(np.eye(k)[classes[checked]], _TINY))
    power = np.where(checked, 1.0, _agreement(fitted, np.asarray(scores).argmax(1)) ** _POWER)
    effects = fitted.design_effects
    if effects is not None:
        power = power / effects.noise  # as many rows as the labels are worth
    component: Any = fitted.fit.model[PRIOR]
    prior = np.asarray(component.prior.mean, float), np.asarray(component.prior.precision, float)
    at, scores = (
        component.from_scores(fitted.calibration),
        component.biased(np.asarray(scores, float)),
    )
    logs, probs = np.empty(len(shares)), np.empty((len(shares), n, k))
    for i, matrix in enumerate(matrices):
        of_labels = np.hstack([np.log(np.maximum(matrix, _TINY)), np.zeros((k, 1))])
        table = known + of_labels[:, np.minimum(codes, k)].T
        at, evidence, probs[i] = calibrated(scores, table, weights, prior, at)
        logs[i] = (weights * power) @ evidence
    logs = logs + xlog1py(_RIGHT, -shares)
    weight = np.exp(logs - logs.max()) * np.gradient(shares)
    return Levels(shares, weight / weight.sum(), probs)


def _agreement(fitted: FittedModel, classes: Int[np.ndarray, " n"]) -> float:
    """Agreement of the scores' classes with neighbours' votes beyond chance."""
    near = fitted.separable
    if near is None:
        return _UNKNOWN
    return max(beyond_chance(classes[near.rows], near.votes, near.weights).kappa, 0.0)
