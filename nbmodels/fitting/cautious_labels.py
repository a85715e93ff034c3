"""Corrected labels averaged over the noise level, with more caution the likelier harm is.

Where the scores are weak, labels that are seldom wrong and scores that say much explain the data as
well as labels that are often wrong: the noise level is hardly identified, and a point estimate may
change many right labels. So P(true class) is averaged over the posterior of the level, for which
two halves of the users count, too (:mod:`nbmodels.fitting.split_users`), as a sceptic
has it who takes some labels to be right beforehand: none where corrected labels can hardly be worse
than the given ones, many where they may well be. The number rises smoothly with the probability of
harm. A bound at which caution sets in would let chance decide, as by the draw of the folds, between
a table that is corrected and one that is not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import ndtr, xlog1py, xlogy

from inference.arrays import on_device
from nbmodels.channels import FixedTransition
from nbmodels.core.model import PRIOR
from nbmodels.errors import Caution, IdentifiabilityWarning
from nbmodels.fitting.em import Fit
from nbmodels.fitting.noise_levels import Levels
from nbmodels.fitting.options import FitOptions, finished
from nbmodels.fitting.propagation import LabelledGraph, calibrated_logs, normalised, own_labels
from nbmodels.fitting.scores import Candidate
from nbmodels.fitting.split_users import NoiseLevels

#: Standard errors by which two estimates of the level are surely apart, and a difference that
#: matters: on author threads of 20 Newsgroups they are 0.11 and 0.08, where 0.10 is right.
_APART, _MATTERS = 3.0, 0.05

#: Labels that a sceptic takes to be right beforehand, where harm is judged.
_SCEPTIC = 4

#: Labels that are taken to be right beforehand where harm is certain; they rise with the square of
#: its probability, 1.6 at a fifth and 10 at a half.
_CAUTION = 40

#: Probability beforehand that scores, or halves of the users, say nothing true of the level.
_VOID = 0.05

#: Share of wrong labels up to which changes are a risk, share of the labels that are changed, and
#: mean difference of the probabilities of the new and the given class below which that is stated.
#: Of 17 graphs of items with two users at most and a tenth of wrong labels, six of the seven whose
#: labels became worse by half a point had changes of 0.04 to 0.11 and differences of 0.20 to 0.37.
_FEW_WRONG, _CHANGED, _SURER = 0.15, 0.04, 0.4


class WeighedLevels(NamedTuple):
    """Levels of the noise by calibrated scores and by two halves of the users.

    Attributes:
        both: their posterior by both.
        scores: weight of each by scores alone.
        halves: weight of each by halves alone.
    """

    both: Levels
    scores: Float[np.ndarray, " l"]
    halves: Float[np.ndarray, " l"]

    def cautions(self) -> tuple[Caution, ...]:
        """A warning where both surely find other shares of wrong labels."""
        (one, of_one), (other, of_other) = map(self._moments, (self.scores, self.halves))
        if abs(one - other) < max(_APART * np.hypot(of_one, of_other), _MATTERS):
            return ()
        sentence = (
            f"by calibrated neighbours {one:.0%} of the labels would be wrong, by the agreement of "
            f"two halves of the users {other:.0%}, which is surely more than chance: users are not "
            "independent given the class, or errors not of the items around; corrected labels are "
            "averaged over both, but intervals of the noise matrix are not to be trusted"
        )
        return (Caution(IdentifiabilityWarning, sentence),)

    def _moments(self, weight: Float[np.ndarray, " l"]) -> tuple[float, float]:
        mean = float(weight @ self.both.share)
        return mean, float(np.sqrt(weight @ np.square(self.both.share - mean)))


def posterior_of_levels(
    about: LabelledGraph,
    levels: NoiseLevels,
    held_out: Float[np.ndarray, "n k"],
    whole: Float[np.ndarray, "n k"],
    prior: tuple[float, float],
    options: FitOptions,
) -> WeighedLevels:
    """Posterior of the level of the noise, whose matrix keeps its form.

    How likely labels are given calibrated scores hardly shows the level where these are weak; what
    two halves of the users show counts beside it. Either may be wrong, since scores were chosen by
    these labels and users may agree for other reasons than the class: where both contradict each
    other the posterior has the levels of each.

    Args:
        about: graph and labels.
        levels: to weigh.
        held_out: ``(N, K)`` scores that have not seen the item's own label.
        whole: ``(N, K)`` scores for the corrected labels.
        prior: pseudo-labels that are wrong and right.
        options: of the fits.

    Raises:
        KeyboardInterrupt: a fit was interrupted.
    """
    model, data, learned = about.labels
    held = []
    for rows in levels.matrices:
        labels = {**model, "labels": FixedTransition(prior=on_device(rows))}
        here = data if about.errors is None else about.errors.in_data(data, rows)
        held.append(Candidate(labels, here, learned))
    scored = [replace(about, labels=one).predictions().scored(held_out) for one in held]
    found = options.fit_all([c.model for c in scored], [c.data for c in scored])
    fits = [finished(one) for one in found]
    n, grid = len(whole), levels.share
    scores = np.array([_evidence(one, about.weights) for one in fits])
    probs = np.stack(
        [
            normalised(calibrated_logs(f, whole) + own_labels(f, c)[:n])
            for f, c in zip(fits, held, strict=True)
        ]
    )
    width = np.gradient(grid)
    by_scores, by_halves = (
        _density(width, one)
        for one in (scores + xlogy(prior[0], grid) + xlog1py(prior[1], -grid), levels.halves)
    )
    both = _density(width, _unless_void(by_scores, width) + _unless_void(by_halves, width))
    return WeighedLevels(Levels(grid, both * width, probs), by_scores * width, by_halves * width)


def _density(
    width: Float[np.ndarray, " l"], logs: Float[np.ndarray, " l"]
) -> Float[np.ndarray, " l"]:
    """Density at each level from its logarithm up to a constant."""
    density = np.exp(logs - logs.max())
    return density / (density @ width)


def _unless_void(
    density: Float[np.ndarray, " l"], width: Float[np.ndarray, " l"]
) -> Float[np.ndarray, " l"]:
    """Its logarithm where it may be void, and every level is then as likely."""
    return np.log((1 - _VOID) * density + _VOID / width.sum())


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
    """``(N, K)`` P(true class), the more cautious, the likelier corrections are to do harm.

    Args:
        levels: posterior of the level.
        codes: ``(N,)`` given labels, negative where there is none.
        weights: ``(N,)`` row weights.
    """
    rows = np.flatnonzero(codes >= 0)
    best = np.tensordot(levels.weight, levels.probs, 1).argmax(1)
    gains = levels.probs[:, rows, best[rows]] - levels.probs[:, rows, codes[rows]]
    right = _CAUTION * _harm(gains @ weights[rows], _tilted(levels, _SCEPTIC)) ** 2
    return np.tensordot(_tilted(levels, right), levels.probs, 1)


def expected_wrong(
    levels: Levels, codes: Int[np.ndarray, " n"], weights: Float[np.ndarray, " n"]
) -> float:
    """Expected share of the given labels that is wrong, over the whole posterior of the level.

    Caution about changes is no evidence that labels are right; arguments as of :func:`cautious`.
    """
    rows = np.flatnonzero((codes >= 0) & (weights > 0))
    if not len(rows):
        return 0.0
    right = levels.weight @ levels.probs[:, rows, codes[rows]]
    return float(1 - np.average(right, weights=weights[rows]))


def hardly_surer(
    corrected: Float[np.ndarray, "n k"],
    codes: Int[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
    wrong: float,
) -> tuple[Caution, ...]:
    """A warning where few labels are wrong, and those that are changed are hardly likelier so.

    Args:
        corrected: ``(N, K)`` P(true class).
        codes, weights: as of :func:`cautious`.
        wrong: expected share of the given labels that is wrong.
    """
    rows = np.flatnonzero((codes >= 0) & (weights > 0))
    best = corrected[rows].argmax(1)
    changed = best != codes[rows]
    share = float(np.average(changed, weights=weights[rows])) if len(rows) else 0.0
    if wrong > _FEW_WRONG or share < _CHANGED:
        return ()
    rows, best = rows[changed], best[changed]
    surer = corrected[rows, best] - corrected[rows, codes[rows]]
    if np.average(surer, weights=weights[rows]) >= _SURER:
        return ()
    sentence = (
        f"{share:.0%} of the labels are changed, where {wrong:.0%} seem to be wrong, and the class "
        "that they are changed to is hardly likelier than the given one: corrected labels may be "
        "worse than given ones; change those alone whose given class is surely wrong"
    )
    return (Caution(IdentifiabilityWarning, sentence),)


def _tilted(levels: Levels, right: float) -> Float[np.ndarray, " l"]:
    """Posterior of the level with some more labels that are right."""
    out = levels.weight * (1 - levels.share) ** right
    return out / out.sum()


def _harm(gains: Float[np.ndarray, " l"], weights: Float[np.ndarray, " l"]) -> float:
    """Probability that a gain is negative, of a normal with their moments, so that it is smooth."""
    mean = float(weights @ gains)
    spread = float(np.sqrt(weights @ (gains - mean) ** 2))
    return float(ndtr(-mean / spread)) if spread > 0 else float(mean < 0)
