"""Gamma variates on the log scale by vectorised rejection sampling (Marsaglia and Tsang 2000).

"A simple method for generating gamma variables": a cubed normal is accepted with probability 0.95
or more. JAX uses the same method, but on a CPU it runs one loop for each number, at a microsecond
or more apiece. Here all numbers get one proposal in one vectorised pass. Small arrays are proposed
whole until all are accepted; of large ones the rejected are gathered into a short array first. The
draws are exact.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float, PRNGKeyArray

#: Size from which only what was rejected is proposed again.
_MANY = 1_000

#: The short array holds one number in so many, about twice the share that is rejected.
_AGAIN = 10

#: Standardised proposals below this are rejected: the cubed normal is next to zero there.
_BELOW = -1 + 1e-6

#: Up to this magnitude four terms of the acceptance bound's series are exact in single precision.
_NEAR = 0.05


def loggamma(key: PRNGKeyArray, shape: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Logarithms of independent gamma variates of unit rate.

    Args:
        key: JAX random key.
        shape: shape parameters, above 0; an array of any shape.
    """
    flat = shape.reshape(-1)
    first, second = jax.random.split(key)
    # below one, a draw of shape a + 1 times a uniform to the power 1 / a (section 6 there)
    boosted = jnp.where(flat < 1, flat + 1, flat)
    propose = _until_accepted if flat.size < _MANY else _by_gathering
    out = propose(first, boosted)
    uniform = jax.random.uniform(second, flat.shape, flat.dtype, jnp.finfo(flat.dtype).tiny)
    out = jnp.where(flat < 1, out + jnp.log(uniform) / flat, out)
    return out.reshape(shape.shape)


def _by_gathering(key: Array, shape: Array) -> Array:
    """Logarithms of draws, of which few are rejected at first."""
    first, second = jax.random.split(key)
    out, accepted = _propose(first, shape)
    few = shape.size // _AGAIN

    def again(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        out, accepted, key = carry
        here, key = jax.random.split(key)
        (where,) = jnp.nonzero(~accepted, size=few, fill_value=shape.size)
        drawn = _until_accepted(here, shape.at[where].get(mode="fill", fill_value=1.0))
        out = out.at[where].set(drawn, mode="drop")
        return out, accepted.at[where].set(True, mode="drop"), key

    # once, unless far more are rejected than is likely
    return lax.while_loop(lambda c: ~jnp.all(c[1]), again, (out, accepted, second))[0]


def _until_accepted(key: Array, shape: Array) -> Array:
    """Logarithms of draws; the first accepted proposal of each."""

    def again(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        out, accepted, key = carry
        here, key = jax.random.split(key)
        drawn, taken = _propose(here, shape)
        return jnp.where(accepted, out, drawn), accepted | taken, key

    begin = (jnp.zeros_like(shape), jnp.zeros(shape.shape, bool), key)
    return lax.while_loop(lambda c: ~jnp.all(c[1]), again, begin)[0]


def _propose(key: Array, shape: Array) -> tuple[Array, Array]:
    """Logarithms of proposals, and which of them are accepted; ``shape`` is 1 or more."""
    first, second = jax.random.split(key)
    x = jax.random.normal(first, shape.shape, shape.dtype)
    d = shape - 1 / 3
    t = x / jnp.sqrt(9 * d)
    log_root = jnp.log1p(jnp.maximum(t, _BELOW))
    # x^2 / 2 + d - d (1 + t)^3 + 3 d log(1 + t), whose first terms cancel: a series for small t
    series = t * t * t * t * (-3 / 4 + t * (3 / 5 - t * (1 / 2 - t * 3 / 7)))
    plain = t * t * (3 / 2 - t) + 3 * (log_root - t)
    bound = d * jnp.where(jnp.abs(t) < _NEAR, series, plain)
    log_uniform = jnp.log(jax.random.uniform(second, shape.shape, shape.dtype))
    return jnp.log(d) + 3 * log_root, (t > _BELOW) & (log_uniform < bound)
