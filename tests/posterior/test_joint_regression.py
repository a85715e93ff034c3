"""Draws of a regression and its labels jointly, beside those given cross-fitted scores."""

import warnings

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler

from nbmodels import NoisyLabelClassifier, NoisyLogisticRegression
from nbmodels.class_priors import ScaledLogistic
from nbmodels.datasets import corrupt, flip_noise
from nbmodels.fitting.joint_regression import affordable

RHO = flip_noise(3, {(0, 1): 0.31, (1, 2): 0.25, (2, 0): 0.3})


def shares(model):
    """Probability of the joint model among those that draws are of."""
    with warnings.catch_warnings(action="ignore"):
        targets = model._drawn_model("gibbs").posterior_targets
    return sum(t.probability for t in targets if jointly(t))


def jointly(target):
    return type(target.fit.model["class_prior"]) is ScaledLogistic


def quiet(x, given, make=NoisyLogisticRegression, *args):
    """A fit whose warnings are not what the tests are about."""
    with warnings.catch_warnings(action="ignore"):
        return make(*args, random_state=0).fit(x, given)


@pytest.fixture(scope="module")
def linear():
    """Columns and labels of a regression."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(300, 5))
    y = np.argmax(x @ rng.normal(0, 2.0, (5, 3)) + rng.gumbel(size=(300, 3)), 1)
    return x, corrupt(y, RHO, rng)


@pytest.fixture(scope="module")
def fitted(linear):
    return quiet(*linear)


def test_a_right_regression_is_drawn_jointly(fitted):
    assert shares(fitted) > 0.5
    assert fitted._drawn_model("gibbs") is fitted._drawn_model("gibbs")
    # coefficients have no variational posterior
    assert fitted._drawn_model("vb") is fitted.fitted_
    # labels and predictions stay those of the cross-fitted model
    assert not any(map(jointly, fitted.fitted_.posterior_targets))


@pytest.mark.slow
def test_its_intervals_hold_rates_that_scores_are_biased_for(fitted):
    with warnings.catch_warnings(action="ignore"):
        tree = fitted.posterior(draws=600, chains=4, progress=False)["posterior"]
    draws = np.diagonal(tree["noise_matrix"].to_numpy(), axis1=2, axis2=3).reshape(-1, 3)
    low, high = np.quantile(draws, [0.05, 0.95], 0)
    assert ((low <= np.diag(RHO)) & (np.diag(RHO) <= high)).sum() >= 2
    assert abs(draws.mean() - np.diag(RHO).mean()) < 0.05
    assert set(tree.data_vars) >= {"noise_matrix", "class_shares"}


@pytest.mark.slow
def test_a_wrong_boundary_is_not():
    rng = np.random.default_rng(0)
    y, angle = rng.integers(0, 3, 600), rng.uniform(0, 2 * np.pi, 600)
    radius = 1 + y + 0.2 * rng.normal(size=600)
    x = np.c_[radius * np.cos(angle), radius * np.sin(angle), rng.normal(size=(600, 2))]
    assert shares(quiet(x, corrupt(y, RHO, rng))) < 0.05


@pytest.mark.parametrize(
    ("classifier", "n_columns"),
    [
        pytest.param(None, 5, id="its default"),
        pytest.param(
            make_pipeline(StandardScaler(), LogisticRegression()),
            5,
            marks=pytest.mark.slow,
            id="pipeline",
        ),
        # the columns are those that the linear step meets
        pytest.param(
            make_pipeline(PolynomialFeatures(2, include_bias=False), LogisticRegression()),
            20,
            marks=pytest.mark.slow,
            id="columns made by a pipeline",
        ),
    ],
)
def test_any_linear_classifier_is_drawn_jointly(linear, classifier, n_columns):
    model = quiet(*linear, NoisyLabelClassifier, classifier)
    assert model._joint_draws.columns.shape == (300, n_columns)
    np.testing.assert_allclose(model._joint_draws.columns.std(0), 1)
    if n_columns == 5:  # with squares and products the boundary has more than enough columns
        assert shares(model) > 0.5
    assert not any(map(jointly, model.fitted_.posterior_targets))


@pytest.mark.slow
def test_other_classifiers_are_drawn_with_a_matrix_of_their_scores():
    # probabilities that hold errors to the next class explain labels without noise, but for a
    # matrix that is learned together with the noise
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=500)
    x = rng.normal(0, 1.2, (3, 5))[y] + rng.normal(size=(500, 5))
    boosted = HistGradientBoostingClassifier(max_iter=40, random_state=0)
    model = quiet(x, corrupt(y, RHO, rng), NoisyLabelClassifier, boosted)
    assert model._joint_draws.columns.shape == (500, 3)
    assert not any(map(jointly, model.fitted_.posterior_targets))
    with warnings.catch_warnings(action="ignore"):
        targets = model._drawn_model("gibbs").posterior_targets
    joint = [one for one in targets if jointly(one)]
    assert sum(one.probability for one in joint) > 0.5
    right = np.diagonal(joint[0].fit.transitions["labels"])
    assert np.abs(right - np.diag(RHO)).mean() < 0.1
    assert np.abs(right - np.diag(RHO)).mean() < np.abs(np.diag(model.noise_matrix_ - RHO)).mean()


def test_only_few_columns_are_affordable():
    assert affordable(1000, 5, 10)
    assert not affordable(5000, 20, 10)


def test_columns_that_are_too_many_are_not_computed_again(linear):
    """Their number is that of the coefficients: wide text is transformed for the fit alone."""
    items, given = linear
    calls = []

    def widened(x):
        calls.append(len(x))
        return np.tile(x, (1, 200))

    classifier = make_pipeline(FunctionTransformer(widened), LogisticRegression())
    model = quiet(items, given, NoisyLabelClassifier, classifier)
    before = len(calls)
    assert model._joint_draws.columns is None
    assert model._few_columns(items, model.fitted_) is None
    assert len(calls) == before
