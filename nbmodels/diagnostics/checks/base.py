"""A model check as an entry of a table: what is measured, how much matters, what it means.

A new check is one :class:`Check` in the table of its kind: of the labels, of an emission's columns,
or of the outcome of the fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from nbmodels.diagnostics.findings import Finding
from nbmodels.diagnostics.score_tests import LEVEL, Largest

#: What a kind of check looks at.
T = TypeVar("T")


@dataclass(frozen=True)
class Measurement:
    """A check's statistic.

    Attributes:
        effect: how far the model is off.
        bad: whether that is significant, where there is a test, and large enough to matter.
        notable: whether the check's sentence describes it; otherwise the one for a passed check.
        statistic: of a test, standard normal where the model is right.
        p_value: of the statistic.
        facts: what else the sentence needs.
        undecided: whether the data allow very different answers.
        share_only: whether a bad result leaves corrected labels as good as they are.
        accounted: whether the fit reckons with what was found.
    """

    effect: float
    bad: bool
    notable: bool = True
    statistic: float = np.nan
    p_value: float = np.nan
    facts: dict[str, Any] = field(default_factory=dict)
    undecided: bool = False
    share_only: bool = False
    accounted: bool = False

    @classmethod
    def of_test(cls, test: Largest, threshold: float, **facts: Any) -> Measurement:
        """Of the largest of some tests; ``at`` in the facts is its index."""
        bad = test.beyond(threshold)
        facts = {"at": test.at, **facts}
        return cls(test.effect, bad, test.p_value < LEVEL, test.z, test.p_value, facts)


@dataclass(frozen=True)
class Check(Generic[T]):
    """A question to a fit.

    Attributes:
        name: short name of the check.
        question: the question.
        measure: from what is looked at and the threshold to the statistic; None where the question
            does not arise.
        threshold: smallest effect that matters.
        sentence: the result, from what is looked at and the statistic.
        remedies: what may help where the check fails.
        passed: the result where the statistic is not notable.
        advisory: whether a bad result is a reason to compare another fit only, not to reject this.
    """

    name: str
    question: str
    measure: Callable[[T, float], Measurement | None]
    threshold: float
    sentence: Callable[[T, Measurement], str]
    remedies: Callable[[T], tuple[str, ...]]
    passed: str = ""
    advisory: bool = False

    def run(self, subject: T) -> Finding | None:
        """The finding; None where the question does not arise."""
        found = self.measure(subject, self.threshold)
        if found is None:
            return None
        return Finding(
            self.name,
            self.question,
            found.statistic,
            found.p_value,
            found.effect,
            self.threshold,
            bool(found.bad and not self.advisory),
            self.sentence(subject, found) if found.notable else self.passed,
            self.remedies(subject) if found.bad else (),
            found.undecided,
            found.share_only,
            found.accounted,
        )


def always(*remedies: str) -> Callable[[Any], tuple[str, ...]]:
    """The same remedies for every fit."""
    return lambda _: remedies


def run(checks: Sequence[Check[T]], subject: T) -> Iterator[Finding]:
    """The findings of a table of checks, in its order."""
    findings = (check.run(subject) for check in checks)
    return (one for one in findings if one is not None)


def percent(share: float) -> str:
    """A share as people write it."""
    return f"{100 * share:.0f} %"
