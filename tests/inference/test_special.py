"""Fast digamma and log-gamma against SciPy's in double precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special as exact

from inference.special import digamma, gammaln

WIDE = np.concatenate([np.geomspace(1e-4, 1e8, 200_001), np.linspace(0.5, 5, 100_001)])
FUNCTIONS = {"digamma": (digamma, exact.digamma), "gammaln": (gammaln, exact.gammaln)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_single_precision(name):
    ours, theirs = FUNCTIONS[name]
    x = WIDE.astype(np.float32)
    expected = theirs(x.astype(float))
    found = ours(jnp.asarray(x))
    assert found.dtype == jnp.float32
    error = np.abs(np.asarray(found, float) - expected)
    assert (error / np.maximum(np.abs(expected), 1)).max() < 4e-6


@pytest.mark.parametrize("name", FUNCTIONS)
def test_double_precision_is_exact(name):
    ours, theirs = FUNCTIONS[name]
    np.testing.assert_allclose(ours(jnp.asarray(WIDE)), theirs(WIDE), rtol=1e-13, atol=1e-13)


def test_derivatives():
    x = jnp.asarray(WIDE[::1000])
    np.testing.assert_allclose(jax.vmap(jax.grad(gammaln))(x), exact.digamma(x), 1e-9)
    np.testing.assert_allclose(jax.vmap(jax.grad(digamma))(x), exact.polygamma(1, x), 1e-9)
