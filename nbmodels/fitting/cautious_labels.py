"""Corrected labels averaged over the noise level, and corrected only where that does no harm.

Where the scores are weak, labels that are seldom wrong and scores that say much explain the data as
well as labels that are often wrong: the noise level is hardly identified, and a point estimate may
change many right labels. So P(true class) is averaged over the posterior of the level. If under the
lower levels of that posterior the corrected labels would be worse than the given ones, only the
lowest levels are averaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.special import xlog1py, xlogy

from inference.arrays import on_device
from nbmodels.channels import FixedTransition
from nbmodels.core.model import PRIOR
from nbmodels.fitting.em import Fit
from nbmodels.fitting.options import FitOptions, finished
from nbmodels.fitting.propagation import LabelledGraph, calibrated_logs, normalised, own_labels
from nbmodels.fitting.scores import Candidate

#: Shares of wrong labels at which the posterior is evaluated, for two classes scaled to a half.
_LEVELS = np.array([0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.56, 0.62])

#: Levels on either side of a well-identified estimate, in shares of it.
_NEAR = np.array([-0.3, -0.2, -0.1, -0.05, 0.0, 0.05, 0.1, 0.2, 0.3])

#: Probability that corrections may do harm.
_RISK = 0.1

#: Labels that a sceptic takes to be right beforehand, where harm is judged.
_SCEPTIC = 4

#: Lower parts of the posterior of the level that are averaged, the largest first.
_PARTS = (1.0, 0.75, 0.5, 0.25, 0.1)


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


def noise_levels(
    about: LabelledGraph,
    fitted: Fit,
    held_out: Float[np.ndarray, "n k"],
    whole: Float[np.ndarray, "n k"],
    prior: tuple[float, float],
    options: FitOptions,
) -> Levels:
    """Posterior of the level of the noise, whose matrix keeps its form.

    Args:
        about: graph and labels.
        fitted: calibration and noise fitted to the scores.
        held_out: ``(N, K)`` scores that have not seen the item's own label.
        whole: ``(N, K)`` scores for the corrected labels.
        prior: pseudo-labels that are wrong and right.
        options: of the fits.

    Raises:
        KeyboardInterrupt: a fit was interrupted.
    """
    matrix = np.asarray(fitted.transitions["labels"], float)
    matrix = matrix / matrix.sum(1, keepdims=True)
    k = len(matrix)
    level = float(1 - np.diag(matrix).mean())
    wrong = matrix * (1 - np.eye(k))
    wrong = wrong / max(level, 1e-6) if level > 1e-6 else (1 - np.eye(k)) / (k - 1)
    most = 0.98 / max(np.max(wrong.max(1) + wrong.sum(1)), 1e-6)  # where the diagonal dominates
    grid = np.unique(np.concatenate([_LEVELS, level * (1 + _NEAR)]))
    grid = grid[(grid > 1e-3) & (grid < most)]
    model, data, learned = about.labels
    held = []
    for share in grid:
        rows = share * wrong
        rows = rows + np.diag(1 - rows.sum(1))
        labels = {**model, "labels": FixedTransition(prior=on_device(rows))}
        held.append(Candidate(labels, data, learned))
    scored = [
        LabelledGraph(about.graph, one, about.resp, about.weights, about.shares).scored(held_out)
        for one in held
    ]
    found = options.fit_all([c.model for c in scored], [c.data for c in scored])
    fits = [finished(one) for one in found]
    n = len(whole)
    logs = np.array([_evidence(one, about.weights) for one in fits])
    logs = logs + xlogy(prior[0], grid) + xlog1py(prior[1], -grid)
    weight = np.exp(logs - logs.max()) * np.gradient(grid)
    probs = np.stack(
        [
            normalised(calibrated_logs(f, whole) + own_labels(f, c)[:n])
            for f, c in zip(fits, held, strict=True)
        ]
    )
    return Levels(grid, weight / weight.sum(), probs)


def _evidence(fitted: Fit, weights: Float[np.ndarray, " n"]) -> float:
    """Marginal log-likelihood, the calibration integrated out (Laplace)."""
    component: Any = fitted.model[PRIOR]
    q: Any = fitted.params[PRIOR]
    gap = np.asarray(q.mean) - np.asarray(component.prior.mean)
    penalty = 0.5 * gap @ np.asarray(component.prior.precision) @ gap
    curvature = np.linalg.slogdet(np.asarray(q.precision))[1]
    fit = weights @ np.asarray(fitted.log_likelihood)[: len(weights)]
    return float(fit - penalty - 0.5 * curvature)


def cautious(
    levels: Levels, codes: Int[np.ndarray, " n"], weights: Float[np.ndarray, " n"]
) -> Float[np.ndarray, "n k"]:
    """``(N, K)`` P(true class), under which corrected labels are unlikely to be the worse ones.

    Args:
        levels: posterior of the level.
        codes: ``(N,)`` given labels, negative where there is none.
        weights: ``(N,)`` row weights.
    """
    rows = np.flatnonzero(codes >= 0)
    sceptical = levels.weight * (1 - levels.share) ** _SCEPTIC
    upto = np.cumsum(levels.weight)
    for part in _PARTS:
        share = np.clip(part - (upto - levels.weight), 0, levels.weight)
        probs = np.tensordot(share / share.sum(), levels.probs, 1)
        best = probs.argmax(1)
        gains = levels.probs[:, rows, best[rows]] - levels.probs[:, rows, codes[rows]]
        if _quantile(gains @ weights[rows], sceptical, _RISK) >= 0:
            return probs
    return levels.probs[0]


def _quantile(
    values: Float[np.ndarray, " l"], weights: Float[np.ndarray, " l"], at: float
) -> float:
    order: Sequence[int] = np.argsort(values, kind="stable").tolist()
    upto = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(upto, at * upto[-1])])
