"""PartialLabelNB on its defaults: features that depend on each other do not decide inside a set."""

import numpy as np
import pytest
from marks import slow
from scipy import sparse

from nbmodels import DataError, IdentifiabilityWarning, PartialLabelNB

K, N = 4, 300


def items(n=N, *, dependent, seed=0):
    """Binary features, with a common factor where they depend on each other, and classes."""
    rng = np.random.default_rng(seed)
    true = rng.integers(K, size=n)
    logits = rng.normal(size=(K, 20))[true] * (1 if dependent else 2)
    if dependent:
        logits = logits + 2 * rng.normal(size=(n, 1)) * rng.normal(size=20)
    return (logits + rng.logistic(size=(n, 20)) > 0).astype(float), true


def candidates(true, share=0.4, seed=0):
    """The class, and each other one with some probability."""
    rng = np.random.default_rng(seed)
    return (rng.random((len(true), K)) < share) | (np.arange(K) == true[:, None])


def fitted(x, possible, **parameters):
    model = PartialLabelNB(features="bernoulli", random_state=0, **parameters)
    return model.fit(x, possible)


def right(model, true):
    return float(np.mean(model.label_posterior_.argmax(1) == true))


def test_independent_features_are_fitted_jointly():
    x, true = items(dependent=False)
    model = fitted(x, candidates(true))
    assert model.chosen_ == {"estimator": "em"}
    assert model.verdict().ok


@pytest.mark.slow
def test_a_joint_fit_that_is_selected_is_the_one_that_is_asked_for():
    x, true = items(dependent=False)
    model = fitted(x, candidates(true))
    together = fitted(x, candidates(true), estimator="em")
    np.testing.assert_array_equal(model.label_posterior_, together.label_posterior_)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_dependent_features_are_not_fitted_jointly(seed):
    """Jointly a quarter of the right classes was lost, with a confidence of 0.9, in silence."""
    x, true = items(dependent=True, seed=seed)
    possible = candidates(true, seed=seed)
    model = fitted(x, possible)
    assert model.chosen_["estimator"] in ("cross_fit", "regression", "nonlinear")
    assert not model.label_posterior_[~possible].any()
    with pytest.warns(Warning, match="Do not use this fit"):
        together = fitted(x, possible, estimator="em")
    assert right(model, true) > right(together, true) + 0.05
    assert abs(model.label_posterior_.max(1).mean() - right(model, true)) < 0.1
    new, classes = items(dependent=True, seed=seed + 100)
    assert model.predict(new).shape == classes.shape


def test_features_that_say_nothing_are_said_to():
    rng = np.random.default_rng(3)
    true = rng.integers(K, size=N)
    x = (rng.random((N, 8)) < 0.5).astype(float)
    with pytest.warns(IdentifiabilityWarning, match="label sets better than chance"):
        model = fitted(x, candidates(true), estimator="cross_fit")
    sets = candidates(true)
    even = sets / sets.sum(1, keepdims=True)
    np.testing.assert_allclose(model.label_posterior_, even, atol=0.3)


def test_row_weights_of_zero_do_not_count():
    x, true = items(dependent=True)
    possible = candidates(true)
    kept = np.arange(N) % 3 > 0
    some = PartialLabelNB(features="bernoulli", estimator="cross_fit", random_state=0)
    some.fit(x, possible, sample_weight=kept)
    assert right(some, true) > 0.5


@pytest.mark.slow
def test_draws_of_a_cross_fitted_model():
    x, true = items(dependent=True)
    model = fitted(x, candidates(true), estimator="cross_fit")
    tree = model.posterior(draws=50, chains=2, progress=False)
    shares = tree.posterior["class_shares"].mean(("chain", "draw"))
    np.testing.assert_allclose(shares, np.bincount(true, minlength=K) / N, atol=0.1)


def correlated(n, rng, means, loadings):
    """Normal columns with two common factors, and classes."""
    true = rng.integers(K, size=n)
    return means[true] + 1.5 * rng.normal(size=(n, 2)) @ loadings + rng.normal(size=(n, 20)), true


@pytest.mark.slow
def test_correlated_columns_are_left_to_a_classifier_of_the_sets():
    """Cross-fitted naive Bayes was up to 24 points behind a regression on the same sets."""
    rng = np.random.default_rng(7)
    means, loadings = 0.8 * rng.normal(size=(K, 20)), rng.normal(size=(2, 20))
    x, true = correlated(N, rng, means, loadings)
    new, classes = correlated(1000, rng, means, loadings)
    possible = candidates(true, seed=7)
    kwargs = {"features": "gaussian", "random_state": 0}
    model = PartialLabelNB(**kwargs).fit(x, possible)
    naive = PartialLabelNB(estimator="cross_fit", **kwargs).fit(x, possible)
    assert model.chosen_["estimator"] in ("regression", "nonlinear")
    assert right(model, true) > right(naive, true) + 0.05
    assert np.mean(model.predict(new) == classes) > np.mean(naive.predict(new) == classes) + 0.1
    assert not model.label_posterior_[~possible].any()
    assert "of the sets" in model.verdict().sentence
    # parameters of the features are those of the classes found
    found = model.feature_parameters_["mu"]
    np.testing.assert_allclose(found, [x[true == k].mean(0) for k in range(K)], atol=1.0)


