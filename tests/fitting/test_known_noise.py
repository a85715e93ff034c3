"""Calibration under known noise beside a general optimiser of the same likelihood."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import log_softmax, logsumexp

from nbmodels.fitting.known_noise import _Model, calibrated


def problem(k, n, seed):
    rng = np.random.default_rng(seed)
    true = rng.integers(k, size=n)
    scores = 3 * np.eye(k)[true] + rng.normal(size=(n, k)) * 2
    noise = 0.7 * np.eye(k) + 0.3 * np.roll(np.eye(k), 1, axis=1)  # with cells of zero
    given = np.array([rng.choice(k, p=noise[c]) for c in true])
    table = np.log(np.maximum(noise, np.finfo(float).tiny))[:, given].T
    prior = np.zeros(k + 1), np.eye(k + 1)
    return scores, table, rng.uniform(0.5, 2, n), prior, np.zeros(k + 1)


def objective(at, scores, table, weights, prior):
    both = log_softmax(np.exp(at[0]) * scores + at[1:], axis=1) + table
    gap = at - prior[0]
    return 0.5 * gap @ prior[1] @ gap - weights @ logsumexp(both, axis=1)


@pytest.mark.parametrize(("k", "n"), [(2, 60), (5, 400)])
def test_no_other_optimiser_finds_a_likelier_calibration(k, n):
    *about, start = problem(k, n, seed=k)
    found = calibrated(*about, start)
    other = minimize(objective, start, tuple(about), "BFGS")
    assert objective(found.at, *about) == pytest.approx(other.fun, abs=1e-4)
    np.testing.assert_allclose(found.at, other.x, atol=1e-3)
    both = log_softmax(np.exp(found.at[0]) * about[0] + found.at[1:], axis=1) + about[1]
    np.testing.assert_allclose(found.evidence, logsumexp(both, axis=1), atol=1e-9)
    np.testing.assert_allclose(found.probs, np.exp(log_softmax(both, axis=1)), atol=1e-9)


def test_derivatives_are_those_of_finite_differences():
    scores, table, weights, _, _ = problem(3, 40, seed=1)
    model = _Model(scores, np.exp(table - table.max(1, keepdims=True)), weights)
    at = np.array([0.3, -0.5, 0.2, 0.4])
    slope = approx_fprime(at, lambda a: weights @ model.at(a).evidence, 1e-6)
    np.testing.assert_allclose(model.gradient(model.at(at)), slope, atol=1e-3)
    bend = approx_fprime(at, lambda a: model.gradient(model.at(a)), 1e-6)
    np.testing.assert_allclose(model.curvature(model.at(at)), bend, atol=1e-3)


def test_labels_that_contradict_sure_scores_have_finite_evidence():
    scores = np.array([[0.0, 2000.0], [2000.0, 0.0]])
    table = np.log(np.array([[1.0, np.finfo(float).tiny]] * 2))
    found = calibrated(scores, table, np.ones(2), (np.zeros(3), np.eye(3)), np.zeros(3))
    assert np.isfinite(found.evidence).all()
    assert np.isfinite(found.at).all()
