"""Score test of known class shares: do labels and features suit the shares that were given?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy import stats
from scipy.special import softmax

from nbmodels.data.validation import plain
from nbmodels.diagnostics.checks import remedies
from nbmodels.diagnostics.checks.base import Check, Measurement, always, percent
from nbmodels.diagnostics.score_tests import LEVEL, jointly

#: Entries of a noise matrix up to which all of them are allowed for; else those of its diagonal.
_MOST_ENTRIES = 128

#: Items by which a prior counts in each row of the noise matrix, and precision of a log-slope's.
_PSEUDO_ITEMS, _SLOPE_PRECISION = 10.0, 1.0

#: Farthest step in the logarithms of shares: beyond it a score says no more than the direction.
_FARTHEST = 2.0

#: Level where the classes' probabilities are of another classifier's scores, calibrated: those of
#: other folds fit less well.
_OF_SCORES = LEVEL / 100

#: Items below which the distribution of the test is not known well enough.
_LEAST = 50


@dataclass(frozen=True)
class KnownShares:
    """The items of a fit whose class shares were given.

    Attributes:
        resp: ``(n, K)`` responsibilities.
        prior: ``(n, K)`` probabilities of the classes before the label, which hold the shares.
        weights: ``(n,)`` row weights, above 0.
        estimated: ``(n, c)`` scores of the items by the parameters that were estimated beside the
            shares, of which the noise matrix and a slope of the features' scores are looked at.
        precision: ``(c,)`` of their priors.
        given: ``(K,)`` shares that were given.
        of_scores: whether :attr:`prior` is of another classifier's scores.
        names: ``(K,)`` names of the classes.
    """

    resp: Float[np.ndarray, "n k"]
    prior: Float[np.ndarray, "n k"]
    weights: Float[np.ndarray, " n"]
    estimated: Float[np.ndarray, "n c"]
    precision: Float[np.ndarray, " c"]
    given: Float[np.ndarray, " k"]
    of_scores: bool
    names: Any


def noise_scores(
    resp: Float[np.ndarray, "n k"],
    codes: Int[np.ndarray, " n"],
    transition: Float[np.ndarray, "k k"],
    one_rate: bool,
) -> tuple[Float[np.ndarray, "n c"], Float[np.ndarray, " c"]]:
    """Scores of the items by the logits of the noise matrix, and precisions of their priors.

    Args:
        resp: responsibilities.
        codes: given labels, negative where missing.
        transition: P(observed | true).
        one_rate: whether one error rate was estimated for all pairs of classes.
    """
    k = len(transition)
    known, seen = (codes >= 0)[:, None], np.eye(k)[np.maximum(codes, 0)]
    diagonal, curvature = np.diag(transition), _PSEUDO_ITEMS * transition * (1 - transition)
    if one_rate or k * k > _MOST_ENTRIES:
        scores, precision = np.where(known, resp * (seen - diagonal), 0), np.diag(curvature)
        return (scores.sum(1, keepdims=True), precision[:1]) if one_rate else (scores, precision)
    # rows sum to one, so that a column less says the same
    every = resp[:, :, None] * (seen[:, None, :] - transition)[:, :, :-1]
    return np.where(known, every.reshape(len(resp), -1), 0), curvature[:, :-1].ravel()


def slope_scores(
    resp: Float[np.ndarray, "n k"], prior: Float[np.ndarray, "n k"], sloped: Any
) -> tuple[Float[np.ndarray, "n 1"], Float[np.ndarray, " 1"]]:
    """Scores of the items by a log-slope, and the precision of its prior.

    Args:
        resp: responsibilities.
        prior: probabilities of the classes before the label.
        sloped: ``(n, K)`` what the slope multiplies, times the slope.
    """
    return ((resp - prior) * sloped).sum(1, keepdims=True), np.array([_SLOPE_PRECISION])


def _shares(at: KnownShares, threshold: float) -> Measurement | None:
    n, k = at.resp.shape
    if n < max(_LEAST, 10 * k):
        return None
    # by the logarithms of the shares, the last class's as they are
    item = (at.resp - at.prior)[:, :-1]
    total, variance = jointly(item, at.estimated, at.precision, at.weights)
    variance = variance + _rarely_seen(at, item)
    inverse = np.linalg.pinv(variance, rcond=1e-8, hermitian=True)
    step = np.clip(np.append(inverse @ total, 0.0), -_FARTHEST, _FARTHEST)
    p_value = float(stats.chi2.sf(total @ inverse @ total, k - 1))
    # how far the shares before labels would move, from those that were given
    before, after = (
        np.average(one, 0, at.weights)
        for one in (at.prior, softmax(np.log(np.maximum(at.prior, 1e-30)) + step, axis=1))
    )
    moved = after - before
    far = int(np.argmax(np.abs(moved)))
    effect = float(moved[far])
    sure = p_value < (_OF_SCORES if at.of_scores else LEVEL)
    bad = sure and abs(effect) >= threshold
    statistic = float(np.copysign(stats.norm.isf(max(p_value, 1e-300) / 2), effect))
    facts = {"at": far}
    return Measurement(effect, bad, sure, statistic, p_value, facts)


def _rarely_seen(at: KnownShares, item: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "k k"]:
    """By how much the model's covariance matrix of the scores exceeds that of the items.

    The scores of a class that happens to have no item hardly vary. The model's is what classes vary
    less what the data leave open of them (Louis 1982).
    """
    square = np.square(at.weights * at.weights.sum() / np.square(at.weights).sum())

    def variation(probs: np.ndarray) -> np.ndarray:
        free = probs[:, :-1]
        return np.asarray(np.diag(square @ free) - (free.T * square) @ free)

    beyond = variation(at.prior) - variation(at.resp) - (item.T * square) @ item
    values, vectors = np.linalg.eigh(beyond)
    return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T)


def _sentence(at: KnownShares, found: Measurement) -> str:
    name, side = repr(plain(at.names[found.facts["at"]])), "more" if found.effect > 0 else "fewer"
    return (
        f"labels and features contradict the class shares that were given (class_prior): {side} "
        f"items are {name} than {percent(at.given[found.facts['at']])}"
    )


CHECKS: tuple[Check[KnownShares], ...] = (
    Check(
        "class shares",
        "Do labels and features suit the class shares that were given?",
        _shares,
        0.02,
        _sentence,
        always(remedies.LEARNED_SHARES),
        "labels and features do not contradict the class shares that were given",
    ),
)
