"""Checks of the outcome of a fit: classes that drift from their labels, starts that disagree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from nbmodels.data.validation import plain
from nbmodels.diagnostics.checks import remedies
from nbmodels.diagnostics.checks.base import Check, Measurement, always, percent
from nbmodels.diagnostics.checks.ends import Ends
from nbmodels.diagnostics.findings import INDEPENDENT, SEPARABLE, SHARE_WRONG
from nbmodels.diagnostics.share_wrong import BOUNDED_BELOW, NOT_ESTIMATED, ShareLimits
from nbmodels.fitting.identifiability import vanished

#: Least share of labels that stay against the fit for a sentence about it.
_TOLD = 0.02

#: Classes that a sentence names.
_NAMED = 6


@dataclass(frozen=True)
class Outcome:
    """All items of a fit, and its starts.

    Attributes:
        resp: ``(n, K)`` responsibilities of the items with a given label.
        weights: ``(n,)`` their row weights, above 0.
        codes: ``(n,)`` their given labels.
        names: ``(K,)`` names of the classes.
        checked: whether some labels were checked by hand.
        restarts: objective that each start reached, that from the labels first.
        mass: sum of all row weights.
        ends: the fit beside the model whose classes are functions of the features, or None.
        kept: share of the given labels that the fit by itself would change, and that stay.
        limits: what limits the share of wrong labels.
        share: expected share of wrong labels; None for that of :attr:`resp`.
    """

    resp: Float[np.ndarray, "n k"]
    weights: Float[np.ndarray, " n"]
    codes: Int[np.ndarray, " n"]
    names: Any
    checked: bool
    restarts: tuple[float, ...]
    mass: float
    ends: Ends | None = None
    kept: float = 0.0
    limits: ShareLimits = BOUNDED_BELOW
    share: float | None = None

    @property
    def expected(self) -> float:
        """Expected share of wrong labels, of all items with a given label."""
        if self.share is not None:
            return self.share
        right = self.resp[np.arange(len(self.codes)), self.codes]
        return float(1 - np.average(right, weights=self.weights))


def _drift(at: Outcome, threshold: float) -> Measurement | None:
    if not len(at.codes):
        return None
    gone = vanished(np.eye(at.resp.shape[1])[at.codes], at.resp, at.weights)
    right = at.resp[np.arange(len(at.codes)), at.codes]
    wrong = float(1 - np.average(right, weights=at.weights))
    # where labels were checked, most of the others may well be wrong
    bad = bool((wrong > threshold and not at.checked) or len(gone))
    return Measurement(wrong, bad, facts={"gone": gone})


def _drift_sentence(at: Outcome, found: Measurement) -> str:
    sentence = f"{percent(found.effect)} of the given labels would be wrong"
    if not len(found.facts["gone"]):
        return sentence
    gone = ", ".join(repr(plain(at.names[k])) for k in found.facts["gone"][:_NAMED])
    return f"{sentence}, and hardly an item is left of these classes: {gone}"


def _share(at: Outcome, threshold: float) -> Measurement | None:
    if not len(at.codes):
        return None
    if not at.limits.estimated:
        return Measurement(np.nan, bad=False)
    return Measurement(at.expected, bad=False)


def _share_sentence(at: Outcome, found: Measurement) -> str:
    if not at.limits.estimated:
        return f"The share of wrong labels is {NOT_ESTIMATED}, {at.limits.words}"
    sentence = f"An estimated {100 * found.effect:.1f} % of the given labels are wrong"
    other = np.nan if at.ends is None else at.ends.without_overlap
    if at.ends is None or not (at.ends.differ or at.limits.contradicted(found.effect, other)):
        sentence = f"{sentence}: {at.limits.words}"
    else:
        sentence = f"{sentence} {INDEPENDENT}, and {100 * other:.1f} % {SEPARABLE}"
        if at.ends.checked is not None:
            sentence = f"{sentence}; {at.ends.checked.clause}"
    if at.kept < _TOLD:
        return sentence
    stay = f"{100 * at.kept:.1f} % of the labels would be changed by the fit alone, and stay"
    return f"{sentence}; {stay}, since classes that overlap may explain them as well"


def _restarts(at: Outcome, threshold: float) -> Measurement | None:
    if len(at.restarts) < 2:
        return None
    first, *others = at.restarts
    gap = (float(np.nanmax(others)) - first) / at.mass
    bad = bool(gap > threshold)
    return Measurement(gap, bad, bad)


CHECKS: tuple[Check[Outcome], ...] = (
    Check(
        "drift",
        "Did the inferred classes drift away from the given labels?",
        _drift,
        0.5,
        _drift_sentence,
        always(
            remedies.CROSS_FIT,
            remedies.OPEN_GRAPH,
            remedies.SYMMETRIC_NOISE,
            remedies.SMALLER_WEIGHT,
        ),
    ),
    Check(
        "restarts",
        "Do all starts lead to the same solution?",
        _restarts,
        0.01,
        lambda _, found: (
            "a random start reached a higher likelihood than the start from the labels, by "
            f"{found.effect:.2g} nats per row: the likelihood prefers other classes"
        ),
        always(remedies.CROSS_FIT, remedies.NO_RESTARTS),
        "no random start reached a much higher likelihood than the start from the labels",
    ),
    Check(
        SHARE_WRONG,
        "How many of the given labels are wrong?",
        _share,
        np.inf,
        _share_sentence,
        always(),
    ),
)
