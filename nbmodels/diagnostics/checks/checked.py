"""Calibration of P(wrong) on checked labels: are as many of them wrong as the fit expects?

Given an item's features and label the fit has a probability that the label is wrong, from
everything but the check itself. The test conditions on features and labels, so it holds however the
rows to check were drawn from these, as in an audit that prefers suspects.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import norm

from nbmodels.diagnostics.checks import remedies
from nbmodels.diagnostics.checks.base import Check, Measurement, always

#: Fewest checked labels, standard errors that the difference must exceed.
_LEAST, _ERRORS = 10, 3.0


@dataclass(frozen=True)
class CheckedLabels:
    """Labels that were checked by hand.

    Attributes:
        wrong: ``(n,)`` whether they are wrong.
        expected: ``(n,)`` probability of that by the fit without the check.
    """

    wrong: Bool[np.ndarray, " n"]
    expected: Float[np.ndarray, " n"]


def _wrong(at: CheckedLabels, threshold: float) -> Measurement | None:
    n = len(at.wrong)
    if n < _LEAST:
        return None
    gap = float(np.mean(at.wrong - at.expected))
    # half an item of each kind, so that certainty is no proof of anything
    spread = np.sqrt(np.sum(at.expected * (1 - at.expected)) + 0.5) / n
    z = float(gap / spread)
    bad = abs(z) > _ERRORS and abs(gap) > threshold
    facts = {"wrong": int(at.wrong.sum()), "expected": float(at.expected.sum()), "n": n}
    return Measurement(gap, bad, abs(z) > _ERRORS, z, float(2 * norm.sf(abs(z))), facts)


def _sentence(at: CheckedLabels, found: Measurement) -> str:
    return (
        f"of {found.facts['n']} checked labels {found.facts['wrong']} are wrong, where the fit "
        f"expects {found.facts['expected']:.0f} without the checks: its noise matrix does not hold"
    )


CHECKS: tuple[Check[CheckedLabels], ...] = (
    Check(
        "checked labels",
        "Are as many checked labels wrong as the fit expects?",
        _wrong,
        0.05,
        _sentence,
        always(remedies.AUDIT, remedies.AUTO),
        "as many checked labels are wrong as the fit expects without the checks",
    ),
)
