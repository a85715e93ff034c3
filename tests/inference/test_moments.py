"""Double-word sums: exact to second order, and they resolve gains that plain sums lose."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from inference import add, negate, total


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 7, 1000, 100_003])
def test_total_is_the_exact_sum(dtype, n):
    x = (np.random.default_rng(n).normal(size=n) * 10.0 ** np.linspace(-6, 6, n)).astype(dtype)
    found = jax.jit(total)(x)
    error = math.fsum([float(found.high), float(found.low), *-x.astype(float)])
    # second order in eps: the plain sum's error is first order
    eps = float(np.finfo(dtype).eps)
    assert abs(error) <= n * eps**2 * np.abs(x.astype(float)).sum()


def test_total_resolves_what_the_plain_sum_cannot():
    x = np.random.default_rng(0).uniform(-200, 0, 1_000_000).astype(np.float32)
    y = x.copy()
    y[0] -= np.float32(1e-3)  # of 1e8 nats
    gain = float(jax.jit(lambda a, b: total(a) - total(b))(x, y))
    exact = float(x[0]) - float(y[0])
    assert abs(gain - exact) < 1e-4
    assert float(jnp.sum(x)) - float(jnp.sum(y)) in (0.0, 8.0, -8.0)  # eps at 1e8


def test_totals_add_and_turn():
    a, b = (total(jnp.float32(1e8) * jnp.ones(3, jnp.float32) + i) for i in (0, 8))
    tiny = total(jnp.full(2, 1e-3, jnp.float32))
    assert abs(float(add(a, tiny, negate(a)).value) - 2e-3) < 1e-8
    assert float(b - a) == 24.0
