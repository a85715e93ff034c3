"""Posterior predictive checks of the given labels: are they predicted as often as they occur?"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int
from scipy.special import logsumexp
from scipy.stats import norm

from nbmodels.diagnostics.checks import remedies
from nbmodels.diagnostics.checks.base import Check, Measurement, always, percent
from nbmodels.diagnostics.findings import AGREEMENT
from nbmodels.diagnostics.score_tests import Scores, largest, summed
from nbmodels.fitting.errors_by_size import log_rates
from nbmodels.fitting.sides import sides_of

#: Logarithm of the least probability that is distinguished from zero.
LEAST = -60.0

_BINS = 5

#: Standard errors by which a classifier must side with labels that would be changed.
_SIDES = 2.0

#: Digits of predicted probabilities.
_DIGITS = 4


def without_own_label(
    resp: Float[np.ndarray, "n k"],
    codes: Int[np.ndarray, " n"],
    transition: Float[np.ndarray, "k k"],
    relative: Float[np.ndarray, " n"] | None = None,
) -> Float[np.ndarray, "n k"]:
    """``(n, K)`` log P(true class | everything but the item's own given label).

    Args:
        resp: ``(n, K)`` responsibilities.
        codes: ``(n,)`` given labels, negative where missing.
        transition: ``(K, K)`` P(observed | true).
        relative: ``(n,)`` multiple of its error rates for each item; None for 1.
    """
    tiny = np.finfo(float).tiny
    logs = np.maximum(np.log(np.maximum(resp, tiny)), LEAST)
    own = log_rates(codes, transition, np.ones(len(codes)) if relative is None else relative)
    # of a class that never has the label, nothing can be recovered
    logs = np.where(own < LEAST, LEAST, logs - own)
    return logs - logsumexp(logs, 1, keepdims=True)


def label_rates(
    logs: Float[np.ndarray, "n k"],
    transition: Float[np.ndarray, "k k"],
    relative: Float[np.ndarray, " n"] | None = None,
) -> Float[np.ndarray, "n k"]:
    """``(n, K)`` P(given label | everything else), of each class.

    Args:
        logs: ``(n, K)`` from :func:`without_own_label`.
        transition, relative: as there.
    """
    probs = np.exp(logs)
    observed = probs @ transition
    return observed if relative is None else probs + relative[:, None] * (observed - probs)


@dataclass(frozen=True)
class LabelEvidence:
    """The items with a given label.

    Attributes:
        logs: ``(n, K)`` log P(true class | everything but the item's own given label).
        resp: ``(n, K)`` responsibilities.
        weights: ``(n,)`` row weights, above 0.
        codes: ``(n,)`` given labels.
        transition: ``(K, K)`` P(observed | true).
        reference: ``(n,)`` class predicted from the features, learned from other items' labels, -1
            where it was not; None where nothing could be learned.
        one_rate: whether the transition was fitted with one error rate for all pairs of classes.
        nonlinear: ``(n,)`` the same as ``reference`` by a nonlinear classifier, where ``reference``
            is the model's own, or None.
        corrected: ``(n,)`` true class by that classifier, corrected for errors with a direction, or
            None.
        relative: ``(n,)`` multiple of the transition's error rates for each item; None for 1.
    """

    logs: Float[np.ndarray, "n k"]
    resp: Float[np.ndarray, "n k"]
    weights: Float[np.ndarray, " n"]
    codes: Int[np.ndarray, " n"]
    transition: Float[np.ndarray, "k k"]
    reference: Int[np.ndarray, " n"] | None
    one_rate: bool
    nonlinear: Int[np.ndarray, " n"] | None = None
    corrected: Int[np.ndarray, " n"] | None = None
    relative: Float[np.ndarray, " n"] | None = None

    @property
    def rates(self) -> Float[np.ndarray, "n k"]:
        """P(given label | everything else), of each class."""
        # the label's own factor was divided out, up to a rounding error that must break no ties
        return np.round(label_rates(self.logs, self.transition, self.relative), _DIGITS)


def _agreement(at: LabelEvidence, threshold: float) -> Measurement | None:
    if at.reference is None or not np.any(at.reference >= 0):
        return None
    here = at.reference >= 0
    rates, reference, weights = at.rates[here], at.reference[here], at.weights[here]
    expected = rates[np.arange(len(reference)), reference]
    agrees = reference == at.codes[here]
    test = largest(summed(agrees - expected, weights))
    seen = np.average(agrees, weights=weights)
    follows = np.average(reference == rates.argmax(1), weights=weights)
    found = Measurement.of_test(
        test,
        threshold,
        seen=seen,
        expected=np.average(expected, weights=weights),
        follows=follows,
    )
    # the commonest class is predicted without any features
    commonest = np.bincount(at.codes[here], weights).max() / weights.sum()
    bad = found.bad and (found.effect < 0 or follows < seen or seen > commonest)
    return replace(found, bad=bad, notable=True)


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
    if at.reference is None or not at.one_rate or not np.any(at.reference >= 0):
        return None
    wrong = 1 - np.average(at.resp[np.arange(len(at.codes)), at.codes], weights=at.weights)
    here = at.reference >= 0
    contradicted = np.average(at.reference[here] != at.codes[here], weights=at.weights[here])
    effect = float(contradicted / 3 - wrong)
    bad = effect > threshold
    return Measurement(effect, bad, bad, facts={"wrong": wrong, "contradicted": contradicted})


def _sides(at: LabelEvidence, threshold: float) -> Measurement | None:
    """Whether a nonlinear classifier sides with the given labels that the fit would change.

    Asked for classes, as where changes are decided (:mod:`nbmodels.fitting.changed_labels`): its
    predictions of given labels side with errors that have a direction.
    """
    if at.corrected is None:
        return None
    found = sides_of(at.corrected, at.codes, at.resp.argmax(1))
    if not found.changed:
        return None
    effect = (found.given - found.suggested) / len(at.codes)
    bad = found.z > _SIDES and effect > threshold
    return Measurement(effect, bad, bad, found.z, float(norm.sf(found.z)), found._asdict())


def _nonlinear(at: LabelEvidence, threshold: float) -> Measurement | None:
    """Whether a nonlinear classifier predicts more of the given labels than the model's scores."""
    if at.nonlinear is None or at.reference is None or not np.any(at.nonlinear >= 0):
        return None
    here = at.nonlinear >= 0
    codes, weights = at.codes[here], at.weights[here]
    plain, own = at.nonlinear[here] == codes, at.reference[here] == codes
    test = largest(summed(plain.astype(float) - own, weights), side=1)
    found = Measurement.of_test(
        test,
        threshold,
        seen=np.average(plain, weights=weights),
        own=np.average(own, weights=weights),
    )
    return replace(found, bad=found.bad and found.effect > 0, notable=True)


CHECKS: tuple[Check[LabelEvidence], ...] = (
    Check(
        AGREEMENT,
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
    Check(
        "changed labels",
        "Are labels that would be changed predicted as suggested, rather than as given?",
        _sides,
        0.01,
        lambda _, found: (
            f"of {found.facts['changed']} labels that would be changed, a nonlinear classifier of "
            f"the features predicts {found.facts['given']} as given and "
            f"{found.facts['suggested']} as suggested, from other items' labels: the features' "
            "model is wrong, labels are changed where that is likely to help only, and the noise "
            "matrix holds the model's own errors"
        ),
        always(remedies.AUTO),
        "a nonlinear classifier does not side with given labels that would be changed",
    ),
    Check(
        "nonlinear classifier",
        "Does a nonlinear classifier predict more of the given labels?",
        _nonlinear,
        0.05,
        lambda _, found: (
            f"a nonlinear classifier of the features predicts {percent(found.facts['seen'])} of "
            f"the given labels out of fold, and this model {percent(found.facts['own'])}"
        ),
        always(remedies.AUTO),
        advisory=True,
    ),
)
