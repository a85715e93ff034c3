"""Posterior predictive checks of the given labels: are they predicted as often as they occur?"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int
from scipy.special import logsumexp

from nbmodels.diagnostics.checks import remedies
from nbmodels.diagnostics.checks.base import Check, Measurement, always, percent
from nbmodels.diagnostics.score_tests import Scores, largest, summed

#: Logarithm of the least probability that is distinguished from zero.
LEAST = -60.0

_BINS = 5

#: Digits of predicted probabilities.
_DIGITS = 4


def without_own_label(
    resp: Float[np.ndarray, "n k"],
    codes: Int[np.ndarray, " n"],
    transition: Float[np.ndarray, "k k"],
) -> Float[np.ndarray, "n k"]:
    """``(n, K)`` log P(true class | everything but the item's own given label).

    Args:
        resp: ``(n, K)`` responsibilities.
        codes: ``(n,)`` given labels, negative where missing.
        transition: ``(K, K)`` P(observed | true).
    """
    tiny = np.finfo(float).tiny
    logs = np.maximum(np.log(np.maximum(resp, tiny)), LEAST)
    rates = np.log(np.maximum(transition, tiny)).T
    own = np.where((codes >= 0)[:, None], rates[np.maximum(codes, 0)], 0)
    # of a class that never has the label, nothing can be recovered
    logs = np.where(own < LEAST, LEAST, logs - own)
    return logs - logsumexp(logs, 1, keepdims=True)


@dataclass(frozen=True)
class LabelEvidence:
    """The items with a given label.

    Attributes:
        logs: ``(n, K)`` log P(true class | everything but the item's own given label).
        resp: ``(n, K)`` responsibilities.
        weights: ``(n,)`` row weights, above 0.
        codes: ``(n,)`` given labels.
        transition: ``(K, K)`` P(observed | true).
        reference: ``(n,)`` class predicted from the features, learned from other items' labels;
            None where nothing could be learned.
        one_rate: whether the transition was fitted with one error rate for all pairs of classes.
    """

    logs: Float[np.ndarray, "n k"]
    resp: Float[np.ndarray, "n k"]
    weights: Float[np.ndarray, " n"]
    codes: Int[np.ndarray, " n"]
    transition: Float[np.ndarray, "k k"]
    reference: Int[np.ndarray, " n"] | None
    one_rate: bool

    @property
    def rates(self) -> Float[np.ndarray, "n k"]:
        """P(given label | everything else), of each class."""
        # the label's own factor was divided out, up to a rounding error that must break no ties
        return np.round(np.exp(self.logs) @ self.transition, _DIGITS)


def _agreement(at: LabelEvidence, threshold: float) -> Measurement | None:
    if at.reference is None:
        return None
    rates = at.rates
    expected = rates[np.arange(len(at.reference)), at.reference]
    agrees = at.reference == at.codes
    test = largest(summed(agrees - expected, at.weights))
    found = Measurement.of_test(
        test,
        threshold,
        seen=np.average(agrees, weights=at.weights),
        expected=np.average(expected, weights=at.weights),
        follows=np.average(at.reference == rates.argmax(1), weights=at.weights),
    )
    return replace(found, notable=True)


def _agreement_sentence(at: LabelEvidence, found: Measurement) -> str:
    seen, expected = found.facts["seen"], found.facts["expected"]
    sentence = (
        f"a reference classifier predicts {percent(seen)} of the given labels out of fold, where "
        f"the fit expects {percent(expected)}"
    )
    if not found.bad:
        return sentence
    if found.effect < 0:
        return f"the features predict the labels worse than the fit assumes: {sentence}"
    if found.facts["follows"] < seen:
        return f"the fit follows clusters of the features instead of the labels: {sentence}"
    return f"the features predict the labels better than the fit assumes: {sentence}"


def _overconfidence(at: LabelEvidence, threshold: float) -> Measurement:
    """Score of a power of P(class | all but the label), in the likelihood of the label."""
    p, logs, weights = np.exp(at.logs), np.maximum(at.logs, LEAST), at.weights
    score = np.sum((at.resp - p) * logs, 1)

    def spread(q: np.ndarray) -> np.ndarray:
        return np.sum(q * logs**2, 1) - np.sum(q * logs, 1) ** 2

    # missing information: the curvature is the spread without the label less that with it
    curvature = float(weights @ (spread(p) - spread(at.resp)))
    unit = max(curvature, float(weights @ score**2), np.finfo(float).tiny)
    test = largest(Scores(weights @ score, weights**2 @ score**2, np.asarray(unit)), side=-1)
    bad = test.beyond(threshold) and test.effect < 0
    return Measurement(max(test.effect, -1.0), bad, bad, test.z, test.p_value)


def _calibration(at: LabelEvidence, threshold: float) -> Measurement:
    """Frequency of the likeliest given label, in bins of its predicted probability."""
    rates, weights = at.rates, at.weights
    # rounded: items of equal probability belong to one bin, whichever label they have
    best, sure = rates.argmax(1), np.round(rates.max(1), 9)
    edges = np.unique(np.quantile(sure, np.linspace(0, 1, _BINS + 1)[1:-1]))
    inside = np.eye(len(edges) + 1)[np.searchsorted(edges, sure)]
    score = ((best == at.codes) - sure)[:, None] * inside
    test = largest(Scores(weights @ score, weights**2 @ score**2, weights @ inside))
    mean = np.average(sure, weights=weights * inside[:, test.at[0]])
    return replace(Measurement.of_test(test, threshold, mean=mean), notable=True)


def _one_rate(at: LabelEvidence, threshold: float) -> Measurement | None:
    """By how much a third of the reference's contradictions exceeds the share of wrong labels.

    Errors with a direction (one class mistaken for another) are learned as part of the features'
    distributions where the noise has one rate: then hardly a label is taken for wrong.
    """
    if at.reference is None or not at.one_rate:
        return None
    wrong = 1 - np.average(at.resp[np.arange(len(at.codes)), at.codes], weights=at.weights)
    contradicted = np.average(at.reference != at.codes, weights=at.weights)
    effect = float(contradicted / 3 - wrong)
    bad = effect > threshold
    return Measurement(effect, bad, bad, facts={"wrong": wrong, "contradicted": contradicted})


CHECKS: tuple[Check[LabelEvidence], ...] = (
    Check(
        "agreement",
        "Do features and labels agree as often as the fit expects?",
        _agreement,
        0.05,
        _agreement_sentence,
        always(remedies.CROSS_FIT, remedies.SMALLER_WEIGHT),
    ),
    Check(
        "overconfidence",
        "Are the posteriors overconfident?",
        _overconfidence,
        0.3,
        lambda _, found: (
            "posteriors are overconfident: judged by the given labels, the features' "
            f"log-likelihood should count {percent(1 + found.effect)} of what it does"
        ),
        always(remedies.CROSS_FIT, remedies.SMALLER_WEIGHT),
        "posteriors are not overconfident, judged by the given labels",
    ),
    Check(
        "calibration",
        "Do given labels occur as often as the fit predicts?",
        _calibration,
        0.1,
        lambda _, found: (
            f"labels predicted with probability {percent(found.facts['mean'])} occur in "
            f"{percent(found.facts['mean'] + found.effect)} of the cases"
        ),
        always(remedies.CROSS_FIT, remedies.OTHER_EMISSION),
    ),
    Check(
        "one error rate",
        "Does one error rate for all pairs of classes explain the labels?",
        _one_rate,
        0.01,
        lambda _, found: (
            f"only {100 * found.facts['wrong']:.1f} % of the given labels would be wrong, while a "
            f"reference classifier contradicts {percent(found.facts['contradicted'])} of them out "
            "of fold: errors may have a direction (one class mistaken for another), which one "
            "error rate cannot represent"
        ),
        always(remedies.FULL_NOISE),
        "the share of wrong labels fits one error rate",
        advisory=True,
    ),
)
