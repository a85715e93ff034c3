"""Dense matrix products in full precision, with the interface of the sparse ones."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float


@jax.tree_util.register_dataclass
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

    def to_dense(self) -> Float[Array, "n d"]:
        """The matrix as a JAX array."""
        return self.array

    def to_host(self) -> np.ndarray:
        """The matrix as a NumPy array."""
        return np.asarray(self.array)
