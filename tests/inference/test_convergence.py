"""R-hat and effective draws beside ArviZ's."""

import numpy as np
import pytest
from arviz_stats.base import array_stats

from inference.convergence import convergence

RNG = np.random.default_rng(0)


def autoregressive(chains, draws, shape, persistence, shift=0.0):
    noise = RNG.normal(size=(draws, chains, *shape))
    x = np.zeros((chains, draws, *shape))
    for i in range(1, draws):
        x[:, i] = persistence * x[:, i - 1] + noise[i]
    return x + shift * np.arange(chains).reshape(-1, 1, *[1] * len(shape))


CASES = {
    "independent": autoregressive(4, 200, (3, 2), 0.0),
    "slow": autoregressive(4, 250, (5,), 0.9),
    "antithetic": autoregressive(2, 100, (2,), -0.5),
    "apart": autoregressive(3, 101, (2,), 0.3, shift=1.0),
    "skewed": np.exp(autoregressive(2, 120, (4,), 0.5)),
    "ties": np.round(autoregressive(4, 200, (3,), 0.5)),
    "one chain": autoregressive(1, 300, (2,), 0.5),
}


@pytest.mark.parametrize("name", CASES)
def test_as_arviz_computes_it(name):
    draws = CASES[name]
    found = convergence(draws)
    flat = draws.reshape(*draws.shape[:2], -1)
    each = [flat[..., i] for i in range(flat.shape[-1])]
    bulk = min(array_stats.ess(x, method="bulk", chain_axis=0, draw_axis=1) for x in each)
    tail = min(
        array_stats.ess(x, method="tail", prob=(0.05, 0.95), chain_axis=0, draw_axis=1)
        for x in each
    )
    np.testing.assert_allclose(found.bulk, bulk)
    np.testing.assert_allclose(found.tail, tail)
    if len(draws) > 1:  # ArviZ refuses a single chain, whose halves are compared here
        rhat = max(array_stats.rhat(x, chain_axis=0, draw_axis=1) for x in each)
        np.testing.assert_allclose(found.rhat, rhat)


def test_what_does_not_vary_is_left_out():
    draws = CASES["slow"]
    fixed = np.concatenate([draws, np.full((*draws.shape[:2], 1), 0.3)], -1)
    assert convergence(fixed) == convergence(draws)
    assert convergence(np.ones((4, 20, 2))) == (1.0, np.inf, np.inf)


def test_worst_of_many():
    many = np.concatenate([CASES["slow"][..., [0]], RNG.normal(size=(4, 250, 1200))], -1)
    assert convergence(many).bulk == convergence(many[..., :1]).bulk
