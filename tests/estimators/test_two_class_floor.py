"""Two classes of dependent columns: no fit on the defaults stays far behind a regression."""

from functools import cache

import numpy as np
import pytest
from marks import slow
from sklearn.metrics import roc_auc_score

from nbmodels import ClassConditionalNB, DataError, PositiveUnlabelledNB
from nbmodels.datasets import corrupt, flip_noise

N, NEW, D = 600, 2000, 8


def columns(true, rng, *, dependent):
    """Three symbols a column, with a common factor of all columns where they depend."""
    shift = rng.normal(size=D) * (0.7 if dependent else 1.2)
    factor = 2 * rng.normal(size=(len(true), 1)) * rng.normal(size=D) if dependent else 0
    z = factor + shift * (2 * true[:, None] - 1) + rng.logistic(size=(len(true), D))
    return (z[..., None] > np.array([-1, 1.0])).sum(-1)


@cache
def world(seed, *, dependent, one_sided):
    """Columns, given labels and true classes: the first rows to fit, the others new."""
    rng = np.random.default_rng(seed)
    true = (rng.random(N + NEW) < 0.4).astype(int)
    x = columns(true, rng, dependent=dependent)
    if one_sided:
        given = true * (rng.random(len(true)) < 0.4)
    else:
        given = corrupt(true, flip_noise(2, {(0, 1): 0.15, (1, 0): 0.3}), rng)
    return x, given, true


def fitted(seed, *, dependent, one_sided, **parameters):
    x, given, _ = world(seed, dependent=dependent, one_sided=one_sided)
    about = {"random_state": 0, **parameters}
    model = PositiveUnlabelledNB(positive=1, **about) if one_sided else ClassConditionalNB(**about)
    return model.fit(x[:N], given[:N])


def auc(model, seed, **about):
    x, _, true = world(seed, **about)
    return roc_auc_score(true[N:], model.predict_proba(x[N:])[:, 1])


@pytest.mark.filterwarnings("ignore::nbmodels.errors.NbmodelsWarning")
@pytest.mark.parametrize("one_sided", [slow(False), True])
def test_a_common_factor_is_left_to_a_regression(one_sided):
    """EM followed the factor: its AUC was that of chance where a regression has 0.8."""
    about = {"dependent": True, "one_sided": one_sided}
    found = [(fitted(s, **about), fitted(s, estimator="em", **about), s) for s in (3, 4)]
    for model, em, seed in found:
        assert model.chosen_["estimator"] == "regression"
        assert auc(model, seed, **about) > auc(em, seed, **about) + 0.05
        assert "a plain classifier than under naive Bayes" in model.verdict().sentence
        assert model.choice_["chosen"].tolist() == [False, True]
    assert np.mean([auc(model, seed, **about) for model, _, seed in found]) > 0.75


@pytest.mark.filterwarnings("ignore::nbmodels.errors.NbmodelsWarning")
@pytest.mark.parametrize("one_sided", [slow(False), True])
def test_an_exclusive_or_is_left_to_a_nonlinear_classifier(one_sided):
    """Naive Bayes and a regression were at 0.7 to 0.8 of the AUC where a forest has 0.9."""
    rng = np.random.default_rng(5)
    x = rng.integers(3, size=(N + NEW, 6))
    true = ((x[:, 0] > 0) ^ (x[:, 1] > 0)) ^ (rng.random(len(x)) < 0.05)
    wrong = rng.random(len(x)) < np.where(true, 0.3, 0.1)
    if one_sided:
        given = true & (rng.random(len(x)) < 0.6)
        model = PositiveUnlabelledNB(positive=1, random_state=0)
    else:
        given = true ^ wrong
        model = ClassConditionalNB(random_state=0)
    model.fit(x[:N], given[:N].astype(int))
    assert model.chosen_["estimator"] == "nonlinear"
    assert "a nonlinear classifier of the given labels" in model.verdict().sentence
    assert roc_auc_score(true[N:], model.predict_proba(x[N:])[:, 1]) > 0.85


@pytest.mark.filterwarnings("ignore::nbmodels.errors.NbmodelsWarning")
@pytest.mark.parametrize("one_sided", [False, True])
def test_independent_columns_are_fitted_by_em(one_sided):
    about = {"dependent": False, "one_sided": one_sided}
    model, em = fitted(5, **about), fitted(5, estimator="em", **about)
    assert model.chosen_ == {"estimator": "em"}
    np.testing.assert_array_equal(model.label_posterior_, em.label_posterior_)
    assert em.choice_ is None  # as published: nothing is compared


def test_positive_items_of_a_regression():
    about = {"dependent": True, "one_sided": True}
    model = fitted(4, **about)
    _, given, true = world(4, **about)
    share = true[:N][given[:N] == 0].mean()
    assert abs(model.class_prior_[1] - share) < 0.15
    assert abs(model.noise_matrix_[1, 1] - 0.4) < 0.15
    np.testing.assert_allclose(model.noise_matrix_[1, 0], 0, atol=1e-6)
    np.testing.assert_allclose(model.label_posterior_[given[:N] == 1, 1], 1, atol=1e-6)
    probs = np.exp(model.feature_log_prob_[0])
    np.testing.assert_allclose(probs.sum(1), 1, atol=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.errors.PosteriorWarning")
def test_draws_of_a_regression_are_of_the_unlabelled_items():
    about = {"dependent": True, "one_sided": True}
    model = fitted(4, **about)
    _, given, true = world(4, **about)
    tree = model.posterior(draws=300, chains=2, keep="parameters", progress=False)
    share = tree["posterior"]["class_prior"].sel(true_class=1)
    assert float(share.min()) >= 0
    low, high = np.quantile(share, [0.05, 0.95])
    assert low < true[:N][given[:N] == 0].mean() < high
    np.testing.assert_allclose(tree["posterior"]["class_prior"].sum("true_class"), 1)


@pytest.mark.filterwarnings("ignore::nbmodels.errors.NbmodelsWarning")
def test_the_regression_takes_what_naive_bayes_takes():
    """Missing cells, rows without a label, of no weight, checked ones, and symbols never seen."""
    rng = np.random.default_rng(0)
    true = np.repeat([0, 1], 60)
    names = np.array(["ant", "bee"])
    X = np.where(rng.random((120, 4)) < np.where(true, 0.8, 0.2)[:, None], "gold", "black")
    X = X.astype(object)
    X[5, 0] = None
    y = names[true].astype(object)
    y[::10] = "none"
    weights = (np.arange(120) % 7 > 0).astype(float)
    model = ClassConditionalNB(
        estimator="regression", missing_label="none", missing_values=np.nan, random_state=0
    )
    model.fit(X, y, sample_weight=weights, trusted={0: "ant", 119: "bee"})
    assert model.label_posterior_[119, 1] > 0.999
    new = np.array([["gold"] * 4, ["black"] * 4, ["green"] * 4], object)
    probs = model.predict_proba(new)
    assert probs[0, 1] > 0.8 > 0.2 > probs[1, 1]
    assert 0.2 < probs[2, 1] < 0.8


@pytest.mark.parametrize("kind", [ClassConditionalNB, PositiveUnlabelledNB])
def test_the_published_form_is_em(kind):
    assert kind.published().get_params()["estimator"] == "em"
    assert kind.published(estimator="moments").estimator == "moments"
    with pytest.raises(DataError, match="estimator: expected one of"):
        kind(estimator="forest").fit([["a", "b"]], ["a"])
