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
