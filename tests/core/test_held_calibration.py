"""Calibration whose slope leaves held shares where they are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nbmodels.class_priors import Calibration, HeldCalibration

N, K = 60, 3
SHARES = np.array([0.6, 0.3, 0.1])


def scores(spread):
    """Of a classifier that was trained on uneven classes."""
    rng = np.random.default_rng(0)
    return Calibration.pack(np.log([0.9, 0.08, 0.02]) + spread * rng.normal(size=(N, K)))


def held(spread, weights=None):
    weights = np.ones(N) if weights is None else weights
    return HeldCalibration.near(SHARES, (0.1, 3.0), scores(spread), weights, 2.0)


def mean_share(component, at, spread):
    return np.exp(component.log_probs(at, scores(spread))).mean(0)


@pytest.mark.parametrize("slope", [0.2, 1.0, 5.0])
def test_useless_scores_leave_the_shares_as_they_are_held(slope):
    at = held(0).prior.mean.at[0].set(np.log(slope))
    np.testing.assert_allclose(mean_share(held(0), at, 0), SHARES, atol=1e-6)


def test_weak_scores_leave_them_nearly_so():
    component = held(0.2)
    begin, steep = (component.prior.mean.at[0].set(np.log(s)) for s in (1.0, 4.0))
    np.testing.assert_allclose(mean_share(component, begin, 0.2), SHARES, atol=0.01)
    np.testing.assert_allclose(mean_share(component, steep, 0.2), SHARES, atol=0.05)
    # as they come, the slope that makes the classes clearer would leave one
    raw = Calibration(prior=component.prior)
    assert mean_share(raw, steep, 0.2)[0] > 0.99


@pytest.mark.parametrize("known", [[0.3, 0.4, 0.3], [0.85, 0.1, 0.05]])
@pytest.mark.parametrize("spread", [0.3, 1.5, 30, 500])
def test_known_shares_are_kept_at_any_slope_and_in_any_unit(known, spread):
    """Scores that hold other shares: their logarithms as biases would count them twice."""
    component = HeldCalibration.keeping(np.array(known), scores(spread), np.ones(N), 2.0)
    twice, unit, off = Calibration.of(K, bias=np.log(known)), float(scores(spread).std()), []
    for slope in (0.25, 1.0, 4.0):
        at = component.prior.mean.at[0].set(np.log(slope / unit))
        np.testing.assert_allclose(mean_share(component, at, spread), known, atol=0.05)
        before = twice.prior.mean.at[0].set(np.log(slope / unit))
        off.append(np.abs(mean_share(twice, before, spread) - known).max())
    assert max(off) > 0.05
    of_none = np.exp(component.log_probs(component.prior.mean, None))[0]
    np.testing.assert_allclose(of_none, known, atol=0.05)


def test_known_shares_hold_as_surely_as_items_show_them_and_a_rare_one_is_not_left_open():
    def deviations(shares, n):
        found = HeldCalibration.keeping(np.array(shares), np.zeros((n, K)), np.ones(n), 2.0)
        return np.diag(found.prior.precision)[1:] ** -0.5

    for n in (100, 400):
        expected = np.sqrt((1 - SHARES) / SHARES / n)
        np.testing.assert_allclose(deviations(SHARES, n), np.minimum(expected, 0.3), rtol=1e-6)
    assert deviations([0.6, 0.3999, 0.0001], 100)[2] == pytest.approx(0.3)


def test_rows_that_do_not_count_do_not_move_the_centre():
    weights = np.r_[np.ones(N - 1), 0]
    some = scores(1).at[-1].set(jnp.array([50.0, -25.0, -25.0]))
    found = HeldCalibration.near(SHARES, (0.1, 3.0), some, weights, 2.0)
    np.testing.assert_allclose(found.centre, some[:-1].mean(0), rtol=1e-12)


def test_the_step_follows_the_gradient():
    rng = np.random.default_rng(1)
    resp, at = jnp.asarray(rng.dirichlet(np.ones(K), N)), jnp.asarray(rng.normal(size=1 + K))
    component, data = held(1), scores(1)
    curvature, natural = component.stats(at, resp, data)
    gradient = jax.grad(lambda at: jnp.sum(resp * component.log_probs(at, data)))(at)
    np.testing.assert_allclose(natural - curvature @ at, gradient, atol=1e-8)


def test_both_descriptions_and_raw_scores_have_the_same_probabilities():
    component, data = held(1), scores(1)
    at = jnp.asarray([0.7, 0.2, -0.4, 0.1])
    own = component.log_probs(at, data)
    values = component.values(at)
    np.testing.assert_allclose(component.log_class_probs(values, data) - own, 0, atol=1e-9)
    np.testing.assert_allclose(component.probs(values, data), np.exp(own), atol=1e-9)
    raw = Calibration(prior=component.prior).log_probs(jnp.asarray(component.of_scores(at)), data)
    np.testing.assert_allclose(raw, own, atol=1e-9)
    np.testing.assert_allclose(component.from_scores(component.of_scores(at)), at, atol=1e-9)


def test_draws_have_their_own_prior():
    component = held(1)
    drawn = component.for_draws()
    np.testing.assert_array_equal(drawn.prior.mean, component.prior.mean)
    np.testing.assert_allclose(np.diag(drawn.prior.precision)[1:], 1 / 9)
    np.testing.assert_allclose(np.diag(component.prior.precision)[1:], 100, rtol=1e-6)
