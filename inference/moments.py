"""Compensated (double-word) summation.

An objective of 1e8 nats in single precision must still resolve a gain of 1e-3.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float


class Total(NamedTuple):
    """A double-word number: the unevaluated sum ``high + low``, with about twice the digits.

    Examples:
        >>> import jax.numpy as jnp
        >>> from inference import Total
        >>> before = Total(jnp.float32(1e8), jnp.float32(0.25))
        >>> after = Total(jnp.float32(1e8), jnp.float32(0.75))
        >>> float(after.value - before.value)  # single precision holds 8 digits
        0.0
        >>> float(after - before)
        0.5
    """

    high: Float[Array, "*batch"]
    low: Float[Array, "*batch"]

    def __sub__(self, other: Total) -> Array:
        return (self.high - other.high) + (self.low - other.low)

    @property
    def value(self) -> Array:
        return self.high + self.low


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Knuth's error-free sum: ``a + b == s + e`` exactly."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _plus(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
    s, e = _two_sum(a[0], b[0])
    return s, a[1] + b[1] + e


@jax.custom_jvp
def total(x: Float[Array, "*shape"]) -> Total:
    """Sum of all entries of ``x`` by error-free additions (Knuth's two-sum).

    Examples:
        >>> import numpy as np
        >>> from inference import total
        >>> x = np.full(1000, 1e5, np.float32)
        >>> y = x.copy()
        >>> y[0] += 0.5
        >>> float(total(y) - total(x))
        0.5
        >>> float(y.sum() - x.sum())  # lost in a plain sum
        0.0
    """
    # the terms are computed first: fused into the sum they are computed number by number
    flat, zero = lax.optimization_barrier(x.reshape(-1)), jnp.zeros((), x.dtype)
    return Total(*lax.reduce((flat, jnp.zeros_like(flat)), (zero, zero), _plus, (0,)))


@total.defjvp
def _total_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Total, Total]:
    slope = jnp.sum(tangents[0])
    return total(*primals), Total(slope, jnp.zeros_like(slope))


def add(*totals: Total) -> Total:
    """Sum of several totals.

    Examples:
        >>> import jax.numpy as jnp
        >>> from inference import add, total
        >>> large = total(jnp.full(10, 1e7, jnp.float32))
        >>> small = total(jnp.full(2, 0.125, jnp.float32))
        >>> float(add(large, small) - large)
        0.25
        >>> float((large.value + small.value) - large.value)  # lost in a plain sum
        0.0
    """
    out = totals[0]
    for other in totals[1:]:
        out = Total(*_plus(out, other))
    return out


def negate(t: Total) -> Total:
    """The total with the opposite sign.

    Examples:
        >>> import jax.numpy as jnp
        >>> from inference import add, negate, total
        >>> large = total(jnp.full(10, 1e7, jnp.float32))
        >>> small = total(jnp.full(2, 0.125, jnp.float32))
        >>> float(add(large, small, negate(large)).value)
        0.25
    """
    return Total(-t.high, -t.low)
