"""Noise matrices, point estimates and log-likelihoods that a fit's own program read."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from nbmodels.channels import SymmetricTransition, Transition
from nbmodels.class_priors import Proportions
from nbmodels.core.model import PRIOR, Data
from nbmodels.emissions import Bernoulli
from nbmodels.fitting import fit as fits
from nbmodels.fitting.em import fit, fit_many

K, N = 3, 120


def problem(channel):
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, N)
    x = rng.random((N, 5)) < rng.uniform(0.1, 0.9, (K, 5))[y]
    given = np.where(rng.random(N) < 0.2, rng.integers(0, K, N), y)
    model = {PRIOR: Proportions.of(K), "labels": channel.of(K), "x": Bernoulli.of(5, K)}
    parts = {"labels": channel.pack(given, K), "x": Bernoulli.pack(x)}
    return model, Data({PRIOR: None, **parts}, np.ones(N))


def fitted(channel, rule):
    model, data = problem(channel)
    return fit(model, data, rule=rule, key=jax.random.key(0))


@pytest.mark.parametrize("rule", ["map", "vb"])
@pytest.mark.parametrize("channel", [Transition, SymmetricTransition])
def test_they_are_those_of_the_posteriors(channel, rule, monkeypatch):
    """By the rule that reports them; other posteriors are read anew."""
    one, read = fitted(channel, rule), []
    anew = replace(one, read=None).transitions["labels"]
    whole = fits._noise_matrices
    monkeypatch.setattr(fits, "_noise_matrices", lambda *a: read.append(1) or whole(*a))
    np.testing.assert_allclose(one.transitions["labels"], anew, rtol=1e-6)
    np.testing.assert_allclose(one.transitions["labels"].sum(1), 1, rtol=1e-6)
    assert not read, "by the program of the fit"
    moved = jax.tree.map(
        lambda c: c + 20 * np.arange(c.size).reshape(c.shape), one.params["labels"]
    )
    other = replace(one, params={**one.params, "labels": moved})
    assert np.abs(other.transitions["labels"] - anew).max() > 0.01
    assert read


@pytest.mark.parametrize("rule", ["map", "vb"])
def test_so_are_point_estimates(rule, monkeypatch):
    one, read = fitted(Transition, rule), []
    anew = replace(one, read=None).point
    whole = fits._point
    monkeypatch.setattr(fits, "_point", lambda *a: read.append(1) or whole(*a))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), one.point, anew)
    np.testing.assert_allclose(one.point_of(PRIOR), anew[PRIOR], rtol=1e-6)
    assert not read, "by the program of the fit"
    moved = replace(one.params[PRIOR], concentration=one.params[PRIOR].concentration[::-1] + 50)
    other = replace(one, params={**one.params, PRIOR: moved})
    assert np.abs(other.point_of(PRIOR) - anew[PRIOR]).max() > 0.01
    assert np.abs(other.point[PRIOR] - anew[PRIOR]).max() > 0.01
    assert len(read) == 2


@pytest.mark.parametrize("rule", ["map", "vb"])
def test_so_are_log_likelihoods_where_they_are_wanted(rule, monkeypatch):
    """Under powers of the labels, too, and of items that the fit did not count."""
    model, data = problem(Transition)
    weights = np.ones(N)
    weights[:20] = 0
    data = replace(data, powers={"labels": np.full(N, 0.7)})
    held = replace(data, weights=weights)
    (one,) = fit_many([model], [held], rule=rule, key=jax.random.key(0), tables=True)
    anew = fits.log_likelihoods_of(replace(one, read=None), data)
    monkeypatch.setattr(fits, "_log_likelihoods", None)
    known = fits.log_likelihoods_of(one, data)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), known, anew)
    assert known["labels"].table.shape == (N, K)
