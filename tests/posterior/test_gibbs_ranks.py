"""Simulation-based calibration of Gibbs sampling, small enough for every run.

Data sets are drawn by NumPy alone. The whole study is one compiled program that takes the model as
an argument, so that samplers of wrong models show, at little cost, that the test can fail.
``test_calibration_of_draws.py`` has more models, items and draws.
"""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from calibration import ranks
from jax import lax
from scipy import stats
from scipy.special import logsumexp

from nbmodels.channels import Transition
from nbmodels.class_priors import Proportions
from nbmodels.core import model as models
from nbmodels.core.model import PRIOR, Data
from nbmodels.emissions import Bernoulli
from nbmodels.posterior.gibbs import follow

K, D = 3, 2
SETS, ITEMS = 300, 20
#: One less than a multiple of the bins, so that ranks fall into bins of one probability.
DRAWS, THIN, WARMUP, BINS = 19, 4, 20, 10

MODEL = {
    PRIOR: Proportions.of(K, 4.0),
    "x": Bernoulli.of(D, K),
    "labels": Transition.of(K, alpha=1.0, diagonal=20.0),
}


@cache
def study():
    """Parameters from the prior, and data from the parameters: arrays with a leading set axis."""
    rng = np.random.default_rng(0)

    def dirichlet(concentration, axis):
        gammas = rng.gamma(concentration, size=(SETS, *concentration.shape))
        return gammas / gammas.sum(axis, keepdims=True)

    prior = {name: np.asarray(c.prior.concentration) for name, c in MODEL.items()}
    shares = dirichlet(prior[PRIOR], -1)
    ones = dirichlet(prior["x"], 1)[:, 1]  # P(x_j = 1 | class), (sets, D, K)
    rho = dirichlet(prior["labels"], -1)
    y = choices(rng, np.repeat(shares[:, None], ITEMS, 1))
    at = np.arange(SETS)[:, None]
    x = (rng.random((SETS, ITEMS, D)) < ones.transpose(0, 2, 1)[at, y]).astype(int)
    labels = choices(rng, rho[at, y])
    return shares, ones, rho, x, labels


def choices(rng, probs):
    return (probs.cumsum(-1) < rng.random((*probs.shape[:-1], 1))).sum(-1)


def log_likelihoods(shares, ones, rho, x, labels):
    p = ones[:, None]
    cells = np.where(x[..., None] == 1, np.log(p), np.log1p(-p)).sum(2)
    noise = np.log(np.take_along_axis(rho.transpose(0, 2, 1), labels[..., None], 1))
    return logsumexp(np.log(shares)[:, None] + cells + noise, -1).sum(-1)


def quantities(shares, ones, rho, log_likelihood):
    cells = [rho[..., i, j] for i in range(K) for j in range(K - 1)]
    return jnp.stack([*jnp.moveaxis(shares, -1, 0), ones[..., 0, 0], *cells, log_likelihood], -1)


@jax.jit
def chains(model, data, start, keys):
    """Quantities ``(sets, draws, quantities)`` of chains that begin at given parameters."""

    def of_set(one, state, key):
        def sweep(state, key):
            resp = models.posterior(model, state, one).resp
            return follow(model, state, one, resp, key), None

        def kept(state, keys):
            state, _ = lax.scan(sweep, state, keys)
            total = models.posterior(model, state, one).log_likelihood.sum()
            values = [jnp.exp(state[name]) for name in (PRIOR, "x", "labels")]
            return state, quantities(values[0], values[1][1], values[2], total)

        first, second = jax.random.split(key)
        state, _ = lax.scan(sweep, state, jax.random.split(first, WARMUP))
        return lax.scan(kept, state, jax.random.split(second, (DRAWS, THIN)))[1]

    return jax.vmap(of_set)(data, start, keys)


def p_value(model):
    """Of uniform ranks, the smallest of all quantities, by Bonferroni.

    A chain begins at the true parameters, which are a draw from the posterior, so that the right
    sampler needs no warm-up to be in its stationary distribution; a few sweeps take it away from
    the truth.
    """
    shares, ones, rho, x, labels = study()
    start = {
        PRIOR: np.log(shares),
        "x": np.log(np.stack([1 - ones, ones], 1)),
        "labels": np.log(rho),
    }
    packed = Bernoulli.pack(x.reshape(-1, D))
    cells = jax.tree.map(lambda leaf: leaf.reshape(SETS, ITEMS, -1), packed)
    parts = {PRIOR: None, "x": cells, "labels": jnp.asarray(labels, jnp.int32)}
    keys = jax.random.split(jax.random.key(0), SETS)
    data = Data(parts, jnp.ones((SETS, ITEMS)))
    drawn = np.asarray(chains(model, data, jax.tree.map(jnp.asarray, start), keys))
    truth = np.asarray(quantities(shares, ones, rho, log_likelihoods(*study())))
    rank = ranks(truth, drawn) * BINS // (DRAWS + 1)
    counts = [np.bincount(one, minlength=BINS) for one in rank.T]
    return min(stats.chisquare(one).pvalue for one in counts) * len(counts)


def prior_times(name, factor):
    """The model with pseudo-counts of one component counted ``factor`` times."""
    prior = MODEL[name].prior
    wrong = replace(prior, concentration=factor * prior.concentration)
    return {**MODEL, name: replace(MODEL[name], prior=wrong)}


@pytest.mark.slow
def test_ranks_of_the_right_sampler_are_uniform():
    assert p_value(MODEL) > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("name", ["labels", "x"])
def test_a_prior_counted_twice_is_caught(name):
    """That of the class shares moves so few items' worth that it would take more data sets."""
    assert p_value(prior_times(name, 2.0)) < 1e-4


@pytest.mark.slow
def test_a_likelihood_counted_twice_is_caught():
    assert p_value({**MODEL, "labels": replace(MODEL["labels"], weight=2.0)}) < 1e-4
