"""Maps of five lines that the driver iterates, for tests that know no model."""

import jax.numpy as jnp
import numpy as np

from inference import Total

A = np.array([[2.0, 0.6, 0.0], [0.6, 1.0, 0.3], [0.0, 0.3, 0.5]])
B = np.array([1.0, -2.0, 0.5])


def plain(value):
    """An objective without a remainder."""
    return Total(value, jnp.zeros_like(value))


def ascend(x, data):
    """Gradient ascent on ``b x - x A x / 2``: monotone, with a linear rate of 0.9 or so."""
    a, b = data
    return x + 0.3 * (b - a @ x), plain(b @ x - x @ a @ x / 2)


def slow(x, data):
    """A linear map with rates 0.5 and 0.999 towards ``data``, and an objective it never lowers."""
    rates = jnp.array([0.5, 0.999])
    return data + rates * (x - data), plain(-jnp.sum((x - data) ** 2))


def bend(x, data):
    """Down a straight road into a hollow at ``data``: extrapolations of the road shoot over."""
    gap = x - data
    height = jnp.abs(gap) + jnp.log1p(jnp.exp(-2 * jnp.abs(gap)))
    return x - 0.2 * jnp.tanh(gap), plain(-height)
