"""The verdict where some labels were checked by hand."""

from dataclasses import replace

import numpy as np
import pytest

from nbmodels import (
    NoisyBernoulliNB,
    VerdictWarning,
)
from nbmodels.diagnostics.checks import (
    remedies,
)
from nbmodels.diagnostics.checks.base import run
from nbmodels.diagnostics.checks.checked import CHECKS as CHECKED_CHECKS
from nbmodels.diagnostics.checks.checked import CheckedLabels
from nbmodels.diagnostics.findings import Verdict


@pytest.mark.slow
def test_checked_labels_that_contradict_the_fit_are_named():
    """Labels of both classes are exchanged: consistent, but for what was checked."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=600)
    x = (rng.random((600, 6)) < np.where(y == 1, 0.8, 0.25)[:, None]).astype(int)
    given = np.where(rng.random(600) < 0.15, 1 - y, y)
    trusted = {row: int(y[row]) for row in range(25)}
    fits = NoisyBernoulliNB(random_state=0).fit(x, given, trusted=trusted)
    (found,) = [f for f in fits.verdict().findings if f.name == "checked labels"]
    assert not found.bad
    with pytest.warns(VerdictWarning, match="of 25 checked labels 2[0-9] are wrong"):
        exchanged = NoisyBernoulliNB(random_state=0).fit(x, 1 - given, trusted=trusted)
    assert exchanged.verdict().findings[0].name == "checked labels"


def audited(wrong, expected, mended, separable=np.nan, n=100):
    """Finding and verdict on checked labels."""
    about = CheckedLabels(
        np.arange(n) < wrong,
        np.full(n, expected / n),
        np.arange(n) < mended,
        np.full(n, separable / n),
    )
    (found,) = run(CHECKED_CHECKS, about)
    return found, Verdict((found,))


def test_a_share_that_checks_contradict_is_told_apart_from_a_fit_of_no_use():
    found, verdict = audited(23, 10, 91)
    assert found.bad
    assert not verdict.ok
    assert verdict.sentence == (
        "Do not rely on this fit's share of wrong labels: of 100 checked labels 23 are wrong, "
        "where the fit expects 10 without the checks, so that this share is too low; 77 of them "
        "are right as given, and 91 as it suggests without the checks. Try AutoNoisyClassifier."
    )
    assert "too high" in audited(2, 20, 99)[0].sentence
    # suggestions that are no better than the given labels
    found, verdict = audited(23, 10, 77)
    assert verdict.sentence.startswith("Do not use this fit as it is: of 100 checked labels 23")
    assert "so that its share of wrong labels is too low" in found.sentence


def test_checked_labels_are_counted_where_they_agree():
    found, verdict = audited(12, 10, 95)
    assert not found.bad
    told = "Of 100 checked labels 12 are wrong, where the fit expects 10 without the checks."
    assert told in verdict.sentence
    # where they leave both ends open, only more of them can tell
    open_ = replace(found, name="two ends", undecided=True)
    both = Verdict((open_, found))
    assert "More rows checked by hand can (audit_plan)." in both.sentence


def test_the_other_end_is_advised_where_checks_speak_for_it():
    assert audited(23, 10, 91, 24)[0].remedies == (remedies.NEIGHBOURS, remedies.AUTO)
    assert audited(23, 10, 91, 10)[0].remedies == (remedies.AUTO,)
