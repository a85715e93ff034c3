"""How many fits an estimator's fit takes, and that none is made twice."""

import warnings
from collections import Counter

import jax
import numpy as np
import pandas as pd
import pytest

from inference.arrays import on_device
from nbmodels import (
    CrossFit,
    DawidSkene,
    JointNB,
    NoisyBernoulliNB,
    NoisyGaussianNB,
    NoisyLogisticRegression,
)
from nbmodels.estimators import joint_or_cross_fitted, source_selection, table_training
from nbmodels.fitting import em
from nbmodels.fitting.batched import counted_fits
from nbmodels.fitting.candidate_trials import CandidateTrials
from nbmodels.fitting.holdout import compare_scores, held_out_scores


def table(n=240):
    rng = np.random.default_rng(0)
    true = rng.integers(3, size=n)
    x = (rng.random((n, 8)) < rng.uniform(0.1, 0.9, (3, 8))[true]).astype(float)
    return x, np.where(rng.random(n) < 0.2, rng.integers(3, size=n), true)


@pytest.mark.slow
@pytest.mark.parametrize("cls", [NoisyBernoulliNB, NoisyLogisticRegression])
def test_no_setting_is_fitted_twice(cls, monkeypatch):
    tried, plain = Counter(), CandidateTrials.tried

    def counting(self, settings, rounds, *more):
        tried[*sorted(settings.items()), rounds] += 1
        return plain(self, settings, rounds, *more)

    monkeypatch.setattr(CandidateTrials, "tried", counting)
    with warnings.catch_warnings(action="ignore"), counted_fits() as count:
        fitted = cls(random_state=0).fit(*table()).fitted_
    # where a test of self-training follows on the selection, its rounds begin at one fit again
    assert sum(tried.values()) - len(tried) <= (cls is NoisyLogisticRegression)
    folds = 5
    # what is beside the trials, labels without features, the joint model and the reference among
    # them: nine fits a trial at the most
    assert len(tried) * (1 + folds) <= fitted.n_fits <= 15 * len(tried)
    # checks of the fitted model make a few of their own
    assert fitted.n_fits <= count.n


@pytest.mark.slow
@pytest.mark.parametrize("informative", [True, False])
def test_labels_without_features_are_fitted_only_where_the_features_may_say_nothing(
    informative, monkeypatch
):
    asked = []
    plain = CandidateTrials.without_scores

    def counting(self, settings):
        asked.append(settings)
        return plain(self, settings)

    monkeypatch.setattr(CandidateTrials, "without_scores", counting)
    x, y = table()
    if not informative:
        x = np.random.default_rng(1).permutation(x)
    with warnings.catch_warnings(action="ignore"):
        model = NoisyBernoulliNB(alpha=1.0, random_state=0)
        model.set_params(training=CrossFit(rounds=0)).fit(x, y)
    assert bool(asked) is not informative


@pytest.mark.slow
def test_no_sources_are_fitted_jointly_twice(monkeypatch):
    """Votes alone, and beside columns that are then selected: once each, whatever asks for them."""
    made, plain = [], source_selection.joint

    def counting(candidate, *about):
        made.append({name: np.asarray(c.weight) for name, c in candidate.model.items()})
        return plain(candidate, *about)

    monkeypatch.setattr(source_selection, "joint", counting)
    rng = np.random.default_rng(2)
    n, true = 300, rng.integers(3, size=300)
    x = rng.normal(0, 1.2, (3, 4))[true] + rng.normal(size=(n, 4))
    task, right = np.repeat(np.arange(n), 3), rng.random(3 * n) < 0.75
    label = np.where(right, true[task], (true[task] + rng.integers(1, 3, 3 * n)) % 3)
    votes = {"task": task, "worker": rng.integers(8, size=3 * n), "label": label}
    given = np.where(rng.random(n) < 0.75, true, (true + rng.integers(1, 3, n)) % 3)
    model = JointNB({"x": NoisyGaussianNB(), "crowd": DawidSkene()}, random_state=0)
    with warnings.catch_warnings(action="ignore"):
        model.fit({"x": x, "crowd": pd.DataFrame(votes)}, given)
    assert model.chosen_["x_training"] == "joint"
    # a source of weight 0 is left out
    assert sorted(bool(np.any(one.get("x", 0))) for one in made) == [False, True]


@pytest.mark.slow
def test_fits_to_many_rows_begin_where_the_model_before_them_ended(monkeypatch):
    evaluations = []
    plain = em.fit_batch

    def counting(*args, **more):
        results = plain(*args, **more)
        evaluations.append(sum(int(r.n_evaluations) for r in results))
        return results

    monkeypatch.setattr(em, "fit_batch", counting)
    rng = np.random.default_rng(0)
    true = rng.integers(12, size=1_200)
    x = rng.normal(rng.normal(size=(12, 6))[true])
    y = np.where(rng.random(1_200) < 0.2, rng.integers(12, size=1_200), true)
    found = {}
    for many in (1_000, 10_000):
        for module in (table_training, joint_or_cross_fitted):
            monkeypatch.setattr(module, "MANY_ROWS", many)
        evaluations.clear()
        with warnings.catch_warnings(action="ignore"):
            model = NoisyGaussianNB(random_state=0).fit(x, y)
        found[many] = sum(evaluations), model.label_posterior_
    assert found[1_000][0] < 0.9 * found[10_000][0]
    np.testing.assert_allclose(found[1_000][1], found[10_000][1], atol=0.02)


def test_one_fold_may_settle_what_held_out_labels_are_wanted_for():
    x, y = table()
    with warnings.catch_warnings(action="ignore"):
        model = NoisyBernoulliNB.published(random_state=0).fit(x, y)
    fitted = model.fitted_
    about = jax.tree.map(on_device, (dict(fitted.fit.model), fitted.data))
    every = held_out_scores(*about, model._options(), 5).scores
    asked = []

    def settled(found):
        asked.append(found)
        return True

    some = held_out_scores(*about, model._options(), 5, settled=settled).scores
    seen = np.isfinite(some[: len(y)])
    assert seen.sum() == len(y) / 5
    assert np.isfinite(every).all()
    np.testing.assert_allclose(some[: len(y)][seen], every[: len(y)][seen], rtol=1e-5)
    assert len(asked) == 1
    never = held_out_scores(*about, model._options(), 5, settled=lambda found: False).scores
    np.testing.assert_allclose(never, every, rtol=1e-5)


def test_a_joint_model_is_behind_where_labels_are_likelier_under_the_other():
    scores = np.random.default_rng(0).normal(-1, 0.2, 100)
    weights = np.ones(100)
    worse = compare_scores([scores, scores - scores**2], [True, True], weights)
    behind = joint_or_cross_fitted._behind
    assert behind(worse) > joint_or_cross_fitted._SETTLED
    better = compare_scores([scores - scores**2, scores], [True, True], weights)
    assert joint_or_cross_fitted._behind(better) == pytest.approx(
        -joint_or_cross_fitted._behind(worse)
    )
