"""Digamma and log-gamma of positive numbers, fast in single precision.

JAX's own loop until the argument is large, or choose among several series: 30 ns a number, which is
most of a CAVI iteration on a graph. Here the argument is shifted by four in product form and the
asymptotic series is cut where single precision ends. Double precision is left to JAX.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.scipy import special

_HALF_LOG_2PI = 0.9189385332046727

#: Above this, a shift by four changes nothing that single precision could see in the series.
_FAR = 1e4


def elementwise(function: Callable[..., Array], *arrays: Array) -> Array:
    """``function`` of arrays that broadcast to one shape, computed along one long vector.

    A short last axis (classes) would be unrolled by the compiler and computed number by number. The
    barriers also keep the result from being computed in parts for several readers.
    """
    shape = jnp.broadcast_shapes(*(x.shape for x in arrays))
    flat = [jnp.broadcast_to(x, shape).reshape(-1) for x in arrays]
    return lax.optimization_barrier(function(*lax.optimization_barrier(flat))).reshape(shape)


@jax.custom_jvp
def digamma(x: Array) -> Array:
    """Derivative of the log-gamma function; absolute error below 2e-6 in single precision.

    Args:
        x: any shape, above 0.
    """
    if x.dtype != jnp.float32:
        return special.digamma(x)
    # psi(x) = psi(x + 4) - 1/x - 1/(x+1) - 1/(x+2) - 1/(x+3), the four fractions as one
    t = x * (x + 3)
    fractions = (2 * x + 3) * (2 * t + 2) / (t * (t + 2))
    fractions = jnp.where(x < _FAR, fractions, 4 / x)
    middle = x + 3.5
    f = 1 / (middle * middle)
    return jnp.log(middle) + f * (1 / 24 - f * (7 / 960 - f * (31 / 8064))) - fractions


@digamma.defjvp
def _digamma_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (dx,) = primals, tangents
    return digamma(x), special.polygamma(1, x) * dx


@jax.custom_jvp
def gammaln(x: Array) -> Array:
    """Logarithm of the gamma function; relative error of the order of single precision.

    Args:
        x: any shape, above 0.
    """
    if x.dtype != jnp.float32:
        return special.gammaln(x)
    near = x < _FAR
    t = x * (x + 3)
    shift = jnp.where(near, jnp.log(jnp.where(near, t * (t + 2), 1)), 0)
    z = jnp.where(near, x + 4, x)
    r = 1 / z
    series = r * (1 / 12 - r * r * (1 / 360 - r * r * (1 / 1260)))
    return (z - 0.5) * jnp.log(z) - z + (_HALF_LOG_2PI + series - shift)


@gammaln.defjvp
def _gammaln_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (dx,) = primals, tangents
    return gammaln(x), digamma(x) * dx