def clustered(n, seed=1):
    """Classes of three clusters each, and items of the same ones."""
    rng = np.random.default_rng(seed)
    true, centres = rng.integers(K, size=2 * n), rng.normal(0, 2.5, (K, 3, 4))
    x = centres[true, rng.integers(3, size=2 * n)] + rng.normal(size=(2 * n, 4))
    return x[:n], true[:n], x[n:], true[n:]


@pytest.fixture(scope="module")
def of_clusters():
    x, true, new, classes = clustered(N)
    possible = candidates(true)
    model = PartialLabelNB(features="gaussian", random_state=0).fit(x, possible)
    return model, x, true, possible, new, classes


def test_clusters_are_left_to_a_nonlinear_classifier_of_the_sets(of_clusters):
    model, _, _, possible, *_ = of_clusters
    assert model.chosen_["estimator"] == "nonlinear"
    assert "a nonlinear classifier of the sets" in model.verdict().sentence
    assert not model.label_posterior_[~possible].any()


@pytest.mark.parametrize("other", [slow("em"), "cross_fit", slow("regression")])
def test_others_are_worse_where_classes_have_clusters(of_clusters, other):
    """Naive Bayes and a regression of them lost 15 classes of 100 to a forest, in silence."""
    model, x, true, possible, new, classes = of_clusters
    poor = PartialLabelNB(features="gaussian", random_state=0, estimator=other).fit(x, possible)
    assert right(model, true) > right(poor, true) + 0.05
    assert np.mean(model.predict(new) == classes) > np.mean(poor.predict(new) == classes) + 0.05


@pytest.mark.slow
def test_draws_of_a_nonlinear_classifier_have_the_class_shares(of_clusters):
    model, _, true, *_ = of_clusters
    tree = model.posterior(draws=50, chains=2, progress=False)
    shares = tree.posterior["class_shares"].mean(("chain", "draw"))
    np.testing.assert_allclose(shares, np.bincount(true, minlength=K) / N, atol=0.1)


def test_few_sets_have_no_nonlinear_classifier():
    x, true, _, _ = clustered(25)
    model = PartialLabelNB(features="gaussian", estimator="nonlinear")
    with pytest.raises(DataError, match=r"estimator: .nonlinear. requires .* at least 30 rows"):
        model.fit(x, candidates(true))


@pytest.mark.slow
@pytest.mark.parametrize("features", ["categorical", "multinomial", "bernoulli"])
def test_a_regression_takes_all_kinds_of_features(features):
    rng = np.random.default_rng(0)
    true = rng.integers(K, size=N)
    x = rng.poisson(np.where(np.arange(8) % K == true[:, None], 4.0, 1.0))
    tables = {
        "categorical": np.minimum(x, 3).astype(str),
        "multinomial": sparse.csr_array(x.astype(float)),
        "bernoulli": (x > 2).astype(float),
    }
    model = PartialLabelNB(features=features, estimator="regression", random_state=0)
    model.fit(tables[features], candidates(true))
    assert right(model, true) > 0.75
    assert np.mean(model.predict(tables[features]) == true) > 0.65
    tree = model.posterior(draws=50, chains=2, progress=False)
    assert tree.posterior["class_shares"].sizes["true_class"] == K


@pytest.mark.parametrize("estimator", ["cross_fit", slow("regression")])
def test_class_shares_of_few_sets_stay_near_those_of_the_sets(estimator):
    """Few sets are the likelier the more one class is predicted for all; draws leave that open."""
    rng = np.random.default_rng(0)
    true = rng.integers(K, size=80)
    x = rng.normal(size=(80, 3)) + 1.5 * true[:, None]
    possible = candidates(true)
    model = PartialLabelNB(features="gaussian", estimator=estimator, random_state=0)
    prior = model.fit(x, possible).fitted_.fit.model["class_prior"]
    sds = [np.diag(np.asarray(one.precision)) ** -0.5 for one in (prior.prior, prior.drawn)]
    np.testing.assert_allclose(sds[0][1:], 0.25, rtol=1e-5)
    assert (sds[1][1:] >= 0.99).all()


def test_a_class_that_is_excluded_once_is_a_slip():
    """No item has it and nothing excludes it: most items would be of it."""
    x, true = items(dependent=False)
    names = np.array(["ant", "bee", "fly"])
    excluded = names[(true + 1) % 3].astype(object)
    excluded[4] = "beee"
    with pytest.raises(DataError, match=r"^excluded: row 4 excludes 'beee', which no other row"):
        PartialLabelNB(random_state=0).fit(x, excluded=excluded)
    # one that an item has is a class
    known = np.full(len(true), None, object)
    known[:3] = "beee"
    model = PartialLabelNB(random_state=0, missing_label=None, classes=None)
    assert model.set_params(missing_label=np.nan).fit(x, known, excluded=excluded) is model
    assert "beee" in model.classes_


def test_an_audit_needs_labels_of_one_class():
    x, true = items(dependent=False)
    model = PartialLabelNB(random_state=0).fit(x, excluded=(true + 1) % 3)
    with pytest.raises(DataError, match=r"^n_rows: no row has a single label$"):
        model.audit_plan(20)
