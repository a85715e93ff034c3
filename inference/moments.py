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
    """A double-word number: the unevaluated sum ``high + low``, with about twice the digits."""

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
    """Sum of all entries of ``x`` by error-free additions (Knuth's two-sum)."""
    # the terms are computed first: fused into the sum they are computed number by number
    flat, zero = lax.optimization_barrier(x.reshape(-1)), jnp.zeros((), x.dtype)
    return Total(*lax.reduce((flat, jnp.zeros_like(flat)), (zero, zero), _plus, (0,)))


@total.defjvp
def _total_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Total, Total]:
    slope = jnp.sum(tangents[0])
    return total(*primals), Total(slope, jnp.zeros_like(slope))


def add(*totals: Total) -> Total:
    """Sum of several totals."""
    out = totals[0]
    for other in totals[1:]:
        out = Total(*_plus(out, other))
    return out


def negate(t: Total) -> Total:
    """The total with the opposite sign."""
    return Total(-t.high, -t.low)
