"""Noise matrices that a fit's own program read."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from nbmodels.channels import SymmetricTransition, Transition
from nbmodels.class_priors import Proportions
from nbmodels.core.model import PRIOR, Data
from nbmodels.emissions import Bernoulli
from nbmodels.fitting import fit as fits
from nbmodels.fitting.em import fit

K, N = 3, 120


def fitted(channel, rule):
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, N)
    x = rng.random((N, 5)) < rng.uniform(0.1, 0.9, (K, 5))[y]
    given = np.where(rng.random(N) < 0.2, rng.integers(0, K, N), y)
    model = {PRIOR: Proportions.of(K), "labels": channel.of(K), "x": Bernoulli.of(5, K)}
    parts = {"labels": channel.pack(given, K), "x": Bernoulli.pack(x)}
    data = Data({PRIOR: None, **parts}, np.ones(N))
    return fit(model, data, rule=rule, key=jax.random.key(0))


@pytest.mark.parametrize("rule", ["map", "vb"])
@pytest.mark.parametrize("channel", [Transition, SymmetricTransition])
def test_they_are_those_of_the_posteriors(channel, rule, monkeypatch):
    """By the rule that reports them; other posteriors are read anew."""
    one, read = fitted(channel, rule), []
    anew = replace(one, noise=None).transitions["labels"]
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
