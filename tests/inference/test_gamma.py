"""Gamma draws, many at once, against their distribution function."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from inference.gamma import loggamma

draw = jax.jit(loggamma)
SHAPES = [0.02, 0.5, 1.0, 1.7, 12.0, 900.0, 1e6]


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_draws_have_the_distribution(dtype, key):
    shape = jnp.repeat(jnp.asarray(SHAPES, dtype), 20_000).reshape(7, 200, 100)
    logs = np.asarray(draw(key, shape), float).reshape(7, -1)
    assert np.isfinite(logs).all()
    for a, x in zip(SHAPES, logs, strict=True):
        p = stats.kstest(x, lambda y, a=a: stats.loggamma.cdf(y, a)).pvalue
        assert p > 1e-3, a
        # neighbours are independent, those proposed again too
        assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 0.03


@pytest.mark.slow
def test_keys_and_shapes(key):
    shape = jnp.full((50, 40), 1.0)
    assert draw(key, shape).shape == (50, 40)
    assert not np.array_equal(draw(key, shape), draw(jax.random.key(1), shape))
    assert loggamma(key, jnp.zeros((0, 3))).shape == (0, 3)
    several = jax.vmap(loggamma, (0, None))(jax.random.split(key, 3), shape)
    assert len(np.unique(several)) == several.size
