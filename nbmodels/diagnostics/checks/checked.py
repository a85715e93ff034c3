"""Calibration of P(wrong) on checked labels: are as many of them wrong as the fit expects?

Given an item's features and label the fit has a probability that the label is wrong, from
everything but the check itself. The test conditions on features and labels, so it holds however the
rows to check were drawn from these, as in an audit that prefers suspects. So does the comparison
with the other end of what labels allow, whose probabilities are compared with the same checks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import norm

from nbmodels.diagnostics.checks import remedies
from nbmodels.diagnostics.checks.base import Check, Measurement
from nbmodels.diagnostics.findings import CHECKED_LABELS

#: Fewest checked labels that say anything, standard errors by which the fit must differ from them
#: to fail, and by which an end of the range must to be contradicted.
LEAST, _ERRORS, _SURE = 10, 3.0, 2.0


def _off(wrong: Bool[np.ndarray, " n"], expected: Float[np.ndarray, " n"]) -> tuple[float, float]:
    """Share of wrong labels less the expected one, also in standard errors."""
    gap = float(np.mean(wrong - expected))
    # half an item of each kind, so that certainty is no proof of anything
    spread = np.sqrt(np.sum(expected * (1 - expected)) + 0.5) / len(wrong)
    return gap, float(gap / spread)


@dataclass(frozen=True)
class CheckedEnds:
    """Checked labels beside both ends of what labels and features allow.

    Attributes:
        wrong: ``(n,)`` whether they are wrong.
        independent: ``(n,)`` probability of that by the fit without the check.
        separable: ``(n,)`` the same by the model whose classes are functions of the features.
    """

    wrong: Bool[np.ndarray, " n"]
    independent: Float[np.ndarray, " n"]
    separable: Float[np.ndarray, " n"]

    @property
    def contradicted(self) -> tuple[bool, bool]:
        """Whether surely more or fewer labels are wrong than either end expects."""
        ends = (self.independent, self.separable)
        one, other = (abs(_off(self.wrong, end)[1]) > _SURE for end in ends)
        return one, other

    @property
    def decided(self) -> bool:
        """Whether they contradict an end, so that the share of wrong labels is not open."""
        return any(self.contradicted)

    @property
    def support(self) -> str:
        """Which end they support, as a predicate; the fit's own is the former."""
        match self.contradicted:
            case False, True:
                return "support the former"
            case True, False:
                return "support the latter"
            case False, False:
                return "do not decide between the two"
        wrong, one, other = (part.sum() for part in (self.wrong, self.independent, self.separable))
        if min(one, other) < wrong < max(one, other):
            return "lie between the two"
        nearer = "former" if abs(wrong - one) < abs(wrong - other) else "latter"
        return f"agree with neither, and are nearer to the {nearer}"

    @property
    def clause(self) -> str:
        """Which of two shares that a sentence has named they support."""
        expected = f"{self._expected} of {len(self.wrong)} expected to be wrong"
        return f"checked labels {self.support} ({expected})"

    @property
    def sentence(self) -> str:
        """The same, with what was found."""
        return (
            f"Of {len(self.wrong)} checked labels {self.wrong.sum()} are wrong, where "
            f"{self._expected} are expected: they {self.support}"
        )

    @property
    def _expected(self) -> str:
        return f"{self.independent.sum():.0f} and {self.separable.sum():.0f}"


@dataclass(frozen=True)
class CheckedLabels:
    """Labels that were checked by hand.

    Attributes:
        wrong: ``(n,)`` whether they are wrong.
        expected: ``(n,)`` probability of that by the fit without the check.
        mended: ``(n,)`` whether the likeliest class by the fit without the check is the true one.
        separable: ``(n,)`` probability that they are wrong by the model whose classes are functions
            of the features, without the check; NaN where it did not look, or there is none.
    """

    wrong: Bool[np.ndarray, " n"]
    expected: Float[np.ndarray, " n"]
    mended: Bool[np.ndarray, " n"]
    separable: Float[np.ndarray, " n"] = field(default_factory=lambda: np.array(np.nan))

    @property
    def enough(self) -> bool:
        """Whether they are as many as it takes to say anything."""
        return len(self.wrong) >= LEAST

    @property
    def ends(self) -> CheckedEnds | None:
        """Beside both ends; None where the other one looked at too few of them."""
        separable = np.broadcast_to(self.separable, self.wrong.shape)
        here = np.isfinite(separable)
        if here.sum() < LEAST:
            return None
        return CheckedEnds(self.wrong[here], self.expected[here], separable[here])

    @property
    def helps(self) -> bool:
        """Whether more of them are right as the fit suggests than as they were given."""
        return bool(self.mended.sum() > (~self.wrong).sum())


def _wrong(at: CheckedLabels, threshold: float) -> Measurement | None:
    if not at.enough:
        return None
    gap, z = _off(at.wrong, at.expected)
    bad = abs(z) > _ERRORS and abs(gap) > threshold
    share_only = bad and at.helps
    p_value = float(2 * norm.sf(abs(z)))
    return Measurement(gap, bad, statistic=z, p_value=p_value, share_only=share_only)


def _sentence(at: CheckedLabels, found: Measurement) -> str:
    n, wrong = len(at.wrong), at.wrong.sum()
    sentence = (
        f"of {n} checked labels {wrong} are wrong, where the fit expects {at.expected.sum():.0f} "
        "without the checks"
    )
    if not found.bad:
        return sentence
    side = "low" if found.effect > 0 else "high"
    # a verdict on nothing but the share has named it
    share = "this share" if found.share_only else "its share of wrong labels"
    return (
        f"{sentence}, so that {share} is too {side}; {n - wrong} of them are "
        f"right as given, and {at.mended.sum()} as it suggests without the checks"
    )


def _remedies(at: CheckedLabels) -> tuple[str, ...]:
    other = at.ends is not None and at.ends.contradicted == (True, False)
    return (remedies.NEIGHBOURS, remedies.AUTO) if other else (remedies.AUTO,)


CHECKS: tuple[Check[CheckedLabels], ...] = (
    Check(
        CHECKED_LABELS,
        "Are as many checked labels wrong as the fit expects?",
        _wrong,
        0.05,
        _sentence,
        _remedies,
    ),
)
