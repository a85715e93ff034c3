"""Results of model checking: findings and the verdict on a fit, as sentences and as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pandas as pd

from nbmodels.data.readable import Readable
from nbmodels.errors import Caution, NbmodelsWarning, VerdictWarning

#: What each end of the range of shares assumes.
INDEPENDENT = "if errors do not depend on the features"
SEPARABLE = "if classes do not overlap, so that near items are of one class"

#: Name of the finding that gives the share of wrong labels.
SHARE_WRONG = "share of wrong labels"

#: Name of the check whether features and labels agree as often as a fit expects.
AGREEMENT = "agreement"

#: Name of the check whether as many labels that were checked by hand are wrong as expected.
CHECKED_LABELS = "checked labels"

#: Name of the check whether as many labels would be wrong if classes did not overlap.
TWO_ENDS = "two ends"

#: Name of the check whether the shape of the classes supports overlap.
SHAPE = "shape of classes"

#: Name of the check whether labels depend on the features beyond the true class.
LABELS_DEPEND = "noise depends on features"

#: Opening where the data allow very different shares of wrong labels, and how to find out.
_NOT_IDENTIFIED = "Labels and features cannot tell how many labels are wrong."
_AUDIT = "Rows checked by hand can (audit_plan)."
_MORE_CHECKS = "More rows checked by hand can (audit_plan)."

#: How a verdict begins if checks failed, and if only the share of wrong labels is at fault.
_NOT_USABLE = "Do not use this fit as it is"
_SHARE_NOT_USABLE = "Do not rely on this fit's share of wrong labels"

#: Failed checks and remedies that the verdict spells out.
_SPELT_OUT = 3


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes:
        name: short name of the check.
        question: what was checked.
        statistic: of a test, standard normal where the model is right; NaN where there is no test.
        p_value: of the statistic, corrected for the number of tests of its kind; NaN without one.
        effect: how far the model is off, in a unit that the sentence names.
        threshold: smallest effect that matters.
        bad: whether the check failed, so that the fit should not be used as it is.
        sentence: the result as a sentence.
        remedies: what may help; empty where nothing is needed.
        undecided: whether the data allow very different answers, which a verdict says first.
        share_only: whether the check failed for the share of wrong labels alone, and labels are
            corrected better than they were given.
        accounted: whether something was found that the fit reckons with: the check neither failed
            nor passed.

    Examples:
        The first finding of a fit to 200 ants and bees, of which a fifth has the other label:

        >>> import numpy as np
        >>> from nbmodels import NoisyGaussianNB
        >>> from nbmodels.datasets import corrupt, uniform_noise
        >>> rng = np.random.default_rng(0)
        >>> animals = rng.integers(2, size=200)
        >>> lengths = 2.0 * animals[:, None] + rng.normal(size=(200, 3))
        >>> y = np.array(["ant", "bee"])[corrupt(animals, uniform_noise(2, 0.2), rng)]
        >>> model = NoisyGaussianNB(random_state=0).fit(lengths, y)
        >>> found = model.verdict().findings[0]
        >>> print(f"{found.name}: {found.question} {'failed' if found.bad else 'passed'}")
        agreement: Do features and labels agree as often as the fit expects? passed
    """

    name: str
    question: str
    statistic: float
    p_value: float
    effect: float
    threshold: float
    bad: bool
    sentence: str
    remedies: tuple[str, ...] = ()
    undecided: bool = False
    share_only: bool = False
    accounted: bool = False


