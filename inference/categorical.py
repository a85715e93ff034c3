"""Draws of categories by inversion."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray


def categorical(key: PRNGKeyArray, probs: Float[Array, "n k"]) -> Int[Array, " n"]:
    """A category for each row: the first whose cumulative probability exceeds a uniform number.

    One random number a row; ``jax.random.categorical`` draws one a category.

    Args:
        key: JAX random key.
        probs: ``(N, K)``, 0 or more; rows need not sum to one.
    """
    upto = jnp.cumsum(probs, 1)
    # times the last sum, which rounding keeps from being one
    u = jax.random.uniform(key, (len(probs), 1), probs.dtype) * upto[:, -1:]
    return jnp.sum(upto[:, :-1] <= u, 1)
