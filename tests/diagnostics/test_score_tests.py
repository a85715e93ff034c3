"""Score tests of a fit have the moments they claim, and the reference classifier is out of fold."""

from functools import cache

import jax
import numpy as np
import pytest
import zoo
from marks import slow_among
from scipy import sparse

from inference.products import matrix
from nbmodels.core.residuals import of_indicators, of_reals
from nbmodels.diagnostics.score_tests import LEVEL, Scores, largest, of_columns, pooled, summed
from nbmodels.fitting.reference import out_of_fold_predictions

K, N = 3, 1000
NAMES = np.array(["apple", "berry", "cherry"], object)

# Parts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize(
    ("n", "d", "share"),
    [(5, 4, 0.5), (60, 200, 0.9), (1000, 600, 0.95), (7, 3, 0.0), (3, 900, 0.9)],
)
def test_a_layout_is_read_back(n, d, share, binary):
    x = sparse.random_array((n, d), density=share, rng=np.random.default_rng(0), format="csr")
    if binary:
        x.data[:] = 1
    packed = jax.tree.map(np.asarray, matrix(x))
    found = packed.to_host()
    assert found.shape == (n, d)
    np.testing.assert_array_equal(found.toarray(), x.toarray())
    np.testing.assert_array_equal(matrix(x.toarray()).to_host(), x.toarray())


def test_a_label_that_no_item_has_is_correlated_with_nothing():
    """A prior leaves the mean of residuals off zero, by the same in every item of a class."""
    resp, codes = np.eye(2)[np.repeat([0, 1], 100)], np.where(np.arange(200) < 70, 0, 1)
    transition = np.array([[0.7, 0.3], [0.005, 0.995]])
    x = np.where(np.arange(200) < 100, np.arange(200) % 2, 0.0)[:, None]
    rates = np.array([[0.5], [0.01]])
    found = of_columns(
        of_indicators(x, rates, None, np.zeros(1, int), 10), resp, np.ones(200), codes, transition
    )
    assert not largest(found.labels).beyond(0.15)


@cache
def at_the_truth(name):
    """An emission's parameters, many items of known classes, and what it leaves over of them."""
    case = zoo.build(name, n_items=4000, seed=3)
    model, part = case.model[name], case.data.parts[name]
    first = jax.random.split(jax.random.key(3), 3)[0]  # as the zoo drew them
    read = zoo.random_likelihood_params(case.model, first)[name]
    found = model.residuals(jax.tree.map(np.asarray, read), part, np.arange(4000), 30)
    return case, found


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", slow_among([n for n in zoo.EMISSIONS if n != "users"], ["bernoulli"])
)
def test_scores_have_mean_zero_where_the_emission_is_right(name):
    case, found = at_the_truth(name)
    onehot = np.eye(zoo.K)[case.y]
    codes = np.where(np.random.default_rng(0).random(4000) < 0.7, case.y, (case.y + 1) % zoo.K)
    rates = 0.7 * np.eye(zoo.K) + 0.3 * np.roll(np.eye(zoo.K), 1, 1)
    scores = of_columns(found, onehot, np.ones(4000), codes, rates)
    some = [s for s in vars(scores).values() if s is not None]
    assert some
    for one in some:
        assert largest(one).p_value > LEVEL
        assert np.abs(one.z).max() < 5


def test_users_leave_nothing_over():
    case = zoo.build("users")
    assert case.model["users"].residuals(None, case.data.parts["users"], np.arange(3), 2) is None


def test_products_of_columns_are_sums_over_items():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 4))
    x[rng.random(x.shape) < 0.1] = np.nan
    mean, variance = rng.normal(size=(K, 4)), rng.gamma(2, size=(K, 4))
    resp, weights = rng.dirichlet(np.ones(K), 150), rng.uniform(0.5, 2, 150)
    found = of_reals(x, mean, variance, 4)
    scores = of_columns(found, resp, weights).products

    def item(k, i, j):
        z = np.clip((x - mean[k]) / np.sqrt(variance[k]), -3, 3)
        return np.nan_to_num(z[:, i] * z[:, j])

    total = sum((weights * resp[:, k]) @ item(k, 1, 3) for k in range(K))
    np.testing.assert_allclose(scores.total[K, 1, 3], total)
    bound = sum((weights**2 * resp[:, k]) @ item(k, 1, 3) ** 2 for k in range(K))
    np.testing.assert_allclose(scores.square[K, 1, 3], bound)
    exact = np.square(weights * sum(resp[:, k] * item(k, 1, 3) for k in range(K))).sum()
    assert exact <= bound
    np.testing.assert_allclose(scores.total[1, 1, 3], (weights * resp[:, 1]) @ item(1, 1, 3))
    assert not np.tril(scores.total[K]).any()


def test_two_values_of_a_symbol_are_not_compared():
    x = np.eye(2)[np.random.default_rng(0).integers(0, 2, 100)]
    found = of_indicators(x, np.full((1, 2), 0.5), None, np.array([0, 0]), 2)
    assert not of_columns(found, np.ones((100, 1)), np.ones(100)).products.total.any()


def test_the_largest_of_many_tests_pays_for_their_number():
    z = np.array([1.0, -4.0, 2.0])
    one = largest(Scores(z * 10, np.full(3, 100.0), np.full(3, 100.0)))
    assert one.at == (1,)
    assert (one.z, one.effect) == (-4.0, -0.4)
    np.testing.assert_allclose(one.p_value, 3 * 6.334e-5, rtol=1e-3)
    assert one.beyond(0.3)
    assert not one.beyond(0.5)
    assert not largest(Scores(z * 10, np.full(3, 100.0), np.full(3, 100.0)), side=1).beyond(0)
    nothing = largest(Scores(np.zeros(3), np.zeros(3), np.zeros(3)))
    assert (nothing.z, nothing.effect) == (0, 0)
    assert nothing.p_value >= 0.5


def test_pooled_tests_are_those_of_the_classes_and_their_sum():
    parts = [summed(np.ones((40, 2)), np.ones(40)), summed(np.ones((10, 2)), np.ones(10))]
    found = pooled(parts)
    np.testing.assert_array_equal(found.total, [[40, 40], [0, 0], [40, 40]])
    np.testing.assert_array_equal(found.effect, [[1, 1], [0, 0], [1, 1]])


@pytest.mark.parametrize("wide", [False, True])
def test_the_reference_classifier_has_not_seen_the_label(wide):
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, 600)
    centre = np.repeat(np.eye(K), 200 if wide else 2, 1)
    x = rng.poisson(0.05 + 0.3 * centre[y]).astype(float)
    found = out_of_fold_predictions(
        [sparse.csr_array(x) if wide else x], np.where(y == 0, -1, y), K
    )
    assert set(found[y == 0]) == {-1}
    assert np.mean(found[y > 0] == y[y > 0]) > (0.95 if wide else 0.6)
    noise = rng.integers(0, K, 600)  # labels that do not depend on the features
    assert abs(np.mean(out_of_fold_predictions([x], noise, K) == noise) - 1 / K) < 0.08
    assert out_of_fold_predictions([x[:20]], y[:20], K) is None
    assert out_of_fold_predictions([x], np.zeros(600, int), K) is None
    assert out_of_fold_predictions([], y, K) is None
