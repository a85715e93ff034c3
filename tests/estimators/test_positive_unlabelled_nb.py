"""Positive and unlabelled items: which checks make sense of them, and what draws are of."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from marks import slow

from nbmodels import PositiveUnlabelledNB
from nbmodels.diagnostics.findings import LABELS_DEPEND
from nbmodels.errors import VerdictWarning


def table(seed, n=400, rate=0.3):
    """Columns that are independent given the class, which two fifths of the items are of."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.4
    one = np.where(rng.random(6) < 0.5, 0.8, 0.2)
    X = rng.random((n, 6)) < np.where(positive[:, None], one, 1 - one)
    return X, positive, positive & (rng.random(n) < rate), rng


def fitted(X, labelled):
    y = np.where(labelled, "bee", "unknown")
    return PositiveUnlabelledNB(positive="bee").fit(np.where(X, "yes", "no"), y)


@cache
def right(seed=0, rate=0.3):
    X, positive, labelled, _ = table(seed, rate=rate)
    return fitted(X, labelled), positive, labelled


@pytest.mark.parametrize(("seed", "rate"), [(0, 0.3), slow(1, 0.3), slow(2, 0.05)])
def test_a_right_fit_passes(seed, rate):
    model, *_ = right(seed, rate)  # without a warning
    assert model.verdict().ok
    assert {f.name for f in model.verdict().findings} == {"correlation", LABELS_DEPEND}
    assert "failed_checks" not in model.corrected_labels()


@pytest.mark.slow
def test_right_fits_pass_also_where_positive_items_are_a_sample_of_their_own():
    ok = 0
    for seed in range(10):
        X, positive, _, rng = table(seed, n=800)
        apart = positive & (rng.random(800) < 0.5)
        ok += fitted(X, apart).verdict().ok
    assert ok >= 9


def test_labels_that_depend_on_a_column_fail():
    X, positive, _, rng = table(3, n=1000)
    chosen = positive & (rng.random(1000) < np.where(X[:, 0], 0.5, 0.1))
    with pytest.warns(VerdictWarning, match="the error rate differs"):
        model = fitted(X, chosen)
    bad = {f.name: f for f in model.verdict().bad}
    assert LABELS_DEPEND in bad
    # no way of training that the estimator does not have
    assert all("training" not in remedy for f in bad.values() for remedy in f.remedies)


@pytest.mark.slow
def test_draws_are_of_the_unlabelled_items_as_attributes_are():
    model, positive, labelled = right()
    tree = model.posterior(draws=300, chains=2, keep="parameters", progress=False)
    share = tree["posterior"]["class_prior"].sel(true_class="bee")
    assert abs(float(share.mean()) - model.class_prior_[0]) < 0.03
    assert abs(float(share.mean()) - positive[~labelled].mean()) < 3 * float(share.std())
    np.testing.assert_allclose(tree["posterior"]["class_prior"].sum("true_class"), 1)
    # three positive items in ten are labelled as such, which is no exchange of names
    assert "diagonally dominant" not in tree.attrs["warnings"]


def test_no_label_is_wrong():
    model, _, _ = right()
    with pytest.raises(AttributeError, match="PositiveUnlabelledNB has none: no label is wrong"):
        _ = model.noise_range_


def test_unlabelled_items_are_audited_as_the_other_class():
    X, positive, labelled, _ = table(0)
    y = pd.Series(np.where(labelled, "bee", None), dtype=object)
    model = PositiveUnlabelledNB(positive="bee", missing_label=np.nan)
    model.fit(np.where(X, "yes", "no"), y)
    plan = model.audit_plan(60)
    assert set(plan.rows["given"]) <= {"bee", "not bee"}
    truth = np.where(positive, "bee", "not bee")
    found = model.audit(plan, truth[plan.rows["position"]])
    low, high = found.share_wrong.low, found.share_wrong.high
    assert low <= np.mean(positive[~labelled]) <= high
