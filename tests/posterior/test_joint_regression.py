"""Draws of a regression and its labels jointly, beside those given cross-fitted scores."""

import warnings

import numpy as np
import pytest

from nbmodels import NoisyLogisticRegression
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


def quiet(x, given):
    """A fit whose warnings are not what the tests are about."""
    with warnings.catch_warnings(action="ignore"):
        return NoisyLogisticRegression(random_state=0).fit(x, given)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(300, 5))
    y = np.argmax(x @ rng.normal(0, 2.0, (5, 3)) + rng.gumbel(size=(300, 3)), 1)
    return quiet(x, corrupt(y, RHO, rng))


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


def test_only_few_columns_are_affordable():
    assert affordable(1000, 5, 10)
    assert not affordable(5000, 20, 10)
