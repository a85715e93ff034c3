"""Score tests of an emission's assumptions: independence, tails, symmetry, noise by class alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from nbmodels.core.residuals import Residuals
from nbmodels.diagnostics.checks import remedies
from nbmodels.diagnostics.checks.base import Check, Measurement, always, percent
from nbmodels.diagnostics.findings import LABELS_DEPEND
from nbmodels.diagnostics.score_tests import OfColumns, largest


@dataclass(frozen=True)
class EmissionEvidence:
    """What an emission leaves unexplained of its columns.

    Attributes:
        residuals: of some columns of some items.
        scores: sums over the items, by class; the last of all classes together.
        columns: ``(c,)`` name of the column of each residual.
        names: ``(K,)`` names of the classes.
    """

    residuals: Residuals
    scores: OfColumns
    columns: Sequence[str]
    names: Any

    def within(self, k: int) -> str:
        """The class of a test, or all of them."""
        return f"within class {self.names[k]}" if k < len(self.names) else "within classes"


def _correlation(at: EmissionEvidence, threshold: float) -> Measurement | None:
    scores = at.scores.products
    return None if scores is None else Measurement.of_test(largest(scores), threshold)


def _correlation_sentence(at: EmissionEvidence, found: Measurement) -> str:
    k, i, j = found.facts["at"]
    return (
        f"columns {at.columns[i]} and {at.columns[j]} are correlated {at.within(k)} beyond the "
        f"model (correlation {found.effect:+.2f})"
    )


def _correlation_remedies(at: EmissionEvidence) -> tuple[str, ...]:
    real = at.residuals.size is not None
    return (remedies.CROSS_FIT, remedies.FULL_COVARIANCE if real else remedies.SMALLER_WEIGHT)


def _tails(at: EmissionEvidence, threshold: float) -> Measurement | None:
    scores = at.scores.size
    return None if scores is None else Measurement.of_test(largest(scores), threshold)


def _tails_sentence(at: EmissionEvidence, found: Measurement) -> str:
    k, j = found.facts["at"]
    tails, side = ("heavy", "below") if found.effect < 0 else ("short", "above")
    return (
        f"column {at.columns[j]} has {tails} tails {at.within(k)} (mean absolute deviation "
        f"{percent(abs(found.effect))} {side} that of the model)"
    )


def _skew(at: EmissionEvidence, threshold: float) -> Measurement | None:
    scores = at.scores.sign
    return None if scores is None else Measurement.of_test(largest(scores), threshold)


def _skew_sentence(at: EmissionEvidence, found: Measurement) -> str:
    k, j = found.facts["at"]
    above = min(max((1 + found.effect) / 2, 0.0), 1.0)  # no "-0 %"
    return (
        f"column {at.columns[j]} is skewed {at.within(k)} ({percent(above)} of its values lie "
        "above the mean)"
    )


def _repeated(at: EmissionEvidence, threshold: float) -> Measurement | None:
    """Variance of a word's count against that of independent words, less one."""
    if at.scores.repeated is None:
        return None
    test = largest(at.scores.repeated, side=1)
    effect = max(at.residuals.length - 1, 0) * test.effect
    return Measurement.of_test(replace(test, effect=effect), threshold)


def _dependent(at: EmissionEvidence, threshold: float) -> Measurement | None:
    scores = at.scores.labels
    return None if scores is None else Measurement.of_test(largest(scores), threshold)


def _dependent_sentence(at: EmissionEvidence, found: Measurement) -> str:
    j, c = found.facts["at"]
    label = f"a wrong label {at.names[j]}" if j < len(at.names) else "a right label"
    return (
        f"column {at.columns[c]} is correlated with {label} within classes (correlation "
        f"{found.effect:+.2f}): the error rate differs between items of one class"
    )


CHECKS: tuple[Check[EmissionEvidence], ...] = (
    Check(
        "correlation",
        "Are columns independent given the class, or as correlated as modelled?",
        _correlation,
        0.2,
        _correlation_sentence,
        _correlation_remedies,
        "no two columns are correlated beyond the model",
    ),
    Check(
        "tails",
        "Are the tails those of the modelled distribution?",
        _tails,
        0.05,
        _tails_sentence,
        always(remedies.STUDENT, remedies.CROSS_FIT),
        "tails are those of the modelled distribution",
    ),
    Check(
        "skew",
        "Are columns symmetric given the class?",
        _skew,
        0.15,
        _skew_sentence,
        always(remedies.CROSS_FIT, remedies.TRANSFORMED_COLUMN),
        "columns are symmetric given the class",
    ),
    Check(
        "repeated words",
        "Are words drawn independently given the class?",
        _repeated,
        0.2,
        lambda _, found: (
            "words repeat: within a class the variance of a word's count is "
            f"{1 + found.effect:.1f} times that of independent words"
        ),
        always(remedies.CROSS_FIT, remedies.PRESENCE, remedies.SMALLER_WEIGHT),
        "words do not repeat more often than independent words",
    ),
    Check(
        LABELS_DEPEND,
        "Do labels depend on the features through the true class alone?",
        _dependent,
        0.15,
        _dependent_sentence,
        always(remedies.CROSS_FIT, remedies.SPLIT_CLASS),
        "labels depend on the features through the true class alone",
    ),
)
