"""Logistic regression with its own EM."""

import numpy as np
import pytest
from marks import slow
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from worlds import centres, quality

from nbmodels import NoisyLogisticRegression
from nbmodels.errors import DataError

D = 8


@pytest.fixture(scope="module")
def items():
    return centres()


def regression(x, y, **more):
    return NoisyLogisticRegression(random_state=0, **more).fit(x, y)


@pytest.fixture(scope="module")
def regressed(items):
    x, _, noisy = items
    return regression(x, noisy, C=0.5)


@pytest.mark.slow
def test_the_regression_finds_the_noise(items, regressed):
    _x, y, noisy = items
    right, auc, gap = quality(regressed, y, noisy)
    assert right > np.mean(noisy == y) + 0.2
    assert auc > 0.98
    assert gap < 0.08
    assert regressed.converged_


@pytest.mark.slow
def test_a_right_model_is_compared_as_it_is_after_self_training():
    """Before it a nonlinear classifier is likelier, which holds a part of the noise."""
    rng = np.random.default_rng(1404)
    x = rng.normal(size=(800, 5))
    y = np.argmax(x @ rng.normal(0, 2.0, (5, 3)) + rng.gumbel(size=(800, 3)), 1)
    noisy = np.where(rng.random(800) < 0.3, (y + 1) % 3, y)
    fit = regression(x, noisy)
    assert fit.chosen_["rounds"] > 0
    assert "scores" not in fit.chosen_
    assert abs(np.diag(fit.noise_matrix_).mean() - 0.7) < 0.04


@pytest.mark.slow
@pytest.mark.parametrize("C", [0.5, "auto"])
def test_coefficients_are_those_of_the_probabilities(items, C):
    """In the units of X, where columns were standardised too."""
    x, _, noisy = items
    x = x * np.geomspace(0.01, 100, D) + 5
    regressed = regression(x if C == "auto" else items[0], noisy, C=C, rounds=0)
    x = x if C == "auto" else items[0]
    logits = x @ regressed.coef_.T + regressed.intercept_
    proba = np.exp(logits - logits.max(1, keepdims=True))
    proba /= proba.sum(1, keepdims=True)
    np.testing.assert_allclose(regressed.predict_proba(x), proba, atol=1e-5)


@pytest.mark.parametrize("k", [slow(2), 3])
def test_the_penalty_is_scikit_learn_s(items, k):
    x, _, noisy = items
    rows = noisy < k
    e = regression(x[rows], noisy[rows], C=0.05, rounds=0)
    plain = LogisticRegression(C=0.05, tol=1e-8).fit(x[rows], noisy[rows])
    slope = np.exp(e.fitted_.calibration[0])
    mine = e.coef_ / slope - (e.coef_.mean(0) / slope if k > 2 else 0)
    np.testing.assert_allclose(mine, plain.coef_, atol=0.01)
    assert np.abs(plain.coef_).max() > 0.3
    assert e.coef_.shape == plain.coef_.shape
    assert e.intercept_.shape == plain.intercept_.shape


@pytest.mark.slow
def test_sparse_features_are_dense_ones(items, regressed):
    x, _, noisy = items
    e = regression(sparse.csr_array(x), noisy, C=0.5)
    np.testing.assert_allclose(e.label_posterior_, regressed.label_posterior_, atol=1e-3)
    np.testing.assert_allclose(
        e.predict_proba(sparse.csr_array(x)), regressed.predict_proba(x), atol=1e-3
    )


@pytest.mark.slow
def test_units_of_columns_do_not_matter_where_C_is_selected(items):
    x, y, noisy = items
    scale = np.geomspace(1e-3, 1e3, D)
    one, two = (regression(some, noisy, rounds=0) for some in (x, x * scale + 7 * scale))
    np.testing.assert_allclose(one.label_posterior_, two.label_posterior_, atol=1e-3)
    assert one.chosen_["C"] in (0.1, 1.0, 0.01)
    assert set(one.choice_["C"]) == {0.1, 1.0, 0.01}
    assert np.mean(two.predict(x * scale + 7 * scale) == y) > 0.9


@pytest.mark.parametrize("C", [0, -1.0, np.nan, "1"])
def test_a_penalty_that_is_none(items, C):
    x, _, noisy = items
    with pytest.raises(DataError, match="C: expected"):
        regression(x, noisy, C=C)


def test_a_missing_cell_is_named(items):
    x, _, noisy = items
    x = x.copy()
    x[3, 2] = np.nan
    with pytest.raises(DataError, match=r"row 3, column '2'"):
        regression(x, noisy)


def test_rounds_that_are_not_believed_predict_nothing():
    """Held-out labels reward a round, and a nonlinear classifier contradicts its corrections."""
    rng = np.random.default_rng(20)
    n = 3200
    centres = rng.normal(size=(3, 3))
    true = rng.integers(0, 3, n)
    x = rng.normal(centres[true])
    given = np.where(rng.random(n) < 0.4, (true + rng.integers(1, 3, n)) % 3, true)
    model = NoisyLogisticRegression(random_state=0).fit(x[:200], given[:200])
    plain = LogisticRegression().fit(x[:200], given[:200])
    assert model.fitted_.noisy < 0.1
    assert model.fitted_.chosen["rounds"] == 0
    # by the classifier of the round 0.51, and 0.69 without
    assert model.score(x[200:], true[200:]) > plain.score(x[200:], true[200:]) - 0.05