@dataclass(frozen=True)
class Verdict(Readable):
    """The findings of all checks, and what they come to.

    Attributes:
        findings: those that matter most for the labels first.
        warned: what else the fit warned of, as sentences. A verdict under which no check failed
            begins with it.

    Examples:
        Of a fit to 200 ants and bees, of which a fifth has the other label:

        >>> import numpy as np
        >>> from nbmodels import NoisyGaussianNB
        >>> from nbmodels.datasets import corrupt, uniform_noise
        >>> rng = np.random.default_rng(0)
        >>> animals = rng.integers(2, size=200)
        >>> lengths = 2.0 * animals[:, None] + rng.normal(size=(200, 3))
        >>> y = np.array(["ant", "bee"])[corrupt(animals, uniform_noise(2, 0.2), rng)]
        >>> model = NoisyGaussianNB(random_state=0).fit(lengths, y)
        >>> verdict = model.verdict()
        >>> print(verdict.ok, [found.name for found in verdict.bad])
        True []
        >>> print(verdict.sentence)
        All checks of this fit passed (agreement, overconfidence, ...). An estimated ... % of the
        given labels are wrong: a lower bound if errors depend on the features.
    """

    findings: tuple[Finding, ...]
    warned: tuple[str, ...] = ()

    @property
    def bad(self) -> tuple[Finding, ...]:
        """Findings of the checks that failed."""
        return tuple(f for f in self.findings if f.bad)

    @property
    def advice(self) -> tuple[Finding, ...]:
        """Findings that are no reason to reject the fit, but suggest to compare another one."""
        return tuple(f for f in self.findings if f.remedies and not f.bad)

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return not self.bad

    @property
    def undecided(self) -> str:
        """What labels and features leave open, as a sentence; empty where that is nothing.

        Where they cannot tell how many labels are wrong, these are the shares by either end.
        """
        if not any(f.undecided for f in self.findings):
            return ""
        share = [f"{f.sentence}." for f in self.findings if f.name == SHARE_WRONG]
        return " ".join([_NOT_IDENTIFIED, *share])

    @property
    def sentence(self) -> str:
        """The verdict as a sentence."""
        if not self.findings:
            return "No check could be made of this fit."
        share = [f"{f.sentence}." for f in self.findings if f.name == SHARE_WRONG]
        if self.ok:
            share = [*self._checks, *share]
            stated = [*self._reckoned_with, *self._passed]
            if not any(f.undecided for f in self.findings):
                return " ".join([*self.warned, *stated, *share])
            return " ".join([*self.warned, _NOT_IDENTIFIED, *share, self._way_out, *stated])
        reasons = "; ".join(f.sentence for f in self.bad[:_SPELT_OUT])
        others = ", ".join(f.name for f in self.bad[_SPELT_OUT:])
        counts = Counter(remedy for f in self.bad for remedy in f.remedies)
        remedies = ", or ".join(remedy for remedy, _ in counts.most_common(_SPELT_OUT))
        more = f"; further failed checks: {others}" if others else ""
        advice = f" Try {remedies}." if remedies else ""
        opening = _SHARE_NOT_USABLE if all(f.share_only for f in self.bad) else _NOT_USABLE
        return " ".join([f"{opening}: {reasons}{more}.{advice}", *self._reckoned_with, *share])

    @property
    def _passed(self) -> list[str]:
        """Which checks passed, as a sentence; none where there was none."""
        others = [f for f in self.findings if f.undecided or f.accounted]
        passed = [f for f in self.findings if f.name != SHARE_WRONG and f not in others]
        names = ", ".join(dict.fromkeys(f.name for f in passed))
        which = "All other checks" if others or self.warned else "All checks"
        return [f"{which} of this fit passed ({names})."] if names else []

    @property
    def _reckoned_with(self) -> list[str]:
        """What was found that the fit takes into account, as sentences."""
        return [f"Taken into account: {f.sentence}." for f in self.findings if f.accounted]

    @property
    def _checks(self) -> list[str]:
        """What rows that were checked by hand show, as sentences."""
        found = (f.sentence for f in self.findings if f.name == CHECKED_LABELS)
        return [_as_sentence(sentence) for sentence in found]

    @property
    def _way_out(self) -> str:
        return _MORE_CHECKS if self._checks else _AUDIT

    def table(self) -> pd.DataFrame:
        """One row per finding, with the attributes of :class:`Finding` as columns."""
        return pd.DataFrame(
            [vars(f) for f in self.findings], columns=list(Finding.__dataclass_fields__)
        )

    def cautions(self) -> tuple[Caution, ...]:
        """The warning to issue about the fit; none where no check failed."""
        return () if self.ok else (Caution(VerdictWarning, self.sentence),)

    def states(self, message: str) -> bool:
        """Whether the verdict's sentence holds a warning of its fit."""
        return message == self.sentence or (self.ok and _as_sentence(message) in self.warned)

    def beside(self, cautions: Iterable[Caution]) -> Verdict:
        """The same of a fit that warned: of what it is, and not of how its input was read."""
        of_fit = [c for c in cautions if not c.finding and c.category is not NbmodelsWarning]
        return replace(self, warned=tuple(dict.fromkeys(_as_sentence(c.message) for c in of_fit)))


def _as_sentence(message: str) -> str:
    # names of arguments keep their case
    first = message[0] if message.split(":")[0].isidentifier() else message[0].upper()
    return f"{first}{message[1:].removesuffix('.')}."


def taken_into_account(caution: Caution) -> Finding:
    """What a fit says of itself that it reckons with, as a finding."""
    words = caution.message.removesuffix(".")
    question = "What else does the fit take into account?"
    nan = float("nan")
    return Finding(caution.finding, question, nan, nan, nan, nan, False, words, accounted=True)


def about_edges(finding: Finding) -> Finding:
    """The same of a graph, whose items have edges and no features."""
    question, sentence = (
        words.replace("features", "edges") for words in (finding.question, finding.sentence)
    )
    return replace(finding, question=question, sentence=sentence)
