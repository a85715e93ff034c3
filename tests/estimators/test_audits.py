"""Every estimator with corrected labels can be audited, and learns from the checked rows."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from nbmodels import DataError, DawidSkene, NoisyGaussianNB, Solver
from nbmodels.datasets import corrupt, uniform_noise

QUIET = Solver(progress=False)


def rows(n=240, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    x = pd.DataFrame(rng.normal(2.0 * y[:, None], 1, (n, 2)), [f"i{i}" for i in range(n)])
    return x, corrupt(y, uniform_noise(3, 0.2), rng), y


@pytest.mark.slow
def test_audit_of_a_table_and_a_fit_with_the_checked_rows():
    x, given, true = rows()
    model = NoisyGaussianNB.published(random_state=0).fit(x, given)
    plan = model.audit_plan(60)
    assert str(len(plan)) in plan.sentence
    truth = pd.Series(true, x.index)
    result = model.audit(plan, truth[plan.rows["row"]])
    assert abs(result.share_wrong.value - np.mean(given != true)) < 0.06
    again = NoisyGaussianNB.published(random_state=0)
    again.fit(x, given, trusted=result.trusted)
    known = plan.rows["position"].to_numpy()
    assert (again.label_posterior_[known].argmax(1) == true[known]).all()
    # what was checked is not drawn again
    second = again.audit_plan(100)
    assert not set(second.rows["position"]) & set(known)
    # and is known beside what is checked next
    both = again.audit(second, truth[second.rows["row"]]).trusted
    assert pd.notna(both).sum() == 160
    assert (both[pd.notna(both)] == true[pd.notna(both)]).all()
    assert len(model.audit_plan(margin=0.05)) > len(model.audit_plan(margin=0.1))


def test_seeds_make_plans():
    x, given, _ = rows()
    model = NoisyGaussianNB.published(random_state=0).fit(x, given)
    first, same, other = (model.audit_plan(30, random_state=s).rows["row"] for s in (1, 1, 2))
    assert list(first) == list(same) != list(other)


def test_margins_suppose_the_end_of_the_noise_range():
    """That of more neighbours than held-out labels select, if most labels are wrong by it."""
    x, given, _ = rows()
    model = NoisyGaussianNB.published(random_state=0).fit(x, given)
    selected = replace(model.fitted_.separable, widest=None)
    more = replace(selected, resp=np.full_like(selected.resp, 1 / 3))
    model.fitted_ = replace(model.fitted_, separable=replace(selected, widest=more))
    assert model.noise_range_.separable.share == pytest.approx(2 / 3)
    plan = model.audit_plan(30)
    assert plan.share == pytest.approx(2 / 3)
    assert "If 66.7% of the labels are wrong" in plan.sentence


def test_rows_without_weight_are_not_drawn():
    x, given, true = rows()
    weight = np.where(np.arange(240) < 100, 0, 1)
    given[:100] = (true[:100] + 1) % 3
    model = NoisyGaussianNB.published(random_state=0).fit(x, given, sample_weight=weight)
    plan = model.audit_plan(60)
    assert plan.population == 140
    assert (plan.rows["position"] >= 100).all()
    result = model.audit(plan, true[plan.rows["position"]])
    assert result.share_wrong.low < np.mean(given[100:] != true[100:]) < result.share_wrong.high


def test_ids_that_repeat_are_refused():
    x, given, true = rows()
    x.index = [f"site{i % 7}" for i in range(240)]
    model = NoisyGaussianNB.published(random_state=0).fit(x, given)
    plan = model.audit_plan(60)
    checked = pd.Series(true[plan.rows["position"]], plan.rows["row"])
    with pytest.raises(ValueError, match=r"checked: row 'site\d' is 3[45] rows by the index of X"):
        model.audit(plan, checked)
    assert len(model.audit(plan, checked.to_numpy()).checked) == 60


@pytest.mark.slow
def test_no_share_is_claimed_where_features_say_nothing():
    rng = np.random.default_rng(0)
    given = rng.integers(0, 3, 300)
    with warnings.catch_warnings(action="ignore"):
        model = NoisyGaussianNB(random_state=0).fit(rng.normal(size=(300, 3)), given)
    plan = model.audit_plan(50)
    assert "no share of wrong ones is expected" in plan.sentence
    assert "model" not in model.audit(plan, given[plan.rows["position"]]).sentence


@pytest.mark.slow
def test_audit_of_annotators_by_task():
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, 100)
    votes = pd.DataFrame(
        {
            "task": np.repeat([f"t{i}" for i in range(100)], 4),
            "worker": np.tile(list("abcd"), 100),
            "label": corrupt(np.repeat(true, 4), uniform_noise(3, 0.3), rng),
        }
    )
    model = DawidSkene(solver=QUIET, random_state=0).fit(votes)
    plan = model.audit_plan(40)
    truth = dict(zip((f"t{i}" for i in range(100)), true, strict=True))
    checked = pd.Series({task: truth[task] for task in plan.rows["row"]})
    result = model.audit(plan, checked)
    assert 0 < result.suggestions.low < 1
    again = DawidSkene(solver=QUIET, random_state=0).fit(votes, trusted=result.trusted)
    at = pd.Index(again.tasks_).get_indexer(checked.index)
    assert (again.label_posterior_[at].argmax(1) == checked).all()
    with pytest.raises(
        DataError, match=r"^trusted: expected .* of 100 tasks .*; got shape \(99,\)"
    ):
        again.fit(votes, trusted=result.trusted[1:])


@pytest.mark.slow
def test_nothing_left_to_check():
    x, given, true = rows()
    model = NoisyGaussianNB.published(random_state=0)
    model.fit(x, given, trusted=true)
    with pytest.raises(ValueError, match="no row has a label that was not checked"):
        model.audit_plan(10)
