"""Heavy-tailed features fitted to given labels, as cross-fitting does."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from marks import slow

from nbmodels import RobustNDA
from nbmodels.core.model import Data
from nbmodels.emissions import DiagonalStudent, FullStudent
from nbmodels.fitting import scores
from nbmodels.fitting.scores import Candidate, EmissionScores

K = 2


def tailed(n, d, dof, seed=0):
    """Columns of t distributions that share a scale a row, about two means; classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    scale = np.sqrt(rng.chisquare(dof, (n, 1)) / dof)
    return y[:, None] + rng.normal(size=(n, d)) / scale, y


@pytest.mark.parametrize(
    ("emission", "d", "dof"),
    [
        (DiagonalStudent.of(2, K, dof=1.0), 2, 1.0),
        slow(DiagonalStudent.of(60, K, dof=4.0), 60, 4.0),
        slow(FullStudent.of(3, K, dof=2.0), 3, 2.0),
        (FullStudent.of(3, K, dof=2.0, tied=True), 3, 2.0),
    ],
)
def test_a_start_is_the_maximum_under_its_responsibilities(emission, d, dof):
    x, y = tailed(80, d, dof)
    data, resp = emission.pack(x), jax.nn.one_hot(y, K)

    def step(_, q):
        read = emission.likelihood_params(q, "ml")
        return emission.update(emission.stats(read, resp, data), "ml")

    start = emission.start(resp, data, "ml")
    limit = jax.jit(lambda q: jax.lax.fori_loop(0, 300 * d, step, q))(start)
    for found, best in zip(start.mode, limit.mode, strict=True):
        np.testing.assert_allclose(found, best, rtol=1e-3, atol=1e-3 * np.abs(best).max())


def test_a_class_without_items_has_a_finite_start():
    x, y = tailed(40, 2, 2.0)
    emission = DiagonalStudent.of(2, 3, dof=2.0)
    q = emission.start(jax.nn.one_hot(y, 3), emission.pack(x), "map")
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(q))


@pytest.mark.parametrize("covariance", ["diag", "full"])
def test_cross_fitted_covariances_have_their_size(covariance):
    x, y = tailed(600, 2, 4.0)
    model = RobustNDA(covariance=covariance, dof=4, training="cross_fit", random_state=0).fit(x, y)
    found = model.covariances_
    variances = found if covariance == "diag" else np.diagonal(found, axis1=1, axis2=2)
    np.testing.assert_allclose(variances, 1, rtol=0.25)


@pytest.mark.filterwarnings("ignore::nbmodels.errors.NbmodelsWarning")
def test_useless_columns_do_not_hide_an_informative_one():
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(700) % 2)
    x = rng.normal(size=(700, 100))
    x[:, 0] += 3 * y
    model = RobustNDA(covariance="diag", dof=100, training="cross_fit", random_state=0)
    assert np.mean(model.fit(x[:100], y[:100]).predict(x[100:]) == y[100:]) > 0.8


def test_scores_of_large_tables_are_near_those_of_small_ones(monkeypatch):
    n, n_folds = 1500, 5
    x, y = tailed(n, 4, 1.5)
    emission = DiagonalStudent.of(4, K, dof=1.5)
    data = Data({"x": emission.pack(x)}, np.ones(n))
    fold, resp = np.arange(n) % n_folds, jnp.asarray(np.eye(K)[y])

    def scored():
        source = EmissionScores(lambda _: Candidate({"x": emission}, data), ("x",), fold, "map")
        found = np.asarray(source.scores({}, resp))
        return found[:, 1] - found[:, 0]

    exact = scored()
    monkeypatch.setattr(scores, "_MANY_ROWS", 1)
    assert np.abs(scored() - exact).mean() < 0.02 * exact.std()
