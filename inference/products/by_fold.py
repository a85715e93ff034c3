"""The rows of a sparse matrix by fold, for products of all folds in one pass over its entries.

A computation that ``jax.vmap`` maps over folds sees the rows of one fold; its products are one for
all folds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.custom_batching import custom_vmap
from jaxtyping import Bool, Float, Int
from scipy import sparse

from inference.arrays import floating, on_device
from inference.products.sparse import Sparse
from inference.pytree import register_dataclass


@register_dataclass
@dataclass(frozen=True)
class ByFold:
    """The rows of ``F`` folds, ``(M, d)`` in each, for ``jax.vmap`` along :attr:`axes`.

    Attributes:
        blocks: ``(F M, F d)``, block-diagonal.
        fold: ``(F,)`` numbers of the folds.
        shape: ``(M, d)``, the shape in a fold.
    """

    blocks: Sparse
    fold: Int[Array, " f"]
    shape: tuple[int, int] = field(metadata={"static": True})

    @classmethod
    def of(cls, x: Sparse, rows: Int[np.ndarray, "f m"], own: Bool[np.ndarray, "f m"]) -> ByFold:
        """From a matrix.

        Args:
            x: ``(N, d)``.
            rows: rows of each fold.
            own: whether the row counts; others stay empty.
        """
        (n_folds, length), d = rows.shape, x.shape[1]
        some = x.to_host()[rows[own]]
        degree = np.zeros(rows.size, np.int64)
        degree[own.ravel()] = np.diff(some.indptr)
        fold = np.arange(n_folds, dtype=np.int32)
        moved = some.indices + np.repeat(d * np.repeat(fold, length), degree)
        parts = some.data, moved, np.concatenate([[0], np.cumsum(degree)])
        blocks = sparse.csr_array(parts, shape=(rows.size, n_folds * d))
        blocks.sort_indices()
        return cls(Sparse.of(blocks, floating()), on_device(fold), (length, d))

    @property
    def axes(self) -> Any:
        """What ``jax.vmap`` maps: only with the number of a fold is a product one of all folds."""
        # jax.vmap takes axes in the arrays' places
        return ByFold(None, 0, self.shape)  # type: ignore[arg-type]  # axes, not arrays

    def times(self, table: Float[Array, "d k"]) -> Float[Array, "m k"]:
        """``X @ table``: ``(M, d) x (d, K) -> (M, K)``."""
        return _times(self, table)

    def transpose_times(self, rows: Float[Array, "m k"]) -> Float[Array, "d k"]:
        """``X.T @ rows``: ``(M, d).T x (M, K) -> (d, K)``."""
        return _transpose_times(self, rows)


def _of_all_folds(product: Callable[[Sparse, Array], Array], side: int) -> Any:
    """A product under ``jax.vmap``, of arrays by fold or of one for all.

    Args:
        product: of the block-diagonal matrix.
        side: which of the matrix's sides the result has.
    """

    @custom_vmap
    def of_fold(x: ByFold, other: Array) -> Array:
        # its shape is all it is for
        return jnp.zeros((x.shape[side], other.shape[-1]), other.dtype)

    @of_fold.def_vmap
    def of_all(n_folds: int, batched: Any, x: ByFold, other: Array) -> tuple[Array, bool]:
        by_fold = other if batched[1] else jnp.broadcast_to(other, (n_folds, *other.shape))
        found = product(x.blocks, by_fold.reshape(-1, other.shape[-1]))
        return found.reshape(n_folds, -1, other.shape[-1]), True

    return of_fold


_times = _of_all_folds(Sparse.times, 0)
_transpose_times = _of_all_folds(Sparse.transpose_times, 1)
