"""Dense matrix products in full precision, with the interface of the sparse ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float

from inference.pytree import register_dataclass

#: ``inner(sums, *aside) -> (table, extra)``, all of the same rows, each computed by itself.
Inner: TypeAlias = Callable[..., tuple[Array, Array]]


@register_dataclass
@dataclass(frozen=True)
class Dense:
    """A dense matrix ``(N, d)``."""

    array: Float[Array, "n d"]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def times(self, table: Float[Array, "d k"]) -> Float[Array, "n k"]:
        """``X @ table``: ``(N, d) x (d, K) -> (N, K)``."""
        return jnp.matmul(self.array, table, precision=lax.Precision.HIGHEST)

    def transpose_times(self, rows: Float[Array, "n k"]) -> Float[Array, "d k"]:
        """``X.T @ rows``: ``(N, d).T x (N, K) -> (d, K)``."""
        return jnp.matmul(rows.T, self.array, precision=lax.Precision.HIGHEST).T

    def round_trip(
        self, rows: Float[Array, "n k"], inner: Inner, aside: Sequence[Array] = ()
    ) -> tuple[Float[Array, "n k"], list[Array]]:
        """``X @ table``, where ``table`` is what ``inner`` makes of each row of ``X.T @ rows``.

        Both products of an iteration, with the elementwise work between them.

        Args:
            rows: ``(N, K)``.
            inner: from ``(r, K)`` sums of some columns of the matrix, and the same rows of
                ``aside``, to their ``(r, K)`` table and an array of whatever else is wanted.
            aside: arrays ``(d, ...)``, or ``(1, ...)`` where it is the same for all columns.

        Returns:
            the product, and the extras of all calls of ``inner``.
        """
        table, extra = inner(self.transpose_times(rows), *aside)
        return self.times(table), [extra]

    def to_dense(self) -> Float[Array, "n d"]:
        """The matrix as a JAX array."""
        return self.array

    def to_host(self) -> np.ndarray:
        """The matrix as a NumPy array."""
        return np.asarray(self.array)
